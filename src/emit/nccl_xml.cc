#include "emit/nccl_xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/bdf.h"
#include "base/text.h"
#include "model/tree.h"

namespace topotune::emit {

using model::PciDevice;
using model::PciKind;
using model::Topology;

namespace {

constexpr std::size_t kMaxString = 253;  // NCCL's MAX_STR_LEN less the end (src/graph/xml.h)
constexpr std::string_view kSomeSwitch = "fffffff:ffff:ff";  // NCCL's own word for an NVSwitch it cannot see

// NCCL knows no entities: what would need one becomes '_'.
std::string word(std::string_view text) {
  std::string out(text.substr(0, kMaxString));
  std::ranges::replace_if(
      out,
      [](char c) {
        return c < 0x20 || c == 0x7f || std::string_view("\"'<>&").find(c) != std::string_view::npos;
      },
      '_');
  return out;
}

// One element of the tree to be written.
struct Node {
  const PciDevice* device = nullptr;
  const model::Gpu* gpu = nullptr;
  std::vector<const model::Nic*> nics;
  std::vector<std::size_t> children;
};

// One cpu element.
struct Cpu {
  std::optional<int> numa;
  std::optional<CpuSet> cpus;
  std::string host;  // "" first machine, "host1" ...
  std::vector<std::size_t> children;
  std::vector<const model::Nic*> nics;  // without PCI device
};

class Writer {
 public:
  explicit Writer(const Topology& topology) : topology_(topology), tree_(topology) {}

  std::string write() {
    index();
    for (const auto& node : topology_.numa) cpu_place(fmt::format("cpu{}", node.id), node.id, node.cpus);
    for (const auto& gpu : topology_.gpus) place_gpu(gpu);
    for (const auto& nic : topology_.nics) place_nic(nic);
    rccl_ = std::ranges::any_of(topology_.gpus,
                                [](const model::Gpu& gpu) {
                                  return gpu.pci_vendor == 0x1002 ||
                                         std::ranges::any_of(gpu.links, &model::NvLinkGroup::xgmi);
                                }) ||
            topology_.source.kind == model::SourceKind::rccl_topo_xml;
    line(0, fmt::format("<system version=\"{}\">", rccl_ ? 2 : 1));
    for (const auto& cpu : cpus_) {
      several_hosts_ |= !cpu.host.empty();
      if (cpu.cpus && !cpu.cpus->empty()) highest_cpu_ = std::max(highest_cpu_, cpu.cpus->to_vector().back());
    }
    for (const auto& cpu : cpus_) write_cpu(cpu);
    line(0, "</system>");
    return std::move(out_);
  }

 private:
  void index() {
    for (const auto& gpu : topology_.gpus) gpus_.emplace(gpu.id, &gpu);
    for (const auto& one : topology_.switches) {
      if (one.kind == "nvswitch") switches_.insert(one.id);
    }
    for (const auto& device : topology_.pci) {
      if (device.kind == PciKind::nvswitch) switches_.insert(device.id);
    }
  }

  void line(int depth, std::string_view text) {
    out_.append(static_cast<std::size_t>(depth) * 2, ' ').append(text).append("\n");
  }

  static void attribute(std::string& tag, std::string_view name, std::string_view value) {
    tag += fmt::format(" {}=\"{}\"", name, word(value));
  }

  // The cpu element of a root (NCCL XML) or of a NUMA node (a real tree), made when it is new.
  std::size_t cpu_place(const std::string& key, std::optional<int> numa, const std::optional<CpuSet>& cpus) {
    const auto [found, fresh] = cpu_by_key_.emplace(key, cpus_.size());
    if (!fresh) return found->second;
    const auto slash = key.find('/');
    cpus_.push_back({numa, cpus, slash == std::string::npos ? "" : key.substr(0, slash), {}, {}});
    return found->second;
  }

  std::size_t cpu_of(const model::Route& route, const std::optional<CpuSet>& cpus) {
    const std::string by_numa = route.numa ? fmt::format("cpu{}", *route.numa) : "cpu?";
    return cpu_place(topology_.nccl_classes && !route.root.empty() ? route.root : by_numa, route.numa, cpus);
  }

  // The node of a device, made with the bridges above it where they are new.
  std::size_t node_of(const model::Route& route) {
    auto chain = model::nccl_chain(route, topology_.nccl_classes);
    std::ranges::reverse(chain);
    chain.push_back(route.device);
    const auto cpu = cpu_of(route, route.device->local_cpus);
    std::optional<std::size_t> above;
    for (const auto* device : chain) {
      const auto [found, fresh] = node_by_device_.emplace(device, nodes_.size());
      if (fresh) {
        nodes_.push_back({device, nullptr, {}, {}});
        (above ? nodes_[*above].children : cpus_[cpu].children).push_back(found->second);
      }
      above = found->second;
    }
    return *above;
  }

  void place_gpu(const model::Gpu& gpu) {
    const auto route = tree_.route_to(gpu);
    if (route.device != nullptr) nodes_[node_of(route)].gpu = &gpu;
  }

  void place_nic(const model::Nic& nic) {
    const auto route = tree_.route_to(nic);
    if (route.device != nullptr)
      nodes_[node_of(route)].nics.push_back(&nic);
    else if (nic.name)
      cpus_[cpu_of(route, {})].nics.push_back(&nic);
  }

  void write_cpu(const Cpu& cpu) {
    // NCCL makes a cpu element for a device only; one that a file of NCCL's names stays.
    if (!(cpu.numa && topology_.nccl_classes) && cpu.children.empty() && cpu.nics.empty()) return;
    std::string tag = "<cpu";
    if (several_hosts_) attribute(tag, "host_hash", cpu.host.empty() ? "0x1" : "0x1" + cpu.host.substr(4));
    attribute(tag, "numaid", fmt::format("{}", cpu.numa.value_or(-1)));
    if (cpu.cpus && !cpu.cpus->empty()) attribute(tag, "affinity", mask(*cpu.cpus));
    if (topology_.cpu) write_model(tag, *topology_.cpu);
    line(1, tag + ">");
    for (const auto child : cpu.children) write_pci(child, 2);
    write_nets(cpu.nics, 2);
    line(1, "</cpu>");
  }

  static void write_model(std::string& tag, const model::CpuModel& cpu) {
    if (!cpu.arch.empty()) attribute(tag, "arch", cpu.arch);
    if (!cpu.vendor.empty()) attribute(tag, "vendor", cpu.vendor);
    if (cpu.family) attribute(tag, "familyid", fmt::format("{}", *cpu.family));
    if (cpu.model) attribute(tag, "modelid", fmt::format("{}", *cpu.model));
  }

  // Words of eight digits, as many in every mask.
  std::string mask(const CpuSet& cpus) const {
    std::string out;
    for (int base = highest_cpu_ / 32 * 32; base >= 0; base -= 32) {
      std::uint32_t bits = 0;
      for (int bit = 0; bit < 32; ++bit) bits |= cpus.contains(base + bit) ? std::uint32_t{1} << bit : 0;
      out += fmt::format("{}{:08x}", out.empty() ? "" : ",", bits);
    }
    return out;
  }

  // The recursion is as deep as PciTree's routes at most.
  void write_pci(std::size_t i, int depth) {
    const auto& node = nodes_[i];
    if (node.device->id.ends_with("/nic")) return write_nets(node.nics, depth);  // hangs at its switch
    const auto tag = pci_tag(node);
    const bool named =
        std::ranges::any_of(node.nics, [](const model::Nic* nic) { return nic->name.has_value(); });
    const bool gpu = node.gpu != nullptr && tells_more(*node.gpu);
    if (node.children.empty() && !gpu && !named && node.device->peer_links.empty())
      return line(depth, tag + "/>");
    line(depth, tag + ">");
    if (gpu) write_gpu(*node.gpu, depth + 1);
    if (named) write_nets(node.nics, depth + 1);
    for (const auto child : node.children) write_pci(child, depth + 1);
    for (const auto& peer : node.device->peer_links)
      line(depth + 1, fmt::format("<pcilink target=\"{}\"/>", word(busid(peer))));
    line(depth, "</pci>");
  }

  // Whether a gpu element says more than the class does; its dev alone may not be NVML's number.
  static bool tells_more(const model::Gpu& gpu) { return gpu.sm || gpu.gdr || !gpu.links.empty() || gpu.c2c; }

  // Without the machine in front and what makes a repeated one unique.
  static std::string busid(std::string_view id) {
    const auto slash = id.find('/');
    if (id.starts_with("host") && slash != std::string_view::npos) id.remove_prefix(slash + 1);
    const auto plain = id.substr(0, id.find('@'));
    return std::string(parse_bdf(plain) ? plain : id);
  }

  static std::string pci_tag(const Node& node) {
    const auto& device = *node.device;
    std::string tag = "<pci";
    attribute(tag, "busid", busid(device.id));
    attribute(tag, "class", fmt::format("0x{:06x}", device.class_code.value_or(usual_class(node))));
    const auto number = [&](std::string_view name, std::optional<std::uint16_t> value) {
      if (value) attribute(tag, name, fmt::format("0x{:04x}", *value));
    };
    number("vendor", device.vendor);
    number("device", device.device);
    number("subsystem_vendor", device.subsystem_vendor);
    number("subsystem_device", device.subsystem_device);
    const auto& link = device.capable.gts || device.capable.width ? device.capable : device.current;
    attribute(tag, "link_speed", link.gts ? fmt::format("{:.1f} GT/s PCIe", *link.gts) : "");
    attribute(tag, "link_width", fmt::format("{}", link.width.value_or(0)));
    return tag;
  }

  static std::uint32_t usual_class(const Node& node) {
    if (node.gpu != nullptr) return 0x030200;
    return node.device->kind == PciKind::nic ? 0x020000 : 0x060400;
  }

  void write_gpu(const model::Gpu& gpu, int depth) {
    std::string tag = fmt::format("<gpu dev=\"{}\"", gpu.index);
    if (gpu.sm && rccl_) attribute(tag, "gcn", *gpu.sm == 910 ? "gfx90a" : fmt::format("gfx{}", *gpu.sm));
    if (gpu.sm && !rccl_) attribute(tag, "sm", fmt::format("{}", *gpu.sm));
    if (gpu.gdr) attribute(tag, "gdr", *gpu.gdr ? "1" : "0");
    std::vector<std::string> inside;
    for (const auto& group : gpu.links) {
      if (auto one = link(group)) inside.push_back(std::move(*one));
    }
    if (gpu.c2c && gpu.c2c->per_link)
      inside.push_back(
          fmt::format("<c2c bw=\"{:.0f}\" count=\"{}\"/>", gpu.c2c->per_link->value * 1000, gpu.c2c->count));
    if (inside.empty()) return line(depth, tag + "/>");
    line(depth, tag + ">");
    for (const auto& one : inside) line(depth + 1, one);
    line(depth, "</gpu>");
  }

  // Links that are not counted, or whose end is unknown, are left to NCCL's own detection.
  std::optional<std::string> link(const model::NvLinkGroup& group) const {
    if (!group.counted || group.to.empty() || group.to == "CPU") return std::nullopt;
    std::string target = busid(group.to), tclass = group.xgmi ? "0x038000" : "0x030200";
    if (const auto found = gpus_.find(group.to); found != gpus_.end()) {
      const auto& gpu = *found->second;
      if (!gpu.bdf) return std::nullopt;
      target = *gpu.bdf;
      const auto* device = tree_.find(gpu.pci.empty() ? *gpu.bdf : gpu.pci);
      if (device != nullptr && device->class_code) tclass = fmt::format("0x{:06x}", *device->class_code);
    } else if (switches_.contains(group.to)) {
      tclass = "0x068000";
      if (group.to == "NVSwitch") target = kSomeSwitch;
    }
    return fmt::format("<{} target=\"{}\" count=\"{}\" tclass=\"{}\"/>", group.xgmi ? "xgmi" : "nvlink",
                       word(target), group.count, tclass);
  }

  void write_nets(const std::vector<const model::Nic*>& nics, int depth) {
    if (nics.empty()) return;
    line(depth, "<nic>");
    for (const auto* nic : nics) write_net(*nic, depth + 1);
    line(depth, "</nic>");
  }

  void write_net(const model::Nic& nic, int depth) {
    std::string tag = "<net";
    if (nic.name) attribute(tag, "name", *nic.name);
    attribute(tag, "dev", fmt::format("{}", nic.index));
    if (nic.rate) attribute(tag, "speed", fmt::format("{}", std::llround(nic.rate->value * 1000)));
    attribute(tag, "port", fmt::format("{}", nic.port.value_or(0)));
    if (nic.guid) attribute(tag, "guid", fmt::format("0x{:x}", *nic.guid));
    if (nic.gdr) attribute(tag, "gdr", *nic.gdr ? "1" : "0");
    line(depth, tag + "/>");
  }

  const Topology& topology_;
  model::PciTree tree_;
  bool rccl_ = false, several_hosts_ = false;
  int highest_cpu_ = 0;
  std::unordered_map<std::string_view, const model::Gpu*> gpus_;
  std::unordered_set<std::string_view> switches_{"NVSwitch"};
  std::vector<Node> nodes_;
  std::vector<Cpu> cpus_;
  std::unordered_map<std::string, std::size_t> cpu_by_key_;
  std::unordered_map<const PciDevice*, std::size_t> node_by_device_;
  std::string out_;
};

}  // namespace

std::string nccl_topo_xml(const Topology& topology) {
  if (!topology.tree_known || topology.pci.empty()) return "";
  return Writer(topology).write();
}

}  // namespace topotune::emit
