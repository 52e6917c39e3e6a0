NAME: the answer names the variable, the lost transport and what was measured
RUN: topotune log $DATA/logs/p2p_off.log -v
EXPECT: NCCL 2.27.3, CUDA 12.9
EXPECT: 2 ranks on 1 node, 2 channels
EXPECT: SHM/direct/direct, 2 channels
EXPECT: error LOG06
EXPECT: NVLink exists between these GPUs
EXPECT: NCCL_P2P_DISABLE=1

NAME: findings do not set the exit status unless asked
RUN: topotune log $DATA/logs/p2p_off.log --json --fail-on error
STATUS: 2
EXPECT: "schema": "topotune.nccl-log/1"

NAME: a healthy log
RUN: topotune log $DATA/logs/nvlink.log --fail-on warn
EXPECT: P2P/CUMEM, 12 channels
NOT: LOG05
NOT: LOG06

NAME: compressed logs and standard input give the same answer
RUN: gzip -c $DATA/logs/nvlink.log > $TMP/a.gz; topotune log $TMP/a.gz | tail -n +2
SAME: topotune log - < $DATA/logs/nvlink.log | tail -n +2

NAME: a compressed log that is cut is explained as far as it goes
RUN: gzip -c $DATA/logs/nvlink.log | head -c 700 > $TMP/a.gz; topotune log $TMP/a.gz
STDERR: cut off
EXPECT: NCCL 2.27.3

NAME: what differs between two runs
RUN: topotune log --compare $DATA/logs/nvlink.log $DATA/logs/p2p_off.log
EXPECT: NCCL_P2P_DISABLE
EXPECT: P2P/CUMEM x12
EXPECT: measured: best bus bandwidth 150.25 GB/s and 11.50 GB/s, 8 % of the first

NAME: the matrix as text and as SVG
RUN: topotune log --matrix --svg $TMP/m.svg $DATA/logs/nvlink.log; head -c 4 $TMP/m.svg
EXPECT: P12
EXPECT: bytes (modelled)
EXPECT: <svg

NAME: the calls in their order
RUN: topotune log --timeline $DATA/logs/nvlink.log
EXPECT: AllReduce

NAME: several files are one log
RUN: grep ':700:' $DATA/logs/nvlink.log > $TMP/0.log; grep ':701:' $DATA/logs/nvlink.log > $TMP/1.log; topotune log $TMP/0.log $TMP/1.log
EXPECT: 2 ranks on 1 node
EXPECT: 2 pairs

NAME: a text without a statement of NCCL
RUN: echo hello | topotune log -
STATUS: 3
STDERR: no line of an NCCL or RCCL debug log
STDERR: hint:

NAME: a file that is not there
RUN: topotune log /nonexistent.log
STATUS: 3
STDERR: /nonexistent.log

NAME: no file
RUN: topotune log
STATUS: 64

NAME: a command is started with NCCL_DEBUG on, and its status is ours
RUN: topotune log --run -- sh -c 'f=$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/"); cp $DATA/logs/p2p_off.log "$f"; echo job; exit 7'
STATUS: 7
EXPECT: job
EXPECT: LOG06
STDERR: the command ended with 7

NAME: a command that makes no log
RUN: topotune log --run -- true
STDERR: made no NCCL log
