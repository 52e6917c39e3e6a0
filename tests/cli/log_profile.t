# Files of the profiler plugin. put FILE OFFSET BYTES changes one by the words of docs/formats/profile.md.

NAME: one rank's file counts once
RUN: p=$DATA/fuzz/corpus/nccl_profile/two.ttprof; cp $p $TMP/copy; topotune log --json $p $TMP/copy $p
EXPECT: "ranks_seen":1
EXPECT: "matrix":[[0,8192],[8192,0]]
STDERR: copy: a communicator's rank that another file tells too: counted once
STDERR: two.ttprof: a communicator's rank that another file tells too: counted once

NAME: bytes over the network are measured; the rest is unknown, not 0
RUN: put() { printf "$3" | dd of=$1 bs=1 seek=$2 conv=notrunc status=none; }; cp $DATA/fuzz/corpus/nccl_profile/two.ttprof $TMP/p; put $TMP/p 28 '\2'; put $TMP/p 232 '\36'; put $TMP/p 9464 '\364\1'; put $TMP/p 216 '\204\3'; topotune log --json $TMP/p; topotune log --matrix $TMP/p
EXPECT: "hosts":["gpu"]
EXPECT: "matrix":[[0,500],[null,0]],"matrix_basis":"measured","matrix_communicator":0
EXPECT: "matrices":[{"communicator":0,"matrix":[[0,500],[null,0]],"basis":"measured","foreign_bytes":900}]
EXPECT: "overwritten":0,"foreign_bytes":900,"network_steps":true
EXPECT: communicator 0xabc: bytes from rank to rank, measured on the network; within a node not known
EXPECT: 0 -> 1: 500
EXPECT: 900 bytes more were sent for ranks of other processes (PXN)

NAME: every communicator has a matrix, or a reason
RUN: put() { printf "$3" | dd of=$1 bs=1 seek=$2 conv=notrunc status=none; }; for i in a b; do cp $DATA/fuzz/corpus/nccl_profile/two.ttprof $TMP/$i; done; put $TMP/b 28 '\2'; put $TMP/b 40 '\1\0'; put $TMP/b 48 '\11'; topotune log --matrix $TMP/a $TMP/b
EXPECT: communicator 0x1: who sent how much to whom is not known (no network steps were recorded)
EXPECT: communicator 0xabc: bytes from rank to rank, modelled
EXPECT: 0 -> 1: 8192

NAME: what is still unknown of a file when it is followed does not mix it with another
RUN: put() { printf "$3" | dd of=$1 bs=1 seek=$2 conv=notrunc status=none; }; for i in a b; do cp $DATA/fuzz/corpus/nccl_profile/two.ttprof $TMP/$i; put $TMP/$i 208 '\0'; done; put $TMP/a 200 '\7'; put $TMP/b 40 '\0\0'; put $TMP/b 48 '\11'; topotune log --json --every 1s $TMP/a $TMP/b >out & p=$!; sleep 0.5; put $TMP/b 40 '\377\17'; put $TMP/b 200 '\3'; put $TMP/a 208 '\1'; put $TMP/b 208 '\1'; wait $p; head -n 1 out | grep -o '"communicator":"[^"]*","name":null,"events":[0-9]*'
EXPECT: "communicator":"0xabc","name":null,"events":0
EXPECT: "communicator":"0xfff","name":null,"events":1

NAME: a job that is over makes one document
RUN: topotune log --json --every 1s "$DATA/fuzz/corpus/nccl_profile/two.ttprof" >out; wc -l <out; grep -o '"events":[0-9]*' out
EXPECT: 1
EXPECT: "events":0
STDERR: the job is over: without --every, all that it did is told

NAME: a document is one line, also the long lists
RUN: topotune log --json "$DATA/fuzz/corpus/nccl_profile/two.ttprof" >out; wc -l <out; python3 -m json.tool out | tail -n 1
EXPECT: 1
EXPECT: }

NAME: what a profile does not answer is refused
RUN: for o in '--svg x' --timeline '--topology live' '--fail-on warn'; do topotune log $o "$DATA/fuzz/corpus/nccl_profile/two.ttprof"; echo status $?; done
EXPECT: status 64
EXPECT: status 64
EXPECT: status 64
EXPECT: status 64
STDERR: topotune: --svg takes a log, not a profile
STDERR: topotune: --timeline takes a log, not a profile
STDERR: topotune: --topology takes a log, not a profile
STDERR: topotune: --fail-on takes a log, not a profile

NAME: a profile where only a log is read
RUN: p=$DATA/fuzz/corpus/nccl_profile/two.ttprof; topotune log - <$p; echo status $?; gzip -c $p >$TMP/p.gz; topotune log $TMP/p.gz; echo status $?; topotune log --compare $p $p; echo status $?; topotune tune --from $TMP/p.gz; echo status $?
EXPECT: status 3
EXPECT: status 3
EXPECT: status 3
EXPECT: status 3
STDERR: stdin: a profile is read from its file alone
STDERR: p.gz: a profile is read from its file alone
STDERR: two.ttprof: a profile is read from its file alone
STDERR: p.gz: a profile is read from its file alone

NAME: how many ranks there are is told by all their files, where NCCL does not
RUN: put() { printf "$3" | dd of=$1 bs=1 seek=$2 conv=notrunc status=none; }; for i in 0 1; do cp $DATA/fuzz/corpus/nccl_profile/two.ttprof $TMP/$i; put $TMP/$i 24 '\0\0\0\0\0\0\0\0'; put $TMP/$i 32 "\\$i"; put $TMP/$i 48 "\\1$i"; put $TMP/$i 3504 '\0'; put $TMP/$i 1968 '\2'; put $TMP/$i 1977 '\40'; for e in 9472 9544; do put $TMP/$i $((e+57)) '\2'; done; done; topotune tune --from $TMP/0; echo ----; topotune tune --from $TMP/0,$TMP/1 2>&1 | grep -c 'left out\|no collective'; true
EXPECT: ----
EXPECT: 0
STDERR: pid 8: all-gathers and reduce-scatters are left out, since NCCL before 2.27 does not tell how many ranks there are
STDERR: hint: --from with the files of all ranks
STDERR: no collective with its size is in it
