#include <filesystem>
#include <memory>

#include "base/text.h"
#include "cli/atomic_file.h"
#include "cli/bench_frame.h"
#include "cli/cli.h"
#include "cli/tune_output.h"
#include "cli/tune_setup.h"
#include "cli/tune_table.h"
#include "emit/measurement_json.h"
#include "measure/runner.h"
#include "measure/watchdog.h"
#include "tune/machine.h"

namespace topotune::cli {

namespace {

// One run of the verb: steps, their watchdog, and the document at the end.
class Run {
 public:
  Run(const TuneOptions& options, const Globals& globals)
      : o_(options),
        globals_(globals),
        start_(measure::monotonic_seconds()),
        progress_(globals),
        watchdog_([this](const std::string& step, double limit) { hang(step, limit); }) {
    run_.suite = "tune";
    run_.date = utc_now();
    run_.command = command_line();
    hooks_.now = measure::monotonic_seconds;
    hooks_.stop = [this] { return stopped(); };
    hooks_.progress = [this](const std::string& what) { step(what); };
  }

  int go() {
    const int status = run();
    machine_.reset();
    return status;
  }

 private:
  int run() {
    end_in_order_on_interrupt();
    step("meeting the other processes");
    auto job = meet_tune_job(o_.job, o_.limit, interrupted);
    if (!job) return failed(job.error());
    job_ = std::move(*job);
    auto asked = prepared();
    if (!asked) return failed(asked.error());
    if (!job_.leads()) return follow(*asked);
    if (const auto ok = targets(); !ok) return failed(ok.error());
    const auto plan = plan_of(o_);
    if (!plan) return failed(plan.error());
    asked->buffer_bytes = plan->most_bytes();
    if (!o_.overhead.empty()) return overhead(*plan, *asked);
    return o_.check.empty() ? tune(*plan, *asked) : check(*plan, *asked);
  }

  void step(const std::string& what) {
    // What waits for other processes has a limit of its own, and names them.
    watchdog_.begin(what, job_.peers && job_.peers->size() == 1 ? o_.limit : 1.5 * o_.limit);
    progress_(what);
  }
  // Where results go, before anything is measured.
  Result<void> targets() const {
    const auto wrong = [](std::string text, std::string hint) {
      return tl::unexpected(Error{Errc::usage, std::move(text), {}, {}, {}, std::move(hint)});
    };
    if (o_.out == "-")
      return wrong("tune: --out - names no file", "a table is for a file that every rank reads");
    for (const auto& file : {o_.out, globals_.output}) {
      if (file.empty()) continue;
      if (const auto ok = can_write_file(file); !ok) return tl::unexpected(ok.error());
    }
    if (!o_.out.empty() && same_file(o_.out, globals_.output))
      return wrong(fmt::format("tune: --out and -o are one file, {}", printable(o_.out)),
                   "--out takes the table, -o what is printed or the JSON document");
    return {};
  }
  static bool same_file(const std::string& a, const std::string& b) {
    std::error_code error;
    const auto of = [&](const std::string& file) {
      return std::filesystem::weakly_canonical(std::filesystem::absolute(file), error);
    };
    return !b.empty() && of(a) == of(b);
  }
  void idle() {
    watchdog_.end();
    progress_.clear();
  }
  void say(const std::string& text) {
    if (!globals_.quiet) fmt::print(stderr, "topotune: {}\n", text);
  }
  // All processes end; the first one speaks, or those that lost it.
  int failed(const Error& error) {
    idle();
    if (interrupted() && !job_.peers) return kInterrupted;
    const bool alone = !job_.peers || job_.peers->size() == 1;
    if (!alone) job_.peers->fail_all(error);
    if (interrupted()) return closing(kInterrupted);
    if (alone || job_.leads() || error.text.find(job_.peers->at(0).to_string() + " ended") == 0)
      return closing(report(error));
    return closing(kError);
  }
  bool stopped() const { return interrupted() || (machine_ && machine_->crew && machine_->crew->stopped()); }
  // Nothing is left to write; the communicators are let go on the way out, under the watchdog.
  int closing(int status) {
    watchdog_.begin("closing the communicators", o_.limit);
    return status;
  }

  void hang(const std::string& what, double limit) {
    fmt::print(stderr,
               "\ntopotune: tune: '{}' did not end within {:g} s: a rank, the driver or a GPU hangs\n",
               printable(what), limit);
    fmt::print(stderr,
               "hint: NCCL_DEBUG=INFO topotune tune; dmesg | grep -i xid; nvidia-smi; --limit SECONDS waits "
               "longer\n");
    std::_Exit(kError);
  }

  void describe(const TuneMachine& m) {
    run_.machine = {{"gpus", fmt::format("{} x {}", m.ranks(), m.gpus.front()->name)},
                    {"fingerprint", tune::machine_fingerprint()},
                    {"nccl", m.library.version_text()},
                    {"cuda_driver", m.machine->driver.version_text()}};
    if (job_.peers->size() == 1) return;
    run_.machine.emplace_back("processes", std::to_string(job_.peers->size()));
    run_.machine.emplace_back("hosts", fmt::format("{}", fmt::join(peers::hosts_of(job_.peers->all()), " ")));
    run_.machine.emplace_back("nodes", std::to_string(m.nodes()));
  }

  // What every process of the job needs, and its environment for NCCL.
  Result<MachineRequest> prepared() {
    MachineRequest out;
    out.gpus = o_.gpus, out.gpus_per_process = o_.gpus_per_process;
    out.levels = {{}};
    out.limit_seconds = o_.limit;
    out.stop = [] { return interrupted(); };
    out.alive = [this] { watchdog_.alive(); };
    if (!o_.check.empty()) {
      auto table = load_tuning_table(o_.check);
      if (!table) return tl::unexpected(table.error());
      out.table = table->hash;
      checked_ = std::move(table->table);
    }
    const bool profiler = !o_.overhead.empty();
    const auto plugin = profiler ? find_plugin(o_.overhead, "libnccl-profiler-topotune.so")
                                 : find_plugin(o_.plugin, "libnccl-tuner-topotune.so");
    if (!plugin) return tl::unexpected(plugin.error());
    (profiler ? out.profiler : out.plugin) = *plugin;
    if (auto ok = prepare_environment(out.plugin, o_.check); !ok) return tl::unexpected(ok.error());
    if (profiler) ::setenv("NCCL_PROFILER_PLUGIN", plugin->c_str(), 1);
    // That all have this table is asked before it is used.
    if (!out.table.empty() && job_.peers->size() > 1) ::setenv("TOPOTUNE_TUNER_HASH", out.table.c_str(), 1);
    return out;
  }

  Result<void> open(const MachineRequest& request) {
    auto machine = open_tune_machine(job_, request, hooks_.progress);
    if (!machine) return tl::unexpected(machine.error());
    machine_ = std::move(*machine);
    return {};
  }

  int follow(const MachineRequest& request) {
    auto ok = open(request);
    if (ok)
      ok = follow_the_leader(*machine_, request, [this](const std::string& what) {
        what.empty() ? watchdog_.end() : watchdog_.begin(what, 1.5 * o_.limit);
      });
    if (!ok) return failed(ok.error());
    return closing(interrupted() ? kInterrupted : kOk);
  }

  // The settings of a table that is added to are those of the whole job.
  std::vector<tune::Level> levels(const std::optional<tune::Table>& other) const {
    std::vector<tune::Level> out{{}};
    if (other) {
      if (const auto ctas = ctas_of(*other)) out.push_back({ctas});
      return out;
    }
    for (const int ctas : {32, 48, 64})
      if (ctas <= o_.sm_budget) out.push_back({ctas});
    return out;
  }

  static std::optional<int> ctas_of(const tune::Table& table) {
    for (const auto& s : table.settings)
      if (s.name == "NCCL_MIN_CTAS") return s.value;
    return std::nullopt;
  }

  int tune(const TunePlan& plan, MachineRequest& asked) {
    std::optional<tune::Table> other;
    if (!o_.add.empty()) {
      auto loaded = load_tuning_table(o_.add);
      if (!loaded) return failed(loaded.error());
      other = std::move(loaded->table);
    }
    asked.levels = levels(other);
    if (const auto ok = open(asked); !ok) return failed(ok.error());
    auto& m = *machine_;
    describe(m);
    if (other) {
      if (const auto fits = fits_into(*other, m); !fits) return failed(fits.error());
    }
    tune::BackendMeasurer measurer(m.levels, m.backends(), m.steering.get(), plan.measurer);
    tune::SearchOptions search;
    search.cells = plan.cells;
    search.nodes = m.nodes();
    search.margin = o_.margin_percent / 100;
    // Opening, proving and checking count, too.
    search.budget_seconds = std::max(1.0, 0.48 * left());
    TuneOutcome outcome;
    outcome.search = tune::search(measurer, search, hooks_);
    outcome.scores = tune::score_levels(outcome.search, m.levels, search);
    outcome.level = other ? m.levels.size() - 1 : tune::best_level(outcome.scores);
    if (other) outcome.table = std::move(*other);
    prove(outcome, m, plan, search);
    table_of(outcome, m, plan.reach);
    tune::BackendMeasurer checker(m.levels, m.backends(), m.steering.get(), plan.measurer);
    verify(outcome, m, checker);
    if (!outcome.search.left.empty()) m.notes.push_back(left_text(outcome.search.left));
    idle();
    return closing(finish(outcome, m));
  }

  double left() const { return o_.budget - (measure::monotonic_seconds() - start_); }

  // The search's answers once more, in communicators made anew. Sizes that stay slower than the default at a
  // level are named; many, or much slower ones, refuse it.
  void prove(TuneOutcome& outcome, TuneMachine& m, const TunePlan& plan, const tune::SearchOptions& search) {
    const auto prove_level = [&](std::size_t level, double seconds) {
      tune::ProveOptions options;
      options.nodes = search.nodes;
      options.margin = search.margin;
      options.same = level == 0;
      options.budget_seconds = std::max(0.5, seconds);
      outcome.level = level;
      FreshGroups groups(m, m.levels[level], plan.most_bytes(), plan.measurer, false);
      auto proved = tune::prove(groups, tune::answers_of(outcome.search, level, search), options, hooks_);
      m.notes.push_back(
          fmt::format("proved in {} communicators, made in {:.1f} s", groups.made(), groups.seconds()));
      if (!proved) m.notes.push_back("nothing was proved: " + proved.error().text);
      outcome.proved = proved ? std::move(*proved) : tune::Proved{};
    };
    prove_level(outcome.level, (outcome.level > 0 ? 0.8 : 0.9) * left());
    if (outcome.level == 0) return;
    const int blocks = *m.levels[outcome.level].ctas;
    const auto slow = tune::still_slower(outcome.proved);
    for (const auto* p : slow)
      m.notes.push_back(fmt::format("{} thread blocks: {} {} stays slower than the default, x {:.3f}", blocks,
                                    tune::name_of(p->cell.collective), p->cell.bytes, p->after.worst()));
    const auto refused = tune::refusal(outcome.proved);
    if (refused.empty()) return;
    if (!o_.add.empty()) {
      run_.judgements.push_back(
          {model::Severity::warn, "run",
           fmt::format(
               "{} thread blocks, which {} sets, are too many for these communicators: {}. Tune those "
               "that it was made for with --sm-budget 24, and add these again",
               blocks, printable(o_.add), refused)});
      return;
    }
    m.notes.push_back(fmt::format("{} thread blocks: {}: not taken", blocks, refused));
    prove_level(0, 0.9 * left());
  }

  // Whether the job that uses the table can be this one, too.
  Result<void> fits_into(const tune::Table& table, const TuneMachine& m) const {
    const auto differs = [&](const std::string& what, const std::string& theirs, const std::string& here) {
      return tl::unexpected(Error{Errc::unsupported,
                                  fmt::format("it was measured with {} {}, this is {}", what, theirs, here),
                                  o_.add,
                                  {},
                                  {},
                                  "a table is for one kind of machine and one NCCL: tune all of it again"});
    };
    if (table.nccl != m.library.version_text()) return differs("NCCL", table.nccl, m.library.version_text());
    if (table.machine != fingerprint()) return differs("GPUs", table.machine, fingerprint());
    const auto ctas = ctas_of(table);
    if (m.levels.back().ctas != ctas)
      return fail(Errc::unsupported, "communicators with {} thread blocks, as {} sets, could not be made: {}",
                  ctas.value_or(0), o_.add, m.notes.empty() ? "" : m.notes.back());
    return {};
  }

  static std::string fingerprint() {
    const auto text = tune::machine_fingerprint();
    return text.empty() ? "unknown" : text;
  }

  // What is proved now replaces what a table that is added to says of the same sizes of these communicators.
  void table_of(TuneOutcome& outcome, TuneMachine& m, double reach) {
    auto& table = outcome.table;
    table.machine = fingerprint();
    table.nccl = m.library.version_text();
    table.created = run_.date;
    table.tool = "topotune-" TOPOTUNE_VERSION;
    if (const auto& ctas = m.levels[outcome.level].ctas; ctas && o_.add.empty()) {
      table.settings.push_back({"NCCL_MIN_CTAS", *ctas});
      table.settings.push_back({"NCCL_MAX_CTAS", *ctas});
    }
    const auto ranks = static_cast<std::uint32_t>(m.ranks()), nodes = m.nodes();
    const auto gone = tune::make_room(table, outcome.proved.proofs, ranks, nodes, reach);
    for (const auto& r : gone)
      m.notes.push_back(fmt::format("replaced: {} {} to {}: {}", tune::name_of(r.collective),
                                    size_text(r.from), size_text(r.to), tune::text_of(r.choice)));
    const auto regions = tune::regions_of(tune::answers_of(outcome.proved.proofs), ranks, nodes, reach);
    table.regions.insert(table.regions.end(), regions.begin(), regions.end());
    for (const auto& p : outcome.proved.proofs) {
      if (!p.proved) continue;
      table.raw.push_back({p.cell.collective, p.cell.bytes, ranks, nodes, false, p.after.standard});
      table.raw.push_back({p.cell.collective, p.cell.bytes, ranks, nodes, true, p.after.tuned});
    }
  }

  // Every choice of the table once with data that are compared; a wrong one takes its region out.
  void verify(TuneOutcome& outcome, const TuneMachine& m, tune::BackendMeasurer& measurer) {
    const auto ranks = static_cast<std::uint32_t>(m.ranks()), nodes = m.nodes();
    std::erase_if(outcome.table.regions, [&](const tune::Region& region) {
      if (stopped() || region.ranks != ranks || region.nodes != nodes) return false;
      for (const auto& cell : outcome.proved.proofs) {
        if (cell.cell.collective != region.collective || cell.cell.bytes < region.from ||
            cell.cell.bytes > region.to)
          continue;
        step(fmt::format("checking {} {}", tune::name_of(cell.cell.collective), cell.cell.bytes));
        const auto right = measurer.verify(cell.cell, {outcome.level, region.choice});
        model::Measurement v;
        v.name = fmt::format("tune.verify.{}", tune::name_of(cell.cell.collective));
        v.params = {{"bytes", static_cast<std::int64_t>(cell.cell.bytes)},
                    {"ranks", static_cast<std::int64_t>(m.ranks())},
                    {"choice", tune::text_of(region.choice)}};
        v.unit = "ratio";
        v.verified = right && *right;
        v.verified_how = v.verified ? "every element compared on the GPU" : "";
        if (!v.verified) {
          v.status = right || right.error().code != Errc::io ? model::MeasureStatus::waived
                                                             : model::MeasureStatus::failed;
          v.why = right ? "nothing was compared" : right.error().text;
        } else {
          v.samples = {1, 1, 1}, v.median = 1;
        }
        const bool wrong = v.status == model::MeasureStatus::failed;
        run_.results.push_back(std::move(v));
        return wrong;
      }
      return false;
    });
  }

  int finish(const TuneOutcome& outcome, const TuneMachine& m) {
    run_.interrupted = stopped();
    run_.seconds = measure::monotonic_seconds() - start_;
    add_results(run_, outcome, m);
    const bool all_failed =
        std::ranges::all_of(outcome.search.cells, [](const auto& c) { return !c.failed.empty(); });
    const auto& lost = m.crew->lost();
    if (all_failed && !lost && !stopped()) {
      const bool none = outcome.search.cells.empty();
      const auto why =
          none ? fmt::format("no size within {:g} s", o_.budget) : outcome.search.cells.front().failed;
      return report(Error{Errc::unsupported,
                          "tune: nothing could be measured: " + why,
                          {},
                          {},
                          {},
                          none ? "--budget gives more time" : ""});
    }
    const auto written = lost ? Result<void>() : write_table(outcome);
    auto text = globals_.json ? emit::measurement_json(run_) : tune_text(outcome, m, run_.seconds);
    for (const auto& j : run_.judgements)
      if (!globals_.json && j.severity != model::Severity::info)
        text += fmt::format("{}: {}\n", j.subject, j.text);
    const int status = ended(m, write_result(globals_, text));
    return written ? status : report(written.error());
  }

  // A table that is there is worth more than one in which nothing is proved.
  Result<void> write_table(const TuneOutcome& outcome) {
    if (o_.out.empty()) return {};
    if (std::ranges::none_of(outcome.proved.proofs, &tune::Proof::proved)) {
      run_.judgements.push_back({model::Severity::warn, printable(o_.out),
                                 stopped() ? "not written, as nothing was proved"
                                           : "not written, as nothing was proved; --budget gives more time"});
      return {};
    }
    const auto text = tune::write_table(outcome.table);
    if (const auto ok = write_whole_file(o_.out, text); !ok) return tl::unexpected(ok.error());
    say(fmt::format("{}: {} regions, hash {}", printable(o_.out), outcome.table.regions.size(),
                    tune::hash_text(tune::hash_of(text))));
    return {};
  }

  // Of a run whose result was written with `status`.
  int ended(const TuneMachine& m, int status) const {
    if (status != kOk) return status;
    if (m.crew->lost()) return report(*m.crew->lost()), kError;
    const int verdict = status_of(run_, "warn");
    const auto noisy =
        std::ranges::find(run_.results, model::MeasureStatus::noisy, &model::Measurement::status);
    if (verdict == kUnknown)
      return report(
          Error{Errc::unsupported,
                "tune: no result is sure" + (noisy == run_.results.end()
                                                 ? std::string()
                                                 : fmt::format(": {}: {}", noisy->name, noisy->why)),
                {},
                {},
                {},
                "more --pairs or --budget, on GPUs and CPUs that do nothing else"});
    return verdict;
  }

  // The table as a job would use it, beside a communicator that knows nothing of it.
  int check(const TunePlan& plan, const MachineRequest& asked) {
    if (const auto ok = open(asked); !ok) return failed(ok.error());
    auto& m = *machine_;
    // A plugin that is off would compare the default with itself; of a table without regions the settings
    // remain.
    const auto said = m.steering->said();
    const bool empty = checked_.regions.empty() && said.find("has nothing for") != std::string::npos;
    if (!empty && said.find("tuner: table") == std::string::npos)
      return failed(Error{Errc::unsupported, said, {}, {}, {}, "tune again on this machine with this NCCL"});
    FreshGroups groups(m, {ctas_of(checked_)}, plan.most_bytes(), plan.measurer, true);
    const auto columns = tune::compare_instances(groups, compare_options(plan, 24), hooks_);
    if (!columns) return failed(columns.error());
    run_.judgements.push_back({model::Severity::info, "communicators",
                               fmt::format("{} were made, in {:.1f} s", groups.made(), groups.seconds())});
    run_.judgements.push_back({model::Severity::info, "plugin",
                               fmt::format("{}; {} decisions came from the table", m.steering->said(),
                                           m.steering->last().applied)});
    if (m.steering->last().applied == 0 && !checked_.regions.empty() && !stopped())
      run_.judgements.push_back({model::Severity::warn, "plugin", "no decision came from the table"});
    return closing(finish_columns(m, plan, *columns, "tune", "default", "tuned"));
  }

  // A job with and without the profiler's events, in one process.
  int overhead(const TunePlan& plan, const MachineRequest& asked) {
    if (const auto ok = open(asked); !ok) return failed(ok.error());
    auto& m = *machine_;
    auto options = plan.measurer;
    options.table_levels = {1};
    options.mode = tune::LaunchMode::stream;
    tune::BackendMeasurer measurer({{}, {}}, {m.groups[0].get(), m.groups[0].get()}, m.steering.get(),
                                   options);
    const auto columns =
        tune::compare_switched(measurer, compare_options(plan, 21), {0, {}}, {1, {}}, hooks_);
    return closing(finish_columns(m, plan, columns, "profiler", "off", "on"));
  }

  tune::CompareOptions compare_options(const TunePlan& plan, int pairs) const {
    tune::CompareOptions options;
    options.cells = plan.cells, options.held_back = plan.held_back;
    options.pairs = static_cast<std::size_t>(o_.pairs > 0 ? o_.pairs : pairs);
    options.budget_seconds = std::max(1.0, left());
    return options;
  }

  int finish_columns(const TuneMachine& m, const TunePlan& plan, const std::vector<tune::Column>& columns,
                     const std::string& name, const std::string& left, const std::string& right) {
    idle();
    auto missing = plan.cells;
    missing.insert(missing.end(), plan.held_back.begin(), plan.held_back.end());
    std::erase_if(missing, [&](const auto& cell) {
      return std::ranges::find(columns, cell, &tune::Column::cell) != columns.end();
    });
    if (!missing.empty()) run_.judgements.push_back({model::Severity::info, "run", left_text(missing)});
    describe(m);
    run_.interrupted = stopped();
    run_.seconds = measure::monotonic_seconds() - start_;
    add_results(run_, columns, name, m.ranks(), o_.mode);
    add_models(run_, columns);
    auto text = columns_text(columns, left, right);
    for (const auto& j : run_.judgements) text += fmt::format("{}: {}\n", j.subject, j.text);
    run_.judgements.push_back({model::Severity::info, "summary", summary_text(tune::summary_of(columns))});
    return ended(m, write_result(globals_, globals_.json ? emit::measurement_json(run_) : text));
  }

  const TuneOptions& o_;
  const Globals& globals_;
  TuneJob job_;
  std::unique_ptr<TuneMachine> machine_;
  tune::Table checked_;  // of --check
  double start_;
  Progress progress_;
  tune::Hooks hooks_;
  model::MeasurementRun run_;
  measure::Watchdog watchdog_;
};

}  // namespace

void add_tune(CLI::App& app, Globals& globals, int& status) {
  const auto o = std::make_shared<TuneOptions>();
  auto* verb = app.add_subcommand(
      "tune",
      "measure NCCL's choices on this machine, or in this job's nodes, and write the tuner plugin's table");
  auto* collectives = verb->add_option("--collectives", o->collectives,
                                       "all_reduce all_gather reduce_scatter broadcast reduce all_to_all")
                          ->delimiter(',')
                          ->type_name("NAME");
  auto* sizes = verb->add_option("--sizes", o->sizes, "FIRST:LAST in powers of two, or a list (1K:1G)")
                    ->type_name("SIZES");
  auto* from = verb->add_option("--from", o->from,
                                "collectives and sizes of a job: its profiles (.ttprof) or NCCL log")
                   ->delimiter(',')
                   ->type_name("FILE");
  verb->add_option("--gpus", o->gpus, "only these GPUs, by CUDA's numbers")->delimiter(',')->type_name("N");
  verb->add_option("-g,--gpus-per-process", o->gpus_per_process,
                   "GPUs of one process (all of them, where a host has one process; else 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  add_job_flags(*verb, o->job);
  verb->add_option("--budget", o->budget, "seconds in all (120)")
      ->type_name("S")
      ->check(CLI::Range(1.0, 86400.0));
  verb->add_option("--limit", o->limit, "a step, or a wait for another process, that takes longer hangs (60)")
      ->type_name("S")
      ->check(CLI::Range(1.0, 86400.0));
  auto* out = verb->add_option("--out", o->out, "write the table to FILE")->type_name("FILE");
  auto* add = verb->add_option("--add", o->add,
                               "keep what TABLE says of all but what is proved now, and its thread blocks")
                  ->type_name("TABLE");
  auto* blocks =
      verb->add_option("--sm-budget", o->sm_budget, "multiprocessors that a collective may take (32)")
          ->type_name("N")
          ->check(CLI::Range(1, 64));
  auto* margin =
      verb->add_option("--margin", o->margin_percent, "surely faster by this is worth a line, percent (1)")
          ->type_name("PCT")
          ->check(CLI::Range(0.0, 50.0));
  verb->add_option("--type", o->type, "data type (float32)")->type_name("T");
  verb->add_option("--mode", o->mode, "launches: auto (CUDA graphs up to 4 MiB), stream, graph")
      ->check(CLI::IsMember({"auto", "stream", "graph"}))
      ->type_name("MODE");
  auto* check =
      verb->add_option("--check", o->check, "measure the default and TABLE, pair by pair, instead of tuning")
          ->type_name("TABLE");
  auto* overhead =
      verb->add_option("--overhead", o->overhead, "measure with and without the events of a profiler PLUGIN")
          ->type_name("PLUGIN");
  auto* held_back =
      verb->add_flag("--held-back", o->held_back, "with --check: also sizes in between, against the model");
  auto* pairs =
      verb->add_option("--pairs", o->pairs,
                       "pairs at most: of communicators with --check (24), of samples with --overhead (21)")
          ->type_name("N")
          ->check(CLI::Range(5, 1000));
  verb->add_option("--plugin", o->plugin, "the tuner plugin, when it is not beside this program")
      ->type_name("FILE");
  verb->footer(
      "Examples:\n"
      "  topotune tune --out node.table\n"
      "  topotune tune --collectives all_reduce,all_gather --sizes 1M:1G --budget 60 --out node.table\n"
      "  topotune tune --from /dev/shm/topotune-profile-*.ttprof --out job.table\n"
      "  topotune tune --gpus 0,1,2,3 --add node.table --out node.table\n"
      "  topotune tune --sm-budget 24 --out quiet.table --json -o tune.json\n"
      "  topotune tune --check node.table --held-back\n"
      "  srun --nodes 4 --ntasks-per-node 8 topotune tune --sizes 64K:1G --budget 600 --out cluster.table\n"
      "  topotune run --tuned node.table -- python train.py");
  from->excludes(collectives)->excludes(sizes);
  check->excludes(overhead);
  for (auto* of_a_table : {out, add, blocks, margin}) {
    check->excludes(of_a_table);
    overhead->excludes(of_a_table);
  }
  verb->callback([o, &globals, &status, check, overhead, held_back, pairs] {
    if (check->count() + overhead->count() == 0)
      for (const auto* of_columns : {held_back, pairs})
        if (of_columns->count() > 0)
          throw CLI::RequiresError(of_columns->get_name(), "--check or --overhead");
    status = Run(*o, globals).go();
  });
}

}  // namespace topotune::cli
