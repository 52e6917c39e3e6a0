#include "emit/svg_scene.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>

#include "model/tree.h"

namespace topotune::emit {

namespace {

using model::PathType;
using model::Topology;

constexpr std::size_t kMaxArcs = 64;  // of one island; more cannot be told apart

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  // The smaller index leads: groups keep the order of the document.
  void join(std::size_t a, std::size_t b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

struct Device {
  std::string bridge;  // topmost, "" none
  std::optional<int> numa;
  std::optional<CpuSet> cpus;
};

bool is_link(const model::Path& path) { return path.type == PathType::nvl || path.type == PathType::xgmi; }

// Devices are GPUs 0..gpus-1, then NICs.
class SceneMaker {
 public:
  SceneMaker(const Topology& topology, const std::vector<model::Path>& paths, std::size_t limit)
      : topology_(topology),
        gpus_(std::min(topology.gpus.size(), limit)),
        nics_(std::min(topology.nics.size(), limit)),
        switches_(gpus_ + nics_),
        nodes_(gpus_ + nics_) {
    read_devices();
    read_paths(paths);
    join();
  }

  Scene run() {
    Scene scene;
    scene.gpus = gpus_;
    scene.nics = nics_;
    scene.nodes = make_nodes();
    make_islands(scene);
    return scene;
  }

 private:
  struct Pair {
    std::size_t a, b;
    const model::Path* path;
  };

  void read_devices() {
    const model::PciTree tree(topology_);
    const auto add = [&](const model::Route& route, const std::string& id, std::optional<int> numa,
                         const std::optional<CpuSet>& cpus) {
      index_.emplace(id, devices_.size());
      devices_.push_back({route.up.empty() ? "" : route.up.back()->id, numa ? numa : route.numa, cpus});
    };
    for (std::size_t i = 0; i < gpus_; ++i) {
      const auto& gpu = topology_.gpus[i];
      add(tree.route_to(gpu), gpu.id, gpu.numa, gpu.cpus);
    }
    for (std::size_t i = 0; i < nics_; ++i) {
      const auto& nic = topology_.nics[i];
      add(tree.route_to(nic), nic.id, nic.numa, {});
    }
  }

  void read_paths(const std::vector<model::Path>& paths) {
    for (const auto& path : paths) {
      const auto a = index_.find(path.a), b = index_.find(path.b);
      if (path.type && a != index_.end() && b != index_.end())
        pairs_.push_back({a->second, b->second, &path});
    }
  }

  void join() {
    std::unordered_map<std::string_view, std::size_t> by_bridge;
    std::map<int, std::size_t> by_numa;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const auto& device = devices_[i];
      if (!device.bridge.empty()) switches_.join(i, by_bridge.emplace(device.bridge, i).first->second);
      if (device.numa) nodes_.join(i, by_numa.emplace(*device.numa, i).first->second);
    }
    for (const auto& pair : pairs_) {
      const auto type = *pair.path->type;
      if (type == PathType::pix || type == PathType::pxb) switches_.join(pair.a, pair.b);
      if (type >= PathType::pix && type <= PathType::node) join_nodes(pair.a, pair.b);
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) join_nodes(i, switches_.find(i));
    join_equal_cpus();
    join_strays();
  }

  // What the input says of nodes goes before what classes imply.
  void join_nodes(std::size_t a, std::size_t b) {
    const auto one = devices_[nodes_.find(a)].numa, other = devices_[nodes_.find(b)].numa;
    if (one && other && *one != *other) return;
    const auto numa = one ? one : other;
    nodes_.join(a, b);
    devices_[nodes_.find(a)].numa = numa;
  }

  void join_equal_cpus() {
    std::map<std::string, std::size_t> by_cpus;
    for (std::size_t i = 0; i < gpus_; ++i) {
      if (devices_[nodes_.find(i)].numa || !devices_[i].cpus) continue;
      nodes_.join(i, by_cpus.emplace(devices_[i].cpus->to_list(), i).first->second);
    }
  }

  // Single devices of which nothing is known share one box.
  void join_strays() {
    std::vector<std::size_t> sizes(devices_.size());
    for (std::size_t i = 0; i < devices_.size(); ++i) ++sizes[nodes_.find(i)];
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const std::size_t root = nodes_.find(i);
      const bool stray = root == i && sizes[i] == 1 && !devices_[i].numa && !devices_[i].cpus;
      if (!stray) continue;
      if (!first) first = i;
      nodes_.join(*first, i);
    }
  }

  std::vector<SceneNode> make_nodes() {
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < devices_.size(); ++i) members[nodes_.find(i)].push_back(i);
    std::vector<SceneNode> out;
    for (const auto& [root, devices] : members) out.push_back(make_node(devices));
    add_inside(out);
    const auto key = [](const SceneNode& node) { return node.numa.empty() ? 1 << 20 : node.numa.front(); };
    std::ranges::stable_sort(out, {}, key);
    return out;
  }

  SceneNode make_node(const std::vector<std::size_t>& devices) {
    SceneNode node;
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (const auto i : devices) {
      members[switches_.find(i)].push_back(i);
      if (devices_[i].numa) node.numa.push_back(*devices_[i].numa);
    }
    std::ranges::sort(node.numa);
    node.numa.erase(std::unique(node.numa.begin(), node.numa.end()), node.numa.end());
    node.cpus = cpus_of(node, devices);
    SceneGroup loose;
    for (const auto& [root, below] : members) {
      if (below.size() > 1)
        node.groups.push_back(make_group(below));
      else if (below[0] < gpus_)
        node.groups.push_back({false, "", {}, {below[0]}, {}});
      else
        loose.nics.push_back(below[0] - gpus_);
    }
    if (!loose.nics.empty()) node.groups.push_back(std::move(loose));
    return node;
  }

  SceneGroup make_group(const std::vector<std::size_t>& devices) const {
    SceneGroup group;
    group.switched = true;
    group.bridge = devices_[devices[0]].bridge;
    for (const auto i : devices) {
      if (i < gpus_)
        group.gpus.push_back(i);
      else
        group.nics.push_back(i - gpus_);
    }
    return group;
  }

  std::string cpus_of(const SceneNode& node, const std::vector<std::size_t>& devices) const {
    if (node.numa.size() == 1) {
      const auto found = std::ranges::find(topology_.numa, node.numa[0], &model::NumaNode::id);
      if (found != topology_.numa.end() && found->cpus) return found->cpus->to_list();
    }
    for (const auto i : devices) {
      if (devices_[i].cpus) return devices_[i].cpus->to_list();
    }
    return "";
  }

  // The classes of path within each switch and between the switches of each node.
  void add_inside(std::vector<SceneNode>& nodes) {
    struct Place {
      SceneNode* node;
      SceneGroup* group;
    };
    std::vector<Place> places(devices_.size());
    for (auto& node : nodes) {
      for (auto& group : node.groups) {
        for (const auto i : group.gpus) places[i] = {&node, &group};
        for (const auto i : group.nics) places[gpus_ + i] = {&node, &group};
      }
    }
    for (const auto& pair : pairs_) {
      const auto a = places[pair.a], b = places[pair.b];
      const auto type = *pair.path->type;
      if (a.node != b.node || type < PathType::pix) continue;
      auto& seen = a.group == b.group && a.group->switched ? a.group->type : a.node->inside;
      if (!seen || *seen < type) seen = type;
    }
  }

  // --- NVLink ---

  void make_islands(Scene& scene) {
    std::vector<const Pair*> links;
    DisjointSets sets(gpus_);
    for (const auto& pair : pairs_) {
      if (!is_link(*pair.path) || pair.a >= gpus_ || pair.b >= gpus_) continue;
      links.push_back(&pair);
      sets.join(pair.a, pair.b);
    }
    std::map<std::size_t, std::vector<const Pair*>> by_root;
    for (const auto* link : links) by_root[sets.find(link->a)].push_back(link);
    for (const auto& [root, own] : by_root) scene.islands.push_back(make_island(own));
    for (std::size_t i = 0; i < scene.islands.size(); ++i) {
      if (scene.islands[i].hub) continue;
      for (const auto* link : std::next(by_root.begin(), static_cast<std::ptrdiff_t>(i))->second)
        scene.edges.push_back({link->a, link->b, link->path->nvlinks.value_or(0), *link->path->type});
    }
  }

  SceneIsland make_island(const std::vector<const Pair*>& links) const {
    SceneIsland island;
    std::map<std::size_t, int> most;
    int sum = 0;
    for (const auto* link : links) {
      const int n = link->path->nvlinks.value_or(0);
      for (const auto i : {link->a, link->b}) most[i] = std::max(most[i], n);
      sum += n;
    }
    for (const auto& [gpu, n] : most) island.gpus.push_back(gpu);
    const std::size_t n = island.gpus.size();
    // Known rows of a cut matrix count: a switch joins all it joins.
    const bool switched =
        std::ranges::any_of(island.gpus, [&](std::size_t i) { return ends_at_switch(i); }) ||
        2 * sum > 18 * static_cast<int>(n);
    const bool mesh = links.size() == n * (n - 1) / 2;
    island.hub = n > 2 && (switched || (mesh && n > 4) || links.size() > kMaxArcs);
    island.label = switched ? "NVSwitch" : mesh ? "full mesh" : "partial mesh";
    for (const auto& [gpu, links_of_gpu] : most)
      island.links.push_back(switched ? topology_.gpus[gpu].nvlinks.value_or(links_of_gpu) : links_of_gpu);
    return island;
  }

  // NVSwitches in the PCI tree, or a matrix whose counts only a switch explains.
  bool ends_at_switch(std::size_t gpu) const {
    return std::ranges::any_of(topology_.gpus[gpu].links, [&](const model::NvLinkGroup& link) {
      return !link.to.empty() && index_.find(link.to) == index_.end() && !is_bdf_of_gpu(link.to);
    });
  }

  bool is_bdf_of_gpu(const std::string& id) const {
    return std::ranges::any_of(topology_.gpus,
                               [&](const model::Gpu& gpu) { return gpu.bdf == id || gpu.id == id; });
  }

  const Topology& topology_;
  std::size_t gpus_, nics_;
  DisjointSets switches_, nodes_;
  std::vector<Device> devices_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<Pair> pairs_;
};

}  // namespace

Scene scene_of(const Topology& topology, const std::vector<model::Path>& paths, std::size_t limit) {
  return SceneMaker(topology, paths, limit).run();
}

}  // namespace topotune::emit
