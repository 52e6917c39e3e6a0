# For the scripts beside it: how they measure, and how they end.
#   0 the loss was shown   1 it was measured and there is none here   3 waived: this machine cannot show it
# TOPOTUNE: the program. MPIRUN: the launcher of the parts that run over MPI. OUT: a folder that keeps the results.
set -u
topotune=${TOPOTUNE:-topotune}
mpirun=${MPIRUN:-"mpirun --oversubscribe"}
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
[ -n "${OUT:-}" ] || trap 'rm -rf "$out"' EXIT

# waived WHY: one line, status 3.
waived() {
  echo "waived: $1"
  exit 3
}

needs_program() { command -v "$topotune" >/dev/null 2>&1 || waived "no topotune on PATH (TOPOTUNE names another)"; }

# needs_gpus N: NCCL and N GPUs.
needs_gpus() {
  have=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
  [ "$have" -ge "$1" ] || waived "this needs NCCL and $1 GPUs; here are $have"
}

# needs_mpi: a launcher and the program's MPI module.
needs_mpi() {
  # shellcheck disable=SC2086
  set -- $mpirun
  command -v "$1" >/dev/null 2>&1 || waived "this needs mpirun (MPIRUN names another)"
}

# seconds FILE BYTES: the median seconds of a collective of that size, from `bench coll --csv`.
seconds() {
  awk -F, -v bytes="$2" '/^"?coll\./ && $0 ~ "bytes=" bytes "[ \"]" { for (i = 1; i <= NF; ++i) if ($i == "seconds") { print $(i + 1); exit } }' "$1"
}

# compare WHAT GOOD BAD LEAST: both in seconds; prints the ratio and sets `status`.
compare() {
  if [ -z "$2" ] || [ -z "$3" ]; then
    waived "$1: not measured (${OUT:+see $out: }$(tail -n 1 "$out"/*.err 2>/dev/null | tail -n 1))"
  fi
  awk -v what="$1" -v good="$2" -v bad="$3" -v least="$4" 'BEGIN {
    printf "%s: good %.4g ms, bad %.4g ms: %.2f times slower\n", what, good * 1e3, bad * 1e3, bad / good
    exit !(bad / good >= least) }'
  status=$?
  [ "$status" -eq 0 ] || echo "no loss of at least $4 times here"
}

# nccl_with NAME BENCH SUBSYSTEMS VARIABLE=VALUE...: the benchmark as it is and with the variables, on this node's GPUs;
# NAME-good.csv, NAME-bad.csv and NCCL's log of the second, NAME.log.
nccl_with() {
  name=$1 bench=$2 subsystems=$3
  shift 3
  # shellcheck disable=SC2086
  "$topotune" $bench >"$out/$name-good.csv" 2>"$out/$name-good.err"
  # shellcheck disable=SC2086
  env "$@" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS="$subsystems" NCCL_DEBUG_FILE="$out/$name.log" \
    "$topotune" $bench >"$out/$name-bad.csv" 2>"$out/$name-bad.err"
}

# verdict NAME WHAT BYTES: the loss, and what the program says of the setting and of the log, where there is one.
verdict() {
  compare "$2" "$(seconds "$out/$1-good.csv" "$3")" "$(seconds "$out/$1-bad.csv" "$3")" 1.3
  says "$topotune" lint "$out/$1.env"
  [ ! -s "$out/$1.log" ] || says "$topotune" log "$out/$1.log"
}

# says COMMAND...: what the program says of it, indented; its status is not this script's.
says() {
  echo "$ $*" | sed "s#$topotune#topotune#g"
  "$@" 2>&1 | sed 's/^/  /' | head -n "${SAYS_LINES:-24}"
}
