#include "parse/nccl_topo_xml.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/cpu_masks.h"
#include "parse/numbering.h"
#include "parse/pci_text.h"
#include "parse/xml_reader.h"

namespace topotune::parse {

using model::PciKind;
using model::SourceKind;

namespace {

constexpr double kMaxNicMbits = 10e6;  // 10 Tb/s
constexpr int kMaxLinkCount = 1024;
constexpr std::size_t kMaxMask = CpuSet::kMaxCpu / 32 * 9;  // characters
constexpr std::size_t kMaxWarnings = 64;

std::optional<int> number(const XmlElement& element, std::string_view name) {
  const auto text = element.get(name);
  return text ? parse_int<int>(*text) : std::nullopt;
}

std::optional<bool> flag(const XmlElement& element, std::string_view name) {
  const auto value = number(element, name);
  return value ? std::optional(*value != 0) : std::nullopt;
}

template <class T>
std::optional<T> hex(const XmlElement& element, std::string_view name,
                     std::optional<T> (*parse)(std::string_view)) {
  const auto text = element.get(name);
  return text ? parse(*text) : std::nullopt;
}

// "gfx942:sramecc+", "942", "910" -> 942, 942, 910. gfx90a is 910, as RCCL wrote it before it wrote names.
std::optional<int> gfx_number(std::string_view text) {
  if (text.starts_with("gfx")) text.remove_prefix(3);
  text = text.substr(0, text.find(':'));
  if (text == "90a") return 910;
  const auto number = parse_int<int>(text);
  return number && *number < 10000 ? number : std::nullopt;  // a vendor's own build writes its device id
}

// The place of an element: its machine (0 is the first), its cpu element and the bridge above.
struct Place {
  std::size_t host = 0;
  std::string root;    // "" outside every cpu element
  std::string parent;  // "" directly below it
  std::optional<int> numa;
  std::optional<CpuSet> cpus;
};

struct FoundGpu {
  model::Gpu gpu;
  const XmlElement* element = nullptr;  // <gpu>, null: told by its class alone
  std::optional<int> dev, rank;
  std::size_t host = 0;
};

struct FoundNic {
  model::Nic nic;
  std::optional<int> dev;
  std::size_t host = 0;
};

class Reader {
 public:
  explicit Reader(const XmlDocument& document) : document_(document) {}

  Result<model::Topology> read() {
    const auto root = std::ranges::find_if(document_.roots, [&](std::size_t i) {
      return document_[i].name == "system" || document_[i].name == "cpu";
    });
    if (root == document_.roots.end()) return fail_at(1, "no <system> element");
    out_.warnings = warnings_of(document_);
    out_.source.complete = document_.problems.empty();
    out_.source.kind = SourceKind::nccl_topo_xml;
    out_.tree_known = true;
    out_.nccl_classes = true;
    if (document_[*root].name == "cpu")
      fragment();
    else
      system(*root);
    finish();
    return std::move(out_);
  }

 private:
  const XmlElement& at(std::size_t i) const { return document_[i]; }

  void warn(std::string code, int line, std::string text) {
    if (out_.warnings.size() < kMaxWarnings)
      out_.warnings.push_back({std::move(code), std::move(text), line});
  }

  void fragment() {
    warn("no-system", 1, "cpu elements without the <system> around them");
    for (const auto i : document_.roots) {
      if (at(i).name == "cpu") cpu(i);
    }
  }

  void system(std::size_t root) {
    const auto version = at(root).get("version");
    if (!version || (*version != "1" && *version != "2"))
      warn("version", at(root).line,
           fmt::format("version {} of <system>: NCCL knows 1, RCCL 2", version.value_or("missing")));
    if (version == "2") out_.source.kind = SourceKind::rccl_topo_xml;
    if (document_.roots.size() > 1)
      warn("second-document", at(document_.roots[1]).line, "what follows </system> is left out");
    for (const auto child : at(root).children) {
      if (at(child).name == "cpu") {
        cpu(child);
      } else if (at(child).name == "pci") {
        warn("no-cpu", at(child).line, "a pci element outside every cpu element");
        pci(child, {});
      }
    }
  }

  void cpu(std::size_t i) {
    const auto& element = at(i);
    auto numaid = number(element, "numaid");
    if (numaid && *numaid < 0) numaid.reset();
    if (!numaid) warn("no-numaid", element.line, "a cpu element without numaid: its NUMA node is unknown");
    Place place;
    place.host = host_of(element);
    place.numa = numaid;
    place.cpus = mask(element, numaid, place.host);
    place.root = root_name(place.host, numaid);
    if (numaid && place.host == 0) node(*numaid, place.cpus);
    if (!out_.cpu) describe(element);
    for (const auto child : element.children) cpu_child(child, place);
  }

  void cpu_child(std::size_t i, const Place& place) {
    const auto& element = at(i);
    if (element.name == "pci") return pci(i, place);
    if (element.name == "nic") return virtual_nets(i, place);
    if (element.name == "net") return net(element, place, nullptr);
    if (element.name == "gpu") add_gpu(&element, place, nullptr);
  }

  // Dumps of a multi-node NVLink domain hold the cpu elements of several machines, told apart by host_hash.
  std::size_t host_of(const XmlElement& element) {
    const std::string hash(element.get("host_hash").value_or(""));
    return hosts_.emplace(hash, hosts_.size()).first->second;
  }

  std::string root_name(std::size_t host, std::optional<int> numaid) {
    std::string name = host == 0 ? "" : fmt::format("host{}/", host);
    name += numaid ? fmt::format("cpu{}", *numaid) : std::string("cpu?");
    const int times = ++roots_[name];
    return times == 1 ? name : fmt::format("{}#{}", name, times);
  }

  std::optional<CpuSet> mask(const XmlElement& element, std::optional<int> numaid, std::size_t host) {
    const auto text = element.get("affinity");
    if (!text) return std::nullopt;
    auto cpus = text->size() <= kMaxMask ? parse_cpu_mask(*text) : std::nullopt;
    if (host == 0)
      masks_.push_back({numaid ? fmt::format("node {}", *numaid) : "a cpu element", text->substr(0, kMaxMask),
                        cpus, element.line});
    if (cpus && cpus->empty()) cpus.reset();
    return cpus;
  }

  void node(int id, const std::optional<CpuSet>& cpus) {
    const auto [at_node, fresh] = nodes_.emplace(id, out_.numa.size());
    if (fresh) {
      out_.numa.push_back({id, cpus, {}, {}});
    } else if (auto& known = out_.numa[at_node->second].cpus; cpus) {
      known = known ? *known | *cpus : *cpus;
    }
  }

  void describe(const XmlElement& element) {
    const auto arch = element.get("arch");
    if (!arch) return;
    out_.cpu = model::CpuModel{std::string(*arch), std::string(element.find("vendor").value_or("")),
                               number(element, "familyid"), number(element, "modelid")};
  }

  // Recursion is bounded by the reader's depth limit.
  void pci(std::size_t i, const Place& place) {
    const auto& element = at(i);
    auto device = describe_pci(element, place);
    const auto below = kinds_below(element);
    if (below.gpu)
      device.kind = PciKind::gpu;
    else if (below.nic && !below.pci)
      device.kind = PciKind::nic;
    else if (!device.class_code && below.pci)
      device.kind = PciKind::bridge;
    if (!device.class_code && device.kind == PciKind::other) unclassed(element, device.id);
    add_devices(i, device, place, below.nic && below.pci);
    Place inside = place;
    inside.parent = device.id;
    links_beside(element, device, inside);
    if (device.kind == PciKind::bridge && !device.id.empty()) add_switch(device);
    out_.pci.push_back(std::move(device));
    for (const auto child : element.children) {
      if (at(child).name == "pci") pci(child, inside);
    }
  }

  struct Below {
    bool gpu = false, nic = false, pci = false;
  };
  Below kinds_below(const XmlElement& element) const {
    Below below;
    for (const auto child : element.children) {
      below.gpu |= at(child).name == "gpu";
      below.nic |= at(child).name == "nic" || at(child).name == "net";
      below.pci |= at(child).name == "pci";
    }
    return below;
  }

  model::PciDevice describe_pci(const XmlElement& element, const Place& place) {
    model::PciDevice device;
    device.id = unique_id(element, place.host);
    device.parent = place.parent;
    device.root = place.root;
    device.numa = place.numa;
    device.local_cpus = place.cpus;
    device.class_code = hex(element, "class", parse_pci_class);
    device.vendor = hex(element, "vendor", parse_pci_id);
    device.device = hex(element, "device", parse_pci_id);
    device.subsystem_vendor = hex(element, "subsystem_vendor", parse_pci_id);
    device.subsystem_device = hex(element, "subsystem_device", parse_pci_id);
    device.capable.gts = hex(element, "link_speed", parse_link_speed);
    device.capable.width = hex(element, "link_width", parse_link_width);
    device.kind = kind_of(device.class_code, device.vendor, device.device);
    device.source = fmt::format("line {}", element.line);
    return device;
  }

  std::string unique_id(const XmlElement& element, std::size_t host) {
    const auto busid = element.get("busid");
    if (!busid) warn("no-busid", element.line, "a pci element without busid");
    const std::string name = busid ? canonical_bdf(*busid) : fmt::format("pci@line{}", element.line);
    std::string id = host == 0 ? name : fmt::format("host{}/{}", host, name);
    if (ids_.insert(id).second) return id;
    warn("duplicate-busid", element.line, fmt::format("bus id {} stands twice", name));
    id = fmt::format("{}@{}", id, element.line);
    while (!ids_.insert(id).second) id += '\'';
    return id;
  }

  void unclassed(const XmlElement& element, const std::string& id) {
    if (unclassed_ids_.empty()) unclassed_line_ = element.line;
    unclassed_ids_.push_back(id);
  }

  // The GPU or the NICs that a pci element is.
  void add_devices(std::size_t i, const model::PciDevice& device, const Place& place, bool nic_below_bridge) {
    const auto& element = at(i);
    if (device.kind == PciKind::gpu) {
      const auto gpu =
          std::ranges::find_if(element.children, [&](std::size_t c) { return at(c).name == "gpu"; });
      add_gpu(gpu == element.children.end() ? nullptr : &at(*gpu), place, &device);
    } else if (device.kind == PciKind::nic) {
      add_nics(i, place, device);
    } else if (nic_below_bridge) {
      attached_nics(i, place, device);
    }
    if (device.kind == PciKind::nvswitch) add_switch(device);
  }

  void add_nics(std::size_t i, const Place& place, const model::PciDevice& device) {
    const auto before = nics_.size() + merged_;
    for (const auto child : at(i).children) {
      if (at(child).name == "nic") nets(child, place, &device);
      if (at(child).name == "net") net(at(child), place, &device);
    }
    if (nics_.size() + merged_ == before) add_nic({}, {}, place, &device);
  }

  // A nic element beside pci elements below one switch: NCCL's fused NIC. It hangs at the switch.
  void attached_nics(std::size_t i, const Place& place, const model::PciDevice& bridge) {
    model::PciDevice attached;
    attached.id = bridge.id + "/nic";
    attached.parent = bridge.id;
    attached.root = place.root;
    attached.numa = place.numa;
    attached.kind = PciKind::nic;
    if (!ids_.insert(attached.id).second) return;
    for (const auto child : at(i).children) {
      if (at(child).name == "nic") nets(child, place, &attached);
    }
    out_.pci.push_back(std::move(attached));
  }

  void links_beside(const XmlElement& element, model::PciDevice& device, const Place& place) {
    for (const auto child : element.children) {
      if (at(child).name != "pcilink") continue;
      if (const auto target = at(child).get("target"))
        device.peer_links.push_back((place.host == 0 ? "" : fmt::format("host{}/", place.host)) +
                                    canonical_bdf(*target));
    }
  }

  void add_switch(const model::PciDevice& device) {
    const bool nvswitch = device.kind == PciKind::nvswitch;
    if (switches_.insert(device.id).second)
      out_.switches.push_back({device.id, bdf_of(device).value_or(""), nvswitch ? "nvswitch" : "pcie"});
  }

  // The bus id without the machine and without what makes a repeated one unique.
  static std::optional<std::string> bdf_of(const model::PciDevice& device) {
    std::string_view id = device.id;
    if (const auto slash = id.find('/'); slash != std::string_view::npos && id.starts_with("host"))
      id.remove_prefix(slash + 1);
    id = id.substr(0, id.find('@'));
    return parse_bdf(id) ? std::optional(std::string(id)) : std::nullopt;
  }

  void add_gpu(const XmlElement* element, const Place& place, const model::PciDevice* device) {
    FoundGpu found;
    found.element = element;
    found.host = place.host;
    auto& gpu = found.gpu;
    gpu.numa = place.numa;
    gpu.cpus = place.cpus;
    if (device != nullptr) {
      const bool amd = device->vendor == 0x1002 || (device->class_code && *device->class_code >> 8 == 0x1200);
      if (amd) out_.source.kind = SourceKind::rccl_topo_xml;
      gpu.bdf = bdf_of(*device);
      if (gpu.bdf != device->id) gpu.pci = device->id;
      gpu.pci_vendor = device->vendor;
      gpu.pci_device = device->device;
    }
    if (element != nullptr) describe_gpu(*element, found);
    gpus_.push_back(std::move(found));
  }

  void describe_gpu(const XmlElement& element, FoundGpu& found) {
    found.dev = number(element, "dev");
    found.rank = number(element, "rank");
    found.gpu.gdr = flag(element, "gdr");
    if (const auto gcn = element.get("gcn")) {
      found.gpu.sm = gfx_number(*gcn);
      out_.source.kind = SourceKind::rccl_topo_xml;
    } else if (const auto sm = number(element, "sm");
               sm && *sm > 0 && *sm < 1000 && found.gpu.pci_vendor != 0x1002) {
      found.gpu.sm = sm;  // on AMD it counts compute units
    }
    for (const auto child : element.children) {
      if (at(child).name == "c2c") c2c(at(child), found.gpu);
      if (at(child).name == "xgmi") out_.source.kind = SourceKind::rccl_topo_xml;
    }
  }

  void c2c(const XmlElement& element, model::Gpu& gpu) {
    const auto count = number(element, "count");
    const auto megabytes = number(element, "bw");
    if (!count || *count < 1 || *count > kMaxLinkCount) return;
    gpu.c2c = model::C2cLink{*count, {}};
    if (megabytes && *megabytes > 0) gpu.c2c->per_link = GBytesPerSec{*megabytes / 1000.0};
  }

  // Interfaces directly below a cpu element. Where the node's number does not tell the element (several
  // machines, no or one numaid twice) they get a device of their own that does.
  void virtual_nets(std::size_t i, const Place& place) {
    if (place.numa && place.root == fmt::format("cpu{}", *place.numa)) return nets(i, place, nullptr);
    model::PciDevice stand_in;
    stand_in.id = fmt::format("{}/line{}/nic", place.root, at(i).line);
    stand_in.root = place.root;
    stand_in.numa = place.numa;
    stand_in.kind = PciKind::nic;
    if (!ids_.insert(stand_in.id).second) return nets(i, place, nullptr);
    nets(i, place, &stand_in);
    out_.pci.push_back(std::move(stand_in));
  }

  void nets(std::size_t i, const Place& place, const model::PciDevice* device) {
    for (const auto child : at(i).children) {
      if (at(child).name == "net") net(at(child), place, device);
    }
  }

  void net(const XmlElement& element, const Place& place, const model::PciDevice* device) {
    model::Nic nic;
    if (const auto name = element.get("name")) nic.name = *name;
    nic.gdr = flag(element, "gdr");
    if (const auto port = number(element, "port"); port && *port > 0) nic.port = port;
    if (const auto guid = element.get("guid"); guid) nic.guid = parse_hex(*guid);
    nic.rate = speed(element, nic.name.value_or("net"));
    const auto dev = number(element, "dev");
    if (!merge(nic, dev, place, device)) add_nic(std::move(nic), dev, place, device);
  }

  std::optional<GbitsPerSec> speed(const XmlElement& element, const std::string& name) {
    const auto text = element.get("speed");
    const auto megabits = text ? parse_double(*text) : std::nullopt;
    if (!megabits || *megabits <= 0) return std::nullopt;
    if (*megabits <= kMaxNicMbits) return GbitsPerSec{*megabits / 1000};
    warn("nic-speed", element.line,
         fmt::format("speed {} Mb/s of {} is above 10 Tb/s: taken as unknown", *text, name));
    return std::nullopt;
  }

  // One `net` under several cpu elements with one dev number is one NIC; where it stands cannot be told then.
  bool merge(const model::Nic& nic, std::optional<int> dev, const Place& place,
             const model::PciDevice* device) {
    if (!dev) return false;
    const auto known = nic_by_dev_.find({place.host, *dev});
    if (known == nic_by_dev_.end()) return false;
    auto& other = nics_[known->second].nic;
    if (other.name != nic.name) return false;
    if (other.numa != place.numa) other.numa.reset();
    if (device != nullptr && bdf_of(*device)) other.is_virtual = false;
    const auto bdf = device != nullptr ? bdf_of(*device) : std::nullopt;
    if (other.bdf != bdf) {
      other.bdf.reset();
      other.pci.clear();
    }
    ++merged_;
    return true;
  }

  void add_nic(model::Nic nic, std::optional<int> dev, const Place& place, const model::PciDevice* device) {
    nic.numa = place.numa;
    if (device != nullptr) {
      nic.bdf = bdf_of(*device);
      if (nic.bdf != device->id) nic.pci = device->id;
    }
    nic.is_virtual = device == nullptr || (!nic.bdf && device->id.ends_with("/nic"));
    if (dev) nic_by_dev_.emplace(std::pair(place.host, *dev), nics_.size());
    nics_.push_back({std::move(nic), dev, place.host});
  }

  void finish() {
    for (auto& warning : doubts_about(masks_)) warn(warning.code, warning.line.value_or(1), warning.text);
    if (!unclassed_ids_.empty()) warn_unclassed();
    if (hosts_.size() > 1)
      warn("several-machines", 1,
           fmt::format("cpu elements of {} machines: NUMA nodes are those of the first", hosts_.size()));
    number_gpus();
    number_nics();
    for (const auto& device : out_.pci) nvswitch_ids(device);
    for (auto& found : gpus_) links(found);
    for (auto& found : gpus_) out_.gpus.push_back(std::move(found.gpu));
    for (auto& found : nics_) out_.nics.push_back(std::move(found.nic));
    std::ranges::stable_sort(out_.gpus, {}, &model::Gpu::index);
    std::ranges::stable_sort(out_.nics, {}, &model::Nic::index);
    if (out_.gpus.empty() && out_.nics.empty()) warn("no-devices", 1, "neither a GPU nor a NIC can be told");
  }

  void warn_unclassed() {
    std::string shown;
    for (std::size_t i = 0; i < unclassed_ids_.size() && i < 8; ++i)
      shown += (i == 0 ? "" : ", ") + unclassed_ids_[i];
    warn("no-class", unclassed_line_,
         fmt::format("{} pci elements without class, gpu or net count as neither GPU nor NIC: {}{}",
                     unclassed_ids_.size(), shown, unclassed_ids_.size() > 8 ? ", ..." : ""));
  }

  void number_gpus() {
    std::vector<std::optional<int>> devs, ranks;
    for (const auto& found : gpus_) {
      devs.push_back(found.dev);
      ranks.push_back(found.rank);
    }
    auto numbering = number_devices(devs);
    if (numbering.repeated && hosts_.size() > 1)
      numbering = number_devices(ranks);  // dev counts each machine's GPUs
    if (numbering.repeated)
      warn("duplicate-dev", 1, "two gpu elements have one dev number: the second is renumbered");
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      auto& gpu = gpus_[i].gpu;
      gpu.index = numbering.numbers[i];
      gpu.id = fmt::format("GPU{}", gpu.index);
      const auto key = gpu.pci.empty() ? gpu.bdf : std::optional(gpu.pci);
      if (key) gpu_by_pci_.emplace(*key, gpu.id);
    }
  }

  void number_nics() {
    std::vector<std::optional<int>> devs;
    for (const auto& found : nics_) devs.push_back(found.dev);
    const auto numbering = number_devices(devs);
    if (numbering.repeated && hosts_.size() <= 1)
      warn("duplicate-dev", 1,
           "two net elements of different name have one dev number: the second is renumbered");
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      nics_[i].nic.index = numbering.numbers[i];
      nics_[i].nic.id = fmt::format("NIC{}", numbering.numbers[i]);
    }
  }

  void nvswitch_ids(const model::PciDevice& device) {
    if (device.kind == PciKind::nvswitch) nvswitches_.insert(device.id);
  }

  void links(FoundGpu& found) {
    if (found.element == nullptr) return;
    std::optional<int> total;
    int to_itself = 0;
    for (const auto child : found.element->children) {
      const auto& element = at(child);
      if (element.name == "nvlink" || element.name == "xgmi") link(element, found, total, to_itself);
    }
    found.gpu.nvlinks = total;
    if (to_itself > 0)
      warn("self-nvlink", found.element->line,
           fmt::format("{} ({}): {} NVLinks whose target is the GPU itself are left out", found.gpu.id,
                       found.gpu.bdf.value_or("?"), to_itself));
  }

  void link(const XmlElement& element, FoundGpu& found, std::optional<int>& total, int& to_itself) {
    const auto count = number(element, "count");
    if (!count || *count < 0 || *count > kMaxLinkCount) {
      warn("link-count", element.line,
           fmt::format("count {} of a link of {}", element.get("count").value_or("missing"), found.gpu.id));
      return;
    }
    const std::string target = canonical_bdf(element.get("target").value_or(""));
    if (target == found.gpu.bdf) {
      to_itself += *count;
      return;
    }
    total = total.value_or(0) + *count;
    if (*count > 0) add_link(found, end_of(target, element, found.host), *count, element.name == "xgmi");
  }

  // The id of a link's far end: a GPU, an NVSwitch (NCCL knows it by tclass 0x0680, whatever the target
  // says), or the target itself, which is outside of this file.
  std::string end_of(const std::string& target, const XmlElement& element, std::size_t host) {
    const auto key = host == 0 ? target : fmt::format("host{}/{}", host, target);
    if (const auto gpu = gpu_by_pci_.find(key); gpu != gpu_by_pci_.end()) return gpu->second;
    const auto tclass = hex(element, "tclass", parse_pci_class);
    if (!nvswitches_.contains(key) && (!tclass || *tclass >> 8 != 0x0680 || *tclass == 0x068001))
      return target;
    if (!parse_bdf(target)) return "NVSwitch";
    if (nvswitches_.insert(key).second) out_.switches.push_back({key, target, "nvswitch"});
    return key;
  }

  static void add_link(FoundGpu& found, std::string to, int count, bool xgmi) {
    auto& links = found.gpu.links;
    const auto known = std::ranges::find(links, to, &model::NvLinkGroup::to);
    if (known != links.end())
      known->count += count;
    else
      links.push_back({std::move(to), count, xgmi, {}});
  }

  const XmlDocument& document_;
  model::Topology out_;
  std::vector<FoundGpu> gpus_;
  std::vector<FoundNic> nics_;
  std::vector<WrittenMask> masks_;
  std::vector<std::string> unclassed_ids_;
  int unclassed_line_ = 1;
  std::size_t merged_ = 0;
  std::map<std::string, std::size_t> hosts_;  // host_hash -> machine
  std::map<std::string, int> roots_;          // name -> times used
  std::map<int, std::size_t> nodes_;          // numaid -> place in out_.numa
  std::map<std::pair<std::size_t, int>, std::size_t> nic_by_dev_;
  std::set<std::string> ids_, switches_, nvswitches_;
  std::unordered_map<std::string, std::string> gpu_by_pci_;
};

}  // namespace

bool looks_like_nccl_topo_xml(std::string_view text) {
  const auto head = first_element(text);
  if (!head) return false;
  if (head->name == "cpu")
    return head->rest.substr(0, head->rest.find('>')).find("numaid") != std::string_view::npos;
  if (head->name != "system") return false;
  if (head->rest.substr(0, head->rest.find('>')).find("version") != std::string_view::npos) return true;
  const auto next = first_element(head->rest);
  return next && (next->name == "cpu" || next->name == "pci");
}

Result<model::Topology> parse_nccl_topo_xml(std::string_view text) {
  const auto document = read_xml(text);
  if (!document) return tl::unexpected(document.error());
  return Reader(*document).read();
}

}  // namespace topotune::parse
