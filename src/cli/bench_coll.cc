#include "cli/bench_coll.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "base/text.h"
#include "cli/bench_frame.h"
#include "cli/fingerprint.h"
#include "cli/input.h"
#include "coll/share.h"
#include "coll/suite.h"
#include "coll/table.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "launch/meeting.h"
#include "mpi/backend.h"
#include "nccl/choices.h"
#include "nccl/group.h"

namespace topotune::cli {

namespace {

Error usage(std::string text, std::string hint) {
  return Error{Errc::usage, "bench coll: " + std::move(text), {}, {}, {}, std::move(hint)};
}

template <class T>
std::string names_of(const std::vector<T>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.emplace_back(coll::name_of(one));
  return fmt::format("{}", fmt::join(names, " "));
}

// What the words after `coll` ask for.
struct Asked {
  coll::SuiteOptions suite;
  std::vector<int> gpus;  // CUDA's numbers; empty: all
};

Result<std::size_t> size_of(const std::string& text, const char* option) {
  const auto size = size_from(text);
  if (!size)
    return tl::unexpected(
        usage(fmt::format("{} {} is no size", option, printable(text)), "such as 8, 64K, 1G"));
  return *size;
}

Result<void> read_words(const std::vector<std::string>& words, Asked& asked) {
  std::vector<coll::Op> ops;
  for (const auto& word : words) {
    const auto number = parse_int<int>(word.starts_with("GPU") ? word.substr(3) : word);
    if (number && *number >= 0) {
      asked.gpus.push_back(*number);
    } else if (word == "all") {
      ops = coll::all_ops();
    } else if (const auto op = coll::op_from(word)) {
      ops.push_back(*op);
    } else {
      return tl::unexpected(usage(fmt::format("'{}' is no collective and no GPU", printable(word)),
                                  "all " + names_of(coll::all_ops()) + ", or GPU numbers"));
    }
  }
  if (!ops.empty()) asked.suite.ops = ops;
  return {};
}

Result<void> read_sizes(const CollFlags& flags, coll::SuiteOptions& suite) {
  const auto begin = size_of(flags.begin, "-b"), end = size_of(flags.end, "-e");
  if (!begin) return tl::unexpected(begin.error());
  if (!end) return tl::unexpected(end.error());
  std::size_t step = 0;
  if (!flags.step_bytes.empty()) {
    const auto size = size_of(flags.step_bytes, "-i");
    if (!size) return tl::unexpected(size.error());
    step = *size;
  }
  if (*begin > *end)
    return tl::unexpected(
        usage(fmt::format("-b {} is more than -e {}", flags.begin, flags.end), "-b 8 -e 128M -f 2"));
  suite.sizes = coll::sizes_from(*begin, *end, step > 0 ? 0 : flags.factor, step);
  return {};
}

Result<void> read_modes(const CollFlags& flags, coll::SuiteOptions& suite) {
  if (flags.modes.empty()) return {};
  suite.modes = {coll::Mode::back_to_back};
  for (const auto& name : flags.modes) {
    bool known = false;
    for (const auto mode :
         {coll::Mode::back_to_back, coll::Mode::events, coll::Mode::blocking, coll::Mode::graph}) {
      if (name != coll::name_of(mode)) continue;
      known = true;
      suite.modes.push_back(mode);
    }
    if (!known)
      return tl::unexpected(
          usage(fmt::format("there is no mode '{}'", printable(name)), "back-to-back events blocking graph"));
  }
  return {};
}

Result<Asked> asked_from(const BenchOptions& options, const CollFlags& flags) {
  Asked asked;
  auto& suite = asked.suite;
  auto ok = read_words(options.gpus, asked);
  if (ok) ok = read_sizes(flags, suite);
  if (ok) ok = read_modes(flags, suite);
  if (!ok) return tl::unexpected(ok.error());
  const auto type = coll::type_from(flags.type);
  if (!type)
    return tl::unexpected(
        usage(fmt::format("there is no type '{}'", printable(flags.type)), names_of(coll::all_types())));
  const auto reduction = coll::reduction_from(flags.reduction);
  if (!reduction)
    return tl::unexpected(usage(fmt::format("there is no reduction '{}'", printable(flags.reduction)),
                                names_of(coll::all_reductions())));
  suite.type = *type, suite.reduction = *reduction;
  suite.root = flags.root;
  suite.iterations = flags.iterations, suite.warmup = flags.warmup;
  suite.check = !flags.no_check;
  suite.out_of_place = flags.place != "in", suite.in_place = flags.place != "out";
  suite.cell_seconds = options.seconds;
  suite.limit_seconds = options.limit_seconds;
  return asked;
}

class CollRun {
 public:
  CollRun(const BenchOptions& options, const CollFlags& flags, const JobFlags& job, const Globals& globals,
          Asked asked)
      : options_(options), flags_(flags), globals_(globals), asked_(std::move(asked)), progress_(globals) {
    job_ = {job.rendezvous, job.rank, job.ranks, options.limit_seconds};
    run_.suite = "coll";
    run_.date = utc_now();
    run_.command = command_line();
  }
  ~CollRun() {
    done_ = true;
    if (guard_.joinable()) guard_.join();
  }

  int go() {
    const auto place = launch::job_place(environment_, job_);
    if (!place) return report(place.error());
    place_ = *place;
    const bool speaks = place_.rank == 0;
    if (auto ok = flags_.backend == "mpi" ? start_mpi() : start_nccl(); !ok)
      return give_up(ok.error(), speaks);
    if (speaks) machine();
    const auto measured = coll::run_suite(*backend_, *peers_, asked_.suite, *session_,
                                          [this](const coll::Cell& cell) { keep(cell); });
    session_->idle();
    progress_.clear();
    if (!measured) lose(measured.error());
    return finish(speaks || (lost_ && lost_root_));
  }

 private:
  // What cannot be had here is waived, with the reason; all processes then end alike.
  int give_up(const Error& error, bool speaks) {
    progress_.clear();
    if (peers_) peers_->fail_all(error);
    if (error.code == Errc::usage || error.code == Errc::malformed)
      return speaks ? report(error) : int{kUsage};
    if (!speaks) {
      if (error.code == Errc::timed_out || error.code == Errc::io) return report(error);
      return kUnknown;
    }
    model::Measurement m;
    m.name = "coll";
    m.unit = "seconds";
    const bool lost = error.code == Errc::timed_out || error.code == Errc::io;
    m.status = lost ? model::MeasureStatus::failed : model::MeasureStatus::waived;
    m.why = error.text;
    run_.results.push_back(std::move(m));
    if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
    const int written = write_result(globals_, document());
    return written != kOk ? written : status_of(run_, options_.fail_on);
  }

  Result<void> start_session() {
    watchdog_ = std::make_unique<measure::Watchdog>(
        [this](const std::string& step, double limit) { hang(step, limit); });
    measure::Session::Hooks hooks;
    hooks.stop = [] { return interrupted(); };
    hooks.progress = [this](const std::string& step) { progress_(step); };
    hooks.watchdog = watchdog_.get();
    // The exchanges within a step have the limit themselves and tell more.
    hooks.step_limit_seconds = options_.limit_seconds * 1.5 + 5;
    session_ = std::make_unique<measure::Session>(measure::Policy(), hooks);
    end_in_order_on_interrupt();
    guard_ = std::thread([this] { guard(); });
    return {};
  }

  // A collective cannot be left from inside: when the run was interrupted and does not end in order, what is
  // there is written and the process ends.
  void guard() {
    int patience = 6;  // launchers kill soon after they ask
    while (!done_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (!interrupted() || --patience > 0) continue;
      const std::lock_guard lock(mutex_);
      if (done_) return;
      run_.interrupted = true;
      if (place_.rank == 0) write_result(globals_, document());
      std::_Exit(kInterrupted);
    }
  }

  void hang(const std::string& step, double limit) {
    const std::lock_guard lock(mutex_);
    progress_.clear();
    const auto text = fmt::format("rank {} on {}: '{}' did not end within {:g} s", place_.rank,
                                  peers::host_name(), step, limit);
    fmt::print(stderr,
               "topotune: bench coll: {}\nhint: another rank hangs, or its GPU or network does; --limit "
               "SECONDS waits longer\n",
               text);
    add_failure(text);
    if (place_.rank == 0) write_result(globals_, document());
    std::_Exit(kError);
  }

  void add_failure(const std::string& text) {
    model::Measurement m;
    m.name = "coll";
    m.unit = "seconds";
    m.status = model::MeasureStatus::failed;
    m.why = text;
    run_.results.push_back(std::move(m));
  }

  void lose(const Error& error) {
    lost_ = true;
    lost_root_ = place_.rank == 1 && peers_->size() > 1 &&
                 error.text.find(peers_->at(0).to_string() + " ended") != std::string::npos;
    const std::lock_guard lock(mutex_);
    add_failure(error.text);
    if (place_.rank == 0 || error.text.find("ended") != std::string::npos) {
      fmt::print(stderr, "topotune: bench coll: {}\n", error.text);
      if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
    }
  }

  void keep(const coll::Cell& measured) {
    auto cell = measured;
    const auto questions = coll::questions_of(asked_.suite);
    for (std::size_t i = 0; i < choices_.size() && i < questions.size(); ++i)
      if (same(questions[i], cell.question)) cell.choice = choices_[i];
    const std::lock_guard lock(mutex_);
    run_.results.push_back(coll::measurement_of(cell));
    cells_.push_back(std::move(cell));
  }

  static bool same(const coll::Question& a, const coll::Question& b) {
    return a.op == b.op && a.bytes == b.bytes && a.in_place == b.in_place;
  }

  Result<void> start_mpi() {
    auto made =
        mpi::start(environment_("OMPI_COMM_WORLD_SIZE").has_value() || environment_("PMIX_RANK").has_value()
                       ? mpi::Flavour::openmpi
                   : environment_("PMI_SIZE") ? mpi::Flavour::mpich
                                              : mpi::Flavour::any,
                   largest());
    if (!made) return tl::unexpected(made.error());
    backend_ = std::move(made->backend);
    peers_ = std::move(made->peers);
    place_.rank = peers_->rank(), place_.size = peers_->size();
    if (auto ok = start_session(); !ok) return ok;
    return introduce();
  }

  std::size_t largest() const {
    return asked_.suite.sizes.empty() ? 0 : *std::ranges::max_element(asked_.suite.sizes);
  }

  Result<void> start_nccl() {
    auto peers = launch::meet_job(environment_, job_, place_);
    if (!peers) return tl::unexpected(peers.error());
    peers_ = std::move(*peers);
    if (place_.launcher.empty() && peers_->size() > 1) count_locals();
    auto library = nccl::Library::load();
    if (!library) return tl::unexpected(library.error());
    library_ = *library;
    if (!flags_.no_log) learn_choices();
    if (auto ok = start_session(); !ok) return ok;
    session_->step("opening the GPUs");
    const auto gpus = open_gpus();
    if (!gpus) return tl::unexpected(gpus.error());
    session_->step("making the communicators");
    auto group = make_group(*peers_, *gpus);
    if (!group) return tl::unexpected(group.error());
    init_seconds_ = (*group)->init_seconds();
    backend_ = std::move(*group);
    return introduce();
  }

  // Without a launcher: its place among the processes of its host.
  void count_locals() {
    const auto& host = peers_->at(place_.rank).host;
    place_.local = 0;
    int size = 0;
    for (const auto& peer : peers_->all()) {
      if (peer.host != host) continue;
      if (peer.rank < place_.rank) ++place_.local;
      ++size;
    }
    place_.local_size = size;
  }

  // This process's GPUs: all or the chosen ones of the only process of a node, else the local rank's.
  Result<std::vector<const cuda::Gpu*>> open_gpus() {
    auto machine = cuda::open_machine([](const std::string&) { return std::string(); });
    if (!machine) return tl::unexpected(machine.error());
    cuda_ = std::move(*machine);
    std::vector<const cuda::Gpu*> all;
    for (const auto& gpu : cuda_->gpus) {
      if (asked_.gpus.empty() || std::ranges::find(asked_.gpus, gpu.index) != asked_.gpus.end())
        all.push_back(&gpu);
    }
    for (const int number : asked_.gpus)
      if (std::ranges::find(cuda_->gpus, number, &cuda::Gpu::index) == cuda_->gpus.end())
        return fail(Errc::not_found, "there is no GPU{} here: CUDA shows {} GPUs", number,
                    cuda_->gpus.size());
    if (all.empty())
      return fail(Errc::unsupported, "no GPU can be used: {}",
                  cuda_->absent.empty() ? std::string("none was found") : cuda_->absent.front().why);
    const bool alone = place_.size == 1 || place_.local_size == 1;
    const auto each =
        static_cast<std::size_t>(flags_.gpus_per_process.value_or(alone ? static_cast<int>(all.size()) : 1));
    const auto first = all.size() == each ? 0 : static_cast<std::size_t>(place_.local) * each;
    if (first + each > all.size())
      return fail(Errc::not_found,
                  "rank {} on {} is local rank {} with {} GPU{} a process, but the host has {}", place_.rank,
                  peers::host_name(), place_.local, each, each == 1 ? "" : "s", all.size());
    return std::vector<const cuda::Gpu*>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                         all.begin() + static_cast<std::ptrdiff_t>(first + each));
  }

  // Ranks follow each other by process. The first process makes the id that all need.
  Result<std::unique_ptr<nccl::Group>> make_group(peers::Peers& peers,
                                                  const std::vector<const cuda::Gpu*>& gpus) {
    const auto counts = coll::share(peers, std::vector<double>{static_cast<double>(gpus.size())},
                                    "number of GPUs", options_.limit_seconds);
    if (!counts) return tl::unexpected(counts.error());
    nccl::Place place;
    for (int r = 0; r < peers.size(); ++r) {
      const int n = static_cast<int>((*counts)[static_cast<std::size_t>(r)][0]);
      if (r < peers.rank()) place.first_rank += n;
      place.ranks += n;
    }
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
    if (ids->front().size() != sizeof place.id.internal)
      return fail(Errc::malformed, "rank 0 sent no NCCL id");
    std::ranges::copy(ids->front(), place.id.internal);
    nccl::GroupOptions options;
    options.buffer_bytes = largest();
    options.min_ctas = flags_.min_ctas, options.max_ctas = flags_.max_ctas;
    options.registered = flags_.registered;
    if (peers.size() > 1) options.news = [&peers] { return peers.news(); };
    if (asked_.suite.root >= place.ranks)
      return tl::unexpected(
          usage(fmt::format("root {} is none of {} ranks", asked_.suite.root, place.ranks), "-r 0"));
    return nccl::Group::make(library_, *cuda_, gpus, place, options);
  }

  // A child process makes each call once with NCCL's log on; nothing is known when that fails.
  void learn_choices() {
    const auto questions = coll::questions_of(asked_.suite);
    const auto meeting = invite();
    const auto log =
        !meeting ? Result<std::string>(tl::unexpected(meeting.error()))
                 : nccl::log_of([&] { return run_logged(*meeting, questions); }, options_.limit_seconds * 2);
    // The number of ranks is known later; the log's lines are matched then.
    if (log)
      log_ = *log;
    else
      no_choices_ = log.error().text;
  }

  Result<peers::Meeting> invite() {
    peers::Meeting m;
    m.rank = peers_->rank(), m.size = peers_->size();
    m.limit_seconds = options_.limit_seconds;
    if (m.size == 1) return m;
    std::string mine;
    if (m.rank == 0) {
      const auto listener = peers::listen_anywhere();
      if (!listener) return tl::unexpected(listener.error());
      m.listener = listener->fd;
      mine = fmt::format("{}", listener->port);
    }
    const auto ports = peers_->exchange(mine, "a second port", options_.limit_seconds);
    if (!ports) return tl::unexpected(ports.error());
    m.port = parse_int<int>(ports->front()).value_or(0);
    const auto how = peers_->how();  // "TCP host:port"
    m.host = how.substr(4, how.rfind(':') - 4);
    return m;
  }

  Result<void> run_logged(const peers::Meeting& meeting, const std::vector<coll::Question>& questions) {
    std::unique_ptr<peers::Peers> peers = peers::alone();
    if (meeting.size > 1) {
      auto met = peers::meet(meeting);
      if (!met) return tl::unexpected(met.error());
      peers = std::move(*met);
    }
    const auto gpus = open_gpus();
    if (!gpus) return tl::unexpected(gpus.error());
    auto group = make_group(*peers, *gpus);
    if (!group) return tl::unexpected(group.error());
    for (const auto& q : questions) {
      if ((*group)->cannot(q, coll::Mode::back_to_back)) continue;
      if (auto ran = (*group)->run(q, 1, coll::Mode::back_to_back); !ran) return tl::unexpected(ran.error());
    }
    return {};
  }

  // Who takes part, by rank.
  Result<void> introduce() {
    std::string mine;
    for (const auto& local : backend_->local())
      mine += fmt::format("{}\t{}\t{}\n", local.rank, local.device, local.detail);
    const auto all = peers_->exchange(mine, "names of GPUs", options_.limit_seconds);
    if (!all) return tl::unexpected(all.error());
    cast_.library = backend_->name();
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
    if (!log_.empty()) choices_ = nccl::choices_in(log_, coll::questions_of(asked_.suite), backend_->ranks());
    return {};
  }

  void machine() {
    session_->step("reading the machine");
    if (const auto input = load_input("live", globals_)) run_.machine = fingerprint(input->machine);
    std::vector<std::string> hosts;
    for (const auto& m : cast_.members)
      if (std::ranges::find(hosts, m.host) == hosts.end()) hosts.push_back(m.host);
    run_.machine.emplace_back("library", backend_->name());
    run_.machine.emplace_back("library_file", flags_.backend == "mpi" ? "" : library_.file);
    run_.machine.emplace_back("ranks", std::to_string(backend_->ranks()));
    run_.machine.emplace_back("hosts", fmt::format("{}", fmt::join(hosts, " ")));
    run_.machine.emplace_back("met_by", peers_->how());
  }

  std::string place_text(int rank) const {
    for (const auto& m : cast_.members)
      if (m.rank == rank) return fmt::format("rank {} ({} on {})", rank, m.device, m.host);
    return fmt::format("rank {}", rank);
  }

  void judge() {
    run_.models = coll::models_of(cells_);
    for (auto& j : coll::judge_stragglers(cells_, [this](int rank) { return place_text(rank); }))
      run_.judgements.push_back(std::move(j));
    if (!no_choices_.empty())
      run_.judgements.push_back({model::Severity::info, "algorithms", "unknown: " + no_choices_});
    if (init_seconds_ > 0)
      run_.judgements.push_back(
          {model::Severity::info, "communicators", fmt::format("made in {:.3f} s", init_seconds_)});
  }

  std::string document() {
    run_.seconds = measure::monotonic_seconds() - start_;
    if (globals_.json) return emit::measurement_json(run_);
    if (options_.csv) return emit::measurement_csv(run_);
    if (flags_.format == "nccl-tests" && !cells_.empty())
      return coll::nccl_tests_text(cells_, asked_.suite, cast_);
    auto rest = run_;
    std::erase_if(rest.results, [](const auto& m) { return m.name != "coll"; });
    std::string out = coll::table_text(cells_, asked_.suite, cast_);
    for (const auto& m : rest.results) out += fmt::format("{}: {}\n", name_of(m.status), m.why);
    for (const auto& j : run_.judgements)
      out += fmt::format("{}: {}: {}\n", name_of(j.severity), j.subject, j.text);
    return out;
  }

  int finish(bool speaks) {
    done_ = true;
    if (guard_.joinable()) guard_.join();
    run_.interrupted = interrupted();
    judge();
    if (speaks) {
      auto globals = globals_;
      if (lost_root_ && !globals.output.empty()) globals.output += fmt::format(".rank{}", place_.rank);
      if (const int written = write_result(globals, document()); written != kOk) return written;
      return status_of(run_, options_.fail_on);
    }
    return lost_ ? int{kError} : run_.interrupted ? int{kInterrupted} : int{kOk};
  }

  const BenchOptions& options_;
  const CollFlags& flags_;
  const Globals& globals_;
  Asked asked_;
  Progress progress_;
  double start_ = measure::monotonic_seconds();
  launch::Environment environment_ = launch::process_environment();
  launch::JobOptions job_;
  launch::JobPlace place_;
  std::unique_ptr<measure::Watchdog> watchdog_;
  std::unique_ptr<measure::Session> session_;
  std::unique_ptr<peers::Peers> peers_;
  nccl::Library library_;
  std::unique_ptr<cuda::Machine> cuda_;
  std::unique_ptr<coll::Backend> backend_;
  std::string log_, no_choices_;
  std::vector<std::optional<coll::Choice>> choices_;
  coll::Cast cast_;
  std::mutex mutex_;  // of the results
  std::vector<coll::Cell> cells_;
  model::MeasurementRun run_;
  double init_seconds_ = 0;
  bool lost_ = false, lost_root_ = false;
  std::atomic<bool> done_ = false;
  std::thread guard_;
};

}  // namespace

void add_job_flags(CLI::App& verb, JobFlags& flags) {
  verb.add_option("--rendezvous", flags.rendezvous, "where the processes meet: address of rank 0")
      ->type_name("HOST:PORT")
      ->group("Several processes");
  verb.add_option("--rank", flags.rank, "this process's rank, without a launcher")
      ->type_name("N")
      ->group("Several processes");
  verb.add_option("--ranks", flags.ranks, "number of processes, without a launcher")
      ->type_name("N")
      ->group("Several processes");
}

void add_coll_flags(CLI::App& verb, CollFlags& flags) {
  const char* const group = "Collectives (bench coll)";
  verb.add_option("-b,--min-bytes", flags.begin, "first size (8)")->type_name("SIZE")->group(group);
  verb.add_option("-e,--max-bytes", flags.end, "last size (128M)")->type_name("SIZE")->group(group);
  verb.add_option("-f,--step-factor", flags.factor, "factor from size to size (2)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 30))
      ->group(group);
  verb.add_option("-i,--step-bytes", flags.step_bytes, "step from size to size instead")
      ->type_name("SIZE")
      ->group(group);
  verb.add_option("-n,--iters", flags.iterations, "iterations of one loop (20)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->group(group);
  verb.add_option("-w,--warmup-iters", flags.warmup, "iterations before (5)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
      ->group(group);
  verb.add_option("-d,--datatype", flags.type, "float32, bfloat16, ...")->type_name("T")->group(group);
  verb.add_option("--redop", flags.reduction, "sum prod max min avg")->type_name("OP")->group(group);
  verb.add_option("-r,--root", flags.root, "rank that sends or receives alone")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
      ->group(group);
  verb.add_option("-g,--gpus-per-process", flags.gpus_per_process,
                  "GPUs of one process (all of them, where a host has one process; else 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  verb.add_option("--place", flags.place, "out, in or both: whether the result lands where the data were")
      ->check(CLI::IsMember({"out", "in", "both"}))
      ->group(group);
  verb.add_option("--modes", flags.modes, "back-to-back events blocking graph (all)")
      ->delimiter(',')
      ->type_name("M")
      ->group(group);
  verb.add_option("--min-ctas", flags.min_ctas, "least thread blocks (channels) of NCCL")
      ->type_name("N")
      ->group(group);
  verb.add_option("--max-ctas", flags.max_ctas, "most thread blocks (channels) of NCCL")
      ->type_name("N")
      ->group(group);
  verb.add_flag("--registered", flags.registered, "register the buffers with NCCL")->group(group);
  verb.add_option("--backend", flags.backend, "nccl, or mpi: the same over MPI in host memory")
      ->check(CLI::IsMember({"nccl", "mpi"}))
      ->group(group);
  verb.add_option("--format", flags.format, "table, or nccl-tests: its columns")
      ->check(CLI::IsMember({"table", "nccl-tests"}))
      ->group(group);
  verb.add_flag("--no-check", flags.no_check, "do not compare the data")->group(group);
  verb.add_flag("--no-log", flags.no_log, "do not ask NCCL first which algorithms it chooses")->group(group);
}

int bench_coll(const BenchOptions& options, const CollFlags& flags, const JobFlags& job,
               const Globals& globals) {
  auto asked = asked_from(options, flags);
  if (!asked) return report(asked.error());
  CollRun run(options, flags, job, globals, std::move(*asked));
  return run.go();
}

}  // namespace topotune::cli
