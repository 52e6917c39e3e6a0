# `bench mixed` on NCCL and a driver without GPUs (tests/nccl/fake, tests/cuda/fake), found by LD_LIBRARY_PATH.

NAME: three streams, alone and together, every element compared
RUN: topotune bench mixed --scale 0.001 --duration 0.1 --json --fail-on error || test $? = 3
EXPECT: "library":"NCCL 2.28.9"
EXPECT: "name":"mixed.alone","params":{"profile":"dense-ddp","stream":"small","op":"all_reduce"
EXPECT: "verified":true
EXPECT: "name":"mixed.interference"
EXPECT: "stream":"large","op":"broadcast"
EXPECT: "stream":"checkpoint","op":"checkpoint"

NAME: one screen for people
RUN: topotune bench mixed --profile moe --scale 0.001 --duration 0.1 --fail-on error || test $? = 3
EXPECT: mixed moe: 2 ranks on 1 host, NCCL 2.28.9; 0.1 s a phase; large sizes x 0.001; checkpoints from the GPU to host memory
EXPECT: checkpoint

NAME: checkpoints are written to a folder, and nothing stays there
RUN: mkdir saved; topotune bench mixed --scale 0.0005 --duration 0.1 --checkpoint-dir saved --fail-on error > out || test $? = 3; head -1 out; ls saved | wc -l
EXPECT: from the GPU to host memory and saved
EXPECT: 0

NAME: a folder that is not there
RUN: topotune bench mixed --scale 0.0005 --duration 0.1 --checkpoint-dir nowhere
STATUS: 3
EXPECT: checkpoint in nowhere: No such file or directory

NAME: a checkpoint that does not fit is refused before anything is measured
RUN: printf 'topotune mixed profile 1\nname big\nstream save op=checkpoint bytes=64G every=1s\nstream small op=all_reduce bytes=64K every=10ms\n' > big.profile; topotune bench mixed --profile big.profile --scale 1 --checkpoint-dir /dev/shm
STATUS: 2
EXPECT: failed: checkpoint in /dev/shm:
EXPECT: GB are needed

NAME: wrong data are an error with their place
RUN: FAKE_NCCL_FAULT=wrong topotune bench mixed --scale 0.0005 --duration 0.1
STATUS: 2
EXPECT: WRONG: rank

NAME: a failing library is named with stream, rank and GPU
RUN: FAKE_NCCL_FAULT=error topotune bench mixed --scale 0.0005 --duration 0.1
STATUS: 2
EXPECT: failed: rank 0 on
EXPECT: stream small: AllReduce of 65536 bytes on rank 0 (GPU0): NCCL 2.28.9: unhandled system error

NAME: a GPU that is not there
RUN: topotune bench mixed 0 7
STATUS: 3
EXPECT: waived: there is no GPU7 here: CUDA shows 2 GPUs

NAME: the report's disk is full
RUN: topotune bench mixed --scale 0.0005 --duration 0.1 -o /dev/full
STATUS: 3
STDERR: cannot write /dev/full

NAME: one table line a result
RUN: topotune bench mixed --scale 0.0005 --duration 0.1 --csv --fail-on error || test $? = 3
EXPECT: mixed.bandwidth,
