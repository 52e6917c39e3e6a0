#include "cli/bench_inside.h"

#include <algorithm>

#include "base/words.h"
#include "cli/bench_frame.h"
#include "cli/child_line.h"
#include "cli/remote.h"
#include "cli/scratch_folder.h"
#include "host/modules.h"
#include "parse/measurement_run.h"

namespace topotune::cli {

namespace {

constexpr double kCollBudget = 12;     // seconds of cells
constexpr double kCollStepLimit = 15;  // NCCL's own start takes 1 to 3 s on two GPUs

}  // namespace

Result<model::MeasurementRun> net_inside(const BenchOptions& options) {
  Remote remote{{"localhost", "localhost"},
                {},
                {"bench", "net", "--json", "--quiet", "--bytes", "8,4096,1M", "--time",
                 fmt::format("{}", std::min(options.seconds, 0.2)), "--limit", "10"},
                options.limit_seconds};
  const auto done = run_on_hosts(remote);
  if (!done) return tl::unexpected(done.error());
  return parse::parse_measurement_run(done->text);
}

std::vector<std::string> coll_words(const BenchOptions& options, const std::vector<int>& gpus) {
  // No size is larger than a bandwidth cell was asked to be.
  const auto largest = size_from(options.bytes).value_or(std::size_t{1} << 30);
  std::vector<std::size_t> sizes{1024};
  for (const std::size_t size : {64u << 10, 1u << 20, 16u << 20, 256u << 20})
    if (size <= largest) sizes.push_back(size);
  std::vector<std::string> words{"bench", "coll", "all_reduce", "all_gather", "reduce_scatter", "alltoall"};
  for (const int gpu : gpus) words.push_back(std::to_string(gpu));
  words.insert(words.end(),
               {"--bytes", fmt::format("{}", fmt::join(sizes, ",")), "--place", "out", "--modes", "events",
                "-w", "2", "--no-log", "--time", fmt::format("{}", std::min(options.seconds, 0.1)),
                "--budget", fmt::format("{}", kCollBudget), "--limit",
                fmt::format("{}", std::min(options.limit_seconds, kCollStepLimit)), "--json", "--quiet"});
  return words;
}

Result<model::MeasurementRun> coll_inside(const BenchOptions& options, const std::vector<int>& gpus) {
  const ScratchFolder scratch;
  if (const auto made = scratch.made(); !made) return tl::unexpected(made.error());
  const auto file = scratch.path() + "/coll.json";
  auto line = single_quoted(host::program_file());
  for (const auto& word : coll_words(options, gpus)) line += " " + single_quoted(word);
  line += " -o " + single_quoted(file);
  // Its own limits end it earlier and tell more.
  const double limit = kCollBudget + 4 * std::min(options.limit_seconds, kCollStepLimit) + 10;
  const auto ended = run_line(line, scratch.path() + "/coll.txt", limit);
  const auto run = parse::parse_measurement_run(text_of(file));
  if (run) return run;
  if (!ended) return fail(ended.error().code, "bench coll {}", ended.error().text);
  return fail(Errc::io, "bench coll ended with status {}{}", ended->status,
              ended->said.empty() ? "" : ": " + ended->said);
}

}  // namespace topotune::cli
