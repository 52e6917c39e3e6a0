#include "cli/bench_mixed.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/input.h"
#include "cli/job_run.h"
#include "coll/host_source.h"
#include "coll/share.h"
#include "cuda/device_source.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "launch/bind.h"
#include "launch/quick.h"
#include "mixed/advice.h"
#include "mixed/checkpoint.h"
#include "nccl/lane.h"
#include "net/counters.h"

namespace topotune::cli {

namespace {

constexpr std::size_t kMostChecked = std::size_t{64} << 20;  // bytes whose elements are compared

bool is_save(const parse::MixedStream& stream) { return stream.op == "checkpoint"; }

Result<parse::MixedProfile> load_profile(const std::string& name) {
  if (auto known = mixed::known_profile(name)) return known;
  const auto hint = fmt::format("known profiles are {}; docs/formats/mixed-profile.md describes own ones",
                                fmt::join(mixed::known_profiles(), " "));
  const auto text = read_input(name);
  auto profile =
      text ? parse::parse_mixed_profile(*text) : Result<parse::MixedProfile>(tl::unexpected(text.error()));
  if (!profile) {
    profile.error().file = name;
    profile.error().hint = hint;
  }
  return profile;
}

// Bytes that the kernel would give to programs without swapping; nothing where it does not tell.
std::optional<std::size_t> available_memory() {
  const auto text = launch::PlainHost().read("/proc/meminfo");
  if (!text) return std::nullopt;
  for (const auto line : lines(*text)) {
    const auto parts = words(line);
    if (parts.size() == 3 && parts[0] == "MemAvailable:")
      if (const auto kib = parse_int<std::size_t>(parts[1])) return *kib * 1024;
  }
  return std::nullopt;
}

class MixedRun : private JobRun {
 public:
  MixedRun(const BenchOptions& options, const MixedFlags& flags, const CollFlags& coll, const JobFlags& job,
           const Globals& globals, parse::MixedProfile profile, std::vector<int> gpus)
      : JobRun("mixed", options, job, globals),
        flags_(flags),
        coll_(coll),
        profile_(std::move(profile)),
        chosen_(std::move(gpus)) {}
  ~MixedRun() override { end_session(); }

  int go() {
    if (auto ok = find_place(); !ok) return report(ok.error());
    auto ready = coll_.backend == "mpi" ? start_mpi() : start_nccl();
    if (!ready) return give_up(ready.error());
    if (place_.rank == 0) describe_machine(coll_.backend == "mpi" ? "" : library_.file);
    const auto measured = measure_all();
    session_->idle();
    progress_.clear();
    if (!measured && interrupted() && measured.error().text.find("interrupted") != std::string::npos)
      end_now(kInterrupted);
    if (!measured) lose(measured.error());
    if (on_gpus()) close_communicators([this] { lanes_.clear(); });
    end_session();
    return finish();
  }

 private:
  using Sources = std::vector<std::unique_ptr<coll::ByteSource>>;

  bool on_gpus() const { return coll_.backend != "mpi"; }

  // --- starting

  Result<void> start_mpi() {
    auto made = meet_by_mpi(0);
    if (!made) return tl::unexpected(made.error());
    backend_ = std::move(made->backend);
    if (auto ok = introduce(backend_->name(), backend_->local()); !ok) return ok;
    const auto memory = available_memory();
    if (auto ok = fit(memory ? *memory / 4 / static_cast<std::size_t>(place_.local_size.value_or(1))
                             : std::size_t{512} << 20);
        !ok)
      return ok;
    std::vector<mpi::LaneRequest> requests;
    for (const auto& stream : profile_.streams) {
      if (is_save(stream)) continue;
      const mpi::LaneRequest request{*coll::op_from(stream.op), *std::ranges::max_element(stream.bytes)};
      coll::Question q;
      q.op = request.op, q.bytes = request.bytes;
      if (const auto why = backend_->cannot(q, coll::Mode::back_to_back))
        return fail(Errc::unsupported, "stream {}: {}", stream.name, *why);
      requests.push_back(request);
    }
    auto lanes = made->make_lanes(requests);
    if (!lanes) return tl::unexpected(lanes.error());
    return place_lanes(std::move(*lanes), 1, [](std::size_t bytes) -> Result<Sources> {
      Sources out;
      out.push_back(coll::host_source(bytes));
      return out;
    });
  }

  Result<void> start_nccl() {
    if (auto ok = meet_for_nccl(); !ok) return ok;
    start_session();
    session_->step("opening the GPUs");
    const auto gpus = open_gpus(chosen_, coll_.gpus_per_process);
    if (!gpus) return tl::unexpected(gpus.error());
    auto budget = free_on(*gpus);
    if (!budget) return tl::unexpected(budget.error());
    if (auto ok = fit(*budget / 2); !ok) return ok;
    std::vector<std::unique_ptr<coll::Lane>> lanes;
    std::vector<coll::LocalRank> local;
    std::string library = "NCCL " + library_.version_text();
    for (const auto& stream : profile_.streams) {
      if (is_save(stream)) continue;
      session_->step("making the communicators of " + stream.name);
      nccl::GroupOptions options;
      options.buffer_bytes = *std::ranges::max_element(stream.bytes);
      auto group = make_group(*peers_, *gpus, options);
      if (!group) return tl::unexpected(group.error());
      local = (*group)->local();
      lanes.push_back(nccl::make_lane(std::move(*group), *coll::op_from(stream.op)));
    }
    if (auto ok = introduce(library, local); !ok) return ok;
    return place_lanes(std::move(lanes), gpus->size(), [&](std::size_t bytes) -> Result<Sources> {
      Sources out;
      for (const auto* gpu : *gpus) {
        auto source = cuda::device_source(*cuda_, *gpu, bytes);
        if (!source) return tl::unexpected(source.error());
        out.push_back(std::move(*source));
      }
      return out;
    });
  }

  Result<std::size_t> free_on(const std::vector<const cuda::Gpu*>& gpus) const {
    auto least = std::size_t{1} << 62;
    for (const auto* gpu : gpus) {
      const auto free = cuda::free_bytes(*cuda_, *gpu);
      if (!free) return free;
      least = std::min(least, *free);
    }
    return least;
  }

  // The largest sizes that fit everywhere.
  Result<void> fit(std::size_t budget) {
    const double mine = flags_.scale.value_or(mixed::fitting_scale(profile_, budget));
    const auto all =
        coll::share(*peers_, std::vector<double>{mine}, "scale of the sizes", options_.limit_seconds);
    if (!all) return tl::unexpected(all.error());
    scale_ = mine;
    for (const auto& row : *all) scale_ = std::min(scale_, row[0]);
    mixed::scale_large(profile_, scale_);
    return {};
  }

  // Lanes of collectives in the profile's order, checkpoints between them.
  template <class MakeSources>
  Result<void> place_lanes(std::vector<std::unique_ptr<coll::Lane>> lanes, std::size_t sources,
                           const MakeSources& make_sources) {
    auto next = lanes.begin();
    for (const auto& stream : profile_.streams) {
      if (!is_save(stream)) {
        lanes_.push_back(std::move(*next++));
        continue;
      }
      auto lane = checkpoint(stream, sources, make_sources);
      const auto all = coll::share(
          *peers_, lane ? Result<std::vector<double>>(std::vector<double>()) : tl::unexpected(lane.error()),
          "whether checkpoints can be saved", options_.limit_seconds);
      if (!all) return tl::unexpected(all.error());
      lanes_.push_back(std::move(*lane));
    }
    return {};
  }

  template <class MakeSources>
  Result<std::unique_ptr<coll::Lane>> checkpoint(const parse::MixedStream& stream, std::size_t sources,
                                                 const MakeSources& make_sources) {
    const auto bytes = *std::ranges::max_element(stream.bytes);
    if (!flags_.checkpoint_dir.empty()) {
      const auto savers = sources * static_cast<std::size_t>(place_.local_size.value_or(1));
      if (auto ok = mixed::has_room(flags_.checkpoint_dir, bytes * savers); !ok)
        return tl::unexpected(ok.error());
    }
    auto made = make_sources(bytes);
    if (!made) return tl::unexpected(made.error());
    return mixed::make_checkpoint(std::move(*made), flags_.checkpoint_dir);
  }

  // --- measuring

  mixed::Watch watch() {
    mixed::Watch w;
    w.stopped = [] { return interrupted(); };
    w.news = [this] { return peers_->size() > 1 ? peers_->news() : std::nullopt; };
    w.alive = [this] { watchdog_->begin(step_, options_.limit_seconds * 1.5 + 5); };
    w.limit_seconds = options_.limit_seconds;
    return w;
  }

  void step(const std::string& text) {
    step_ = text;
    session_->step(text);
  }

  // The slowest process's result, or the first one's error; all processes go on or none.
  Result<mixed::Phase> phase(const std::vector<mixed::Running>& running, const std::string& what) {
    step(what);
    const auto go = coll::share(*peers_, std::vector<double>{interrupted() ? 1.0 : 0.0}, "whether to go on",
                                options_.limit_seconds);
    if (!go) return tl::unexpected(go.error());
    for (const auto& row : *go)
      if (row[0] > 0) return fail(Errc::io, "interrupted");
    auto mine = mixed::run_streams(running, watch());
    if (!mine) {
      peers_->fail_all(mine.error());
      return tl::unexpected(here(mine.error()));
    }
    if (interrupted()) return mine;  // as far as it came, of this process
    return mixed::slowest_of_all(*peers_, *mine, options_.limit_seconds);
  }

  // An error of this process names it; those of others do already.
  Error here(Error error) const {
    if (!error.text.starts_with("stream")) return error;
    error.text = fmt::format("{}: {}", peers_->at(peers_->rank()).to_string(), error.text);
    return error;
  }

  Result<void> check(std::size_t i) {
    auto& stream = report_.streams[i];
    const auto& sizes = stream.plan.stream.bytes;
    if (coll_.no_check) return stream.not_checked = "not asked for", Result<void>();
    coll::Checked sum;
    for (const auto bytes : sizes) {
      const auto checked = lanes_[i]->verify(std::min(bytes, kMostChecked));
      if (!checked && checked.error().code == Errc::unsupported)
        return stream.not_checked = checked.error().text, Result<void>();
      Result<std::vector<double>> mine = std::vector<double>();
      if (checked)
        mine =
            std::vector<double>{static_cast<double>(checked->wrong), static_cast<double>(checked->checked)};
      else
        mine = tl::unexpected(checked.error());
      const auto all = coll::share(*peers_, mine, "comparison of the data", options_.limit_seconds);
      if (!all) return tl::unexpected(all.error());
      for (const auto& row : *all)
        sum.wrong += static_cast<std::uint64_t>(row[0]), sum.checked += static_cast<std::uint64_t>(row[1]);
      if (checked && sum.first.empty()) sum.first = checked->first;
    }
    if (sum.wrong > 0 && sum.first.empty()) sum.first = "on another rank";
    stream.checked = sum;
    return {};
  }

  // How long an operation takes decides how many there are; equal in all processes.
  Result<void> prepare(std::size_t i) {
    const auto& stream = profile_.streams[i];
    step("first operations of " + stream.name);
    const auto seconds = mixed::seconds_by_size(*peers_, *lanes_[i], stream, watch());
    if (!seconds) return tl::unexpected(here(seconds.error()));
    double mean = 0;
    for (const double one : *seconds) mean += one / static_cast<double>(seconds->size());
    const std::lock_guard lock(mutex_);
    report_.streams[i].plan = mixed::plan_stream(stream, flags_.duration, mean);
    return {};
  }

  Result<void> measure_all() {
    session_->begin_share(0, 1);
    session_->plan(profile_.streams.size() + 1);
    {
      const std::lock_guard lock(mutex_);
      report_.profile = profile_.name;
      report_.ranks = static_cast<int>(cast_.members.size());
      report_.scale = scale_;
      report_.streams.resize(profile_.streams.size());
      for (std::size_t i = 0; i < profile_.streams.size(); ++i)
        report_.streams[i].plan.stream = profile_.streams[i];
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      auto ok = prepare(i);
      if (ok) step("comparing data of " + profile_.streams[i].name), ok = check(i);
      if (!ok) return ok;
    }
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      auto alone =
          phase({{report_.streams[i].plan, lanes_[i].get()}}, report_.streams[i].plan.stream.name + " alone");
      if (!alone) return tl::unexpected(alone.error());
      {
        const std::lock_guard lock(mutex_);
        report_.streams[i].alone = std::move(alone->front());
      }
      keep_partial();
      if (interrupted()) return fail(Errc::io, "interrupted");
      session_->end_part();
    }
    return all_together();
  }

  Result<void> all_together() {
    std::vector<mixed::Running> running;
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      running.push_back({report_.streams[i].plan, lanes_[i].get()});
    const launch::PlainHost host;
    const auto before = mixed::read_interrupts(host, measure::monotonic_seconds());
    const auto counters = net::read_counters(host);
    auto together = phase(running, "all streams together");
    const auto after = mixed::read_interrupts(host, measure::monotonic_seconds());
    const auto added = net::added(counters, net::read_counters(host));
    if (!together) return tl::unexpected(together.error());
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < together->size(); ++i)
        report_.streams[i].together = std::move((*together)[i]);
    }
    keep_partial();
    if (interrupted()) return fail(Errc::io, "interrupted");
    session_->end_part();
    return gather_hosts(before, after, added);
  }

  // --- what each host counted, told by its first process: lines "cpus N", "unread TEXT", "counter NAME N",
  // and those of the interrupts.
  std::string host_text(const Result<mixed::InterruptReading>& before,
                        const Result<mixed::InterruptReading>& after,
                        const std::map<std::string, double>& added) const {
    const auto cpus = launch::current_cpus();
    std::string out = fmt::format("cpus\t{}\n", cpus ? cpus->count() : 0);
    if (!before || !after)
      out += "unread\t" + printable((before ? after : before).error().to_string()) + "\n";
    else
      out += mixed::packed(mixed::rates_between(*before, *after));
    for (const auto& [name, value] : added)
      if (value > 0 || name.starts_with("tcp.")) out += fmt::format("counter\t{}\t{:.17g}\n", name, value);
    return out;
  }

  Result<void> gather_hosts(const Result<mixed::InterruptReading>& before,
                            const Result<mixed::InterruptReading>& after,
                            const std::map<std::string, double>& added) {
    const auto mine = place_.local == 0 ? host_text(before, after, added) : std::string();
    const auto all = peers_->exchange(mine, "interrupts and counters", options_.limit_seconds);
    if (!all) return tl::unexpected(all.error());
    mixed::Evidence evidence;
    const std::lock_guard lock(mutex_);
    for (int r = 0; r < peers_->size(); ++r) {
      const auto& name = peers_->at(r).host;
      evidence.load[name].ranks += 1;
      read_host((*all)[static_cast<std::size_t>(r)], name, evidence);
    }
    evidence.on_gpus = on_gpus();
    evidence.report = &report_;
    for (auto& judgement : mixed::advise(evidence)) run_.judgements.push_back(std::move(judgement));
    return {};
  }

  void read_host(const std::string& text, const std::string& name, mixed::Evidence& evidence) {
    for (auto& rate : mixed::unpacked(text, name)) report_.interrupts.push_back(std::move(rate));
    for (const auto line : lines(text)) {
      const auto parts = split(line, '\t');
      if (parts.size() == 2 && parts[0] == "cpus")
        evidence.load[name].cpus = parse_int<int>(parts[1]).value_or(0);
      if (parts.size() == 2 && parts[0] == "unread") evidence.unread[name] = printable(parts[1]);
      if (parts.size() == 3 && parts[0] == "counter")
        if (const auto value = parse_double(parts[2])) evidence.counters[name][printable(parts[1])] = *value;
    }
  }

  // --- writing

  std::string head() const {
    const auto hosts = peers::hosts_of(cast_.members);
    const auto where = on_gpus() ? "from the GPU to host memory" : "from host memory to host memory";
    return fmt::format(
        "mixed {}: {} rank{} on {} host{}, {}; {:g} s a phase; large sizes x {:.3g}; checkpoints {}{}\n\n",
        profile_.name, report_.ranks, report_.ranks == 1 ? "" : "s", hosts.size(),
        hosts.size() == 1 ? "" : "s", cast_.library, flags_.duration, scale_, where,
        flags_.checkpoint_dir.empty() ? std::string() : " and " + flags_.checkpoint_dir);
  }

  bool began() const { return !report_.streams.empty() && report_.streams.front().plan.count > 0; }

  std::string document(const model::MeasurementRun& run) const override {
    if (globals_.json) return emit::measurement_json(run);
    if (options_.csv) return emit::measurement_csv(run);
    std::string out = began() ? head() + mixed::table_text(report_) : std::string();
    for (const auto& m : run.results)
      if (m.name == run.suite) out += fmt::format("{}: {}\n", name_of(m.status), m.why);
    for (const auto& j : run.judgements)
      out += fmt::format("{}: {}: {}\n", name_of(j.severity), j.subject, j.text);
    if (run.interrupted) out += emit::kInterruptedText;
    return out;
  }

  // The streams' results before what failed.
  model::MeasurementRun whole() const override {
    auto run = run_;
    if (!began()) return run;
    auto results = mixed::measurements_of(report_);
    run.results.insert(run.results.begin(), std::make_move_iterator(results.begin()),
                       std::make_move_iterator(results.end()));
    run.machine.emplace_back("scale", fmt::format("{:g}", scale_));
    run.machine.emplace_back("phase_seconds", fmt::format("{:g}", flags_.duration));
    run.machine.emplace_back("checkpoints_to",
                             flags_.checkpoint_dir.empty() ? "host memory" : flags_.checkpoint_dir);
    return run;
  }

  const MixedFlags& flags_;
  const CollFlags& coll_;
  parse::MixedProfile profile_;
  std::vector<int> chosen_;
  std::unique_ptr<coll::Backend> backend_;  // MPI, which ends with it
  std::vector<std::unique_ptr<coll::Lane>> lanes_;
  mixed::Report report_;
  double scale_ = 1;
  std::string step_;
};

}  // namespace

void add_mixed_flags(CLI::App& verb, MixedFlags& flags) {
  const char* const group = "Mixed traffic (bench mixed)";
  verb.add_option("--profile", flags.profile, "dense-ddp (the default), fsdp, moe, or a file")
      ->type_name("P")
      ->group(group);
  verb.add_option("--duration", flags.duration,
                  "seconds of a phase: each stream alone, then all together (3)")
      ->type_name("S")
      ->check(CLI::Range(0.05, 3600.0))
      ->group(group);
  verb.add_option("--scale", flags.scale, "factor of sizes of 16 MiB and more (by memory)")
      ->type_name("F")
      ->check(CLI::Range(1e-6, 1.0))
      ->group(group);
  verb.add_option("--checkpoint-dir", flags.checkpoint_dir, "also write checkpoints to files in this folder")
      ->type_name("DIR")
      ->group(group);
}

int bench_mixed(const BenchOptions& options, const MixedFlags& mixed, const CollFlags& coll,
                const JobFlags& job, const Globals& globals) {
  std::vector<int> gpus;
  for (const auto& word : options.gpus) {
    const auto number = gpu_number(word);
    if (!number)
      return report(Error{Errc::usage,
                          fmt::format("bench mixed: '{}' is no GPU", printable(word)),
                          {},
                          {},
                          {},
                          "give numbers as nvidia-smi does: 0 1"});
    gpus.push_back(*number);
  }
  auto profile = load_profile(mixed.profile);
  if (!profile) return report(profile.error());
  MixedRun run(options, mixed, coll, job, globals, std::move(*profile), std::move(gpus));
  return run.go();
}

}  // namespace topotune::cli
