#include "cli/bench_levels.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "base/words.h"
#include "cli/bench_frame.h"
#include "cli/child_line.h"
#include "cli/fingerprint.h"
#include "cli/input.h"
#include "cli/scratch_folder.h"
#include "coll/collective.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "host/modules.h"
#include "launch/quick.h"
#include "measure/runner.h"
#include "mixed/levels.h"
#include "net/counters.h"
#include "parse/measurement_run.h"

namespace topotune::cli {

namespace {

namespace fs = std::filesystem;

constexpr int kWaived = 3;  // a script's status: what it needs is not here

class LevelsRun {
 public:
  LevelsRun(const BenchOptions& options, const LevelsFlags& flags, const CollFlags& coll,
            const Globals& globals)
      : options_(options), flags_(flags), coll_(coll), globals_(globals), progress_(globals) {
    run_.suite = "levels";
    run_.date = utc_now();
    run_.command = command_line();
    levels_.expected_busbw_gbytes_per_s = flags.expect;
  }

  int go() {
    if (const auto made = scratch_.made(); !made) return report(made.error());
    end_in_order_on_interrupt();
    progress_("reading the machine");
    if (const auto input = load_input("live", globals_)) run_.machine = fingerprint(input->machine);
    const auto before = net::read_counters(launch::PlainHost());
    const double start = measure::monotonic_seconds();
    progress_("the training step: " + flags_.train);
    progress_.fraction(0.1);
    train();
    progress_.fraction(0.6);
    if (!interrupted()) {
      progress_("the collective alone");
      collective();
    }
    if (interrupted() && !levels_.collective) levels_.no_collective = "interrupted";
    if (interrupted() && !levels_.step) levels_.no_step = "interrupted";
    take_counters(before);
    progress_.fraction(1);
    progress_.clear();
    run_.interrupted = interrupted();
    run_.seconds = measure::monotonic_seconds() - start;
    return written();
  }

 private:
  void train() {
    ::setenv("TOPOTUNE_STEP_LOG", (scratch_.path() + "/step").c_str(), 1);
    const auto ended = run_line(flags_.train, scratch_.path() + "/train.out", flags_.train_limit);
    ::unsetenv("TOPOTUNE_STEP_LOG");
    if (!ended) {
      levels_.no_step = "--train: " + ended.error().text;
      failed_ = true;
    } else if (ended->status == kWaived) {
      levels_.no_step = ended->said.empty() ? "the script says that it cannot run here" : ended->said;
    } else if (ended->status != 0) {
      levels_.no_step = fmt::format("--train ended with status {}: {}", ended->status, ended->said);
      failed_ = true;
    }
    read_steps();
  }

  // What the ranks wrote, also of a run that did not end well.
  void read_steps() {
    std::vector<parse::StepLog> logs;
    for (const auto& file : scratch_.files()) {
      if (!fs::path(file).filename().string().starts_with("step.")) continue;
      auto text = text_of(file);
      text.resize(
          text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);  // a rank may have died writing
      auto log = parse::parse_step_log(text);
      if (!log) {
        if (levels_.no_step.empty())
          levels_.no_step = fmt::format("{}:{}: {}", fs::path(file).filename().string(),
                                        log.error().line.value_or(0), log.error().text);
        failed_ = true;
        return;
      }
      logs.push_back(std::move(*log));
    }
    levels_.step = mixed::summarise_steps(logs);
    if (!levels_.step && levels_.no_step.empty()) {
      levels_.no_step =
          logs.empty() ? "the script wrote no file $TOPOTUNE_STEP_LOG.RANK" : "fewer than three steps";
      failed_ = true;
    }
  }

  std::string collective_line(const std::string& file) const {
    const auto program = host::program_file();
    auto bytes =
        static_cast<std::size_t>(levels_.step ? levels_.step->call_bytes().value_or(1 << 20) : 1 << 20);
    bytes = std::clamp<std::size_t>(bytes / 1024 * 1024, 1024, std::size_t{1} << 30);
    const auto op =
        levels_.step && coll::op_from(levels_.step->op) ? levels_.step->op : std::string("all_reduce");
    constexpr std::size_t kLargest = std::size_t{64} << 20;
    const auto step = bytes < kLargest ? kLargest - bytes : 1;  // two sizes: the step's and a large one
    const auto largest = std::max(bytes, kLargest);
    return fmt::format(
        "{} {} bench coll {} -b {} -e {} -i {} --place out --modes blocking --backend {} --limit {} "
        "--no-log --no-check --json -o '{}'",
        flags_.launch, single_quoted(program), op, bytes, largest, step, coll_.backend,
        options_.limit_seconds, file);
  }

  void collective() {
    const auto file = scratch_.path() + "/coll.json";
    const auto ended =
        run_line(collective_line(file), scratch_.path() + "/coll.out", options_.limit_seconds * 4);
    if (!ended) return void(levels_.no_collective = "bench coll " + ended.error().text);
    const auto run = parse::parse_measurement_run(text_of(file));
    if (!run) return void(levels_.no_collective = ended->said.empty() ? run.error().text : ended->said);
    take(*run);
  }

  static std::optional<double> extra(const model::Measurement& m, const char* name) {
    const auto at = std::ranges::find(m.extra, name, &model::Param::name);
    const auto* value = at == m.extra.end() ? nullptr : std::get_if<double>(&at->value);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }

  void take(const model::MeasurementRun& run) {
    mixed::CollectiveAlone alone;
    for (const auto& m : run.results) {
      const auto busbw = extra(m, "busbw_gbytes_per_s");
      if (!m.median || !busbw) {
        if (levels_.no_collective.empty()) levels_.no_collective = m.why;
        continue;
      }
      if (alone.seconds <= 0) alone.seconds = *m.median, alone.busbw_gbytes_per_s = *busbw;
      alone.largest_busbw_gbytes_per_s = std::max(alone.largest_busbw_gbytes_per_s, *busbw);
    }
    if (alone.seconds > 0)
      levels_.collective = alone;
    else if (levels_.no_collective.empty())
      levels_.no_collective = "bench coll measured nothing";
  }

  void take_counters(const std::map<std::string, double>& before) {
    auto added = net::added(before, net::read_counters(launch::PlainHost()));
    if (added.empty())
      levels_.no_counters = "this host shows none";
    else
      levels_.counters = std::move(added);
  }

  int written() {
    const auto verdict = mixed::verdict_of(levels_);
    run_.results = mixed::measurements_of(levels_);
    if (failed_ && !levels_.step)
      for (auto& m : run_.results)
        if (m.name == "levels.step") m.status = model::MeasureStatus::failed;
    const bool loses = verdict.level != "none" && verdict.level != "unknown";
    run_.judgements.push_back(
        {loses ? model::Severity::warn : model::Severity::info, "level " + verdict.level, verdict.text});
    if (!verdict.unknown.empty())
      run_.judgements.push_back(
          {model::Severity::info, "unknown", fmt::format("{}", fmt::join(verdict.unknown, "; "))});
    if (const int status = write_result(globals_, document()); status != kOk) return status;
    const int status = status_of(run_, options_.fail_on);
    return status == kOk && verdict.level == "unknown" ? int{kUnknown} : status;
  }

  std::string document() const {
    if (globals_.json) return emit::measurement_json(run_);
    if (options_.csv) return emit::measurement_csv(run_);
    auto out = mixed::levels_text(levels_);
    for (const auto& j : run_.judgements)
      out += fmt::format("{}: {}: {}\n", name_of(j.severity), j.subject, j.text);
    if (run_.interrupted) out += emit::kInterruptedText;
    return out;
  }

  const BenchOptions& options_;
  const LevelsFlags& flags_;
  const CollFlags& coll_;
  const Globals& globals_;
  Progress progress_;
  ScratchFolder scratch_;
  mixed::Levels levels_;
  model::MeasurementRun run_;
  bool failed_ = false;
};

}  // namespace

void add_levels_flags(CLI::App& verb, LevelsFlags& flags) {
  const char* const group = "Four levels (bench levels)";
  verb.add_option(
          "--train", flags.train,
          "command line of a training script that writes $TOPOTUNE_STEP_LOG.RANK (docs/formats/step.md)")
      ->type_name("CMD")
      ->group(group);
  verb.add_option("--launch", flags.launch, "what starts the ranks of the collective: 'mpirun -n 4'")
      ->type_name("CMD")
      ->group(group);
  verb.add_option("--expect", flags.expect, "bus bandwidth that the collective should reach, GB/s")
      ->type_name("GBPS")
      ->check(CLI::Range(1e-6, 1e6))
      ->group(group);
  verb.add_option("--train-limit", flags.train_limit, "a training script that takes longer hangs (300)")
      ->type_name("S")
      ->check(CLI::Range(1.0, 86400.0))
      ->group(group);
}

int bench_levels(const BenchOptions& options, const LevelsFlags& levels, const CollFlags& coll,
                 const Globals& globals) {
  if (levels.train.empty())
    return report(Error{Errc::usage,
                        "bench levels: which training step?",
                        {},
                        {},
                        {},
                        "--train 'torchrun --nproc_per_node 2 examples/training/ddp_step.py'"});
  LevelsRun run(options, levels, coll, globals);
  return run.go();
}

}  // namespace topotune::cli
