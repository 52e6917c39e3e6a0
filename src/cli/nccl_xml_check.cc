#include "cli/nccl_xml_check.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "checks/rule.h"
#include "cli/input.h"
#include "model/paths.h"
#include "parse/nccl_strict.h"
#include "parse/nccl_topo_xml.h"

namespace topotune::cli {

namespace {

struct Problem {
  std::optional<int> line;
  std::string rule;  // "" none
  model::Severity severity = model::Severity::error;
  std::string text;
};

void add_strict(const std::string& text, std::vector<Problem>& out) {
  for (const auto& problem : parse::nccl_problems(text))
    out.push_back({problem.line, "TOPO01", problem.fatal ? model::Severity::error : model::Severity::info,
                   problem.text});
}

// The rules about topology files. TOPO01 says what the strict reader said already.
void add_rules(const std::string& text, const model::Topology& topology, const Globals& globals,
               std::vector<Problem>& out) {
  model::Machine machine;
  machine.topology = topology;
  checks::Evidence evidence;
  const auto paths = model::paths_of(machine.topology);
  evidence.machine = &machine;
  evidence.paths = &paths;
  evidence.raw_text = text;
  evidence.nccl_version = globals.nccl_version;
  for (const auto& finding : checks::run(evidence).findings)
    if (finding.rule != "TOPO01")
      out.push_back({finding.line, finding.rule, finding.severity,
                     fmt::format("{}: {}{}; expected {}", finding.subject, finding.title,
                                 finding.observed.empty() ? "" : ": " + finding.observed,
                                 finding.expected.empty() ? "otherwise" : finding.expected)});
}

template <class Device>
std::map<std::string, const Device*> by_bdf(const std::vector<Device>& devices) {
  std::map<std::string, const Device*> out;
  for (const auto& device : devices)
    if (device.bdf) out[*device.bdf] = &device;
  return out;
}

// NCCL writes an interface whose PCI device it cannot find without an address: then the name tells.
bool same_name(const model::Nic& a, const model::Nic& b) { return a.name && b.name && *a.name == *b.name; }
bool same_name(const model::Gpu&, const model::Gpu&) { return false; }

template <class Device>
void compare_devices(const char* what, const std::vector<Device>& file, const std::vector<Device>& machine,
                     std::vector<Problem>& out) {
  const auto in_file = by_bdf(file), here = by_bdf(machine);
  const auto named_in = [](const std::vector<Device>& list, const Device& wanted) {
    return std::ranges::any_of(list, [&](const Device& one) { return !one.bdf && same_name(one, wanted); });
  };
  for (const auto& [bdf, device] : in_file)
    if (!here.contains(bdf) && !named_in(machine, *device))
      out.push_back({{},
                     "",
                     model::Severity::error,
                     fmt::format("{} {} is in the file and not on the machine: NCCL drops it", what, bdf)});
  for (const auto& [bdf, device] : here)
    if (!in_file.contains(bdf) && !named_in(file, *device))
      out.push_back({{},
                     "",
                     model::Severity::warn,
                     fmt::format("{} {} is on the machine and not in the file: NCCL places it by detection",
                                 what, bdf)});
}

void compare_nvlinks(const model::Topology& file, const model::Topology& machine, std::vector<Problem>& out) {
  const auto here = by_bdf(machine.gpus);
  for (const auto& gpu : file.gpus) {
    const auto at = gpu.bdf ? here.find(*gpu.bdf) : here.end();
    if (at == here.end() || !gpu.nvlinks || !at->second->nvlinks || *gpu.nvlinks == *at->second->nvlinks)
      continue;
    out.push_back({{},
                   "TOPO08",
                   model::Severity::error,
                   fmt::format("GPU {} has {} NVLinks in the file and {} on the machine", *gpu.bdf,
                               *gpu.nvlinks, *at->second->nvlinks)});
  }
}

void compare_masks(const model::Topology& file, const model::Topology& machine, std::vector<Problem>& out) {
  for (const auto& node : file.numa) {
    const auto at = std::ranges::find(machine.numa, node.id, &model::NumaNode::id);
    if (at == machine.numa.end()) {
      out.push_back({{},
                     "TOPO05",
                     model::Severity::error,
                     fmt::format("node {} is in the file and not on the machine", node.id)});
    } else if (node.cpus && at->cpus && !(*node.cpus == *at->cpus)) {
      out.push_back({{},
                     "TOPO05",
                     model::Severity::error,
                     fmt::format("node {} has CPUs {} in the file and {} on the machine", node.id,
                                 node.cpus->to_list(), at->cpus->to_list())});
    }
  }
}

void compare_links(const model::Topology& file, const model::Topology& machine, std::vector<Problem>& out) {
  for (const auto& device : file.pci) {
    const auto* here = model::find_pci(machine, device.id);
    if (here == nullptr) continue;
    const auto said = model::bandwidth_of(device.capable.gts ? device.capable : device.current);
    const auto real = model::bandwidth_of(here->capable);
    if (!said || !real || std::abs(said->value - real->value) < 0.05 * real->value) continue;
    out.push_back({{},
                   "TOPO10",
                   model::Severity::warn,
                   fmt::format("{}: {:.1f} GB/s by the file, {:.1f} by the machine", device.id, said->value,
                               real->value)});
  }
}

void compare(const model::Topology& file, const model::Topology& machine, std::vector<Problem>& out) {
  compare_devices("GPU", file.gpus, machine.gpus, out);
  compare_devices("NIC", file.nics, machine.nics, out);
  compare_nvlinks(file, machine, out);
  compare_masks(file, machine, out);
  compare_links(file, machine, out);
}

std::string text_of(const std::string& file, const std::vector<Problem>& problems,
                    const std::string& against) {
  std::string out;
  for (const auto& problem : problems)
    out +=
        fmt::format("{}{}: {}{}: {}\n", file, problem.line ? fmt::format(":{}", *problem.line) : "",
                    name_of(problem.severity), problem.rule.empty() ? "" : " " + problem.rule, problem.text);
  if (problems.empty())
    out = fmt::format("{}: NCCL reads it{}\n", file, against.empty() ? "" : ", and it describes " + against);
  return printable(out);
}

std::string json_of(const std::string& file, const std::vector<Problem>& problems, const char* verdict) {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.nccl-xml-check/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["source"] = {{"kind", "nccl-topo-xml"}, {"name", printable(file)}};
  out["verdict"] = verdict;
  out["problems"] = nlohmann::ordered_json::array();
  for (const auto& p : problems)
    out["problems"].push_back(
        {{"line", p.line ? nlohmann::ordered_json(*p.line) : nlohmann::ordered_json(nullptr)},
         {"rule", p.rule.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(p.rule)},
         {"severity", name_of(p.severity)},
         {"text", printable(p.text)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int fail_file(Error error, const std::string& file) { return report(about(file, std::move(error)).value()); }

}  // namespace

int check_nccl_xml(const std::string& file, const std::optional<std::string>& input, const Globals& globals) {
  const auto text = read_input(file);
  if (!text) return fail_file(text.error(), file);
  std::vector<Problem> problems;
  add_strict(*text, problems);
  const auto topology = parse::parse_nccl_topo_xml(*text);
  if (!topology && problems.empty()) return fail_file(topology.error(), file);
  if (topology) add_rules(*text, *topology, globals, problems);
  if (input && topology) {
    const auto machine = load_input(*input, globals);
    if (!machine) return report(machine.error());
    compare(*topology, machine->machine.topology, problems);
  }
  auto worst = model::Severity::info;
  for (const auto& problem : problems) worst = std::max(worst, problem.severity);
  const int status = worst == model::Severity::error ? kError : worst == model::Severity::warn ? kWarn : kOk;
  const auto* verdict = problems.empty() ? "ok" : name_of(worst);
  const int written = write_result(
      globals, globals.json ? json_of(file, problems, verdict) : text_of(file, problems, input.value_or("")));
  return written != kOk ? written : status;
}

}  // namespace topotune::cli
