#include <algorithm>
#include <array>

#include "base/text.h"
#include "checks/rule.h"
#include "data/embedded.h"

namespace topotune::checks {
namespace {

constexpr std::size_t kColumns = 12;

RuleText row_of(const std::vector<std::string_view>& cells) {
  return {cells[0], cells[1], cells[2], cells[3], cells[4],  cells[5],
          cells[6], cells[7], cells[8], cells[9], cells[10], cells[11]};
}

// The views point into the embedded file, which lives as long as the program.
std::vector<RuleText> parse_catalogue(std::string_view tsv) {
  std::vector<RuleText> rows;
  for (const auto line : split(tsv, '\n')) {
    const auto cells = split(line, '\t');
    if (cells.size() == kColumns && cells[0] != "id") rows.push_back(row_of(cells));
  }
  return rows;
}

}  // namespace

std::span<const RuleText> catalogue() {
  static const std::vector<RuleText> rows = parse_catalogue(data::rules_tsv());
  return rows;
}

const RuleText* find_rule(std::string_view id) {
  const auto rows = catalogue();
  const auto found = std::ranges::find(rows, id, &RuleText::id);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace topotune::checks
