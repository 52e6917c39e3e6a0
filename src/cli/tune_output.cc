#include "cli/tune_output.h"

#include <algorithm>
#include <cmath>
#include <map>

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

std::string level_text(const tune::Level& level) {
  return level.ctas ? fmt::format("NCCL_MIN_CTAS={}", *level.ctas) : std::string("NCCL's own");
}

double median(const std::vector<double>& values) { return measure::median_of(values).value_or(0); }

void add_failed(model::MeasurementRun& run, const std::string& name, const tune::Cell& cell, int ranks,
                const std::string& why) {
  model::Measurement m = column_of(name, cell, ranks, "default", {});
  m.status = model::MeasureStatus::failed;
  m.why = why;
  run.results.push_back(std::move(m));
}

void add_proof(model::MeasurementRun& run, const tune::Proof& p, int ranks, const std::string& level) {
  if (!p.proved) {
    if (!p.failed.empty()) add_failed(run, "tune.proof", p.cell, ranks, p.failed);
    return;
  }
  auto standard = column_of("tune.proof", p.cell, ranks, "default", p.after.standard);
  auto tuned = column_of("tune.proof", p.cell, ranks, level, p.after.tuned);
  standard.verified_how = tuned.verified_how = "timed only";
  tuned.extra.push_back({"choice", tune::text_of(p.after.choice)});
  tuned.extra.push_back({"choice_before", tune::text_of(p.before)});
  tuned.extra.push_back({"border", static_cast<std::int64_t>(p.border)});
  add_ratio(tuned, p.after.ratio);
  tuned.extra.push_back({"pairs", static_cast<std::int64_t>(p.after.tuned.size())});
  tuned.extra.push_back({"verdict", std::string(tune::name_of(p.after.verdict))});
  if (const auto& other = p.after.other_way) {
    tuned.extra.push_back({"ratio_other_launches", other->median});
    tuned.extra.push_back({"ratio_other_launches_low", other->low});
    tuned.extra.push_back({"ratio_other_launches_high", other->high});
  }
  run.results.push_back(std::move(standard));
  run.results.push_back(std::move(tuned));
}

std::string proof_line(const tune::Proof& p) {
  std::string out = fmt::format("{:<15} {:>8} ", tune::name_of(p.cell.collective), size_text(p.cell.bytes));
  if (!p.proved) return out + (p.failed.empty() ? "not proved: no time\n" : "failed: " + p.failed + "\n");
  const auto& m = p.after;
  const bool changed = p.before != m.choice;
  return out +
         fmt::format(
             "{:>12.2f} {:>12.2f} {:>7.3f}  {:.3f} - {:.3f}  {:>7}  {}{}{}\n", 1e6 * median(m.standard),
             1e6 * median(m.tuned), m.ratio.median, m.ratio.low, m.ratio.high,
             m.other_way ? fmt::format("{:.3f}", m.other_way->median) : "-", tune::text_of(m.choice),
             changed && !p.border ? fmt::format(" (not {})", tune::text_of(p.before)) : "",
             m.verdict == tune::Verdict::not_slower ? "" : fmt::format(" {}", tune::name_of(m.verdict)));
}

std::string left_out_text(const tune::Proved& p) {
  if (!p.left_out) return {};
  const auto text = [](const tune::Ratio& r) {
    return fmt::format("x {:.4f} ({:.4f} - {:.4f})", r.median, r.low, r.high);
  };
  return fmt::format("{} sizes up to 64K without an entry, together: {} of the default{}", p.left_out_cells,
                     text(*p.left_out),
                     p.left_out_other ? ", in streams " + text(*p.left_out_other) : std::string());
}

}  // namespace

void add_results(model::MeasurementRun& run, const TuneOutcome& outcome, const TuneMachine& machine) {
  const int ranks = machine.ranks();
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
  for (const auto& p : outcome.proved.proofs)
    add_proof(run, p, ranks, level_text(machine.levels[outcome.level]));
  for (const auto& score : outcome.scores) {
    const auto memory = machine.megabytes[score.level];
    run.judgements.push_back(
        {model::Severity::info, level_text(machine.levels[score.level]),
         fmt::format("mean gain x {:.4f} over {} cells, {} faster, {} slower; {} of GPU memory{}", score.gain,
                     score.cells, score.faster, score.slower,
                     memory ? fmt::format("{:.0f} MB", *memory) : std::string("an unknown amount"),
                     score.level == outcome.level ? "; chosen" : "")});
  }
  if (const auto text = left_out_text(outcome.proved); !text.empty())
    run.judgements.push_back({model::Severity::info, "no entry", text});
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
    tuned.extra.push_back({"pairs", static_cast<std::int64_t>(c.tuned.size())});
    tuned.extra.push_back({"verdict", std::string(tune::name_of(tune::verdict_of(c.ratio, tune::kLeast)))});
    if (c.control) {
      standard.extra.push_back({"control_ratio", c.control->median});
      standard.extra.push_back({"control_low", c.control->low});
      standard.extra.push_back({"control_high", c.control->high});
    }
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

std::string size_text(std::uint64_t bytes) {
  if (bytes >= 1u << 30 && bytes % (1u << 30) == 0) return fmt::format("{}G", bytes >> 30);
  if (bytes >= 1u << 20 && bytes % (1u << 20) == 0) return fmt::format("{}M", bytes >> 20);
  if (bytes >= 1u << 10 && bytes % (1u << 10) == 0) return fmt::format("{}K", bytes >> 10);
  return fmt::format("{}", bytes);
}

std::string left_text(const std::vector<tune::Cell>& left) {
  std::map<tune::Collective, std::string> sizes;
  for (const auto& cell : left) sizes[cell.collective] += " " + size_text(cell.bytes);
  std::vector<std::string> parts;
  for (const auto& [collective, text] : sizes) parts.push_back(tune::name_of(collective) + text);
  return fmt::format("no time for: {}", fmt::join(parts, "; "));
}

std::string tune_text(const TuneOutcome& outcome, const TuneMachine& machine, double seconds) {
  const auto nodes = machine.nodes();
  std::string out =
      fmt::format("NCCL {}, {} ranks{}, {:.1f} s\n", machine.library.version_text(), machine.ranks(),
                  nodes > 1 ? fmt::format(" on {} nodes", nodes) : "", seconds);
  for (const auto& score : outcome.scores) {
    const auto& memory = machine.megabytes[score.level];
    out += fmt::format("{} {:<20} mean gain x {:.4f}, {} of {} faster, {} slower{}\n",
                       score.level == outcome.level ? "*" : " ", level_text(machine.levels[score.level]),
                       score.gain, score.faster, score.cells, score.slower,
                       memory ? fmt::format(", {:.0f} MB", *memory) : "");
  }
  out += fmt::format("{:<15} {:>8} {:>12} {:>12} {:>7}  {:<13}  {:>7}  {}\n", "collective", "bytes",
                     "default us", "tuned us", "ratio", "95 %", "streams", "choice");
  for (const auto& p : outcome.proved.proofs) out += proof_line(p);
  if (const auto text = left_out_text(outcome.proved); !text.empty()) out += text + "\n";
  for (const auto& note : machine.notes) out += note + "\n";
  return out;
}

namespace {

std::string ratio_text(const tune::Ratio& r) {
  return fmt::format("{:>6.3f}  {:.3f} - {:.3f}", r.median, r.low, r.high);
}

std::string verdicts_text(const tune::Verdicts& v) {
  return fmt::format("{} slower than 0.99, {} not slower, {} undecided (least {:.3f}, {} faster by 1 %)",
                     v.slower, v.not_slower, v.undecided, v.least, v.faster);
}

}  // namespace

std::string columns_text(const std::vector<tune::Column>& columns, const std::string& left,
                         const std::string& right) {
  const bool control = std::ranges::any_of(columns, [](const auto& c) { return c.control.has_value(); });
  std::string out =
      fmt::format("{:<15} {:>10} {:>12} {:>12} {:>5} {:>6}  {:<13}  {}\n", "collective", "bytes",
                  left + " us", right + " us", "pairs", "ratio", "95 %", control ? " control" : "");
  for (const auto& c : columns) {
    out += fmt::format("{:<15} {:>10} ", tune::name_of(c.cell.collective), size_text(c.cell.bytes));
    if (!c.failed.empty()) {
      out += fmt::format("failed: {}\n", c.failed);
      continue;
    }
    const auto verdict = tune::verdict_of(c.ratio, tune::kLeast);
    out += fmt::format(
        "{:>12.2f} {:>12.2f} {:>5} {}  {}{}{}\n", 1e6 * c.standard_median(), 1e6 * c.tuned_median(),
        c.tuned.size(), ratio_text(c.ratio), c.control ? ratio_text(*c.control) : "",
        verdict == tune::Verdict::not_slower ? "" : fmt::format("  {}", tune::name_of(verdict)),
        c.held_back ? "  held back" : "");
  }
  return out + summary_text(tune::summary_of(columns)) + "\n";
}

std::string summary_text(const tune::Summary& s) {
  auto out = fmt::format("{}{} of {} cells faster by 5 %; {}; {} below 0.99 by their median",
                         s.large_gain ? fmt::format("all_reduce from 4M: x {:.4f}; ", *s.large_gain) : "",
                         s.faster, s.cells, verdicts_text(s.tuned), s.below);
  if (s.control) out += "; control, default against default: " + verdicts_text(*s.control);
  return out;
}

}  // namespace topotune::cli
