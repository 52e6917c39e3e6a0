#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/runner.h"
#include "measure/watchdog.h"
#include "model/measurement.h"

namespace topotune::measure {

// One run of the suites: collects results, names the step that is under way, and stops when it is
// interrupted. What was collected can be read at any time, from any thread.
class Session {
 public:
  struct Hooks {
    Stop stop = [] { return false; };
    std::function<void(const std::string& step)> progress = [](const std::string&) {};
    std::function<void(double done)> fraction = [](double) {};  // of the whole run, 0 to 1, never falling
    Watchdog* watchdog = nullptr;
    double step_limit_seconds = 30;
  };
  Session(Policy policy, Hooks hooks) : policy_(policy), hooks_(std::move(hooks)) {}

  const Policy& policy() const { return policy_; }
  bool stopped() const { return hooks_.stop(); }

  // Counts its own lifetime to one part of the run's time. Not nested.
  class Timed {
   public:
    Timed(Session& session, double model::RunTimes::*part) : session_(session), part_(part) {}
    ~Timed() { session_.spend(part_, monotonic_seconds() - start_); }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    Session& session_;
    double model::RunTimes::*part_;
    double start_ = monotonic_seconds();
  };
  void spend(double model::RunTimes::*part, double seconds);

  // Says what is done from here on; the watchdog gives it `step_limit_seconds`.
  void step(const std::string& what) const;
  void idle() const;

  // How far the run is. What follows makes the part from `from` to `to` of the whole; it comes in `parts`
  // equal parts, each ended by end_part.
  void begin_share(double from, double to);
  void plan(std::size_t parts);
  void end_part();

  void add(model::Measurement m);
  void add(model::SizeModel m);
  void judge(model::Severity severity, std::string subject, std::string text);

  // Samples `m` by the policy, summarises and adds it. An error makes it `failed` with the reason. Nothing is
  // added when the run was stopped before the first sample. Returns whether it was measured.
  bool measure(model::Measurement m, const Policy& policy, const Sampler& sampler);
  bool measure(model::Measurement m, const Sampler& sampler) {
    return measure(std::move(m), policy_, sampler);
  }
  // The same without adding: for results that are completed by a check.
  std::optional<model::Measurement> sampled(model::Measurement m, const Policy& policy,
                                            const Sampler& sampler);

  // A result that was not measured.
  void waive(model::Measurement m, const std::string& why);
  void fail(model::Measurement m, const std::string& why);

  // What was collected so far.
  struct Collected {
    std::vector<model::Measurement> results;
    std::vector<model::SizeModel> models;
    std::vector<model::Judgement> judgements;
    model::RunTimes times;
  };
  Collected collected() const;

 private:
  void tell(double done);

  Policy policy_;
  Hooks hooks_;
  double from_ = 0, to_ = 1, told_ = 0;
  std::size_t parts_ = 0, ended_ = 0;
  mutable std::mutex mutex_;
  Collected collected_;
};

// Text to the front: "p2p.write.ce GPU0->GPU1".
std::string title_of(const model::Measurement& m);

}  // namespace topotune::measure
