#!/bin/sh
# CPUs of one node that work on memory of another. Needs two NUMA nodes with memory, and no GPU.
. "$(dirname "$0")/lib.sh"
needs_program
nodes=0
for node in /sys/devices/system/node/node[0-9]*; do
  [ -s "$node/cpulist" ] && [ -n "$(tr -d '[:space:]' <"$node/cpulist")" ] && nodes=$((nodes + 1))
done
[ "$nodes" -ge 2 ] || waived "this needs two NUMA nodes with CPUs; here is $nodes"
"$topotune" bench numa --csv --fail-on error >"$out/numa.csv" 2>"$out/numa.err"
# Latency is in seconds, as the others: that of a node's own memory, and the worst of another's.
latencies=$(awk -F, '/^"?numa\.latency/ { for (i = 1; i <= NF; ++i) if ($i == "seconds") print $(i + 1) }' "$out/numa.csv" | sort -g)
good=$(echo "$latencies" | head -n 1)
bad=$(echo "$latencies" | tail -n 1)
compare "a read of memory, own node against the farthest" "$good" "$bad" 1.2
cat >"$out/numa.sbatch" <<'JOB'
#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=8
numactl --cpunodebind=0 --membind=0 torchrun --nproc_per_node 8 train.py
JOB
says "$topotune" lint "$out/numa.sbatch"
says "$topotune" check
exit "$status"
