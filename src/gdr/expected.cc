#include "gdr/expected.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/paths.h"
#include "model/tree.h"

namespace topotune::gdr {

namespace {

struct Limit {
  double gbytes_per_s = 0;
  std::string why;
};

const model::Nic* nic_of(const model::Topology& topology, const std::string& device) {
  const auto found = std::ranges::find(topology.nics, std::optional(device), &model::Nic::name);
  return found == topology.nics.end() ? nullptr : &*found;
}

// The narrowest link between a device and its host bridge, as it runs now.
std::optional<Limit> narrowest(const model::Route& route, const std::string& name) {
  std::optional<Limit> out;
  const auto consider = [&](const model::PciDevice& device) {
    const auto rate = model::bandwidth_of(device.current);
    if (!rate || (out && out->gbytes_per_s <= rate->value)) return;
    out = Limit{rate->value,
                fmt::format("{} PCIe {:g} GT/s x{} = {:.1f} GB/s", name, device.current.gts.value_or(0),
                            device.current.width.value_or(0), rate->value)};
  };
  if (route.device == nullptr) return out;
  consider(*route.device);
  for (const auto* bridge : route.up) consider(*bridge);
  return out;
}

}  // namespace

std::optional<model::PathType> class_of(const model::Topology& topology, const std::string& device,
                                        const std::string& gpu) {
  const auto* nic = nic_of(topology, device);
  if (nic == nullptr) return std::nullopt;
  for (const auto& path : model::paths_of(topology))
    if ((path.a == gpu && path.b == nic->id) || (path.a == nic->id && path.b == gpu)) return path.type;
  return std::nullopt;
}

std::optional<model::Expected> expected_of(const model::Topology& topology, const Way& way) {
  const model::PciTree tree(topology);
  std::vector<Limit> limits;
  for (const auto* port : {&way.from, &way.to}) {
    if (port->software.value_or(false) || !port->gbits_per_s) return std::nullopt;
    limits.push_back({*port->gbits_per_s / 8, fmt::format("{} {:g} Gb/s", port->device, *port->gbits_per_s)});
    const auto* nic = nic_of(topology, port->device);
    if (nic == nullptr) return std::nullopt;
    if (auto link = narrowest(tree.route_to(*nic), port->device)) limits.push_back(std::move(*link));
    if (way.gpu.empty()) continue;
    const auto type = class_of(topology, port->device, way.gpu);
    if (type != model::PathType::pix && type != model::PathType::pxb) return std::nullopt;
    const auto* gpu = model::find_gpu(topology, way.gpu);
    if (auto link = narrowest(tree.route_to(*gpu), way.gpu)) limits.push_back(std::move(*link));
  }
  const auto& least = *std::ranges::min_element(limits, {}, &Limit::gbytes_per_s);
  return model::Expected{0.7 * least.gbytes_per_s, least.gbytes_per_s, least.why + " x 0.70-1.00",
                         "rule GDR05: under 70 % counts"};
}

}  // namespace topotune::gdr
