#include "parse/lspci_tree.h"

#include <map>
#include <optional>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::size_t kMaxLine = 4096;  // 256 buses nest at most so deep

// What hangs at one column of the drawing: the bus of the devices there and the bridge above it.
struct Bus {
  std::uint32_t domain = 0;
  int number = 0;
  std::optional<std::size_t> bridge;
  std::string root;
};

struct BusRange {
  int first, last;
};

// "[01]" or "[61-73]"
std::optional<BusRange> range_of(std::string_view text) {
  const auto dash = text.find('-');
  const auto first = parse_int<int>(text.substr(0, dash), 16);
  const auto last = dash == std::string_view::npos ? first : parse_int<int>(text.substr(dash + 1), 16);
  if (!first || !last || *first > *last || *last > 255) return std::nullopt;
  return BusRange{*first, *last};
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Result<std::vector<LspciTreeNode>> read() {
    while (lines_.next()) {
      if (out_.size() > kMaxRecords) return too_many("PCI devices", lines_.number());
      if (lines_.line().size() <= kMaxLine) take(lines_.line());
    }
    return std::move(out_);
  }

 private:
  // Walks along one line; columns left of the first device continue what stands above.
  void take(std::string_view line) {
    std::optional<Bus> bus;
    std::size_t i = 0;
    while (i < line.size()) {
      const char c = line[i];
      if (c == '[' && !bus) {
        const auto end = line.find(']', i);
        if (end == std::string_view::npos) return;
        bus = root_of(line.substr(i + 1, end - i - 1));
        if (!bus) return;
        i = end + 1;
      } else if (is_hex_digit(c)) {
        i = device(line, i, bus);
        if (i == 0) return;
      } else if (c == '+' || c == '\\' || c == '-') {
        if (c != '-' && i + 1 < line.size() && line[i + 1] == '-') bus = branch(i, bus);
        ++i;
      } else if (c == ' ' || c == '|' || c == '\t') {
        ++i;
      } else {
        return;
      }
    }
  }

  // "0000:20": a root bus
  static std::optional<Bus> root_of(std::string_view text) {
    const auto colon = text.find(':');
    const auto domain = parse_int<std::uint32_t>(text.substr(0, colon), 16);
    if (colon == std::string_view::npos || !domain) return std::nullopt;
    const auto range = range_of(text.substr(colon + 1));
    if (!range) return std::nullopt;
    return Bus{*domain, range->first, {}, to_lower(text.substr(0, colon + 3))};
  }

  // A "+-" or "\-" at a column: opens the column for the bus just seen, or continues the one that is open
  // there.
  std::optional<Bus> branch(std::size_t column, const std::optional<Bus>& bus) {
    if (bus) {
      columns_.erase(columns_.lower_bound(column), columns_.end());
      columns_[column] = *bus;
      return bus;
    }
    columns_.erase(columns_.upper_bound(column), columns_.end());
    const auto at = columns_.find(column);
    return at == columns_.end() ? std::nullopt : std::optional(at->second);
  }

  // "01.1-[61-73]----…" or "00.0  NVIDIA …" at `i`; the position behind it, 0 when the line is done.
  std::size_t device(std::string_view line, std::size_t i, std::optional<Bus>& bus) {
    if (!bus || i + 4 > line.size() || line[i + 2] != '.') return 0;
    const auto slot = parse_int<std::uint8_t>(line.substr(i, 2), 16);
    const auto function = parse_int<std::uint8_t>(line.substr(i + 3, 1), 16);
    if (!slot || !function || *slot > 31 || *function > 7) return 0;
    LspciTreeNode node;
    node.line = lines_.number();
    node.bdf = {bus->domain, static_cast<std::uint8_t>(bus->number), *slot, *function};
    node.parent = bus->bridge;
    node.root = bus->root;
    i += 4;
    if (!line.substr(i).starts_with("-[")) {
      node.name = std::string(trim(line.substr(i)));
      out_.push_back(std::move(node));
      return 0;
    }
    const auto end = line.find(']', i);
    const auto range =
        end == std::string_view::npos ? std::nullopt : range_of(line.substr(i + 2, end - i - 2));
    if (!range) return 0;
    node.bridge = true;
    node.secondary = range->first;
    node.subordinate = range->last;
    out_.push_back(std::move(node));
    bus = Bus{bus->domain, range->first, out_.size() - 1, bus->root};
    return end + 1;
  }

  LineReader lines_;
  std::vector<LspciTreeNode> out_;
  std::map<std::size_t, Bus> columns_;
};

}  // namespace

bool looks_like_lspci_tree(std::string_view text) {
  if (text.find("-[") == std::string_view::npos) return false;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.starts_with("-[") || line.starts_with("-+-[") || line.starts_with("+-[") ||
        line.starts_with("\\-[")) {
      const auto at = line.find('[');
      if (line.size() > at + 8 && line[at + 5] == ':') return true;
    }
  }
  return false;
}

Result<std::vector<LspciTreeNode>> parse_lspci_tree(std::string_view text) {
  auto out = Reader(text).read();
  if (out && out->empty()) return not_a("lspci -t");
  return out;
}

}  // namespace topotune::parse
