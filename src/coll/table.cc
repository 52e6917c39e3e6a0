#include "coll/table.h"

#include <algorithm>
#include <array>
#include <set>

#include "measure/statistics.h"

namespace topotune::coll {

namespace {

// As many digits as fit into the width: two decimals, one, none, an exponent.
std::string number(double value, std::size_t width) {
  for (const int digits : {2, 1, 0}) {
    const auto text = fmt::format("{:.{}f}", value, digits);
    if (text.size() <= width) return fmt::format("{:>{}}", text, width);
  }
  return fmt::format("{:>{}}", fmt::format("{:.{}e}", value, width >= 7 ? 1 : 0), width);
}

std::string half(const Cell* cell) {
  if (cell == nullptr || cell->loops.empty())
    return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  const auto wrong =
      cell->checked ? fmt::format("{:g}", static_cast<double>(cell->checked->wrong)) : std::string("N/A");
  return fmt::format("  {}  {}  {}  {:>6}", number(cell->seconds() * 1e6, 7), number(cell->algbw(), 6),
                     number(cell->busbw(), 6), wrong);
}

const Cell* find(const std::vector<Cell>& cells, Op op, std::size_t bytes, bool in_place) {
  for (const auto& cell : cells)
    if (cell.question.op == op && cell.question.bytes == bytes && cell.question.in_place == in_place)
      return &cell;
  return nullptr;
}

// A line of the head: five columns, then four twice.
std::string columns(const std::array<const char*, 9>& c) {
  const auto side = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", c[5], c[6], c[7], c[8]);
  return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{} \n", c[0], c[1], c[2], c[3], c[4], side,
                     side);
}

std::string head(const SuiteOptions& options, const Cast& cast) {
  const auto& sizes = options.sizes;
  const std::set<std::string> hosts = [&] {
    std::set<std::string> out;
    for (const auto& m : cast.members) out.insert(m.host + std::to_string(m.pid));
    return out;
  }();
  const auto per_process = hosts.empty() ? 1 : std::max<std::size_t>(cast.members.size() / hosts.size(), 1);
  std::string out = fmt::format("# Collective test starting: {}\n", cast.command);
  out += fmt::format(
      "# nThread 1 nGpus {} minBytes {} maxBytes {} step: {}(factor) warmup iters: {} iters: {} agg iters: 1 "
      "validation: {} graph: {}\n#\n# Using devices\n",
      per_process, sizes.empty() ? 0 : sizes.front(), sizes.empty() ? 0 : sizes.back(),
      sizes.size() > 1 && sizes[0] > 0 ? sizes[1] / sizes[0] : 2, options.warmup, options.iterations,
      options.check ? 1 : 0, options.graph_launches);
  for (const auto& m : cast.members)
    out += fmt::format("#  Rank {:>2} Group  0 Pid {:>6} on {:>10} device {} {}\n", m.rank, m.pid, m.host,
                       m.device, m.detail);
  return out + fmt::format("# {}\n#\n", cast.library);
}

std::string choice_text(const Cell& cell) {
  if (!cell.choice) return "unknown";
  auto out = cell.choice->algorithm + (cell.choice->protocol.empty() ? "" : "/" + cell.choice->protocol);
  if (cell.choice->channels) out += fmt::format(" x{}", *cell.choice->channels);
  return out;
}

std::string short_size(std::size_t bytes) {
  if (bytes >= (1u << 30) && bytes % (1u << 30) == 0) return fmt::format("{} GiB", bytes >> 30);
  if (bytes >= (1u << 20) && bytes % (1u << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= (1u << 10) && bytes % (1u << 10) == 0) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

// Neighbouring sizes with one choice in one entry.
std::string choices_line(const std::vector<Cell>& cells, Op op) {
  std::string out, current;
  std::size_t from = 0, to = 0;
  const auto close = [&] {
    if (current.empty()) return;
    out += fmt::format("{}{}{} {}", out.empty() ? "" : ", ", short_size(from),
                       from == to ? "" : " to " + short_size(to), current);
  };
  for (const auto& cell : cells) {
    if (cell.question.op != op || cell.loops.empty()) continue;
    const auto text = choice_text(cell);
    if (text != current) {
      close();
      current = text;
      from = cell.question.bytes;
    }
    to = cell.question.bytes;
  }
  close();
  return out;
}

std::set<Op> ops_in(const std::vector<Cell>& cells) {
  std::set<Op> out;
  for (const auto& cell : cells) out.insert(cell.question.op);
  return out;
}

void nccl_tests_op(std::string& out, const std::vector<Cell>& cells, const SuiteOptions& options, Op op) {
  out += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place                       in-place          "
      "\n",
      "", "", "", "", "");
  out += columns({"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"});
  out += columns({"(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", ""});
  double wrong = 0, busbw = 0;
  int counted = 0;
  for (const auto bytes : options.sizes) {
    const auto* apart = find(cells, op, bytes, false);
    const auto* in_place = find(cells, op, bytes, true);
    const auto* cell = apart != nullptr ? apart : in_place;
    if (cell == nullptr) continue;
    const auto& q = cell->question;
    out += fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", shown_bytes(q, cell->ranks),
                       counts_of(q, cell->ranks).argument, nccl_tests_name(q.type),
                       reduces(op) ? name_of(q.reduction) : "none", has_root(op) ? q.root : -1, half(apart),
                       half(in_place));
    for (const auto* side : {apart, in_place}) {
      if (side == nullptr || side->loops.empty()) continue;
      wrong += side->checked ? static_cast<double>(side->checked->wrong) : 0;
      busbw += side->busbw();
      ++counted;
    }
  }
  out += fmt::format("# Out of bounds values : {:g} {}\n# Avg bus bandwidth    : {:g} \n", wrong,
                     wrong > 0 ? "FAILED" : "OK", counted > 0 ? busbw / counted : 0);
  out += fmt::format("# Algorithms           : {}\n#\n", choices_line(cells, op));
}

std::string us(double seconds) { return number(seconds * 1e6, 8); }

std::string quantile(const std::vector<double>& values, double q) {
  const auto value = measure::percentile_of(values, q);
  return value ? us(*value) : std::string("       -");
}

std::string row(const Cell& cell) {
  const auto& q = cell.question;
  const auto start = fmt::format("{:>10} {:>3}", short_size(q.bytes), q.in_place ? "in" : "out");
  if (!cell.why_not.empty()) return fmt::format("{}   waived: {}\n", start, cell.why_not);
  const auto wire = wire_bytes(q, cell.ranks, cell.choice ? cell.choice->algorithm : "");
  const auto checked = !cell.checked ? std::string("not compared")
                       : cell.checked->wrong > 0
                           ? fmt::format("{} WRONG: {}", cell.checked->wrong, cell.checked->first)
                           : std::string("all right");
  return fmt::format("{} {} {:>8} {:>8} {} {} {} {} {:>8} {:>16} {:>12}  {}\n", start, us(cell.seconds()),
                     number(cell.algbw(), 8), number(cell.busbw(), 8), quantile(cell.iterations, 0.5),
                     quantile(cell.iterations, 0.99), quantile(cell.iterations, 1),
                     quantile(cell.blocking, 0.5), cell.graph_seconds ? us(*cell.graph_seconds) : "-",
                     choice_text(cell), wire ? fmt::format("{:.0f}", *wire) : "unknown", checked);
}

}  // namespace

std::string nccl_tests_text(const std::vector<Cell>& cells, const SuiteOptions& options, const Cast& cast) {
  auto out = head(options, cast);
  for (const auto op : ops_in(cells)) nccl_tests_op(out, cells, options, op);
  return out;
}

std::string table_text(const std::vector<Cell>& cells, const SuiteOptions& options, const Cast& cast) {
  std::set<std::string> hosts;
  for (const auto& m : cast.members) hosts.insert(m.host);
  std::string out;
  for (const auto op : ops_in(cells)) {
    out += fmt::format(
        "{} {}{}: {} ranks on {} host{}, {}; loops of {} iterations, times in us, bandwidths in GB/s\n",
        name_of(op), name_of(options.type), reduces(op) ? std::string(" ") + name_of(options.reduction) : "",
        cast.members.size(), hosts.size(), hosts.size() == 1 ? "" : "s", cast.library, options.iterations);
    out += fmt::format("{:>10} {:>3} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>16} {:>12}  {}\n",
                       "size", "", "time", "algbw", "busbw", "iter p50", "iter p99", "iter max", "alone",
                       "graph", "algorithm", "wire B/rank", "data");
    for (const auto& cell : cells)
      if (cell.question.op == op) out += row(cell);
    out += "\n";
  }
  return out;
}

}  // namespace topotune::coll
