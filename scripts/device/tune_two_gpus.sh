#!/bin/bash
# Tunes NCCL on a machine with two GPUs and proves it there, in one call of at most five minutes: the table within 120 s (115 s at most), then
# default, control and table in fresh communicators (100 s; with sizes in between, for the model), and the same with kernels started
# one by one (45 s; past the size where NCCL changes its protocol, so that the model can see it). Ends with the counts of the columns. Writes log.txt, node.table and three files of JSON to the folder $1. With "all" as $2 also,
# in some minutes more: what the profiler costs, a job with the environment plugin, tables that must be refused.
# Beside this script, or in the folder BIN: topotune and its plugins. SIZES and SMALL_SIZES: other sizes. NVLink multicast stays off.
set -u
out=${1:?usage: tune_two_gpus.sh OUTPUT_FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
set_up "$out"
say() { echo "$*" | tee -a "$log"; }  # to the terminal, too
within() { # within SECONDS COMMAND...: as clock, with a limit of its own
  local limit=$1
  shift
  clock "$@"
}
{
  date -u +%FT%TZ
  uname -sr
  nvidia-smi --query-gpu=index,name,driver_version,pci.bus_id,clocks.sm,temperature.gpu --format=csv
  nvidia-smi topo -m
  "$tt" version
  echo "NCCL: $TOPOTUNE_NCCL_LIBRARY"
  ls -l "$bin" /dev/shm
  df /dev/shm
} >>"$log" 2>&1
table=$out/node.table
sizes=${SIZES:-1K:1G} small=${SMALL_SIZES:-1K:16M}
ops=all_reduce,all_gather,reduce_scatter,all_to_all,broadcast

# (a) The table, within two minutes.
within 150 "$tt" tune --collectives $ops --sizes $sizes --budget 115 --out "$table" -v --json -o "$out/tune.json"
if [ ! -s "$table" ]; then
  say "no table was written; NCCL's own words:"
  NCCL_DEBUG=INFO within 60 "$tt" tune --collectives all_reduce --sizes 1M,64M --budget 20 -v
  exit 1
fi
grep -v ^raw "$table" >>"$log"

columns() { # columns FILE: what the columns came to, and each one that is not surely "not slower"
  python3 - "$1" <<'END' 2>&1 | tee -a "$log"
import json, sys
try:
    run = json.load(open(sys.argv[1]))
except (OSError, ValueError) as error:
    sys.exit(f"no columns: {error}")
control = {}
for r in run["results"]:
    key, extra = (r["name"], r["params"].get("bytes")), r.get("extra") or {}
    if r["params"].get("column") == "default" and "control_ratio" in extra:
        control[key] = "control {control_ratio:.3f} ({control_low:.3f} - {control_high:.3f})".format(**extra)
    if extra.get("verdict", "not slower") != "not slower":
        print("{}: {} {} {ratio:.3f} ({ratio_low:.3f} - {ratio_high:.3f}) of {pairs} pairs, {}".format(
            extra["verdict"], *key, control.get(key, "no control"), **extra))
for j in run["judgements"]:
    print(j["subject"] + ": " + j["text"])
END
}

# (b) Default, control and table in fresh communicators, and sizes in between against the model; then streams alone.
within 125 "$tt" tune --check "$table" --collectives $ops --sizes $sizes --held-back --budget 100 --json -o "$out/check.json"
columns "$out/check.json"
within 60 "$tt" tune --check "$table" --collectives $ops --sizes $small --mode stream --budget 45 --json -o "$out/stream.json"
columns "$out/stream.json"
[ "${2:-}" = all ] || { gzip -f "$out"/*.json; exit 0; }

# (c) The profiler's price between calls; that of training steps: profiler_two_gpus.sh.
within 60 "$tt" tune --overhead "$bin/libnccl-profiler-topotune.so" --collectives all_reduce --sizes 1K:1M --pairs 101 --budget 40 --json -o "$out/overhead.json"
newest=$(ls -t /dev/shm/topotune-profile-*.ttprof 2>/dev/null | head -n 1)
[ -n "$newest" ] && cp "$newest" "$out/rank.ttprof" && within 20 "$tt" log "$newest"

# (d) A job that names the environment plugin and the table alone, proved by its log; what it does, tuned.
printf 'NCCL_ENV_PLUGIN=%s\nTOPOTUNE_TUNER_TABLE=%s\n' "$bin/libnccl-env-topotune.so" "$(realpath "$table")" >/tmp/nccl.conf
NCCL_CONF_FILE=/tmp/nccl.conf NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING,COLL timeout 90 \
  torchrun --nproc-per-node=2 "$here/allreduce.py" >/tmp/job.log 2>&1
grep -h -e 'topotune' -e 'CTAS' -e 'env plugin' /tmp/job.log | head -n 20 >>"$log"
within 20 "$tt" verify --log /tmp/job.log
within 60 "$tt" tune --from /tmp/job.log --budget 30 --out "$out/job.table"

# Not healthy: the job must run as if there were no plugin.
rm -f /dev/shm/topotune-profile-*.ttprof
sed 's/^nccl .*/nccl 2.1.0/' "$table" >/tmp/foreign.table
within 30 "$tt" tune --check /tmp/foreign.table --collectives all_reduce --sizes 1M --pairs 6
head -c 300 "$table" >/tmp/cut.table
within 30 "$tt" tune --check /tmp/cut.table --collectives all_reduce --sizes 1M --pairs 6
gzip -f "$out"/*.json 2>/dev/null
ls -l "$out"
