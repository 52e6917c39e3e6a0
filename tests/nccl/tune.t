# `tune` from end to end on libraries without a GPU (tests/nccl/fake), found by LD_LIBRARY_PATH. Times are a formula there,
# with whatever the machine adds: what is found is tested on a model in tests/tune, that everything is wired is tested here.

NAME: it measures and writes a whole table
RUN: topotune tune --collectives all_reduce,all_to_all --sizes 4K --mode stream --budget 5 --out $TMP/t --json -o $TMP/t.json; grep '^nccl' $TMP/t; grep -o '"default_choice":"Ring/LL"' $TMP/t.json | head -n 1; tail -n 1 $TMP/t
EXPECT: nccl 2.28.9
EXPECT: "default_choice":"Ring/LL"
EXPECT: end

NAME: a table from what a job did
RUN: TOPOTUNE_PROFILER_DIR=$TMP topotune tune --overhead "$(dirname $(readlink -f $(command -v topotune)))/libnccl-profiler-topotune.so" --collectives all_reduce --sizes 12K --pairs 5 -q; topotune tune --sm-budget 24 --from $TMP/*.ttprof --mode stream --budget 5 --json -o $TMP/t.json; grep -o '"bytes":12288' $TMP/t.json | head -n 1
EXPECT: "bytes":12288

NAME: what a job did before its newest events counts: three all-reduces of 8 KiB
RUN: put() { printf "$2" | dd of=$TMP/p bs=1 seek=$1 conv=notrunc status=none; }; cp $DATA/fuzz/corpus/nccl_profile/two.ttprof $TMP/p; put 200 '\5'; put 3520 '\3'; put 3528 '\0\140'; topotune tune --sm-budget 24 --from $TMP/p --mode stream --budget 10 --json -o $TMP/t.json; grep -o '"bytes":[0-9]*' $TMP/t.json | sort -u
EXPECT: "bytes":4096
EXPECT: "bytes":8192
STDERR: 4 of 5 events were overwritten: all count, with the sizes of the newest ones

NAME: a table from a job's log: sizes within a fifth are one, the rare ones are left out
RUN: line() { printf 'a:1:2 [0] NCCL INFO %s: opCount %x sendbuff 0x1 recvbuff 0x2 count %s datatype 7 op 0 root 0 comm 0x5 [nranks=2] stream 0x3\n' $1 $2 $3; }; { for i in $(seq 600); do line AllReduce $i 3072; done; line AllReduce 601 3100; line Broadcast 602 16; line AllReduce 603 4096; } >$TMP/job.log; topotune tune --sm-budget 24 --from $TMP/job.log --mode stream --budget 5 --out $TMP/t --json -o $TMP/t.json; grep -o '"bytes":[0-9]*' $TMP/t.json | sort -u; tail -n 1 $TMP/t
EXPECT: "bytes":12288
EXPECT: end
NOT: "bytes":12400
NOT: "bytes":64
NOT: "bytes":16384

NAME: the plugin follows a table
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.28.9\nset NCCL_MIN_CTAS 32\nregion all_reduce 4096 8192 2 1 Ring LL128 8 1 1 1\nend 1\n' >$TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 4K --mode stream --pairs 7; true
EXPECT: control
EXPECT: all_reduce
EXPECT: undecided
EXPECT: control, default against default:
EXPECT: communicators: 24 were made
EXPECT: 1 regions for 2 ranks on 1 node(s);
EXPECT: decisions came from the table
NOT: ; 0 decisions

NAME: of a table without regions the settings are compared
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.28.9\nset NCCL_MIN_CTAS 32\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 1K --mode stream --pairs 6; true
EXPECT: all_reduce
EXPECT: communicators: 18 were made
EXPECT: the table has nothing for 2 ranks

NAME: a table of another NCCL is not used
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.1.0\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 4K --pairs 5
STATUS: 3
STDERR: measured with NCCL 2.1.0, this is 2.28.9

NAME: the profiler is switched within one process and leaves its files
RUN: TOPOTUNE_PROFILER_DIR=$TMP topotune tune --overhead "$(dirname $(readlink -f $(command -v topotune)))/libnccl-profiler-topotune.so" --collectives all_reduce --sizes 4K --pairs 5 -q; topotune log $TMP/*.ttprof
EXPECT: off us
EXPECT: rank 0 of 2
EXPECT: rank 1 of 2
EXPECT: modelled: both ranks are on one node

NAME: a cell that takes longer than the limit is no hang: its samples go on
RUN: topotune tune --collectives all_reduce --sizes 4K --mode stream --budget 12 --limit 1 --out $TMP/t; echo status $?; tail -n 1 $TMP/t
EXPECT: status
EXPECT: end
NOT: status 2

NAME: the time is kept where the links are slow, and what it did not suffice for is named
RUN: printf 'OLD\n' >$TMP/t; s=$(date +%s); topotune tune --collectives all_reduce --sizes 1K,64K --budget 3 --out $TMP/t --json -o $TMP/j; s=$(($(date +%s) - s)); test $s -lt 8 && echo in time; grep -o 'no time for: all_reduce.*K' $TMP/j | head -c 60
EXPECT: in time
EXPECT: no time for: all_reduce

NAME: Ctrl-C ends at once, and a table that is there stays where nothing was proved
RUN: printf 'OLD\n' >$TMP/t; topotune tune --collectives all_reduce --sizes 256K --budget 60 --out $TMP/t -q & sleep 1.5; kill -TERM $!; s=$(date +%s%N); wait $!; echo status $?; test $((($(date +%s%N) - s) / 1000000)) -lt 4000 && echo at once; cat $TMP/t
EXPECT: /t: not written, as nothing was proved
EXPECT: status 130
EXPECT: at once
EXPECT: OLD

NAME: a link to a table stays a link
RUN: printf x >$TMP/real; ln -s real $TMP/t; topotune tune --collectives all_reduce --sizes 1K --mode stream --sm-budget 24 --budget 3 --out $TMP/t -q; test -L $TMP/t && tail -n 1 $TMP/real
EXPECT: end

NAME: a table that cannot be written takes no result with it
RUN: topotune tune --collectives all_reduce --sizes 1K --mode stream --sm-budget 24 --budget 3 --out /dev/full --json -q
STATUS: 3
EXPECT: "name":"tune.proof.all_reduce"
STDERR: cannot write /dev/full

NAME: no word of sizes that were not measured
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.28.9\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 1K --mode stream --pairs 6; true
EXPECT: of 1 cells faster by 5 %
NOT: all_reduce from 4M

NAME: where no result is sure one line says so
RUN: for i in 1 2 3; do TOPOTUNE_PROFILER_DIR=$TMP topotune tune --overhead "$(dirname $(readlink -f $(command -v topotune)))/libnccl-profiler-topotune.so" --collectives all_reduce --sizes 1K --pairs 5 -q 2>$TMP/e || grep -c 'no result is sure' $TMP/e || echo silent; done
EXPECT: all_reduce
NOT: silent

# Several processes: rank 1 behind, rank 0 in front.

NAME: Ctrl-C while the others are waited for
RUN: topotune tune --collectives all_reduce --sizes 1K --rank 0 --ranks 2 --rendezvous 127.0.0.1:28819 & sleep 0.5; kill -TERM $!; s=$(date +%s%N); wait $!; echo status $?; test $((($(date +%s%N) - s) / 1000000)) -lt 3000 && echo at once
EXPECT: status 130
EXPECT: at once

NAME: the processes of a job tune together, for the nodes that NCCL counts
RUN: two() { topotune tune --collectives all_reduce,broadcast --sizes 4K --mode stream --budget 6 --margin 0 --sm-budget 24 "$@" --ranks 2 --rendezvous 127.0.0.1:28811; }; export FAKE_NCCL_NODES=2; two --rank 1 & two --rank 0 --out $TMP/t --json -o $TMP/t.json; wait $!; echo follower $?; grep -o '"choice":"Ring/LL' $TMP/t.json | head -n 1; grep -o '"hosts":"[^"]*"' $TMP/t.json; grep -o '"nodes":"2"' $TMP/t.json; grep -c '^raw all_reduce 4096 2 2' $TMP/t; tail -n 1 $TMP/t
EXPECT: follower 0
EXPECT: "hosts":
EXPECT: "nodes":"2"
EXPECT: 2
EXPECT: end

NAME: both follow a table, and no choice comes from anywhere else
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.28.9\nregion all_reduce 4096 8192 2 2 Ring LL128 8 1 1 1\nend 1\n' >$TMP/t; two() { TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 4K --mode stream --pairs 5 "$@" --ranks 2 --rendezvous 127.0.0.1:28812; }; export FAKE_NCCL_NODES=2; two --rank 1 & two --rank 0; wait $!; echo follower $?
EXPECT: all_reduce
EXPECT: 1 regions for 2 ranks on 2 node(s);
EXPECT: decisions came from the table
EXPECT: follower
NOT: ; 0 decisions

NAME: unlike tables are refused before anything is measured
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.28.9\nend 0\n' >$TMP/t0; printf 'topotune-tuning-table 1\nmachine y\nnccl 2.28.9\nend 0\n' >$TMP/t1; two() { topotune tune --check $TMP/t$1 --collectives all_reduce --sizes 4K --mode stream --pairs 5 --rank $1 --ranks 2 --rendezvous 127.0.0.1:28813; }; two 1 & two 0; echo leader $?; wait $!; echo follower $?
EXPECT: leader 3
EXPECT: follower 2
STDERR: has the table
STDERR: rank 1 on

NAME: a process that is lost is named, and no table is written
RUN: A='tune --collectives all_reduce --sizes 1K:64K --mode stream --budget 30 --ranks 2 --rendezvous 127.0.0.1:28814'; topotune $A --rank 1 & f=$!; (sleep 1.5; kill -9 $f) & topotune $A --rank 0 --out $TMP/t; echo leader $?; ls $TMP/t
STATUS: 2
EXPECT: leader 2
STDERR: topotune: rank 1 on
STDERR: ended
STDERR: cannot access

NAME: the others end with the first
RUN: A='tune --collectives all_reduce --sizes 1K:64K --mode stream --budget 30 --ranks 2 --rendezvous 127.0.0.1:28815'; topotune $A --rank 0 & f=$!; (sleep 1.5; kill -9 $f) & topotune $A --rank 1; echo follower $?
EXPECT: follower 3
STDERR: topotune: rank 0 on
STDERR: ended

NAME: Ctrl-C at one of them ends all in order
RUN: A='tune --collectives all_reduce --sizes 1K:64K --mode stream --budget 30 --ranks 2 --rendezvous 127.0.0.1:28816'; topotune $A --rank 1 & f=$!; (sleep 1.5; kill -TERM $f) & topotune $A --rank 0 -q -o $TMP/x; echo leader $?; wait $f; echo follower $?
EXPECT: leader 130
EXPECT: follower 130

NAME: a table of other communicators takes these in
RUN: printf 'topotune-tuning-table 1\nmachine unknown\nnccl 2.28.9\nset NCCL_MIN_CTAS 32\nset NCCL_MAX_CTAS 32\nregion all_reduce 4096 8192 4 1 Ring LL128 8 1 1 1\nraw all_reduce 4096 4 1 default 1e-3\nend 1\n' >$TMP/t; topotune tune --collectives all_reduce --sizes 4K --mode stream --budget 8 --add $TMP/t --out $TMP/t; grep -c '^raw all_reduce 4096 2 1' $TMP/t; grep -e region -e 'raw all_reduce 4096 4' -e ^set $TMP/t
EXPECT: NCCL_MIN_CTAS=32
EXPECT: 2
EXPECT: set NCCL_MIN_CTAS 32
EXPECT: region all_reduce 4096 8192 4 1 Ring LL128 8
EXPECT: raw all_reduce 4096 4 1 default

NAME: what is proved now takes the place of what the table said of it, and of nothing else
RUN: printf 'topotune-tuning-table 1\nmachine unknown\nnccl 2.28.9\nregion all_gather 1024 8192 2 1 Ring LL128 8 1.2 1.1 1.3\nregion all_reduce 1024 8192 2 1 Ring LL128 8 1.2 1.1 1.3\nraw all_reduce 1024 2 1 default 1e-3\nend 2\n' >$TMP/t; topotune tune --collectives broadcast --sizes 1K --mode stream --budget 3 --add $TMP/t --out $TMP/t -q >/dev/null; grep ^region $TMP/t; topotune tune --collectives all_reduce --sizes 8K --mode stream --margin 50 --budget 6 --add $TMP/t --out $TMP/t -q; grep -e ^region -e 'raw all_reduce 1024' $TMP/t
EXPECT: region all_gather 1024 8192 2 1 Ring LL128 8
EXPECT: region all_reduce 1024 8192 2 1 Ring LL128 8
EXPECT: replaced: all_reduce 1K to 8K: Ring/LL128 8 channels
EXPECT: region all_gather 1024 8192 2 1 Ring LL128 8
EXPECT: region all_reduce 1024 8191 2 1 Ring LL128 8
EXPECT: raw all_reduce 1024 2 1 default

NAME: and refuses another NCCL's
RUN: printf 'topotune-tuning-table 1\nmachine unknown\nnccl 2.27.1\nend 0\n' >$TMP/t; topotune tune --collectives all_reduce --sizes 4K --budget 8 --add $TMP/t --out $TMP/t2
STATUS: 3
STDERR: /t: it was measured with NCCL 2.27.1, this is 2.28.9

NAME: what only rank 0 reads need not be on the others' machines
RUN: mkdir a b; printf 'topotune-tuning-table 1\nmachine unknown\nnccl 2.28.9\nend 0\n' >a/t; A='tune --collectives all_reduce --sizes 4K --mode stream --budget 5 --add t --out t --ranks 2 --rendezvous 127.0.0.1:28817'; (cd b; topotune $A --rank 1; echo follower $?) & (cd a; topotune $A --rank 0 -q; echo leader $?); wait; ls a b
EXPECT: proved in
EXPECT: follower 0
EXPECT: a:
EXPECT: t
EXPECT: b:

NAME: an error of rank 0 ends all, and is said once
RUN: A='tune --collectives all_reduce --budget 5 --ranks 2 --rendezvous 127.0.0.1:28818'; topotune $A --rank 1 2>f.txt & topotune $A --rank 0 --sizes 4M:1K; echo leader $?; wait $!; echo follower $?; cat f.txt; echo end
EXPECT: leader 64
EXPECT: follower 2
EXPECT: end
STDERR: names no sizes
