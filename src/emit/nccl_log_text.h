#pragma once

#include <string>

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

// What differs between two runs: settings, transports, channels, algorithms, traffic and measured bandwidth.
std::string nccl_log_compare(const model::NcclLog& a, const std::string& name_a, const model::NcclLog& b,
                             const std::string& name_b);

}  // namespace topotune::emit
