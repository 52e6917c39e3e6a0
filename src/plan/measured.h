#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/measurement.h"
#include "model/nccl_log.h"
#include "model/plan.h"

namespace topotune::plan {

// One setting measured in two values: what was in force (`old_value`), and the other (nothing: not set).
struct MeasuredEffect {
  std::string setting;  // "NCCL_P2P_DISABLE", "numa_balancing"
  std::string old_value;
  std::optional<std::string> new_value;
  double before = 0, after = 0;  // medians with the old and with the new value
  bool larger_is_better = true;
  std::string
      text;  // "327.4 GB/s without NCCL_P2P_DISABLE=1, 26.9 with it (bus bandwidth at 1073741824 bytes)"
  std::string source;                           // the file or files
  std::size_t better = 1, same = 0, worse = 0;  // results that agree, of those that were compared
};

struct NamedRun {
  std::string name;
  model::MeasurementRun run;
};

// Of `log --run`: the costs of a single setting.
std::vector<MeasuredEffect> effects_of(std::span<const model::LogCost> costs, const std::string& source);

// Of runs of `bench`: pairs that differ in one entry of the machine and agree in all others, and results of
// one run that differ in one parameter. A result counts as better or worse when the intervals of the medians
// do not meet.
std::vector<MeasuredEffect> effects_of(std::span<const NamedRun> runs);

// Labels actions whose benefit was measured, with the number; what was measured to be worse or no better
// becomes a note.
void label_measured(std::span<const MeasuredEffect> effects, std::vector<model::Action>& actions,
                    std::vector<std::string>& notes);

}  // namespace topotune::plan
