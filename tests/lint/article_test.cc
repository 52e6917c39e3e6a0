// Advice that circulates: each wrong line must be reported with the right correction, each right one stay
// silent.
#include "lint_helpers.h"

namespace topotune::lint {
namespace {

struct Advice {
  const char* what;  // what the author of the line believes
  const char* file;
  const char* text;
  const char* rule;    // "" stands for silence
  const char* remedy;  // part of the correction: title, remedy or expected value
  const char* nccl = "";
  const char* driver = "";
};

void PrintTo(const Advice& advice, std::ostream* out) { *out << advice.what; }

class WrongAdvice : public ::testing::TestWithParam<Advice> {};

TEST_P(WrongAdvice, IsReportedWithTheCorrection) {
  const Advice& advice = GetParam();
  Options options;
  options.nccl = parse_version(advice.nccl);
  options.driver = parse_version(advice.driver);
  const auto result = judged(advice.file, advice.text, options);
  const auto* found = result->find(advice.rule);
  ASSERT_NE(found, nullptr) << advice.what << "\n" << advice.text << "found: " << result->ids();
  const auto& finding = found->finding;
  const std::string said =
      finding.title + " | " + finding.remedy + " | " + finding.expected + " | " + finding.impact;
  EXPECT_THAT(said, ::testing::HasSubstr(advice.remedy)) << advice.what;
  EXPECT_EQ(finding.file, advice.file);
  EXPECT_GE(finding.line.value_or(0), 1);
  EXPECT_FALSE(finding.evidence.empty());
}

constexpr Advice kWrong[] = {
    {"the switch forces NVLink", "nvl.env", "NCCL_P2P_DISABLE=1\n", "NCCL02", "NCCL_P2P_LEVEL=NVL"},
    {"level LOC keeps traffic local", "nvl.env", "NCCL_P2P_LEVEL=LOC\n", "NCCL02", "turns NVLink off"},
    {"old versions have NVLink off", "nvl.sh", "export NCCL_NVLINK_DISABLE=0\n", "NCCL01",
     "NCCL_P2P_LEVEL=NVL"},
    {"sockets wait longer", "net.sh", "export NCCL_SOCKET_TIMEOUT=900\n", "NCCL01", "NCCL_SOCKET_RETRY_CNT"},
    {"sockets wait longer (ms)", "net.sh", "export NCCL_SOCKET_TIMEOUT_MS=900000\n", "NCCL01",
     "NCCL_SOCKET_RETRY_CNT"},
    {"connecting waits longer", "net.env", "NCCL_CONNECT_TIMEOUT=60\n", "NCCL01", "NCCL_SOCKET_RETRY_CNT"},
    {"the network retries", "net.env", "NCCL_NET_RETRY_COUNT=9\n", "NCCL01", "NCCL_IB_RETRY_CNT"},
    {"collectives time out", "net.env", "NCCL_TIMEOUT=3600\n", "NCCL01", "timeout=..."},
    {"RDMA off for calm on one of several nodes", "run.sbatch",
     "#!/bin/bash\n#SBATCH -N 2\nexport NCCL_IB_DISABLE=1\nsrun ./train\n", "NCCL11", "2 nodes"},
    {"RDMA must be asked for", "ib.env", "NCCL_IB_DISABLE=0\n", "NCCL11", "is the default"},
    {"one rank measures NVLink", "bw.sh", "#!/bin/sh\n./all_reduce_perf -b 1M -e 64M -f 2 -g 1\n", "BENCH01",
     "-g"},
    {"clocks show link width", "bw.sh", "#!/bin/sh\nnvidia-smi -q -d CLOCK | grep -i nvlink\n", "CMD07",
     "nvidia-smi nvlink -s"},
    {"start from a clean driver", "ofed.sh",
     "#!/bin/sh\napt remove --purge -y 'nvidia-*' 'mellanox-*'\nreboot\n", "CMD01", "by name"},
    {"OFED 5.15", "ofed.sh",
     "#!/bin/sh\nwget http://mirror/MLNX_OFED_LINUX-5.15-1.0.3.2-rhel9.2-x86_64.tgz\n", "VER02",
     "never released"},
    {"dpdk for GPUDirect", "ofed.sh", "#!/bin/sh\n./mlnxofedinstall --dpdk --user-space-only\n", "CMD02",
     "full install"},
    {"installer options that are none", "ofed.sh",
     "#!/bin/sh\n./mlnxofedinstall --with-ucx --enable-ethernet\n", "CMD02", "--with-ucx"},
    {"user-space driver enables GDR", "gdr.sh",
     "#!/bin/sh\n# GPUDirect for mlx5\ndpdk-devbind.py --bind=igb_uio 0000:81:00.0\n", "CMD08",
     "delete the line"},
    {"bind by hand", "gdr.sh",
     "#!/bin/sh\n# RDMA NIC\necho 0000:81:00.0 > /sys/bus/pci/drivers/uio_pci_generic/bind\n", "CMD08",
     "mlx5_core"},
    {"peer memory has a switch", "gdr.sh", "#!/bin/sh\necho 1 > /sys/module/nv_peer_mem/parameters/enable\n",
     "CMD07", "nvidia-peermem"},
    {"peers are listed in proc", "gdr.sh", "#!/bin/sh\ncat /proc/driver/nv-p2p/peers\n", "CMD07", "/GDRDMA"},
    {"GID 3 for ever", "gid.env", "NCCL_IB_GID_INDEX=3\n", "NCCL07", "NCCL_IB_ADDR_FAMILY", "2.24"},
    {"CUDA support of IB", "gdr.env", "NCCL_IB_CUDA_SUPPORT=1\n", "NCCL03", "NCCL_NET_GDR_LEVEL"},
    {"level 2 is full", "gdr.env", "NCCL_NET_GDR_LEVEL=2\n", "NCCL12", "PXB"},
    {"the flush is switched on", "gdr.env", "NCCL_NET_GDR_FLUSH=1\n", "NCCL01", "flush is on"},
    {"dmon v is PCIe", "mon.sh", "#!/bin/sh\n# PCIe traffic of the GPUs\nnvidia-smi dmon -s v -c 10\n",
     "MON01", "violations"},
    {"exported UCX variables move NCCL to UCX", "ddp.sh",
     "#!/bin/sh\nexport UCX_TLS=rc_x,sm,self\ntorchrun --nproc_per_node=8 ddp.py\n", "UCX01",
     "NCCL_PLUGIN_P2P=ucx"},
    {"plugin variables are enough", "ddp.env", "NCCL_UCX_TLS=rc,self\n", "UCX01", "NCCL_PLUGIN_P2P=ucx"},
    {"GPU buffers without cuda", "mpi.sh",
     "#!/bin/sh\nexport UCX_TLS=rc,sm,self\nmpirun -np 8 --gpus 8 ./app_cuda\n", "UCX02", "cuda"},
    {"allocation by peer access", "ucx.env", "UCX_ALLOC_PRIO=mdpa,mm,direct\n", "UCX03",
     "md:<name>, thp, huge, mmap, heap"},
    {"get_am for large messages", "ucx.env", "UCX_RNDV_SCHEME=get_am\n", "UCX03", "get_zcopy"},
    {"bcopy from 0 disables it", "ucx.sh",
     "#!/bin/sh\n# disable bcopy\nexport UCX_BCOPY_THRESH=0\nmpirun -np 2 ./x\n", "UCX05", "from 0 bytes on"},
    {"8192 makes small messages RDMA", "ucx.sh",
     "#!/bin/sh\nexport UCX_RNDV_THRESH=8192  # force small messages to RDMA\nmpirun -np 2 ./x\n", "UCX05",
     "larger messages"},
    {"DSCP given as class", "tc.sh", "#!/bin/sh\n# lossless class is DSCP 26\nexport NCCL_IB_TC=26\n",
     "QOS05", "104"},
    {"the rdma controller shapes bandwidth", "cg.sh",
     "#!/bin/sh\necho \"mlx5_2 r:40000000000\" > /sys/fs/cgroup/job/rdma.max\n", "QOS01", "mlnx_qos"},
    {"controllers without +", "cg.sh", "#!/bin/sh\necho rdma >> /sys/fs/cgroup/cgroup.subtree_control\n",
     "QOS03", "+rdma"},
    {"a group of cgroup v1", "cg.sh", "#!/bin/sh\nmkdir /sys/fs/cgroup/rdma\ncgexec -g rdma:job1 ./train\n",
     "QOS03", "mkdir"},
    {"IPoIB MTU for RDMA", "mtu.sh", "#!/bin/sh\nip link set dev ib1 mtu 4096\n", "RDMA07", "ibv_devinfo"},
    {"ibstat shows the MTU", "mtu.sh", "#!/bin/sh\nibstat mlx5_0 | grep -i mtu\n", "CMD05", "ibv_devinfo"},
    {"link info on RoCE", "err.sh", "#!/bin/sh\n# RoCE fabric\niblinkinfo\n", "CMD05", "rdma statistic"},
    {"link info shows symbol errors", "err.sh", "#!/bin/sh\n# symbol errors\niblinkinfo -p\n", "CMD05",
     "perfquery"},
    {"ibping by address", "err.sh", "#!/bin/sh\nibping -G 3 10.0.0.7\n", "CMD05", "rping"},
    {"GIDs from ibstat", "err.sh", "#!/bin/sh\nibstat -v | grep -i gid\n", "CMD05", "show_gids"},
    {"switch buffers", "err.sh", "#!/bin/sh\nibswitches -v | grep Buffer\n", "CMD05", "port_xmit_wait"},
    {"CQE size in sysfs", "cq.sh", "#!/bin/sh\necho 128 > /sys/class/infiniband/mlx5_1/qps/7/attr/cqe_size\n",
     "CMD07", "option of the program"},
    {"all interrupts to CPU 1", "irq.sh", "#!/bin/sh\necho 1 > /proc/irq/*/smp_affinity_list\n", "IRQ02",
     "per-vector"},
    {"a mask for CPU 63 in the list file", "irq.sh",
     "#!/bin/sh\necho 40000000 > /proc/irq/87/smp_affinity_list\n", "IRQ01", "CPU 30"},
    {"symlink cures error 35", "lib.sh",
     "#!/bin/sh\nln -sf /opt/mellanox/lib/libibverbs.so.1.14 /usr/lib64/libibverbs.so.1\n", "CMD03",
     "package"},
    {"preload verbs", "lib.sh", "#!/bin/sh\nexport LD_PRELOAD=/usr/lib64/libibverbs.so.1\n", "NCCL20",
     "libibverbs"},
    {"two halves are one job", "two.sh",
     "#!/bin/sh\nCUDA_VISIBLE_DEVICES=0,1 taskset -c 0-15 python train.py &\nCUDA_VISIBLE_DEVICES=2,3 "
     "taskset -c 16-31 python train.py &\nwait\n",
     "NUMA09", "one launcher"},
    {"two launchers are one job", "two.sh",
     "#!/bin/sh\nCUDA_VISIBLE_DEVICES=0,1,2,3 torchrun --nproc_per_node 4 --master_port 29500 t.py &\n"
     "CUDA_VISIBLE_DEVICES=4,5,6,7 torchrun --nproc_per_node 4 --master_port 29501 t.py &\n",
     "NUMA09", "one launcher"},
    {"os.system binds the script", "train.py",
     "import os\nos.system('numactl --cpunodebind=1 --membind=1 python train.py')\nimport torch\n", "NUMA04",
     "sched_setaffinity"},
    {"workers bind themselves by a shell", "load.py",
     "import os\ndef init(worker_id):\n    os.system('numactl --cpunodebind=%d true' % (worker_id % 2))\n",
     "NUMA04", "worker_init_fn"},
    {"four CPUs for a rank", "load.py",
     "import os\nos.sched_setaffinity(0, set(range(4)))\nloader = DataLoader(ds, num_workers=8)\n", "NUMA05",
     "10 CPUs"},
    {"strict memory on both nodes", "bind.sh",
     "#!/bin/sh\nnumactl --cpunodebind=0 --membind=0,1 python rank.py\n", "NUMA01", "--preferred=0"},
    {"all ranks on node 0", "bind.sh",
     "#!/bin/sh\nnumactl --cpunodebind=0 --membind=0 torchrun --nproc_per_node=8 big.py\n", "NUMA03",
     "--numa-binding=node"},
    {"Coll lets NCCL choose", "algo.env", "NCCL_ALGO=Ring,Tree,Coll\n", "NCCL04", "unset", "2.26"},
    {"LL128 is the fast one", "algo.env", "NCCL_PROTO=Simple,LL,LL128\n", "NCCL05", "by itself"},
    {"LL for large models", "algo.sh", "#!/bin/sh\nexport NCCL_PROTO=LL\ntorchrun --nproc_per_node=8 x.py\n",
     "NCCL06", "tuner plugin"},
    {"Ring up to 8 GPUs", "algo.sh", "#!/bin/sh\nexport NCCL_ALGO=Ring\ntorchrun --nproc_per_node=8 x.py\n",
     "NCCL06", "tuner plugin"},
    {"one HCA by name", "hca.env", "NCCL_IB_HCA=mlx5_1:1\n", "NCCL09", "=mlx5_1:1"},
    {"seconds of time-out", "to.env", "NCCL_IB_TIMEOUT=1800\n", "NCCL23", "exponent"},
    {"a tool that prints NCCL's topology", "topo.sh", "#!/bin/sh\nnccl-topo --raw > topo.xml\n", "CMD07",
     "NCCL_TOPO_DUMP_FILE"},
    {"a GDR tester", "gdr.sh", "#!/bin/sh\ncuda-gdr-test --send-gpu 0 --nic mlx5_0\n", "CMD07", "--use_cuda"},
    {"a topology in JSON", "ring.py",
     "import os\nimport torch.distributed as "
     "dist\ndist.init_process_group('nccl')\ndist.all_reduce(x)\nos.environ['NCCL_TOPO_FILE'] = "
     "'ring.json'\n",
     "NCCL16", "after NCCL has read it"},
    {"JSON is read", "ring.env", "NCCL_TOPO_FILE=/tmp/ring_100.json\n", "NCCL15", "XML"},
    {"the old launcher", "go.sh", "#!/bin/sh\npython3 -m torch.distributed.launch --nproc_per_node=8 t.py\n",
     "CMD04", "torchrun"},
    {"the average is the peak", "bw.sh",
     "#!/bin/sh\n./all_reduce_perf -b 8 -e 1G -f 2 -g 8 > o\ngrep 'Avg bus bandwidth' o\n", "BENCH02",
     "largest size"},
    {"a capture range that is none", "prof.sh",
     "#!/bin/sh\nnsys profile -t nvtx,cuda,nvml,osrt --capture-range=cudaProfiler --duration=30s python "
     "t.py\n",
     "CMD06", "cudaProfilerApi"},
    {"driver 515 runs CUDA 12", "ver.sh", "#!/bin/sh\napt-get install -y cuda-toolkit-12-1\n", "VER01", "525",
     "", "515.65.01"},
    {"old driver beside new CUDA", "ver.sh",
     "#!/bin/sh\napt-get install -y nvidia-driver-535 cuda-toolkit-13-0\n", "VER01", "580"},
    {"nvlink -gt is a rate", "mon.sh", "#!/bin/sh\nnvidia-smi nvlink -gt\n", "MON02", "not a rate"},
    {"1001 is PCIe", "mon.sh", "#!/bin/sh\n# PCIe and NVLink\ndcgmi dmon -e 1001,1002\n", "MON03", "1009"},
    {"UCX-Py", "ucx.sh", "#!/bin/sh\npip install ucx-py-cu12\n", "VER05", "UCXX"},
    {"NCCL heals itself", "err.env", "NCCL_ASYNC_ERROR_HANDLING=1\n", "NCCL19",
     "TORCH_NCCL_ASYNC_ERROR_HANDLING"},
    {"forced flush off", "gdr.env", "NCCL_GDR_FLUSH_DISABLE=1\n", "NCCL22", "unset"},
};
INSTANTIATE_TEST_SUITE_P(Advice, WrongAdvice, ::testing::ValuesIn(kWrong));

class RightAdvice : public ::testing::TestWithParam<Advice> {};

TEST_P(RightAdvice, StaysSilent) {
  const Advice& advice = GetParam();
  Options options;
  options.nccl = parse_version(advice.nccl);
  const auto result = judged(advice.file, advice.text, options);
  EXPECT_EQ(result->ids(), "") << advice.what;
}

constexpr Advice kRight[] = {
    {"NVLink only", "a.env", "NCCL_P2P_LEVEL=NVL\n", "", ""},
    {"service level 0", "a.env", "NCCL_IB_SL=0\n", "", ""},
    {"the memory type cache off", "a.sh", "#!/bin/sh\nexport UCX_MEMTYPE_CACHE=n\nmpirun -np 4 ./a\n", "",
     ""},
    {"rendezvous by get", "a.sh", "#!/bin/sh\nexport UCX_RNDV_SCHEME=get_zcopy\nmpirun -np 4 ./a\n", "", ""},
    {"traffic class 106", "a.env", "NCCL_IB_TC=106\n", "", ""},
    {"GID index with 2.19", "a.env", "NCCL_IB_GID_INDEX=3\n", "", "", "2.19"},
    {"automatic GID", "a.env", "NCCL_IB_GID_INDEX=-1\n", "", "", "2.27"},
    {"exact HCAs", "a.env", "NCCL_IB_HCA==mlx5_1,mlx5_10\n", "", ""},
    {"all HCAs of a driver", "a.env", "NCCL_IB_HCA=mlx5\n", "", ""},
    {"the first HCA", "a.env", "NCCL_IB_HCA=mlx5_0:1\n", "", ""},
    {"torchrun with NUMA binding", "a.sh",
     "#!/bin/sh\ntorchrun --numa-binding=node --nproc_per_node=8 t.py\n", "", ""},
    {"a fixed device order", "a.sh",
     "#!/bin/sh\nexport CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=4 numactl --cpunodebind=1 python "
     "w.py\n",
     "", ""},
    {"binding by rank", "a.sh",
     "#!/bin/sh\nexec numactl --cpunodebind=$((LOCAL_RANK / 4)) --localalloc \"$@\"\n", "", ""},
    {"local preference", "a.sh", "#!/bin/sh\nnumactl --cpunodebind=1 --preferred=1 ./rank\n", "", ""},
    {"eight GPUs measured", "a.sh", "#!/bin/sh\n./all_reduce_perf -b 8M -e 8G -f 2 -g 8\n", "", ""},
    {"one rank a process", "a.sh", "#!/bin/sh\nmpirun -np 16 ./all_reduce_perf -b 8M -e 8G -f 2 -g 1\n", "",
     ""},
    {"port state", "a.sh", "#!/bin/sh\nibstat mlx5_0\n", "", ""},
    {"IB error counters", "a.sh", "#!/bin/sh\nperfquery -x\nibqueryerrors\n", "", ""},
    {"GIDs", "a.sh", "#!/bin/sh\nshow_gids\nibv_devinfo -v\n", "", ""},
    {"peer memory", "a.sh", "#!/bin/sh\nmodprobe nvidia-peermem\n", "", ""},
    {"RDMA to GPU memory", "a.sh", "#!/bin/sh\nib_write_bw -d mlx5_0 --use_cuda=0\n", "", ""},
    {"PCIe throughput", "a.sh", "#!/bin/sh\n# PCIe throughput\nnvidia-smi dmon -s t\n", "", ""},
    {"NVLink counters", "a.sh", "#!/bin/sh\nnvidia-smi nvlink -gt d\n", "", ""},
    {"DCGM traffic", "a.sh", "#!/bin/sh\n# PCIe and NVLink\ndcgmi dmon -e 1009,1010,1011,1012\n", "", ""},
    {"a list for CPU 63", "a.sh", "#!/bin/sh\necho 63 > /proc/irq/142/smp_affinity_list\n", "", ""},
    {"a mask for CPU 63", "a.sh", "#!/bin/sh\necho 80000000,00000000 > /proc/irq/142/smp_affinity\n", "", ""},
    {"enable the controller", "a.sh", "#!/bin/sh\necho +rdma > /sys/fs/cgroup/cgroup.subtree_control\n", "",
     ""},
    {"object limits", "a.sh",
     "#!/bin/sh\necho 'mlx5_0 hca_handle=4 hca_object=2000' > /sys/fs/cgroup/job/rdma.max\n", "", ""},
    {"jumbo frames on Ethernet", "a.sh", "#!/bin/sh\n# RoCE\nip link set ens3f0np0 mtu 9000\n", "", ""},
    {"profile a step", "a.sh",
     "#!/bin/sh\nnsys profile -t cuda,nvtx,osrt --capture-range=cudaProfilerApi --duration=30 python t.py\n",
     "", ""},
    {"the driver's floor", "a.sh", "#!/bin/sh\napt-get install -y nvidia-driver-535 cuda-toolkit-12-4\n", "",
     ""},
    {"an LTS release", "a.sh",
     "#!/bin/sh\nwget http://mirror/MLNX_OFED_LINUX-23.10-0.5.5.0-rhel9.2-x86_64.tgz\n./mlnxofedinstall "
     "--force\n",
     "", ""},
    {"PyTorch's own name", "a.env", "TORCH_NCCL_ASYNC_ERROR_HANDLING=1\n", "", ""},
    {"dump the topology", "a.env", "NCCL_TOPO_DUMP_FILE=/tmp/topo.xml\nNCCL_TOPO_FILE=/etc/topo.xml\n", "",
     ""},
    {"set before the process group", "a.py",
     "import os\nos.environ['NCCL_IB_TIMEOUT'] = '22'\nimport torch.distributed as "
     "dist\ndist.init_process_group('nccl')\ndist.barrier()\n",
     "", ""},
    {"bind the process itself", "a.py", "import os\nos.sched_setaffinity(0, range(32))\nimport torch\n", "",
     ""},
};
INSTANTIATE_TEST_SUITE_P(Advice, RightAdvice, ::testing::ValuesIn(kRight));

}  // namespace
}  // namespace topotune::lint
