#include "parse/nvml_probe.h"

#include <nlohmann/json.hpp>

#include "base/bdf.h"
#include "base/text.h"

namespace topotune::parse {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxGpus = 1024;
constexpr std::size_t kMaxLinks = 64;

const Json kNothing;

const Json& member(const Json& object, const char* key) {
  if (!object.is_object()) return kNothing;
  const auto at = object.find(key);
  return at == object.end() ? kNothing : *at;
}

std::optional<std::string> text_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  return printable(value.get_ref<const std::string&>());
}

template <class T>
std::optional<T> number_of(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    return n <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()) ? std::optional(static_cast<T>(n))
                                                                          : std::nullopt;
  }
  const auto n = value.get<std::int64_t>();
  if (n < 0) return std::nullopt;
  return static_cast<std::uint64_t>(n) <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())
             ? std::optional(static_cast<T>(n))
             : std::nullopt;
}

std::optional<double> real_of(const Json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<bool> bool_of(const Json& value) {
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

// "00000000:1B:00.0" -> "0000:1b:00.0"; NVML's "FFFFFFFF:FF:FF.0" (hidden from a guest) -> nothing.
std::optional<std::string> address_of(const Json& value) {
  const auto text = text_of(value);
  if (!text || text->starts_with("FFFFFFFF") || text->starts_with("ffffffff")) return std::nullopt;
  const auto bdf = parse_bdf(*text);
  return bdf ? std::optional(bdf->to_string()) : std::nullopt;
}

NvmlLink link_of(const Json& json, int number) {
  NvmlLink link;
  link.link = number_of<int>(member(json, "link")).value_or(number);
  link.active = bool_of(member(json, "active"));
  link.gbytes_per_s = real_of(member(json, "gbytes_per_s"));
  link.remote_type = text_of(member(json, "remote_type")).value_or("");
  link.remote_bus_id = address_of(member(json, "remote_bus_id")).value_or("");
  for (const char* name : {"replay", "recovery", "crc_flit", "crc_data"})
    if (const auto count = number_of<std::uint64_t>(member(member(json, "errors"), name)))
      link.errors[name] = *count;
  return link;
}

// "fabric: Not Supported" for every answer that is an error object.
void collect_refusals(const Json& gpu, std::vector<std::string>& out) {
  for (const auto& [key, value] : gpu.items()) {
    if (const auto error = text_of(member(value, "error"))) out.push_back(printable(key) + ": " + *error);
  }
}

std::optional<int> sm_of(const Json& capability) {
  if (!capability.is_array() || capability.size() != 2) return std::nullopt;
  const auto major = number_of<int>(capability[0]);
  const auto minor = number_of<int>(capability[1]);
  return major && minor && *major < 100 && *minor < 10 ? std::optional(*major * 10 + *minor) : std::nullopt;
}

void read_pci(const Json& json, NvmlGpu& gpu) {
  const auto& pci = member(json, "pci");
  gpu.bus_id = address_of(member(pci, "bus_id"));
  gpu.vendor = number_of<std::uint16_t>(member(pci, "vendor"));
  gpu.device = number_of<std::uint16_t>(member(pci, "device"));
  gpu.subsystem_vendor = number_of<std::uint16_t>(member(pci, "subsystem_vendor"));
  gpu.subsystem_device = number_of<std::uint16_t>(member(pci, "subsystem_device"));
  const auto& pcie = member(json, "pcie");
  gpu.pcie_gen = number_of<int>(member(pcie, "gen"));
  gpu.pcie_gen_max = number_of<int>(member(pcie, "gen_max"));
  gpu.pcie_gen_device_max = number_of<int>(member(pcie, "gen_device_max"));
  gpu.pcie_width = number_of<int>(member(pcie, "width"));
  gpu.pcie_width_max = number_of<int>(member(pcie, "width_max"));
  gpu.pcie_replays = number_of<std::uint64_t>(member(pcie, "replays"));
}

void read_state(const Json& json, NvmlGpu& gpu) {
  gpu.bar1_bytes = number_of<std::uint64_t>(member(member(json, "bar1"), "total_bytes"));
  gpu.memory_bytes = number_of<std::uint64_t>(member(member(json, "memory"), "total_bytes"));
  gpu.clock_event_reasons = number_of<std::uint64_t>(member(json, "clock_event_reasons"));
  const auto& fabric = member(json, "fabric");
  gpu.fabric.state = number_of<int>(member(fabric, "state"));
  gpu.fabric.status = number_of<int>(member(fabric, "status"));
  if (const auto clique = number_of<std::uint32_t>(member(fabric, "clique_id")))
    gpu.fabric.clique_id = std::to_string(*clique);
  gpu.fabric.cluster_uuid = text_of(member(fabric, "cluster_uuid"));
  gpu.fabric.health_mask = number_of<std::uint32_t>(member(fabric, "health_mask"));
  gpu.utilisation = number_of<int>(member(json, "utilisation"));
  gpu.temperature_c = real_of(member(json, "temperature_c"));
  const auto& c2c = member(json, "c2c");
  gpu.c2c_links = number_of<int>(member(c2c, "active"));
  gpu.c2c_gbytes_per_s = real_of(member(c2c, "gbytes_per_s"));
}

NvmlGpu gpu_of(const Json& json, int number) {
  NvmlGpu gpu;
  gpu.index = number_of<int>(member(json, "index")).value_or(number);
  gpu.error = text_of(member(json, "error"));
  gpu.name = text_of(member(json, "name"));
  gpu.uuid = text_of(member(json, "uuid"));
  gpu.vbios = text_of(member(json, "vbios"));
  gpu.board_part = text_of(member(json, "board_part"));
  gpu.persistence = text_of(member(json, "persistence"));
  gpu.compute_mode = text_of(member(json, "compute_mode"));
  gpu.sm = sm_of(member(json, "compute_capability"));
  gpu.mig = bool_of(member(member(json, "mig"), "current"));
  gpu.nvlink_count = number_of<int>(member(json, "nvlink_count"));
  read_pci(json, gpu);
  read_state(json, gpu);
  const auto& links = member(json, "nvlinks");
  for (std::size_t i = 0; links.is_array() && i < std::min(links.size(), kMaxLinks); ++i)
    gpu.links.push_back(link_of(links[i], static_cast<int>(i)));
  if (json.is_object()) collect_refusals(json, gpu.refused);
  return gpu;
}

std::optional<NvmlPair> pair_of(const Json& json) {
  const auto from = number_of<int>(member(json, "from"));
  const auto to = number_of<int>(member(json, "to"));
  if (!from || !to) return std::nullopt;
  NvmlPair pair{*from, *to, {}};
  for (const char* capability : {"read", "write", "nvlink", "atomics", "prop"}) {
    if (const auto status = text_of(member(json, capability))) pair.status.emplace_back(capability, *status);
  }
  return pair;
}

}  // namespace

Result<NvmlProbe> parse_nvml_probe(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || member(json, "schema") != "topotune.probe.nvml/1")
    return fail(Errc::malformed, "the answer of the probe nvml is not topotune.probe.nvml/1");
  NvmlProbe out;
  out.driver_version = text_of(member(json, "driver_version"));
  out.nvml_version = text_of(member(json, "nvml_version"));
  out.cuda_driver_version = text_of(member(json, "cuda_driver_version"));
  out.confidential_compute = text_of(member(json, "confidential_compute"));
  out.gpu_count = number_of<int>(member(json, "gpu_count"));
  const auto& gpus = member(json, "gpus");
  for (std::size_t i = 0; gpus.is_array() && i < std::min(gpus.size(), kMaxGpus); ++i)
    out.gpus.push_back(gpu_of(gpus[i], static_cast<int>(i)));
  const auto& pairs = member(json, "p2p");
  for (std::size_t i = 0; pairs.is_array() && i < std::min(pairs.size(), kMaxGpus * kMaxGpus); ++i) {
    if (auto pair = pair_of(pairs[i])) out.p2p.push_back(std::move(*pair));
  }
  return out;
}

}  // namespace topotune::parse
