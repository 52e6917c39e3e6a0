# `verify`: what cannot be told is never "ok"; the tuning table in a job's log.

NAME: the table is in use by all ranks
RUN: for r in 1 2; do echo "a:$r:$r [0] NCCL INFO topotune tuner: table /t hash 00, 3 regions for 2 ranks on 1 node(s)"; echo "a:$r:$r [0] NCCL INFO topotune tuner: in use"; done >$TMP/job.log; topotune verify --root $TMP --log $TMP/job.log; true
EXPECT: holds    log tuner plugin: table /t hash 00, 3 regions for 2 ranks on 1 node(s), in use

NAME: a rank whose lines are not in the log
RUN: printf 'a:1:2 [0] NCCL INFO topotune tuner: table /t hash 00, 3 regions for 2 ranks on 1 node(s)\na:1:2 [0] NCCL INFO topotune tuner: in use\n' >$TMP/job.log; topotune verify --root $TMP --log $TMP/job.log
STATUS: 3
EXPECT: unknown  log tuner plugin: table /t hash 00, 3 regions for 2 ranks on 1 node(s): 1 of 2 ranks are in the log

NAME: why it was off
RUN: printf 'a:1:2 [0] NCCL INFO topotune tuner: off: /t: it was measured with NCCL 2.1.0, this is 2.28.9\n' >$TMP/job.log; topotune verify --root $TMP --log $TMP/job.log
STATUS: 2
EXPECT: fails    log tuner plugin: a, process 1: off: /t: it was measured with NCCL 2.1.0

NAME: communicators of other sizes are no fault
RUN: (echo 'a:1:2 [0] NCCL INFO topotune tuner: off: the table has nothing for 1 ranks on 1 node(s)'; for r in 1 2; do echo "a:$r:$r [0] NCCL INFO topotune tuner: table /t hash 00, 3 regions for 2 ranks on 1 node(s)"; echo "a:$r:$r [0] NCCL INFO topotune tuner: in use"; done) >$TMP/job.log; topotune verify --root $TMP --log $TMP/job.log; true
EXPECT: holds    log tuner plugin: table /t hash 00, 3 regions for 2 ranks on 1 node(s), in use; nothing for 1 ranks

NAME: but a table that says nothing about any is not in use
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; printf 'a:1:2 [0] NCCL INFO topotune tuner: off: the table has nothing for 8 ranks on 1 node(s)\n' >$TMP/job.log; topotune verify --root $TMP --log $TMP/job.log; echo "status $?"; topotune verify --tuned $TMP/t --log $TMP/job.log
STATUS: 2
NOT: fails    edge
EXPECT: status 3
EXPECT: fails    log tuner plugin: off: the table has nothing for 8 ranks

NAME: a size without entries says nothing of one that is not asked yet
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; hash=$(topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); for r in 0 1; do echo "a:$r:$r [0] NCCL INFO topotune tuner: table /t hash $hash, 3 regions for 2 ranks on 1 node(s)"; echo "a:$r:$r [0] NCCL INFO topotune tuner: off: the table has nothing for 1 ranks on 1 node(s)"; done >$TMP/job.log; echo "a:0:0 [0] NCCL INFO topotune tuner: in use" >>$TMP/job.log; topotune verify --tuned $TMP/t --log $TMP/job.log
STATUS: 3
NOT: fails

NAME: a log whose beginning or end is missing blames nobody
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; printf 'a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1000 commId 0x9 - Init COMPLETE\n' >$TMP/tail.log; printf 'a:1:2 [0] NCCL INFO Successfully loaded external tuner plugin /x/libnccl-tuner-topotune.so\n' >$TMP/head.log; for part in tail head; do topotune verify --tuned $TMP/t --log $TMP/$part.log; echo "status $?"; done
NOT: fails
EXPECT: status 3

NAME: a plugin that was never loaded
RUN: printf 'a:1:2 [0] NCCL INFO NCCL_TUNER_PLUGIN set by environment to /x/libnccl-tuner-topotune.so\na:1:2 [0] NCCL INFO TUNER/Plugin: Could not find: /x/libnccl-tuner-topotune.so\n' >$TMP/job.log; topotune verify --root $TMP --log $TMP/job.log
STATUS: 2
EXPECT: fails    log tuner plugin: NCCL did not load /x/libnccl-tuner-topotune.so

NAME: --tuned wants the table although the log names no plugin
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; printf 'a:1:2 [0] NCCL INFO TUNER/Plugin: Could not find: libnccl-tuner.so\n' >$TMP/job.log; topotune verify --root $TMP --tuned $TMP/t --log $TMP/job.log
STATUS: 2
EXPECT: fails    log tuner plugin: NCCL loaded no tuner plugin, none was named; expected table
EXPECT: in use by all its ranks

NAME: --tuned compares the hash; the log may be packed
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; hash=$(topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); for h in $hash 0000000000000001; do for r in 1 2; do echo "a:$r:$r [0] NCCL INFO topotune tuner: table /t hash $h, 3 regions for 2 ranks on 1 node(s)"; echo "a:$r:$r [0] NCCL INFO topotune tuner: in use"; done | gzip >$TMP/job.log.gz; topotune verify --root $TMP --tuned $TMP/t --log $TMP/job.log.gz; echo "status $?"; done
EXPECT: holds    log tuner plugin: table /t hash
EXPECT: status 0
EXPECT: 1 node(s): another table; expected table
EXPECT: status 2

NAME: --tuned asks neither for the network nor for this machine
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 1\nend 0\n' >$TMP/t; hash=$(topotune run --tuned $TMP/t --topology "$DATA/machines/h200x2-nccl-dump.xml" --dry-run -- true | sed -n 's/.*HASH=node:\([0-9a-f]*\).*/\1/p'); for r in 0 1; do echo "h$r:1:1 [0] NCCL INFO comm 0x1 rank $r nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0"; echo "h$r:1:1 [0] NCCL INFO Channel 00/0 : $r[0] -> $((1-r))[0] [send] via NET/Socket/0"; echo "h$r:1:1 [0] NCCL INFO topotune tuner: table /t hash $hash, 3 regions for 2 ranks on 2 node(s)"; echo "h$r:1:1 [0] NCCL INFO topotune tuner: in use"; done >$TMP/job.log; topotune verify --log $TMP/job.log | tail -n 1; topotune verify --tuned $TMP/t --log $TMP/job.log; echo "status $?"
EXPECT: 1 of 3 hold
EXPECT: 1 of 1 hold
EXPECT: status 0

NAME: --tuned needs a log, and a table that can be read
RUN: topotune verify --tuned $TMP/t; echo "status $?"; echo nonsense >$TMP/t; topotune verify --tuned $TMP/t --log $TMP/none.log
STATUS: 3
EXPECT: status 64
STDERR: topotune: verify --tuned: which job's log? --log FILE
STDERR: /t:1:

NAME: where nothing is known, nothing is verified
RUN: mkdir -p $TMP/empty; topotune verify --root $TMP/empty
STATUS: 3
EXPECT: nothing could be verified

NAME: one log for each rank
RUN: for r in 1 2; do (echo "a:$r:$r [0] NCCL INFO topotune tuner: table /t hash 00, 3 regions for 2 ranks on 1 node(s)"; echo "a:$r:$r [0] NCCL INFO topotune tuner: in use") >$TMP/job.$r; done; topotune verify --root $TMP --log $TMP/job.1 --log $TMP/job.2; true
EXPECT: holds    log tuner plugin: table /t hash 00, 3 regions for 2 ranks on 1 node(s), in use
