#include "model/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>

#include "model/fabric.h"
#include "model/tree.h"

namespace topotune::model {

namespace {

// A GPU or a NIC in document order.
struct Device {
  std::string_view id;
  Route route;
  std::vector<const PciDevice*> nccl;  // the route's bridges as NCCL keeps them
  std::optional<std::size_t> gpu;      // place in Topology::gpus
};

std::vector<Device> devices_of(const Topology& topology, const PciTree& tree) {
  std::vector<Device> out;
  const auto add = [&](std::string_view id, Route route, std::optional<std::size_t> gpu) {
    auto chain = nccl_chain(route, topology.nccl_classes);
    out.push_back({id, std::move(route), std::move(chain), gpu});
  };
  for (std::size_t i = 0; i < topology.gpus.size() && out.size() < kMaxPathDevices; ++i)
    add(topology.gpus[i].id, tree.route_to(topology.gpus[i]), i);
  for (std::size_t i = 0; i < topology.nics.size() && out.size() < kMaxPathDevices; ++i)
    add(topology.nics[i].id, tree.route_to(topology.nics[i]), std::nullopt);
  return out;
}

// "host1" of "host1/cpu0"; "" is the machine itself.
std::string_view host_of(std::string_view root) {
  const auto slash = root.find('/');
  return slash == std::string_view::npos ? std::string_view() : root.substr(0, slash);
}

// Two devices that share no bridge.
std::optional<PathType> across(const Topology& topology, const Route& a, const Route& b) {
  if (topology.nccl_classes) {
    if (a.root.empty() || b.root.empty() || host_of(a.root) != host_of(b.root)) return std::nullopt;
    return a.root == b.root ? PathType::phb : PathType::sys;
  }
  if (a.device == nullptr || b.device == nullptr) return std::nullopt;
  const bool roots = !a.root.empty() && !b.root.empty();
  if (roots && a.root == b.root) return PathType::phb;
  if (a.numa && b.numa && *a.numa != *b.numa) return PathType::sys;
  if (!roots) return std::nullopt;
  if (a.numa && b.numa) return PathType::node;
  if (topology.numa.size() == 1) return PathType::node;
  const auto &cpus = a.device->local_cpus, &others = b.device->local_cpus;
  if (cpus && others && !cpus->empty() && !others->empty() && !cpus->intersects(*others))
    return PathType::sys;
  return std::nullopt;
}

// A link between two switches beside the tree (NCCL's pcilink).
bool peers(const Route& a, const Route& b) {
  return std::ranges::any_of(a.up, [&](const PciDevice* one) {
    return std::ranges::any_of(b.up, [&](const PciDevice* other) {
      return std::ranges::find(one->peer_links, other->id) != one->peer_links.end() ||
             std::ranges::find(other->peer_links, one->id) != other->peer_links.end();
    });
  });
}

// nvidia-smi's PIX is one switch, whose two ports are two bridges; NCCL's tree has one element a switch.
std::optional<PathType> class_of(const Topology& topology, const Route& a, const Route& b) {
  if (a.device != nullptr && a.device == b.device) return PathType::pix;
  const auto shared = shared_bridges(a.up, b.up);
  if (shared == 0) return peers(a, b) ? PathType::pxb : across(topology, a, b);
  const auto left = a.up.size() - shared, right = b.up.size() - shared;
  const std::size_t most = topology.nccl_classes ? 0 : 1;
  return left <= most && right <= most ? PathType::pix : PathType::pxb;
}

std::size_t switches_below(const std::vector<const PciDevice*>& chain, std::size_t shared) {
  std::size_t n = 0;
  for (std::size_t i = 0; i + shared < chain.size(); ++i)
    n += flattened_into(*chain[i], *chain[i + 1]) ? 0 : 1;
  return n;
}

// NCCL's word for the same pair: one cpu a NUMA node, switches by their upstream port, Broadcom cascades
// flattened.
std::optional<std::string_view> nccl_class(const Topology& topology, const Device& x, const Device& y,
                                           std::optional<PathType> type) {
  const Route &a = x.route, &b = y.route;
  if (!type || a.device == nullptr || b.device == nullptr || a.device == b.device) return std::nullopt;
  const auto &left = x.nccl, &right = y.nccl;
  const auto shared = shared_bridges(left, right);
  if (shared > 0) return switches_below(left, shared) + switches_below(right, shared) == 0 ? "PIX" : "PXB";
  if (*type == PathType::pxb || *type == PathType::sys) return name_of(*type);
  const bool c2c = x.gpu && !y.gpu && topology.gpus[*x.gpu].c2c;
  return c2c ? "P2C" : "PHB";
}

// A PCIe link by the device at its lower end, or by the port at its upper one.
struct Narrowest {
  double gbytes = 0;
  const PciDevice* device = nullptr;
};

const PcieLink& link_of(const PciDevice& device) {
  return device.capable.gts && device.capable.width ? device.capable : device.current;
}

std::optional<Narrowest> rate_of(const PciDevice& device) {
  if (const auto bandwidth = bandwidth_of(link_of(device))) return Narrowest{bandwidth->value, &device};
  if (device.link_bandwidth) return Narrowest{device.link_bandwidth->value, &device};
  return std::nullopt;
}

// The narrowest link from the device up to the shared bridge. A device whose own link is unknown has the link
// of the port above it, which is the other end of the same wire; nothing when that is unknown, too.
std::optional<Narrowest> narrowest(const Route& route, std::size_t shared) {
  if (route.device == nullptr) return std::nullopt;
  const auto steps = route.up.size() - shared;
  auto best = rate_of(*route.device);
  if (!best && (steps == 0 || !rate_of(*route.up[0]))) return std::nullopt;
  for (std::size_t i = 0; i < steps; ++i) {
    const auto link = rate_of(*route.up[i]);
    if (link && (!best || link->gbytes < best->gbytes)) best = link;
  }
  return best;
}

std::string why_of(const Narrowest& least) {
  const auto& link = link_of(*least.device);
  const std::string speed =
      bandwidth_of(link) ? fmt::format(" {:g} GT/s x{}", *link.gts, *link.width) : " link";
  return fmt::format("PCIe{} of {}, the narrowest link of the path after line coding", speed,
                     least.device->id);
}

void expect_pcie(const Route& a, const Route& b, Path& path) {
  if (a.device == nullptr || a.device == b.device) return;
  const auto shared = shared_bridges(a.up, b.up);
  const auto one = narrowest(a, shared), other = narrowest(b, shared);
  if (!one || !other) return;
  const auto& least = one->gbytes <= other->gbytes ? *one : *other;
  path.bandwidth = GBytesPerSec{least.gbytes};
  path.why = why_of(least);
  if (path.type == PathType::sys) path.why += "; the link between the CPUs is not counted";
}

// What is not below a switch of its own, a GPU with chip-to-chip links reaches by these: its PCIe link, which
// may have one lane, carries none of it.
void expect_c2c(const Gpu& gpu, const Route& nic, Path& path) {
  const auto least = narrowest(nic, 0);
  if (!least || !gpu.c2c->per_link) return;
  const double c2c = gpu.c2c->count * gpu.c2c->per_link->value;
  path.bandwidth = GBytesPerSec{std::min(least->gbytes, c2c)};
  path.why = least->gbytes <= c2c
                 ? why_of(*least)
                 : fmt::format("{} C2C links x {:g} GB/s", gpu.c2c->count, gpu.c2c->per_link->value);
}

// As "{:g}" prints it; this is done for every pair, and most rates are whole.
std::string short_number(double value) {
  const bool whole = std::abs(value) < 1e5 && value == std::floor(value);
  return whole ? std::to_string(static_cast<int>(value)) : fmt::format("{:g}", value);
}

void expect_links(const Gpu& a, const Gpu& b, std::optional<double> raw, Path& path) {
  const bool xgmi = path.type == PathType::xgmi;
  if (!path.nvlinks) return;
  const auto one = link_rate(a.sm, xgmi), other = link_rate(b.sm, xgmi);
  if (one && other) {
    const double rate = std::min(*one, *other);
    path.bandwidth = GBytesPerSec{*path.nvlinks * rate};
    path.why = std::to_string(*path.nvlinks) + " links x " + short_number(rate) + " GB/s (" +
               (xgmi ? "RCCL's figure for gfx" : "NCCL's figure for sm ") +
               std::to_string(*one <= *other ? *a.sm : *b.sm) + ")";
  } else if (raw) {
    // What NCCL counts of an NVLink's raw rate: 20.6 of 26.562 GB/s.
    path.bandwidth = GBytesPerSec{*path.nvlinks * *raw * 0.776};
    path.why = std::to_string(*path.nvlinks) + " links x " + short_number(*raw) + " GB/s x 0.776";
  }
}

using Stated = std::map<std::pair<std::string_view, std::string_view>, const Path*>;

Stated index_stated(const Topology& topology) {
  Stated out;
  for (const auto& path : topology.stated) out.emplace(std::minmax<std::string_view>(path.a, path.b), &path);
  return out;
}

const Path* find_stated(const Stated& stated, std::string_view a, std::string_view b) {
  const auto at = stated.find(std::minmax(a, b));
  return at == stated.end() ? nullptr : at->second;
}

// The input tells this GPU's links, be they none. NCCL's own files list them where they tell the GPU's model;
// AMD's driver lists them beside the GPU.
bool tells_links(const Topology& topology, const Gpu& gpu) {
  constexpr std::uint16_t kAmd = 0x1002;
  const auto kind = topology.source.kind;
  const bool live = kind == SourceKind::live || kind == SourceKind::capture;
  return gpu.nvlinks || !gpu.links.empty() || (topology.nccl_classes && gpu.sm) ||
         (live && gpu.pci_vendor == kAmd);
}

class Builder {
 public:
  explicit Builder(const Topology& topology)
      : topology_(topology),
        tree_(topology),
        fabric_(topology),
        devices_(devices_of(topology, tree_)),
        stated_(index_stated(topology)) {}

  std::vector<Path> build() const {
    std::vector<Path> out;
    out.reserve(devices_.size() * (devices_.size() + 1) / 2);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      for (std::size_t j = i + 1; j < devices_.size(); ++j) out.push_back(path(devices_[i], devices_[j]));
    }
    return out;
  }

 private:
  Path path(const Device& a, const Device& b) const {
    const auto* known = find_stated(stated_, a.id, b.id);
    if (known != nullptr && known->type) return stated(*known, a, b);
    Path out;
    out.a = a.id;
    out.b = b.id;
    const bool gpus = a.gpu && b.gpu;
    out.links_told = gpus && ((known != nullptr && known->links_told) || links_told(*a.gpu, *b.gpu));
    if (gpus && fabric(a, b, out)) return out;
    if (!topology_.tree_known) return out;
    out.type = class_of(topology_, a.route, b.route);
    const auto nccl = nccl_class(topology_, a, b, out.type);
    if (nccl && *nccl != name_of(*out.type)) out.nccl_type = *nccl;
    if (out.type) expect(a, b, out);
    return out;
  }

  // The tree's PCIe links tell nothing of two GPUs that other links may join.
  void expect(const Device& a, const Device& b, Path& out) const {
    const bool c2c = a.gpu && topology_.gpus[*a.gpu].c2c && shared_bridges(a.route.up, b.route.up) == 0;
    if (c2c && !b.gpu)
      expect_c2c(topology_.gpus[*a.gpu], b.route, out);
    else if (!b.gpu || (!c2c && out.links_told))
      expect_pcie(a.route, b.route, out);
  }

  bool links_told(std::size_t a, std::size_t b) const {
    const auto none = [&](std::size_t gpu) { return topology_.gpus[gpu].nvlinks == 0; };
    const auto told = [&](std::size_t gpu) { return tells_links(topology_, topology_.gpus[gpu]); };
    return fabric_.between(a, b) || none(a) || none(b) || (told(a) && told(b) && !fabric_.undecided(a, b));
  }

  Path stated(const Path& known, const Device& a, const Device& b) const {
    Path out = known;
    out.links_told = a.gpu && b.gpu;
    out.a = a.id;
    out.b = b.id;
    if (a.gpu && b.gpu && !out.bandwidth && (out.type == PathType::nvl || out.type == PathType::xgmi)) {
      const auto link = fabric_.between(*a.gpu, *b.gpu);
      expect_links(topology_.gpus[*a.gpu], topology_.gpus[*b.gpu], link ? link->rate : std::nullopt, out);
    }
    if (out.type == PathType::node && !out.nccl_type) out.nccl_type = "PHB";
    return out;
  }

  // True when the links decide the pair, be it as unknown.
  bool fabric(const Device& a, const Device& b, Path& out) const {
    const auto link = fabric_.between(*a.gpu, *b.gpu);
    if (!link) return fabric_.undecided(*a.gpu, *b.gpu);
    out.type = link->type;
    out.nvlinks = link->links;
    expect_links(topology_.gpus[*a.gpu], topology_.gpus[*b.gpu], link->rate, out);
    return true;
  }

  const Topology& topology_;
  PciTree tree_;
  Fabric fabric_;
  std::vector<Device> devices_;
  Stated stated_;
};

bool by_links(const Path& path) { return path.type == PathType::nvl || path.type == PathType::xgmi; }

// NCCL reaches a GPU through one GPU between them (NVB) where both have links to it.
void mark_nvb(const Topology& topology, std::vector<Path>& paths) {
  std::unordered_map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < topology.gpus.size() && i < kMaxPathDevices; ++i)
    place.emplace(topology.gpus[i].id, i);
  const std::size_t words = (place.size() + 63) / 64;
  std::vector<std::vector<std::uint64_t>> neighbours(topology.gpus.size(), std::vector<std::uint64_t>(words));
  const auto gpus = [&](const Path& path) {
    const auto a = place.find(path.a), b = place.find(path.b);
    const bool both = a != place.end() && b != place.end();
    return both ? std::optional(std::pair(a->second, b->second)) : std::nullopt;
  };
  for (const auto& path : paths) {
    const auto pair = by_links(path) ? gpus(path) : std::nullopt;
    if (!pair) continue;
    neighbours[pair->first][pair->second / 64] |= std::uint64_t{1} << (pair->second % 64);
    neighbours[pair->second][pair->first / 64] |= std::uint64_t{1} << (pair->first % 64);
  }
  for (auto& path : paths) {
    const auto pair = path.type && !by_links(path) ? gpus(path) : std::nullopt;
    if (!pair) continue;
    const auto &one = neighbours[pair->first], &other = neighbours[pair->second];
    for (std::size_t w = 0; w < words; ++w) {
      if ((one[w] & other[w]) != 0) path.nccl_type = "NVB";
    }
  }
}

}  // namespace

std::vector<Path> paths_of(const Topology& topology) {
  auto paths = Builder(topology).build();
  mark_nvb(topology, paths);
  return paths;
}

std::optional<Warning> paths_limit(const Topology& topology) {
  const auto all = topology.gpus.size() + topology.nics.size();
  if (all <= kMaxPathDevices) return std::nullopt;
  return Warning{
      "too-many-devices",
      fmt::format("{} GPUs and NICs: only the paths of the first {} are listed", all, kMaxPathDevices),
      {}};
}

}  // namespace topotune::model
