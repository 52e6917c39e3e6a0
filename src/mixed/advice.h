#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mixed/result.h"

namespace topotune::mixed {

// What rules look at beside the streams.
struct Evidence {
  const Report* report = nullptr;
  // Of each host, what its network counters rose by while all streams ran: "tcp.RetransSegs",
  // "mlx5_0/1.packet_seq_err". A host that is missing was not read, with the reason in `unread`.
  std::map<std::string, std::map<std::string, double>> counters;
  std::map<std::string, std::string> unread;
  // Of each host: ranks on it and CPUs that its processes may use.
  struct Load {
    int ranks = 0, cpus = 0;
  };
  std::map<std::string, Load> load;
  bool on_gpus = false;
};

// What the numbers suggest, one judgement a rule that applies, each with its evidence; and one that names
// what could not be judged. The subject is the rule's name: "advice small-fine-large-slow".
std::vector<model::Judgement> advise(const Evidence& evidence);

}  // namespace topotune::mixed
