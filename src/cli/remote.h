#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace topotune::cli {

// This command on several hosts: on each one a process with --rank, --ranks and --rendezvous, started by
// `agent` (ssh, or a program that is called as AGENT HOST COMMAND). This host is not asked for.
struct Remote {
  std::vector<std::string> hosts;
  std::string agent;               // "" ssh, or what TOPOTUNE_RSH says
  std::vector<std::string> words;  // of the command, without the program, the hosts and -o
  double limit_seconds = 60;       // after the first process ended, for the others
};
struct RemoteDone {
  std::string text;  // standard output of rank 0
  int status = 0;    // of rank 0
};
// What processes say on standard error passes through. Errors: the agent cannot be started.
Result<RemoteDone> run_on_hosts(const Remote& remote);

// The words of this process's command line without the program, the words in `leave_out` and -o FILE.
std::vector<std::string> own_words(const std::vector<std::string>& leave_out);

}  // namespace topotune::cli
