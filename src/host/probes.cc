#include "host/probes.h"

#include <array>

#include "base/text.h"
#include "host/probe_list.h"

namespace topotune::host {
namespace {

struct Probe {
  std::string_view name;
  Result<std::string> (*answer)(const ProbeQuestion&);
  bool of_folder;  // also answers for a folder that stands for "/"
};

constexpr std::array kProbes{
    Probe{"nvml", probe_nvml, false},
    Probe{"cuda", probe_cuda, false},
    Probe{"hwloc", probe_hwloc, true},
    Probe{"statvfs", probe_statvfs, false},
    Probe{"process", probe_process, false},
    Probe{"libraries", probe_libraries, true},
    Probe{"kernel_log", probe_kernel_log, false},
};

}  // namespace

Result<std::string> run_probe(std::string_view name, std::string_view sysroot) {
  const auto blank = name.find(' ');
  const auto word = name.substr(0, blank);
  const auto argument = blank == std::string_view::npos ? std::string_view() : trim(name.substr(blank + 1));
  for (const auto& probe : kProbes) {
    if (probe.name != word) continue;
    if (!sysroot.empty() && !probe.of_folder)
      return fail(Errc::unsupported, "{}: a folder does not answer it", name);
    return probe.answer({std::string(argument), std::string(sysroot)});
  }
  return fail(Errc::unsupported, "{}: no such probe", printable(name));
}

}  // namespace topotune::host
