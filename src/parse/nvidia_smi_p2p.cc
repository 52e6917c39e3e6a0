#include "parse/nvidia_smi_p2p.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::array<std::string_view, 7> kStatuses = {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"};
constexpr std::size_t kMaxColumns = 1024;

bool is_status(std::string_view word) { return std::ranges::find(kStatuses, word) != kStatuses.end(); }

std::optional<int> gpu_of(std::string_view word) {
  if (!word.starts_with("GPU")) return std::nullopt;
  const auto index = parse_int<int>(word.substr(3));
  return index && *index >= 0 ? index : std::nullopt;
}

// "… topo -p2p r" -> "read"
std::optional<std::string> capability_of(std::string_view line) {
  const auto rest = after(line, "-p2p");
  if (!rest) return std::nullopt;
  const auto options = words(*rest);
  if (options.empty()) return std::nullopt;
  auto letter = options.front();
  if (letter.starts_with("-")) letter.remove_prefix(1);
  letter = letter.substr(0, letter.find_first_of(")`'\","));  // named inside of a heading
  if (letter == "r" || letter == "rw") return "read";
  if (letter == "w") return "write";
  if (letter == "n") return "nvlink";
  if (letter == "a") return "atomics";
  if (letter == "p") return "prop";
  return std::nullopt;
}

std::optional<std::vector<int>> header_of(const std::vector<std::string_view>& line) {
  if (line.size() < 2 || line.size() > kMaxColumns) return std::nullopt;
  std::vector<int> columns;
  for (const auto word : line) {
    const auto gpu = gpu_of(word);
    if (!gpu) return std::nullopt;
    columns.push_back(*gpu);
  }
  return columns;
}

// The cells of a row, or nothing when it is none. A row that is cut gives its whole cells.
std::vector<P2pCell> row_of(const std::vector<std::string_view>& line, const P2pMatrix& matrix, int number) {
  std::vector<P2pCell> cells;
  const auto from = line.empty() ? std::nullopt : gpu_of(line.front());
  if (!from || line.size() < 2) return cells;
  for (std::size_t i = 1; i < line.size() && i <= matrix.gpus.size(); ++i) {
    if (line[i] == "X") continue;
    if (!is_status(line[i])) return {};
    cells.push_back({*from, matrix.gpus[i - 1], std::string(line[i]), number});
  }
  return cells;
}

}  // namespace

bool looks_like_nvidia_smi_p2p(std::string_view text) {
  if (text.find("GPU0") == std::string_view::npos && text.find("GPU1") == std::string_view::npos)
    return false;
  const auto out = parse_nvidia_smi_p2p(text);
  return out.has_value();
}

Result<std::vector<P2pMatrix>> parse_nvidia_smi_p2p(std::string_view text, std::string_view command) {
  std::vector<P2pMatrix> out;
  std::optional<P2pMatrix> open;
  std::size_t cells = 0;
  std::string capability = capability_of(command).value_or("");
  const auto close = [&] {
    if (open && !open->cells.empty()) out.push_back(std::move(*open));
    open.reset();
  };
  for (LineReader reader(text); reader.next();) {
    if (reader.line().size() > 64 * 1024) continue;
    if (auto named = capability_of(reader.line())) capability = std::move(*named);
    const auto line = words(reader.line());
    if (auto columns = header_of(line)) {
      close();
      open = P2pMatrix{reader.number(), capability, std::move(*columns), {}};
    } else if (open) {
      auto row = row_of(line, *open, reader.number());
      cells += row.size();
      if (cells > 16 * kMaxRecords) return too_many("cells of a matrix", reader.number());
      std::ranges::move(row, std::back_inserter(open->cells));
    }
  }
  close();
  if (out.empty()) return not_a("nvidia-smi topo -p2p");
  return out;
}

}  // namespace topotune::parse
