// Rules about the state of GPUs. NVML; NVIDIA's Xid catalogue (data/xids.tsv).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bdf.h"
#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"
#include "parse/kernel_log.h"

namespace topotune::checks {
namespace {

using model::Machine;
using model::PciDevice;
using model::Severity;

// ---- GPU01

std::set<std::string> seen_by_driver(const Machine& machine) {
  std::set<std::string> out;
  for (const auto& state : machine.gpu_states) {
    const auto* gpu = model::find_gpu(machine.topology, state.gpu);
    if (gpu != nullptr && gpu->bdf) out.insert(*gpu->bdf);
  }
  return out;
}

// Whether a GPU that the driver does not list should be there: `error` when the driver holds it, or holds
// another of the model; `info` when nothing tells that this driver supports it; nothing when somebody else
// holds it.
std::optional<Severity> claim_of(const Machine& machine, const PciDevice& device,
                                 const std::set<std::string>& seen) {
  if (device.driver == "nvidia") return Severity::error;
  if (device.driver && !device.driver->empty()) return std::nullopt;  // vfio-pci, nouveau
  const bool sibling = std::ranges::any_of(machine.topology.pci, [&](const PciDevice& other) {
    return seen.contains(other.id) && other.device && other.vendor == device.vendor &&
           other.device == device.device;
  });
  return sibling ? Severity::error : Severity::info;
}

Outcome check_GPU01(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (!machine.nvidia_pci_gpus) return missing("GPUs on the bus", machine.nvidia_pci_gpus);
  if (machine.nvidia_pci_gpus->empty()) return Clean{"no NVIDIA GPU"};
  if (!machine.nvml_gpu_count) return missing("GPUs of the driver", machine.nvml_gpu_count);
  if (static_cast<int>(machine.nvidia_pci_gpus->size()) <= *machine.nvml_gpu_count) return Clean{};
  if (machine.container.value.value_or(false)) return NotEvaluated{"in a container, which may hide devices"};
  const auto seen = seen_by_driver(machine);
  const model::PciTree tree(machine.topology);
  Judge judge("GPU01");
  for (const auto& bdf : *machine.nvidia_pci_gpus) {
    if (seen.contains(bdf)) continue;
    const auto* device = tree.find(bdf);
    if (device == nullptr) {
      judge.unknown(bdf + ": which driver holds it was not read");
      continue;
    }
    const auto severity = claim_of(machine, *device, seen);
    if (!severity) continue;
    auto& found = judge.found(bdf, "a GPU of the driver", "not listed by NVML",
                              {{"/sys/bus/pci/devices",
                                fmt::format("{} GPUs, {} among them", machine.nvidia_pci_gpus->size(), bdf)},
                               {"nvml", fmt::format("{} GPUs", *machine.nvml_gpu_count)}});
    found.severity = *severity;
  }
  return judge.outcome("the others are held by another driver");
}

// ---- GPU02

// Two GPUs with a link between them or below one switch.
Tell links_or_shares(const std::vector<model::Path>& paths, const std::string& a, const std::string& b) {
  const auto path = std::ranges::find_if(paths, [&](const model::Path& one) {
    return (one.a == a && one.b == b) || (one.a == b && one.b == a);
  });
  if (path == paths.end()) return Tell::unknown;
  if (path->type && *path->type <= model::PathType::pxb) return Tell::yes;
  return path->type && path->links_told ? Tell::no : Tell::unknown;
}

bool refused(const std::string& status) {
  return status == "CNS" || status == "GNS" || status == "TNS" || status == "DR" || status == "NS";
}

bool data_centre(const Machine& machine, const std::string& id) {
  const auto* gpu = model::find_gpu(machine.topology, id);
  const auto* known = gpu == nullptr ? nullptr : known_gpu(*gpu);
  return known != nullptr && known->data_centre;
}

Outcome check_GPU02(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (machine.topology.gpus.size() == 1) return Clean{"a single GPU"};
  if (machine.p2p.empty()) return NotEvaluated{"P2P status of the pairs: not captured"};
  Judge judge("GPU02");
  std::set<std::pair<std::string, std::string>> said;
  bool any = false;
  for (const auto& status : machine.p2p) {
    if (status.capability == "atomics" || status.capability == "prop") continue;
    any = true;
    if (status.status == "U")
      judge.unknown(fmt::format("{} to {}: the driver does not know", status.from, status.to));
    if (!refused(status.status)) continue;
    const auto *a = model::find_gpu(machine.topology, status.from),
               *b = model::find_gpu(machine.topology, status.to);
    if (a == nullptr || b == nullptr || a->mig.value_or(false) || b->mig.value_or(false)) continue;
    if (!same_model(*a, *b).value_or(true)) continue;
    // NS for "nvlink" is what cards without NVLink say.
    if (status.capability == "nvlink" && status.status == "NS") continue;
    const auto near = links_or_shares(*evidence.paths, a->id, b->id);
    if (near == Tell::no) continue;
    if (near == Tell::unknown || status.capability.empty()) {
      judge.unknown(near == Tell::unknown
                        ? fmt::format("path between {} and {}: not captured", a->id, b->id)
                        : "what the P2P matrix is about: keep its command's line (nvidia-smi topo -p2p r)");
      continue;
    }
    if (!said.insert(std::minmax(a->id, b->id)).second) continue;
    auto& found = judge.found(std::min(a->id, b->id) + "-" + std::max(a->id, b->id), "OK", status.status,
                              {{"nvmlDeviceGetP2PStatus", fmt::format("{} to {}, {}: {}", a->id, b->id,
                                                                      status.capability, status.status)}});
    const bool by_design = (status.status == "GNS" || status.status == "NS") &&
                           !(data_centre(machine, a->id) && data_centre(machine, b->id));
    if (by_design || machine.virtual_machine.value.value_or(false)) found.severity = Severity::info;
  }
  if (!any) judge.unknown("P2P status of the pairs for reads and writes: not captured");
  return judge.outcome();
}

// ---- GPU03: Xids of the kernel log

struct Xid {
  std::string device;
  int code = 0;
  std::string rest;
};

// "NVRM: Xid (PCI:0000:9b:00): 119, pid=…": the driver's line (kernel-open nv.c, nvidia's Xid catalogue).
std::optional<Xid> xid_of(const std::string& line) {
  const auto at = line.find("NVRM: Xid (");
  if (at == std::string::npos) return std::nullopt;
  const auto open = line.find('(', at), close = line.find("):", at);
  if (close == std::string::npos) return std::nullopt;
  Xid xid;
  xid.device = line.substr(open + 1, close - open - 1);
  if (xid.device.starts_with("PCI:")) xid.device.erase(0, 4);
  const auto rest = trim(std::string_view(line).substr(close + 2));
  const auto digits = rest.substr(0, rest.find_first_not_of("0123456789"));
  const auto code = parse_int<int>(digits);
  if (!code) return std::nullopt;
  xid.code = *code;
  xid.rest = rest;
  // "45, pid=…, Ch 00000001 caused by previous Xid 149": its own line may be lost.
  constexpr std::string_view kCause = "caused by previous Xid ";
  if (const auto cause = rest.find(kCause); cause != std::string_view::npos) {
    const auto number = rest.substr(cause + kCause.size());
    xid.code = parse_int<int>(number.substr(0, number.find_first_not_of("0123456789"))).value_or(*code);
  }
  if (const auto bdf = parse_bdf(xid.device)) xid.device = bdf->to_string();
  return xid;
}

bool one_of(int code, std::initializer_list<int> codes) {
  return std::ranges::find(codes, code) != codes.end();
}

// Nothing: no fault of the machine.
std::optional<Severity> severity_of(const Xid& xid) {
  const auto text = to_lower(xid.rest);
  const bool mild = text.find("nonfatal") != std::string::npos ||
                    text.find("non-fatal") != std::string::npos ||
                    text.find("corrected") != std::string::npos;
  if (xid.code == 154) {  // "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    const auto to = text.rfind(" to ");
    const auto action = to == std::string::npos ? text : text.substr(to);
    if (action.find("reboot") != std::string::npos || action.find("reset") != std::string::npos)
      return Severity::error;
    return action.find("drain") != std::string::npos ? Severity::warn : Severity::info;
  }
  if (xid.code == 74 || (xid.code >= 144 && xid.code <= 150)) return mild ? Severity::warn : Severity::error;
  if (one_of(xid.code, {48, 64, 79, 95, 109, 110, 119, 120, 136, 140, 143, 155, 158})) return Severity::error;
  if (one_of(xid.code, {63, 94, 123, 156, 157})) return Severity::warn;
  if (one_of(xid.code, {13, 31, 43})) return Severity::info;
  return std::nullopt;
}

// "NVRM: … GPU 0000:b3:00.0 … fallen off the bus": newer drivers say it without an Xid.
std::optional<parse::KernelEvent> lost_gpu(const std::string& line) {
  auto event = parse::kernel_event_of(line);
  if (!event || event->kind != parse::KernelEventKind::gpu_lost) return std::nullopt;
  return event;
}

std::string subject_of(const Machine& machine, const std::string& device) {
  for (const auto& gpu : machine.topology.gpus)
    if (gpu.bdf == device) return gpu.id + " " + device;
  return device;
}

std::string told_by(const model::GpuState& state, const char* key) {
  const auto at = state.other.find(key);
  return at == state.other.end() ? std::string() : at->second;
}

// "Unable to determine the device handle for GPU 0000:4F:00.0: GPU is lost.  Reboot the system …", "…:
// Unknown Error".
bool judge_handle(const Machine& machine, Judge& judge) {
  constexpr std::string_view kHandle = "Unable to determine the device handle for GPU";
  const std::string text = machine.nvml_error.value.value_or("");
  const auto at = text.find(kHandle);
  const bool lost = text.find("GPU is lost") != std::string::npos;
  if (at == std::string::npos || (!lost && text.find("Unknown Error") == std::string::npos)) return false;
  const auto rest = words(std::string_view(text).substr(at + kHandle.size()));
  const auto bdf = rest.empty() ? std::nullopt : parse_bdf(rest.front().substr(0, rest.front().size() - 1));
  auto& found =
      judge.found(bdf ? subject_of(machine, bdf->to_string()) : "a GPU", "a GPU that the driver can read",
                  lost ? "GPU is lost" : "Unknown Error", {evidence_of(machine.nvml_error, text)});
  found.title = lost ? "The driver has lost the GPU" : "The driver cannot read the GPU";
  if (!lost) found.severity = Severity::warn;
  return true;
}

// What `nvidia-smi -q` keeps of such an error: the action that Xid 154 names, a row remap that failed (Xid
// 64) or waits for a reset (Xid 63).
bool judge_states(const Machine& machine, Judge& judge) {
  bool any = judge_handle(machine, judge);
  for (const auto& state : machine.gpu_states) {
    const auto action = to_lower(told_by(state, "GPU Recovery Action"));
    const bool lost = told_by(state, "GPU is lost") == "Yes";
    const bool unreadable = told_by(state, "Name") == "ERR!";
    const bool failed = told_by(state, "Remapping Failure Occurred") == "Yes";
    const bool reset = action.find("reset") != std::string::npos ||
                       action.find("reboot") != std::string::npos ||
                       told_by(state, "Reset Required") == "Yes";
    const char* pending = told_by(state, "Remapped Rows Pending") == "Yes"    ? "Remapped Rows Pending"
                          : told_by(state, "Pending Page Blacklist") == "Yes" ? "Pending Page Blacklist"
                                                                              : nullptr;
    if (!lost && !unreadable && !failed && !reset && pending == nullptr &&
        action.find("drain") == std::string::npos)
      continue;
    const std::string observed = lost         ? "GPU is lost"
                                 : unreadable ? "ERR! in the place of its name"
                                 : failed     ? "Remapping Failure Occurred: Yes"
                                 : pending    ? fmt::format("{}: Yes", pending)
                                 : action.empty() || action == "none"
                                     ? "Reset Required: Yes"
                                     : "GPU Recovery Action: " + told_by(state, "GPU Recovery Action");
    auto& found = judge.found(state.gpu, "no error that waits for a reset", observed,
                              {{told_by(state, "source"), observed}});
    if (!lost && !failed && !reset) found.severity = Severity::warn;
    found.title = "The GPU waits for a reset after an error";
    if (failed) found.title = "A repair of the GPU's memory has failed";
    if (unreadable) found.title = "The driver cannot read the GPU";
    if (lost) found.title = "The driver has lost the GPU";
    any = true;
  }
  return any;
}

// All that stands for the kernel log are lines of the fabric manager, which name no GPU's errors.
bool of_the_fabric_manager(const std::vector<std::string>& log) {
  return !log.empty() && std::ranges::all_of(log, [](const std::string& line) {
    return line.starts_with("fabric manager:") || line.find("] [tid ") != std::string::npos;
  });
}

Outcome check_GPU03(const Evidence& evidence) {
  constexpr int kOffTheBus = 79;  // the Xid that says the same
  const auto& log = evidence.machine->kernel_log;
  Judge judge("GPU03");
  const bool told = judge_states(*evidence.machine, judge);
  if (!log || of_the_fabric_manager(*log))
    return told  ? judge.outcome()
           : log ? Outcome(NotEvaluated{"kernel log: not captured"})
                 : Outcome(missing("kernel log", log));
  std::set<std::pair<std::string, int>> said;
  for (std::size_t i = 0; i < log->size(); ++i) {
    const auto& line = (*log)[i];
    if (const auto lost = lost_gpu(line)) {
      const bool off = line.find("fallen off the bus") != std::string::npos;
      const auto device = lost->bdf.value_or("a GPU");
      if (!said.insert({device, off ? kOffTheBus : 0}).second) continue;
      auto& found = judge.found(subject_of(*evidence.machine, device), "no such message since the last boot",
                                off ? "fallen off the bus" : "the driver could not start it",
                                {kernel_line(*evidence.machine, i)});
      if (!off) found.severity = Severity::warn;
      continue;
    }
    const auto xid = xid_of(line);
    const auto severity = xid ? severity_of(*xid) : std::nullopt;
    if (!severity || !said.insert({xid->device, xid->code}).second) continue;
    auto& found = judge.found(subject_of(*evidence.machine, xid->device), "no such Xid since the last boot",
                              fmt::format("Xid {}", xid->code), {kernel_line(*evidence.machine, i)});
    found.severity = *severity;
    if (*severity == Severity::info)
      found.title = "The kernel log has an Xid that is an application's fault or harmless";
  }
  return judge.outcome();
}

// ---- GPU04

struct Slowdown {
  std::uint64_t bit;
  const char* name;
};
// nvml.h, nvmlClocksEventReason*.
constexpr Slowdown kSlowdowns[] = {{0x8, "HW slowdown"},
                                   {0x40, "HW thermal slowdown"},
                                   {0x80, "HW power brake"},
                                   {0x20, "SW thermal slowdown"}};

Outcome check_GPU04(const Evidence& evidence) {
  Judge judge("GPU04");
  bool any = false;
  for (const auto& state : evidence.machine->gpu_states) {
    if (!state.clock_event_reasons) continue;
    any = true;
    std::vector<std::string> reasons;
    for (const auto& slowdown : kSlowdowns)
      if ((*state.clock_event_reasons & slowdown.bit) != 0) reasons.emplace_back(slowdown.name);
    if (reasons.empty()) continue;
    auto& found =
        judge.found(state.gpu, "no hardware or thermal slowdown", fmt::format("{}", fmt::join(reasons, ", ")),
                    {{"nvml clocksEventReasons", fmt::format("0x{:x}", *state.clock_event_reasons)}});
    if (state.temperature_c) found.evidence.push_back({"nvml", fmt::format("{} °C", *state.temperature_c)});
  }
  if (!any) judge.unknown("clock event reasons: not captured");
  return judge.outcome();
}

constexpr Rule kRules[] = {
    {"GPU01", check_GPU01}, {"GPU02", check_GPU02}, {"GPU03", check_GPU03}, {"GPU04", check_GPU04}};

}  // namespace

std::span<const Rule> gpu_rules() { return kRules; }

}  // namespace topotune::checks
