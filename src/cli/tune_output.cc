#include "cli/tune_output.h"

#include <algorithm>
#include <cmath>

#include "measure/fit.h"
#include "measure/statistics.h"

namespace topotune::cli {

namespace {

constexpr measure::NoiseLimits kNoise{0.10, 2.0, 3};

model::Measurement column_of(const std::string& name, const tune::Cell& cell, int ranks,
                             const std::string& column, const std::vector<double>& samples) {
  model::Measurement m;
  m.name = name + "." + tune::name_of(cell.collective);
  m.params = {{"bytes", static_cast<std::int64_t>(cell.bytes)},
              {"ranks", static_cast<std::int64_t>(ranks)},
              {"column", column}};
  m.unit = "seconds";
  m.samples = samples;
  measure::summarise(m, kNoise);
  return m;
}

void add_ratio(model::Measurement& m, const tune::Ratio& ratio) {
  m.extra.push_back({"ratio", ratio.median});
  m.extra.push_back({"ratio_low", ratio.low});
  m.extra.push_back({"ratio_high", ratio.high});
}

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1u << 30 && bytes % (1u << 30) == 0) return fmt::format("{}G", bytes >> 30);
  if (bytes >= 1u << 20 && bytes % (1u << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1u << 10 && bytes % (1u << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

std::string level_text(const tune::Level& level) {
  return level.ctas ? fmt::format("NCCL_MIN_CTAS={}", *level.ctas) : std::string("NCCL's own");
}

const tune::Compared* of_level(const tune::CellResult& cell, std::size_t level) {
  const auto at =
      std::ranges::find_if(cell.levels, [&](const auto& c) { return c.candidate.level == level; });
  return at == cell.levels.end() ? nullptr : &*at;
}

double median(const std::vector<double>& values) { return measure::median_of(values).value_or(0); }

void add_failed(model::MeasurementRun& run, const std::string& name, const tune::Cell& cell, int ranks,
                const std::string& why) {
  model::Measurement m = column_of(name, cell, ranks, "default", {});
  m.status = model::MeasureStatus::failed;
  m.why = why;
  run.results.push_back(std::move(m));
}

}  // namespace

void add_results(model::MeasurementRun& run, const TuneOutcome& outcome, const TuneMachine& machine) {
  const int ranks = machine.groups.front()->ranks();
  for (const auto& cell : outcome.search.cells) {
    if (!cell.failed.empty()) {
      add_failed(run, "tune", cell.cell, ranks, cell.failed);
      continue;
    }
    for (const auto& c : cell.levels) {
      const auto& level = machine.levels[c.candidate.level];
      auto standard = column_of("tune", cell.cell, ranks, fmt::format("default beside {}", level_text(level)),
                                c.standard);
      standard.verified_how = "timed only";
      run.results.push_back(std::move(standard));
      auto m = column_of("tune", cell.cell, ranks, level_text(level), c.tuned);
      m.verified_how = "timed only";
      m.extra.push_back({"choice", tune::text_of(c.candidate.choice)});
      m.extra.push_back({"default_choice", tune::text_of(cell.default_choice)});
      m.extra.push_back({"candidates", static_cast<std::int64_t>(cell.measured)});
      m.extra.push_back({"left_out", static_cast<std::int64_t>(cell.left_out)});
      m.extra.push_back({"chosen_level", static_cast<std::int64_t>(c.candidate.level == outcome.level)});
      add_ratio(m, c.ratio);
      run.results.push_back(std::move(m));
    }
  }
  for (const auto& score : outcome.scores) {
    const auto memory = machine.megabytes[score.level];
    run.judgements.push_back(
        {model::Severity::info, level_text(machine.levels[score.level]),
         fmt::format("mean gain x {:.4f} over {} cells, {} faster, {} slower; {} of GPU memory{}", score.gain,
                     score.cells, score.faster, score.slower,
                     memory ? fmt::format("{:.0f} MB", *memory) : std::string("an unknown amount"),
                     score.level == outcome.level ? "; chosen" : "")});
  }
  for (const auto& note : machine.notes) run.judgements.push_back({model::Severity::info, "run", note});
}

void add_results(model::MeasurementRun& run, const std::vector<tune::Column>& columns,
                 const std::string& name, int ranks, const std::string& mode) {
  for (const auto& c : columns) {
    if (!c.failed.empty()) {
      add_failed(run, name, c.cell, ranks, c.failed);
      continue;
    }
    auto standard = column_of(name, c.cell, ranks, "default", c.standard);
    auto tuned = column_of(name, c.cell, ranks, "tuned", c.tuned);
    add_ratio(tuned, c.ratio);
    for (auto* m : {&standard, &tuned}) {
      m->verified_how = "timed only";
      m->extra.push_back({"held_back", static_cast<std::int64_t>(c.held_back)});
      m->extra.push_back({"mode", mode});
    }
    run.results.push_back(std::move(standard));
    run.results.push_back(std::move(tuned));
  }
}

void add_models(model::MeasurementRun& run, const std::vector<tune::Column>& columns) {
  for (int k = 0; k < tune::kCollectives; ++k) {
    for (const bool tuned : {false, true}) {
      std::vector<measure::SizePoint> points, held;
      for (const auto& c : columns) {
        if (c.cell.collective != static_cast<tune::Collective>(k) || !c.failed.empty()) continue;
        (c.held_back ? held : points)
            .push_back({static_cast<double>(c.cell.bytes), tuned ? c.tuned_median() : c.standard_median()});
      }
      const auto fit = measure::fit_sizes(points, 6, 0.01);
      if (fit.segments.empty()) continue;
      const std::string name = fmt::format("tune.{}", tune::name_of(static_cast<tune::Collective>(k)));
      const std::vector<model::Param> params{{"column", std::string(tuned ? "tuned" : "default")}};
      run.models.push_back({name, params, fit.segments, fit.mean_error});
      double error = 0;
      for (const auto& p : held)
        error += std::abs(measure::predict(fit.segments, p.bytes) - p.seconds) / p.seconds;
      std::string text = fmt::format("model of the {} column: mean error {:.2f} % over {} sizes",
                                     tuned ? "tuned" : "default", 100 * fit.mean_error, points.size());
      if (!held.empty())
        text += fmt::format(", {:.2f} % over {} held-back ones",
                            100 * error / static_cast<double>(held.size()), held.size());
      run.judgements.push_back({model::Severity::info, name, text});
    }
  }
}

std::string tune_text(const TuneOutcome& outcome, const TuneMachine& machine) {
  std::string out = fmt::format("NCCL {}, {} ranks, {:.1f} s\n", machine.library.version_text(),
                                machine.groups.front()->ranks(), outcome.search.seconds);
  for (const auto& score : outcome.scores) {
    const auto& memory = machine.megabytes[score.level];
    out += fmt::format("{} {:<20} mean gain x {:.4f}, {} of {} faster, {} slower{}\n",
                       score.level == outcome.level ? "*" : " ", level_text(machine.levels[score.level]),
                       score.gain, score.faster, score.cells, score.slower,
                       memory ? fmt::format(", {:.0f} MB", *memory) : "");
  }
  out += fmt::format("{:<15} {:>8} {:>12} {:>12} {:>7}  {:<15}  {}\n", "collective", "bytes", "default us",
                     "tuned us", "ratio", "95 %", "choice");
  for (const auto& cell : outcome.search.cells) {
    const auto* c = of_level(cell, outcome.level);
    out += fmt::format("{:<15} {:>8} ", tune::name_of(cell.cell.collective), size_text(cell.cell.bytes));
    if (!cell.failed.empty())
      out += fmt::format("failed: {}\n", cell.failed);
    else if (c == nullptr)
      out += fmt::format("{:>12} {:>12} {:>7}  {:<15}  {} (the default)\n", "", "", "1", "",
                         tune::text_of(cell.default_choice));
    else
      out +=
          fmt::format("{:>12.2f} {:>12.2f} {:>7.3f}  {:.3f} - {:.3f}    {} (was {})\n",
                      1e6 * median(c->standard), 1e6 * median(c->tuned), c->ratio.median, c->ratio.low,
                      c->ratio.high, tune::text_of(c->candidate.choice), tune::text_of(cell.default_choice));
  }
  return out;
}

std::string columns_text(const std::vector<tune::Column>& columns, const std::string& left,
                         const std::string& right) {
  std::string out = fmt::format("{:<15} {:>10} {:>12} {:>12} {:>7}  {}\n", "collective", "bytes",
                                left + " us", right + " us", "ratio", "95 %");
  for (const auto& c : columns) {
    out += fmt::format("{:<15} {:>10} ", tune::name_of(c.cell.collective), size_text(c.cell.bytes));
    if (!c.failed.empty())
      out += fmt::format("failed: {}\n", c.failed);
    else
      out += fmt::format("{:>12.2f} {:>12.2f} {:>7.3f}  {:.3f} - {:.3f}{}\n", 1e6 * c.standard_median(),
                         1e6 * c.tuned_median(), c.ratio.median, c.ratio.low, c.ratio.high,
                         c.held_back ? "  held back" : "");
  }
  const auto s = tune::summary_of(columns);
  out += fmt::format(
      "all_reduce from 4M: x {:.4f}; least ratio {:.3f}; {} of {} cells faster by 5 %, {} slower than 0.99\n",
      s.large_gain, s.least_ratio, s.faster, s.cells, s.slower);
  return out;
}

}  // namespace topotune::cli
