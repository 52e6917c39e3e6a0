#include "cli/tune_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
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

// NCCL's interface before v4 does not tell how many ranks a communicator has. Its files do, where they are
// those of all ranks from 0 on; else sizes of all-gather and reduce-scatter stay unknown.
void count_ranks(std::vector<parse::NcclProfile>& profiles) {
  std::map<std::uint64_t, std::set<int>> ranks;
  for (const auto& p : profiles)
    if (!p.ranks && p.communicator && p.rank) ranks[*p.communicator].insert(*p.rank);
  for (auto& p : profiles) {
    if (p.ranks) continue;
    const auto& known = ranks[p.communicator.value_or(0)];
    if (known.size() > 1 && *known.rbegin() == static_cast<int>(known.size()) - 1)
      p.ranks = static_cast<int>(known.size());
    else if (std::ranges::any_of(p.totals, [](const parse::ProfileTotal& t) {
               return tune::collective_from(std::string(t.op)) &&
                      !model::call_bytes(t.op, "int8", 1, std::nullopt);
             }))
      fmt::print(
          stderr,
          "topotune: pid {}: all-gathers and reduce-scatters are left out, since NCCL before 2.27 does "
          "not tell how many ranks there are\nhint: --from with the files of all ranks\n",
          p.pid);
  }
}

Result<model::NcclLog> read_profiled_job(const std::vector<std::string>& files) {
  auto profiles = read_profiles(files);
  if (!profiles) return tl::unexpected(profiles.error());
  say_doubles(join_doubles(*profiles), files);
  count_ranks(*profiles);
  by_rank(*profiles);
  std::uint64_t events = 0, overwritten = 0;
  for (const auto& p : *profiles) events += p.events, overwritten += p.overwritten();
  if (overwritten > 0)
    fmt::print(stderr,
               "topotune: {} of {} events were overwritten: all count, with the sizes of the newest ones\n",
               overwritten, events);
  return parse::log_of(*profiles);
}

Result<model::NcclLog> read_job(const std::vector<std::string>& files) {
  const auto log = std::ranges::find_if_not(files, is_profile_file);
  const auto profile = std::ranges::find_if(files, is_profile_file);
  if (log != files.end() && profile != files.end())
    return tl::unexpected(
        Error{Errc::usage,
              fmt::format("tune: {} is a profile, {} is none", printable(*profile), printable(*log)),
              {},
              {},
              {},
              "--from takes profiles or logs of one job, not both: each counts its calls"});
  if (log == files.end()) return read_profiled_job(files);
  parse::NcclLogParser parser;
  for (const auto& name : files) {
    parser.begin_file(name);
    bool first = true, packed = false;  // a profile all the same
    const auto read = host::read_stream(name, [&](std::string_view piece) {
      packed = packed || (std::exchange(first, false) && parse::is_nccl_profile(piece));
      if (!packed) parser.feed(piece);
    });
    if (packed) return tl::unexpected(not_so(name));
    if (!read) return tl::unexpected(read.error());  // names it
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
