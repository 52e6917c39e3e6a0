#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::host {

// Answers `name` on the machine that this process runs on; the table is in probes.cc, one probe_<name>.cc
// each, the texts in docs/formats/probes.md. `sysroot` is "" or the folder that stands for "/" (recorded
// sysfs trees).
//   "nvml"         JSON; absent library: not_found, failed init: unsupported with its text
//   "cuda"         JSON: the CUDA driver's version and what NVML does not tell of a device
//   "hwloc"        hwloc XML of the machine, I/O objects included
//   "statvfs PATH" JSON: size, free bytes and type of a file system
//   "process"      JSON of this process: uid, CapEff, CPUs, limits (null = unlimited), hypervisor
//   "libraries"    JSON: NCCL, its plugins, CUDA, UCX libraries on the library path, with versions
//   "kernel_log"   lines of the kernel's log about GPUs, NICs, RDMA and PCIe
Result<std::string> run_probe(std::string_view name, std::string_view sysroot);

}  // namespace topotune::host
