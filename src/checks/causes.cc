#include "checks/causes.h"

#include <algorithm>
#include <array>

namespace topotune::checks {

namespace {

constexpr std::array kLinks = {
    CauseLink{"LOG01", "GDR01", "without a kernel path for GPU memory NCCL copies through the host"},
    CauseLink{"LOG01", "GDR02", "the peer-memory module is not registered with the RDMA core"},
    CauseLink{"LOG01", "GDR03", "this NCCL does not look where the module announces itself"},
    CauseLink{"LOG01", "GDR04", "the NIC is farther from the GPU than GPUDirect is allowed to reach"},
    CauseLink{"LOG01", "NCCL13", "the GPUDirect level excludes the path"},
    CauseLink{"LOG02", "GDR01", "one side has no kernel path for GPU memory"},
    CauseLink{"LOG02", "FLEET03", "the module is missing on some nodes only"},
    CauseLink{"FLEET03", "GDR01", "that node has no kernel path for GPU memory"},
    CauseLink{"GDR05", "ACS01", "peer traffic is sent up to the root complex"},
    CauseLink{"GDR05", "PCIE01", "the link has fewer lanes than it could"},
    CauseLink{"GDR05", "PCIE02", "the link runs below its speed"},
    CauseLink{"GDR05", "ACS02", "without ATS a VM's peer traffic goes through the IOMMU"},
    CauseLink{"GDR06", "GDR01", "there is no kernel path for GPU memory"},
    CauseLink{"GDR06", "KERN01", "GPU memory cannot be pinned beyond the limit"},
    CauseLink{"LOG03", "LOG04", "the verbs library could not be loaded"},
    CauseLink{"LOG03", "CONT05", "the RDMA devices are not in the container"},
    CauseLink{"LOG03", "RDMA03", "no port is active"},
    CauseLink{"LOG03", "NCCL11", "a variable switches RDMA off"},
    CauseLink{"LOG03", "RDMA12", "EFA has no libfabric provider"},
    CauseLink{"LOG03", "RDMA01", "the NIC is bound to a user-space driver"},
    CauseLink{"LOG05", "NCCL02", "P2P is switched off by a variable"},
    CauseLink{"LOG05", "GPU02", "the driver refuses P2P"},
    CauseLink{"LOG05", "NVL07", "the GPU is not in the NVSwitch fabric"},
    CauseLink{"LOG05", "NVL02", "the GPU has dropped out of the NVLink fabric"},
    CauseLink{"LOG05", "NVL13", "MIG has no P2P"},
    CauseLink{"LOG05", "CONT07", "the ranks do not know that they share a host"},
    CauseLink{"LOG06", "NCCL02", "the variable takes P2P and with it NVLink away"},
    CauseLink{"LOG06", "NCCL11", "the variable takes RDMA away"},
    CauseLink{"LOG07", "RDMA02", "a port on the way is down"},
    CauseLink{"LOG07", "CTR04", "packets are lost and sent again"},
    CauseLink{"LOG07", "QOS02", "nothing protects RoCE from loss"},
    CauseLink{"LOG08", "CONT01", "/dev/shm of the container is too small"},
    CauseLink{"LOG08", "KERN04", "dead jobs left their shared memory behind"},
    CauseLink{"LOG09", "KERN01", "the locked-memory limit is too small"},
    CauseLink{"LOG10", "NCCL08", "the GID chosen is not usable"},
    CauseLink{"LOG10", "RDMA09", "the port has no routable RoCE v2 address"},
    CauseLink{"LOG10", "NCCL07", "the GID index is pinned"},
    CauseLink{"NCCL08", "NCCL07", "the GID index is pinned"},
    CauseLink{"NCCL08", "CONT06", "the pod's GID table begins elsewhere"},
    CauseLink{"LOG15", "TOPO10", "the file gives a switch too little bandwidth"},
    CauseLink{"LOG16", "TOPO09", "NCCL does not know the link speed's words"},
    CauseLink{"LOG17", "NCCL17", "the bootstrap interface is the wrong one"},
    CauseLink{"LOG18", "NCCL28", "the plugin asked for cannot be found"},
    CauseLink{"LOG18", "RDMA12", "EFA has no libfabric provider"},
    CauseLink{"LOG19", "RDMA02", "a rail port is down"},
    CauseLink{"LOG19", "NCCL10", "NCCL_IB_HCA leaves rails out"},
    CauseLink{"NVL07", "NVL08", "the fabric manager does not run or does not fit the driver"},
    CauseLink{"NVL12", "NVL08", "the fabric manager does not run or does not fit the driver"},
    CauseLink{"NVL12", "NVL07", "the GPU has to be reset to join the fabric again"},
    CauseLink{"NVL14", "NVL07", "multicast needs the fabric"},
    CauseLink{"NVL02", "NVL01", "all its links are down"},
    CauseLink{"NVL02", "GPU03", "the kernel log says that this GPU has failed"},
    CauseLink{"NVL01", "GPU03", "the kernel log names the error"},
    CauseLink{"NVL15", "GPU02", "the driver refuses P2P"},
    CauseLink{"GPU01", "PCIE06", "the device has fallen off the bus"},
    CauseLink{"GPU01", "GPU03", "the kernel log names the error"},
    CauseLink{"NUMA02", "CONT02", "the cgroup gives the job no CPU near the GPU"},
    CauseLink{"NUMA02", "NUMA03", "all ranks are bound to one node"},
    CauseLink{"PCIE02", "PCIE04", "a bridge above is the bottleneck"},
    CauseLink{"RDMA04", "PCIE04", "a bridge above is the bottleneck"},
    CauseLink{"FLEET02", "GPU01", "the driver does not see a GPU of that node"},
    CauseLink{"FLEET02", "NVL01", "NVLinks of that node are down"},
    CauseLink{"FLEET02", "RDMA02", "a port of that node is down"},
    CauseLink{"TOPO05", "TOPO04", "the masks overlap"},
    CauseLink{"VER04", "VER01", "the driver is too old for this CUDA"},
};

}  // namespace

const CauseLink* cause_table(std::size_t& count) {
  count = kLinks.size();
  return kLinks.data();
}

void join_causes(model::Diagnosis& diagnosis) {
  const auto found = [&](const char* rule) {
    return std::ranges::find(diagnosis.findings, rule, &model::Finding::rule) != diagnosis.findings.end();
  };
  for (auto& finding : diagnosis.findings) {
    for (const auto& link : kLinks) {
      if (finding.rule == link.effect && found(link.cause) &&
          std::ranges::count(finding.because, link.cause) == 0)
        finding.because.emplace_back(link.cause);
    }
  }
}

void nothing_checked(model::Diagnosis& diagnosis, const std::string& why) {
  for (auto& rule : diagnosis.checked) diagnosis.not_checked.push_back({std::move(rule), why});
  diagnosis.checked.clear();
  std::ranges::stable_sort(diagnosis.not_checked, {}, &model::NotChecked::rule);
}

}  // namespace topotune::checks
