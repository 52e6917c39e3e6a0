#include "parse/host_probes.h"

#include <array>
#include <utility>

#include "parse/probe_json.h"

namespace topotune::parse {
namespace {

using model::Fact;
constexpr const char* kProcess = "this process";

// A limit: a number, or null for unlimited. False for anything else.
bool read_limit(const ProbeJson& object, const char* key, std::optional<std::uint64_t>& out) {
  const auto* const value = member(object, key);
  if (value == nullptr) return false;
  if (value->is_null()) return true;
  out = detail::convert<std::uint64_t>(*value);
  return out.has_value();
}

Fact<model::MemoryLimit> limit(const ProbeJson& json, const char* key) {
  using Limit = Fact<model::MemoryLimit>;
  const auto* const value = member(json, key);
  if (value == nullptr) return Limit::missing("not asked", kProcess);
  model::MemoryLimit out;
  if (read_limit(*value, "soft", out.soft) && read_limit(*value, "hard", out.hard))
    return Limit::of(out, kProcess, value->dump());
  const auto refused = refusal_in(*value);
  return Limit::missing(refused.empty() ? std::string("unexpected value of ") + key : refused, kProcess);
}

// A fact whose text is turned into another type; a text that does not convert has no value.
template <class T, class Convert>
Fact<T> convert(const Fact<std::string>& text, Convert&& read) {
  if (!text) return Fact<T>::missing(text.why, text.source);
  if (auto value = read(*text)) return Fact<T>::of(static_cast<T>(std::move(*value)), text.source, *text);
  return Fact<T>::missing("not understood: " + *text, text.source);
}

}  // namespace

Result<ProcessProbe> parse_process_probe(std::string_view text) {
  const auto json = parse_probe_object(text, "process");
  if (!json) return tl::unexpected(json.error());
  ProcessProbe out;
  out.effective_uid = fact_in<int>(*json, "euid", kProcess);
  out.cap_effective =
      convert<std::uint64_t>(fact_in<std::string>(*json, "cap_effective", kProcess), parse_hex);
  out.affinity = convert<CpuSet>(fact_in<std::string>(*json, "affinity", kProcess), parse_cpu_list);
  out.memlock = limit(*json, "memlock");
  out.nofile = limit(*json, "nofile");
  out.hypervisor = fact_in<bool>(*json, "hypervisor", "cpuid");
  out.hypervisor_vendor = fact_in<std::string>(*json, "hypervisor_vendor", "cpuid");
  return out;
}

Result<FileSystemProbe> parse_statvfs_probe(std::string_view text) {
  const auto json = parse_probe_object(text, "statvfs");
  if (!json) return tl::unexpected(json.error());
  FileSystemProbe out;
  out.bytes = fact_in<std::uint64_t>(*json, "bytes", "statvfs");
  out.free_bytes = fact_in<std::uint64_t>(*json, "free_bytes", "statvfs");
  out.type = fact_in<std::string>(*json, "type", "statvfs");
  return out;
}

Result<std::vector<LibraryEntry>> parse_libraries_probe(std::string_view text) {
  constexpr std::size_t kMaxLibraries = 4096;
  const auto json = parse_probe_object(text, "libraries");
  if (!json) return tl::unexpected(json.error());
  const auto* const list = member(*json, "libraries");
  if (list == nullptr || !list->is_array()) return fail(Errc::malformed, "libraries: no list of libraries");
  if (list->size() > kMaxLibraries) return fail(Errc::too_large, "libraries: {} entries", list->size());
  std::vector<LibraryEntry> out;
  const auto text_of = [](const ProbeJson& entry, const char* key) {
    return fact_in<std::string>(entry, key, "libraries").value.value_or("");
  };
  for (const auto& entry : *list)
    out.push_back(
        {text_of(entry, "kind"), text_of(entry, "path"), text_of(entry, "version"), text_of(entry, "cuda")});
  return out;
}

std::string hypervisor_name(std::string_view vendor) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kNames{{{"KVMKVMKVM", "KVM"},
                                                                            {"Microsoft Hv", "Hyper-V"},
                                                                            {"VMwareVMware", "VMware"},
                                                                            {"XenVMMXenVMM", "Xen"},
                                                                            {"TCGTCGTCGTCG", "QEMU"},
                                                                            {"ACRNACRNACRN", "ACRN"}}};
  for (const auto& [text, name] : kNames)
    if (vendor == text) return name;
  return printable(vendor);
}

}  // namespace topotune::parse
