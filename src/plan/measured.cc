// Which actions a measurement speaks for: "measured here", with the number.
#include "plan/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace topotune::plan {

namespace {

using Entries = std::map<std::string, std::string>;  // of a machine: name, value

// Less than this is no benefit that anybody would change a machine for.
constexpr double kLeast = 1.02;

std::string number_text(double value, std::string_view unit) {
  if (unit == "gbytes_per_s") return fmt::format("{:.1f} GB/s", value);
  if (unit == "seconds") return fmt::format("{:.4g} s", value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string state_text(const std::string& setting, const std::optional<std::string>& value) {
  return value ? fmt::format("{}={}", setting, *value) : fmt::format("without {}", setting);
}

// How many times better the new value is; below 1: worse.
double gain_of(const MeasuredEffect& effect) {
  if (effect.before <= 0 || effect.after <= 0) return 1;
  return effect.larger_is_better ? effect.after / effect.before : effect.before / effect.after;
}

// The one name whose values differ in `a` and `b`; nothing: none or several.
std::optional<std::string> single_difference(const Entries& a, const Entries& b) {
  std::optional<std::string> name;
  const auto differs = [&](const std::string& key, const Entries& other, const std::string& value) {
    const auto found = other.find(key);
    return found == other.end() || found->second != value;
  };
  for (const auto* one : {&a, &b})
    for (const auto& [key, value] : *one) {
      if (!differs(key, one == &a ? b : a, value) || name == key) continue;
      if (name) return std::nullopt;
      name = key;
    }
  return name;
}

std::optional<std::string> value_in(const Entries& entries, const std::string& name) {
  const auto found = entries.find(name);
  return found == entries.end() ? std::nullopt : std::optional(found->second);
}

enum class Verdict { better, same, worse, unknown };

Verdict compare(const model::Measurement& before, const model::Measurement& after) {
  const auto usable = [](const model::Measurement& m) {
    return m.median && m.ci95 && m.status == model::MeasureStatus::ok;
  };
  if (!usable(before) || !usable(after) || before.unit != after.unit) return Verdict::unknown;
  const bool up = after.ci95->low > before.ci95->high, down = after.ci95->high < before.ci95->low;
  if (!up && !down) return Verdict::same;
  return up == before.higher_is_better() ? Verdict::better : Verdict::worse;
}

// Adds what one pair of results says; the strongest one gives the text.
void count(MeasuredEffect& effect, const model::Measurement& before, const model::Measurement& after,
           const std::string& what) {
  const auto verdict = compare(before, after);
  if (verdict == Verdict::unknown) return;
  ++(verdict == Verdict::better ? effect.better : verdict == Verdict::worse ? effect.worse : effect.same);
  MeasuredEffect one = effect;
  one.before = *before.median;
  one.after = *after.median;
  one.larger_is_better = before.higher_is_better();
  const bool first = effect.text.empty();
  if (!first && std::abs(std::log(gain_of(one))) <= std::abs(std::log(gain_of(effect)))) return;
  effect = one;
  effect.text = fmt::format("{} with {}, {} {} ({})", number_text(one.before, before.unit),
                            state_text(effect.setting, effect.old_value), number_text(one.after, before.unit),
                            effect.new_value ? "with " + state_text(effect.setting, effect.new_value)
                                             : state_text(effect.setting, effect.new_value),
                            what);
}

MeasuredEffect blank(std::string setting, std::string old_value, std::optional<std::string> new_value,
                     std::string source) {
  MeasuredEffect out;
  out.setting = std::move(setting);
  out.old_value = std::move(old_value);
  out.new_value = std::move(new_value);
  out.source = std::move(source);
  out.better = 0;
  return out;
}

// Both directions: which value is in force is the plan's to say.
void compare_runs(const NamedRun& a, const NamedRun& b, std::vector<MeasuredEffect>& out) {
  const Entries left(a.run.machine.begin(), a.run.machine.end()),
      right(b.run.machine.begin(), b.run.machine.end());
  const auto name = single_difference(left, right);
  if (!name) return;
  const auto old_value = value_in(left, *name);
  if (!old_value) return;  // the other direction tells it
  auto effect = blank(*name, *old_value, value_in(right, *name), fmt::format("{}, {}", a.name, b.name));
  std::map<std::string, const model::Measurement*> others;
  for (const auto& m : b.run.results) others.emplace(model::key_of(m), &m);
  for (const auto& m : a.run.results)
    if (const auto other = others.find(model::key_of(m)); other != others.end())
      count(effect, m, *other->second, other->first);
  if (!effect.text.empty()) out.push_back(std::move(effect));
}

// Name and parameters of a result without one parameter.
std::string key_without(const model::Measurement& m, std::size_t left_out) {
  model::Measurement rest;
  rest.name = m.name;
  for (std::size_t n = 0; n < m.params.size(); ++n)
    if (n != left_out) rest.params.push_back(m.params[n]);
  return model::key_of(rest);
}

// A parameter in capitals is a variable: "NCCL_P2P_DISABLE". Others (bytes, src) are what was measured.
bool is_setting(std::string_view name) {
  return name.size() > 4 && name.find('_') != std::string_view::npos &&
         std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

void compare_parameters(const NamedRun& run, std::vector<MeasuredEffect>& out) {
  struct Member {
    std::string value;
    const model::Measurement* result;
  };
  std::map<std::pair<std::string, std::string>, std::vector<Member>> groups;  // by setting and the rest
  std::map<std::string, std::vector<const model::Measurement*>> plain;        // without any setting
  for (const auto& m : run.run.results) {
    plain[model::key_of(m)].push_back(&m);
    for (std::size_t n = 0; n < m.params.size(); ++n)
      if (is_setting(m.params[n].name))
        groups[{m.params[n].name, key_without(m, n)}].push_back({model::text_of(m.params[n].value), &m});
  }
  std::map<std::tuple<std::string, std::string, std::optional<std::string>>, MeasuredEffect> effects;
  const auto add = [&](const std::string& setting, const Member& from,
                       const std::optional<std::string>& value, const model::Measurement& to,
                       const std::string& what) {
    const auto slot =
        effects.try_emplace({setting, from.value, value}, blank(setting, from.value, value, run.name));
    count(slot.first->second, *from.result, to, what);
  };
  for (const auto& [key, members] : groups) {
    for (const auto& from : members) {
      for (const auto& to : members)
        if (from.value != to.value) add(key.first, from, to.value, *to.result, key.second);
      if (const auto unset = plain.find(key.second); unset != plain.end())
        add(key.first, from, std::nullopt, *unset->second[0], key.second);
    }
  }
  for (auto& [key, effect] : effects)
    if (!effect.text.empty()) out.push_back(std::move(effect));
}

// "NCCL_P2P_DISABLE" of a variable; "numa_balancing" and "transparent_hugepage" of a kernel file.
bool is_about(const MeasuredEffect& effect, const model::Action& action) {
  if (action.kind == model::ActionKind::env) return action.target == effect.setting;
  if (action.kind != model::ActionKind::sysfs) return false;
  return action.target.ends_with("/" + effect.setting) ||
         action.target.find("/" + effect.setting + "/") != std::string::npos;
}

bool describes(const MeasuredEffect& effect, const model::Action& action) {
  if (!is_about(effect, action) || effect.new_value != action.value) return false;
  return !action.observed || *action.observed == effect.old_value;
}

}  // namespace

std::vector<MeasuredEffect> effects_of(std::span<const model::LogCost> costs, const std::string& source) {
  std::vector<MeasuredEffect> out;
  for (const auto& cost : costs) {
    const auto mark = cost.settings.size() == 1 ? cost.settings[0].find('=') : std::string::npos;
    if (mark == std::string::npos) continue;
    auto effect =
        blank(cost.settings[0].substr(0, mark), cost.settings[0].substr(mark + 1), std::nullopt, source);
    const bool rates = cost.with_gbytes_per_s && cost.without_gbytes_per_s;
    if (!rates && !(cost.with_seconds && cost.without_seconds)) continue;
    effect.before = rates ? *cost.with_gbytes_per_s : *cost.with_seconds;
    effect.after = rates ? *cost.without_gbytes_per_s : *cost.without_seconds;
    effect.larger_is_better = rates;
    const std::string_view unit = rates ? "gbytes_per_s" : "seconds";
    effect.text = fmt::format("{} with {}, {} without it ({})", number_text(effect.before, unit),
                              cost.settings[0], number_text(effect.after, unit),
                              !rates            ? std::string("the whole command")
                              : cost.bytes == 0 ? std::string("bus bandwidth")
                                                : fmt::format("bus bandwidth at {} bytes", cost.bytes));
    const double gain = gain_of(effect);
    ++(gain >= kLeast ? effect.better : gain <= 1 / kLeast ? effect.worse : effect.same);
    out.push_back(std::move(effect));
  }
  return out;
}

std::vector<MeasuredEffect> effects_of(std::span<const NamedRun> runs) {
  constexpr std::size_t kMostRuns = 64;  // every pair is compared
  std::vector<MeasuredEffect> out;
  for (std::size_t a = 0; a < runs.size() && a < kMostRuns; ++a) {
    compare_parameters(runs[a], out);
    for (std::size_t b = 0; b < runs.size() && b < kMostRuns; ++b)
      if (a != b) compare_runs(runs[a], runs[b], out);
  }
  return out;
}

void label_measured(std::span<const MeasuredEffect> effects, std::vector<model::Action>& actions,
                    std::vector<std::string>& notes) {
  for (auto& action : actions) {
    for (const auto& effect : effects) {
      if (!describes(effect, action)) continue;
      const auto compared = effect.better + effect.same + effect.worse;
      const auto all =
          compared < 2 ? std::string() : fmt::format("; {} of {} results better", effect.better, compared);
      if (effect.better == 0 || effect.worse > 0 || gain_of(effect) < kLeast) {
        notes.push_back(fmt::format("{}: {} shows no gain: {}{}{}", action.id, effect.source, effect.text,
                                    all, effect.worse == 0 ? "" : fmt::format(", {} worse", effect.worse)));
        continue;
      }
      if (action.basis == model::ActionBasis::measured) continue;  // the first file speaks
      action.basis = model::ActionBasis::measured;
      action.reason += fmt::format("; measured here: {}{}", effect.text, all);
      action.source += (action.source.empty() ? "" : "; ") + effect.source;
    }
  }
}

}  // namespace topotune::plan
