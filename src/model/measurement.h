#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/finding.h"

namespace topotune::model {

// One number that was measured (or was not, with the reason), as in `topotune.measurement/1`
// (docs/formats/measurement.md).
enum class MeasureStatus { ok, noisy, waived, failed };
const char* name_of(MeasureStatus status);
std::optional<MeasureStatus> measure_status_from(const std::string& name);

// How a median stands to its expected range. `unknown`: there is no range.
enum class Assessment { unknown, as_expected, below, above };
const char* name_of(Assessment assessment);

using ParamValue = std::variant<std::int64_t, double, std::string>;
struct Param {
  std::string name;  // "src", "bytes", "sms"; part of the identity of a result
  ParamValue value;
  bool operator==(const Param&) const = default;
};
std::string text_of(const ParamValue& value);

// What a healthy machine gives, in the unit of the result.
struct Expected {
  double low = 0, high = 0;
  std::string why;     // the arithmetic: "18 links x 26.562 GB/s x 0.824-0.832"
  std::string source;  // who measured the efficiency
  double value() const { return (low + high) / 2; }
};

struct Interval {
  double low = 0, high = 0;
};

// Times: less is better; rates and ratios: more is. Words for parts of a second as other programs write them
// count.
bool larger_is_better(std::string_view unit);

struct Measurement {
  std::string name;  // "p2p.write.ce"
  std::vector<Param> params;
  std::string unit;             // "gbytes_per_s" (1e9 bytes, one direction), "seconds", "ratio"
  std::vector<double> samples;  // raw, in the order taken, warm-up left out
  std::optional<double> median, p1, p99, p999;
  std::optional<Interval> ci95;       // of the median
  std::vector<std::size_t> outliers;  // indices into samples: shown, and counted in everything above
  std::optional<Expected> expected;
  MeasureStatus status = MeasureStatus::ok;
  std::string why;  // of a status other than ok; "" otherwise
  bool verified = false;
  std::string verified_how;  // "pattern read back by the owner", or why it was not verified
  std::vector<Param>
      extra;  // facts about the result that are not its identity: "wire_bytes", "total_gbytes_per_s"

  bool higher_is_better() const { return larger_is_better(unit); }
};

std::optional<double> ratio_of(const Measurement& m);  // median / expected value
Assessment assessment_of(const Measurement& m);
// "p2p.write.ce src=GPU0 dst=GPU1 bytes=536870912": equal for the same question in two runs.
std::string key_of(const Measurement& m);

// What was read of a GPU beside the measurement.
struct GpuMoment {
  std::string gpu;
  std::optional<int> sm_mhz, memory_mhz, temperature_c;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bits; 0: none
  std::optional<std::vector<std::uint32_t>> other_processes;
};

// What a run says about the machine beside the plain numbers.
struct Judgement {
  Severity severity = Severity::info;
  std::string subject;  // "GPU0-GPU1", "run"
  std::string text;
};

struct PiecewiseSegment {
  double from_bytes = 0, to_bytes = 0;
  double alpha_seconds = 0;
  double gbytes_per_s = 0;  // 0: the time does not depend on the size
};

// time = alpha + bytes / bandwidth, by size.
struct SizeModel {
  std::string name;  // of the sweep's results: "p2p.write.ce"
  std::vector<Param> params;
  std::vector<PiecewiseSegment> segments;
  double mean_error = 0;  // mean |model - measured| / measured over the sweep
};

// Where the time of a run went, seconds. What is in none of them is the rest of MeasurementRun::seconds.
struct RunTimes {
  double driver_start = 0;  // libraries, cuInit, contexts, kernels
  double allocation = 0;    // memory and streams
  double measuring = 0;     // warm-up and samples
  double verification = 0;  // clearing and comparing
  double sum() const { return driver_start + allocation + measuring + verification; }
};

struct MeasurementRun {
  std::string suite;  // "p2p"
  std::string date;   // UTC, "2026-11-29T22:10:03Z"
  std::string command;
  std::vector<std::pair<std::string, std::string>> machine;  // fingerprint; "" is null
  std::vector<Measurement> results;
  std::vector<SizeModel> models;
  std::vector<GpuMoment> before, after;
  std::vector<Judgement> judgements;
  std::string capture;  // of the machine, redacted, as text; "": not taken
  bool interrupted = false;
  double seconds = 0;
  std::optional<RunTimes> times;
};

// From statuses and judgements alone: error for a failed result or an error judgement; warn for a noisy
// result or a warning; unknown when every result is waived or there is none, and for the acceptance (`all`)
// when no GPU was measured; ok otherwise.
Verdict verdict_of(const MeasurementRun& run);

enum class Trend { same, better, worse, unclear };
const char* name_of(Trend trend);

// One result in two runs.
struct Comparison {
  std::string key;
  std::string unit;
  double before = 0, after = 0;  // medians
  double ratio = 1;              // after / before
  Interval ci95;                 // of the ratio
  Trend change = Trend::unclear;
};

struct ComparedRuns {
  std::vector<Comparison> rows;
  std::vector<std::string> only_before, only_after;  // keys
};

}  // namespace topotune::model
