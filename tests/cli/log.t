NAME: the answer names the variable, the lost transport and what was measured
RUN: topotune log $DATA/logs/p2p_off.log -v
EXPECT: NCCL 2.27.3, CUDA 12.9
EXPECT: 2 ranks on 1 node, 2 channels
EXPECT: SHM/direct/direct, 2 channels
EXPECT: error LOG06
EXPECT: NCCL_P2P_DISABLE=1: NVLink exists between these GPUs
EXPECT: measured here: 11.5 GB/s

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
STDERR: topotune: /nonexistent.log: No such file

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

NAME: what a variable costs: the command once more without it
RUN: NCCL_P2P_DISABLE=1 topotune log --run --ab -- sh -c 'f=$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/"); if [ "$NCCL_P2P_DISABLE" ]; then cp $DATA/logs/p2p_off.log "$f"; else cp $DATA/logs/nvlink.log "$f"; fi'
EXPECT: NCCL_P2P_DISABLE=1: 11.5 GB/s with it, 150.2 without it, at 4.0 MiB (8 %)
EXPECT: error LOG06
EXPECT: measured: 11.5 GB/s with NCCL_P2P_DISABLE=1, 150.2 without it (bus bandwidth at 4194304 bytes)
STDERR: once more without NCCL_P2P_DISABLE

NAME: a variable in the command itself is taken out of it
RUN: topotune log --run --ab --json -- env NCCL_P2P_DISABLE=1 sh -c 'f=$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/"); if [ "$NCCL_P2P_DISABLE" ]; then cp $DATA/logs/p2p_off.log "$f"; else cp $DATA/logs/nvlink.log "$f"; fi; echo of the job' | python3 -m json.tool
EXPECT: "without_bus_gbytes_per_s": 150.25
STDERR: of the job

NAME: a variable that cannot be taken away is said, not compared
RUN: topotune log --run --ab -- sh -c 'cp $DATA/logs/p2p_off.log "$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/")"'
EXPECT: error LOG06
STDERR: holds in the second run too
NOT: without it

NAME: without --ab it is said how to measure
RUN: topotune log --run -- sh -c 'cp $DATA/logs/p2p_off.log "$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/")"'
STDERR: --ab runs the command once more without NCCL_P2P_DISABLE

NAME: the job's rows on its own output are read
RUN: topotune log --run -- sh -c 'head -5 $DATA/logs/nvlink.log > "$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/")"; echo "all-reduce 1073741824 bytes 3258.7 us 329.5 GB/s busbw"'
EXPECT: all-reduce
EXPECT: best bus bandwidth 329.50 GB/s, at 1.0 GiB
EXPECT: the command took

NAME: a job that leaves a process behind is not waited for
RUN: topotune log --run -- sh -c 'head -5 $DATA/logs/nvlink.log > "$(echo "$NCCL_DEBUG_FILE" | sed "s/%h/x/;s/%p/1/")"; sleep 60 & echo started' 2>&1 | head -1
EXPECT: started

NAME: --ab without --run
RUN: topotune log --ab $DATA/logs/nvlink.log
STATUS: 64
STDERR: need --run

NAME: zstd
RUN: zstd -qc $DATA/logs/nvlink.log > $TMP/a.zst; topotune log $TMP/a.zst | tail -n +2
SAME: topotune log - < $DATA/logs/nvlink.log | tail -n +2

NAME: one line of many megabytes
RUN: (cat $DATA/logs/nvlink.log; head -c 300000000 /dev/zero | tr '\0' 'x'; echo; echo 'box:700:750 [0] NCCL INFO NCCL_DEBUG set by environment to INFO') | topotune log - --json
EXPECT: "version": "2.27.3"
EXPECT: "overlong": 1
EXPECT: NCCL_DEBUG

NAME: NULs
RUN: (cat $DATA/logs/nvlink.log; head -c 5000 /dev/zero; cat $DATA/logs/nvlink.log) | topotune log - --fail-on warn
EXPECT: P2P/CUMEM, 12 channels

NAME: a growing log is explained when it ends, against a machine too
RUN: cat $DATA/logs/p2p_off.log | topotune log --follow -
EXPECT: error LOG06

NAME: a long log in a folder and alone is no work for the other readers
RUN: mkdir m; for i in $(seq 300); do cat $DATA/logs/p2p_off.log; done > m/job.log; topotune check m --json | head -c 40; topotune check m/job.log
STATUS: 2
EXPECT: topotune.findings/1
EXPECT: LOG06

NAME: a comparison as JSON
RUN: topotune log --json --compare $DATA/logs/nvlink.log $DATA/logs/p2p_off.log
EXPECT: topotune.nccl-log-diff/1
EXPECT: "what": "NCCL_P2P_DISABLE"
EXPECT: "best"

NAME: the calls in their order as JSON
RUN: topotune log --json --timeline $DATA/logs/nvlink.log
EXPECT: "timeline"
EXPECT: "op": "AllReduce"

NAME: a log that grows is explained anew, and an interrupt ends it in order
RUN: head -c 600 $DATA/logs/p2p_off.log > g.log; topotune log --follow g.log > out.txt & p=$!; for i in $(seq 80); do grep -q "1 rank in the log" out.txt && break; sleep 0.1; done; tail -c +601 $DATA/logs/p2p_off.log >> g.log; for i in $(seq 80); do grep -q "error LOG06" out.txt && break; sleep 0.1; done; kill -INT $p; wait $p; echo status $?; cat out.txt
EXPECT: status 130
EXPECT: 1 rank in the log
EXPECT: 2 ranks on 1 node, 2 channels
EXPECT: error LOG06

NAME: equal calls of the timeline are one row
RUN: topotune log --timeline $DATA/logs/nvlink.log | sed 's/  */ /g'
EXPECT: 43 0 AllReduce 4.0 MiB float32 4

NAME: what is not modelled is said
RUN: sed 's/Algo RING/Algo COLLNET_CHAIN/' $DATA/logs/nvlink.log > c.log; grep -q COLLNET c.log || (cat $DATA/logs/nvlink.log; echo 'box:700:750 [0] NCCL INFO AllReduce: 4194304 Bytes -> Algo COLLNET_CHAIN proto SIMPLE channel{Lo..Hi}={0..1}') > c.log; topotune log --json c.log
EXPECT: "matrix_without"
EXPECT: CollNetChain

NAME: an error that the program got counts without a rule that knows its cause
RUN: printf '%s\n' "a:1:2 [1] transport/nvls.cc:254 NCCL WARN Cuda failure 999 'unknown error'" 'a:1:2 [1] NCCL INFO transport/nvls.cc:409 -> 1' | topotune log - --fail-on error
STATUS: 2
EXPECT: no rule knows their cause
NOT: Nothing in the log

NAME: machines that bear one name are not judged as one
RUN: for r in 0 1; do for t in "Bootstrap : Using eth0:10.0.0.$r<0>" "Channel 00/0 : $r[0] -> $((1-r))[0] [send] via NET/IB/0" "comm 0x5$r rank $r nranks 2 cudaDev 0 busId ${r}1000 commId 0xb1 - Init COMPLETE"; do echo "box:10$r:1 [0] NCCL INFO $t"; done; done > $TMP/two.log; topotune log $TMP/two.log; topotune verify --root $TMP --log $TMP/two.log; true
EXPECT: 2 ranks on ? nodes
EXPECT: LOG01
EXPECT: unknown  edge 0 -> 1
NOT: expected P2P
