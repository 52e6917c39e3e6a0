#pragma once

#include <memory>
#include <optional>
#include <string>

#include "launch/rank.h"
#include "peers/tcp.h"

namespace topotune::launch {

// What the user said about the job; all may be missing.
struct JobOptions {
  std::string rendezvous;          // "node1:29400": address of rank 0
  std::optional<int> rank, ranks;  // without a launcher
  double limit_seconds = 60;
  std::function<bool()> stop = nullptr;  // see peers::Meeting
};

// Which process of how many this is, and where rank 0 can be met, as far as the environment tells.
struct JobPlace {
  int rank = 0, size = 1, local = 0;
  std::optional<int> local_size;
  std::string launcher;  // "" none
};
// Errors: a launcher's variables that cannot be, --rank without --ranks, --rank under a launcher.
Result<JobPlace> job_place(const Environment& environment, const JobOptions& options);

// The address by the environment alone: --rendezvous, torchrun's MASTER_ADDR and MASTER_PORT (the port after
// it where torchrun's agent holds that one), Slurm's first node and a port made of the job's number. Nothing:
// by the launcher's own exchange (PMIx, PMI), or nowhere.
Result<std::optional<peers::Meeting>> meeting_by_environment(const Environment& environment,
                                                             const JobOptions& options);

// "node[03-05,9],other" -> "node03"; "" for "".
std::string first_host(const std::string& list);

// All processes of the job: one, or those met over TCP at the address that the options, the launcher's
// exchange (PMIx by libpmix, PMI-1 by its wire protocol) or the environment tell.
Result<std::unique_ptr<peers::Peers>> meet_job(const Environment& environment, const JobOptions& options,
                                               const JobPlace& place);

}  // namespace topotune::launch
