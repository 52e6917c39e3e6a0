#!/bin/sh
# NCCL's sockets instead of NVLink or RDMA: what is left when P2P, shared memory and InfiniBand are switched off. Needs
# two GPUs. Without: the same loss over MPI, TCP instead of shared memory.
. "$(dirname "$0")/lib.sh"
needs_program
cat >"$out/socket.env" <<'ENV'
export NCCL_P2P_DISABLE=1
export NCCL_SHM_DISABLE=1
export NCCL_IB_DISABLE=1
ENV
bench="bench coll all_reduce -b 16M -e 16M --place out --modes blocking --time 0.5 --limit 60 --csv --fail-on error"
if [ "$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')" -ge 2 ]; then
  nccl_with socket "$bench --no-log" INIT,ENV,NET,GRAPH,P2P,SHM NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_IB_DISABLE=1
else
  needs_mpi
  case $($mpirun --version 2>/dev/null) in
    *"Open MPI"* | *OpenRTE* | *open-mpi.org*) ;;
    *) waived "without GPUs this needs Open MPI, whose transports can be chosen" ;;
  esac
  # shellcheck disable=SC2086
  $mpirun --mca pml ob1 --mca btl self,vader -n 2 "$topotune" $bench --backend mpi >"$out/socket-good.csv" 2>"$out/socket-good.err"
  # shellcheck disable=SC2086
  $mpirun --mca pml ob1 --mca btl self,tcp -n 2 "$topotune" $bench --backend mpi >"$out/socket-bad.csv" 2>"$out/socket-bad.err"
fi
verdict socket "all-reduce of 16 MiB, sockets" 16777216
exit "$status"
