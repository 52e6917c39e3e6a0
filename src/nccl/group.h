#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "coll/backend.h"
#include "cuda/device.h"
#include "nccl/library.h"
#include "nccl/place.h"

namespace topotune::nccl {

struct GroupOptions {
  std::size_t buffer_bytes =
      0;  // of each of the two buffers of a rank: the largest size that will be asked for
  std::optional<int> min_ctas, max_ctas;  // thread blocks (channels) that NCCL may use
  // Asked now and then while the GPUs are waited for: a reason to give up.
  std::function<std::optional<Error>()> news;
  // Of the same GPUs, with buffers at least as large: they are used instead of own ones, so that two groups
  // that are compared do not differ in where their buffers lie. It outlives this group.
  const class Group* buffers_of = nullptr;
  bool registered = false;  // the buffers are registered with the communicators
  // Asked once the buffers are there, or are not: whether the communicators are made. Without it: when the
  // buffers are there. Processes agree here, as one that made none would leave the others waiting.
  std::function<Result<void>(const Result<void>& so_far)> ready;
};

// The communicators of this process's GPUs, one a GPU, with buffers and streams. Library and machine outlive
// it. While ranks of other processes are missing, `make` waits: guard it by a watchdog.
class Group : public coll::Backend {
 public:
  static Result<std::unique_ptr<Group>> make(const Library& library, const cuda::Machine& machine,
                                             const std::vector<const cuda::Gpu*>& gpus, const Place& place,
                                             const GroupOptions& options);
  // All ranks are in this process.
  static Result<std::unique_ptr<Group>> make(const Library& library, const cuda::Machine& machine,
                                             const std::vector<const cuda::Gpu*>& gpus,
                                             const GroupOptions& options);
  ~Group() override;

  int ranks() const override { return place_.ranks; }
  const std::vector<coll::LocalRank>& local() const override { return local_; }
  std::string name() const override { return "NCCL " + library_.version_text(); }
  std::optional<std::string> cannot(const coll::Question& question, coll::Mode mode) const override;
  // The first call of a collective and size sets connections up: make a few iterations before those that
  // count. An error of NCCL on another rank comes back as an error here.
  Result<coll::Timed> run(const coll::Question& question, int iterations, coll::Mode mode,
                          int launches = 0) override;
  Result<coll::Checked> verify(const coll::Question& question, coll::Mode mode) override;

  // One operation without waiting for it, and whether all that was started has ended on the local ranks.
  Result<void> start(const coll::Question& question, int iteration);
  Result<bool> ended();

  // Seconds that it took to make the communicators.
  double init_seconds() const { return init_seconds_; }
  std::size_t buffer_bytes() const { return options_.buffer_bytes; }
  // Another process is lost: the communicators are aborted when the group goes.
  void abandon() { broken_ = true; }

 private:
  struct Member;
  class Graphs;
  Group(const Library& library, const cuda::Machine& machine, const Place& place,
        const GroupOptions& options);
  Result<void> add(const cuda::Gpu& gpu);
  Result<void> make_buffers(Member& member);
  Result<void> connect();
  Result<void> enqueue(const coll::Question& question, const coll::Counts& counts, int iteration);
  Result<void> enqueue_one(Member& member, const coll::Question& question, const coll::Counts& counts,
                           std::size_t shift);
  Result<void> wait();
  Result<void> look_for_errors();
  Result<coll::Timed> run_host(const coll::Question& question, int iterations);
  Result<coll::Timed> run_events(const coll::Question& question, int iterations);
  Result<coll::Timed> run_blocking(const coll::Question& question, int iterations);
  Result<coll::Timed> run_graph(const coll::Question& question, int iterations, int launches);
  Result<void> fill(const coll::Question& question);
  Result<void> compare(const coll::Question& question, Member& member, coll::Checked& checked);

  const Library& library_;
  const cuda::Machine& machine_;
  Place place_;
  GroupOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<coll::LocalRank> local_;
  double init_seconds_ = 0;
  double next_look_ = 0;  // for errors
  bool broken_ = false;   // communicators are aborted, not destroyed
};

}  // namespace topotune::nccl
