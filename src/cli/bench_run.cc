#include "cli/bench_run.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "checks/rule.h"
#include "cli/bench_frame.h"
#include "cli/bench_inside.h"
#include "cli/fingerprint.h"
#include "cli/input.h"
#include "cli/record.h"
#include "cuda/suite.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "gdr/suite.h"
#include "host/redact.h"
#include "measure/expected.h"
#include "measure/judge.h"
#include "measure/node_memory.h"
#include "measure/numa.h"
#include "measure/session.h"
#include "parse/measurement_run.h"
#include "parse/size.h"

namespace topotune::cli {

namespace {

class Run {
 public:
  Run(const BenchOptions& options, const Globals& globals)
      : options_(options),
        globals_(globals),
        progress_(globals),
        start_(measure::monotonic_seconds()),
        watchdog_([this](const std::string& step, double limit) { hang(step, limit); }),
        session_(policy_of(options), hooks()) {
    run_.suite = options.suite;
    run_.date = utc_now();
    run_.command = command_line();
  }

  int go();

 private:
  static measure::Policy policy_of(const BenchOptions& options) {
    measure::Policy policy;
    policy.max_seconds = options.seconds;
    policy.ci_target = options.ci_percent / 100;
    return policy;
  }

  measure::Session::Hooks hooks() {
    measure::Session::Hooks hooks;
    hooks.stop = [] { return interrupted(); };
    hooks.progress = [this](const std::string& step) { progress_(step); };
    hooks.fraction = [this](double done) { progress_.fraction(done); };
    hooks.watchdog = &watchdog_;
    hooks.step_limit_seconds = options_.limit_seconds;
    return hooks;
  }

  bool wants(std::string_view suite) const { return options_.suite == suite || options_.suite == "all"; }
  Result<cuda::SuiteOptions> suite_options() const;
  Result<gdr::SuiteOptions> gdr_options() const;
  void gdr_suite();
  void net_suite();
  void coll_suite();
  Result<std::unique_ptr<cuda::Machine>> open_gpus();
  void choose_coll_gpus(const cuda::Machine& machine);
  void take(const char* suite, Result<model::MeasurementRun> run);
  void take_capture();
  void check(const Input& input);
  std::optional<measure::Pinned> beside_gpu() const;
  std::string gpu_id(const std::string& bdf) const;  // "" unknown
  void gpu_suites();
  void begin_suite();
  void moments(std::vector<model::GpuMoment>& out);
  std::vector<cuda::HostNode> host_nodes() const;
  void waive_gpus(const std::string& why);
  void judge();
  void against_baseline();
  std::string document(const model::MeasurementRun& run) const;
  model::MeasurementRun collected() const;
  void hang(const std::string& step, double limit);

  const BenchOptions& options_;
  const Globals& globals_;
  Progress progress_;
  int suites_begun_ = 0;
  double start_;
  measure::Watchdog watchdog_;
  measure::Session session_;
  model::MeasurementRun run_;
  model::Machine machine_;
  std::optional<cuda::Nvml> nvml_;
  std::optional<model::MeasurementRun> baseline_;
  cuda::SuiteOptions suite_options_;
  gdr::SuiteOptions gdr_options_;
  std::vector<int> coll_gpus_;
  std::string no_coll_;
};

std::optional<cuda::KernelCopy> kernel_from(const std::string& text) {
  cuda::KernelCopy kernel;
  const auto parts = split(text, ':');
  kernel.bulk = parts[0] == "tma";
  if (!kernel.bulk) return parts[0] == "16-byte" && parts.size() == 1 ? std::optional(kernel) : std::nullopt;
  if (parts.size() == 1) return kernel;
  if (parts.size() != 4) return std::nullopt;
  const auto chunk = parse_int<int>(parts[1]), stages = parse_int<int>(parts[2]),
             drain = parse_int<int>(parts[3]);
  if (!chunk || !stages || !drain || *chunk % 16 != 0 || *chunk <= 0 || *stages > 64 || *stages <= *drain)
    return std::nullopt;
  if (*drain != 2 && *drain != 4 && *drain != 8) return std::nullopt;
  if (*chunk > 65536 || *chunk * *stages > 227 * 1024) return std::nullopt;
  kernel.chunk = *chunk, kernel.stages = *stages, kernel.drain = *drain;
  return kernel;
}

Error usage(std::string text, std::string hint) {
  return Error{Errc::usage, std::move(text), {}, {}, {}, std::move(hint)};
}

Result<cuda::SuiteOptions> Run::suite_options() const {
  cuda::SuiteOptions out;
  if (options_.suite == "gdr") return out;
  for (const auto& name : options_.gpus) {
    const std::string number = name.starts_with("GPU") ? name.substr(3) : name;
    if (!parse_int<unsigned>(number))
      return tl::unexpected(usage(fmt::format("bench: '{}' is no GPU", printable(name)),
                                  "give numbers as nvidia-smi does: 0 1"));
    const std::string id = "GPU" + number;
    if (std::ranges::find(out.gpus, id) != out.gpus.end())
      return tl::unexpected(usage(fmt::format("bench: {} is named twice", id), "name each GPU once"));
    out.gpus.push_back(id);
  }
  const auto& known = cuda::p2p_parts();
  for (const auto& part : options_.parts) {
    if (std::ranges::find(known, part) == known.end())
      return tl::unexpected(usage(fmt::format("bench: there is no part '{}'", printable(part)),
                                  fmt::format("{}", fmt::join(known, " "))));
    out.parts.insert(part);
  }
  // Named GPUs are a question about their link; the curves take longer.
  if (out.parts.empty() && !out.gpus.empty())
    out.parts = {"matrix", "both", "latency", "pingpong", "pageable"};
  if (!options_.bytes.empty()) {
    const auto bytes = size_from(options_.bytes);
    if (!bytes)
      return tl::unexpected(
          usage(fmt::format("bench: '{}' is no size", printable(options_.bytes)), "such as 64M, 1G, 4096"));
    out.bytes = std::max<std::size_t>(*bytes / 16 * 16, 16);
  }
  if (!options_.kernel.empty()) {
    out.kernel = kernel_from(options_.kernel);
    if (!out.kernel)
      return tl::unexpected(usage(fmt::format("bench: '{}' is no kernel", printable(options_.kernel)),
                                  "16-byte, tma, or tma:CHUNK:STAGES:DRAIN with DRAIN 2, 4 or 8"));
  }
  out.sms = options_.sms;
  out.screen = options_.screen;
  return out;
}

Result<gdr::SuiteOptions> Run::gdr_options() const {
  gdr::SuiteOptions out;
  out.host = options_.memory != "gpu";
  out.gpu = options_.memory != "host";
  out.all_pairs = options_.all_pairs;
  out.limit_seconds = options_.limit_seconds / 2;  // before the watchdog: it tells more
  if (options_.suite != "gdr") {
    out.sizes = {std::size_t{1} << 20};
    return out;
  }
  for (const auto& word : options_.gpus) {
    const bool number = parse_int<unsigned>(word).has_value();
    if (number || word.starts_with("GPU"))
      out.gpus.push_back(number ? "GPU" + word : word);
    else
      out.nics.push_back(word);
  }
  if (options_.bytes.empty()) return out;
  out.sizes.clear();
  for (const auto part : split(options_.bytes, ',')) {
    const auto size = size_from(part);
    if (!size || *size > (std::size_t{1} << 30))
      return tl::unexpected(usage(fmt::format("bench gdr: '{}' is no size", printable(part)),
                                  "such as 8, 64K, 1M, at most 1G"));
    out.sizes.push_back(*size);
  }
  return out;
}

Result<std::unique_ptr<cuda::Machine>> Run::open_gpus() {
  const measure::Session::Timed timed(session_, &model::RunTimes::driver_start);
  return cuda::open_machine([&](const std::string& bdf) { return gpu_id(bdf); });
}

// GPU memory beside the NICs, as far as CUDA shows GPUs here.
void Run::gdr_suite() {
  std::unique_ptr<cuda::Machine> gpus;
  std::string why = "not asked for";
  if (gdr_options_.gpu) {
    auto opened = open_gpus();
    if (opened)
      gpus = std::move(*opened);
    else
      why = opened.error().text;
  }
  gdr::run_gdr({session_, machine_, gpus.get(), why, gdr_options_});
}

// What a suite in a process of its own measured; where it measured nothing, a failed result in its place.
void Run::take(const char* suite, Result<model::MeasurementRun> run) {
  if (!run) {
    if (interrupted()) return;
    model::Measurement m;
    m.name = suite;
    m.unit = "seconds";
    return session_.fail(std::move(m), run.error().text);
  }
  for (auto& m : run->results) session_.add(std::move(m));
  for (auto& m : run->models) session_.add(std::move(m));
  for (auto& j : run->judgements) session_.judge(j.severity, j.subject, j.text);
}

void Run::net_suite() {
  session_.step("net between two processes");
  session_.idle();  // every wait in there has a limit of its own
  take("net", net_inside(options_));
}

void Run::coll_suite() {
  session_.step("coll: collectives over NCCL");
  session_.idle();
  if (coll_gpus_.size() < 2) {
    model::Measurement m;
    m.name = "coll";
    m.unit = "seconds";
    return session_.waive(std::move(m), no_coll_);
  }
  auto run = coll_inside(options_, coll_gpus_);
  if (run) {
    for (const auto& [name, value] : run->machine)
      if (name == "library" && !value.empty()) run_.machine.emplace_back("nccl", value);
  }
  take("coll", std::move(run));
}

// The GPUs that the collectives run on, as CUDA numbers them; fewer than two: none do, for the reason.
void Run::choose_coll_gpus(const cuda::Machine& machine) {
  for (const auto& gpu : machine.gpus) {
    const bool asked = suite_options_.gpus.empty() ||
                       std::ranges::find(suite_options_.gpus, gpu.id) != suite_options_.gpus.end();
    if (asked) coll_gpus_.push_back(gpu.index);
  }
  if (coll_gpus_.size() < 2)
    no_coll_ = fmt::format("{} usable GPU{}: collectives need two", coll_gpus_.size(),
                           coll_gpus_.size() == 1 ? "" : "s");
}

std::string Run::document(const model::MeasurementRun& run) const {
  if (globals_.json) return emit::measurement_json(run);
  return options_.csv ? emit::measurement_csv(run) : emit::measurement_text(run, use_color(globals_));
}

model::MeasurementRun Run::collected() const {
  auto run = run_;
  auto got = session_.collected();
  run.results = std::move(got.results);
  run.models = std::move(got.models);
  run.times = got.times;
  run.judgements.insert(run.judgements.end(), got.judgements.begin(), got.judgements.end());
  run.seconds = measure::monotonic_seconds() - start_;
  return run;
}

// On the watchdog's thread: what was measured is written, and the process ends, since the step cannot be.
void Run::hang(const std::string& step, double limit) {
  progress_.clear();
  fmt::print(stderr, "topotune: bench: '{}' did not end within {:g} s: the driver or a GPU hangs\n",
             printable(step), limit);
  fmt::print(stderr, "hint: dmesg | grep -i xid; nvidia-smi; --limit SECONDS waits longer\n");
  auto run = collected();
  model::Measurement m;
  m.name = step.substr(0, step.find(' '));
  m.status = model::MeasureStatus::failed;
  m.why = fmt::format("'{}' did not end within {:g} s", step, limit);
  run.results.push_back(std::move(m));
  run.interrupted = true;
  write_result(globals_, document(run));
  std::_Exit(kError);
}

// The machine as it was, for whoever reads the document elsewhere.
void Run::take_capture() {
  session_.step("capture");
  const auto capture = record(globals_);
  if (capture)
    run_.capture = host::capture_text(host::redact(*capture, host::redact_options_here()));
  else
    session_.judge(model::Severity::info, "capture", "not taken: " + capture.error().text);
}

// The diagnosis of the machine, as judgements of the acceptance.
void Run::check(const Input& input) {
  session_.step("check");
  checks::Evidence evidence;
  evidence.machine = &input.machine;
  const auto diagnosis = checks::run(evidence);
  for (const auto& finding : diagnosis.findings)
    session_.judge(finding.severity, finding.subject, fmt::format("{}: {}", finding.rule, finding.title));
  model::Measurement m;
  m.name = "check";
  m.unit = "ratio";
  m.why = "";
  if (diagnosis.checked.empty()) return session_.waive(std::move(m), "nothing could be checked");
}

// Each suite that was asked for takes an equal share of the bar.
void Run::begin_suite() {
  const auto count = static_cast<double>(
      std::ranges::count_if(std::initializer_list<const char*>{"numa", "host", "p2p", "coll", "gdr", "net"},
                            [&](const char* suite) { return wants(suite); }));
  const double from = static_cast<double>(suites_begun_++) / count;
  session_.begin_share(from, from + 1 / count);
}

void Run::moments(std::vector<model::GpuMoment>& out) {
  if (!nvml_) return;
  for (const auto& gpu : machine_.topology.gpus) {
    if (gpu.bdf) out.push_back(nvml_->moment({gpu.id, *gpu.bdf}));
  }
}

std::vector<cuda::HostNode> Run::host_nodes() const {
  std::vector<cuda::HostNode> nodes;
  for (const auto& node : machine_.topology.numa) {
    if (node.memory_bytes.value_or(1) > 0) nodes.push_back({node.id, node.cpus.value_or(CpuSet())});
  }
  if (nodes.empty()) nodes.push_back({0, {}});
  return nodes;
}

// Holds this thread on the CPUs of the first measured GPU's node, where that is known.
std::optional<measure::Pinned> Run::beside_gpu() const {
  const auto& topology = machine_.topology;
  if (topology.gpus.empty()) return std::nullopt;
  const auto* gpu = suite_options_.gpus.empty() ? &topology.gpus.front()
                                                : model::find_gpu(topology, suite_options_.gpus.front());
  if (gpu == nullptr || !gpu->numa) return std::nullopt;
  const auto node = std::ranges::find(topology.numa, *gpu->numa, &model::NumaNode::id);
  if (node == topology.numa.end() || !node->cpus || node->cpus->empty()) return std::nullopt;
  return std::optional<measure::Pinned>(std::in_place, *node->cpus);
}

std::string Run::gpu_id(const std::string& bdf) const {
  const auto& gpus = machine_.topology.gpus;
  const auto found = std::ranges::find(gpus, std::optional(bdf), &model::Gpu::bdf);
  return found == gpus.end() ? std::string() : found->id;
}

void Run::waive_gpus(const std::string& why) {
  for (const std::string suite : {"host", "p2p"}) {
    if (!wants(suite)) continue;
    model::Measurement m;
    m.name = suite;
    m.unit = "gbytes_per_s";
    session_.waive(std::move(m), why);
  }
}

void Run::gpu_suites() {
  if (auto nvml = cuda::Nvml::open()) nvml_ = *nvml;
  moments(run_.before);
  session_.step("opening the GPUs");
  const auto machine = open_gpus();
  if (!machine) {
    no_coll_ = machine.error().text;
    return waive_gpus(no_coll_);
  }
  choose_coll_gpus(**machine);
  for (const auto& absent : (*machine)->absent) {
    model::Measurement m;
    m.name = options_.suite == "all" ? "host" : options_.suite;
    m.unit = "gbytes_per_s";
    m.params = {{"gpu", absent.id}};
    session_.waive(std::move(m), absent.why);
  }
  for (const auto& gpu : machine_.topology.gpus) {
    if (gpu.mig.value_or(false))
      session_.judge(model::Severity::info, gpu.id,
                     "MIG is on: CUDA shows one instance of it, without NVLink and peer access");
  }
  const measure::ExpectedValues expected(machine_.topology);
  const cuda::Bench bench{session_, **machine, expected, nvml_ ? &*nvml_ : nullptr, suite_options_};
  if (wants("host")) {
    begin_suite();
    cuda::run_host(bench, host_nodes());
  }
  if (wants("p2p")) {
    begin_suite();
    const auto pinned = beside_gpu();
    cuda::run_p2p(bench);
  }
  if (options_.suite == "numa") cuda::run_host(bench, host_nodes());
  moments(run_.after);
  session_.step("closing the GPUs");
}

void Run::judge() {
  const auto results = session_.collected().results;
  for (const auto& list : {measure::judge_equal_links(results), measure::judge_expected(results),
                           measure::judge_moments(run_.before, run_.after)}) {
    for (const auto& j : list) session_.judge(j.severity, j.subject, j.text);
  }
}

void Run::against_baseline() {
  if (!baseline_) return;
  const auto compared = measure::compare_runs(*baseline_, collected(), options_.tolerance_percent / 100);
  for (const auto& row : compared.rows) {
    if (row.change != model::Trend::worse && row.change != model::Trend::better) continue;
    const auto severity = row.change == model::Trend::worse ? model::Severity::warn : model::Severity::info;
    session_.judge(severity, row.key,
                   fmt::format("{} than the baseline: {} instead of {} (x {:.3f})", name_of(row.change),
                               emit::value_text(row.after, row.unit), emit::value_text(row.before, row.unit),
                               row.ratio));
  }
  if (compared.rows.empty())
    session_.judge(model::Severity::warn, "baseline",
                   "no result of this run is in the baseline: nothing was compared");
}

int Run::go() {
  auto options = suite_options();
  if (!options) return report(options.error());
  suite_options_ = *options;
  const auto gdr = gdr_options();
  if (!gdr) return report(gdr.error());
  gdr_options_ = *gdr;
  if (!options_.baseline.empty()) {
    std::vector<model::MeasurementRun> runs;
    for (const auto& name : options_.baseline) {
      auto run = load_measurement(name);
      if (!run) return report(run.error());
      runs.push_back(std::move(*run));
    }
    baseline_ = measure::fleet_median(runs);
  }
  end_in_order_on_interrupt();
  session_.step("reading the machine");
  auto input = load_input("live", globals_);
  if (!input) return report(input.error());
  machine_ = input->machine;
  run_.machine = fingerprint(machine_);
  if (options_.suite == "all" && globals_.json) take_capture();
  if (options_.suite == "all") check(*input);
  if (wants("numa") && !interrupted()) {
    begin_suite();
    measure::run_numa(session_, machine_.topology, {});
  }
  const bool wrong_binding =
      options_.suite == "numa" && machine_.topology.numa.size() > 1 && !machine_.topology.gpus.empty();
  if ((wants("host") || wants("p2p") || wrong_binding) && !interrupted()) gpu_suites();
  if (options_.suite == "all" && !interrupted()) {
    begin_suite();
    coll_suite();
  }
  if (wants("gdr") && !interrupted()) {
    begin_suite();
    gdr_suite();
  }
  if (options_.suite == "all" && !interrupted()) {
    begin_suite();
    net_suite();
  }
  session_.idle();
  session_.begin_share(1, 1);
  progress_.clear();
  run_.interrupted = interrupted();
  judge();
  against_baseline();
  const auto run = collected();
  if (const int written = write_result(globals_, document(run)); written != kOk) return written;
  return status_of(run, options_.fail_on);
}

}  // namespace

std::optional<std::size_t> size_from(std::string_view text) { return parse::size_from(text); }

Result<model::MeasurementRun> load_measurement(const std::string& name) {
  const auto text = read_input(name);
  if (!text) return about(name, text.error());
  auto run = parse::parse_measurement_run(*text);
  if (run) return run;
  auto error = run.error();
  error.file = name;
  error.hint = "topotune bench ... --json -o FILE writes such a file";
  return tl::unexpected(error);
}

int run_bench(const BenchOptions& options, const Globals& globals) {
  Run run(options, globals);
  return run.go();
}

}  // namespace topotune::cli
