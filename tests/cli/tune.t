# `tune` and its table without a GPU.

NAME: help has examples
RUN: topotune tune --help
EXPECT: topotune tune --out node.table
EXPECT: topotune run --tuned node.table

NAME: no GPU is said
RUN: LD_LIBRARY_PATH=/nowhere topotune tune --sizes 1M
STATUS: 3
STDERR: libcuda.so.1

NAME: sizes that are none
RUN: topotune tune --sizes 4M:1K
STATUS: 64
STDERR: topotune: tune: '4M:1K' names no sizes
STDERR: hint: FIRST:LAST

NAME: a collective that is none
RUN: topotune tune --collectives all_reduce,allmend
STATUS: 64
STDERR: topotune: tune: there is no collective 'allmend'

NAME: a setting that decides what is to be measured
RUN: NCCL_ALGO=Ring topotune tune --sizes 1M
STATUS: 64
STDERR: topotune: tune: NCCL_ALGO=Ring decides what is to be measured
STDERR: hint: unset NCCL_ALGO

NAME: a damaged table names its line
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset LD_PRELOAD 1\nend 0\n' >$TMP/t; topotune tune --check $TMP/t
STATUS: 3
STDERR: /t:4: a table may not set 'LD_PRELOAD'

NAME: a table that is cut off
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\n' >$TMP/t; topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
STATUS: 3
STDERR: /t:3: the table is cut off: no 'end' line
STDERR: hint: copy the whole file

NAME: run --tuned sets the plugin, the table, its hash and its settings
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nend 0\n' >$TMP/t; topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
EXPECT: NCCL_TUNER_PLUGIN=
EXPECT: libnccl-tuner-topotune.so; TOPOTUNE_TUNER_TABLE=
EXPECT: TOPOTUNE_TUNER_HASH=node:
EXPECT: NCCL_MIN_CTAS=32
EXPECT: the table was measured on x

NAME: several nodes: what each reads from its own file is not enough
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nend 0\n' >$TMP/t; OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
EXPECT: TOPOTUNE_TUNER_HASH=node:
EXPECT: several nodes: NCCL decides as ever, unless TOPOTUNE_TUNER_HASH=
NOT: NCCL_MIN_CTAS

NAME: the job wants another table than this node has
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_HASH=00 topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
STATUS: 3
STDERR: and TOPOTUNE_TUNER_HASH, what all ranks must have, is 00
STDERR: hint: ranks that decide differently hang

NAME: the job wants this table, and this machine cannot use it
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; export TOPOTUNE_TUNER_HASH=$(topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true; topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
STATUS: 3
EXPECT: TOPOTUNE_TUNER_TABLE=
STDERR: it was not measured on this kind of machine, and TOPOTUNE_TUNER_HASH tells all ranks to use it

NAME: what the environment already decides is kept and said
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nend 0\n' >$TMP/t; NCCL_MIN_CTAS=16 topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
EXPECT: NCCL_MIN_CTAS=16 is kept, the table was measured with 32

NAME: log reads a profiler file
RUN: topotune log "$DATA/fuzz/corpus/nccl_profile/two.ttprof"
EXPECT: communicator 0xabc, rank 0 of 2, pid 7 on gpu
EXPECT: AllReduce
EXPECT: Ring/Simple
EXPECT: modelled: both ranks are on one node
EXPECT: 0 -> 1: 8192

NAME: and as JSON
RUN: topotune log --json "$DATA/fuzz/corpus/nccl_profile/two.ttprof"
EXPECT: "source":{"kind":"nccl-profile"
EXPECT: "matrix":[[0,8192],[8192,0]],"matrix_basis":"modelled"
EXPECT: "profile":[{"rank":0,"communicator":"0xabc"

NAME: what a finished job did meanwhile is nothing
RUN: topotune log --every 1s "$DATA/fuzz/corpus/nccl_profile/two.ttprof"; echo status $?
EXPECT: status 0
NOT: AllReduce

NAME: --every that says nothing
RUN: topotune log --every soon "$DATA/fuzz/corpus/nccl_profile/two.ttprof"
STATUS: 64
STDERR: --every 'soon' is no time or number of collectives
STDERR: hint: 10s: each ten seconds; 500: each 500 collectives

NAME: tune from a file without collectives
RUN: printf 'a:1:2 [0] NCCL INFO Bootstrap: Using eth0\n' >$TMP/job.log; topotune tune --from $TMP/job.log
STATUS: 3
STDERR: /job.log: no collective with its size is in it
STDERR: hint: record with: topotune run --profiled

NAME: tune from a file that is not there
RUN: topotune tune --from /nowhere/job.log
STATUS: 3
STDERR: /nowhere/job.log

NAME: a profiler file that is cut off
RUN: head -c 9000 "$DATA/fuzz/corpus/nccl_profile/two.ttprof" >$TMP/p; topotune log $TMP/p
STATUS: 3
STDERR: /p: a profiler file of 9000 bytes is cut off

NAME: NCCL cuts longer names of plugins
RUN: d=$TMP/$(printf 'x%.0s' $(seq 200))/yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; mkdir -p $d; printf x >$d/libnccl-tuner-topotune.so; printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; TOPOTUNE_MODULES=$d topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
STATUS: 3
STDERR: NCCL loads plugins by names of at most 254 characters
