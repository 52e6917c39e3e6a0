// Why GPU memory is not registered or not reached. Kernel: Documentation/driver-api/dma-buf.rst,
// drivers/infiniband/core/umem_dmabuf.c (EOPNOTSUPP from drivers without reg_user_mr_dmabuf), ib_umem_get
// (memlock, EFAULT for addresses that are no process memory); nvidia-peermem: README of the NVIDIA driver;
// CUDA driver API: cuMemGetHandleForAddressRange.
#include "gdr/remedy.h"

#include <cerrno>

namespace topotune::gdr {

namespace {

bool has_peermem(const model::Machine& machine) {
  if (machine.peermem.known()) return true;
  return machine.modules.known() && machine.modules->contains("nvidia_peermem");
}

bool limited(const model::Machine& machine) {
  return machine.memlock.known() && machine.memlock->soft.has_value() && *machine.memlock->soft < (1u << 26);
}

std::string memory_is_short(bool gpu_memory, const model::Machine& machine) {
  if (limited(machine)) return "raise the limit of locked memory: ulimit -l unlimited (KERN01)";
  return gpu_memory
             ? "free BAR1 space: nvidia-smi -q -d MEMORY shows it; end other processes that registered memory"
             : "ulimit -l unlimited (KERN01), or fewer registrations";
}

std::string export_remedy(const model::Machine& machine) {
  if (machine.kernel.known() && machine.nvidia_open_kernel_module.known() &&
      !*machine.nvidia_open_kernel_module)
    return "DMA-BUF needs the driver's open kernel modules (nvidia-open); or modprobe nvidia-peermem (GDR01)";
  return "DMA-BUF needs Linux 5.12, driver 515 with its open kernel modules, and CUDA 11.7; or modprobe "
         "nvidia-peermem (GDR01)";
}

std::string peermem_remedy(const Fault& fault, const model::Machine& machine) {
  if (fault.number == ENOMEM) return memory_is_short(true, machine);
  if (!has_peermem(machine))
    return "no path by DMA-BUF, and nvidia-peermem is not loaded: modprobe nvidia-peermem (GDR01)";
  return "nvidia-peermem is loaded but did not take the memory: it was built for other RDMA modules; reload "
         "it after "
         "them, or reinstall the driver after the OFED (GDR02)";
}

// Statuses of enum ibv_wc_status.
std::string completion_remedy(const Fault& fault, bool gpu_memory) {
  constexpr int kLocalProtection = 4, kRemoteAccess = 10, kRetries = 12, kRnr = 13;
  switch (fault.number) {
    case kLocalProtection:
    case kRemoteAccess:
      return gpu_memory
                 ? "the NIC does not reach the GPU's memory: ACS or the IOMMU redirects peer-to-peer traffic "
                   "(ACS01, ACS03)"
                 : "the registration does not cover the access: a fault of the provider library";
    case kRetries:
    case kRnr:
      return "nothing answered: another network or VLAN, a wrong GID, or packets to an own address that the "
             "kernel "
             "loops back (RDMA09)";
    case ETIMEDOUT:
      return gpu_memory ? "the transfer hangs: ACS or the IOMMU on the path to the GPU (ACS01); dmesg tells "
                          "IOMMU faults"
                        : "the transfer hangs: port state and cable (RDMA02), pause frames";
    default:
      return "rdma statistic and dmesg tell more";
  }
}

std::string connect_remedy(const Fault& fault) {
  if (fault.number == ETIMEDOUT || fault.number == EHOSTUNREACH || fault.number == ENETUNREACH)
    return "the other port's address is not reached from this one: they are in different networks";
  return "check the GID (show_gids; RDMA09) and that both ports have one link layer (RDMA08)";
}

std::string device_remedy(const Fault& fault) {
  switch (fault.number) {
    case ENOSYS:
    case ENOENT:
      return "the kernel has no RDMA: modprobe ib_uverbs and the NIC's module; in a container pass "
             "/dev/infiniband";
    case EACCES:
    case EPERM:
      return "no right to /dev/infiniband/uverbs*: run as root or give the device to the group or container";
    default:
      return "ibv_devinfo shows what libibverbs can open; ibverbs-providers must be installed";
  }
}

}  // namespace

std::string remedy_for(const Fault& fault, bool gpu_memory, const model::Machine& machine) {
  if (fault.step == "devices" || fault.step == "open") return device_remedy(fault);
  if (fault.step == "dma-buf export") return export_remedy(machine);
  if (fault.step == "ibv_reg_dmabuf_mr") {
    if (fault.number == ENOMEM) return memory_is_short(gpu_memory, machine);
    return "the NIC's driver takes no DMA-BUF: Linux 5.12 with mlx5, or a newer OFED; or modprobe "
           "nvidia-peermem "
           "(GDR01)";
  }
  if (fault.step == "ibv_reg_mr")
    return gpu_memory ? peermem_remedy(fault, machine) : memory_is_short(false, machine);
  if (fault.step == "queue pair" && fault.number == ENOMEM) return memory_is_short(false, machine);
  if (fault.step == "connect") return connect_remedy(fault);
  if (fault.step == "completion") return completion_remedy(fault, gpu_memory);
  if (fault.step == "GPU memory") return "free memory of the GPU: nvidia-smi";
  return "rdma statistic and dmesg tell more";
}

}  // namespace topotune::gdr
