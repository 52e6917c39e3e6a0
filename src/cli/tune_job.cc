#include "cli/tune_job.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/input.h"
#include "cli/profile_reader.h"
#include "host/stream.h"
#include "parse/nccl_log.h"

namespace topotune::cli {

namespace {

constexpr std::size_t kMostSizes = 24;
constexpr double kLeftOut = 0.005;

// A size with what it weighs: calls times about the time of one, 10 us and 200 GB/s.
struct Use {
  tune::Cell cell;
  double weight = 0;
};

Result<model::NcclLog> read_job(const std::vector<std::string>& files) {
  if (is_profile_file(files.front())) {
    const auto profiles = read_profiles(files);
    if (!profiles) return tl::unexpected(profiles.error());
    return parse::log_of(*profiles);
  }
  parse::NcclLogParser parser;
  for (const auto& name : files) {
    parser.begin_file(name);
    const auto read = host::read_stream(name, [&](std::string_view piece) { parser.feed(piece); });
    if (!read) return about(name, read.error());
  }
  return parser.finish();
}

std::vector<Use> uses_of(const model::NcclLog& log) {
  std::map<std::pair<tune::Collective, std::uint64_t>, double> weights;
  for (const auto& c : log.collectives) {
    const auto collective = tune::collective_from(c.op);
    if (!collective || !c.bytes || *c.bytes < 64) continue;
    weights[{*collective, *c.bytes}] +=
        static_cast<double>(c.calls) * (10e-6 + static_cast<double>(*c.bytes) / 200e9);
  }
  std::vector<Use> out;
  for (const auto& [key, weight] : weights) out.push_back({{key.first, key.second}, weight});
  return out;
}

// Neighbours of about one size are one, of the size that weighs most. `uses` ascend in size within a
// collective.
std::vector<Use> joined(const std::vector<Use>& uses) {
  std::vector<Use> out;
  double heaviest = 0, first = 0;
  for (const auto& use : uses) {
    const bool same = !out.empty() && out.back().cell.collective == use.cell.collective &&
                      static_cast<double>(use.cell.bytes) < first * kSameSize;
    if (!same) {
      out.push_back(use);
      heaviest = use.weight, first = static_cast<double>(use.cell.bytes);
      continue;
    }
    if (use.weight > heaviest) out.back().cell = use.cell, heaviest = use.weight;
    out.back().weight += use.weight;
  }
  return out;
}

}  // namespace

Result<std::vector<tune::Cell>> cells_of_job(const std::vector<std::string>& files) {
  const auto log = read_job(files);
  if (!log) return tl::unexpected(log.error());
  auto uses = joined(uses_of(*log));
  if (uses.empty()) {
    Error none{Errc::not_found, "no collective with its size is in it", files.front(), {}, {}, {}};
    none.hint = "record with: topotune run --profiled, or NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL";
    return tl::unexpected(none);
  }
  double all = 0, kept = 0;
  for (const auto& use : uses) all += use.weight;
  std::ranges::stable_sort(uses, std::greater(), &Use::weight);
  std::map<tune::Collective, std::size_t> count;
  std::vector<tune::Cell> out;
  for (const auto& use : uses) {
    if (kept > (1 - kLeftOut) * all || ++count[use.cell.collective] > kMostSizes) continue;
    kept += use.weight;
    out.push_back(use.cell);
  }
  std::ranges::sort(out, {}, [](const tune::Cell& c) { return std::tuple(c.bytes, c.collective); });
  return out;
}

}  // namespace topotune::cli
