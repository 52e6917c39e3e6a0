#include "emit/fleet_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace topotune::emit {

namespace {

// `text` in at most `width` columns; the end is cut, and that is seen.
std::string fit(const std::string& text, std::size_t width) {
  const std::string clean = printable(text);
  return clean.size() <= width ? clean : clean.substr(0, width - 1) + "~";
}

std::string header(const model::FleetReport& report) {
  std::set<std::string> nodes;
  for (const auto& o : report.outliers) nodes.insert(o.node);
  std::string out = fmt::format("{} nodes: {}\n", report.nodes, fmt::join(report.kinds, "; "));
  if (nodes.empty()) return out + "No node differs from the others.\n";
  return out + fmt::format("{} node{} differ{} from the majority of their kind in {} fact{}:\n\n", nodes.size(),
                           nodes.size() == 1 ? "" : "s", nodes.size() == 1 ? "s" : "", report.outliers.size(),
                           report.outliers.size() == 1 ? "" : "s");
}

}  // namespace

std::string fleet_text(const model::FleetReport& report, std::size_t rows) {
  std::string out = header(report);
  if (report.outliers.empty()) return out;
  const std::string form = "{:<20} {:<8} {:<38} {:<22} {:<22} {}\n";
  out += fmt::format(fmt::runtime(form), "node", "rule", "what differs", "here", "on most nodes", "read from");
  std::size_t shown = 0;
  std::string last;
  for (const auto& o : report.outliers) {
    if (shown++ == rows) break;
    out += fmt::format(fmt::runtime(form), o.node == last ? "" : fit(o.node, 20), o.rule, fit(o.key, 38), fit(o.value, 22),
                       o.expected.empty() ? "(no majority)" : fit(o.expected, 22), printable(o.source));
    last = o.node;
  }
  if (report.outliers.size() > rows) out += fmt::format("… and {} more rows (--json has them)\n", report.outliers.size() - rows);
  return out;
}

}  // namespace topotune::emit
