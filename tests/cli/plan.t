NAME: bindings of the guest with two NUMA nodes
RUN: topotune plan "$DATA/machines/guest.capture" --json
EXPECT: "schema": "topotune.plan/1"
EXPECT: "id": "numa-balancing-off"
EXPECT: "kind": "sysfs"
EXPECT: "target": "/proc/sys/kernel/numa_balancing"
EXPECT: "gpu": "GPU0"
EXPECT: "cpus": "0-1"
EXPECT: "memory_node": 0
EXPECT: "gpu": "GPU3"
EXPECT: "cpus": "2-3"
EXPECT: "memory_node": 1

NAME: the same input gives the same bytes
RUN: topotune plan "$DATA/machines/h200x2-vm.capture" --json
SAME: topotune plan "$DATA/machines/h200x2-vm.capture" --json

NAME: a text on one screen
RUN: topotune plan "$DATA/machines/guest.capture"
EXPECT: changes of the machine (topotune apply --yes)
EXPECT: /proc/sys/kernel/numa_balancing: 1 -> 0
EXPECT: bindings (topotune run -- CMD)
EXPECT: GPU2   CPUs 2-3  memory node 1  NICs mlx5_2

NAME: a harmful variable of the job's file is taken out
RUN: printf 'export NCCL_P2P_DISABLE=1\n' > job.sh; topotune plan "$DATA/machines/h200x2-vm.capture" --env-file job.sh
EXPECT: unset NCCL_P2P_DISABLE=1   (set in job.sh:1)
EXPECT: NCCL02

NAME: where no GPU reaches another, what switches that off stays
RUN: printf '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-31\t0\nGPU1\tPHB\t X \t0-31\t0\n\n\tGPU0\tGPU1\nGPU0\tX\tGNS\nGPU1\tGNS\tX\n' > m.txt; printf 'NCCL_P2P_DISABLE=1\nNCCL_ALGO=Ring\nNCCL_SOCKET_IFNAME=lo\n' > job.env; topotune plan m.txt --set nodes=2 --env-file job.env
EXPECT: NCCL_ALGO=Ring (job.env:2) stays unless a person decides
EXPECT: NCCL_SOCKET_IFNAME=lo (job.env:3) stays unless a person decides
NOT: P2P

NAME: a job that contradicts itself
RUN: printf 'gpus = 16\nnodes = 2\ngpus_per_node = 4\n' > job.conf; topotune plan "$DATA/machines/guest.capture" --job job.conf
STATUS: 3
STDERR: topotune: job.conf: gpus = 16, but nodes x gpus_per_node = 2 x 4 = 8

NAME: more ranks than GPUs
RUN: topotune plan "$DATA/machines/guest.capture" --set gpus=8
STATUS: 3
STDERR: guest.capture: 8 ranks on a node that has 4 GPUs

NAME: a line of a job file that is none
RUN: printf 'gpus = 4\nnodez = 1\n' | topotune plan "$DATA/machines/guest.capture" --job -
STATUS: 3
STDERR: topotune: -:2: nodez: no such key

NAME: a rankfile
RUN: topotune plan "$DATA/machines/guest.capture" --emit rankfile
EXPECT: --mca rmaps_rank_file_physical 1
EXPECT: rank 0=+n0 slot=0-1
EXPECT: rank 3=+n0 slot=2-3

NAME: Slurm counts cores in its own order
RUN: topotune plan "$DATA/machines/guest.capture" --emit gres.conf
EXPECT: Name=gpu File=/dev/nvidia0  # GPU0
EXPECT: CPUs 0-1
NOT: nvidia0 Cores=

NAME: a shell form that a shell takes
RUN: topotune plan "$DATA/machines/guest.capture" --emit shell > p.sh; sh -n p.sh && cat p.sh
EXPECT: printf '%s\n' 0 > /proc/sys/kernel/numa_balancing

NAME: switch configuration with thresholds from rate and cable
RUN: topotune plan "$DATA/machines/guest.capture" --set dscp=26 --set port_gbits=400 --set cable_m=30 --emit sonic | grep -v '^//' | python3 -c 'import json,sys; print(json.load(sys.stdin)["BUFFER_PROFILE"]["topotune_lossless"]["xoff"])'
EXPECT: 92160

NAME: a form that does not exist
RUN: topotune plan "$DATA/machines/guest.capture" --emit word
STATUS: 64
STDERR: --emit word: no such form

NAME: NCCL takes the XML that this program writes
RUN: topotune plan "$DATA/machines/guest.capture" --emit nccl-xml > topo.xml; topotune plan "$DATA/machines/guest.capture" --check-nccl-xml topo.xml
STATUS: 0 1
NOT: error

NAME: NCCL does not take a prolog
RUN: (echo '<?xml version="1.0"?>'; topotune show "$DATA/machines/guest.capture" --nccl-xml -) > topo.xml; topotune plan --check-nccl-xml topo.xml
STATUS: 2
EXPECT: topo.xml:1: error TOPO01

NAME: an XML file of another machine
RUN: topotune show "$DATA/machines/h200x2-vm.capture" --nccl-xml topo.xml; topotune plan "$DATA/machines/guest.capture" --check-nccl-xml topo.xml
STATUS: 2
EXPECT: is in the file and not on the machine

NAME: the table of scenarios gives reasons
RUN: topotune plan --scenario
EXPECT: the protocol follows from the message size, not from the model's

NAME: apply never acts on a recorded machine
RUN: topotune plan "$DATA/machines/guest.capture" --json > plan.json; topotune apply plan.json --yes
STATUS: 3
STDERR: plan.json: a plan for

NAME: apply, verify and undo in a tree
RUN: python3 "$DATA/launch/fake_node.py" node; sed 's/"kind": "capture"/"kind": "live"/' <(topotune plan "$DATA/machines/guest.capture" --json) > plan.json; topotune apply --root node plan.json --yes -q --only numa-balancing-off --only numa-balancing-file && cat node/proc/sys/kernel/numa_balancing && ls node/etc/sysctl.d && topotune undo --root node && cat node/proc/sys/kernel/numa_balancing && ls node | grep -v var
EXPECT: done        numa-balancing-off: /proc/sys/kernel/numa_balancing: 1 -> 0
EXPECT: 90-topotune.conf
EXPECT: numa-balancing-file
EXPECT: numa-balancing-off
EXPECT: 1
EXPECT: proc

NAME: a plan that wants more than the table is refused before anything is done
RUN: mkdir node; printf '%s' '{"schema":"topotune.plan/1","source":{"kind":"live","name":"live"},"actions":[{"id":"x","kind":"file","target":"/etc/passwd","value":"x","reason":"r","rule":null,"precondition":null,"read_back":null,"undo":null,"scope":"boot","risk":"low","basis":"convention","automatic":true}],"bindings":[]}' > plan.json; topotune apply --root node plan.json --yes -q; s=$?; ls node; exit $s
STATUS: 3
STDERR: x: /etc/passwd: not a file that this program writes; nothing was changed

NAME: nothing to undo
RUN: mkdir node; topotune undo --root node
STDERR: nothing to undo

NAME: verify says what does not hold
RUN: python3 "$DATA/launch/fake_node.py" node; topotune plan "$DATA/machines/guest.capture" --json > plan.json; topotune verify --root node plan.json
STATUS: 2
EXPECT: fails    numa-balancing-off: 1; expected /proc/sys/kernel/numa_balancing reads 0

NAME: run says what it would do
RUN: python3 "$DATA/launch/fake_node.py" node; LOCAL_RANK=0 RANK=0 LOCAL_WORLD_SIZE=4 WORLD_SIZE=4 NCCL_P2P_DISABLE=1 topotune --sysroot node run --dry-run -- train
EXPECT: rank 0 of 4, local rank 0 (torchrun): GPU0 0000:13:00.0, CPUs
EXPECT: memory node 0 (preferred), NICs mlx5_0
EXPECT: unset NCCL_P2P_DISABLE
EXPECT: export CUDA_DEVICE_ORDER=PCI_BUS_ID

NAME: run plans for a recorded machine
RUN: topotune run --topology "$DATA/machines/guest.capture" --per-gpu --dry-run
EXPECT: rank 3 of 4, local rank 3 (--per-gpu): GPU3 0000:a2:00.0, CPUs 2-3, memory node 1 (preferred)

NAME: run without a command
RUN: topotune run
STATUS: 64
STDERR: topotune: run: no command

NAME: versions that do not fit
RUN: topotune plan "$DATA/machines/h200x2-vm.capture" --versions --driver-version 470.1
STATUS: 2
EXPECT: violated  cuda-runtime 13 to below 14 with driver 580

NAME: nothing is done on a recorded tree
RUN: mkdir node; topotune undo --sysroot node
STATUS: 3
STDERR: topotune: --sysroot is a recorded machine: nothing is changed there

NAME: options behind the command are the command's
RUN: python3 "$DATA/launch/fake_node.py" node; LOCAL_RANK=3 RANK=3 topotune --sysroot node run -q sh -c 'echo "$1"' x --dry-run
EXPECT: --dry-run

NAME: what was measured here is labelled with its number
RUN: topotune plan "$DATA/machines/h200x2-vm.capture" --env-file <(echo export NCCL_P2P_DISABLE=1) --measured "$DATA/../measurements/2026-11-30-h200x2/log-run-p2p-disabled.json" --json
EXPECT: "id": "unset-NCCL_P2P_DISABLE"
EXPECT: measured here: 26.9 GB/s with NCCL_P2P_DISABLE=1, 327.4 GB/s without it (bus bandwidth at 1073741824 bytes)
EXPECT: "basis": "measured"

NAME: a folder of measurements
RUN: mkdir m; cp "$DATA"/../measurements/2026-11-30-h200x2/*.json m; topotune plan "$DATA/machines/h200x2-vm.capture" --env-file <(echo export NCCL_P2P_DISABLE=1) --measured m
EXPECT: low risk, measured

NAME: numbers of another machine count for nothing
RUN: topotune plan "$DATA/machines/guest.capture" --measured "$DATA/../measurements/2026-11-30-h200x2/log-run-p2p-disabled.json"
STATUS: 3
STDERR: log-run-p2p-disabled.json: measured on GPUs that this machine does not have

NAME: no measurement
RUN: echo '{}' > x.json; topotune plan "$DATA/machines/guest.capture" --measured x.json
STATUS: 3
STDERR: topotune: x.json: not a measurement

NAME: a dump of NCCL itself describes the machine it was made on
RUN: topotune plan --check-nccl-xml "$DATA/machines/h200x2-nccl-dump.xml" "$DATA/machines/h200x2-vm.capture"
EXPECT: info TOPO13
NOT: warn
NOT: error

NAME: what is generated for that machine has the GPUs and links of the dump
RUN: topotune plan "$DATA/machines/h200x2-vm.capture" --emit nccl-xml -o own.xml; topotune plan --check-nccl-xml own.xml "$DATA/machines/h200x2-nccl-dump.xml"
EXPECT: info TOPO13
NOT: warn
NOT: error
