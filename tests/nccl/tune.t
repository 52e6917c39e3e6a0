# `tune` from end to end on libraries without a GPU (tests/nccl/fake), found by LD_LIBRARY_PATH. Times are a formula there:
# LL128 is best for 256 KiB, and that NCCL does not know.

NAME: it measures, writes a table, and the plugin follows it
RUN: topotune tune --collectives all_reduce --sizes 256K --mode stream --budget 20 --out $TMP/t -q >/dev/null; grep -c '^region all_reduce 262144 262144 2 1 Ring LL128' $TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 256K --mode stream --pairs 7
EXPECT: 1
EXPECT: all_reduce
EXPECT: decisions came from the table

NAME: a table of another NCCL is not used
RUN: printf 'topotune-tuning-table 1\nmachine x\nnccl 2.1.0\nend 0\n' >$TMP/t; TOPOTUNE_TUNER_ACCEPT=machine topotune tune --check $TMP/t --collectives all_reduce --sizes 4K --pairs 5
STATUS: 3
STDERR: measured with NCCL 2.1.0, this is 2.28.9

NAME: the profiler is switched within one process and leaves its files
RUN: TOPOTUNE_PROFILER_DIR=$TMP topotune tune --overhead "$(dirname $(command -v topotune))/libnccl-profiler-topotune.so" --collectives all_reduce --sizes 4K --pairs 5 -q; topotune log $TMP/*.ttprof
EXPECT: off us
EXPECT: rank 0 of 2
EXPECT: rank 1 of 2
EXPECT: modelled: both ranks are on one node
