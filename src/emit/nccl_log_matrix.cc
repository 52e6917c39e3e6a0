#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "emit/nccl_log_text.h"
#include "emit/xml_text.h"

namespace topotune::emit {
namespace {

using namespace model;

constexpr int kTextRanks = 64;
constexpr int kSvgRanks = 512;

struct Cell {
  std::string transport;  // of the most channels
  int channels = 0, most = 0;
  std::uint64_t bytes = 0;
  bool gdr = false, network = false;
};

struct Grid {
  std::vector<int> ranks;
  std::map<std::pair<int, int>, Cell> cells;
  std::uint64_t most_bytes = 0;
};

Grid grid_of(const NcclLog& log) {
  Grid grid;
  std::set<int> ranks;
  for (const auto& e : log.edges) {
    if (e.communicator) continue;
    auto& cell = grid.cells[{e.src, e.dst}];
    cell.channels += e.channels;
    if (e.channels > cell.most) {
      cell.most = e.channels;
      cell.transport = e.transport;
      cell.network = e.transport.starts_with("NET/");
      cell.gdr = e.gdr.value_or(false);
    }
    ranks.insert(e.src);
    ranks.insert(e.dst);
  }
  for (const auto& [pair, bytes] : log.traffic) {
    grid.cells[pair].bytes = bytes;
    grid.most_bytes = std::max(grid.most_bytes, bytes);
    ranks.insert(pair.first);
    ranks.insert(pair.second);
  }
  grid.ranks.assign(ranks.begin(), ranks.end());
  return grid;
}

char letter(const Cell& cell) {
  if (cell.transport.starts_with("P2P")) return 'P';
  if (cell.transport.starts_with("SHM")) return 'S';
  if (cell.network) return cell.gdr ? 'G' : cell.transport == "NET/Socket" ? 's' : 'N';
  return cell.bytes > 0 ? '*' : '.';
}

std::string short_bytes(std::uint64_t bytes) {
  const char* unit = "BKMGTPE";
  auto value = static_cast<double>(bytes);
  while (value >= 1000 && unit[1] != '\0') value /= 1024, ++unit;
  return fmt::format("{:.{}f}{}", value, value < 10 && *unit != 'B' ? 1 : 0, *unit);
}

// White to blue by the logarithm: a tenth of the traffic is still seen.
std::string shade(const Cell& cell, const Grid& grid) {
  if (cell.bytes == 0) return "#f4f4f4";
  const double full = std::log2(static_cast<double>(grid.most_bytes) + 1);
  const double here = std::log2(static_cast<double>(cell.bytes) + 1);
  const double x = full <= 0 ? 1 : std::clamp(1 - (full - here) / 12, 0.05, 1.0);
  const auto mix = [&](int to) { return static_cast<int>(std::lround(255 + (to - 255) * x)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(8), mix(81), mix(156));
}

const char* colour_of(const Cell& cell) {
  switch (letter(cell)) {
    case 'P':
      return "#2e7d32";
    case 'S':
      return "#f9a825";
    case 'G':
      return "#1565c0";
    case 'N':
      return "#6a1b9a";
    case 's':
      return "#c62828";
    default:
      return "#f4f4f4";
  }
}

std::string left_out(const NcclLog& log) {
  if (log.traffic_without.empty()) return "";
  return fmt::format("; without {}", fmt::join(log.traffic_without, ", "));
}

}  // namespace

std::string nccl_log_matrix(const NcclLog& log) {
  const auto grid = grid_of(log);
  if (grid.ranks.empty()) return "no connection lines: NCCL_DEBUG=INFO prints them\n";
  std::string text =
      "transport and channels, from row to column (P peer access, S shared memory, G network with GPUDirect, "
      "N network, s sockets, . none)\n";
  const auto shown = std::min<std::size_t>(grid.ranks.size(), kTextRanks);
  const auto table = [&](auto cell_text, int width) {
    text += fmt::format("{:>6}", "");
    for (std::size_t i = 0; i < shown; ++i) text += fmt::format("{:>{}}", grid.ranks[i], width);
    text += "\n";
    for (std::size_t a = 0; a < shown; ++a) {
      text += fmt::format("{:>6}", grid.ranks[a]);
      for (std::size_t b = 0; b < shown; ++b) {
        const auto found = grid.cells.find({grid.ranks[a], grid.ranks[b]});
        text += fmt::format("{:>{}}",
                            a == b                      ? "X"
                            : found == grid.cells.end() ? "."
                                                        : cell_text(found->second),
                            width);
      }
      text += "\n";
    }
  };
  table(
      [](const Cell& c) {
        return c.channels > 0 ? fmt::format("{}{}", letter(c), c.channels) : std::string(".");
      },
      5);
  if (!log.traffic_without.empty() && !log.traffic_basis)
    text += fmt::format("\nbytes: not modelled for {}\n", fmt::join(log.traffic_without, ", "));
  if (log.traffic_basis) {
    text += fmt::format("\nbytes ({}{})\n", *log.traffic_basis, left_out(log));
    table([](const Cell& c) { return c.bytes > 0 ? short_bytes(c.bytes) : std::string("."); }, 6);
  }
  if (shown < grid.ranks.size())
    text += fmt::format("… {} more ranks: --svg FILE shows up to {}\n", grid.ranks.size() - shown, kSvgRanks);
  return text;
}

std::string nccl_log_matrix_svg(const NcclLog& log) {
  const auto grid = grid_of(log);
  const auto n = static_cast<int>(std::min<std::size_t>(grid.ranks.size(), kSvgRanks));
  const int cell = n <= 16 ? 36 : n <= 64 ? 14 : 6;
  const int left = 60;
  const int top = 60;
  const bool bytes = log.traffic_basis.has_value();
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<title>{2}</title>\n<text x=\"{3}\" y=\"20\">from row to column: {4}</text>\n",
      left + n * cell + 20, top + n * cell + 50, "Who talks to whom", left,
      bytes ? "bytes (" + *log.traffic_basis + left_out(log) + ")" : "transport");
  for (int a = 0; a < n; ++a) {
    if (n <= 64 || a % 8 == 0) {
      svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 6,
                         top + a * cell + cell / 2 + 4, grid.ranks[static_cast<std::size_t>(a)]);
      svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                         left + a * cell + cell / 2, top - 6, grid.ranks[static_cast<std::size_t>(a)]);
    }
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f4f4f4\"/>\n", left,
                       top + a * cell, n * cell, cell - 1);
  }
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      const int src = grid.ranks[static_cast<std::size_t>(a)];
      const int dst = grid.ranks[static_cast<std::size_t>(b)];
      const auto found = grid.cells.find({src, dst});
      if (found == grid.cells.end() || a == b) continue;
      const auto& c = found->second;
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"{}\"><title>{} to {}: "
          "{}{}, {} channels{}</title></rect>\n",
          left + b * cell, top + a * cell, cell - 1, cell - 1, bytes ? shade(c, grid) : colour_of(c),
          colour_of(c), src, dst,
          xml_text(printable(c.transport.empty() ? "no connection line" : c.transport)),
          c.gdr ? "/GDRDMA" : "", c.channels, bytes ? fmt::format(", {} bytes", c.bytes) : "");
    }
  return svg + "</svg>\n";
}

}  // namespace topotune::emit
