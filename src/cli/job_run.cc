#include "cli/job_run.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "cli/fingerprint.h"
#include "cli/input.h"
#include "launch/exchange.h"
#include "peers/tcp.h"

namespace topotune::cli {

namespace {

// Processes that MPI started and that also meet over TCP. News may be asked from another thread; while an
// exchange is under way there are none, as it ends by itself.
class BesideMpi : public peers::Peers {
 public:
  BesideMpi(std::unique_ptr<peers::Peers> mpi, std::unique_ptr<peers::Peers> tcp)
      : mpi_(std::move(mpi)), tcp_(std::move(tcp)) {}
  int rank() const override { return tcp_->rank(); }
  const std::vector<peers::Peer>& all() const override { return tcp_->all(); }
  std::string how() const override { return mpi_->how() + ", " + tcp_->how(); }
  Result<std::vector<std::string>> exchange(const std::string& mine, const std::string& what,
                                            double limit_seconds) override {
    const std::lock_guard lock(mutex_);
    return tcp_->exchange(mine, what, limit_seconds);
  }
  void fail_all(const Error& error) override {
    const std::lock_guard lock(mutex_);
    tcp_->fail_all(error);
  }
  std::optional<Error> news() override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    return lock.owns_lock() ? tcp_->news() : std::nullopt;
  }

 private:
  std::unique_ptr<peers::Peers> mpi_, tcp_;
  std::mutex mutex_;
};

// The same processes over TCP; the reason when some do not reach rank 0. All make the same exchanges by MPI.
Result<std::unique_ptr<peers::Peers>> meet_beside(peers::Peers& mpi, double limit_seconds) {
  peers::Meeting m;
  m.rank = mpi.rank(), m.size = mpi.size();
  m.limit_seconds = std::min(limit_seconds, 10.0), m.stop = interrupted;
  std::string mine;
  if (m.rank == 0) {
    if (const auto listener = peers::listen_anywhere()) {
      m.listener = listener->fd;
      mine = fmt::format("{} {}", listener->port, launch::reachable_names());
    }
  }
  const auto addresses = mpi.exchange(mine, "addresses", limit_seconds);
  if (!addresses) return tl::unexpected(addresses.error());
  const auto parts = words(addresses->front());
  if (parts.size() != 2) return fail(Errc::unsupported, "rank 0 cannot listen");
  m.port = parse_int<int>(parts[0]).value_or(0), m.host = parts[1];
  auto met = peers::meet(m);
  const auto outcomes = mpi.exchange(met ? "" : met.error().text, "whether all met", limit_seconds);
  if (!outcomes) return tl::unexpected(outcomes.error());
  for (const auto& text : *outcomes)
    if (!text.empty()) return fail(Errc::unsupported, "{}", text);
  return met;
}

mpi::Flavour flavour_of(const launch::Environment& environment) {
  if (environment("OMPI_COMM_WORLD_SIZE") || environment("PMIX_RANK")) return mpi::Flavour::openmpi;
  return environment("PMI_SIZE") ? mpi::Flavour::mpich : mpi::Flavour::any;
}

}  // namespace

JobRun::JobRun(std::string suite, const BenchOptions& options, const JobFlags& job, const Globals& globals)
    : options_(options),
      globals_(globals),
      progress_(globals),
      start_(measure::monotonic_seconds()),
      file_(globals) {
  job_ = {job.rendezvous, job.rank, job.ranks, options.limit_seconds, interrupted};
  run_.suite = std::move(suite);
  run_.date = utc_now();
  run_.command = command_line();
}

JobRun::~JobRun() { end_session(); }

void JobRun::end_session() {
  done_ = true;
  if (guard_.joinable()) guard_.join();
}

Result<void> JobRun::find_place() {
  auto place = launch::job_place(environment_, job_);
  if (!place) return tl::unexpected(place.error());
  place_ = *place;
  return {};
}

Result<void> JobRun::meet_for_nccl() {
  auto peers = launch::meet_job(environment_, job_, place_);
  if (!peers) return tl::unexpected(peers.error());
  peers_ = std::move(*peers);
  if (place_.launcher.empty() && peers_->size() > 1) count_locals(place_, *peers_);
  auto library = nccl::Library::load();
  if (!library) return tl::unexpected(library.error());
  library_ = *library;
  return {};
}

Result<mpi::Job> JobRun::meet_by_mpi(std::size_t buffer_bytes) {
  start_session();
  session_->step("MPI_Init: waiting for all ranks");
  auto made = mpi::start(flavour_of(environment_), buffer_bytes);
  if (!made) return made;
  session_->step("meeting");
  place_.rank = made->peers->rank(), place_.size = made->peers->size();
  if (place_.size > 1) {
    auto beside = meet_beside(*made->peers, options_.limit_seconds);
    if (beside)
      made->peers = std::make_unique<BesideMpi>(std::move(made->peers), std::move(*beside));
    else
      run_.judgements.push_back(
          {model::Severity::info, "processes",
           "do not meet over TCP, so that MPI alone tells who is lost: " + beside.error().text});
    beside_mpi_ = beside.has_value();
  }
  const std::lock_guard lock(mutex_);
  peers_ = std::move(made->peers);
  count_locals(place_, *peers_);
  return made;
}

void JobRun::start_session() {
  watchdog_ = std::make_unique<measure::Watchdog>(
      [this](const std::string& step, double limit) { hang(step, limit); });
  measure::Session::Hooks hooks;
  hooks.stop = [] { return interrupted(); };
  hooks.progress = [this](const std::string& step) { progress_(step); };
  hooks.fraction = [this](double done) { progress_.fraction(done); };
  hooks.watchdog = watchdog_.get();
  // The exchanges within a step have the limit themselves and tell more.
  hooks.step_limit_seconds = options_.limit_seconds * 1.5 + 5;
  session_ = std::make_unique<measure::Session>(measure::Policy(), hooks);
  end_in_order_on_interrupt();
  guard_ = std::thread([this] { guard(); });
}

void JobRun::close_communicators(const std::function<void()>& close) {
  session_->step("closing the communicators");
  close();
  session_->idle();
  progress_.clear();
}

// A collective cannot be left from inside: when the run was interrupted, or another process of it ended, and
// it does not end in order, what is there is written and the process ends. Launchers kill soon after they
// ask, and Open MPI's kills all others once the first has ended: who writes nothing ends last.
void JobRun::guard() {
  constexpr int kSpeaker = 6, kOther = 40;  // turns
  std::optional<Error> news;
  for (int waited = 0; !done_;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    {
      const std::lock_guard lock(mutex_);
      if (!news && beside_mpi_ && peers_) news = peers_->news();
    }
    if (!interrupted() && !news) continue;
    const bool alone = news && interrupted();  // the speaker has gone
    if (++waited < (speaks() || !interrupted() || alone ? kSpeaker : kOther)) continue;
    if (done_) return;
    progress_.clear();
    if (interrupted()) end_now(kInterrupted);
    lose(*news);
    end_now(kError);
  }
}

model::MeasurementRun JobRun::so_far() const {
  auto run = whole();
  run.seconds = measure::monotonic_seconds() - start_;
  return run;
}

void JobRun::keep_partial() {
  if (!speaks()) return;
  const std::lock_guard lock(mutex_);
  file_.keep([this] {
    auto run = so_far();
    run.interrupted = true;
    return document(run);
  });
}

int JobRun::write(const model::MeasurementRun& run) {
  if (!lost_root_) return file_.write(document(run));
  return ReportFile(globals_, fmt::format(".rank{}", place_.rank)).write(document(run));
}

void JobRun::end_now(int status) {
  const std::lock_guard lock(mutex_);
  run_.interrupted = status == kInterrupted;
  if (speaks()) write(so_far());
  std::fflush(nullptr);
  std::_Exit(status);
}

void JobRun::hang(const std::string& step, double limit) {
  progress_.clear();
  const auto text = fmt::format("rank {} on {}: '{}' did not end within {:g} s", place_.rank,
                                peers::host_name(), step, limit);
  fmt::print(
      stderr,
      "topotune: bench {}: {}\nhint: another rank hangs, or its GPU or network does; --limit SECONDS waits "
      "longer\n",
      run_.suite, text);
  add_failure(text);
  end_now(kError);
}

void JobRun::add_failure(const std::string& text) {
  const std::lock_guard lock(mutex_);
  model::Measurement m;
  m.name = run_.suite;
  m.unit = "seconds";
  m.status = model::MeasureStatus::failed;
  m.why = text;
  run_.results.push_back(std::move(m));
}

bool JobRun::names_root(const Error& error) const {
  return place_.rank == 1 && peers_ && peers_->size() > 1 &&
         error.text.find(peers_->at(0).to_string() + " ended") != std::string::npos;
}

void JobRun::lose(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    lost_ = true;
    lost_root_ = names_root(error);
  }
  add_failure(error.text);
  if (place_.rank != 0 && error.text.find("ended") == std::string::npos) return;
  fmt::print(stderr, "topotune: bench {}: {}\n", run_.suite, error.text);
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
}

int JobRun::give_up(const Error& error) {
  progress_.clear();
  if (peers_) peers_->fail_all(error);
  if (error.code == Errc::usage || error.code == Errc::malformed)
    return speaks() ? report(error) : int{kUsage};
  const bool lost = error.code == Errc::timed_out || error.code == Errc::io;
  if (!speaks()) return lost ? report(error) : int{kUnknown};
  model::Measurement m;
  m.name = run_.suite;
  m.unit = "seconds";
  m.status = lost ? model::MeasureStatus::failed : model::MeasureStatus::waived;
  m.why = error.text;
  run_.results.push_back(std::move(m));
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
  const auto run = so_far();
  const int written = write(run);
  return written != kOk ? written : status_of(run, options_.fail_on);
}

int JobRun::finish() {
  end_session();
  run_.interrupted = interrupted() && !lost_;  // a launcher ends those who are left
  const int status = written();
  // MPI_Finalize would wait for the process that is lost.
  if (lost_ && beside_mpi_) std::fflush(nullptr), std::_Exit(status);
  return status;
}

int JobRun::written() {
  if (!speaks()) return lost_ ? int{kError} : run_.interrupted ? int{kInterrupted} : int{kOk};
  const auto run = so_far();
  if (const int status = write(run); status != kOk) return status;
  return status_of(run, options_.fail_on);
}

Result<std::vector<const cuda::Gpu*>> JobRun::open_gpus(const std::vector<int>& chosen,
                                                        std::optional<int> each) {
  auto machine = cuda::open_machine([](const std::string&) { return std::string(); });
  if (!machine) return tl::unexpected(machine.error());
  cuda_ = std::move(*machine);
  return gpus_of_process(*cuda_, place_, chosen, each);
}

Result<std::unique_ptr<nccl::Group>> JobRun::make_group(peers::Peers& peers,
                                                        const std::vector<const cuda::Gpu*>& gpus,
                                                        nccl::GroupOptions options) {
  auto place = nccl::place_among(peers, gpus.size(), options_.limit_seconds);
  if (!place) return tl::unexpected(place.error());
  std::string mine;
  if (peers.rank() == 0) {
    const auto id = library_.unique_id();
    if (!id) {
      peers.fail_all(id.error());
      return tl::unexpected(id.error());
    }
    mine.assign(id->internal, sizeof id->internal);
  }
  const auto ids = peers.exchange(mine, "NCCL's id", options_.limit_seconds);
  if (!ids) return tl::unexpected(ids.error());
  if (ids->front().size() != sizeof place->id.internal)
    return fail(Errc::malformed, "rank 0 sent no NCCL id");
  std::ranges::copy(ids->front(), place->id.internal);
  if (peers.size() > 1) options.news = [&peers] { return peers.news(); };
  return nccl::Group::make(library_, *cuda_, gpus, *place, options);
}

Result<void> JobRun::introduce(const std::string& library, const std::vector<coll::LocalRank>& local) {
  std::string mine;
  for (const auto& one : local) mine += fmt::format("{}\t{}\t{}\n", one.rank, one.device, one.detail);
  const auto all = peers_->exchange(mine, "names of GPUs", options_.limit_seconds);
  if (!all) return tl::unexpected(all.error());
  cast_.library = library;
  cast_.command = run_.command;
  for (int r = 0; r < peers_->size(); ++r) {
    for (const auto line : split((*all)[static_cast<std::size_t>(r)], '\n')) {
      const auto parts = split(line, '\t');
      if (parts.size() != 3) continue;
      cast_.members.push_back({parse_int<int>(parts[0]).value_or(0), peers_->at(r).host, peers_->at(r).pid,
                               std::string(parts[1]), std::string(parts[2])});
    }
  }
  std::ranges::sort(cast_.members, {}, &coll::Cast::Member::rank);
  return {};
}

void JobRun::describe_machine(const std::string& library_file) {
  session_->step("reading the machine");
  if (const auto input = load_input("live", globals_)) run_.machine = fingerprint(input->machine);
  run_.machine.emplace_back("library", cast_.library);
  run_.machine.emplace_back("library_file", library_file);
  run_.machine.emplace_back("ranks", std::to_string(cast_.members.size()));
  run_.machine.emplace_back("hosts", fmt::format("{}", fmt::join(peers::hosts_of(cast_.members), " ")));
  run_.machine.emplace_back("met_by", peers_->how());
}

std::string JobRun::place_text(int rank) const {
  for (const auto& m : cast_.members)
    if (m.rank == rank) return fmt::format("rank {} ({} on {})", rank, m.device, m.host);
  return fmt::format("rank {}", rank);
}

}  // namespace topotune::cli
