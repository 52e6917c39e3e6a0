# check: two readings, folders of captures, wrong usage.
NAME: --interval is for this machine
RUN: topotune check --interval 1 $DATA/machines/h200x2-vm.capture
STATUS: 64
STDERR: hint: topotune check --since OLD NEW

NAME: an interval has an end
RUN: topotune check --interval -3
STATUS: 64
STDERR: --interval -3

NAME: an earlier reading that cannot be read
RUN: topotune check --since $TMP/none $DATA/machines/h200x2-vm.capture
STATUS: 3
STDERR: none: cannot read

NAME: counters of two folders of texts
RUN: cd $TMP && mkdir a b && for d in a b; do printf 'link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n' > $d/rdma.txt; done; printf '/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:1\n' > a/counters.txt; printf '/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:4\n' > b/counters.txt; topotune check --since a --rule CTR01 b
STATUS: 1
EXPECT: CTR01
EXPECT: link_downed rose by 3

NAME: a folder of captures is a fleet
RUN: cd $TMP && mkdir f && for n in 1 2 3; do zstd -qdc $DATA/machines/h200x2-vm.capture > f/n$n.capture; done; sed -i 's/580[.]159[.]04/570.1.2/' f/n2.capture; topotune check f --rule FLEET01
STATUS: 1
EXPECT: 3 nodes
EXPECT: n2.capture
EXPECT: 570.1.2

NAME: measurements of the nodes
RUN: cd $TMP && for n in 1 2 3; do v=400; test $n = 2 && v=300; printf '{"schema":"topotune.measurement/1","results":[{"name":"coll.all_reduce","params":{"bytes":1},"unit":"gbytes_per_s","samples":[%s,%s],"status":"ok"}]}' $v $v > n$n.json; done; topotune check n1.json n2.json n3.json
STATUS: 1
EXPECT: FLEET07
EXPECT: n2.json

NAME: variables of the nodes
RUN: cd $TMP && for n in 1 2; do mkdir n$n; printf 'link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n' > n$n/rdma.txt; done; echo NCCL_ALGO=Ring > n1/job.env; echo NCCL_ALGO=Tree > n2/job.env; topotune check n1 n2 --rule FLEET04
STATUS: 2
EXPECT: NCCL_ALGO

NAME: two readings are for one machine
RUN: topotune check --since x a b
STATUS: 64
STDERR: not for a fleet

NAME: the numbers of a measurement by themselves
RUN: printf '%s' '{"schema":"topotune.measurement/1","suite":"p2p","results":[{"name":"p2p.write.ce","params":{"src":"GPU0","dst":"GPU1","bytes":536870912},"unit":"gbytes_per_s","samples":[1,2],"median":740,"status":"ok"},{"name":"coll.all_reduce","params":{"bytes":8,"ranks":1},"unit":"seconds","samples":[1,1,1],"median":1,"p99":1,"status":"ok"}]}' > b.json; topotune check b.json
STATUS: 1
EXPECT: BENCH01
EXPECT: BENCH05
NOT: BENCH03

NAME: and beside the machine that was measured
RUN: mkdir node; cp "$DATA/machines/h200x2-nccl-dump.xml" node/topo.xml; printf '%s' '{"schema":"topotune.measurement/1","suite":"p2p","results":[{"name":"p2p.write.ce","params":{"src":"GPU0","dst":"GPU1","bytes":536870912},"unit":"gbytes_per_s","samples":[740,740,740],"median":740,"expected":{"value":150},"status":"ok"}]}' > node/b.json; topotune check node --rule BENCH03 --rule BENCH04
STATUS: 2
EXPECT: BENCH03
EXPECT: 478.1 GB/s: 18 links x 26.562 GB/s
EXPECT: BENCH04

NAME: a real run has nothing of it
RUN: topotune check "$DATA/../measurements/2026-11-30-h200x2-bench/matrix.json"
STATUS: 0
NOT: BENCH05

NAME: in a fleet each measurement is judged too
RUN: mkdir f; cp "$DATA/machines/h200x2-vm.capture" f/node7.capture; printf '%s' '{"schema":"topotune.measurement/1","suite":"coll","results":[{"name":"coll.all_reduce","params":{"bytes":8,"ranks":1},"unit":"seconds","samples":[1,1,1],"median":1,"status":"ok"}]}' > f/node7.json; topotune check f --rule BENCH01
STATUS: 1
EXPECT: 1 nodes
EXPECT: BENCH01

NAME: a known command in a form that is not read says what to give
RUN: printf 'Architektur:   x86_64\nCPU(s):   64\nSockel:   2\n' > lscpu.txt; topotune check lscpu.txt
STATUS: 3
STDERR: lscpu in a language other than English
STDERR: hint: LC_ALL=C lscpu

NAME: a port whose rate is not told may be a rail
RUN: printf 'mlx5_0 port 1 ==> ibp24s0 (Up)\nmlx5_1 port 1 ==> ens10f0np0 (Up)\n' > ports.txt; topotune check --json ports.txt | python3 -c 'import json,sys; d=json.load(sys.stdin); print("checked:", *d["checked"])'
EXPECT: checked:
NOT: RDMA05
NOT: RDMA06
NOT: RDMA08
NOT: QOS02
NOT: QOS04

NAME: a failure that no rule explains is no ok, also in a log beside nothing else
RUN: printf 'a:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 6000 commId 0x7 - Init COMPLETE\na:1:2 [0] misc/something.cc:7 NCCL WARN Frobnication of queue failed\na:1:2 [0] NCCL INFO enqueue.cc:12 -> 3\n' >$TMP/job.log; topotune check $TMP/job.log; echo status $?; topotune check --nagios $TMP/job.log; topotune check --json $TMP/job.log | grep -o '"verdict": *"[a-z]*"'
EXPECT: unknown
EXPECT: a failure that no rule explains
EXPECT: status 3
EXPECT: TOPOTUNE UNKNOWN - a failure that no rule explains
EXPECT: "unknown"

NAME: and is not said beside a finding that may be its cause
RUN: printf 'ibvwrap.cc: NCCL WARN Call to ibv_modify_qp failed with error Connection timed out\n' >$TMP/job.log; topotune check $TMP/job.log; echo status $?
EXPECT: (1 error)
EXPECT: LOG10
EXPECT: status 2
