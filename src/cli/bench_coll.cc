#include "cli/bench_coll.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/job_run.h"
#include "coll/suite.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "nccl/choices.h"
#include "peers/tcp.h"

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
    if (const auto number = gpu_number(word)) {
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

// --bytes names each size; else they go from -b to -e.
Result<void> read_sizes(const std::string& list, const CollFlags& flags, coll::SuiteOptions& suite) {
  for (const auto part : list.empty() ? std::vector<std::string_view>() : split(list, ',')) {
    const auto size = size_of(std::string(part), "--bytes");
    if (!size) return tl::unexpected(size.error());
    suite.sizes.push_back(*size);
  }
  if (!list.empty()) return {};
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
  if (ok) ok = read_sizes(options.bytes, flags, suite);
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
  suite.graph_launches = flags.graph_launches;
  suite.iterations = flags.iterations, suite.warmup = flags.warmup;
  suite.check = !flags.no_check;
  suite.out_of_place = flags.place != "in", suite.in_place = flags.place != "out";
  suite.cell_seconds = options.seconds;
  suite.limit_seconds = options.limit_seconds;
  suite.budget_seconds = flags.budget;
  return asked;
}

class CollRun : private JobRun {
 public:
  CollRun(const BenchOptions& options, const CollFlags& flags, const JobFlags& job, const Globals& globals,
          Asked asked)
      : JobRun("coll", options, job, globals), flags_(flags), asked_(std::move(asked)) {}
  ~CollRun() override { end_session(); }

  int go() {
    if (auto ok = find_place(); !ok) return report(ok.error());
    if (auto ok = flags_.backend == "mpi" ? start_mpi() : start_nccl(); !ok) return give_up(ok.error());
    if (place_.rank == 0) describe_machine(flags_.backend == "mpi" ? "" : library_.file);
    const auto measured = coll::run_suite(*backend_, *peers_, asked_.suite, *session_,
                                          [this](const coll::Cell& cell) { keep(cell); });
    session_->idle();
    progress_.clear();
    if (!measured) lose(measured.error());
    {
      const std::lock_guard lock(mutex_);
      judge();
    }
    if (flags_.backend != "mpi") close_communicators([this] { backend_.reset(); });
    end_session();
    return finish();
  }

 private:
  void keep(const coll::Cell& measured) {
    auto cell = measured;
    const auto questions = coll::questions_of(asked_.suite);
    for (std::size_t i = 0; i < choices_.size() && i < questions.size(); ++i)
      if (same(questions[i], cell.question)) cell.choice = choices_[i];
    {
      const std::lock_guard lock(mutex_);
      run_.results.push_back(coll::measurement_of(cell));
      cells_.push_back(std::move(cell));
    }
    keep_partial();
  }

  static bool same(const coll::Question& a, const coll::Question& b) {
    return a.op == b.op && a.bytes == b.bytes && a.in_place == b.in_place;
  }

  Result<void> start_mpi() {
    auto made = meet_by_mpi(largest());
    if (!made) return tl::unexpected(made.error());
    backend_ = std::move(made->backend);
    return introduce(backend_->name(), backend_->local());
  }

  std::size_t largest() const {
    return asked_.suite.sizes.empty() ? 0 : *std::ranges::max_element(asked_.suite.sizes);
  }

  Result<void> start_nccl() {
    if (auto ok = meet_for_nccl(); !ok) return ok;
    if (!flags_.no_log) learn_choices();
    start_session();
    session_->step("opening the GPUs");
    const auto gpus = open_gpus(asked_.gpus, flags_.gpus_per_process);
    if (!gpus) return tl::unexpected(gpus.error());
    session_->step("making the communicators");
    auto group = make_group(*peers_, *gpus, group_options());
    if (!group) return tl::unexpected(group.error());
    init_seconds_ = (*group)->init_seconds();
    backend_ = std::move(*group);
    if (asked_.suite.root >= backend_->ranks())
      return tl::unexpected(
          usage(fmt::format("root {} is none of {} ranks", asked_.suite.root, backend_->ranks()), "-r 0"));
    if (auto ok = introduce(backend_->name(), backend_->local()); !ok) return ok;
    if (!log_.empty()) choices_ = nccl::choices_in(log_, coll::questions_of(asked_.suite), backend_->ranks());
    return {};
  }

  nccl::GroupOptions group_options() const {
    nccl::GroupOptions options;
    options.buffer_bytes = largest();
    options.min_ctas = flags_.min_ctas, options.max_ctas = flags_.max_ctas;
    options.registered = flags_.registered;
    return options;
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
    m.limit_seconds = options_.limit_seconds, m.stop = interrupted;
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
    const auto gpus = open_gpus(asked_.gpus, flags_.gpus_per_process);
    if (!gpus) return tl::unexpected(gpus.error());
    auto group = make_group(*peers, *gpus, group_options());
    if (!group) return tl::unexpected(group.error());
    for (const auto& q : questions) {
      if ((*group)->cannot(q, coll::Mode::back_to_back)) continue;
      if (auto ran = (*group)->run(q, 1, coll::Mode::back_to_back); !ran) return tl::unexpected(ran.error());
    }
    return {};
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

  std::string document(const model::MeasurementRun& run) const override {
    if (globals_.json) return emit::measurement_json(run);
    if (options_.csv) return emit::measurement_csv(run);
    const std::string end(run.interrupted ? emit::kInterruptedText : "");
    if (flags_.format == "nccl-tests" && !cells_.empty())
      return coll::nccl_tests_text(cells_, asked_.suite, cast_) + (run.interrupted ? "# " : "") + end;
    std::string out = coll::table_text(cells_, asked_.suite, cast_);
    for (const auto& m : run.results)
      if (m.name == "coll") out += fmt::format("{}: {}\n", name_of(m.status), m.why);
    for (const auto& j : run.judgements)
      out += fmt::format("{}: {}: {}\n", name_of(j.severity), j.subject, j.text);
    return out + end;
  }

  const CollFlags& flags_;
  Asked asked_;
  std::unique_ptr<coll::Backend> backend_;
  std::string log_, no_choices_;
  std::vector<std::optional<coll::Choice>> choices_;
  std::vector<coll::Cell> cells_;
  double init_seconds_ = 0;
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
  verb.add_option("--budget", flags.budget,
                  "seconds for the whole sweep: what does not start by then is waived")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0))
      ->group(group);
  verb.add_option("-n,--iters", flags.iterations, "iterations of one loop (20)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->group(group);
  verb.add_option("-G,--cudagraph", flags.graph_launches,
                  "a loop is a CUDA graph of its iterations, launched N times, all of them counted, as "
                  "nccl-tests does")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000))
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
