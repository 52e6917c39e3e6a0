#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/bench_coll.h"
#include "cli/bench_levels.h"
#include "cli/bench_mixed.h"
#include "cli/bench_net.h"
#include "cli/bench_run.h"
#include "emit/measurement_compare.h"
#include "measure/judge.h"

namespace topotune::cli {

namespace {

int compare(const BenchOptions& options, const Globals& globals) {
  const auto before = load_measurement(options.compare[0]), after = load_measurement(options.compare[1]);
  if (!before) return report(before.error());
  if (!after) return report(after.error());
  const auto compared = measure::compare_runs(*before, *after, options.tolerance_percent / 100);
  if (compared.rows.empty())
    return report(Error{Errc::unsupported,
                        "the two runs have no result in common",
                        {},
                        {},
                        {},
                        "compare runs of one suite with the same options"});
  const auto text = globals.json ? emit::compared_json(compared, options.compare[0], options.compare[1])
                                 : emit::compared_text(compared, options.compare[0], options.compare[1]);
  if (const int status = write_result(globals, text); status != kOk) return status;
  const bool worse =
      std::ranges::any_of(compared.rows, [](const auto& r) { return r.change == model::Trend::worse; });
  return worse && options.fail_on == "warn" ? kWarn : kOk;
}

struct Flags {
  BenchOptions bench;
  CollFlags coll;
  NetFlags net;
  MixedFlags mixed;
  LevelsFlags levels;
  JobFlags job;
};

int bench(const Flags& flags, const Globals& globals) {
  const auto& options = flags.bench;
  if (!options.compare.empty()) return compare(options, globals);
  const std::vector<std::string> suites{"all",   "coll", "gdr",  "host", "levels",
                                        "mixed", "net",  "numa", "p2p"};
  if (std::ranges::find(suites, options.suite) == suites.end()) {
    const auto text = options.suite.empty()
                          ? std::string("bench: which suite?")
                          : fmt::format("bench: there is no suite '{}'", printable(options.suite));
    return report(Error{Errc::usage, text, {}, {}, {}, fmt::format("{}", fmt::join(suites, " "))});
  }
  if (options.suite == "coll") return bench_coll(options, flags.coll, flags.job, globals);
  if (options.suite == "levels") return bench_levels(options, flags.levels, flags.coll, globals);
  if (options.suite == "mixed") return bench_mixed(options, flags.mixed, flags.coll, flags.job, globals);
  if (options.suite == "net") return bench_net(options, flags.net, flags.job, globals);
  return run_bench(options, globals);
}

}  // namespace

void add_bench(CLI::App& app, Globals& globals, int& status) {
  const auto flags = std::make_shared<Flags>();
  auto* const o = &flags->bench;
  auto* verb =
      app.add_subcommand("bench", "measure GPU links, host links and NUMA, beside what they should give");
  verb->add_option("SUITE", o->suite,
                   "p2p, host, numa, coll, mixed, levels, net, gdr, or all: the acceptance of a node");
  verb->add_option(
      "GPU", o->gpus,
      "only these GPUs, as nvidia-smi numbers them; of coll also the collectives, of net the hosts, of gdr "
      "also the NICs");
  verb->add_option("--only", o->parts, "parts of p2p: matrix both latency pingpong stress sms sweep")
      ->delimiter(',')
      ->type_name("PART");
  verb->add_option("--bytes", o->bytes, "size of a bandwidth cell (512M); coll, gdr, net: sizes, with commas")
      ->type_name("SIZE");
  verb->add_option("--sms", o->sms, "multiprocessors of the budget curve")
      ->delimiter(',')
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--kernel", o->kernel,
                   "16-byte, tma or tma:CHUNK:STAGES:DRAIN instead of the choice by size")
      ->type_name("K");
  verb->add_flag("--screen", o->screen,
                 "p2p: three partners of each GPU instead of all pairs (large NVLink domains); net: few "
                 "pairs that find a slow host");
  verb->add_flag("--all-pairs", o->all_pairs,
                 "net: each host with each other; gdr: each port with each other");
  verb->add_option("--memory", o->memory, "net, gdr: whose memory is sent (net: host; gdr: both)")
      ->check(CLI::IsMember({"host", "gpu"}))
      ->type_name("KIND");
  verb->add_option("--time", o->seconds, "seconds for one number at most")
      ->type_name("S")
      ->check(CLI::Range(0.001, 3600.0));
  verb->add_option("--ci", o->ci_percent, "enough: 95 % interval of the median, +- percent")
      ->type_name("PCT")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--limit", o->limit_seconds, "a step that takes longer hangs")
      ->type_name("S")
      ->check(CLI::Range(1.0, 86400.0));
  verb->add_flag("--csv", o->csv, "print CSV");
  verb->add_option("--compare", o->compare, "two JSON results: ratio, confidence, verdict")
      ->expected(2)
      ->type_name("A B");
  verb->add_option("--baseline", o->baseline, "an earlier result, or several: their median")
      ->type_name("FILE");
  verb->add_option("--tolerance", o->tolerance_percent, "change that counts, percent")
      ->type_name("PCT")
      ->check(CLI::Range(0.0, 100.0));
  verb->add_option("--fail-on", o->fail_on, "warn (the default) or error")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("LEVEL");
  add_coll_flags(*verb, flags->coll);
  add_net_flags(*verb, flags->net);
  add_mixed_flags(*verb, flags->mixed);
  add_levels_flags(*verb, flags->levels);
  add_job_flags(*verb, flags->job);
  verb->footer(
      "Examples:\n"
      "  topotune bench p2p 0 1\n"
      "  topotune bench p2p --only matrix,sms --sms 4,8,16\n"
      "  topotune bench numa\n"
      "  topotune bench coll all_reduce all_gather -b 8 -e 1G -f 2\n"
      "  mpirun -n 8 topotune bench coll --format nccl-tests\n"
      "  mpirun -n 4 topotune bench coll all --backend mpi -e 1M\n"
      "  topotune bench mixed --profile fsdp\n"
      "  mpirun -n 4 topotune bench mixed --backend mpi --scale 0.05 --checkpoint-dir /scratch\n"
      "  topotune bench levels --train 'torchrun --nproc_per_node 8 examples/training/ddp_step.py'\n"
      "  topotune bench net node1 node2 --op tag,put\n"
      "  srun -N 32 --ntasks-per-node 1 topotune bench net --screen\n"
      "  topotune bench gdr mlx5_0 GPU0\n"
      "  topotune bench gdr --memory host\n"
      "  topotune bench all --json -o node7.json\n"
      "  topotune bench all --baseline node1.json --baseline node2.json\n"
      "  topotune bench --compare before.json after.json");
  verb->callback([flags, &globals, &status] { status = bench(*flags, globals); });
}

}  // namespace topotune::cli
