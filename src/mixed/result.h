#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coll/backend.h"
#include "measure/statistics.h"
#include "mixed/interrupt_rates.h"
#include "mixed/run.h"
#include "model/measurement.h"

namespace topotune::mixed {

// A stream's operations alone and beside the others.
struct StreamResult {
  StreamPlan plan;
  std::vector<Done> alone, together;
  std::optional<coll::Checked> checked;  // of all ranks
  std::string not_checked;               // why it was not
};

// How much slower a stream's operations were together than alone: the median over operations of seconds
// together over the median seconds alone of that size, with its 95 % interval (bootstrap over both).
struct Slowdown {
  double ratio = 1;
  model::Interval ci95;
  std::size_t operations = 0;
};
// Nothing with fewer than three operations of either kind.
std::optional<Slowdown> slowdown_of(const std::vector<Done>& alone, const std::vector<Done>& together);

// Operations that began while every stream still had some to come: later ones were less disturbed.
std::vector<Done> within(const std::vector<Done>& done, double end);
// The moment from which the first stream has nothing to come.
double common_end(const std::vector<StreamResult>& streams);
// Of `mine`, those that overlap with an operation of `other`.
std::vector<Done> overlapping(const std::vector<Done>& mine, const std::vector<Done>& other);

struct Report {
  std::string profile;
  int ranks = 0;
  double scale = 1;
  std::vector<StreamResult> streams;
  std::vector<InterruptRate> interrupts;
};

// Per stream: mixed.alone and mixed.together (seconds), mixed.bandwidth (achieved beside expected),
// mixed.interference (ratio: speed together over speed alone); then mixed.interrupts (per second).
std::vector<model::Measurement> measurements_of(const Report& report);
// One screen.
std::string table_text(const Report& report);

// Gigabytes a second over the time from the first start to the last end; nothing without operations.
std::optional<double> achieved_gbytes_per_s(const std::vector<Done>& done);
// Bytes over the time in which operations were under way.
std::optional<double> busy_gbytes_per_s(const std::vector<Done>& done);
// What the stream should reach beside others: what is asked for, or what it can do alone where that is less.
std::optional<model::Expected> expected_of(const StreamResult& stream);

}  // namespace topotune::mixed
