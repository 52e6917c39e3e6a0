#include "tune/compare.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "measure/statistics.h"
#include "tune/rounds.h"

namespace topotune::tune {

namespace {

void fill(Measurer& m, Column& column, const Sides& sides, std::size_t pairs) {
  // Tuned ones in the middle: what comes with the order in which communicators were made cancels, too.
  std::vector<Candidate> all{sides.standard.front()};
  all.insert(all.end(), sides.tuned.begin(), sides.tuned.end());
  all.insert(all.end(), sides.standard.begin() + 1, sides.standard.end());
  auto got = rounds(m, column.cell, all, pairs, Way::usual, [] { return false; });
  if (!got) {
    column.failed = got.error().text;
    return;
  }
  column.tuned = mean_of(*got, 1, sides.tuned.size());
  std::rotate(got->begin() + 1, got->begin() + 1 + static_cast<std::ptrdiff_t>(sides.tuned.size()),
              got->end());
  column.standard = mean_of(*got, 0, sides.standard.size());
  if (sides.standard.size() > 1) column.equal = paired_ratio((*got)[0], (*got)[1]);
  if (const auto ratio = paired_ratio(column.standard, column.tuned))
    column.ratio = *ratio;
  else
    column.failed = "too few samples";
}

}  // namespace

double Column::standard_median() const { return measure::median_of(standard).value_or(0); }
double Column::tuned_median() const { return measure::median_of(tuned).value_or(0); }

std::vector<Column> compare_columns(Measurer& measurer, const CompareOptions& options, const Sides& sides,
                                    const Hooks& hooks) {
  std::vector<Column> out;
  const double start = hooks.now();
  const auto key = [](const Cell& c) { return std::tuple(c.collective, c.bytes); };
  auto cells = options.cells;
  cells.insert(cells.end(), options.held_back.begin(), options.held_back.end());
  std::ranges::sort(cells, {}, key);
  for (const auto& cell : cells) {
    if (hooks.stop() || hooks.now() - start > options.budget_seconds) return out;
    hooks.progress(std::string(name_of(cell.collective)) + " " + std::to_string(cell.bytes));
    Column column;
    column.cell = cell;
    column.held_back = std::ranges::find(options.held_back, cell) != options.held_back.end();
    fill(measurer, column, sides, options.pairs);
    out.push_back(std::move(column));
  }
  return out;
}

Summary summary_of(const std::vector<Column>& columns) {
  Summary s;
  double sum = 0;
  int large = 0;
  s.least_ratio = HUGE_VAL;
  for (const auto& c : columns) {
    if (!c.failed.empty()) continue;
    ++s.cells;
    s.faster += c.ratio.median >= 1.05;
    s.below += c.ratio.median < 0.99;
    s.slower += c.ratio.high < 0.99;
    s.unequal += c.equal && std::abs(c.equal->median - 1) > 0.01;
    s.least_ratio = std::min(s.least_ratio, c.ratio.median);
    if (c.cell.collective != Collective::all_reduce || c.cell.bytes < (4u << 20)) continue;
    sum += std::log(c.ratio.median);
    ++large;
  }
  if (large > 0) s.large_gain = std::exp(sum / large);
  if (s.cells == 0) s.least_ratio = 1;
  return s;
}

}  // namespace topotune::tune
