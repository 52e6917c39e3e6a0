#include "tune/compare.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "measure/statistics.h"
#include "tune/rounds.h"

namespace topotune::tune {

namespace {

std::vector<Cell> sorted_cells(const CompareOptions& options) {
  auto cells = options.cells;
  cells.insert(cells.end(), options.held_back.begin(), options.held_back.end());
  std::ranges::sort(cells, {}, [](const Cell& c) { return std::tuple(c.collective, c.bytes); });
  return cells;
}

Column empty_column(const Cell& cell, const CompareOptions& options) {
  Column column;
  column.cell = cell;
  column.held_back = std::ranges::find(options.held_back, cell) != options.held_back.end();
  return column;
}

void rate(Column& column) {
  if (const auto ratio = paired_ratio(column.standard, column.tuned))
    column.ratio = *ratio;
  else
    column.failed = "too few samples";
}

bool clear(const Trial& t, double least) {
  const auto ratio = paired_ratio(t.usual.standard, t.usual.tuned[0]);
  return ratio && verdict_of(*ratio, least) != Verdict::undecided;
}

void count(Verdicts& to, const Ratio& ratio, double least) {
  const auto verdict = verdict_of(ratio, least);
  to.not_slower += verdict == Verdict::not_slower;
  to.slower += verdict == Verdict::slower;
  to.undecided += verdict == Verdict::undecided;
  to.faster += ratio.low > 1.01;
  to.least = std::min(to.least, ratio.median);
}

}  // namespace

double Column::standard_median() const { return measure::median_of(standard).value_or(0); }
double Column::tuned_median() const { return measure::median_of(tuned).value_or(0); }

Result<std::vector<Column>> compare_instances(Generations& generations, const CompareOptions& options,
                                              const Hooks& hooks) {
  std::vector<Trial> trials;
  for (const auto& cell : sorted_cells(options)) trials.emplace_back().cell = cell;
  TrialOptions o;
  o.kinds = {Kind::standard, Kind::tuned, Kind::control};
  o.most = std::max<std::size_t>(3, (options.pairs + 1) / 2);
  o.first = std::min(o.first, o.most);
  o.budget_seconds = options.budget_seconds;
  o.settled = [&](const Trial& t) { return clear(t, options.least); };
  if (auto ok = run_trials(generations, trials, o, hooks); !ok) return tl::unexpected(ok.error());
  std::vector<Column> out;
  for (auto& t : trials) {
    auto column = empty_column(t.cell, options);
    column.failed = t.failed;
    column.standard = std::move(t.usual.standard), column.tuned = std::move(t.usual.tuned[0]);
    column.control = paired_ratio(column.standard, t.usual.control);
    if (column.failed.empty() && column.standard.empty()) continue;  // no time
    if (column.failed.empty()) rate(column);
    out.push_back(std::move(column));
  }
  return out;
}

std::vector<Column> compare_switched(Measurer& measurer, const CompareOptions& options,
                                     const Candidate& standard, const Candidate& other, const Hooks& hooks) {
  std::vector<Column> out;
  const double start = hooks.now();
  const auto over = [&] { return hooks.stop() || hooks.now() - start > options.budget_seconds; };
  for (const auto& cell : sorted_cells(options)) {
    hooks.progress(std::string(name_of(cell.collective)) + " " + std::to_string(cell.bytes));
    auto column = empty_column(cell, options);
    auto got = rounds(measurer, cell, {standard, other}, options.pairs, Way::usual, over);
    if (got) {
      if (got->front().size() < kLeastPairs && over()) return out;
      column.standard = std::move((*got)[0]), column.tuned = std::move((*got)[1]);
      rate(column);
    } else {
      column.failed = got.error().text;
    }
    out.push_back(std::move(column));
  }
  return out;
}

Summary summary_of(const std::vector<Column>& columns, double least) {
  Summary s;
  double sum = 0;
  int large = 0;
  for (const auto& c : columns) {
    if (!c.failed.empty()) continue;
    if (s.cells++ == 0) s.tuned.least = HUGE_VAL;
    s.faster += c.ratio.median >= 1.05;
    s.below += c.ratio.median < least;
    count(s.tuned, c.ratio, least);
    if (c.control) {
      if (!s.control) s.control.emplace().least = HUGE_VAL;
      count(*s.control, *c.control, least);
    }
    if (c.cell.collective != Collective::all_reduce || c.cell.bytes < (4u << 20)) continue;
    sum += std::log(c.ratio.median);
    ++large;
  }
  if (large > 0) s.large_gain = std::exp(sum / large);
  return s;
}

}  // namespace topotune::tune
