# `bench coll` on NCCL and a driver without GPUs (tests/nccl/fake, tests/cuda/fake), found by LD_LIBRARY_PATH.
# 3: all numbers are noisy, as they may be on a busy machine.

NAME: all collectives, every element compared
RUN: FAKE_CUDA_GPUS=3 topotune bench coll all -b 4K -e 4K --time 0.001 -n 2 --fail-on error || test $? = 3
EXPECT: all_reduce float32 sum: 3 ranks on 1 host, NCCL 2.28.9
EXPECT: sendrecv float32: 3 ranks
EXPECT: 4 KiB out
EXPECT: all right
NOT: WRONG

NAME: nccl-tests' columns
RUN: topotune bench coll all_gather -b 64K -e 64K --time 0.001 -n 2 --format nccl-tests --fail-on error || test $? = 3
EXPECT: # Using devices
EXPECT: #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
EXPECT:        65536          8192     float    none      -1
EXPECT: # Out of bounds values : 0 OK
EXPECT: # Avg bus bandwidth    :

NAME: the algorithm is NCCL's own word, and so are the bytes on the wire
RUN: FAKE_CUDA_GPUS=4 topotune bench coll -b 16K -e 32K --time 0.001 -n 2 --json --fail-on error || test $? = 3
EXPECT: "algorithm":"Ring"
EXPECT: "protocol":"LL"
EXPECT: "channels":2
EXPECT: "wire_bytes_per_rank":24576
EXPECT: "protocol":"Simple"

NAME: times of each iteration, of single calls, of graphs, and by rank
RUN: topotune bench coll -b 16K -e 16K --time 0.001 -n 2 --no-log --json --fail-on error || test $? = 3
EXPECT: "first_call_seconds":
EXPECT: "iteration_p99_seconds":
EXPECT: "single_call_p50_seconds":
EXPECT: "graph_seconds":
EXPECT: "rank_median_seconds":"

NAME: loops that are CUDA graphs
RUN: topotune bench coll -b 16K -e 16K --time 0.001 -n 2 -G 7 --modes back-to-back --no-log --json --fail-on error || test $? = 3
EXPECT: "loops":"CUDA graphs"
NOT: single_call
NOT: graph_seconds

NAME: without the log nothing is claimed
RUN: topotune bench coll -b 16K -e 16K --time 0.001 -n 2 --no-log --fail-on error || test $? = 3
EXPECT: unknown      unknown  all right

NAME: wrong data are an error with their place
RUN: FAKE_NCCL_FAULT=wrong topotune bench coll -b 4K -e 4K --time 0.001 -n 2
STATUS: 2
EXPECT: 1 WRONG: rank 1: element 0 of 1024 is 0x

NAME: a failing library is named with rank and GPU
RUN: FAKE_NCCL_FAULT=error topotune bench coll -b 4K -e 4K --no-log
STATUS: 2
EXPECT: coll.all_reduce 4096 bytes out of place: AllReduce of 4096 bytes on rank 0 (GPU0): NCCL 2.28.9: unhandled system error

NAME: NCCL hangs when its communicators are let go: what was measured is written
RUN: FAKE_NCCL_FAULT=hang-at-end topotune bench coll -b 4K -e 4K --time 0.001 -n 2 --no-log --limit 1
STATUS: 2
EXPECT: all right
EXPECT: failed: rank 0 on
EXPECT: 'closing the communicators' did not end within
STDERR: hint:

NAME: and an interruption ends it at once
RUN: FAKE_NCCL_FAULT=hang-at-end timeout --preserve-status -k 9 -s TERM 4 topotune bench coll -b 4K -e 4K --time 0.001 -n 2 --no-log --limit 60
STATUS: 130
EXPECT: all right

NAME: a GPU that is not there
RUN: topotune bench coll 0 7
STATUS: 3
EXPECT: waived: there is no GPU7 here: CUDA shows 2 GPUs

NAME: no NCCL
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench coll
STATUS: 3
EXPECT: waived: /nowhere/libnccl.so.2: not found
STDERR: hint: install NCCL

NAME: no driver
RUN: FAKE_CUDA_GPUS=0 topotune bench coll
STATUS: 3
EXPECT: waived: cuInit: fake error (CUDA_ERROR_NO_DEVICE)

NAME: no module of MPI
RUN: TOPOTUNE_MODULES=/nowhere topotune bench coll --backend mpi
STATUS: 3
EXPECT: waived: libtopotune-mpi.so is not beside the program (/nowhere)

NAME: words that are none
RUN: topotune bench coll all_todo
STATUS: 64
STDERR: bench coll: 'all_todo' is no collective and no GPU
STDERR: hint: all all_reduce

NAME: sizes the wrong way round
RUN: topotune bench coll -b 1M -e 1K
STATUS: 64
STDERR: -b 1M is more than -e 1K

NAME: a root that is no rank
RUN: topotune bench coll broadcast -r 5 -b 4K -e 4K
STATUS: 64
STDERR: root 5 is none of 2 ranks

NAME: ranks by hand that cannot be
RUN: topotune bench coll --rank 2
STATUS: 64
STDERR: --rank and --ranks belong together

NAME: nobody listens
RUN: topotune bench coll --rank 1 --ranks 2 --rendezvous 127.0.0.1:1 --limit 1
STATUS: 3
STDERR: rank 1 on
STDERR: did not reach rank 0 at 127.0.0.1:1 within 1 s: Connection refused

NAME: nobody comes
RUN: topotune bench coll --rank 0 --ranks 3 --rendezvous 127.0.0.1:29777 --limit 1
STATUS: 2
EXPECT: failed: rank 1, 2 did not come to 127.0.0.1:29777
STDERR: hint: is it started

NAME: a list of sizes
RUN: topotune bench coll --bytes 1K,96K,4K --time 0.001 -n 2 --no-log --modes events --place out --fail-on error || test $? = 3
EXPECT: 1 KiB out
EXPECT: 96 KiB out
EXPECT: 4 KiB out
NOT: 2 KiB

NAME: a list with a size that is none
RUN: topotune bench coll --bytes 1K,,4K
STATUS: 64
STDERR: bench coll: --bytes  is no size

NAME: the budget ends the sweep and keeps what there is
RUN: topotune bench coll all_reduce all_gather --bytes 1K --budget 0 --time 0.001 --no-log --json
STATUS: 3
EXPECT: "name":"coll.all_reduce"
EXPECT: "status":"waived","why":"the time for the sweep (0 s) was used up"
EXPECT: "name":"coll.all_gather"
EXPECT: "status":"waived"

NAME: the acceptance of a node measures collectives too
RUN: topotune bench all --bytes 64K --time 0.001 --json -o $TMP/all.json; test $? -le 1 -o $? = 3 && tr ',' '\n' <$TMP/all.json | grep -o '"name":"coll.*\|"nccl":.*' | sort | uniq -c
EXPECT: 2 "name":"coll.all_gather"
EXPECT: 2 "name":"coll.all_reduce"
EXPECT: 2 "name":"coll.alltoall"
EXPECT: 2 "name":"coll.reduce_scatter"
EXPECT: 1 "nccl":"NCCL 2.28.9"
NOT: "name":"coll"

NAME: without NCCL the acceptance says so and goes on
RUN: TOPOTUNE_NCCL_LIBRARY=/nowhere/libnccl.so.2 topotune bench all --bytes 64K --time 0.001; test $? -le 1 -o $? = 3
EXPECT: p2p.write.ce
EXPECT: coll  
EXPECT: waived: /nowhere/libnccl.so.2: not found
EXPECT:   net

NAME: one GPU has nobody to collect from
RUN: FAKE_CUDA_GPUS=1 topotune bench all --bytes 64K --time 0.001; test $? -le 1 -o $? = 3
EXPECT: waived: 1 usable GPU: collectives need two

NAME: a library that dies takes nothing with it
RUN: FAKE_NCCL_FAULT=die topotune bench all --bytes 64K --time 0.001
STATUS: 2
EXPECT: p2p.write.ce
EXPECT: failed: bench coll ended with status 134
EXPECT:   net
