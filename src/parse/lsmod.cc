#include "parse/lsmod.h"

#include <algorithm>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

bool is_header(const std::vector<std::string_view>& line) {
  return line.size() >= 3 && line[0] == "Module" && line[1] == "Size" && line[2] == "Used";
}

// "nvidia_peermem 16384 0" or "ib_core 434176 3 rdma_cm,ib_uverbs,mlx5_ib"
bool is_module(const std::vector<std::string_view>& line) {
  if (line.size() < 3 || line.size() > 4) return false;
  const auto size = parse_int<long long>(line[1]);
  const auto users = parse_int<int>(line[2]);
  return size && *size >= 4096 && users && std::ranges::all_of(line[0], [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
         });
}

}  // namespace

bool looks_like_lsmod(std::string_view text) {
  int modules = 0, others = 0;
  for (LineReader reader(text); reader.next() && modules + others < 100;) {
    const auto line = words(reader.line().substr(0, 1024));
    if (is_header(line)) return true;
    if (!line.empty()) ++(is_module(line) ? modules : others);
  }
  return modules > 0 && modules >= others;
}

Result<Lsmod> parse_lsmod(std::string_view text) {
  Lsmod out;
  for (LineReader reader(text); reader.next();) {
    const auto line = words(reader.line().substr(0, 4096));
    out.header |= is_header(line);
    if (!is_module(line)) continue;
    if (out.modules.size() >= kMaxRecords) return too_many("modules", reader.number());
    out.modules.try_emplace(std::string(line[0]), reader.number());
    out.cut = !reader.ended();
  }
  if (out.modules.empty() && !out.header) return not_a("lsmod");
  return out;
}

}  // namespace topotune::parse
