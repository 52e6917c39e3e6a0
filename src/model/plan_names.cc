#include <algorithm>
#include <array>

#include "model/plan.h"

namespace topotune::model {

namespace {

constexpr std::array kKinds{"env", "file", "sysfs", "command", "affinity", "config"};
constexpr std::array kScopes{"process", "boot", "persistent"};
constexpr std::array kRisks{"none", "low", "disruptive"};
constexpr std::array kBases{"measured", "documented", "convention"};

template <class Enum, std::size_t N>
std::optional<Enum> from(const std::array<const char*, N>& names, std::string_view name) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Enum>(at - names.begin());
}

}  // namespace

const char* name_of(ActionKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }
const char* name_of(ActionScope scope) { return kScopes[static_cast<std::size_t>(scope)]; }
const char* name_of(ActionRisk risk) { return kRisks[static_cast<std::size_t>(risk)]; }
const char* name_of(ActionBasis basis) { return kBases[static_cast<std::size_t>(basis)]; }
std::optional<ActionKind> action_kind_from(std::string_view name) { return from<ActionKind>(kKinds, name); }
std::optional<ActionScope> action_scope_from(std::string_view name) {
  return from<ActionScope>(kScopes, name);
}
std::optional<ActionRisk> action_risk_from(std::string_view name) { return from<ActionRisk>(kRisks, name); }
std::optional<ActionBasis> action_basis_from(std::string_view name) {
  return from<ActionBasis>(kBases, name);
}

}  // namespace topotune::model
