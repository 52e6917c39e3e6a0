#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nccl/group.h"
#include "peers/peers.h"

namespace topotune::nccl {

// The processes of a job that measure together: rank 0's leads, the others follow. What the leader does with
// a group all of them do at the same time, so that whoever decides what to measure next, and when to end,
// lives in one process. A job of one process is a crew of its leader alone.
class Crew {
 public:
  // What this process brings along. All of it outlives the crew.
  struct Hands {
    peers::Peers& peers;
    const Library& library;
    const cuda::Machine& machine;
    std::vector<const cuda::Gpu*> gpus;
    double limit_seconds = 60;              // of everything that is waited for
    std::function<bool()> stop = nullptr;   // this process was interrupted
    std::function<void()> alive = nullptr;  // the leader's: told before each order
  };
  static Result<std::unique_ptr<Crew>> gather(Hands hands);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int ranks() const { return place_.ranks; }
  bool leads() const { return hands_.peers.rank() == 0; }

  // The leader's. Communicators over all ranks; those made later use the buffers of the first, which goes
  // last. The crew outlives them. `run` gives the time of the process that took longest: after one operation
  // together; where single operations take milliseconds, of the process that came last.
  Result<std::unique_ptr<coll::Backend>> make(const GroupOptions& options);
  // Told to the others in front of each operation from now on: what they set before they begin.
  void say(std::string setting) { setting_ = std::move(setting); }
  // One of the others was interrupted.
  bool stopped() const { return stopped_; }
  // Why nothing can be done together any more.
  const std::optional<Error>& lost() const { return lost_; }

  // The others': does what the leader does, until it ends. `hear` gets what the leader says when it changes,
  // `step` is told before each order (what it is) and each wait ("").
  Result<void> follow(const std::function<Result<void>(const std::string&)>& hear,
                      const std::function<void(const std::string&)>& step);

 private:
  class Led;
  struct Order;
  struct Report;
  Crew(Hands hands, const Place& place);
  Result<Report> command(const Order& order);
  Result<Report> carry_out(const Order& order);
  Result<Report> work(const Order& order);
  Result<void> make_here(const Order& order);
  Result<void> all_ready(const Result<void>& mine);
  void forget(int id);
  void lose(const Error& error);

  Hands hands_;
  Place place_;
  std::map<int, std::unique_ptr<Group>> groups_;
  int made_ = 0;
  std::string setting_;
  bool stopped_ = false;
  std::optional<Error> lost_;
};

}  // namespace topotune::nccl
