#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tune/table.h"

namespace topotune::plugins {

// The variables that the tuner plugin reads (docs/tuning.md).
struct TunerSettings {
  std::string table;  // TOPOTUNE_TUNER_TABLE: the file; "" none
  // TOPOTUNE_TUNER_HASH: what all ranks must have, or, written "node:HASH", those of this node: each node
  // took it from its own file, which says nothing of the others.
  std::optional<std::string> hash;
  bool whole_job = false;  // `hash` is of all nodes
  std::string accept;      // TOPOTUNE_TUNER_ACCEPT: "machine", "nccl", both: differences that are fine
  std::string root;        // TOPOTUNE_TUNER_ROOT: stands for / (tests)
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

}  // namespace topotune::plugins
