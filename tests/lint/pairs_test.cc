// One text that a rule reports and one, a small step away, on which it is silent.
#include "lint_helpers.h"

namespace topotune::lint {
namespace {

struct Pair {
  const char* rule;
  const char* file;
  const char* wrong;
  const char* right;
};

void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.rule; }

class Pairs : public ::testing::TestWithParam<Pair> {};

TEST_P(Pairs, WrongIsReportedRightIsSilent) {
  const auto& pair = GetParam();
  const auto wrong = judged(pair.file, pair.wrong), right = judged(pair.file, pair.right);
  EXPECT_NE(wrong->find(pair.rule), nullptr) << "found: " << wrong->ids();
  EXPECT_EQ(right->find(pair.rule), nullptr) << "found: " << right->ids();
}

constexpr Pair kPairs[] = {
    {"NUMA11", "run.sh", "#!/bin/sh\nCUDA_VISIBLE_DEVICES=0 numactl --cpunodebind=0 python t.py\n",
     "#!/bin/sh\nexport CUDA_DEVICE_ORDER=PCI_BUS_ID\nCUDA_VISIBLE_DEVICES=0 numactl --cpunodebind=0 python "
     "t.py\n"},
    {"NCCL27", "a.env", "NCCL_MAX_NCHANNELS=4\n", "NCCL_MAX_NCHANNELS=16\n"},
    {"NCCL34", "nccl.conf", "TOPOTUNE_TUNER_TABEL=/opt/node.table\n",
     "TOPOTUNE_TUNER_TABLE=/opt/node.table\n"},
    {"NCCL35", "a.env", "TOPOTUNE_TUNER_TABLE=node.table\n", "TOPOTUNE_TUNER_TABLE=$HOME/node.table\n"},
    {"NCCL29", "run.sh", "#!/bin/sh\nexport NCCL_IGNORE_CPU_AFFINITY=1\nnumactl --cpunodebind=0 ./train\n",
     "#!/bin/sh\nexport NCCL_IGNORE_CPU_AFFINITY=1\n./train\n"},
    {"NCCL31", "run.sh", "#!/bin/sh\nexport NCCL_GRAPH_FILE=/etc/g.xml\ntorchrun t.py\n",
     "#!/bin/sh\nexport NCCL_GRAPH_FILE=/etc/g.xml\n./all_reduce_perf -g 8\n"},
    {"UCX04", "run.sh", "#!/bin/sh\nexport UCX_NET_DEVICES=mlx5_0:1\nsrun --ntasks-per-node=8 ./app\n",
     "#!/bin/sh\nexport UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1\nsrun --ntasks-per-node=8 ./app\n"},
    {"NCCL05", "a.env", "NCCL_PROTO=LL128\n", "NCCL_PROTO=^LL128\n"},
    {"NCCL12", "a.env", "NCCL_P2P_LEVEL=2\n", "NCCL_P2P_LEVEL=PXB\n"},
    {"NCCL18", "run.sh", "#!/bin/sh\nexport NCCL_DEBUG=INFO\ntorchrun t.py\n",
     "#!/bin/sh\nexport NCCL_DEBUG=WARN\ntorchrun t.py\n"},
    {"NCCL19", "a.env", "NCCL_BLOCKING_WAIT=1\n", "TORCH_NCCL_BLOCKING_WAIT=1\n"},
    {"NCCL20", "a.env", "LD_PRELOAD=/opt/libnccl.so.2\n", "LD_PRELOAD=/opt/libjemalloc.so\n"},
    {"NCCL21", "run.sh", "#!/bin/sh\nexport NCCL_BUFFSIZE=1\nexport NCCL_BUFFSIZE=2\n",
     "#!/bin/sh\nexport NCCL_BUFFSIZE=2\nexport NCCL_BUFFSIZE=2\n"},
    {"NCCL22", "a.env", "NCCL_GDR_FLUSH_DISABLE=1\n", "NCCL_GDR_FLUSH_DISABLE=0\n"},
    {"NCCL24", "a.env", "NCCL_NVLS_ENABLE=0\n", "NCCL_NVLS_ENABLE=1\n"},
    {"UCX02", "run.sh", "#!/bin/sh\nexport UCX_TLS=rc,sm\nmpirun -np 8 --gpus 8 ./app_cuda\n",
     "#!/bin/sh\nexport UCX_TLS=rc,sm,cuda\nmpirun -np 8 --gpus 8 ./app_cuda\n"},
    {"QOS05", "a.env", "NCCL_IB_TC=26\n", "NCCL_IB_TC=106\n"},
    {"IRQ01", "irq.sh", "#!/bin/sh\necho 0-3 > /proc/irq/40/smp_affinity\n",
     "#!/bin/sh\necho 0-3 > /proc/irq/40/smp_affinity_list\n"},
    {"IRQ02", "irq.sh", "#!/bin/sh\necho 1 > /proc/irq/*/smp_affinity\n",
     "#!/bin/sh\necho 0-7 > /proc/irq/40/smp_affinity_list\n"},
    {"RDMA07", "ib.sh", "#!/bin/sh\n# RDMA wants large packets\nip link set ib0 mtu 4092\n",
     "#!/bin/sh\n# IPoIB connected mode\nip link set ib0 mtu 65520\n"},
    {"CMD01", "a.sh", "#!/bin/sh\napt-get purge -y 'nvidia-*'\n",
     "#!/bin/sh\napt-get purge -y nvidia-settings\n"},
    {"CMD03", "a.sh", "#!/bin/sh\ncp libibverbs.so.1 /usr/lib/x86_64-linux-gnu/libibverbs.so.1\n",
     "#!/bin/sh\ncp libibverbs.so.1 $BUILD/lib/libibverbs.so.1\n"},
    {"CMD04", "a.sh", "#!/bin/sh\npython -m torch.distributed.launch t.py\n", "#!/bin/sh\ntorchrun t.py\n"},
    {"CMD06", "a.sh", "#!/bin/sh\nnsys profile --capture-range=nccl ./train\n",
     "#!/bin/sh\nnsys profile --capture-range=nvtx ./train\n"},
    {"MON02", "a.sh", "#!/bin/sh\nnvidia-smi nvlink -gt\n", "#!/bin/sh\nnvidia-smi nvlink -s\n"},
    {"BENCH01", "a.sh", "#!/bin/sh\n./all_reduce_perf -b 8 -e 1G -g 1\n",
     "#!/bin/sh\n./all_reduce_perf -b 8 -e 1G -g 8\n"},
    {"BENCH02", "a.sh", "#!/bin/sh\n./all_reduce_perf -g 8 | grep 'Avg bus bandwidth'\n",
     "#!/bin/sh\n./all_reduce_perf -g 8 | tail -n 3\n"},
};

INSTANTIATE_TEST_SUITE_P(Rules, Pairs, ::testing::ValuesIn(kPairs),
                         [](const auto& one) { return std::string(one.param.rule); });

}  // namespace
}  // namespace topotune::lint
