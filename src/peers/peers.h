#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace topotune::peers {

// A process of the job.
struct Peer {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::string to_string() const;  // "rank 3 on h2 (pid 4711)"
};

// The processes of one job, which call `exchange` in the same order.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual int rank() const = 0;
  virtual const std::vector<Peer>& all() const = 0;
  int size() const { return static_cast<int>(all().size()); }
  const Peer& at(int rank) const { return all()[static_cast<std::size_t>(rank)]; }

  // Gives `mine` to all and returns what all gave, by rank. Errors name the process that is missing: ended
  // (io), did not come within the limit (timed_out), or what it said to `fail_all`. After an error nothing
  // more can be exchanged. `what` is said in errors: "times of all_reduce".
  virtual Result<std::vector<std::string>> exchange(const std::string& mine, const std::string& what,
                                                    double limit_seconds) = 0;
  // Tells all others, at their next or present exchange, that this process cannot go on, and why.
  virtual void fail_all(const Error& error) = 0;
  // Looks without waiting whether another process ended or failed: for those who wait for it elsewhere.
  virtual std::optional<Error> news() = 0;
  // How the processes meet: "TCP h1:29400", "one process".
  virtual std::string how() const = 0;
};

// A job of one process.
std::unique_ptr<Peers> alone();

std::string host_name();

// The hosts of processes or ranks, each once, in their order.
template <class Range>
std::vector<std::string> hosts_of(const Range& all) {
  std::vector<std::string> out;
  for (const auto& one : all)
    if (std::ranges::find(out, one.host) == out.end()) out.push_back(one.host);
  return out;
}

}  // namespace topotune::peers
