#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/nccl_log.h"

namespace topotune::parse {

// What a `topotune.nccl-log/1` document of `log --run` says about the cost of settings, and on which GPUs it
// was measured.
struct LogCosts {
  std::vector<model::LogCost> costs;
  std::vector<std::string> bdfs;  // of the ranks, where known
};

// Whether the text says of itself that it is such a document, within its first 4 KiB.
bool looks_like_log_document(std::string_view text);
// Errors: malformed (no JSON, another schema).
Result<LogCosts> parse_log_costs(std::string_view text);

}  // namespace topotune::parse
