#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checks/rule.h"
#include "model/page.h"

namespace topotune::checks {

// The page of a rule id, a path type, an NCCL or UCX variable, an Xid ("79", "Xid 79") or a port counter.
// Case does not matter. Nothing: no such name.
std::optional<model::Page> page_of(std::string_view name);
model::Page rule_page(const RuleText& row);

struct Named {
  std::string name, kind, title;
};
// Everything that page_of knows, by kind and in the order of the tables.
std::vector<Named> all_names();

// At most three names that are a few letters away.
std::vector<std::string> nearest_names(std::string_view name);

// "ACS" of "ACS01". Families in the catalogue's order.
std::string_view family_of(std::string_view id);
std::vector<std::string_view> families();
// Ids of rules that a text names: "as NCCL02, NCCL11" has two.
std::vector<std::string> rules_named_in(std::string_view text);
// docs/rules/<family>.md, made from the catalogue.
std::string family_markdown(std::string_view family);

}  // namespace topotune::checks
