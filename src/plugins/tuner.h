#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/agreement.h"
#include "plugins/nccl_types.h"
#include "plugins/table_file.h"
#include "tune/decide.h"

namespace topotune::plugins {

struct Communicator {
  std::optional<std::uint64_t> id;  // interfaces before v5 do not name it
  std::size_t ranks = 0, nodes = 0;
  std::string nccl;  // the version that made it; "" unknown
};

// One communicator on one rank. decide() takes no lock and allocates nothing.
class Tuner {
 public:
  Tuner(const Loaded& loaded, const TunerSettings& settings, const Communicator& communicator, Logger log);

  const tune::Choice* decide(int function, std::uint64_t bytes) const {
    return off_ ? nullptr : decide_if_agreed(function, bytes);
  }
  bool filtered() const { return filtered_; }
  const std::string& said() const { return said_; }  // the line that init printed

 private:
  const tune::Choice* decide_if_agreed(int function, std::uint64_t bytes) const;
  void start(const Loaded& loaded, const TunerSettings& settings, const Communicator& c);

  tune::Decider decider_;
  Agreement agreement_;
  std::string said_;
  Logger log_ = nullptr;
  bool off_ = true, filtered_ = false, agreement_needed_ = false;
  mutable std::atomic<int> reported_{0};
};

}  // namespace topotune::plugins
