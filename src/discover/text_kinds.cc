#include "discover/text_kinds.h"

#include <algorithm>

#include "base/text.h"
#include "discover/merge_gpu.h"
#include "discover/merge_pci.h"
#include "discover/merge_rdma.h"
#include "discover/merge_system.h"
#include "parse/fabric_manager_log.h"
#include "parse/ibdev2netdev.h"
#include "parse/ibstat.h"
#include "parse/ibstatus.h"
#include "parse/ibv_devinfo.h"
#include "parse/ip_link.h"
#include "parse/kernel_log.h"
#include "parse/limits_conf.h"
#include "parse/line_reader.h"
#include "parse/lscpu.h"
#include "parse/lsmod.h"
#include "parse/lspci.h"
#include "parse/lspci_tree.h"
#include "parse/numactl.h"
#include "parse/nvidia_smi_nvlink.h"
#include "parse/nvidia_smi_p2p.h"
#include "parse/nvidia_smi_q.h"
#include "parse/nvidia_smi_table.h"
#include "parse/nvidia_smi_x.h"
#include "parse/port_counters.h"
#include "parse/port_qos.h"
#include "parse/rdma_link.h"
#include "parse/rocm_smi.h"
#include "parse/show_gids.h"
#include "parse/ulimit.h"
#include "parse/versions.h"

namespace topotune::discover {
namespace {

template <bool (*Test)(std::string_view)>
bool by_text(const Piece& piece) {
  return Test(piece.text);
}
template <bool (*Test)(std::string_view, std::string_view)>
bool by_text_and_command(const Piece& piece) {
  return Test(piece.text, piece.command);
}

constexpr TextKind kKinds[] = {
    {"nvidia-smi", by_text<parse::looks_like_nvidia_smi_table>, merge_nvidia_smi_table},
    {"nvidia-smi nvlink", by_text<parse::looks_like_nvidia_smi_nvlink>, merge_nvidia_smi_nvlink},
    {"nvidia-smi -q", by_text<parse::looks_like_nvidia_smi_q>, merge_nvidia_smi_q},
    {"nvidia-smi -q -x", by_text<parse::looks_like_nvidia_smi_x>, merge_nvidia_smi_x},
    {"nvidia-smi topo -p2p", by_text<parse::looks_like_nvidia_smi_p2p>, merge_nvidia_smi_p2p},
    {"rocm-smi", by_text<parse::looks_like_rocm_smi>, merge_rocm_smi},
    {"lspci", by_text<parse::looks_like_lspci>, merge_lspci},
    {"lspci -t", by_text<parse::looks_like_lspci_tree>, merge_lspci_tree},
    {"ibv_devinfo", by_text<parse::looks_like_ibv_devinfo>, merge_ibv_devinfo},
    {"ibstat", by_text<parse::looks_like_ibstat>, merge_ibstat},
    {"ibstatus", by_text<parse::looks_like_ibstatus>, merge_ibstatus},
    {"rdma link", by_text<parse::looks_like_rdma_link>, merge_rdma_link},
    {"ibdev2netdev", by_text<parse::looks_like_ibdev2netdev>, merge_ibdev2netdev},
    {"show_gids", by_text<parse::looks_like_show_gids>, merge_show_gids},
    {"ip link", by_text<parse::looks_like_ip_link>, merge_ip_link},
    {"mlnx_qos", by_text<parse::looks_like_port_qos>, merge_port_qos},
    {"port counters", by_text<parse::looks_like_port_counters>, merge_port_counters},
    {"numactl", by_text<parse::looks_like_numactl>, merge_numactl},
    {"lscpu", by_text<parse::looks_like_lscpu>, merge_lscpu},
    {"/proc/driver/nvidia/version", by_text<parse::looks_like_driver_version_file>, merge_nvidia_version},
    {"nvcc --version", by_text<parse::looks_like_nvcc>, merge_nvcc},
    {"uname", by_text_and_command<parse::looks_like_uname>, merge_uname},
    {"/proc/cmdline", by_text_and_command<parse::looks_like_kernel_command_line>, merge_kernel_command_line},
    {"/etc/os-release", by_text<parse::looks_like_os_release>, merge_os_release},
    {"ofed_info", by_text<parse::looks_like_ofed_info>, merge_ofed_info},
    {"kernel log", by_text<parse::looks_like_kernel_log>, merge_kernel_log},
    {"ulimit", by_text_and_command<parse::looks_like_ulimit>, merge_ulimit},
    {"limits.conf", by_text<parse::looks_like_limits_conf>, merge_limits_conf},
    {"fabric manager log", by_text<parse::looks_like_fabric_manager>, merge_fabric_manager},
    {"lsmod", by_text<parse::looks_like_lsmod>, merge_lsmod},
    {"df", by_text<parse::looks_like_df_shm>, merge_df_shm},
    {"kernel file", is_kernel_file, merge_kernel_file},
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::string_view kLogMarks[] = {"NCCL INFO",
                                          "NCCL WARN",
                                          "NCCL version",
                                          "NCCL TRACE",
                                          "RCCL version",
                                          "NET/OFI",
                                          "[send] via ",
                                          "UCX  ERROR",
                                          "UCX  WARN",
                                          "UCX  INFO",
                                          "UCX  DIAG",
                                          "ibv_create_cq(",
                                          "ibv_reg_mr(",
                                          "ibv_create_qp(",
                                          "ncclSystemError",
                                          "ncclInternalError",
                                          "ncclUnhandledCudaError",
                                          "ncclRemoteError",
                                          "# nccl-tests version",
                                          "# rccl-tests",
                                          "ncclras"};

constexpr std::string_view kVariablePrefixes[] = {"NCCL_",     "RCCL_", "UCX_",   "TORCH_NCCL_",
                                                  "OMPI_MCA_", "FI_",   "UCC_",   "HSA_",
                                                  "CUDA_",     "GLOO_", "MPICH_", "NVSHMEM_"};
constexpr std::string_view kConfigEndings[] = {".env",   ".conf",  ".sh",  ".bash",    ".sbatch",
                                               ".slurm", ".yaml",  ".yml", ".service", ".py",
                                               ".cfg",   ".rules", ".toml"};
constexpr std::string_view kConfigNames[] = {"Dockerfile", "nccl.conf",   ".nccl.conf",
                                             "ucx.conf",   "environment", "env"};

// The text before a variable that is being set: nothing, a keyword, a list mark or a launcher's option.
// Prose that mentions "NCCL_P2P_DISABLE=1" sets nothing.
bool introduces(std::string_view before) {
  while (before.ends_with('"') || before.ends_with('\'')) before.remove_suffix(1);
  before = trim(before);
  for (const std::string_view word :
       {"", "export", "declare -x", "setenv", "ENV", "env", "set", "-", "- name:", "name:", "-x", "-e",
        "--env", "Environment=", "environment:"}) {
    if (before == word) return true;
  }
  return before.ends_with(" -x") || before.ends_with(" -e") || before.ends_with(" --env") ||
         before.ends_with("genv");
}

// "NCCL_X=1", "export NCCL_X=1", "  NCCL_X: \"1\"", "ENV NCCL_X=1", "-x NCCL_X=1"
bool assigns_variable(std::string_view line) {
  for (const auto prefix : kVariablePrefixes) {
    const auto at = line.find(prefix);
    if (at == std::string_view::npos || !introduces(line.substr(0, at))) continue;
    auto rest = line.substr(at + prefix.size());
    std::size_t n = 0;
    while (n < rest.size() && (is_digit(rest[n]) || (rest[n] >= 'A' && rest[n] <= 'Z') || rest[n] == '_'))
      ++n;
    rest = rest.substr(n);
    if (n > 0 && (rest.starts_with("=") || rest.starts_with(":"))) return true;
  }
  return false;
}

}  // namespace

std::span<const TextKind> text_kinds() { return kKinds; }

bool is_communication_log(std::string_view text) {
  return std::ranges::any_of(kLogMarks, [&](std::string_view mark) { return has(text, mark); });
}

bool is_configuration_name(std::string_view name) {
  const auto slash = name.rfind('/');
  const auto file = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const auto ends = [&](std::string_view ending) { return file.ends_with(ending); };
  if (std::ranges::any_of(kConfigEndings, ends)) return true;
  return std::ranges::find(kConfigNames, file) != std::end(kConfigNames) || file.starts_with("Dockerfile");
}

bool sets_variables(std::string_view text) {
  for (parse::LineReader reader(text); reader.next();) {
    if (reader.line().size() < 4096 && assigns_variable(reader.line())) return true;
  }
  return false;
}

}  // namespace topotune::discover
