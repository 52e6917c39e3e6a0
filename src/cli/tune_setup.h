#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/bench_coll.h"
#include "cuda/device.h"
#include "launch/meeting.h"
#include "nccl/crew.h"
#include "nccl/library.h"
#include "tune/backend_measurer.h"
#include "tune/instances.h"

namespace topotune::cli {

struct TuneOptions {
  std::vector<std::string> collectives{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                       "broadcast"};
  std::string sizes = "1K:1G";    // FIRST:LAST in powers of two, or a list
  std::vector<std::string> from;  // a job's profiles or logs, instead of collectives and sizes
  std::vector<std::string> gpus;
  std::optional<int> gpus_per_process;
  JobFlags job;
  double budget = 120;   // seconds
  double limit = 60;     // seconds of a step, or of another process: what takes longer hangs
  std::string out;       // the table; "" none
  std::string add;       // a table that is to hold what is proved now, too
  std::string check;     // a table: its columns beside the default's
  std::string overhead;  // a profiler plugin: its columns beside none
  std::string plugin;    // the tuner plugin; "" looked for
  std::string type = "float32";
  std::string mode = "auto";
  int sm_budget = 32;
  int pairs = 0;  // 0: 24 pairs of communicators, 21 of samples
  double margin_percent = 1;
  bool held_back = false;
};

// What is measured, understood.
struct TunePlan {
  std::vector<tune::Cell> cells, held_back;  // ascending in size
  double reach = 1;                          // of the outermost sizes, see regions_of()
  tune::BackendMeasurer::Options measurer;
  std::uint64_t most_bytes() const { return cells.back().bytes; }
};
Result<TunePlan> plan_of(const TuneOptions& options);

// One of our plugins: as named, or beside this program, in ../lib/topotune, or in TOPOTUNE_MODULES.
Result<std::string> find_plugin(const std::string& named, const std::string& file);

// Variables that would decide what is to be found out. NCCL_TUNER_PLUGIN is set to `plugin`.
Result<void> prepare_environment(const std::string& plugin, const std::string& table);

// The processes that tune together; rank 0's decides.
struct TuneJob {
  launch::JobPlace place;
  std::unique_ptr<peers::Peers> peers;
  bool leads() const { return peers->rank() == 0; }
};
Result<TuneJob> meet_tune_job(const JobFlags& flags, double limit_seconds, std::function<bool()> stop);
// What must be the same in all processes, and is not: named with the first that differs.
Result<void> agree(peers::Peers& peers, const std::string& what, const std::string& mine,
                   double limit_seconds);

// The communicators of all levels, with the plugin that steers them. What follows the leader has none.
struct TuneMachine {
  nccl::Library library;
  std::unique_ptr<cuda::Machine> machine;
  std::vector<const cuda::Gpu*> gpus;  // of this process
  std::unique_ptr<nccl::Crew> crew;
  std::vector<tune::Level> levels;
  std::vector<std::unique_ptr<coll::Backend>> groups;
  std::vector<std::optional<double>>
      megabytes;  // GPU memory that a level's communicator takes, beside the buffers
  std::unique_ptr<tune::Steering> steering;  // of all processes
  std::vector<std::string> notes;

  std::vector<coll::Backend*> backends() const;
  int ranks() const { return crew->ranks(); }
  std::uint32_t nodes() const { return steering ? steering->nodes() : 1; }
};
struct MachineRequest {
  std::vector<std::string> gpus;  // "0", "GPU1"; none: all
  std::optional<int> gpus_per_process;
  std::vector<tune::Level> levels;
  std::size_t buffer_bytes = 0;
  std::string plugin;           // tuner plugin that NCCL was told to load; "" none
  std::string profiler;         // profiler plugin to switch; "" none
  std::string table;            // the hash of the table that the plugin follows; "" none
  double limit_seconds = 60;    // for whatever other processes do
  std::function<bool()> stop;   // this process was interrupted
  std::function<void()> alive;  // told before every operation
};
// Communicators that are made anew, with buffers of the machine's first one. The ones before stay until the
// next are made, so that these get other memory; where there is not enough of it, they go first.
class FreshGroups : public tune::Generations {
 public:
  // `tuned`: what the kind of that name is made with; `by_table`: it follows the plugin's table.
  FreshGroups(TuneMachine& machine, const tune::Level& tuned, std::size_t buffer_bytes,
              tune::BackendMeasurer::Options options, bool by_table);
  Result<tune::Measurer*> make(const std::vector<tune::Kind>& order) override;
  std::size_t made() const { return made_; }
  double seconds() const { return seconds_; }  // that making them took

 private:
  using Groups = std::vector<std::unique_ptr<coll::Backend>>;
  Result<Groups> groups(const std::vector<tune::Kind>& order) const;
  TuneMachine& machine_;
  tune::Level tuned_;
  std::size_t buffer_bytes_;
  bool by_table_;
  Groups groups_;
  tune::BackendMeasurer measurer_;
  std::size_t made_ = 0;
  double seconds_ = 0;
};

// One more communicator at the end of `machine`, with buffers of its first one.
Result<void> add_level(TuneMachine& machine, const tune::Level& level, std::size_t buffer_bytes);
// The leader's has the communicators; what steers them steers all processes.
Result<std::unique_ptr<TuneMachine>> open_tune_machine(const TuneJob& job, const MachineRequest& request,
                                                       const std::function<void(const std::string&)>& step);
// What the others do with theirs: as the leader says, until it ends. `step` is told what, "" while it waits.
Result<void> follow_the_leader(TuneMachine& machine, const MachineRequest& request,
                               const std::function<void(const std::string&)>& step);

}  // namespace topotune::cli
