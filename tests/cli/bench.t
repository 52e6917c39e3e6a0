# Machines without a GPU: what can be measured is, the rest says why not.

NAME: a suite is needed
RUN: topotune bench
STATUS: 64
STDERR: bench: which suite?
STDERR: hint: all coll gdr host levels mixed net numa p2p

NAME: an unknown suite
RUN: topotune bench p2q
STATUS: 64
STDERR: there is no suite 'p2q'

NAME: a GPU that is none
RUN: topotune bench p2p first
STATUS: 64
STDERR: bench: 'first' is no GPU

NAME: a GPU named twice
RUN: topotune bench p2p 0 GPU0
STATUS: 64
STDERR: bench: GPU0 is named twice

NAME: a part that is none
RUN: topotune bench p2p --only matrix,speed
STATUS: 64
STDERR: there is no part 'speed'

NAME: a size that is none
RUN: topotune bench p2p --bytes 12Q
STATUS: 64
STDERR: bench: '12Q' is no size

NAME: a kernel that is none
RUN: topotune bench p2p --kernel tma:10:4:2
STATUS: 64
STDERR: bench: 'tma:10:4:2' is no kernel

NAME: compare reads measurements only
RUN: echo '{}' >$TMP/a.json && topotune bench --compare $TMP/a.json $TMP/a.json
STATUS: 3
STDERR: a.json: its schema is not given, not topotune.measurement/1

NAME: a file that is missing
RUN: topotune bench --compare $TMP/none.json $TMP/none.json
STATUS: 3
STDERR: none.json

NAME: compare says what is worse
RUN: r() { echo "{\"schema\":\"topotune.measurement/1\",\"results\":[{\"name\":\"p2p.write.ce\",\"params\":{\"src\":\"GPU0\"},\"unit\":\"gbytes_per_s\",\"samples\":[$1,$1,$1],\"median\":$1,\"status\":\"ok\"}]}"; }; r 395 >$TMP/a.json; r 380 >$TMP/b.json; topotune bench --compare $TMP/a.json $TMP/b.json
STATUS: 1
EXPECT: worse    p2p.write.ce src=GPU0
EXPECT: x 0.9620
EXPECT: 1 worse, 0 better, 0 same, 0 unclear

NAME: nothing in common
RUN: echo '{"schema":"topotune.measurement/1","results":[]}' >$TMP/a.json && topotune bench --compare $TMP/a.json $TMP/a.json
STATUS: 3
STDERR: the two runs have no result in common

NAME: a number that cannot be
RUN: topotune explain --number "92 GB/s on 100G RoCE"
STATUS: 1
EXPECT: units mixed up: 92 GB/s cannot cross 100 Gb/s RoCE
EXPECT: rule: BENCH03

NAME: a number that can be
RUN: topotune explain --number "11.8 GB/s on 100G RoCE" --json
EXPECT: "schema": "topotune.claim/1"
EXPECT: "rule": null

NAME: a number that was not understood
RUN: topotune explain --number "fast"
STATUS: 3
STDERR: 'fast' has no speed such as 92 GB/s
STDERR: hint: such as

NAME: a heat map needs a matrix
RUN: topotune bench net --svg $TMP/m.svg
STATUS: 64
STDERR: bench net: --svg draws a matrix of hosts
STDERR: hint: add --all-pairs or --screen

NAME: no stream is none
RUN: topotune bench net --streams 0
STATUS: 64
STDERR: --streams

NAME: gdr says what it lacks, whatever the machine
RUN: mkdir -p $TMP/m/sys/class && topotune --sysroot $TMP/m bench gdr --json | grep -o '"status":"waived","why":"[a-zA-Z ]*'
EXPECT: no RDMA device on this machine
