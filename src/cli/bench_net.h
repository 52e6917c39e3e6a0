#pragma once

#include <string>
#include <vector>

#include "cli/bench_coll.h"

namespace topotune::cli {

struct NetFlags {
  std::vector<std::string> ops;
  std::string tls, devices, agent;
  std::string svg;  // file of the heat map
  int window = 32, streams = 1;
};
void add_net_flags(CLI::App& verb, NetFlags& flags);

// `bench net` in a job of several processes, or `bench net HOST HOST...`, which starts one on each; returns
// the exit status.
int bench_net(const BenchOptions& options, const NetFlags& flags, const JobFlags& job,
              const Globals& globals);

}  // namespace topotune::cli
