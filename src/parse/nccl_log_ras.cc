#include "parse/nccl_log_ras.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "parse/nccl_log_scan.h"
#include "parse/nccl_log_state.h"

namespace topotune::parse::log {
namespace {

constexpr std::size_t kMaxEntries = 65536;

// "#0-0 (fa93daea854b060b) MISMATCH"
std::optional<std::uint64_t> hash_of(std::string_view group) {
  const auto open = group.find('(');
  const auto close = group.find(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  return parse_hex(group.substr(open + 1, close - open - 1));
}

}  // namespace

void RasReader::say_status(std::string text, model::LogLine at) {
  if (notes_.size() >= 256) return;
  model::LogNote note;
  note.kind = model::NoteKind::ras_status;
  note.subject = group_;
  note.text = std::move(text);
  note.count = 1;
  note.at = at;
  notes_.push_back(std::move(note));
}

// "    0         1         4         8        32        32   RUNNING  MISMATCH"
bool RasReader::table_row(std::string_view text, model::LogLine at) {
  const auto cells = words(text);
  if (cells.size() < 7) return false;
  const auto group = parse_int<int>(cells[0]);
  const auto comms = parse_int<int>(cells[1]);
  const auto nodes = parse_int<int>(cells[2]);
  const auto ranks = parse_int<int>(cells[4]);
  if (!group || !comms || !nodes || !ranks || *comms < 1 || *comms > 4096) return false;
  groups_.push_back({*group, {}});
  const auto status = cells.size() > 7 ? cells[7] : std::string_view{};
  if (cells[6] == "NOCOMM" || (!status.empty() && status != "OK" && status != "MISMATCH"))
    say_status(fmt::format("group {}: {} {}", *group, cells[6], status), at);
  for (int i = 0; i < *comms && communicators_.size() < kMaxEntries; ++i) {
    model::LogCommunicator made;
    made.nranks = *ranks;
    made.nnodes = *nodes;
    groups_.back().second.push_back(communicators_.size());
    communicators_.push_back(made);
  }
  return true;
}

// "  Rank 12 -- GPU 4 managed by process 323032 on node 10.0.0.2", "Rank 3 has launched up to operation 7 --
// GPU …"
bool RasReader::rank_line(std::string_view text, model::LogLine at) {
  Cursor in(text);
  if (!in.take("Rank ")) return false;
  model::LogRank rank;
  rank.rank = in.need<int>();
  if (!in.ok() || rank.rank < 0 || rank.rank >= kMaxRank) return false;
  const bool own = in.take(" has launched up to operation ");
  if (own && counts_.size() < kMaxEntries)
    counts_.push_back({group_, op_, 1, in.number<std::uint64_t>(), {}, at});
  if (in.take(" has not launched any operations") && counts_.size() < kMaxEntries)
    counts_.push_back({group_, op_, 1, std::nullopt, {}, at});
  if (!counts_.empty() && counts_.back().group == group_ && counts_.back().named.size() < kMaxEntries)
    counts_.back().named.push_back(rank.rank);
  if (!in.skip_past("GPU ")) return true;
  rank.gpu = in.number<int>();
  if (in.take(" (NVML ")) rank.nvml = in.number<int>();
  if (in.skip_past("process ")) rank.pid = in.number<int>();
  if (in.skip_past("on node ")) rank.host = std::string(in.word());
  const auto same = [&](const model::LogRank& r) {
    return r.rank == rank.rank && r.pid == rank.pid && r.host == rank.host;
  };
  if (ranks_.size() < kMaxEntries && std::ranges::find_if(ranks_, same) == ranks_.end())
    ranks_.push_back(rank);
  return true;
}

// "  30 ranks have launched up to operation 640", "  2 ranks have not launched any operations"
bool RasReader::count_line(std::string_view text, model::LogLine at) {
  Cursor in(text);
  const auto ranks = in.number<std::uint64_t>();
  if (!ranks || !in.take(" ranks have ")) return false;
  if (counts_.size() >= kMaxEntries) return true;
  if (in.take("launched up to operation "))
    counts_.push_back({group_, op_, *ranks, in.number<std::uint64_t>(), {}, at});
  else if (in.take("not launched any operations"))
    counts_.push_back({group_, op_, *ranks, std::nullopt, {}, at});
  else
    return in.take("status ");
  return true;
}

bool RasReader::line(std::string_view raw, model::LogLine at) {
  const auto text = trim(raw);
  if (text == "Job summary" || text.starts_with("Communicators...")) any_ = true;
  if (!any_) {
    if (text.starts_with("CUDA runtime version ")) {
      Cursor in(text);
      in.skip_past("driver version ");
      if (const auto v = in.number<int>(); v && *v >= 1000)
        cuda_driver_ = fmt::format("{}.{}", *v / 1000, *v % 1000 / 10);
    }
    return false;
  }
  if (text.starts_with("Group ") && text.find("Comms") != std::string_view::npos) return in_groups_ = true;
  if (text == "Errors" || text == "Warnings") return in_groups_ = false, true;
  if (in_groups_ && table_row(text, at)) return true;
  if (text.starts_with('#') && text.find('-') != std::string_view::npos) {
    group_ = std::string(text.substr(0, 128));
    op_.clear();
    who_ = false;
    return true;
  }
  if (text.starts_with("DEAD") || text.starts_with("INCOMPLETE") || text.starts_with("TIMEOUT")) {
    group_ = std::string(text);
    return true;
  }
  if (text.find("considered dead") != std::string_view::npos ||
      text.starts_with("Missing communicator data") || text.find("error") != std::string_view::npos) {
    say_status(std::string(text.substr(0, 400)), at);
    who_ = true;
    return true;
  }
  // Who the statement before is about.
  if (who_ && !notes_.empty() && (text.starts_with("Process ") || text.starts_with("Rank ")) &&
      notes_.back().text.size() + text.size() < 600)
    notes_.back().text += fmt::format("; {}", text);
  Cursor in(text);
  if (in.take("Communicator ranks have different ")) {
    op_ = std::string(in.word().substr(0, 32));
    return true;
  }
  return rank_line(text, at) || count_line(text, at);
}

void RasReader::store(model::NcclLog& log) const {
  if (!any_) return;
  if (log.library_lines == 0) log.kind = "nccl-ras";
  log.ras = counts_;
  log.notes.insert(log.notes.end(), notes_.begin(), notes_.end());
  if (log.kind != "nccl-ras") return;
  log.communicators = communicators_;
  log.ranks = ranks_;
  if (!log.cuda_driver && !cuda_driver_.empty()) log.cuda_driver = cuda_driver_;
  for (const auto& count : counts_) {
    Cursor in(count.group);
    in.take("#");
    const auto group = in.number<int>();
    in.take("-");
    const auto index = in.number<std::size_t>();
    const auto hash = hash_of(count.group);
    if (!group || !index || !hash) continue;
    for (const auto& [number, members] : groups_)
      if (number == *group && *index < members.size())
        log.communicators[members[*index]].id = fmt::format("0x{:x}", *hash);
  }
}

}  // namespace topotune::parse::log
