#pragma once

#include <string>

#include "model/finding.h"
#include "model/nccl_log.h"

namespace topotune::emit {

struct LogJsonOptions {
  bool timeline = false;  // the calls in their order too
  bool one_line = false;
  std::string more;  // members at the end, as JSON text: "\"x\":1"
};

// The document `topotune.nccl-log/1` (CLI contract; docs/formats/nccl-log.md), one line end at its end.
// `name` is the input's name. Same log, same bytes.
std::string nccl_log_json(const model::NcclLog& log, const model::Diagnosis& diagnosis,
                          const std::string& name, const LogJsonOptions& options = {});

}  // namespace topotune::emit
