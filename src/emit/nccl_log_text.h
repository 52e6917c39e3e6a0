#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/nccl_log.h"

namespace topotune::emit {

struct LogTextOptions {
  bool color = false;
  bool verbose = false;  // every edge, ring and setting
};

// One screen for people: machine and job, who talks to whom over what, rings, what is slower than it could be
// and why, errors with their root.
std::string nccl_log_text(const model::NcclLog& log, const model::Diagnosis& diagnosis,
                          const std::string& name, const LogTextOptions& options = {});

// Rank x rank: the transport of each pair as one letter and the channels; bytes where they are modelled.
std::string nccl_log_matrix(const model::NcclLog& log);
// The same as a heat map (SVG 1.1, no script).
std::string nccl_log_matrix_svg(const model::NcclLog& log);

// The collectives of each communicator's first rank, in their order.
std::string nccl_log_timeline(const model::NcclLog& log);

// What differs between two runs: settings, transports, channels, algorithms and measured bandwidth.
struct LogComparison {
  struct Difference {
    std::string part;        // "job", "settings", "transports", "pairs", "choices"
    std::string what, a, b;  // "" where a log does not tell
  };
  struct Measured {
    std::uint64_t bytes;
    double a, b;  // GB/s bus bandwidth
  };
  std::string name_a, name_b;
  std::vector<Difference> differences;
  std::vector<Measured> measured;  // sizes that both measured
  std::optional<double> best_a, best_b, average_a, average_b;
};
LogComparison compare_nccl_logs(const model::NcclLog& a, const std::string& name_a, const model::NcclLog& b,
                                const std::string& name_b);
std::string nccl_log_compare_text(const LogComparison& comparison);
// `topotune.nccl-log-diff/1` (docs/formats/nccl-log.md).
std::string nccl_log_compare_json(const LogComparison& comparison);

}  // namespace topotune::emit
