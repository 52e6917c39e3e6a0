#include "measure/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include "base/text.h"
#include "checks/known_gpus.h"
#include "data/embedded.h"
#include "model/paths.h"

namespace topotune::measure {

namespace {

bool fits(std::string_view pattern, std::string_view value) { return pattern == "*" || pattern == value; }

// "NVIDIA H200" is an H200; "NVIDIA H200 NVL" is another model.
bool is_model(std::string_view pattern, std::string_view name) {
  if (pattern == "*") return true;
  if (name.starts_with("NVIDIA ")) name.remove_prefix(7);
  return name == pattern;
}

std::string_view generation_of(double gts) {
  if (gts <= 8) return "pcie3";
  if (gts <= 16) return "pcie4";
  return gts <= 32 ? "pcie5" : "pcie6";
}

const model::PciDevice* pci_of(const model::Topology& topology, const model::Gpu& gpu) {
  return find_pci(topology, gpu.pci.empty() ? gpu.bdf.value_or("") : gpu.pci);
}

// One NVLink, one direction: what the driver said, else that of the model, else of its architecture.
std::optional<double> per_link_of(const model::Gpu& gpu) {
  if (!gpu.link_speeds.empty()) return gpu.link_speeds.begin()->second.value;
  for (const auto& group : gpu.links) {
    if (group.per_link) return group.per_link->value;
  }
  const auto* known = checks::known_gpu(gpu);
  if (known != nullptr && known->link_gbytes_per_s > 0) return known->link_gbytes_per_s;
  switch (gpu.sm.value_or(0) / 10) {
    case 7:
      return 25.781;
    case 8:
      return gpu.sm == 80 ? std::optional(25.0) : 14.062;
    case 9:
      return 26.562;
    case 10:
      return 53.125;
    default:
      return std::nullopt;
  }
}

constexpr double kWholeCopy = 512.0 * (1 << 20), kStartSeconds = 10e-6;

double seconds_of_start(std::size_t bytes) {
  return std::max(0.0, kStartSeconds * (1 - static_cast<double>(bytes) / kWholeCopy));
}

double slowed(double gbytes_per_s, std::size_t bytes, double seconds) {
  const auto size = static_cast<double>(bytes);
  return size / (size / gbytes_per_s + seconds * 1e9);
}

}  // namespace

ExpectedValues::ExpectedValues(const model::Topology& topology)
    : topology_(topology), paths_(paths_of(topology)) {}

std::optional<ExpectedValues::NvLinks> ExpectedValues::nvlinks_between(std::string_view a,
                                                                       std::string_view b) const {
  const auto* gpu = find_gpu(topology_, a);
  if (gpu == nullptr) return std::nullopt;
  const auto path = std::ranges::find_if(
      paths_, [&](const auto& p) { return (p.a == a && p.b == b) || (p.a == b && p.b == a); });
  const auto rate = per_link_of(*gpu);
  if (path == paths_.end() || path->type != model::PathType::nvl || !path->nvlinks || !rate)
    return std::nullopt;
  return NvLinks{*path->nvlinks, *rate};
}

std::optional<Efficiency> efficiency_of(int sm, std::string_view gpu_name, std::string_view medium,
                                        std::string_view op, std::string_view engine) {
  const auto rows = lines(data::efficiency_tsv());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto f = split(rows[i], '\t');
    if (f.size() < 9) continue;
    const auto row_sm = parse_int<int>(f[0]).value_or(0);
    if ((row_sm != 0 && row_sm != sm) || !is_model(f[1], gpu_name) || !fits(f[2], medium)) continue;
    if (!fits(f[3], op) || !fits(f[4], engine)) continue;
    return Efficiency{parse_double(f[5]).value_or(0), parse_double(f[6]).value_or(0), f[7] == "yes", f[8]};
  }
  return std::nullopt;
}

std::optional<model::Expected> ExpectedValues::p2p(std::string_view op, std::string_view engine,
                                                   std::string_view src, std::string_view dst,
                                                   std::size_t bytes) const {
  const auto* a = find_gpu(topology_, src);
  if (a == nullptr || find_gpu(topology_, dst) == nullptr) return std::nullopt;
  const auto link = nvlinks_between(src, dst);
  if (!link) return std::nullopt;
  const auto efficiency = efficiency_of(a->sm.value_or(0), a->name.value_or(""), "nvlink", op, engine);
  if (!efficiency) return std::nullopt;
  const double nominal = link->links * link->per_link;
  const double start = seconds_of_start(bytes);
  return model::Expected{
      slowed(nominal * efficiency->low, bytes, start), nominal * efficiency->high,
      fmt::format("{} links x {:g} GB/s x {:g}-{:g}{}{}", link->links, link->per_link, efficiency->low,
                  efficiency->high,
                  start > 0 ? fmt::format(", up to {:.1f} us more for a short copy", start * 1e6) : "",
                  efficiency->measured ? "" : " (wide: not measured)"),
      std::string(efficiency->source)};
}

std::optional<ExpectedValues::PcieRate> ExpectedValues::pcie_of(std::string_view id) const {
  const auto* gpu = find_gpu(topology_, id);
  if (gpu == nullptr) return std::nullopt;
  std::optional<PcieRate> least;
  const auto* device = pci_of(topology_, *gpu);
  for (int depth = 0; device != nullptr && depth < 32; ++depth) {
    // An idle link may be trained down to save power: the capable speed counts, the current width does.
    const auto gts = device->capable.gts ? device->capable.gts : device->current.gts;
    const auto width = device->current.width ? device->current.width : device->capable.width;
    if (const auto rate = model::bandwidth_of({gts, width}); rate && gts && width) {
      if (!least || rate->value < least->gbytes_per_s)
        least = PcieRate{rate->value, *gts, *width, fmt::format("PCIe {:g} GT/s x{}", *gts, *width)};
    }
    device = device->parent.empty() ? nullptr : find_pci(topology_, device->parent);
  }
  return least;
}

std::optional<model::Expected> ExpectedValues::host(std::string_view op, std::string_view id) const {
  const auto rate = pcie_of(id);
  const auto* gpu = find_gpu(topology_, id);
  if (!rate || gpu == nullptr) return std::nullopt;
  const auto efficiency =
      efficiency_of(gpu->sm.value_or(0), gpu->name.value_or(""), generation_of(rate->gts), op, "ce");
  if (!efficiency) return std::nullopt;
  return model::Expected{
      rate->gbytes_per_s * efficiency->low, rate->gbytes_per_s * efficiency->high,
      fmt::format("{} = {:.1f} GB/s x {:g}-{:g}{}", rate->why, rate->gbytes_per_s, efficiency->low,
                  efficiency->high, efficiency->measured ? "" : " (wide: not measured)"),
      std::string(efficiency->source)};
}

}  // namespace topotune::measure
