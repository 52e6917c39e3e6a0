#include "parse/nvml_probe.h"

#include <array>

#include "base/bdf.h"
#include "parse/probe_json.h"

namespace topotune::parse {
namespace {

using model::Fact;
constexpr const char* kSource = "nvml";

template <class T>
Fact<T> fact(const ProbeJson& object, const char* key) {
  return fact_in<T>(object, key, kSource);
}
template <class T>
Fact<T> fact(const ProbeJson& object, const char* outer, const char* key) {
  return fact_in<T>(object, outer, key, kSource);
}

// A bus id as canonical address. In a VM the driver hides an NVSwitch's as "FFFFFFFF:FF:FF.0".
Fact<std::string> address(Fact<std::string> text) {
  if (!text) return text;
  const auto bdf = parse_bdf(*text);
  if (!bdf || bdf->domain == 0xffffffff)
    return Fact<std::string>::missing("no PCI address: " + *text, kSource);
  return Fact<std::string>::of(bdf->to_string(), kSource, *text);
}

NvmlLink link_of(const ProbeJson& json, int number) {
  NvmlLink out;
  out.number = number;
  out.active = fact<bool>(json, "active");
  out.gbytes_per_s = fact<double>(json, "gbytes_per_s");
  if (out.gbytes_per_s && (*out.gbytes_per_s <= 0 || *out.gbytes_per_s > 10000))
    out.gbytes_per_s = Fact<double>::missing("implausible speed", kSource);
  out.remote_type = fact<std::string>(json, "remote_type");
  out.remote_bdf = address(fact<std::string>(json, "remote_bus_id"));
  return out;
}

// The array below `key`; null where there is none (then `why` may say that the library refused).
const ProbeJson* array_in(const ProbeJson& object, const char* key) {
  const auto* const value = member(object, key);
  return value != nullptr && value->is_array() ? value : nullptr;
}

Result<void> read_links(const ProbeJson& json, NvmlGpu& out) {
  constexpr std::size_t kMaxLinks = 128;
  const auto* const links = array_in(json, "nvlinks");
  if (links == nullptr) return {};
  if (links->size() > kMaxLinks)
    return fail(Errc::too_large, "nvml: GPU {} has {} NVLinks", out.index, links->size());
  for (const auto& link : *links) {
    const auto number = fact<int>(link, "link");
    if (!number) continue;
    const auto refused = refusal_in(link);
    if (refused.empty())
      out.links.push_back(link_of(link, *number));
    else
      out.link_errors.push_back(fmt::format("link {}: {}", *number, refused));
  }
  return {};
}

Fact<int> element(const ProbeJson& json, const char* key, std::size_t i) {
  const auto* const list = array_in(json, key);
  if (list != nullptr && i < list->size() && (*list)[i].is_number_integer())
    if (const auto value = detail::convert<int>((*list)[i])) return Fact<int>::of(*value, kSource);
  const auto* const value = member(json, key);
  const auto refused = value == nullptr ? "not asked" : refusal_in(*value);
  return Fact<int>::missing(refused.empty() ? std::string("unexpected value of ") + key : refused, kSource);
}

void read_identity(const ProbeJson& json, NvmlGpu& out) {
  out.bdf = address(fact<std::string>(json, "pci", "bus_id"));
  out.vendor = fact<int>(json, "pci", "vendor");
  out.device = fact<int>(json, "pci", "device");
  out.subsystem_vendor = fact<int>(json, "pci", "subsystem_vendor");
  out.subsystem_device = fact<int>(json, "pci", "subsystem_device");
  out.name = fact<std::string>(json, "name");
  out.uuid = fact<std::string>(json, "uuid");
  out.vbios = fact<std::string>(json, "vbios");
  out.board_part = fact<std::string>(json, "board_part");
  out.capability_major = element(json, "compute_capability", 0);
  out.capability_minor = element(json, "compute_capability", 1);
  out.mig = fact<bool>(json, "mig", "current");
}

void read_buses(const ProbeJson& json, NvmlGpu& out) {
  out.pcie_gen = fact<int>(json, "pcie", "gen");
  out.pcie_gen_max = fact<int>(json, "pcie", "gen_max");
  out.pcie_width = fact<int>(json, "pcie", "width");
  out.pcie_width_max = fact<int>(json, "pcie", "width_max");
  out.pcie_replays = fact<std::uint64_t>(json, "pcie", "replays");
  out.bar1_bytes = fact<std::uint64_t>(json, "bar1", "total_bytes");
  out.memory_bytes = fact<std::uint64_t>(json, "memory", "total_bytes");
  out.c2c_active = fact<int>(json, "c2c", "active");
  out.c2c_gbytes_per_s = fact<double>(json, "c2c", "gbytes_per_s");
  out.nvlink_count = fact<int>(json, "nvlink_count");
}

void read_state(const ProbeJson& json, NvmlGpu& out) {
  out.fabric_state = fact<int>(json, "fabric", "state");
  out.fabric_status = fact<int>(json, "fabric", "status");
  out.fabric_clique = fact<std::uint64_t>(json, "fabric", "clique_id");
  out.cluster_uuid = fact<std::string>(json, "fabric", "cluster_uuid");
  out.fabric_health_mask = fact<std::uint64_t>(json, "fabric", "health_mask");
  out.utilisation = fact<int>(json, "utilisation");
  out.temperature_c = fact<double>(json, "temperature_c");
  out.power_w = fact<double>(json, "power_w");
  out.clock_event_reasons = fact<std::uint64_t>(json, "clock_event_reasons");
  out.persistence = fact<std::string>(json, "persistence");
  out.compute_mode = fact<std::string>(json, "compute_mode");
}

Result<NvmlGpu> gpu_of(const ProbeJson& json, int position) {
  NvmlGpu out;
  const auto index = fact<int>(json, "index");
  out.index = index ? *index : position;
  out.error = refusal_in(json);
  read_identity(json, out);
  read_buses(json, out);
  read_state(json, out);
  if (auto read = read_links(json, out); !read) return tl::unexpected(read.error());
  return out;
}

Result<void> read_gpus(const ProbeJson& json, NvmlProbe& out) {
  constexpr std::size_t kMaxGpus = 1024;
  const auto* const gpus = array_in(json, "gpus");
  if (gpus == nullptr) return {};
  if (gpus->size() > kMaxGpus) return fail(Errc::too_large, "nvml: {} GPUs", gpus->size());
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    auto gpu = gpu_of((*gpus)[i], static_cast<int>(i));
    if (!gpu) return tl::unexpected(gpu.error());
    out.gpus.push_back(std::move(*gpu));
  }
  return {};
}

std::optional<NvmlPair> pair_of(const ProbeJson& json) {
  const auto from = fact<int>(json, "from");
  const auto to = fact<int>(json, "to");
  if (!from || !to) return std::nullopt;
  NvmlPair out{*from, *to, {}, {}, {}, {}, {}, {}};
  out.read = fact<std::string>(json, "read");
  out.write = fact<std::string>(json, "write");
  out.nvlink = fact<std::string>(json, "nvlink");
  out.atomics = fact<std::string>(json, "atomics");
  out.prop = fact<std::string>(json, "prop");
  out.common_ancestor = fact<std::string>(json, "common_ancestor");
  return out;
}

Result<void> read_pairs(const ProbeJson& json, NvmlProbe& out) {
  constexpr std::size_t kMaxPairs = 1 << 20;
  const auto* const pairs = array_in(json, "p2p");
  if (pairs == nullptr) return {};
  if (pairs->size() > kMaxPairs) return fail(Errc::too_large, "nvml: {} pairs", pairs->size());
  for (const auto& entry : *pairs)
    if (auto pair = pair_of(entry)) out.pairs.push_back(std::move(*pair));
  return {};
}

}  // namespace

Result<NvmlProbe> parse_nvml_probe(std::string_view text) {
  const auto json = parse_probe_object(text, "nvml");
  if (!json) return tl::unexpected(json.error());
  const auto schema = fact<std::string>(*json, "schema");
  if (!schema || !schema->starts_with("topotune.probe.nvml/"))
    return fail(Errc::malformed, "nvml: schema is not topotune.probe.nvml/1");
  NvmlProbe out;
  out.driver_version = fact<std::string>(*json, "driver_version");
  out.nvml_version = fact<std::string>(*json, "nvml_version");
  out.cuda_driver_version = fact<std::string>(*json, "cuda_driver_version");
  out.confidential_compute = fact<std::string>(*json, "confidential_compute");
  out.gpu_count = fact<int>(*json, "gpu_count");
  if (auto read = read_gpus(*json, out); !read) return tl::unexpected(read.error());
  if (auto read = read_pairs(*json, out); !read) return tl::unexpected(read.error());
  return out;
}

std::optional<double> gts_of_generation(int generation) {
  constexpr std::array kSpeeds{2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  if (generation < 1 || generation > static_cast<int>(kSpeeds.size())) return std::nullopt;
  return kSpeeds[static_cast<std::size_t>(generation) - 1];
}

}  // namespace topotune::parse
