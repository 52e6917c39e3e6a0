#include "emit/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace topotune::emit {

namespace {

using model::Action;
using model::ActionKind;

std::string plain(std::string_view text) {
  auto out = printable(text);
  std::ranges::replace(out, '\n', ' ');
  return out;
}

enum class Doer { run, apply, apply_disruptive, person };

Doer doer_of(const Action& action) {
  if (action.kind == ActionKind::env) return Doer::run;
  if (!action.automatic) return Doer::person;
  return action.risk == model::ActionRisk::disruptive ? Doer::apply_disruptive : Doer::apply;
}

constexpr std::pair<Doer, const char*> kDoers[] = {
    {Doer::run, "variables of the job (topotune run sets them)"},
    {Doer::apply, "changes of the machine (topotune apply --yes)"},
    {Doer::apply_disruptive, "changes that interrupt traffic (topotune apply --yes --disruptive)"},
    {Doer::person, "for a person"}};

std::string change_of(const Action& action) {
  if (action.kind == ActionKind::command) return fmt::format("{}", fmt::join(action.command, " "));
  if (action.kind == ActionKind::file) return fmt::format("file {}", action.target);
  const auto from = action.observed ? plain(*action.observed) + " -> " : "";
  if (action.kind == ActionKind::env)
    return action.value ? fmt::format("{}={}", action.target, plain(*action.value))
                        : fmt::format("unset {}{}", action.target,
                                      action.observed ? "=" + plain(*action.observed) : "");
  return fmt::format("{}: {}{}", action.target, from, action.value ? plain(*action.value) : "gone");
}

bool alike(const Action& a, const Action& b) {
  return a.kind == b.kind && a.kind != ActionKind::env && a.rule == b.rule && a.value == b.value &&
         a.reason.substr(0, 24) == b.reason.substr(0, 24);
}

std::string details_of(const Action& action) {
  return fmt::format("      before: {}\n      read back: {}\n      undo: {}\n", plain(action.precondition),
                     plain(action.read_back), plain(action.undo));
}

std::string one_action(const Action& action, std::size_t more, const PlanTextOptions& options) {
  std::string tags =
      fmt::format("{}, {} risk, {}", name_of(action.scope), name_of(action.risk), name_of(action.basis));
  if (!action.rule.empty()) tags = action.rule + ", " + tags;
  std::string out = fmt::format("  {}", plain(change_of(action)));
  if (more > 0) out += fmt::format("   and {} alike", more);
  if (action.where) out += fmt::format("   (set in {})", plain(*action.where));
  out += fmt::format("\n      {} [{}]\n", plain(action.reason), tags);
  return options.verbose ? out + details_of(action) : out;
}

std::string section(const model::Plan& plan, Doer doer, const char* title, const PlanTextOptions& options) {
  std::vector<const Action*> actions;
  for (const auto& action : plan.actions)
    if (doer_of(action) == doer) actions.push_back(&action);
  std::string out;
  for (std::size_t i = 0; i < actions.size();) {
    std::size_t end = i + 1;
    while (!options.verbose && end < actions.size() && alike(*actions[i], *actions[end])) ++end;
    out += one_action(*actions[i], end - i - 1, options);
    i = end;
  }
  if (out.empty()) return "";
  return options.color ? fmt::format("\n\x1b[1m{}\x1b[0m\n{}", title, out)
                       : fmt::format("\n{}\n{}", title, out);
}

std::string bindings_text(const model::Plan& plan) {
  if (plan.bindings.empty()) return "";
  std::string out = "\nbindings (topotune run -- CMD)\n";
  for (const auto& binding : plan.bindings) {
    out += fmt::format("  {:<6} CPUs {}", binding.gpu, binding.cpus.empty() ? "all" : binding.cpus.to_list());
    out += binding.memory_node ? fmt::format("  memory node {}", *binding.memory_node)
                               : "  memory node not known";
    if (!binding.nic_names.empty())
      out += fmt::format("  NICs {}", plain(fmt::format("{}", fmt::join(binding.nic_names, ","))));
    if (!binding.share.empty())
      out += fmt::format("  alone: {}, {} loader workers", binding.share.to_list(), binding.workers);
    out += "\n";
  }
  return out;
}

}  // namespace

std::string plan_text(const model::Plan& plan, const PlanTextOptions& options) {
  std::string out = fmt::format("{}: {} action{}, {} binding{}; NCCL {}\n", plain(plan.source.name),
                                plan.actions.size(), plan.actions.size() == 1 ? "" : "s",
                                plan.bindings.size(), plan.bindings.size() == 1 ? "" : "s",
                                plan.nccl_version.empty() ? "version not known" : plan.nccl_version);
  for (const auto& [doer, title] : kDoers) out += section(plan, doer, title, options);
  if (plan.actions.empty()) out += "\nnothing needs to be changed as far as the input tells\n";
  out += bindings_text(plan);
  if (!plan.notes.empty()) out += "\nleft as it is\n";
  for (const auto& note : plan.notes) out += fmt::format("  {}\n", plain(note));
  return out;
}

}  // namespace topotune::emit
