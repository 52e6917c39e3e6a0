#!/bin/sh
# Two ranks on one CPU: each waits for the other's time slice. The same all-reduce with a CPU for each rank.
# Over MPI in host memory; runs without GPUs.
. "$(dirname "$0")/lib.sh"
needs_program
needs_mpi
cpus=$(nproc)
[ "$cpus" -ge 2 ] || waived "this needs two CPUs; here is $cpus"
command -v taskset >/dev/null 2>&1 || waived "this needs taskset"
first=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
bench="$topotune bench coll all_reduce --backend mpi -b 64K -e 64K --place out --modes blocking --time 1 --limit 60 --csv --fail-on error"
# shellcheck disable=SC2086
$mpirun --bind-to none -n 2 $bench >"$out/oversubscribed-good.csv" 2>"$out/oversubscribed-good.err"
# shellcheck disable=SC2086
taskset -c "$first" $mpirun --bind-to none -n 2 $bench >"$out/oversubscribed-bad.csv" 2>"$out/oversubscribed-bad.err"
compare "all-reduce of 64 KiB, two ranks on two CPUs against one" \
  "$(seconds "$out/oversubscribed-good.csv" 65536)" "$(seconds "$out/oversubscribed-bad.csv" 65536)" 1.3
cat >"$out/oversubscribed.sbatch" <<'JOB'
#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node=8 --gpus-per-node=8 --cpus-per-task=1
srun python3 train.py --num_workers 8
JOB
says "$topotune" lint "$out/oversubscribed.sbatch"
# shellcheck disable=SC2086
says taskset -c "$first" $mpirun --bind-to none -n 2 "$topotune" bench mixed --backend mpi --scale 0.002 --duration 0.3 --limit 60 --fail-on error
exit "$status"
