#include "act/verify.h"

#include <algorithm>
#include <map>

#include "act/state.h"
#include "base/text.h"

namespace topotune::act {

namespace {

using model::Action;
using model::ActionKind;
using model::Binding;

std::string shown(const std::optional<std::string>& value) {
  if (!value) return "nothing";
  if (value->size() > 60 || value->find('\n') != std::string::npos)
    return fmt::format("{} bytes", value->size());
  return printable(*value);
}

Check verify_action(const System& system, const Action& action) {
  Check out{action.id, Proof::unknown, action.read_back, ""};
  const auto now = observe(system, action.kind, action.target);
  const auto there = holds(system, action);
  if (!now || !there) {
    out.observed = (now ? there.error() : now.error()).text;
    return out;
  }
  out.proof = *there ? Proof::holds : Proof::fails;
  out.observed = action.kind == ActionKind::command ? (*now ? "loaded" : "not loaded") : shown(*now);
  return out;
}

// "Cpus_allowed_list:\t0-3" of /proc/PID/status.
std::optional<CpuSet> allowed_in(std::string_view status) {
  constexpr std::string_view kName = "Cpus_allowed_list:";
  for (const auto line : lines(status))
    if (line.starts_with(kName)) return parse_cpu_list(trim(line.substr(kName.size())));
  return std::nullopt;
}

const Binding* binding_for(const model::Plan& plan, const std::string& gpu,
                           const std::optional<CpuSet>& allowed) {
  for (const auto& binding : plan.bindings) {
    if (!gpu.empty() ? binding.gpu == gpu
                     : allowed && !binding.cpus.empty() && allowed->is_subset_of(binding.cpus))
      return &binding;
  }
  return nullptr;
}

Check verify_cpus(const std::string& subject, const model::Plan& plan, const Binding* binding,
                  const std::optional<CpuSet>& allowed) {
  Check out{subject + " CPUs", Proof::unknown, "", allowed ? allowed->to_list() : "not readable"};
  if (binding != nullptr)
    out.expected = fmt::format("inside {} ({})", binding->cpus.to_list(), binding->gpu);
  else
    out.expected = "inside the CPUs of one GPU";
  if (!allowed || plan.bindings.empty()) return out;
  out.proof = binding != nullptr && allowed->is_subset_of(binding->cpus) ? Proof::holds : Proof::fails;
  return out;
}

Check verify_memory(const System& system, const std::string& subject, int pid, const Binding* binding) {
  Check out{subject + " memory", Proof::unknown, "", ""};
  if (binding == nullptr || !binding->memory_node) {
    out.observed = "which node is wanted is not known";
    return out;
  }
  out.expected = fmt::format("most pages on node {}", *binding->memory_node);
  const auto maps = system.read(fmt::format("/proc/{}/numa_maps", pid));
  if (!maps) {
    out.observed = maps.error().text;
    return out;
  }
  unsigned long long all = 0, there = 0;
  for (const auto& [node, bytes] : bytes_by_node(*maps)) {
    all += bytes;
    if (node == *binding->memory_node) there += bytes;
  }
  if (all == 0) {
    out.observed = "no page is told";
    return out;
  }
  const double share = static_cast<double>(there) / static_cast<double>(all);
  out.observed = fmt::format("{:.0f} % of {} MiB", 100 * share, all >> 20);
  out.proof = share >= 0.5 ? Proof::holds : Proof::fails;
  return out;
}

std::optional<std::string> variable_in(std::string_view environ, const std::string& name) {
  for (const auto entry : split(environ, '\0'))
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return std::string(entry.substr(name.size() + 1));
  return std::nullopt;
}

void verify_variables(const System& system, const model::Plan& plan, const std::string& subject, int pid,
                      std::vector<Check>& out) {
  const auto environ = system.read(fmt::format("/proc/{}/environ", pid));
  for (const auto& action : plan.actions) {
    if (action.kind != ActionKind::env) continue;
    Check check{subject + " " + action.target, Proof::unknown,
                action.value ? printable(*action.value) : "not set", ""};
    if (!environ) {
      check.observed = environ.error().text;
    } else {
      const auto now = variable_in(*environ, action.target);
      check.observed = now ? printable(*now) : "not set";
      check.proof = now == action.value ? Proof::holds : Proof::fails;
    }
    out.push_back(std::move(check));
  }
}

}  // namespace

const char* name_of(Proof proof) {
  switch (proof) {
    case Proof::holds:
      return "holds";
    case Proof::fails:
      return "fails";
    case Proof::unknown:
      return "unknown";
  }
  return "unknown";
}

std::vector<Check> verify_actions(const System& system, const model::Plan& plan) {
  std::vector<Check> out;
  for (const auto& action : plan.actions)
    if (action.automatic && action.kind != ActionKind::env) out.push_back(verify_action(system, action));
  return out;
}

std::vector<Check> verify_process(const System& system, const model::Plan& plan, int pid,
                                  const std::string& gpu) {
  std::vector<Check> out;
  const auto subject = fmt::format("pid {}", pid);
  const auto status = system.read(fmt::format("/proc/{}/status", pid));
  if (!status) return {{subject, Proof::unknown, "a running process", status.error().text}};
  const auto allowed = allowed_in(*status);
  const auto* binding = binding_for(plan, gpu, allowed);
  out.push_back(verify_cpus(subject, plan, binding, allowed));
  out.push_back(verify_memory(system, subject, pid, binding));
  verify_variables(system, plan, subject, pid, out);
  return out;
}

std::vector<std::pair<int, unsigned long long>> bytes_by_node(std::string_view numa_maps) {
  std::map<int, unsigned long long> out;
  for (const auto line : lines(numa_maps)) {
    if (line.find(" anon=") == std::string_view::npos && line.find(" heap") == std::string_view::npos)
      continue;
    unsigned long long page = 4096;
    std::vector<std::pair<int, unsigned long long>> counts;
    for (const auto word : words(line)) {
      if (word.starts_with("kernelpagesize_kB="))
        page = parse_int<unsigned long long>(word.substr(18)).value_or(4) << 10;
      const auto mark = word.find('=');
      if (!word.starts_with('N') || mark == std::string_view::npos) continue;
      const auto node = parse_int<int>(word.substr(1, mark - 1));
      const auto pages = parse_int<unsigned long long>(word.substr(mark + 1));
      if (node && pages && *pages < 1ULL << 40) counts.emplace_back(*node, *pages);
    }
    for (const auto& [node, pages] : counts) out[node] += pages * page;
  }
  return {out.begin(), out.end()};
}

}  // namespace topotune::act
