#!/bin/sh
# Collectives where jobs are started by torchrun: on each node, with the same address of the first one,
#   NNODES=2 NODE_RANK=0 MASTER_ADDR=node1 torchrun.sh all_reduce -e 8G
set -eu
exec torchrun --nnodes "${NNODES:-1}" --node-rank "${NODE_RANK:-0}" --nproc-per-node "${GPUS:-8}" \
  --master-addr "${MASTER_ADDR:-127.0.0.1}" --master-port "${MASTER_PORT:-29500}" --no-python \
  "${TOPOTUNE:-topotune}" bench coll "$@"
