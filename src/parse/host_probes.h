#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpuset.h"
#include "base/result.h"
#include "model/machine.h"

namespace topotune::parse {

// The JSON texts of the small probes (docs/formats/probes.md) as values.

struct ProcessProbe {
  model::Fact<int> effective_uid;
  model::Fact<std::uint64_t> cap_effective;
  model::Fact<CpuSet> affinity;
  model::Fact<model::MemoryLimit> memlock, nofile;
  model::Fact<bool> hypervisor;
  model::Fact<std::string> hypervisor_vendor;  // "KVMKVMKVM"
};
Result<ProcessProbe> parse_process_probe(std::string_view text);

struct FileSystemProbe {
  model::Fact<std::uint64_t> bytes, free_bytes;
  model::Fact<std::string> type;
};
Result<FileSystemProbe> parse_statvfs_probe(std::string_view text);

struct LibraryEntry {
  std::string kind, path, version, cuda;  // "" unknown
};
Result<std::vector<LibraryEntry>> parse_libraries_probe(std::string_view text);

// "KVMKVMKVM" -> "KVM", "Microsoft Hv" -> "Hyper-V", "VMwareVMware" -> "VMware"; others stay as they are.
std::string hypervisor_name(std::string_view vendor);

}  // namespace topotune::parse
