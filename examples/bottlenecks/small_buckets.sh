#!/bin/sh
# 64 MiB of gradients in one all-reduce, and in pieces of 64 KiB as DDP sends them with a tiny bucket_cap_mb: on the GPUs of
# this node where there are two. Else over MPI in host memory, where pieces must be far smaller to lose: those of 64 KiB stay
# in the caches and win.
. "$(dirname "$0")/lib.sh"
needs_program
whole=67108864 piece=65536 words="64 MiB at once against 1024 pieces of 64 KiB"
if [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -ge 2 ]; then
  start="$topotune bench coll all_reduce --no-log"
else
  needs_mpi
  whole=4194304 piece=64 words="4 MiB at once against 65536 pieces of 64 bytes"
  start="$mpirun -n 2 $topotune bench coll all_reduce --backend mpi"
fi
# shellcheck disable=SC2086
$start -b $piece -e $whole -f $((whole / piece)) --place out --modes blocking --time 0.5 --limit 60 --csv --fail-on error \
  >"$out/buckets.csv" 2>"$out/buckets.err"
one=$(seconds "$out/buckets.csv" $piece)
pieces=${one:+$(awk -v s="$one" -v n=$((whole / piece)) 'BEGIN { print s * n }')}
compare "$words" "$(seconds "$out/buckets.csv" $whole)" "$pieces" 1.3
cat >"$out/train.py" <<'PY'
model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0625)
PY
says "$topotune" lint "$out/train.py"
echo "  (the bucket size is the training's own choice: a log or profile shows the sizes that reach NCCL)"
exit "$status"
