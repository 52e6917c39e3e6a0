#pragma once

#include <string>

#include "base/result.h"

namespace topotune::host {

struct ProbeQuestion {
  std::string argument;  // behind the probe's name: "statvfs /dev/shm"
  std::string sysroot;   // "" or the folder that stands for "/"
};

// One probe_<name>.cc each; what they answer stands in probes.h.
Result<std::string> probe_nvml(const ProbeQuestion& question);
Result<std::string> probe_cuda(const ProbeQuestion& question);
Result<std::string> probe_hwloc(const ProbeQuestion& question);
Result<std::string> probe_statvfs(const ProbeQuestion& question);
Result<std::string> probe_process(const ProbeQuestion& question);
Result<std::string> probe_libraries(const ProbeQuestion& question);
Result<std::string> probe_kernel_log(const ProbeQuestion& question);

}  // namespace topotune::host
