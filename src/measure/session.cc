#include "measure/session.h"

#include <algorithm>

namespace topotune::measure {

std::string title_of(const model::Measurement& m) {
  std::string text = m.name;
  for (const auto& p : m.params) text += fmt::format(" {}={}", p.name, model::text_of(p.value));
  return text;
}

void Session::step(const std::string& what) const {
  hooks_.progress(what);
  if (hooks_.watchdog != nullptr) hooks_.watchdog->begin(what, hooks_.step_limit_seconds);
}

void Session::idle() const {
  if (hooks_.watchdog != nullptr) hooks_.watchdog->end();
}

void Session::tell(double done) {
  told_ = std::max(told_, std::min(done, 1.0));
  hooks_.fraction(told_);
}

void Session::begin_share(double from, double to) {
  from_ = from;
  to_ = to;
  parts_ = ended_ = 0;
  tell(from);
}

void Session::plan(std::size_t parts) {
  parts_ = parts;
  ended_ = 0;
}

void Session::end_part() {
  ended_ = std::min(ended_ + 1, parts_);
  if (parts_ > 0) tell(from_ + (to_ - from_) * static_cast<double>(ended_) / static_cast<double>(parts_));
}

void Session::spend(double model::RunTimes::*part, double seconds) {
  const std::lock_guard lock(mutex_);
  collected_.times.*part += seconds;
}

void Session::add(model::Measurement m) {
  const std::lock_guard lock(mutex_);
  collected_.results.push_back(std::move(m));
}

void Session::add(model::SizeModel m) {
  const std::lock_guard lock(mutex_);
  collected_.models.push_back(std::move(m));
}

void Session::judge(model::Severity severity, std::string subject, std::string text) {
  const std::lock_guard lock(mutex_);
  collected_.judgements.push_back({severity, std::move(subject), std::move(text)});
}

std::optional<model::Measurement> Session::sampled(model::Measurement m, const Policy& policy,
                                                   const Sampler& sampler) {
  if (stopped()) return std::nullopt;
  step(title_of(m));
  const Timed timed(*this, &model::RunTimes::measuring);
  const auto got = sample_until(policy, sampler, monotonic_seconds, hooks_.stop);
  if (!got) {
    m.status = model::MeasureStatus::failed;
    m.why = got.error().text;
    return m;
  }
  if (got->interrupted && got->samples.size() < 3) return std::nullopt;
  m.samples = got->samples;
  summarise(m, policy.noise);
  return m;
}

bool Session::measure(model::Measurement m, const Policy& policy, const Sampler& sampler) {
  auto done = sampled(std::move(m), policy, sampler);
  if (!done) return false;
  const bool good = done->status != model::MeasureStatus::failed;
  add(std::move(*done));
  return good;
}

void Session::waive(model::Measurement m, const std::string& why) {
  m.status = model::MeasureStatus::waived;
  m.why = why;
  add(std::move(m));
}

void Session::fail(model::Measurement m, const std::string& why) {
  m.status = model::MeasureStatus::failed;
  m.why = why;
  add(std::move(m));
}

Session::Collected Session::collected() const {
  const std::lock_guard lock(mutex_);
  return collected_;
}

}  // namespace topotune::measure
