#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/agreement.h"
#include "plugins/nccl_types.h"
#include "plugins/table_file.h"
#include "tune/decide.h"

namespace topotune::plugins {

// One communicator on one rank. decide() takes no lock and allocates nothing.
class Tuner {
 public:
  // `nccl`: the version that made the communicator. Interfaces before v5 do not name it.
  Tuner(const Loaded& loaded, const TunerSettings& settings, const std::string& nccl,
        std::optional<std::uint64_t> comm_id, std::size_t ranks, std::size_t nodes, Logger log);

  const tune::Choice* decide(int function, std::uint64_t bytes) const {
    return off_ ? nullptr : decide_if_agreed(function, bytes);
  }
  bool filtered() const { return filtered_; }
  const std::string& said() const { return said_; }  // the line that init printed

 private:
  const tune::Choice* decide_if_agreed(int function, std::uint64_t bytes) const;
  void start(const Loaded& loaded, const TunerSettings& settings, const std::string& nccl,
             std::optional<std::uint64_t> comm_id, std::size_t ranks, std::size_t nodes);

  tune::Decider decider_;
  Agreement agreement_;
  std::string said_;
  Logger log_ = nullptr;
  bool off_ = true, filtered_ = false, agreement_needed_ = false;
  mutable std::atomic<int> reported_{0};
};

}  // namespace topotune::plugins
