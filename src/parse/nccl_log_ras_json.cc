#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include "parse/nccl_log_ras.h"

#include "parse/nccl_log_state.h"

namespace topotune::parse::log {
namespace {

using Json = nlohmann::json;

template <class T>
std::optional<T> get(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) return std::nullopt;
  } else {
    if (!found->is_number_integer()) return std::nullopt;
  }
  return found->template get<T>();
}

void add_rank(const Json& entry, int communicator, model::NcclLog& log) {
  const auto number = get<int>(entry, "rank");
  if (!number || *number < 0 || *number >= kMaxRank) return;
  model::LogRank rank;
  rank.rank = *number;
  rank.host = get<std::string>(entry, "host");
  rank.pid = get<int>(entry, "pid");
  rank.gpu = get<int>(entry, "cuda_dev");
  rank.nvml = get<int>(entry, "nvml_dev");
  rank.communicator = communicator;
  log.ranks.push_back(std::move(rank));
}

// Operation counts by function: ranks with the same count are one entry.
void add_counts(const Json& ranks, const std::string& hash, model::NcclLog& log) {
  std::map<std::string, std::map<std::uint64_t, std::vector<int>>> counts;
  for (const auto& entry : ranks) {
    const auto rank = get<int>(entry, "rank");
    const auto found = entry.find("collective_counts");
    if (!rank || found == entry.end() || !found->is_object()) continue;
    for (const auto& [op, count] : found->items())
      if (count.is_number_unsigned()) counts[op][count.get<std::uint64_t>()].push_back(*rank);
  }
  for (const auto& [op, by_count] : counts) {
    if (by_count.size() < 2) continue;
    for (const auto& [count, members] : by_count) {
      model::RasCount made{"(" + hash + ")", op, members.size(), count, members, {0, 1}};
      if (count == 0) made.operation.reset();
      log.ras.push_back(std::move(made));
    }
  }
}

}  // namespace

bool read_ras_json(std::string_view text, model::NcclLog& log) {
  const auto document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("nccl_version")) return false;
  const auto communicators = document.find("communicators");
  if (communicators == document.end() || !communicators->is_array()) return false;
  log.kind = "nccl-ras";
  log.library = "NCCL";
  log.version = get<std::string>(document, "nccl_version");
  if (const auto v = get<int>(document, "cuda_driver_version"); v && *v >= 1000)
    log.cuda_driver = fmt::format("{}.{}", *v / 1000, *v % 1000 / 10);
  for (const auto& entry : *communicators) {
    if (!entry.is_object()) continue;
    model::LogCommunicator made;
    made.id = get<std::string>(entry, "hash");
    made.nranks = get<int>(entry, "size");
    const int index = static_cast<int>(log.communicators.size());
    const auto ranks = entry.find("ranks");
    if (ranks != entry.end() && ranks->is_array()) {
      made.ranks_seen = static_cast<int>(ranks->size());
      for (const auto& rank : *ranks)
        if (rank.is_object()) add_rank(rank, index, log);
      add_counts(*ranks, made.id.value_or("?"), log);
    }
    if (const auto missing = get<int>(entry, "missing_ranks_count"); missing && *missing > 0)
      log.notes.push_back({model::NoteKind::ras_status,
                           made.id.value_or(""),
                           fmt::format("{} ranks are missing", *missing),
                           1,
                           {0, 1},
                           {},
                           {},
                           {}});
    log.communicators.push_back(std::move(made));
  }
  return true;
}

}  // namespace topotune::parse::log
