#include "checks/known_gpus.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "data/embedded.h"

namespace topotune::checks {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kBrand = "NVIDIA ";

Wiring wiring_from(std::string_view word) {
  if (word == "none") return Wiring::none;
  if (word == "board") return Wiring::board;
  return word == "bridge" ? Wiring::bridge : Wiring::unknown;
}

// Texts of the files, for as long as the program runs.
std::string_view kept(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

template <class T>
std::optional<T> number_of(const Json& json, const char* key) {
  const auto at = json.find(key);
  return at != json.end() && at->is_number() ? std::optional(at->get<T>()) : std::nullopt;
}

std::vector<std::string_view> names_of(const Json& json) {
  std::vector<std::string_view> out;
  for (const auto& name : json.value("names", Json::array())) out.push_back(kept(name.get<std::string>()));
  return out;
}

// "ids" of the file's table of sources: "URL (date)".
std::vector<std::string_view> sources_of(const Json& json, const Json& table) {
  std::vector<std::string_view> out;
  for (const auto& key : json.value("sources", Json::array())) {
    const auto& source = table.at(key.get<std::string>());
    out.push_back(kept(source.value("url", "") + " (" + source.value("date", "") + ")"));
  }
  return out;
}

KnownGpu gpu_of(const Json& json, const Json& sources) {
  KnownGpu gpu;
  const std::string id = json.value("pci_id", "");
  const auto ids = split(id, ':');
  gpu.vendor = static_cast<std::uint16_t>(parse_hex(ids.front()).value_or(0));
  gpu.device = static_cast<std::uint16_t>(parse_hex(ids.back()).value_or(0));
  gpu.names = names_of(json);
  gpu.form = kept(json.value("form", ""));
  gpu.sm = number_of<int>(json, "sm").value_or(0);
  gpu.nvlinks = number_of<int>(json, "nvlinks");
  gpu.link_gbytes_per_s = number_of<double>(json, "link_gbytes_per_s").value_or(0);
  gpu.wiring = wiring_from(json.value("wiring", ""));
  gpu.links_per_bridge = number_of<int>(json, "links_per_bridge").value_or(0);
  gpu.pcie_gen = number_of<int>(json, "pcie_gen").value_or(0);
  gpu.data_centre = json.value("data_centre", false);
  gpu.gdr = json.value("gpudirect_rdma", false);
  gpu.sources = sources_of(json, sources);
  return gpu;
}

// The files are part of the program: a test reads each of them.
std::vector<KnownGpu> read_machines() {
  std::vector<KnownGpu> out;
  for (const auto text : data::machine_files()) {
    const auto file = Json::parse(text, nullptr, false);
    if (!file.is_object()) continue;
    for (const auto& gpu : file.at("gpus")) out.push_back(gpu_of(gpu, file.at("sources")));
  }
  return out;
}

std::string_view without_brand(std::string_view name) {
  name = trim(name);
  return name.starts_with(kBrand) ? name.substr(kBrand.size()) : name;
}

}  // namespace

std::span<const KnownGpu> known_gpus() {
  static const std::vector<KnownGpu> rows = read_machines();
  return rows;
}

const KnownGpu* known_gpu(const model::Gpu& gpu) {
  const auto rows = known_gpus();
  auto found = rows.end();
  if (gpu.pci_vendor && gpu.pci_device) {
    found = std::ranges::find_if(
        rows, [&](const KnownGpu& k) { return k.vendor == *gpu.pci_vendor && k.device == *gpu.pci_device; });
  } else if (gpu.name) {
    const auto name = without_brand(*gpu.name);
    found = std::ranges::find_if(
        rows, [&](const KnownGpu& k) { return std::ranges::find(k.names, name) != k.names.end(); });
  }
  return found == rows.end() ? nullptr : &*found;
}

std::optional<bool> same_model(const model::Gpu& a, const model::Gpu& b) {
  if (a.pci_vendor && b.pci_vendor && a.pci_device && b.pci_device)
    return a.pci_vendor == b.pci_vendor && a.pci_device == b.pci_device;
  if (a.name && b.name) return without_brand(*a.name) == without_brand(*b.name);
  return std::nullopt;
}

}  // namespace topotune::checks
