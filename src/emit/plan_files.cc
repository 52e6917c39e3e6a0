#include "emit/plan_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/words.h"

namespace topotune::emit {

std::span<const PlanForm> plan_forms() {
  static const auto all = [] {
    std::vector<PlanForm> out;
    for (const auto family :
         {plan_shell_forms(), plan_boot_forms(), plan_cluster_forms(), plan_switch_forms()})
      out.insert(out.end(), family.begin(), family.end());
    return out;
  }();
  return all;
}

const PlanForm* find_plan_form(std::string_view name) {
  const auto all = plan_forms();
  const auto at = std::ranges::find(all, name, &PlanForm::name);
  return at == all.end() ? nullptr : &*at;
}

std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && word.front() != '=' && std::ranges::all_of(word, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
           std::string_view("-_./:,=+@%^").find(c) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  return single_quoted(word);
}

std::string yaml_word(std::string_view word) {
  std::string out = "\"";
  for (const char c : printable(word)) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

std::optional<std::string> said(const model::Plan& plan, std::string_view key) {
  for (const auto& [name, value] : plan.job)
    if (name == key) return value;
  return std::nullopt;
}

std::string form_head(const model::Plan& plan, std::string_view what, std::string_view comment) {
  auto name = printable(plan.source.name);
  std::ranges::replace(name, '\n', ' ');
  return fmt::format("{} written by topotune plan for {}\n{} {}\n", comment, name, comment, what);
}

}  // namespace topotune::emit
