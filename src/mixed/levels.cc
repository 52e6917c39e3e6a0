#include "mixed/levels.h"

#include <algorithm>

#include "measure/statistics.h"
#include "mixed/loss.h"

namespace topotune::mixed {

namespace {

constexpr double kCounts = 0.05;        // of a step
constexpr double kFrameworkMay = 1.25;  // times the collective alone
constexpr double kBelow = 0.9;          // of the expected bandwidth

using Field = std::optional<double> parse::TrainingStep::*;

// The median over steps of the slowest rank; nothing where a step lacks it.
std::optional<double> median_of(const std::vector<parse::StepLog>& logs, std::size_t first, std::size_t end,
                                Field field) {
  std::vector<double> all;
  for (std::size_t i = first; i < end; ++i) {
    double most = 0;
    for (const auto& log : logs) {
      const auto& value = log.steps[i].*field;
      if (!value) return std::nullopt;
      most = std::max(most, *value);
    }
    all.push_back(most);
  }
  return measure::median_of(all);
}

struct Loss {
  std::string level, text;
  double share = 0;
};

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

std::optional<std::string> bad_counters(const std::map<std::string, double>& counters) {
  const auto signs = signs_of_loss(counters);
  if (signs.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(signs, ", "));
}

void collective_loss(const Levels& l, std::vector<Loss>& losses, std::vector<std::string>& unknown) {
  if (!l.collective) return unknown.push_back("the collective alone: " + l.no_collective);
  if (!l.expected_busbw_gbytes_per_s)
    return unknown.push_back("what the collective should reach: no --expect GB/s");
  const double have = l.collective->largest_busbw_gbytes_per_s, want = *l.expected_busbw_gbytes_per_s;
  if (have >= kBelow * want || !l.step || !l.step->calls) return;
  const double lost = *l.step->calls * l.collective->seconds * (1 - have / want) / l.step->median;
  losses.push_back({"collective",
                    fmt::format("the collective alone reaches {:.4g} of {:.4g} GB/s: as much as {} of a step",
                                have, want, percent(lost)),
                    std::max(lost, kCounts)});
}

// Seconds a step by which the framework's communication is longer than the collective alone; 0 within a
// quarter of it.
double framework_excess(const Levels& l) {
  const auto& s = *l.step;
  if (!s.communication || !s.calls || !l.collective) return 0;
  const double alone = *s.calls * l.collective->seconds;
  return *s.communication > kFrameworkMay * alone ? *s.communication - alone : 0;
}

void step_loss(const Levels& l, std::vector<Loss>& losses, std::vector<std::string>& unknown) {
  if (!l.step) return;
  const auto& s = *l.step;
  if (!s.communication || !s.calls || !l.collective)
    return unknown.push_back("communication of the step beside the collective alone");
  const double excess = framework_excess(l);
  if (excess <= 0) return;
  // What computation hides costs nothing.
  losses.push_back(
      {"step",
       fmt::format("the step's {:.0f} calls take {:.3g} ms in the framework, {:.3g} ms by the collective "
                   "alone",
                   *s.calls, *s.communication * 1e3, *s.calls * l.collective->seconds * 1e3),
       std::min(excess, s.exposed.value_or(excess)) / s.median});
}

void profile_loss(const Levels& l, std::vector<Loss>& losses, std::vector<std::string>& unknown) {
  if (!l.step) return;
  const auto& s = *l.step;
  if (s.dataloader)
    losses.push_back({"profile",
                      fmt::format("the data loader takes {:.3g} of {:.3g} ms a step ({})",
                                  *s.dataloader * 1e3, s.median * 1e3, percent(*s.dataloader / s.median)),
                      *s.dataloader / s.median});
  else
    unknown.push_back("the data loader's part of the step");
  if (s.exposed)
    losses.push_back(
        {"profile",
         fmt::format("{:.3g} of {:.3g} ms a step ({}) are communication that no computation hides",
                     *s.exposed * 1e3, s.median * 1e3, percent(*s.exposed / s.median)),
         std::max(0.0, *s.exposed - framework_excess(l)) / s.median});
  else
    unknown.push_back("communication that no computation hides");
}

model::Measurement blank(const char* name, const char* unit, const std::optional<StepSummary>& step) {
  model::Measurement m;
  m.name = name;
  m.unit = unit;
  if (step) {
    m.params = {{"kind", step->kind}, {"op", step->op}, {"ranks", static_cast<std::int64_t>(step->ranks)}};
    m.extra = {{"framework", step->framework}, {"backend", step->backend}};
  }
  m.verified_how = "not compared";
  return m;
}

model::Measurement single(const char* name, const char* unit, const std::optional<double>& value,
                          const std::optional<StepSummary>& step, const std::string& why) {
  auto m = blank(name, unit, step);
  if (value) {
    m.samples = {*value};
    m.median = m.p1 = m.p99 = value;
  } else {
    m.status = model::MeasureStatus::waived;
    m.why = why;
  }
  return m;
}

}  // namespace

std::optional<double> StepSummary::call_bytes() const {
  if (!bytes || !calls || *calls < 1 || *bytes < 1) return std::nullopt;
  return *bytes / *calls;
}

std::optional<StepSummary> summarise_steps(const std::vector<parse::StepLog>& logs) {
  constexpr std::size_t kFirst = 2;
  if (logs.empty()) return std::nullopt;
  auto steps = logs.front().steps.size();
  for (const auto& log : logs) steps = std::min(steps, log.steps.size());
  if (steps <= kFirst) return std::nullopt;
  StepSummary out;
  const auto& head = logs.front();
  out.kind = head.kind, out.op = head.op, out.framework = head.framework, out.backend = head.backend;
  out.ranks = head.ranks;
  for (std::size_t i = kFirst; i < steps; ++i) {
    double most = 0;
    for (const auto& log : logs) most = std::max(most, log.steps[i].seconds);
    out.seconds.push_back(most);
  }
  out.median = *measure::median_of(out.seconds);
  out.compute = median_of(logs, kFirst, steps, &parse::TrainingStep::compute);
  out.dataloader = median_of(logs, kFirst, steps, &parse::TrainingStep::dataloader);
  out.communication = median_of(logs, kFirst, steps, &parse::TrainingStep::communication);
  out.exposed = median_of(logs, kFirst, steps, &parse::TrainingStep::exposed);
  out.bytes = median_of(logs, kFirst, steps, &parse::TrainingStep::communication_bytes);
  out.calls = median_of(logs, kFirst, steps, &parse::TrainingStep::calls);
  return out;
}

LevelVerdict verdict_of(const Levels& levels) {
  LevelVerdict out;
  std::vector<Loss> losses;
  collective_loss(levels, losses, out.unknown);
  step_loss(levels, losses, out.unknown);
  profile_loss(levels, losses, out.unknown);
  if (!levels.step) out.unknown.push_back("the training step: " + levels.no_step);
  if (!levels.counters) out.unknown.push_back("port counters: " + levels.no_counters);
  if (const auto bad = levels.counters ? bad_counters(*levels.counters) : std::nullopt) {
    out.level = "ports";
    out.text = "the network loses packets while the levels above it run: " + *bad;
    return out;
  }
  const auto worst = std::ranges::max_element(losses, {}, [](const Loss& loss) { return loss.share; });
  if (worst != losses.end() && worst->share >= kCounts) {
    out.level = worst->level;
    out.text = worst->text;
    return out;
  }
  const bool enough = levels.step && levels.step->exposed && levels.step->dataloader && levels.collective;
  out.level = enough ? "none" : "unknown";
  out.text = enough ? "no level loses a twentieth of a step" : "too little was measured to name a level";
  return out;
}

std::vector<model::Measurement> measurements_of(const Levels& l) {
  std::vector<model::Measurement> out;
  const auto busbw = l.collective ? std::optional(l.collective->busbw_gbytes_per_s) : std::nullopt;
  out.push_back(single("levels.collective", "gbytes_per_s", busbw, l.step, l.no_collective));
  if (l.collective) {
    out.back().extra.push_back({"seconds", l.collective->seconds});
    out.back().extra.push_back({"largest_busbw_gbytes_per_s", l.collective->largest_busbw_gbytes_per_s});
  }
  auto step = blank("levels.step", "seconds", l.step);
  if (l.step) {
    step.samples = l.step->seconds;
    measure::summarise(step, {0.1, 1, 3});
  } else {
    step.status = model::MeasureStatus::waived, step.why = l.no_step;
  }
  out.push_back(std::move(step));
  const auto of = [&](const char* name, std::optional<double> StepSummary::*field) {
    const auto value = l.step ? (*l.step).*field : std::nullopt;
    out.push_back(
        single(name, "seconds", value, l.step, l.step ? "the script does not report it" : l.no_step));
  };
  of("levels.step.compute", &StepSummary::compute);
  of("levels.step.communication", &StepSummary::communication);
  of("levels.step.exposed", &StepSummary::exposed);
  of("levels.step.dataloader", &StepSummary::dataloader);
  if (l.counters) {
    for (const auto& [name, count] : *l.counters) {
      if (count <= 0 || !(is_loss_counter(name) || name == "tcp.RetransSegs")) continue;
      out.push_back(single("levels.counter", "count", count, std::nullopt, ""));
      out.back().params = {{"counter", name}};
    }
  }
  return out;
}

std::string levels_text(const Levels& l) {
  const auto ms = [](const std::optional<double>& s) {
    return s ? fmt::format("{:.3f} ms", *s * 1e3) : "unknown";
  };
  std::string out;
  if (l.collective)
    out += fmt::format(
        "1 collective  {:.4g} GB/s bus bandwidth, {} a call at the step's size; {:.4g} GB/s at the largest\n",
        l.collective->busbw_gbytes_per_s, ms(l.collective->seconds),
        l.collective->largest_busbw_gbytes_per_s);
  else
    out += "1 collective  unknown: " + l.no_collective + "\n";
  if (l.step) {
    const auto& s = *l.step;
    out += fmt::format("2 step        {} a {} step on {} ranks ({}, {}), {} steps\n", ms(s.median), s.kind,
                       s.ranks, s.framework, s.backend, s.seconds.size());
    out += fmt::format(
        "3 profile     computation {}, communication {} in {} calls of {}, not hidden {}, data loader {}\n",
        ms(s.compute), ms(s.communication), s.calls ? fmt::format("{:.0f}", *s.calls) : "?",
        s.call_bytes() ? fmt::format("{:.0f} bytes", *s.call_bytes()) : "?", ms(s.exposed), ms(s.dataloader));
  } else {
    out += "2 step        unknown: " + l.no_step + "\n3 profile     unknown: " + l.no_step + "\n";
  }
  if (!l.counters) return out + "4 ports       unknown: " + l.no_counters + "\n";
  const auto bad = bad_counters(*l.counters);
  return out + fmt::format("4 ports       {} counters read: {}\n", l.counters->size(),
                           bad ? *bad : "none tells of loss");
}

}  // namespace topotune::mixed
