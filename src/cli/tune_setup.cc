#include "cli/tune_setup.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "cli/bench_frame.h"
#include "cli/bench_run.h"
#include "cli/job_gpus.h"
#include "cli/nccl_settings.h"
#include "cli/tune_job.h"
#include "host/modules.h"
#include "measure/runner.h"
#include "plugins/profiler_control.h"
#include "plugins/tuner_control.h"
#include "tune/decide.h"
#include "tune/machine.h"

namespace topotune::cli {

namespace {

Error usage(std::string text, std::string hint = {}) {
  return Error{Errc::usage, std::move(text), {}, {}, {}, std::move(hint)};
}

Result<std::vector<std::uint64_t>> sizes_from(const std::string& text) {
  const auto wrong = [&] {
    return tl::unexpected(
        usage(fmt::format("tune: '{}' names no sizes", printable(text)),
              "FIRST:LAST such as 1K:1G (powers of two), or a list: 4M,64M,1G; 64 bytes to 64G"));
  };
  std::vector<std::uint64_t> out;
  if (const auto colon = text.find(':'); colon != std::string::npos) {
    const auto first = size_from(text.substr(0, colon)), last = size_from(text.substr(colon + 1));
    if (!first || !last || *first > *last) return wrong();
    for (std::uint64_t size = *first; size <= *last; size *= 2) out.push_back(size);
  } else {
    for (const auto& word : split(text, ',')) {
      const auto size = size_from(word);
      if (!size) return wrong();
      out.push_back(*size);
    }
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.front() < 64) return wrong();
  return out;
}

// The functions that a plugin offers to this program. The handle that NCCL holds is counted up, so that the
// library stays where it is.
template <class F>
bool look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
  return function != nullptr;
}

Result<void*> loaded_library(const std::string& path, const char* kind) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr)
    return fail(Errc::unsupported, "NCCL did not load its {} plugin {} (NCCL_DEBUG=INFO says why)", kind,
                path);
  return library;
}

class TunerSteering : public tune::Steering {
 public:
  static Result<std::unique_ptr<tune::Steering>> open(const std::string& path) {
    const auto library = loaded_library(path, "tuner");
    if (!library) return tl::unexpected(library.error());
    auto out = std::make_unique<TunerSteering>();
    plugins::ControlVersion version = nullptr;
    if (!look_up(*library, "topotune_tuner_control", version) || version() != plugins::kControlVersion ||
        !look_up(*library, "topotune_tuner_force", out->force_) ||
        !look_up(*library, "topotune_tuner_release", out->release_) ||
        !look_up(*library, "topotune_tuner_watch", out->watch_) ||
        !look_up(*library, "topotune_tuner_last", out->last_) ||
        !look_up(*library, "topotune_tuner_said", out->said_) ||
        !look_up(*library, "topotune_tuner_shape", out->shape_))
      return fail(Errc::unsupported, "{} is not the tuner plugin of this program", path);
    return out;
  }
  void force(const tune::Choice& c) override { force_(c.algorithm, c.protocol, c.channels); }
  void release() override { release_(); }
  void watch(bool on) override { watch_(on ? 1 : 0); }
  std::string said() override {
    char text[512] = {};
    said_(text, sizeof text);
    return text;
  }
  std::uint32_t nodes() override {
    unsigned long ranks = 0, nodes = 1;
    shape_(&ranks, &nodes);
    return static_cast<std::uint32_t>(nodes);
  }
  Last last() override {
    plugins::LastDecision got;
    last_(&got);
    Last out{got.calls,    got.applied, got.unusable,
             got.function, got.bytes,   {got.algorithms, got.protocols, {}, {}}};
    for (int a = 0; a < got.algorithms; ++a)
      for (int p = 0; p < got.protocols; ++p) out.costs.microseconds.push_back(got.costs[a][p]);
    out.costs.chosen = tune::cheapest(out.costs.microseconds.data(), got.algorithms, got.protocols);
    return out;
  }

 private:
  plugins::Force force_ = nullptr;
  plugins::Release release_ = nullptr;
  plugins::Watch watch_ = nullptr;
  plugins::Last last_ = nullptr;
  plugins::Said said_ = nullptr;
  plugins::Shape shape_ = nullptr;
};

// Turns a profiler plugin's events off (a forced choice) and on (the plugin's own way).
class ProfilerSwitch : public tune::Steering {
 public:
  static Result<std::unique_ptr<tune::Steering>> open(const std::string& path) {
    const auto library = loaded_library(path, "profiler");
    if (!library) return tl::unexpected(library.error());
    auto out = std::make_unique<ProfilerSwitch>();
    if (!look_up(*library, "topotune_profiler_pause", out->pause_))
      return fail(Errc::unsupported, "{} is not the profiler plugin of this program", path);
    return out;
  }
  void force(const tune::Choice&) override { pause_(1); }
  void release() override { pause_(0); }
  Last last() override { return {}; }

 private:
  plugins::ProfilerPause pause_ = nullptr;
};

// The plugin that this process's NCCL has loaded.
Result<std::unique_ptr<tune::Steering>> own_steering(const MachineRequest& request) {
  return request.profiler.empty() ? TunerSteering::open(request.plugin)
                                  : ProfilerSwitch::open(request.profiler);
}

// The plugins of all processes: what this one is told, the others hear before the next operation.
class CrewSteering : public tune::Steering {
 public:
  CrewSteering(std::unique_ptr<tune::Steering> own, nccl::Crew& crew) : own_(std::move(own)), crew_(crew) {}
  void force(const tune::Choice& c) override {
    own_->force(c);
    crew_.say(fmt::format("{} {} {}", c.algorithm, c.protocol, c.channels));
  }
  void release() override {
    own_->release();
    crew_.say("release");
  }
  void watch(bool on) override { own_->watch(on); }
  Last last() override { return own_->last(); }
  std::string said() override { return own_->said(); }
  std::uint32_t nodes() override { return own_->nodes(); }

  // What another process does about it.
  static Result<void> hear(const std::string& text, tune::Steering& own) {
    if (text == "release") return own.release(), Result<void>();
    std::vector<int> numbers;
    for (const auto word : words(text))
      if (const auto n = parse_int<int>(word)) numbers.push_back(*n);
    if (numbers.size() != 3) return fail(Errc::malformed, "rank 0 sent something that is no choice");
    own.force({numbers[0], numbers[1], numbers[2]});
    return {};
  }

 private:
  std::unique_ptr<tune::Steering> own_;
  nccl::Crew& crew_;
};

Result<std::vector<const cuda::Gpu*>> chosen_gpus(const cuda::Machine& machine, const launch::JobPlace& place,
                                                  const MachineRequest& request) {
  std::vector<int> chosen;
  for (const auto& name : request.gpus) {
    const auto number = gpu_number(name);
    if (!number || std::ranges::find(machine.gpus, *number, &cuda::Gpu::index) == machine.gpus.end())
      return tl::unexpected(
          usage(fmt::format("tune: there is no GPU '{}' among {}", printable(name), machine.gpus.size()),
                "give CUDA's numbers, such as 0,1"));
    chosen.push_back(*number);
  }
  return gpus_of_process(machine, place, chosen, request.gpus_per_process);
}

std::optional<double> free_megabytes(const TuneMachine& m) {
  std::size_t free = 0, total = 0;
  if (!m.machine->use(*m.gpus.front()) || m.machine->driver.f.mem_info(&free, &total) != cuda::api::kSuccess)
    return std::nullopt;
  return static_cast<double>(free) / 1e6;
}

Result<std::unique_ptr<coll::Backend>> connected_group(const TuneMachine& m, const tune::Level& level,
                                                       std::size_t buffer_bytes) {
  nccl::GroupOptions options;
  options.buffer_bytes = buffer_bytes;
  options.min_ctas = options.max_ctas = level.ctas;
  auto group = m.crew->make(options);
  if (!group) return group;
  // Connections are made, and paid for, by the first collective.
  coll::Question q;
  q.bytes = std::min<std::size_t>(buffer_bytes, 1 << 20);
  if (auto first = (*group)->run(q, 1, coll::Mode::back_to_back); !first)
    return tl::unexpected(first.error());
  return group;
}

}  // namespace

FreshGroups::FreshGroups(TuneMachine& machine, const tune::Level& tuned, std::size_t buffer_bytes,
                         tune::BackendMeasurer::Options options, bool by_table)
    : machine_(machine),
      tuned_(tuned),
      buffer_bytes_(buffer_bytes),
      by_table_(by_table),
      measurer_(machine.levels, machine.backends(), machine.steering.get(), std::move(options)) {}

Result<FreshGroups::Groups> FreshGroups::groups(const std::vector<tune::Kind>& order) const {
  Groups out;
  for (const auto kind : order) {
    auto group = connected_group(machine_, kind == tune::Kind::tuned ? tuned_ : tune::Level{}, buffer_bytes_);
    if (!group) return tl::unexpected(group.error());
    out.push_back(std::move(*group));
  }
  return out;
}

Result<tune::Measurer*> FreshGroups::make(const std::vector<tune::Kind>& order) {
  const double start = measure::monotonic_seconds();
  auto fresh = groups(order);
  if (!fresh && !groups_.empty()) {
    groups_.clear();
    fresh = groups(order);
  }
  if (!fresh) return tl::unexpected(fresh.error());
  groups_ = std::move(*fresh);
  std::vector<tune::Level> levels;
  std::vector<coll::Backend*> backends;
  std::vector<std::size_t> by_table;
  for (std::size_t i = 0; i < order.size(); ++i) {
    levels.push_back(order[i] == tune::Kind::tuned ? tuned_ : tune::Level{});
    backends.push_back(groups_[i].get());
    if (by_table_ && order[i] == tune::Kind::tuned) by_table.push_back(i);
  }
  measurer_.use(std::move(levels), std::move(backends), std::move(by_table));
  made_ += order.size();
  seconds_ += measure::monotonic_seconds() - start;
  return &measurer_;
}

Result<void> add_level(TuneMachine& m, const tune::Level& level, std::size_t buffer_bytes) {
  const auto before = free_megabytes(m);
  auto group = connected_group(m, level, buffer_bytes);
  if (!group) return tl::unexpected(group.error());
  const auto after = free_megabytes(m);
  m.megabytes.push_back(before && after
                            ? std::optional(*before - *after -
                                            (m.groups.empty() ? 2e-6 * static_cast<double>(buffer_bytes) : 0))
                            : std::nullopt);
  m.levels.push_back(level);
  m.groups.push_back(std::move(*group));
  return {};
}

namespace {

Result<std::vector<tune::Collective>> collectives_from(const std::vector<std::string>& names) {
  std::vector<tune::Collective> out;
  for (const auto& name : names) {
    const auto collective = tune::collective_from(name);
    if (!collective)
      return tl::unexpected(usage(fmt::format("tune: there is no collective '{}'", printable(name)),
                                  "all_reduce all_gather reduce_scatter broadcast reduce all_to_all"));
    if (std::ranges::find(out, *collective) == out.end()) out.push_back(*collective);
  }
  return out;
}

}  // namespace

Result<TunePlan> plan_of(const TuneOptions& options) {
  TunePlan plan;
  if (options.from.empty()) {
    const auto collectives = collectives_from(options.collectives);
    if (!collectives) return tl::unexpected(collectives.error());
    const auto sizes = sizes_from(options.sizes);
    if (!sizes) return tl::unexpected(sizes.error());
    plan.cells = tune::cells_of(*collectives, *sizes);
    std::vector<std::uint64_t> between;
    for (std::size_t i = 0; options.held_back && i + 1 < sizes->size(); ++i)
      between.push_back(((*sizes)[i] + (*sizes)[i + 1]) / 2 / 64 * 64);
    plan.held_back = tune::cells_of(*collectives, between);
  } else {
    auto cells = cells_of_job(options.from);
    if (!cells) return tl::unexpected(cells.error());
    plan.cells = std::move(*cells);
    plan.reach = kSameSize;
  }
  const auto type = coll::type_from(options.type);
  if (!type)
    return tl::unexpected(usage(fmt::format("tune: there is no data type '{}'", printable(options.type)),
                                "float32 bfloat16 float16"));
  plan.measurer.type = *type;
  plan.measurer.mode = options.mode == "graph"    ? tune::LaunchMode::graph
                       : options.mode == "stream" ? tune::LaunchMode::stream
                                                  : tune::LaunchMode::automatic;
  return plan;
}

Result<std::string> find_plugin(const std::string& named, const std::string& file) {
  std::error_code error;
  auto path = named.empty() ? host::module_file(file)
                            : Result<std::string>(std::filesystem::canonical(named, error).string());
  if (error) return tl::unexpected(usage(fmt::format("{}: {}", printable(named), error.message())));
  constexpr std::size_t kMost = 254;  // NCCL cuts what is longer (plugin_open.cc)
  if (path && path->size() > kMost)
    return tl::unexpected(Error{
        Errc::unsupported,
        fmt::format("{}: NCCL loads plugins by names of at most {} characters", printable(*path), kMost),
        {},
        {},
        {},
        "install topotune in a folder with a shorter name, or set TOPOTUNE_MODULES"});
  return path;
}

Result<void> prepare_environment(const std::string& plugin, const std::string& table) {
  const auto settings = nccl_settings(launch::process_environment());
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_MIN_NCHANNELS",
                           "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS"}) {
    const auto set = settings(name);
    if (!set) continue;
    return tl::unexpected(
        usage(fmt::format("tune: {} decides what is to be measured", printable(set->text(name))),
              set->file.empty() ? fmt::format("unset {}", name)
                                : fmt::format("take it out of {} while this runs", printable(set->file))));
  }
  for (const char* name : {"TOPOTUNE_TUNER_TABLE", "TOPOTUNE_TUNER_HASH"}) ::unsetenv(name);
  if (!table.empty()) ::setenv("TOPOTUNE_TUNER_TABLE", table.c_str(), 1);
  if (!plugin.empty()) ::setenv("NCCL_TUNER_PLUGIN", plugin.c_str(), 1);
  return {};
}

std::vector<coll::Backend*> TuneMachine::backends() const {
  std::vector<coll::Backend*> out;
  for (const auto& group : groups) out.push_back(group.get());
  return out;
}

Result<TuneJob> meet_tune_job(const JobFlags& flags, double limit_seconds, std::function<bool()> stop) {
  const auto environment = launch::process_environment();
  const launch::JobOptions options{flags.rendezvous, flags.rank, flags.ranks, limit_seconds, std::move(stop)};
  auto place = launch::job_place(environment, options);
  if (!place) return tl::unexpected(place.error());
  auto peers = launch::meet_job(environment, options, *place);
  if (!peers) return tl::unexpected(peers.error());
  if (place->launcher.empty() && (*peers)->size() > 1) count_locals(*place, **peers);
  return TuneJob{std::move(*place), std::move(*peers)};
}

Result<void> agree(peers::Peers& peers, const std::string& what, const std::string& mine,
                   double limit_seconds) {
  const auto all = peers.exchange(mine, what, limit_seconds);
  if (!all) return tl::unexpected(all.error());
  const auto other = std::ranges::find_if(*all, [&](const auto& text) { return text != all->front(); });
  if (other == all->end()) return {};
  return fail(Errc::unsupported, "{} has {} {}, {} has {}", peers.at(0).to_string(), what,
              printable(all->front()), peers.at(static_cast<int>(other - all->begin())).to_string(),
              printable(*other));
}

Result<std::unique_ptr<TuneMachine>> open_tune_machine(const TuneJob& job, const MachineRequest& request,
                                                       const std::function<void(const std::string&)>& step) {
  step("opening the GPUs");
  auto machine = cuda::open_machine([](const std::string&) { return std::string(); });
  if (!machine) return tl::unexpected(machine.error());
  step("loading NCCL");
  auto library = nccl::Library::load();
  if (!library) return tl::unexpected(library.error());
  auto out = std::make_unique<TuneMachine>();
  out->library = std::move(*library);
  out->machine = std::move(*machine);
  if (out->library.version < 22200)
    return fail(Errc::unsupported, "NCCL {} shows its tuner no costs (2.22 or later)",
                out->library.version_text());
  auto gpus = chosen_gpus(*out->machine, job.place, request);
  if (!gpus) return tl::unexpected(gpus.error());
  out->gpus = std::move(*gpus);
  step("meeting the other processes");
  auto& peers = *job.peers;
  const double limit = request.limit_seconds;
  auto same = agree(peers, "NCCL", out->library.version_text(), limit);
  if (same) same = agree(peers, "GPUs", tune::machine_fingerprint(), limit);
  if (same) same = agree(peers, "the table", request.table, limit);
  if (!same) return tl::unexpected(same.error());
  auto crew =
      nccl::Crew::gather({peers, out->library, *out->machine, out->gpus, limit, request.stop, request.alive});
  if (!crew) return tl::unexpected(crew.error());
  out->crew = std::move(*crew);
  if (out->ranks() < 2)
    return fail(Errc::unsupported, "tune: {} GPU(s): collectives need two or more", out->ranks());
  if (!job.leads()) return out;
  for (const auto& level : request.levels) {
    step(fmt::format("communicators with {}", level.ctas ? fmt::format("{} thread blocks", *level.ctas)
                                                         : std::string("NCCL's own settings")));
    if (auto added = add_level(*out, level, request.buffer_bytes); !added) {
      if (out->groups.empty()) return tl::unexpected(added.error());
      out->notes.push_back(
          fmt::format("{} thread blocks are left out: {}", level.ctas.value_or(0), added.error().text));
      continue;
    }
    if (out->groups.size() > 1 || (request.plugin.empty() && request.profiler.empty())) continue;
    auto steering = own_steering(request);
    if (!steering) return tl::unexpected(steering.error());
    out->steering = std::make_unique<CrewSteering>(std::move(*steering), *out->crew);
  }
  return out;
}

Result<void> follow_the_leader(TuneMachine& machine, const MachineRequest& request,
                               const std::function<void(const std::string&)>& step) {
  const auto hear = [&](const std::string& text) -> Result<void> {
    if (!machine.steering) {  // NCCL loads its plugin with the first communicator
      auto own = own_steering(request);
      if (!own) return tl::unexpected(own.error());
      machine.steering = std::move(*own);
    }
    return CrewSteering::hear(text, *machine.steering);
  };
  return machine.crew->follow(hear, step);
}

}  // namespace topotune::cli
