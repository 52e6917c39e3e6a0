#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::host {

// Answers `name` on the machine that this process runs on; the visible table is in probes.cc, one
// probe_<name>.cc each. `sysroot` is "" or the folder that stands for "/" (recorded sysfs trees).
//   "nvml"            JSON, docs/formats/probe-nvml.md; absent library: not_found; failed init: unsupported
//   with its text "cuda"            JSON: driver's CUDA version, per device attributes that NVML does not
//   tell "hwloc"           hwloc XML of the machine, I/O objects included "statvfs PATH"    JSON
//   {"bytes":…,"free_bytes":…,"type":"tmpfs"} "process"         JSON of this process: uid, CapEff, affinity
//   list, rlimits (memlock, nofile; null = unlimited), hypervisor "libraries"       JSON: libnccl, plugins,
//   libcudart, libucp, libcuda found on the library path, with versions
Result<std::string> run_probe(std::string_view name, std::string_view sysroot);

}  // namespace topotune::host
