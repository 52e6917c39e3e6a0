#include "checks/known_gpus.h"

#include <algorithm>

#include "base/text.h"
#include "data/embedded.h"

namespace topotune::checks {
namespace {

constexpr std::size_t kColumns = 13;
constexpr std::string_view kBrand = "NVIDIA ";

Wiring wiring_from(std::string_view word) {
  if (word == "none") return Wiring::none;
  if (word == "board") return Wiring::board;
  return word == "bridge" ? Wiring::bridge : Wiring::unknown;
}

int number(std::string_view cell) { return parse_int<int>(cell).value_or(0); }

KnownGpu row_of(const std::vector<std::string_view>& cells) {
  KnownGpu gpu;
  const auto ids = split(cells[0], ':');
  gpu.vendor = static_cast<std::uint16_t>(parse_hex(ids.front()).value_or(0));
  gpu.device = static_cast<std::uint16_t>(parse_hex(ids.back()).value_or(0));
  gpu.names = split(cells[1], '|');
  gpu.form = cells[2];
  gpu.sm = number(cells[3]);
  gpu.nvlinks = number(cells[4]);
  gpu.link_gbytes_per_s = parse_double(cells[5]).value_or(0);
  gpu.wiring = wiring_from(cells[6]);
  gpu.links_per_bridge = number(cells[7]);
  gpu.pcie_gen = number(cells[8]);
  gpu.data_centre = cells[9] == "yes";
  gpu.gdr = cells[10] == "yes";
  return gpu;
}

std::vector<KnownGpu> parse_gpus(std::string_view tsv) {
  std::vector<KnownGpu> rows;
  for (const auto line : split(tsv, '\n')) {
    const auto cells = split(line, '\t');
    if (cells.size() == kColumns && cells[0] != "pci_id") rows.push_back(row_of(cells));
  }
  return rows;
}

std::string_view without_brand(std::string_view name) {
  name = trim(name);
  return name.starts_with(kBrand) ? name.substr(kBrand.size()) : name;
}

}  // namespace

std::span<const KnownGpu> known_gpus() {
  static const std::vector<KnownGpu> rows = parse_gpus(data::gpus_tsv());
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
