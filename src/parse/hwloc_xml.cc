#include "parse/hwloc_xml.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/bdf.h"
#include "base/text.h"
#include "base/words.h"
#include "parse/hwloc_distances.h"
#include "parse/numbering.h"
#include "parse/pci_text.h"
#include "parse/xml_reader.h"

namespace topotune::parse {

using model::PciKind;

namespace {

constexpr auto kNone = XmlElement::kNone;
constexpr std::size_t kMaxWarnings = 64;
constexpr std::size_t kMaxMask = CpuSet::kMaxCpu / 32 * 11;  // characters of "0x" and eight digits a word

// What an object inherits from those around it; places in XmlDocument::elements.
struct Context {
  std::size_t locality = kNone;     // nearest object that has CPUs
  std::size_t numa = kNone;         // nearest NUMANode around it (version 1, where nodes contain their CPUs)
  std::size_t host_bridge = kNone;  // nearest bridge that is no PCI device
  std::size_t bridge = kNone;       // nearest PCI-PCI bridge below that
  std::size_t pci = kNone;          // the PCIDev around an OSDev
  int depth = 0;                    // PCI-PCI bridges above and including this one
};

// "0302 [10de:1db8] [10de:131d] a1 00"
void read_pci_type(std::string_view text, model::PciDevice& device) {
  const auto pair = [](std::string_view field, auto& vendor, auto& id) {
    if (field.size() < 2 || field.front() != '[' || field.back() != ']') return;
    field = field.substr(1, field.size() - 2);
    const auto colon = field.find(':');
    if (colon == std::string_view::npos || field.find(':', colon + 1) != std::string_view::npos) return;
    vendor = parse_pci_id(field.substr(0, colon));
    id = parse_pci_id(field.substr(colon + 1));
  };
  if (const auto field = next_word(text); !field.empty()) device.class_code = parse_pci_class(field);
  pair(next_word(text), device.vendor, device.device);
  pair(next_word(text), device.subsystem_vendor, device.subsystem_device);
}

// The number behind a prefix: ("nvml12", "nvml") -> 12.
std::optional<int> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_int<int>(name.substr(prefix.size()));
}

bool is_compute_name(std::string_view name) {
  for (const std::string_view prefix : {"nvml", "cuda", "rsmi", "amdsmi", "ze", "opencl"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size() && is_digit(name[prefix.size()])) return true;
  }
  return false;
}

// Versions 1 and 2 number the types of operating system devices, version 3 has bits.
struct OsDevTypes {
  bool bits = false;

  bool rdma(std::string_view type) const { return is(type, 3, 32); }
  bool network(std::string_view type) const { return is(type, 2, 16) && !rdma(type); }

 private:
  bool is(std::string_view text, int number, int bit) const {
    const auto type = parse_int<int>(text);
    return type && (bits ? (*type & bit) != 0 : *type == number);
  }
};

// One PCI device that is kept, with the operating system's devices on it.
struct Found {
  std::size_t element = kNone;
  model::PciDevice device;
  std::vector<std::size_t> os_devices;
};

class Reader {
 public:
  explicit Reader(const XmlDocument& document) : document_(document), contexts_(document.elements.size()) {}

  Result<model::Topology> read() {
    out_.source.kind = model::SourceKind::hwloc_xml;
    out_.warnings = warnings_of(document_);
    out_.source.complete = document_.problems.empty();
    const auto version = document_.roots.empty() ? std::nullopt : at(document_.roots[0]).get("version");
    types_.bits = version && parse_double(*version).value_or(0) >= 3;
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      if (at(i).name == "object") object(i);
      if (at(i).name == "info") info(at(i));
    }
    if (!objects_) return fail_at(1, "no <object> element: no hwloc topology");
    nodes();
    devices();
    matrices();
    finish();
    return std::move(out_);
  }

 private:
  const XmlElement& at(std::size_t i) const { return document_[i]; }
  std::string_view attribute(std::size_t i, std::string_view name) const {
    return at(i).get(name).value_or("");
  }
  std::string_view type_of(std::size_t i) const { return attribute(i, "type"); }

  void warn(std::string code, int line, std::string text) {
    if (out_.warnings.size() < kMaxWarnings)
      out_.warnings.push_back({std::move(code), std::move(text), line});
  }

  // Elements come parents first, so that the context of the parent is known.
  void object(std::size_t i) {
    objects_ = true;
    const auto parent = at(i).parent;
    Context context = parent == kNone ? Context{} : contexts_[parent];
    const auto type = type_of(i);
    if (const auto gp = at(i).get("gp_index")) by_gp_.emplace(std::string(type).append(":").append(*gp), i);
    if (type == "Bridge") {
      bridge(i, context);
    } else if (type == "PCIDev") {
      context.pci = i;
      pci_devices_.push_back(i);
    } else if (type == "OSDev") {
      if (context.pci != kNone) on_pci_[context.pci].push_back(i);
    } else if (type != "Misc") {
      normal(i, type, context);
    }
    contexts_[i] = context;
  }

  void bridge(std::size_t i, Context& context) {
    if (attribute(i, "bridge_type").starts_with("0-") || !at(i).get("pci_busid")) {
      context.host_bridge = i;
      context.bridge = kNone;
      context.depth = 0;
    } else {
      parent_bridge_.emplace(i, context.bridge);
      context.bridge = i;
      ++context.depth;
    }
  }

  void normal(std::size_t i, std::string_view type, Context& context) {
    if (type == "NUMANode" || type == "Node") {
      numa_.push_back(i);
      context.numa = i;
    }
    if (at(i).get("cpuset")) context.locality = i;
    if (type == "Machine" && machine_ == kNone) machine_ = i;
    if (type == "Package" || type == "Socket") package(i);
    if (type == "Core") {
      if (auto cpus = cpuset(i, "cpuset")) out_.cores.push_back(std::move(*cpus));
    }
  }

  void package(std::size_t i) {
    const auto id = parse_int<int>(attribute(i, "os_index"));
    const auto cpus = cpuset(i, "cpuset");
    if (id && *id >= 0 && cpus) out_.packages.push_back({*id, *cpus});
  }

  void info(const XmlElement& element) {
    const auto name = element.get("name"), value = element.get("value");
    if (!name || !value) return;
    auto& cpu = cpu_;
    if (*name == "Architecture")
      cpu.arch = *value == "aarch64" ? "arm64" : value->starts_with("ppc64") ? "ppc64" : *value;
    if (*name == "CPUVendor" && cpu.vendor.empty()) cpu.vendor = *value;
    if (*name == "CPUFamilyNumber" && !cpu.family) cpu.family = parse_int<int>(*value);
    if (*name == "CPUModelNumber" && !cpu.model) cpu.model = parse_int<int>(*value);
  }

  // Nothing for an absent, empty or unreadable set; "0xf...f" (everything) counts as unreadable.
  std::optional<CpuSet> cpuset(std::size_t i, std::string_view name) {
    if (i == kNone) return std::nullopt;
    const auto [known, fresh] = sets_.try_emplace({i, name});
    const auto text = attribute(i, name);
    if (fresh && text.size() <= kMaxMask) known->second = parse_cpu_mask(text);
    if (known->second && known->second->empty()) known->second.reset();
    return known->second;
  }

  void nodes() {
    std::set<int> known;
    for (const auto i : numa_) {
      const auto id = parse_int<int>(attribute(i, "os_index"));
      if (!id || *id < 0 || !known.insert(*id).second) continue;
      out_.numa.push_back({*id, cpuset(i, "cpuset"), memory(i), {}});
      if (attribute(i, "subtype") == "GPUMemory") gpu_memory_.insert(*id);
    }
    // Before version 2 a machine with one node had no NUMANode object.
    if (numa_.empty() && machine_ != kNone)
      out_.numa.push_back({0, cpuset(machine_, "cpuset"), memory(machine_), {}});
    std::ranges::sort(out_.numa, {}, &model::NumaNode::id);
  }

  std::optional<std::uint64_t> memory(std::size_t i) const {
    const auto text = at(i).get("local_memory");
    return text ? parse_int<std::uint64_t>(*text) : std::nullopt;
  }

  std::optional<int> node_of(const Context& context) {
    if (out_.numa.size() == 1) return out_.numa[0].id;
    const auto [known, fresh] = node_by_place_.try_emplace({context.locality, context.numa});
    if (fresh) known->second = find_node(context);
    return known->second;
  }

  std::optional<int> find_node(const Context& context) {
    const auto cpus = cpuset(context.locality, "cpuset");
    // A node around the device decides where nodes contain objects; beside them (version 2) it never is
    // around.
    if (context.numa != kNone) return parse_int<int>(attribute(context.numa, "os_index"));
    const auto nodeset = cpuset(context.locality, "nodeset");
    std::vector<const model::NumaNode*> fit;
    for (const auto& node : out_.numa) {
      if (!node.cpus || gpu_memory_.contains(node.id)) continue;
      const bool named = nodeset ? nodeset->contains(node.id) : cpus && cpus->intersects(*node.cpus);
      if (named) fit.push_back(&node);
    }
    if (fit.empty()) return std::nullopt;
    const bool same = std::ranges::all_of(fit, [&](const auto* node) { return node->cpus == fit[0]->cpus; });
    return same ? std::optional(fit[0]->id) : std::nullopt;
  }

  void devices() {
    for (const auto i : pci_devices_) {
      Found found;
      found.element = i;
      if (const auto os = on_pci_.find(i); os != on_pci_.end()) found.os_devices = os->second;
      found.device = describe(i, bdf_of(i));
      found.device.kind = kind(found);
      if (found.device.kind == PciKind::gpu || found.device.kind == PciKind::nic ||
          found.device.kind == PciKind::nvswitch)
        keep(std::move(found));
    }
    gpus();
    nics();
    nic_without_pci();
    for (const auto& found : found_) {
      if (found.device.kind == PciKind::nvswitch)
        out_.switches.push_back({found.device.id, bdf_of(found.element), "nvswitch"});
    }
    out_.tree_known = true;
  }

  std::string bdf_of(std::size_t i) const { return canonical_bdf(attribute(i, "pci_busid")); }

  PciKind kind(const Found& found) const {
    const auto& device = found.device;
    if (attribute(found.element, "subtype") == "NVSwitch") return PciKind::nvswitch;
    const bool compute = std::ranges::any_of(
        found.os_devices, [&](std::size_t i) { return is_compute_name(attribute(i, "name")); });
    if (compute) return PciKind::gpu;
    const auto by_class = kind_of(device.class_code, device.vendor, device.device);
    return by_class == PciKind::gpu && part_of_cpu(device) ? PciKind::other : by_class;
  }

  // Intel's displays on bus 0.
  static bool part_of_cpu(const model::PciDevice& device) {
    const bool display = device.vendor == 0x8086 && device.class_code && *device.class_code >> 8 == 0x0300;
    const auto bdf = display ? parse_bdf(device.id) : std::nullopt;
    return bdf && bdf->bus == 0;
  }

  model::PciDevice describe(std::size_t i, std::string id) {
    model::PciDevice device;
    const auto& context = contexts_[i];
    device.id = std::move(id);
    device.root = root_of(context);
    device.numa = node_of(context);
    device.local_cpus = cpuset(context.locality, "cpuset");
    read_pci_type(attribute(i, "pci_type"), device);
    const auto speed = parse_double(attribute(i, "pci_link_speed"));
    if (speed && *speed > 0 && *speed < 1000) device.link_bandwidth = GBytesPerSec{*speed};
    device.source = "line " + std::to_string(at(i).line);
    return device;
  }

  // "0000:[80-84]" -> "0000:80", which is the bus below the host bridge.
  std::string root_of(const Context& context) const {
    if (context.host_bridge == kNone) return "";
    std::string root(attribute(context.host_bridge, "bridge_pci"));
    std::erase(root, '[');
    root = root.substr(0, root.find('-'));
    return root.empty() ? fmt::format("host bridge of line {}", at(context.host_bridge).line)
                        : to_lower(root);
  }

  void keep(Found found) {
    found.device.id = unique(found.device.id, found.element);
    found.device.parent = keep_bridge(contexts_[found.element].bridge);
    out_.pci.push_back(found.device);
    found_.push_back(std::move(found));
  }

  std::string unique(const std::string& id, std::size_t element) {
    if (ids_.insert(id).second) return id;
    warn("duplicate-busid", at(element).line, fmt::format("bus id {} stands twice", id));
    auto other = fmt::format("{}@{}", id, at(element).line);
    while (!ids_.insert(other).second) other += '\'';
    return other;
  }

  // Adds a bridge and those above it, once; its id.
  std::string keep_bridge(std::size_t i) {
    std::string first;
    std::size_t below = kNone;  // place in out_.pci of the bridge below, whose parent is wanted
    for (; i != kNone; i = parent_bridge_.at(i)) {
      const auto known = bridges_.find(i);
      const std::string id = known != bridges_.end() ? known->second : unique(bdf_of(i), i);
      if (first.empty()) first = id;
      if (below != kNone) out_.pci[below].parent = id;
      if (known != bridges_.end()) break;
      bridges_.emplace(i, id);
      below = out_.pci.size();
      out_.pci.push_back(describe_bridge(i, id));
    }
    return first;
  }

  model::PciDevice describe_bridge(std::size_t i, const std::string& id) {
    auto device = describe(i, id);
    device.kind = PciKind::bridge;
    const int depth = contexts_[i].depth;  // 1: root port, 2: upstream, 3: downstream, ...
    device.root_port = depth == 1;
    device.pcie_switch_port = depth > 1;
    const bool forks =
        std::ranges::any_of(at(i).children, [&](std::size_t c) { return type_of(c) == "Bridge"; });
    if (depth > 1 && depth % 2 == 0 && forks) out_.switches.push_back({id, bdf_of(i), "pcie"});
    return device;
  }

  void gpus() {
    std::vector<std::optional<int>> wanted;
    for (const auto& found : found_) {
      if (found.device.kind != PciKind::gpu) continue;
      wanted.push_back(index_of(found));
      gpu(found);
    }
    const auto numbering = number_devices(wanted);
    for (std::size_t i = 0; i < out_.gpus.size(); ++i) {
      out_.gpus[i].index = numbering.numbers[i];
      out_.gpus[i].id = fmt::format("GPU{}", numbering.numbers[i]);
      gpu_ids_.emplace(gpu_elements_[i], out_.gpus[i].id);
    }
    std::ranges::stable_sort(out_.gpus, {}, &model::Gpu::index);
  }

  // The vendor library's number of a GPU.
  std::optional<int> index_of(const Found& found) const {
    for (const std::string_view prefix : {"nvml", "amdsmi", "rsmi", "cuda", "ze"}) {
      for (const auto i : found.os_devices) {
        if (const auto number = number_after(attribute(i, "name"), prefix)) return number;
      }
    }
    return std::nullopt;
  }

  void gpu(const Found& found) {
    model::Gpu gpu;
    gpu.bdf = bdf_of(found.element);
    if (found.device.id != gpu.bdf) gpu.pci = found.device.id;
    gpu.pci_vendor = found.device.vendor;
    gpu.pci_device = found.device.device;
    gpu.numa = found.device.numa;
    gpu.cpus = found.device.local_cpus;
    gpu.name = info_of(found, {"GPUModel", "PCIDevice"});
    gpu.uuid = info_of(found, {"NVIDIAUUID", "AMDUUID", "LevelZeroUUID"});
    gpu_elements_.push_back(found.element);
    out_.gpus.push_back(std::move(gpu));
  }

  std::optional<std::string> info_of(std::size_t i, std::string_view name) const {
    for (const auto child : at(i).children) {
      if (at(child).name == "info" && at(child).get("name") == name && at(child).get("value"))
        return std::string(*at(child).get("value"));
    }
    return std::nullopt;
  }

  std::optional<std::string> info_of(const Found& found,
                                     std::initializer_list<std::string_view> names) const {
    for (const auto name : names) {
      for (const auto i : found.os_devices) {
        if (auto value = info_of(i, name)) return value;
      }
      if (auto value = info_of(found.element, name)) return value;
    }
    return std::nullopt;
  }

  void nics() {
    for (const auto& found : found_) {
      if (found.device.kind != PciKind::nic) continue;
      model::Nic nic;
      nic.bdf = bdf_of(found.element);
      if (found.device.id != nic.bdf) nic.pci = found.device.id;
      nic.numa = found.device.numa;
      add_nics(found, std::move(nic));
    }
  }

  // One NIC an RDMA device; without any, one a PCI function, named by its first network interface.
  void add_nics(const Found& found, model::Nic nic) {
    std::vector<std::size_t> rdma;
    std::set<std::string> layers;
    for (const auto i : found.os_devices) {
      const auto type = attribute(i, "osdev_type");
      if (types_.rdma(type)) rdma.push_back(i);
      if (!types_.network(type)) continue;
      if (const auto name = at(i).get("name")) nic.netdevs.emplace_back(*name);
      if (const auto layer = link_layer(i)) layers.insert(*layer);
    }
    if (layers.size() == 1) nic.link_layer = *layers.begin();  // a card with a port of each kind has none
    if (rdma.empty()) {
      if (!nic.netdevs.empty()) nic.name = nic.netdevs[0];
      add(std::move(nic));
      return;
    }
    nic.rdma = true;
    for (const auto i : rdma) {
      auto one = nic;
      if (const auto name = at(i).get("name")) one.name = *name;
      add(std::move(one));
    }
  }

  void add(model::Nic nic) {
    nic.index = static_cast<int>(out_.nics.size());
    nic.id = fmt::format("NIC{}", nic.index);
    out_.nics.push_back(std::move(nic));
  }

  // Addresses of IP over InfiniBand have 20 octets (RFC 4391), Ethernet's have 6.
  std::optional<std::string> link_layer(std::size_t i) const {
    const auto address = info_of(i, "Address");
    if (!address) return std::nullopt;
    const auto octets = split(*address, ':').size();
    if (octets == 20) return "InfiniBand";
    // Some drivers show the first six octets of an InfiniBand address: only other names tell.
    return octets == 6 && !attribute(i, "name").starts_with("ib") ? std::optional<std::string>("Ethernet")
                                                                  : std::nullopt;
  }

  // RDMA devices outside every PCI device: software ones.
  void nic_without_pci() {
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      if (at(i).name != "object" || type_of(i) != "OSDev" || contexts_[i].pci != kNone) continue;
      if (!types_.rdma(attribute(i, "osdev_type")) || !at(i).get("name")) continue;
      model::Nic nic;
      nic.name = *at(i).get("name");
      nic.rdma = true;
      nic.is_virtual = true;
      add(std::move(nic));
    }
  }

  void matrices() {
    int broken = 0;
    const auto all = read_hwloc_distances(document_, broken);
    if (broken > 0)
      warn("distances", 1, fmt::format("{} distance matrices are not whole and are left out", broken));
    const HwlocDistances* hops = nullptr;
    for (const auto& one : all) {
      if (one.name == "XGMIHops") hops = &one;
    }
    for (const auto& one : all) {
      if (is_numa(one)) numa_distances(one);
      if (one.name == "NVLinkBandwidth") nvlinks(one);
      if (one.name == "XGMIBandwidth") xgmi(one, hops);
    }
  }

  bool is_numa(const HwlocDistances& one) const {
    if (one.ends.empty()) return one.size() == out_.numa.size() && numa_.size() == one.size();
    return one.type == "NUMANode" && (one.name == "NUMALatency" || one.name.empty());
  }

  void numa_distances(const HwlocDistances& one) {
    std::vector<int> ids;
    for (std::size_t i = 0; i < one.size(); ++i) ids.push_back(node_id(one, i).value_or(-1));
    std::map<int, std::size_t> place;
    for (std::size_t i = 0; i < out_.numa.size(); ++i) place.emplace(out_.numa[i].id, i);
    for (std::size_t i = 0; i < one.size(); ++i) {
      const auto node = place.find(ids[i]);
      if (node == place.end() || !out_.numa[node->second].distances.empty()) continue;
      for (std::size_t j = 0; j < one.size(); ++j) {
        const auto value = std::lround(std::clamp(one.values[i * one.size() + j], 0.0, 1e6));
        if (ids[j] >= 0) out_.numa[node->second].distances[ids[j]] = static_cast<int>(value);
      }
    }
  }

  std::optional<int> node_id(const HwlocDistances& one, std::size_t i) const {
    if (one.ends.empty()) return parse_int<int>(attribute(numa_[i], "os_index"));
    if (one.by_os_index) return parse_int<int>(one.ends[i]);
    const auto object = by_gp_.find("NUMANode:" + one.ends[i]);
    return object == by_gp_.end() ? std::nullopt : parse_int<int>(attribute(object->second, "os_index"));
  }

  // The element of one end of a matrix; kNone when it is not in the file.
  std::size_t end_element(const HwlocDistances& one, std::size_t i) const {
    if (one.by_os_index) return kNone;
    const auto& end = one.ends[i];
    const auto found = by_gp_.find(end.find(':') == std::string::npos ? one.type + ":" + end : end);
    if (found == by_gp_.end()) return kNone;
    return type_of(found->second) == "OSDev" ? contexts_[found->second].pci : found->second;
  }

  // What a link of such an end is called in NvLinkGroup::to.
  std::string end_name(std::size_t element) const {
    if (element == kNone) return "outside";
    if (const auto gpu = gpu_ids_.find(element); gpu != gpu_ids_.end()) return gpu->second;
    for (const auto& found : found_) {
      if (found.element == element && found.device.kind == PciKind::nvswitch) return found.device.id;
    }
    return "CPU";
  }

  std::vector<std::string> end_names(const HwlocDistances& one) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < one.size(); ++i) names.push_back(end_name(end_element(one, i)));
    return names;
  }

  model::Gpu* gpu_named(std::string_view id) {
    const auto found = std::ranges::find(out_.gpus, id, &model::Gpu::id);
    return found == out_.gpus.end() ? nullptr : &*found;
  }

  // hwloc adds up the links' bandwidths, MB/s of one direction: 20000 a link on P100, 50000 on Blackwell,
  // 25000 between.
  static double megabytes_per_link(const model::Gpu& gpu) {
    const int device = gpu.pci_device.value_or(0);
    return device >= 0x15f7 && device <= 0x15f9 ? 20000 : device >= 0x2900 ? 50000 : 25000;
  }

  void nvlinks(const HwlocDistances& one) {
    const auto names = end_names(one);
    for (std::size_t i = 0; i < one.size(); ++i) {
      auto* gpu = gpu_named(names[i]);
      if (gpu == nullptr || !gpu->links.empty()) continue;
      const double each = megabytes_per_link(*gpu);
      int total = 0;
      bool counted = true;
      for (std::size_t j = 0; j < one.size(); ++j) {
        const double value = one.values[i * one.size() + j];
        if (names[j] == names[i] || value <= 0 || value > 1e7) continue;
        const double count = value / each;
        const bool whole = count == std::floor(count);
        gpu->links.push_back({names[j], whole ? static_cast<int>(count) : 1, false,
                              whole ? std::optional(GBytesPerSec{each / 1000}) : std::nullopt, whole});
        total += gpu->links.back().count;
        counted &= whole;
      }
      if (counted) gpu->nvlinks = total;
    }
  }

  // hwloc tells which AMD GPUs are joined, not by how many links; more than one hop is no link of their own.
  void xgmi(const HwlocDistances& one, const HwlocDistances* hops) {
    const auto names = end_names(one);
    const bool same = hops != nullptr && hops->ends == one.ends;
    for (std::size_t i = 0; i < one.size(); ++i) {
      auto* gpu = gpu_named(names[i]);
      if (gpu == nullptr) continue;
      for (std::size_t j = 0; j < one.size(); ++j) {
        const auto at_pair = i * one.size() + j;
        if (names[j] == names[i] || one.values[at_pair] <= 0 || (same && hops->values[at_pair] > 1)) continue;
        gpu->links.push_back({names[j], 1, true, {}, false});
      }
    }
  }

  void finish() {
    if (!cpu_.arch.empty() || !cpu_.vendor.empty()) out_.cpu = cpu_;
    std::ranges::stable_sort(out_.packages, {}, &model::Package::id);
  }

  const XmlDocument& document_;
  std::vector<Context> contexts_;  // one an element
  model::Topology out_;
  model::CpuModel cpu_;
  OsDevTypes types_;
  std::map<std::pair<std::size_t, std::string_view>, std::optional<CpuSet>> sets_;   // read once
  std::map<std::pair<std::size_t, std::size_t>, std::optional<int>> node_by_place_;  // locality, node around
  bool objects_ = false;
  std::size_t machine_ = kNone;
  std::vector<std::size_t> numa_, pci_devices_;
  std::vector<Found> found_;
  std::vector<std::size_t> gpu_elements_;
  std::unordered_map<std::size_t, std::vector<std::size_t>> on_pci_;  // PCIDev -> OSDevs
  std::unordered_map<std::size_t, std::size_t> parent_bridge_;
  std::unordered_map<std::size_t, std::string> bridges_;  // kept ones -> id
  std::unordered_map<std::size_t, std::string> gpu_ids_;  // element -> GPU id
  std::unordered_map<std::string, std::size_t> by_gp_;    // "OSDev:802" -> element
  std::set<std::string> ids_;
  std::set<int> gpu_memory_;
};

}  // namespace

bool looks_like_hwloc_xml(std::string_view text) {
  const auto head = first_element(text);
  if (!head || (head->name != "topology" && head->name != "root")) return false;
  const auto next = first_element(head->rest);
  return (next && next->name == "object") || text.substr(0, 1024).find("hwloc") != std::string_view::npos;
}

Result<model::Topology> parse_hwloc_xml(std::string_view text) {
  const auto document = read_xml(text);
  if (!document) return tl::unexpected(document.error());
  return Reader(*document).read();
}

}  // namespace topotune::parse
