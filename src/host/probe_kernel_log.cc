#include <sys/klog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/text.h"
#include "host/files.h"
#include "host/probe_list.h"

namespace topotune::host {

// Lines that say something of GPUs, NICs, PCIe or RDMA: other programs' messages do not belong into a
// capture.
static bool concerns_devices(std::string_view line) {
  constexpr std::array kWords{"NVRM",  "nvidia", "SXid",     "mlx5",   "mlx4", "infiniband", "rdma",   "PCIe",
                              "AER",   "pciehp", "DMAR",     "AMD-Vi", "efa ", "bnxt",       "amdgpu", "peer",
                              "irdma", "hfi1",   "pcieport", "BAR ",   "ice ", "xgmi",       "NVLink"};
  return std::ranges::any_of(kWords,
                             [&](const char* word) { return line.find(word) != std::string_view::npos; });
}

Result<std::string> probe_kernel_log(const ProbeQuestion&) {
  constexpr int kReadAll = 3,
                kBufferSize = 10;  // syslog(2): SYSLOG_ACTION_READ_ALL, SYSLOG_ACTION_SIZE_BUFFER
  constexpr std::size_t kMaxKept = 4 << 20;
  const int size = ::klogctl(kBufferSize, nullptr, 0);
  if (size < 0) return tl::unexpected(error_of(errno, "syslog(2)"));
  std::string log(static_cast<std::size_t>(std::clamp(size, 4096, 64 << 20)), '\0');
  const int read = ::klogctl(kReadAll, log.data(), static_cast<int>(log.size()));
  if (read < 0) return tl::unexpected(error_of(errno, "syslog(2)"));
  std::string out;
  for (const auto line : lines(std::string_view(log).substr(0, static_cast<std::size_t>(read))))
    if (concerns_devices(line) && out.size() + line.size() < kMaxKept) out += printable(line) + "\n";
  return out;
}

}  // namespace topotune::host
