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
STDERR: 64 bytes to 64G

NAME: a collective that is none
RUN: topotune tune --collectives all_reduce,allmend
STATUS: 64
STDERR: topotune: tune: there is no collective 'allmend'

NAME: a setting that decides what is to be measured
RUN: NCCL_ALGO=Ring topotune tune --sizes 1M
STATUS: 64
STDERR: topotune: tune: NCCL_ALGO=Ring decides what is to be measured
STDERR: hint: unset NCCL_ALGO

NAME: in a file that NCCL reads, too
RUN: printf '# mine\nNCCL_MIN_CTAS=8\n' >$TMP/c; NCCL_CONF_FILE=$TMP/c topotune tune --sizes 1M; echo status $?; printf 'NCCL_ALGO=Ring\n' >$TMP/.nccl.conf; HOME=$TMP topotune tune --sizes 1M; echo status $?
EXPECT: status 64
NOT: status 3
STDERR: tune: NCCL_MIN_CTAS=8 (
STDERR: /.nccl.conf) decides what is to be measured
STDERR: while this runs

NAME: options that say nothing together are refused
RUN: for a in "--check t --out x" "--check t --add x" "--check t --margin 3" "--overhead p --add t" "--overhead p --out x" "--overhead p --check t" "--held-back" "--pairs 7" "--from x --sizes 1K" "--from x --collectives broadcast" "--budget=nan" "--budget=inf" "--margin nan"; do topotune tune $a; echo status $?; done | sort -u
EXPECT: status 64
NOT: status 3
STDERR: --out excludes --check
STDERR: --held-back requires --check or --overhead
STDERR: 'nan' is no number

NAME: where the table goes is looked at first
RUN: topotune tune --out /nowhere/x; echo $?; topotune tune --out -; echo $?; topotune tune --out t --json -o ./t; echo $?; ls t
STATUS: 2
EXPECT: 3
EXPECT: 64
STDERR: cannot write /nowhere/x: No such file or directory
STDERR: --out - names no file
STDERR: --out and -o are one file
STDERR: cannot access

NAME: profiles and logs are not mixed
RUN: printf 'a:1:2 [0] NCCL INFO x\n' >$TMP/l; topotune tune --from "$DATA/fuzz/corpus/nccl_profile/two.ttprof" $TMP/l; echo status $?; topotune tune --from $TMP/l "$DATA/fuzz/corpus/nccl_profile/two.ttprof"; echo status $?
EXPECT: status 64
NOT: status 3
STDERR: two.ttprof is a profile

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
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run >$TMP/v; cat $TMP/v; . $TMP/v; echo min $NCCL_MIN_CTAS max $NCCL_MAX_CTAS; test -f "$NCCL_TUNER_PLUGIN" && echo plugin there
EXPECT: export NCCL_TUNER_PLUGIN=
EXPECT: libnccl-tuner-topotune.so
EXPECT: export TOPOTUNE_TUNER_TABLE=
EXPECT: export TOPOTUNE_TUNER_HASH=node:
EXPECT: min 32 max 32
EXPECT: plugin there

NAME: a table that does not fit sets no thread blocks
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 topotune run --sysroot /nowhere --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" sh -c "env | grep CTAS"; echo status $?
EXPECT: status 1
STDERR: the table was measured on x, this machine has no GPU that can be read: the plugin will be off
STDERR: NCCL_MIN_CTAS=32, NCCL_MAX_CTAS=32 left out

NAME: where the number of nodes is not known, no thread blocks are set
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- ./train.sh; FLUX_TASK_LOCAL_ID=0 FLUX_TASK_RANK=0 FLUX_JOB_SIZE=4 TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true; TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- srun --nodes 4 x; TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- torchrun --nnodes 2 x; PET_NNODES=1:2 TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- torchrun x
EXPECT: left out: the number of nodes is not known; put `topotune run --tuned` behind the launcher, or set TOPOTUNE_TUNER_HASH=
NOT: export NCCL_M

NAME: a launcher that passes nothing on
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; export TOPOTUNE_TUNER_HASH=$(TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- mpirun -np 8 -H a,b python train.py
EXPECT: left out: mpirun passes no variables on to other nodes; put `topotune run --tuned` behind it
EXPECT: export TOPOTUNE_TUNER_HASH=node:
NOT: export NCCL_M

NAME: launchers that stay on one node
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; for c in "torchrun --nproc-per-node 2 x" "torchrun --nnodes=1 x" "python3 -m torch.distributed.run --standalone x" "srun -N1 x" "srun -n 8 --nodes=1 x" "mpirun -np 8 x" "python train.py" "torchrun --standalone train.py --nn-depth 4"; do env -u SLURM_JOB_ID TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- $c | grep -c "^export NCCL_M.*_CTAS=32"; done | tr "\n" " "
EXPECT: 2 2 2 2 2 2 2 2

NAME: a Python script is one node where nothing speaks of several
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; export TOPOTUNE_TUNER_ACCEPT=machine; run() { topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- "$@"; }; WORLD_SIZE=16 run python train.py; NNODES=2 run python train.py; PBS_NODEFILE=/x run python train.py; run python /usr/bin/torchrun --nnodes=2 t.py; run python3 /opt/bin/deepspeed t.py; echo end
EXPECT: left out
NOT: export NCCL_M

NAME: the hash of the whole job is enough
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; export TOPOTUNE_TUNER_HASH=$(TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- srun --nodes 4 x
EXPECT: export NCCL_MIN_CTAS=32

NAME: where jobs are submitted there is no GPU, and the variables can be seen
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; topotune --sysroot /nowhere run --tuned $TMP/t --dry-run
EXPECT: # no GPU was found on this machine
EXPECT: export TOPOTUNE_TUNER_HASH=node:

NAME: what the plugins' variables were is said
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; printf 'NCCL_TUNER_PLUGIN=/opt/aws.so\nNCCL_MAX_CTAS=8\n' >$TMP/user.conf; export NCCL_PROFILER_PLUGIN=/x/p.so TOPOTUNE_TUNER_TABLE=/other; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 TOPOTUNE_TUNER_ACCEPT=machine NCCL_CONF_FILE=$TMP/user.conf topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run --profiled; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run --env-file $TMP/user.conf
EXPECT: # NCCL_TUNER_PLUGIN was /opt/aws.so (
EXPECT: /user.conf)
EXPECT: # TOPOTUNE_TUNER_TABLE was /other
EXPECT: # NCCL_MAX_CTAS=8 (
EXPECT: /user.conf) is kept, the table was measured with 32
EXPECT: # NCCL_PROFILER_PLUGIN was /x/p.so
EXPECT: # NCCL_TUNER_PLUGIN was /opt/aws.so (
EXPECT: /user.conf:1)
EXPECT: /user.conf:2) is kept, the table was measured with 32
NOT: export NCCL_MIN_CTAS

NAME: --keep of the plugin leaves the rest out; --no-env excludes it
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run --keep NCCL_TUNER_PLUGIN; topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run --no-env; echo status $?
EXPECT: --keep NCCL_TUNER_PLUGIN: the table is not used
EXPECT: status 64
NOT: export TOPOTUNE
NOT: CTAS
STDERR: --tuned excludes --no-env

NAME: a table that is no file, or has no name
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nend 0\n' >$TMP/t; topotune run --tuned - --dry-run <$TMP/t; echo status $?; topotune run --tuned <(cat $TMP/t) --dry-run; echo status $?; topotune run --tuned "" --dry-run; echo status $?; topotune tune --check ""; echo status $?
EXPECT: status 64
NOT: status 0
STDERR: run: --tuned -: the plugin reads a table from a regular file
STDERR: run: --tuned /dev/fd/
STDERR: --tuned: names no file
STDERR: --check: names no file

NAME: several nodes: what each reads from its own file is not enough
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nend 0\n' >$TMP/t; OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
EXPECT: several nodes: NCCL decides as ever, unless TOPOTUNE_TUNER_HASH=
NOT: NCCL_MIN_CTAS

NAME: the job wants another table than this node has
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_HASH=00 topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
STATUS: 3
STDERR: and TOPOTUNE_TUNER_HASH, what all ranks must have, is 00
STDERR: hint: ranks that decide differently hang

NAME: the job wants this table, and this machine cannot use it
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; export TOPOTUNE_TUNER_HASH=$(topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); TOPOTUNE_TUNER_ACCEPT=machine topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true; topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" -- true
STATUS: 3
EXPECT: TOPOTUNE_TUNER_TABLE=
STDERR: it was not measured on this kind of machine, and TOPOTUNE_TUNER_HASH tells all ranks to use it

NAME: what the environment already decides is kept and said
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nset NCCL_MIN_CTAS 32\nend 0\n' >$TMP/t; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=2 WORLD_SIZE=2 TOPOTUNE_TUNER_ACCEPT=machine NCCL_MIN_CTAS=16 topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true
EXPECT: NCCL_MIN_CTAS=16 is kept, the table was measured with 32
NOT: export NCCL_M

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
