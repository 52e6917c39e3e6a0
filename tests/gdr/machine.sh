#!/bin/bash
# machine.sh FOLDER: a machine with two active InfiniBand ports and one that is down, as files.
set -eu
rdma=$1/sys/class/infiniband
for n in 0 1 2; do
  port=$rdma/mlx5_$n/ports/1
  mkdir -p "$port" "$1/sys/devices/pci0000:00/0000:0$((n + 1)):00.0"
  ln -sfn "../../../devices/pci0000:00/0000:0$((n + 1)):00.0" "$rdma/mlx5_$n/device"
  echo "4: ACTIVE" >"$port/state"
  echo "5: LinkUp" >"$port/phys_state"
  echo InfiniBand >"$port/link_layer"
  echo "400 Gb/sec (4X NDR)" >"$port/rate"
  echo "0x$((n + 3))" >"$port/lid"
done
echo "1: DOWN" >"$rdma/mlx5_2/ports/1/state"
mkdir -p "$1/proc/self" "$1/sys/module"
printf 'Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         65536                65536                bytes\n' >"$1/proc/self/limits"
echo "ib_uverbs 163840 1 - Live 0x0000000000000000" >"$1/proc/modules"
