#include "cli/bench_net.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/bench_frame.h"
#include "cli/fingerprint.h"
#include "cli/input.h"
#include "cli/net_memory.h"
#include "cli/remote.h"
#include "cli/report_file.h"
#include "emit/heat_map.h"
#include "emit/measurement_json.h"
#include "emit/measurement_text.h"
#include "host/live_host.h"
#include "host/options.h"
#include "launch/meeting.h"
#include "net/suite.h"

namespace topotune::cli {

namespace {

Error usage(std::string text, std::string hint) {
  return Error{Errc::usage, "bench net: " + std::move(text), {}, {}, {}, std::move(hint)};
}

Result<net::SuiteOptions> suite_from(const BenchOptions& options, const NetFlags& flags) {
  net::SuiteOptions suite;
  if (!flags.ops.empty()) suite.ops.clear();
  for (const auto& name : flags.ops) {
    const auto op = net::op_from(name);
    if (!op)
      return tl::unexpected(
          usage(fmt::format("there is no operation '{}'", printable(name)), "tag am put get"));
    suite.ops.push_back(*op);
  }
  if (!options.bytes.empty()) {
    suite.sizes.clear();
    for (const auto part : split(options.bytes, ',')) {
      const auto size = size_from(part);
      if (!size || *size > (1u << 30))
        return tl::unexpected(
            usage(fmt::format("'{}' is no size", printable(part)), "such as 8, 64K, 1M, at most 1G"));
      suite.sizes.push_back(*size);
    }
    suite.pair_bytes = suite.sizes.back();
  }
  suite.tls = flags.tls, suite.devices = flags.devices, suite.window = flags.window;
  suite.streams = flags.streams;
  if (!flags.svg.empty() && !options.all_pairs && !options.screen)
    return tl::unexpected(usage("--svg draws a matrix of hosts", "add --all-pairs or --screen"));
  suite.seconds = options.seconds;
  suite.limit_seconds = options.limit_seconds;
  if (options.all_pairs && options.screen)
    return tl::unexpected(
        usage("--all-pairs and --screen exclude each other", "--screen first: it is quicker"));
  if (options.all_pairs) suite.plan = net::Plan::all_pairs;
  if (options.screen) suite.plan = net::Plan::screen;
  return suite;
}

class NetRun {
 public:
  NetRun(const BenchOptions& options, const NetFlags& flags, const JobFlags& job, const Globals& globals,
         net::SuiteOptions suite)
      : options_(options),
        flags_(flags),
        globals_(globals),
        suite_(std::move(suite)),
        progress_(globals),
        file_(globals) {
    job_ = {job.rendezvous, job.rank, job.ranks, options.limit_seconds, interrupted};
    run_.suite = "net";
    run_.date = utc_now();
    run_.command = command_line();
  }

  int go() {
    const auto environment = launch::process_environment();
    const auto place = launch::job_place(environment, job_);
    if (!place) return report(place.error());
    if (place->size < 2)
      return report(usage("a network needs two processes",
                          "topotune bench net HOST HOST, mpirun -n 2 topotune bench net, or --rendezvous"));
    auto peers = launch::meet_job(environment, job_, *place);
    if (!peers)
      return place->rank == 0 || peers.error().code == Errc::timed_out ? lost(peers.error(), place->rank)
                                                                       : int{kUnknown};
    peers_ = std::move(*peers);
    if (suite_.plan == net::Plan::pair && peers_->size() > 2) suite_.plan = net::Plan::screen;
    end_in_order_on_interrupt();
    if (place->rank == 0) suite_.on_cell = [this] { keep_partial(); };
    measure::Session::Hooks hooks;
    hooks.stop = [] { return interrupted(); };
    hooks.progress = [this](const std::string& step) { progress_(step); };
    const measure::Session session(measure::Policy(), hooks);
    const auto measured = measure(session, *place);
    progress_.clear();
    return finish(measured, place->rank);
  }

 private:
  Result<void> measure(const measure::Session& session, const launch::JobPlace& place) {
    auto options = host::live_options_from_environment(globals_.sysroot);
    if (!options) return tl::unexpected(options.error());
    const host::LiveHost host(std::move(*options));
    std::unique_ptr<GpuMemory> gpu;
    if (options_.memory == "gpu") {
      auto opened = GpuMemory::open(place.local_size ? place.local : place.rank);
      if (!opened) {
        auto error = opened.error();
        error.code = Errc::unsupported;
        error.text = "memory of a GPU: " + error.text;
        peers_->fail_all(error);
        return tl::unexpected(error);
      }
      gpu = std::move(*opened);
      suite_.memory = gpu->gpu();
      suite_.gpu_memory = gpu->hooks();
    }
    return net::run_suite(*peers_, suite_, session, host, outcome_);
  }

  int lost(const Error& error, int rank) {
    if (rank != 0 || error.code == Errc::usage) return report(error);
    add_failure(error);
    return write();
  }

  void add_failure(const Error& error) {
    model::Measurement m;
    m.name = "net";
    m.unit = "seconds";
    const bool here = error.code == Errc::not_found || error.code == Errc::unsupported;
    m.status = here ? model::MeasureStatus::waived : model::MeasureStatus::failed;
    m.why = error.text;
    run_.results.push_back(std::move(m));
    fmt::print(stderr, "topotune: bench net: {}\n", error.text);
    if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", error.hint);
  }

  int finish(const Result<void>& measured, int rank) {
    run_.interrupted = interrupted();
    if (!measured && measured.error().code == Errc::usage)
      return rank == 0 ? report(measured.error()) : int{kUsage};
    const bool root_gone =
        !measured && rank == 1 &&
        measured.error().text.find(peers_->at(0).to_string() + " ended") != std::string::npos;
    if (rank != 0 && !root_gone) return measured ? kOk : kError;
    if (!measured) add_failure(measured.error());
    if (const auto input = load_input("live", globals_)) machine_ = fingerprint(input->machine);
    if (!flags_.svg.empty()) {
      auto globals = globals_;
      globals.output = flags_.svg;
      if (const int written = write_result(globals, emit::heat_map_svg(whole())); written != kOk)
        return written;
    }
    if (root_gone) file_ = ReportFile(globals_, ".rank1");
    return write();
  }

  // What was measured so far, before what failed.
  model::MeasurementRun whole() const {
    auto run = run_;
    auto results = net::measurements_of(outcome_, suite_);
    run.results.insert(run.results.begin(), std::make_move_iterator(results.begin()),
                       std::make_move_iterator(results.end()));
    run.models = net::models_of(outcome_);
    run.judgements = outcome_.judgements;
    run.seconds = measure::monotonic_seconds() - start_;
    run.machine = machine_;
    if (!peers_) return run;
    std::vector<std::string> hosts;
    for (const auto& m : outcome_.members) hosts.push_back(m.host);
    run.machine.emplace_back("library", outcome_.library);
    run.machine.emplace_back("hosts", fmt::format("{}", fmt::join(hosts, " ")));
    run.machine.emplace_back("ranks", std::to_string(peers_->size()));
    run.machine.emplace_back("met_by", peers_->how());
    return run;
  }

  void keep_partial() {
    file_.keep([this] {
      auto run = whole();
      run.interrupted = true;
      return document(run);
    });
  }

  int write() {
    const auto run = whole();
    if (const int written = file_.write(document(run)); written != kOk) return written;
    return status_of(run, options_.fail_on);
  }

  std::string document(const model::MeasurementRun& run) const {
    if (globals_.json) return emit::measurement_json(run);
    if (options_.csv) return emit::measurement_csv(run);
    auto out = net::table_text(outcome_, suite_);
    for (const auto& model : run.models) {
      for (const auto& s : model.segments)
        out += fmt::format(
            "{}: {:.2f} us + bytes / {:.3f} GB/s from {:.0f} to {:.0f} bytes (mean error {:.1f} %)\n",
            model.name, s.alpha_seconds * 1e6, s.gbytes_per_s, s.from_bytes, s.to_bytes,
            model.mean_error * 100);
    }
    for (const auto& m : run.results)
      if (m.name == "net") out += fmt::format("{}: {}\n", model::name_of(m.status), m.why);
    for (const auto& j : run.judgements)
      out += fmt::format("{}: {} {}\n", model::name_of(j.severity), j.subject, j.text);
    if (run.interrupted) out += emit::kInterruptedText;
    return out;
  }

  const BenchOptions& options_;
  const NetFlags& flags_;
  const Globals& globals_;
  net::SuiteOptions suite_;
  Progress progress_;
  double start_ = measure::monotonic_seconds();
  launch::JobOptions job_;
  std::unique_ptr<peers::Peers> peers_;
  net::Outcome outcome_;
  model::MeasurementRun run_;  // without what `whole` adds
  std::vector<std::pair<std::string, std::string>> machine_;
  ReportFile file_;
};

int on_hosts(const BenchOptions& options, const NetFlags& flags, const Globals& globals) {
  if (options.gpus.size() < 2)
    return report(usage(fmt::format("one host, '{}', is no network", printable(options.gpus.front())),
                        "topotune bench net HOST HOST"));
  for (const auto& host : options.gpus)
    if (host.starts_with('-') || host.find_first_of(" '\"\\$`;&|<>") != std::string::npos)
      return report(usage(fmt::format("'{}' is no host", printable(host)), "names or addresses"));
  auto leave_out = options.gpus;
  if (!flags.agent.empty()) leave_out.insert(leave_out.end(), {"--agent", flags.agent});
  end_in_order_on_interrupt();
  Remote remote{options.gpus, flags.agent, own_words(leave_out), options.limit_seconds};
  const auto done = run_on_hosts(remote);
  if (!done) return report(done.error());
  if (!done->text.empty()) {
    if (const int written = write_result(globals, done->text); written != kOk) return written;
  }
  return done->status;
}

}  // namespace

void add_net_flags(CLI::App& verb, NetFlags& flags) {
  const char* const group = "Network (bench net)";
  verb.add_option("--op", flags.ops, "tag (the default), am, put, get")
      ->delimiter(',')
      ->type_name("OP")
      ->group(group);
  verb.add_option("--tls", flags.tls, "transports, as in UCX_TLS")->type_name("LIST")->group(group);
  verb.add_option("--devices", flags.devices, "devices, as in UCX_NET_DEVICES")
      ->type_name("LIST")
      ->group(group);
  verb.add_option("--window", flags.window, "messages under way in streams (32)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  verb.add_option("--streams", flags.streams, "connections at the same time, each with its own thread (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->group(group);
  verb.add_option("--svg", flags.svg, "the matrix of hosts as a heat map")->type_name("FILE")->group(group);
  verb.add_option("--agent", flags.agent, "starts a command on a host: AGENT HOST COMMAND (ssh)")
      ->type_name("CMD")
      ->group(group);
}

int bench_net(const BenchOptions& options, const NetFlags& flags, const JobFlags& job,
              const Globals& globals) {
  auto suite = suite_from(options, flags);
  if (!suite) return report(suite.error());
  if (!options.gpus.empty() && !job.rank) return on_hosts(options, flags, globals);
  NetRun run(options, flags, job, globals, std::move(*suite));
  return run.go();
}

}  // namespace topotune::cli
