#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/agreement.h"
#include "plugins/nccl_types.h"
#include "tune/decide.h"

namespace topotune::plugins {

// The variables that the tuner plugin reads (docs/tuning.md).
struct TunerSettings {
  std::string table;                // TOPOTUNE_TUNER_TABLE: the file; "" none
  std::optional<std::string> hash;  // TOPOTUNE_TUNER_HASH: what all ranks must have
  std::string accept;  // TOPOTUNE_TUNER_ACCEPT: "machine", "nccl", both: differences that are fine
  std::string root;    // TOPOTUNE_TUNER_ROOT: stands for / (tests)
  std::string shared = "/dev/shm";  // TOPOTUNE_TUNER_SHM: folder of the agreement
  bool filtered = false;            // NCCL_ALGO or NCCL_PROTO is set
  static TunerSettings from_environment();
};

// The table as this process may use it, or the one line that says why not.
struct Loaded {
  std::optional<tune::Table> table;
  std::uint64_t hash = 0;
  std::string off;  // "" when the table may be used
};
// `nccl` is "2.28.9", "" unknown.
Loaded load_table(const TunerSettings& settings, const std::string& nccl);

// One communicator on one rank. decide() takes no lock and allocates nothing.
class Tuner {
 public:
  Tuner(const Loaded& loaded, const TunerSettings& settings, std::optional<std::uint64_t> comm_id,
        std::size_t ranks, std::size_t nodes, Logger log);

  const tune::Choice* decide(int function, std::uint64_t bytes) const {
    return off_ ? nullptr : decide_if_agreed(function, bytes);
  }
  bool filtered() const { return filtered_; }
  const std::string& said() const { return said_; }  // the line that init printed

 private:
  const tune::Choice* decide_if_agreed(int function, std::uint64_t bytes) const;
  void start(const Loaded& loaded, const TunerSettings& settings, std::optional<std::uint64_t> comm_id,
             std::size_t ranks, std::size_t nodes);

  tune::Decider decider_;
  Agreement agreement_;
  std::string said_;
  Logger log_ = nullptr;
  bool off_ = true, filtered_ = false, agreement_needed_ = false;
  mutable std::atomic<int> reported_{0};
};

}  // namespace topotune::plugins
