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

// The table as this machine and job may use it, or the one line that says why not.
struct Loaded {
  std::optional<tune::Table> table;
  std::uint64_t hash = 0;
  std::string off;  // "" when the table may be used
};
Loaded load_table(const TunerSettings& settings);
// Why it is not for this NCCL ("2.28.9", "" unknown), of which a process may have several; "" when it is.
std::string other_nccl(const Loaded& loaded, const TunerSettings& settings, const std::string& nccl);

// Hosts that share an NVLink fabric are one node to NCCL (MNNVL, which needs this device).
bool shares_a_fabric(const std::string& root);
// The launcher's variables say that all ranks of the job are on this node. False: they say no, or nothing.
bool job_is_on_one_node();

}  // namespace topotune::plugins
