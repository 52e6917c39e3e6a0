#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cuda/device.h"
#include "nccl/group.h"
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
  double budget = 120;   // seconds
  std::string out;       // the table; "" none
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

// The communicators of all levels, with the plugin that steers them.
struct TuneMachine {
  nccl::Library library;
  std::unique_ptr<cuda::Machine> machine;
  std::vector<const cuda::Gpu*> gpus;
  std::vector<tune::Level> levels;
  std::vector<std::unique_ptr<nccl::Group>> groups;
  std::vector<std::optional<double>>
      megabytes;  // GPU memory that a level's communicator takes, beside the buffers
  std::unique_ptr<tune::Steering> steering;
  std::vector<std::string> notes;

  std::vector<coll::Backend*> backends() const;
};
struct MachineRequest {
  std::vector<std::string> gpus;  // "0", "GPU1"; none: all
  std::vector<tune::Level> levels;
  std::size_t buffer_bytes = 0;
  std::string plugin;    // tuner plugin that NCCL was told to load; "" none
  std::string profiler;  // profiler plugin to switch; "" none
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
  using Groups = std::vector<std::unique_ptr<nccl::Group>>;
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
Result<std::unique_ptr<TuneMachine>> open_tune_machine(const MachineRequest& request,
                                                       const std::function<void(const std::string&)>& step);

}  // namespace topotune::cli
