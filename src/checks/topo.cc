// Rules about NCCL's topology XML (NCCL_TOPO_FILE): the file against NCCL's reader, itself and the machine.
// NCCL src/graph/xml.cc, xml.h, topo.cc.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/bdf.h"
#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"
#include "checks/nccl_tree.h"
#include "parse/nccl_strict.h"

namespace topotune::checks {
namespace {

using parse::XmlDocument;

constexpr std::size_t kMostEvidence = 8;  // lines quoted in one finding
constexpr std::size_t kMostCpus = 1024;   // cpu elements compared with each other

// Calls the rule for each file that can be read as XML; no file at all, or an unreadable one, is not
// evaluated.
Outcome each_file(std::string_view rule, const Evidence& evidence,
                  void (*check)(const ParsedFile&, const Evidence&, Judge&)) {
  Judge judge(rule);
  const auto& files = *evidence.files;
  if (files.empty()) return NotEvaluated{"no topology file in the input"};
  for (const auto& file : files) {
    if (file.document)
      check(file, evidence, judge);
    else
      judge.unknown(fmt::format("{}: {}", file.name, file.document.error().text));
  }
  return judge.outcome();
}

void place(model::Finding& finding, const ParsedFile& file, int line) {
  finding.file = file.name;
  finding.line = line;
}

// ---- TOPO01: NCCL cannot parse this topology file

void check_strict(const ParsedFile& file, const Evidence&, Judge& judge) {
  if (file.rccl) return;
  for (const auto& problem : parse::nccl_problems(file.text)) {
    auto& found =
        judge.found(file.name, "a file that NCCL's reader accepts", problem.text,
                    {{fmt::format("{}:{}:{}", file.name, problem.line, problem.column), problem.text}});
    place(found, file, problem.line);
    found.column = problem.column;
    if (!problem.fatal) found.severity = model::Severity::info;
  }
}

Outcome check_TOPO01(const Evidence& evidence) {
  Judge judge("TOPO01");
  if (evidence.files->empty()) return NotEvaluated{"no topology file in the input"};
  for (const auto& file : *evidence.files) check_strict(file, evidence, judge);
  return judge.outcome();
}

// ---- TOPO02: the file is not a topology file

void check_root(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  const auto root = xml.roots.empty() ? std::string_view() : xml[xml.roots.front()].name;
  if (root == "system") return;
  const auto observed = root.empty() ? std::string("no XML element") : fmt::format("<{}>", printable(root));
  auto& found = judge.found(file.name, "<system>", observed, {{file.name, "first element: " + observed}});
  place(found, file, xml.roots.empty() ? 1 : xml[xml.roots.front()].line);
  if (root == "graphs") found.observed += ", which NCCL_GRAPH_FILE takes";
}

Outcome check_TOPO02(const Evidence& evidence) { return each_file("TOPO02", evidence, check_root); }

// ---- TOPO03: the topology file describes another machine

struct BusIds {
  std::set<std::string> gpus, nics;
};

bool synthetic(std::string_view busid) { return busid.starts_with("ffff:"); }

BusIds ids_in(const XmlDocument& xml) {
  BusIds ids;
  for (const auto* pci : elements_named(xml, "pci")) {
    const auto busid = canonical_bdf(busid_of(*pci));
    if (busid.empty() || synthetic(busid)) continue;
    if (is_gpu(xml, *pci)) ids.gpus.insert(busid);
    if (is_nic(xml, *pci)) ids.nics.insert(busid);
  }
  return ids;
}

BusIds ids_of(const model::Topology& topology) {
  BusIds ids;
  for (const auto& device : topology.pci) {
    if (device.kind == model::PciKind::gpu) ids.gpus.insert(device.id);
    if (device.kind == model::PciKind::nic) ids.nics.insert(device.id);
  }
  return ids;
}

std::vector<std::string> without(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::vector<std::string> out;
  std::ranges::set_difference(a, b, std::back_inserter(out));
  return out;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A dump of a multi-node NVLink domain holds several hosts.
bool several_hosts(const XmlDocument& xml) {
  std::set<std::string_view> hosts;
  for (const auto* cpu : elements_named(xml, "cpu")) hosts.insert(cpu->get("host_hash").value_or(""));
  return hosts.size() > 1;
}

void compare_devices(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  const auto& xml = *file.document;
  const auto in_file = ids_in(xml), here = ids_of(evidence.machine->topology);
  const bool skeleton = in_file.gpus.empty() && in_file.nics.empty();
  if (file.own) return judge.unknown("the file is examined away from its machine");
  if (here.gpus.empty() && here.nics.empty()) return judge.unknown("the machine's PCI devices were not read");
  if (skeleton || several_hosts(xml)) return;
  const auto ghosts = joined(without(in_file.gpus, here.gpus), without(in_file.nics, here.nics));
  auto absent = in_file.gpus.empty() ? std::vector<std::string>() : without(here.gpus, in_file.gpus);
  if (!in_file.nics.empty()) absent = joined(absent, without(here.nics, in_file.nics));
  if (ghosts.empty() && absent.empty()) return;
  auto& found = judge.found(
      file.name, "the GPUs and NICs of this machine",
      fmt::format("{} of the file are not here, {} of the machine are not in the file", ghosts.size(),
                  absent.size()),
      {{file.name, "not on this machine: " + fmt::format("{}", fmt::join(ghosts, " "))},
       {"/sys/bus/pci/devices", "not in the file: " + fmt::format("{}", fmt::join(absent, " "))}});
  if (absent.empty()) found.severity = model::Severity::info;  // NCCL removes what is not there
}

Outcome check_TOPO03(const Evidence& evidence) { return each_file("TOPO03", evidence, compare_devices); }

// ---- TOPO04, TOPO05, TOPO06: CPU masks

struct Mask {
  const Element* cpu = nullptr;
  int node = 0;
  std::string_view host, text;
  CpuSet cpus;
};

std::vector<Mask> masks_of(const XmlDocument& xml) {
  std::vector<Mask> out;
  std::set<std::pair<std::string_view, int>> seen;
  for (const auto* cpu : elements_named(xml, "cpu")) {
    const auto node = parse_int<int>(cpu->get("numaid").value_or(""));
    const auto text = cpu->get("affinity").value_or("");
    const auto set = parse_cpu_mask(text);
    const auto host = cpu->get("host_hash").value_or("");
    if (!node || text.empty() || !set || set->empty() || out.size() >= kMostCpus) continue;
    if (seen.insert({host, *node}).second) out.push_back({cpu, *node, host, text, *set});
  }
  return out;
}

std::string mask_text(const Mask& mask) {
  return fmt::format("numaid {} affinity {} (CPUs {})", mask.node, mask.text, mask.cpus.to_list());
}

void compare_masks(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto masks = masks_of(*file.document);
  std::size_t said = 0;
  for (std::size_t i = 0; i < masks.size(); ++i)
    for (std::size_t j = i + 1; j < masks.size() && said < kMostEvidence; ++j) {
      if (masks[i].host != masks[j].host || !masks[i].cpus.intersects(masks[j].cpus)) continue;
      ++said;
      auto& found = judge.found(
          fmt::format("node {} and node {}", masks[i].node, masks[j].node), "no common CPU",
          fmt::format("CPUs {} in both", (masks[i].cpus & masks[j].cpus).to_list()),
          {quote(file, *masks[i].cpu, mask_text(masks[i])), quote(file, *masks[j].cpu, mask_text(masks[j]))});
      place(found, file, masks[j].cpu->line);
    }
}

Outcome check_TOPO04(const Evidence& evidence) { return each_file("TOPO04", evidence, compare_masks); }

void compare_nodes(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  const auto& nodes = evidence.machine->topology.numa;
  if (file.own) return judge.unknown("the file is examined away from its machine");
  if (nodes.empty()) return judge.unknown("the machine's NUMA nodes were not read");
  for (const auto& mask : masks_of(*file.document)) {
    const auto node = std::ranges::find(nodes, mask.node, &model::NumaNode::id);
    if (node == nodes.end() || !node->cpus || mask.cpus.is_subset_of(*node->cpus)) continue;
    auto& found = judge.found(
        fmt::format("node {}", mask.node), "CPUs of " + node->cpus->to_list(), mask.cpus.to_list(),
        {quote(file, *mask.cpu, mask_text(mask)),
         {fmt::format("/sys/devices/system/node/node{}/cpulist", mask.node), node->cpus->to_list()}});
    place(found, file, mask.cpu->line);
  }
}

Outcome check_TOPO05(const Evidence& evidence) {
  if (evidence.machine->container.value.value_or(false))
    return NotEvaluated{"in a container, whose cpuset can hide CPUs"};
  return each_file("TOPO05", evidence, compare_nodes);
}

// A word other than the first with fewer than eight digits: NCCL shifts all digits before it.
bool lost_digit(std::string_view mask) {
  const auto parts = split(mask, ',');
  return std::any_of(parts.begin() + 1, parts.end(),
                     [](std::string_view word) { return trim(word).size() < 8; });
}

bool other_counts_agree(const std::vector<Mask>& masks, std::size_t odd) {
  const auto& first = masks[odd == 0 ? 1 : 0];
  for (std::size_t i = 0; i < masks.size(); ++i)
    if (i != odd && masks[i].cpus.count() != first.cpus.count()) return false;
  return true;
}

void find_short_mask(const ParsedFile& file, const std::vector<Mask>& masks, Judge& judge) {
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const auto& peer = masks[i == 0 ? 1 : 0];
    if (!other_counts_agree(masks, i) || masks[i].cpus.count() >= peer.cpus.count()) continue;
    auto& found = judge.found(
        fmt::format("node {}", masks[i].node),
        fmt::format("{} CPUs, as in the other elements", peer.cpus.count()),
        fmt::format("{} CPUs", masks[i].cpus.count()),
        {quote(file, *masks[i].cpu, mask_text(masks[i])), quote(file, *peer.cpu, mask_text(peer))});
    place(found, file, masks[i].cpu->line);
    // Two elements that differ do not tell which one is wrong, unless a word lacks a digit.
    if (masks.size() < 3 && !lost_digit(masks[i].text)) found.severity = model::Severity::info;
    return;
  }
}

// NCCL's own dumps leave nodes without devices out: then the gap is no fault.
bool nodes_without_gap(const std::vector<Mask>& masks) {
  std::set<int> nodes;
  for (const auto& mask : masks) nodes.insert(mask.node);
  return !nodes.empty() && *nodes.begin() == 0 && *nodes.rbegin() == static_cast<int>(nodes.size()) - 1;
}

CpuSet range_of(const CpuSet& cpus) {
  const auto all = cpus.to_vector();
  CpuSet range;
  range.add_range(all.front(), all.back());
  return range;
}

void find_gaps(const ParsedFile& file, const Evidence& evidence, const std::vector<Mask>& masks,
               Judge& judge) {
  CpuSet all;
  for (const auto& mask : masks) all = all | mask.cpus;
  const auto& online = evidence.machine->online_cpus;
  const auto expected = !file.own && online ? *online : range_of(all);
  const auto gap = expected - all;
  if (gap.empty()) return;
  auto& found = judge.found(file.name, "every CPU in some mask", "CPUs " + gap.to_list() + " in none",
                            {{file.name, "all masks: " + all.to_list()}});
  found.severity = model::Severity::info;
  found.file = file.name;
}

void check_coverage(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  const auto masks = masks_of(*file.document);
  if (masks.size() < 2 || several_hosts(*file.document)) return;
  find_short_mask(file, masks, judge);
  if (nodes_without_gap(masks)) find_gaps(file, evidence, masks, judge);
}

Outcome check_TOPO06(const Evidence& evidence) { return each_file("TOPO06", evidence, check_coverage); }

// ---- TOPO07, TOPO08: NVLinks of the file

// The pci element that holds a nvlink or xgmi element; null when it hangs elsewhere.
const Element* holder_of(const XmlDocument& xml, const Element& link) {
  const auto* gpu = parent_of(xml, link);
  const auto* pci = gpu == nullptr ? nullptr : parent_of(xml, *gpu);
  return pci != nullptr && pci->name == "pci" ? pci : nullptr;
}

void check_self_links(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  for (const auto* link : elements_named(xml, "nvlink")) {
    const auto* pci = holder_of(xml, *link);
    const auto target = to_lower(link->get("target").value_or(""));
    if (pci == nullptr || target.empty() || target != busid_of(*pci)) continue;
    auto& found =
        judge.found(target, "the bus id of another GPU", target,
                    {quote(file, *link,
                           fmt::format("<nvlink target=\"{}\" count=\"{}\"> inside <pci busid=\"{}\">",
                                       target, link->get("count").value_or("?"), target))});
    place(found, file, link->line);
  }
}

Outcome check_TOPO07(const Evidence& evidence) { return each_file("TOPO07", evidence, check_self_links); }

struct LinkCounts {
  std::map<std::string, int> by_target;
  int total = 0;
  bool to_switch = false;  // a link that ends at an NVSwitch (class 0x0680): no GPU is its target
  const Element* first = nullptr;
};

std::map<std::string, LinkCounts> links_in(const XmlDocument& xml) {
  std::map<std::string, LinkCounts> out;
  for (const auto* link : elements_named(xml, "nvlink")) {
    const auto* pci = holder_of(xml, *link);
    const auto count = parse_int<int>(link->get("count").value_or(""));
    if (pci == nullptr || !count) continue;
    auto& counts = out[canonical_bdf(busid_of(*pci))];
    counts.by_target[canonical_bdf(to_lower(link->get("target").value_or("")))] += *count;
    counts.total += *count;
    counts.to_switch = counts.to_switch || link->get("tclass").value_or("").starts_with("0x0680");
    if (counts.first == nullptr) counts.first = link;
  }
  return out;
}

// Behind an NVSwitch only the number of links can be compared: a matrix names the peers, the file the switch.
void compare_switch_links(const ParsedFile& file, const model::Gpu& gpu, const LinkCounts& counts,
                          Judge& judge) {
  if (!gpu.nvlinks) return judge.unknown(gpu.id + ": how many NVLinks the driver has was not read");
  if (*gpu.nvlinks == counts.total) return;
  auto& found = judge.found(gpu.id, fmt::format("{} links, as the driver says", *gpu.nvlinks),
                            fmt::format("{} links", counts.total),
                            {quote(file, *counts.first, fmt::format("{} links to NVSwitches", counts.total)),
                             {"nvml", fmt::format("{} active links", *gpu.nvlinks)}});
  place(found, file, counts.first->line);
}

// Only links between GPUs of this machine are compared: the driver also counts those that leave the job.
void compare_links(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  const auto& gpus = evidence.machine->topology.gpus;
  std::map<std::string, const model::Gpu*> by_bdf;
  for (const auto& gpu : gpus)
    if (gpu.bdf) by_bdf[*gpu.bdf] = &gpu;
  for (const auto& [busid, counts] : links_in(*file.document)) {
    const auto here = by_bdf.find(busid);
    if (here == by_bdf.end()) continue;
    if (here->second->links.empty()) {
      judge.unknown(here->second->id + ": the driver's NVLinks were not read");
      continue;
    }
    if (counts.to_switch) {
      compare_switch_links(file, *here->second, counts, judge);
      continue;
    }
    for (const auto& group : here->second->links) {
      const auto* peer = model::find_gpu(evidence.machine->topology, group.to);
      const auto target = peer != nullptr ? peer->bdf.value_or("") : group.to;
      const auto in_file = counts.by_target.find(target);
      const int said = in_file == counts.by_target.end() ? 0 : in_file->second;
      if (group.xgmi || target.empty() || target == "NVSwitch" || said == group.count) continue;
      auto& found =
          judge.found(here->second->id + "-" + (peer != nullptr ? peer->id : group.to),
                      fmt::format("{} links, as the driver says", group.count), fmt::format("{} links", said),
                      {quote(file, *counts.first, fmt::format("{} links to {}", said, target)),
                       {"nvml", fmt::format("{} links to {}", group.count, target)}});
      place(found, file, counts.first->line);
    }
  }
}

void check_links(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  if (file.rccl) return;
  if (links_in(*file.document).empty()) return;  // NCCL asks NVML itself
  if (file.own) return judge.unknown("the file is examined away from its machine");
  compare_links(file, evidence, judge);
}

Outcome check_TOPO08(const Evidence& evidence) { return each_file("TOPO08", evidence, check_links); }

// ---- TOPO09, TOPO10: link speeds

struct BadSpeed {
  std::vector<const Element*> elements;
  bool unknown = false;  // an empty or worded text, as virtual machines have it
};

void check_speeds(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  const auto& xml = *file.document;
  const auto on_path = on_device_paths(xml);
  const auto version = nccl_version_of(evidence);
  const bool old = !version.empty() && !version_at_least(version, "2.12");
  std::map<std::string_view, BadSpeed> bad;
  for (std::size_t i = 0; i < xml.elements.size(); ++i) {
    const auto speed = xml[i].find("link_speed");
    if (!on_path[i] || xml[i].name != "pci" || !speed || speed_code(*speed, old)) continue;
    const auto gts = gts_in(*speed);
    if (gts == 8.0) continue;  // Gen3 anyway
    auto& entry = bad[*speed];
    entry.elements.push_back(&xml[i]);
    entry.unknown = !gts;
  }
  for (const auto& [speed, entry] : bad) {
    std::vector<model::Evidence> lines;
    for (const auto* pci : entry.elements)
      if (lines.size() < kMostEvidence)
        lines.push_back(
            quote(file, *pci, fmt::format("<pci busid=\"{}\" link_speed=\"{}\">", busid_of(*pci), speed)));
    auto& found =
        judge.found(fmt::format("link_speed=\"{}\"", speed), "a text that NCCL knows, as \"16.0 GT/s PCIe\"",
                    fmt::format("{} elements that NCCL counts as 8 GT/s", entry.elements.size()), lines);
    place(found, file, entry.elements.front()->line);
    if (entry.unknown) found.severity = model::Severity::info;
  }
}

Outcome check_TOPO09(const Evidence& evidence) { return each_file("TOPO09", evidence, check_speeds); }

// An AMD GPU behind the switch on its own card has that switch's bandwidth.
bool on_card(const Element& device, const Element& above) {
  const auto vendor = above.get("vendor").value_or("");
  return device.get("vendor") == "0x1002" && (vendor == "0x1022" || vendor == "0x1002");
}

struct SlowUplink {
  double gbytes = 0;
  std::vector<const Element*> devices;
  double fastest = 0;
};

constexpr double kNoUplinkIsSlower = 1.0;  // GB/s

void check_uplinks(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  std::map<std::size_t, SlowUplink> slow;
  for (std::size_t i = 0; i < xml.elements.size(); ++i) {
    auto own = is_gpu(xml, xml[i]) || is_nic(xml, xml[i]) ? gbytes_of(xml[i]) : std::nullopt;
    if (!own) continue;
    for (auto at = xml[i].parent; at != Element::kNone && xml[at].name == "pci"; at = xml[at].parent) {
      const auto above = gbytes_of(xml[at]);
      if (above && at == xml[i].parent && on_card(xml[i], xml[at])) {
        own = std::min(*own, *above);
        continue;
      }
      const bool narrow = above && *above < *own && (*above * 2 < *own || *above < kNoUplinkIsSlower);
      if (!narrow) continue;
      auto& entry = slow[at];
      entry.gbytes = *above;
      entry.fastest = std::max(entry.fastest, *own);
      entry.devices.push_back(&xml[i]);
    }
  }
  for (const auto& [at, entry] : slow) {
    std::vector<model::Evidence> lines{
        quote(file, xml[at],
              fmt::format("<pci busid=\"{}\" link_speed=\"{}\" link_width=\"{}\"> is {:.2f} GB/s",
                          busid_of(xml[at]), xml[at].get("link_speed").value_or(""),
                          xml[at].get("link_width").value_or(""), entry.gbytes))};
    for (const auto* device : entry.devices)
      if (lines.size() < kMostEvidence)
        lines.push_back(quote(file, *device, fmt::format("{} below it", busid_of(*device))));
    auto& found =
        judge.found(busid_of(xml[at]), fmt::format("{:.1f} GB/s, as the device below", entry.fastest),
                    fmt::format("{:.2f} GB/s", entry.gbytes), lines);
    place(found, file, xml[at].line);
  }
}

Outcome check_TOPO10(const Evidence& evidence) { return each_file("TOPO10", evidence, check_uplinks); }

// ---- TOPO11: a cpu element lacks arch or vendor

// Attributes that NCCL needs and the element has not (ncclTopoAddCpu).
std::vector<std::string> lacking(const Element& cpu) {
  if (!cpu.get("arch")) return {"arch"};
  if (*cpu.get("arch") != "x86_64") return {};
  if (!cpu.get("vendor")) return {"vendor"};
  const bool by_model = *cpu.get("vendor") == "GenuineIntel" || cpu.find("vendor") == "  Shanghai  " ||
                        *cpu.get("vendor") == "CentaurHauls";
  std::vector<std::string> out;
  if (by_model && !cpu.get("familyid")) out.emplace_back("familyid");
  if (by_model && !cpu.get("modelid")) out.emplace_back("modelid");
  return out;
}

// A file for one kind of instance may name its devices by address alone: NCCL reads their class from sysfs.
bool has_unclassed_device(const XmlDocument& xml, const Element& cpu) {
  return std::ranges::any_of(cpu.children, [&](std::size_t child) {
    return xml[child].name == "pci" && xml[child].get("busid") && !xml[child].get("class");
  });
}

void check_cpus(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  const auto on_path = on_device_paths(xml);
  for (std::size_t i = 0; i < xml.elements.size(); ++i) {
    if (xml[i].name != "cpu") continue;
    const auto names = lacking(xml[i]);
    if (names.empty()) continue;
    const auto node = xml[i].get("numaid").value_or("?");
    auto& found = judge.found(
        fmt::format("cpu {}", node), "arch, vendor, and familyid and modelid on Intel",
        fmt::format("no {}", fmt::join(names, ", ")),
        {quote(file, xml[i], fmt::format("<cpu numaid=\"{}\"> without {}", node, fmt::join(names, ", ")))});
    place(found, file, xml[i].line);
    // NCCL fills them in where the process detects a GPU or NIC below; whether it does is not in the file.
    if (on_path[i] || has_unclassed_device(xml, xml[i])) found.severity = model::Severity::info;
  }
}

Outcome check_TOPO11(const Evidence& evidence) { return each_file("TOPO11", evidence, check_cpus); }

// ---- TOPO12: more elements than this NCCL can hold

struct Limits {
  std::size_t elements = 0, children = 0, of_one_type = 0;
};

Limits limits_of(std::string_view version, std::size_t ranks) {
  constexpr std::size_t kOldTotal = 1024, kPerRank = 256;
  const auto per_rank = kPerRank * std::max<std::size_t>(ranks, 1);
  if (version.empty()) return {std::min(kOldTotal, per_rank), 32, 256};
  const bool per_ranks = version_at_least(version, "2.21"), large = version_at_least(version, "2.29.7");
  return {per_ranks ? per_rank : kOldTotal,
          large       ? 640u
          : per_ranks ? 128u
                      : 32u,
          large                               ? 640u
          : version_at_least(version, "2.27") ? 576u
                                              : 256u};
}

struct Sizes {
  std::size_t elements = 0, children = 0, of_one_type = 0;
};

Sizes sizes_of(const XmlDocument& xml) {
  Sizes sizes{xml.elements.size(), 0, 0};
  std::map<std::string_view, std::size_t> types;
  for (const auto& element : xml.elements) {
    sizes.children = std::max(sizes.children, element.children.size());
    if (element.name == "gpu" || element.name == "net" || element.name == "cpu") ++types[element.name];
    if (element.name == "pci" && element.get("class").value_or("").starts_with("0x0604")) ++types["pci"];
  }
  for (const auto& [name, count] : types) sizes.of_one_type = std::max(sizes.of_one_type, count);
  return sizes;
}

void check_size(const ParsedFile& file, const Evidence& evidence, Judge& judge) {
  const auto& xml = *file.document;
  const auto version = nccl_version_of(evidence);
  const auto limits = limits_of(version, elements_named(xml, "gpu").size());
  const auto sizes = sizes_of(xml);
  const auto over = [&](const char* what, std::size_t count, std::size_t limit) {
    if (count <= limit) return;
    auto& found = judge.found(file.name, fmt::format("at most {} {}", limit, what), fmt::format("{}", count),
                              {{file.name, fmt::format("{} {}", count, what)}});
    found.file = file.name;
    if (version.empty()) {
      found.severity = model::Severity::info;
      found.expected += " (the smallest limit; the NCCL version is not known)";
    }
  };
  over("elements", sizes.elements, limits.elements);
  over("children of one element", sizes.children, limits.children);
  over("devices of one type", sizes.of_one_type, limits.of_one_type);
}

Outcome check_TOPO12(const Evidence& evidence) { return each_file("TOPO12", evidence, check_size); }

// ---- TOPO13, TOPO14: where devices stand

void check_numaids(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  const auto cpus = elements_named(xml, "cpu");
  const auto known = [](const Element* cpu) { return cpu->get("numaid").value_or("") != "-1"; };
  const bool any_known = std::ranges::any_of(cpus, known);
  for (const auto* cpu : cpus) {
    if (known(cpu)) continue;
    auto& found = judge.found(
        "cpu -1", "the number of a NUMA node", "-1",
        {quote(file, *cpu, fmt::format("<cpu numaid=\"-1\"> with {} devices", cpu->children.size()))});
    place(found, file, cpu->line);
    if (!any_known) found.severity = model::Severity::info;  // one node, or a VM without NUMA
  }
}

Outcome check_TOPO13(const Evidence& evidence) { return each_file("TOPO13", evidence, check_numaids); }

void check_nic_places(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  for (const auto* nic : elements_named(xml, "nic")) {
    const auto* pci = parent_of(xml, *nic);
    if (pci == nullptr || pci->name != "pci") continue;
    const bool host_bridge = pci->get("class").value_or("").starts_with("0x0600");
    if (!is_gpu(xml, *pci) && !host_bridge) continue;
    const auto what = host_bridge ? "a host bridge" : "a GPU";
    auto& found =
        judge.found(busid_of(*pci), "a NIC below a PCI function of class 0x02", fmt::format("below {}", what),
                    {quote(file, *nic,
                           fmt::format("<nic> inside <pci busid=\"{}\" class=\"{}\">", busid_of(*pci),
                                       pci->get("class").value_or("")))});
    place(found, file, nic->line);
  }
}

Outcome check_TOPO14(const Evidence& evidence) { return each_file("TOPO14", evidence, check_nic_places); }

// ---- TOPO15, TOPO16: networks

constexpr double kFastestMbits = 3'200'000;

void check_net_speeds(const ParsedFile& file, const Evidence&, Judge& judge) {
  for (const auto* net : elements_named(*file.document, "net")) {
    const auto text = net->get("speed");
    if (!text) continue;
    const bool negative = text->starts_with("-");
    const auto speed = parse_double(negative ? text->substr(1) : *text);
    if (!speed || (!negative && *speed > 0 && *speed <= kFastestMbits)) continue;
    auto& found = judge.found(std::string(net->get("name").value_or("net")), "Mb/s, as 400000 for 400 Gb/s",
                              std::string(*text), {quote(file, *net, fmt::format("speed=\"{}\"", *text))});
    place(found, file, net->line);
  }
}

Outcome check_TOPO15(const Evidence& evidence) { return each_file("TOPO15", evidence, check_net_speeds); }

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return name.starts_with(b); });
}

bool virtual_interface(std::string_view name) {
  return starts_with_any(name, {"veth", "cali", "br-", "docker", "tun", "tap", "tailscale", "virbr", "cni",
                                "flannel", "vxlan", "wg", "lxc", "vmnet"});
}

// Names of verbs devices, as against network interfaces.
bool rdma_name(std::string_view name) {
  return starts_with_any(name,
                         {"mlx", "bnxt_re", "irdma", "hfi", "qedr", "efa", "rdmap", "rocep", "ionic", "hns"});
}

void check_virtual_nets(const ParsedFile& file, const Evidence&, Judge& judge) {
  const auto& xml = *file.document;
  double fastest_real = -1, fastest_virtual = -1;
  const Element *real = nullptr, *odd = nullptr;
  for (const auto* net : elements_named(xml, "net")) {
    const auto name = net->get("name").value_or("");
    const auto speed = parse_double(net->get("speed").value_or("")).value_or(0);
    if (rdma_name(name) || net->get("gdr") == "1") return;
    const auto* nic = parent_of(xml, *net);
    const auto* above = nic == nullptr ? nullptr : parent_of(xml, *nic);
    const bool on_pci = above != nullptr && above->name == "pci";
    if (on_pci && speed > fastest_real) fastest_real = speed, real = net;
    if (!on_pci && virtual_interface(name) && speed > fastest_virtual) fastest_virtual = speed, odd = net;
  }
  if (real == nullptr || odd == nullptr || fastest_virtual <= fastest_real) return;
  const auto say = [&](const Element& net) {
    return fmt::format("{} speed {}", net.get("name").value_or("?"), net.get("speed").value_or("?"));
  };
  auto& found = judge.found(std::string(odd->get("name").value_or("net")), "slower than the physical NIC",
                            fmt::format("{} Mb/s against {} Mb/s", fastest_virtual, fastest_real),
                            {quote(file, *odd, say(*odd)), quote(file, *real, say(*real))});
  place(found, file, odd->line);
}

Outcome check_TOPO16(const Evidence& evidence) { return each_file("TOPO16", evidence, check_virtual_nets); }

constexpr Rule kRules[] = {
    {"TOPO01", check_TOPO01}, {"TOPO02", check_TOPO02}, {"TOPO03", check_TOPO03}, {"TOPO04", check_TOPO04},
    {"TOPO05", check_TOPO05}, {"TOPO06", check_TOPO06}, {"TOPO07", check_TOPO07}, {"TOPO08", check_TOPO08},
    {"TOPO09", check_TOPO09}, {"TOPO10", check_TOPO10}, {"TOPO11", check_TOPO11}, {"TOPO12", check_TOPO12},
    {"TOPO13", check_TOPO13}, {"TOPO14", check_TOPO14}, {"TOPO15", check_TOPO15}, {"TOPO16", check_TOPO16},
};

}  // namespace

std::span<const Rule> topo_rules() { return kRules; }

}  // namespace topotune::checks
