#include "tune/compare.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace topotune::tune {

namespace {

void fill(Measurer& m, Column& column, const Candidate& tuned, std::size_t pairs) {
  const auto one = [&](const Candidate& c, std::vector<double>* into) {
    const auto got = m.sample(column.cell, c);
    if (!got) column.failed = got.error().text;
    if (got && into != nullptr) into->push_back(*got);
    return got.has_value();
  };
  const Candidate standard{0, {}};
  if (!one(standard, nullptr) || !one(tuned, nullptr)) return;
  for (std::size_t i = 0; i < pairs; ++i) {
    const bool first = i % 2 == 0;
    const bool good = first ? one(standard, &column.standard) && one(tuned, &column.tuned)
                            : one(tuned, &column.tuned) && one(standard, &column.standard);
    if (!good) return;
  }
  if (const auto ratio = paired_ratio(column.standard, column.tuned))
    column.ratio = *ratio;
  else
    column.failed = "too few samples";
}

}  // namespace

double Column::standard_median() const { return measure::median_of(standard).value_or(0); }
double Column::tuned_median() const { return measure::median_of(tuned).value_or(0); }

std::vector<Column> compare_columns(Measurer& measurer, const CompareOptions& options,
                                    const std::function<Candidate(const Cell&)>& tuned, const Hooks& hooks) {
  std::vector<Column> out;
  const double start = hooks.now();
  auto sizes = options.sizes;
  sizes.insert(sizes.end(), options.held_back.begin(), options.held_back.end());
  std::ranges::sort(sizes);
  for (const auto collective : options.collectives) {
    for (const auto bytes : sizes) {
      if (hooks.stop() || hooks.now() - start > options.budget_seconds) return out;
      hooks.progress(std::string(name_of(collective)) + " " + std::to_string(bytes));
      Column column;
      column.cell = {collective, bytes};
      column.held_back = std::ranges::find(options.held_back, bytes) != options.held_back.end();
      fill(measurer, column, tuned(column.cell), options.pairs);
      out.push_back(std::move(column));
    }
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
    s.slower += c.ratio.median < 0.99;
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
