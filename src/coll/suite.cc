#include "coll/suite.h"

#include <algorithm>
#include <numeric>

#include "coll/share.h"
#include "measure/fit.h"
#include "measure/statistics.h"

namespace topotune::coll {

namespace {

using Numbers = std::vector<double>;
using Table = std::vector<Numbers>;

bool wants(const SuiteOptions& options, Mode mode) {
  return std::ranges::find(options.modes, mode) != options.modes.end();
}

double mean_of(const Table& table, std::size_t column) {
  double sum = 0;
  for (const auto& row : table) sum += row[column];
  return sum / static_cast<double>(table.size());
}

double largest_of(const Table& table, std::size_t column) {
  double most = 0;
  for (const auto& row : table) most = std::max(most, row[column]);
  return most;
}

std::string title_of(const Question& q) {
  return fmt::format("coll.{} {} bytes {}", name_of(q.op), q.bytes, q.in_place ? "in place" : "out of place");
}

// One cell, step by step; each step is the same in all processes.
class CellRun {
 public:
  CellRun(Backend& backend, peers::Peers& peers, const SuiteOptions& options, const Question& question)
      : backend_(backend), peers_(peers), options_(options), title_(title_of(question)) {
    cell_.question = question;
    cell_.ranks = backend.ranks();
    cell_.graph_loops = loop_mode() == Mode::graph;
  }

  // An error: nothing more can be measured.
  Result<Cell> go() {
    for (const auto mode : {Mode::back_to_back, loop_mode()}) {
      if (const auto why = backend_.cannot(cell_.question, mode)) {
        cell_.why_not = *why;
        return cell_;
      }
    }
    auto ok = first();
    if (ok) ok = check(loop_mode());
    if (ok) ok = loops();
    if (ok && wants(options_, Mode::events)) ok = events();
    if (ok && wants(options_, Mode::blocking)) ok = blocking();
    if (ok && wants(options_, Mode::graph)) ok = graph();
    if (ok) return cell_;
    ok.error().text = title_ + ": " + ok.error().text;
    return tl::unexpected(ok.error());
  }

 private:
  int launches() const { return std::max(options_.graph_launches, 1); }  // of a loop's graph
  Mode loop_mode() const { return options_.graph_launches > 0 ? Mode::graph : Mode::back_to_back; }

  Result<Table> together(const Result<Numbers>& mine, const std::string& what) {
    return share(peers_, mine, title_ + ", " + what, options_.limit_seconds);
  }
  Result<Table> barrier(const std::string& what) { return together(Numbers(), what); }

  static Result<Numbers> two_numbers(const Result<Timed>& timed) {
    if (!timed) return tl::unexpected(timed.error());
    return Numbers{timed->seconds, timed->launch_seconds};
  }

  Result<void> first() {
    if (auto all = barrier("start"); !all) return tl::unexpected(all.error());
    const auto first = together(two_numbers(backend_.run(cell_.question, 1, Mode::blocking)), "first call");
    if (!first) return tl::unexpected(first.error());
    cell_.first_seconds = largest_of(*first, 0);
    const auto warm =
        two_numbers(backend_.run(cell_.question, std::max(options_.warmup, 1), Mode::back_to_back));
    const auto all = together(warm, "warm-up");
    if (!all) return tl::unexpected(all.error());
    shorten(largest_of(*all, 0));
    return {};
  }

  // With a budget a cell takes a tenth of it at most, as far as five loops of one iteration do.
  void shorten(double seconds) {
    if (!options_.budget_seconds || seconds <= 0) return;
    const double fit = *options_.budget_seconds / 50 / (seconds * launches());
    iterations_ = static_cast<int>(std::clamp(fit, 1.0, static_cast<double>(iterations_)));
  }

  Result<void> check(Mode mode) {
    if (!options_.check) return {};
    const auto checked = backend_.verify(cell_.question, mode);
    Result<Numbers> mine = tl::unexpected(Error());
    if (checked)
      mine = Numbers{static_cast<double>(checked->wrong), static_cast<double>(checked->checked)};
    else if (checked.error().code == Errc::unsupported)
      mine = Numbers{-1, 0};
    else
      mine = tl::unexpected(checked.error());
    const auto all = together(mine, "comparison of the data");
    if (!all) return tl::unexpected(all.error());
    Checked sum;
    for (const auto& row : *all) {
      if (row[0] < 0) return {};  // nobody can compare there
      sum.wrong += static_cast<std::uint64_t>(row[0]);
      sum.checked += static_cast<std::uint64_t>(row[1]);
    }
    if (sum.wrong > 0) {
      const auto texts =
          peers_.exchange(checked ? checked->first : "", "what is wrong", options_.limit_seconds);
      if (!texts) return tl::unexpected(texts.error());
      for (const auto& text : *texts)
        if (sum.first.empty()) sum.first = text;
    }
    // Of two checks the bad one counts.
    if (!cell_.checked || sum.wrong > 0) cell_.checked = sum;
    return {};
  }

  Result<void> loops() {
    std::size_t wanted = 5;
    for (std::size_t i = 0; i < wanted; ++i) {
      const auto all = together(
          two_numbers(backend_.run(cell_.question, iterations_, loop_mode(), options_.graph_launches)),
          "times");
      if (!all) return tl::unexpected(all.error());
      cell_.loops.push_back(mean_of(*all, 0));
      cell_.launch_seconds = mean_of(*all, 1);
      if (i == 0) {
        const double loop = std::max(cell_.loops[0] * iterations_ * launches(), 1e-7);
        wanted = static_cast<std::size_t>(std::clamp(options_.cell_seconds / loop, 5.0, 50.0));
      }
    }
    return {};
  }

  // Each process sends [local ranks, iterations, rank, times..., rank, times...].
  Result<Numbers> pack_each(const Result<Timed>& timed) const {
    if (!timed) return tl::unexpected(timed.error());
    Numbers out{static_cast<double>(timed->each.size()),
                static_cast<double>(timed->each.empty() ? 0 : timed->each[0].size())};
    for (std::size_t i = 0; i < timed->each.size(); ++i) {
      out.push_back(backend_.local()[i].rank);
      out.insert(out.end(), timed->each[i].begin(), timed->each[i].end());
    }
    return out;
  }

  static Table by_rank(const Table& packed, int ranks) {
    Table out(static_cast<std::size_t>(ranks));
    for (const auto& row : packed) {
      const auto locals = static_cast<std::size_t>(row[0]), n = static_cast<std::size_t>(row[1]);
      for (std::size_t i = 0; i < locals; ++i) {
        const auto at = row.begin() + static_cast<std::ptrdiff_t>(2 + i * (n + 1));
        const auto rank = static_cast<std::size_t>(*at);
        if (rank < out.size()) out[rank].assign(at + 1, at + 1 + static_cast<std::ptrdiff_t>(n));
      }
    }
    return out;
  }

  static Numbers slowest(const Table& ranks) {
    Numbers out = ranks.front();
    for (const auto& row : ranks)
      for (std::size_t i = 0; i < std::min(out.size(), row.size()); ++i) out[i] = std::max(out[i], row[i]);
    return out;
  }

  Result<void> events() {
    const auto all =
        together(pack_each(backend_.run(cell_.question, iterations_, Mode::events)), "times by rank");
    if (!all) return tl::unexpected(all.error());
    const auto ranks = by_rank(*all, cell_.ranks);
    cell_.iterations = slowest(ranks);
    for (const auto& row : ranks) cell_.rank_medians.push_back(measure::median_of(row).value_or(0));
    return {};
  }

  Result<void> blocking() {
    const auto all = together(pack_each(backend_.run(cell_.question, iterations_, Mode::blocking)),
                              "times of single calls");
    if (!all) return tl::unexpected(all.error());
    cell_.blocking = slowest(by_rank(*all, cell_.ranks));
    return {};
  }

  Result<void> graph() {
    if (const auto why = backend_.cannot(cell_.question, Mode::graph)) {
      cell_.no_graph = *why;
      return {};
    }
    if (auto ok = check(Mode::graph); !ok) return ok;
    Numbers loops;
    for (int i = 0; i < 3; ++i) {
      const auto all = together(two_numbers(backend_.run(cell_.question, iterations_, Mode::graph)),
                                "times of CUDA graphs");
      if (!all) return tl::unexpected(all.error());
      loops.push_back(mean_of(*all, 0));
    }
    cell_.graph_seconds = measure::median_of(loops);
    return {};
  }

  Backend& backend_;
  peers::Peers& peers_;
  const SuiteOptions& options_;
  std::string title_;
  int iterations_ = options_.iterations;
  Cell cell_;
};

}  // namespace

double Cell::seconds() const { return measure::median_of(loops).value_or(0); }

double Cell::algbw() const {
  const double s = seconds();
  return s > 0 ? algorithm_bytes(question, ranks) / s * 1e-9 : 0;
}

double Cell::busbw() const { return algbw() * bus_factor(question.op, ranks); }

std::vector<std::size_t> sizes_from(std::size_t begin, std::size_t end, std::size_t factor,
                                    std::size_t step) {
  std::vector<std::size_t> out;
  constexpr std::size_t kMost = 100000;
  for (std::size_t size = begin; size <= end && out.size() < kMost;) {
    out.push_back(size);
    if (factor > 1 && size <= end / factor)
      size *= factor;
    else if (factor <= 1 && step > 0)
      size += step;
    else
      break;
  }
  return out;
}

std::vector<Question> questions_of(const SuiteOptions& options) {
  std::vector<Question> out;
  for (const auto op : options.ops) {
    for (const auto bytes : options.sizes) {
      Question q;
      q.op = op, q.type = options.type, q.reduction = options.reduction, q.bytes = bytes;
      q.root = has_root(op) ? options.root : 0;
      if (options.out_of_place) out.push_back(q);
      q.in_place = true;
      if (options.in_place) out.push_back(q);
    }
  }
  return out;
}

// How all processes go on: the same in all, by the first that must stop.
enum class Go { on, skip, stop };
static Result<Go> agreed(peers::Peers& peers, const SuiteOptions& options, const measure::Session& session,
                         double start) {
  const double spent = measure::monotonic_seconds() - start;
  const bool late = options.budget_seconds && spent > *options.budget_seconds;
  const auto all = share(peers, Numbers{session.stopped() ? 1.0 : 0.0, late ? 1.0 : 0.0}, "whether to go on",
                         options.limit_seconds);
  if (!all) return tl::unexpected(all.error());
  if (largest_of(*all, 0) > 0) return Go::stop;
  return largest_of(*all, 1) > 0 ? Go::skip : Go::on;
}

Result<void> run_suite(Backend& backend, peers::Peers& peers, const SuiteOptions& options,
                       measure::Session& session, const OnCell& on_cell) {
  const auto questions = questions_of(options);
  session.begin_share(0, 1);
  session.plan(questions.size());
  const double start = measure::monotonic_seconds();
  for (const auto& question : questions) {
    session.step(title_of(question));
    const auto go = agreed(peers, options, session, start);
    if (!go) return tl::unexpected(go.error());
    if (*go == Go::stop) return {};
    Cell skipped;
    skipped.question = question, skipped.ranks = backend.ranks();
    skipped.why_not =
        fmt::format("the time for the sweep ({:g} s) was used up", options.budget_seconds.value_or(0));
    auto cell = *go == Go::on ? CellRun(backend, peers, options, question).go() : Result<Cell>(skipped);
    if (!cell) return tl::unexpected(cell.error());
    on_cell(*cell);
    session.end_part();
  }
  return {};
}

namespace {

void add_extra(model::Measurement& m, const Cell& cell) {
  const auto put = [&](const char* name, model::ParamValue value) {
    m.extra.push_back({name, std::move(value)});
  };
  put("algbw_gbytes_per_s", cell.algbw());
  put("busbw_gbytes_per_s", cell.busbw());
  put("launch_seconds", cell.launch_seconds);
  put("first_call_seconds", cell.first_seconds);
  const auto quantiles = [&](const char* prefix, const std::vector<double>& values) {
    if (values.empty()) return;
    put(fmt::format("{}_p50_seconds", prefix).c_str(), *measure::percentile_of(values, 0.5));
    put(fmt::format("{}_p99_seconds", prefix).c_str(), *measure::percentile_of(values, 0.99));
    put(fmt::format("{}_max_seconds", prefix).c_str(), *std::ranges::max_element(values));
  };
  quantiles("iteration", cell.iterations);
  quantiles("single_call", cell.blocking);
  if (cell.graph_loops) put("loops", std::string("CUDA graphs"));
  if (cell.graph_seconds) put("graph_seconds", *cell.graph_seconds);
  if (cell.checked) {
    put("checked_elements", static_cast<std::int64_t>(cell.checked->checked));
    put("wrong_elements", static_cast<std::int64_t>(cell.checked->wrong));
  }
  if (cell.choice) {
    put("algorithm", cell.choice->algorithm);
    put("protocol", cell.choice->protocol);
    if (cell.choice->channels) put("channels", static_cast<std::int64_t>(*cell.choice->channels));
  }
  const auto wire = wire_bytes(cell.question, cell.ranks, cell.choice ? cell.choice->algorithm : "");
  if (wire) put("wire_bytes_per_rank", static_cast<std::int64_t>(*wire));
  std::string medians;
  for (const double s : cell.rank_medians) medians += fmt::format("{}{:.9g}", medians.empty() ? "" : " ", s);
  if (!medians.empty()) put("rank_median_seconds", medians);
}

}  // namespace

model::Measurement measurement_of(const Cell& cell) {
  const auto& q = cell.question;
  model::Measurement m;
  m.name = fmt::format("coll.{}", name_of(q.op));
  m.unit = "seconds";
  m.params = {{"bytes", static_cast<std::int64_t>(q.bytes)}, {"type", std::string(name_of(q.type))}};
  if (reduces(q.op)) m.params.push_back({"redop", std::string(name_of(q.reduction))});
  if (has_root(q.op)) m.params.push_back({"root", static_cast<std::int64_t>(q.root)});
  m.params.push_back({"place", std::string(q.in_place ? "in" : "out")});
  m.params.push_back({"ranks", static_cast<std::int64_t>(cell.ranks)});
  if (!cell.why_not.empty()) {
    m.status = model::MeasureStatus::waived;
    m.why = cell.why_not;
    return m;
  }
  m.samples = cell.loops;
  // Loops of a few microseconds vary more than copies of half a gigabyte.
  measure::summarise(m, {0.05, 0.5, 3});
  m.verified = cell.checked && cell.checked->wrong == 0;
  m.verified_how = cell.checked ? "every element compared" : "not compared";
  if (cell.checked && cell.checked->wrong > 0) {
    m.status = model::MeasureStatus::failed;
    m.why = fmt::format("{} of {} elements are wrong, the first: {}", cell.checked->wrong,
                        cell.checked->checked, cell.checked->first);
    m.verified_how = m.why;
  }
  add_extra(m, cell);
  return m;
}

std::vector<model::SizeModel> models_of(const std::vector<Cell>& cells) {
  std::vector<model::SizeModel> out;
  for (const auto op : all_ops()) {
    for (const bool in_place : {false, true}) {
      std::vector<measure::SizePoint> points;
      for (const auto& cell : cells) {
        if (cell.question.op != op || cell.question.in_place != in_place || cell.loops.empty()) continue;
        points.push_back({algorithm_bytes(cell.question, cell.ranks), cell.seconds()});
      }
      const auto fit = measure::fit_sizes(points);
      if (fit.segments.empty()) continue;
      out.push_back({fmt::format("coll.{}", name_of(op)),
                     {{"place", std::string(in_place ? "in" : "out")}},
                     fit.segments,
                     fit.mean_error});
    }
  }
  return out;
}

std::vector<model::Judgement> judge_stragglers(const std::vector<Cell>& cells,
                                               const std::function<std::string(int)>& place_of) {
  struct Late {
    int cells = 0;
    std::vector<double> waits;
  };
  std::map<int, Late> late;
  int judged = 0;
  for (const auto& cell : cells) {
    const auto n = cell.rank_medians.size();
    if (n < 2 || !(cell.question.op == Op::all_reduce || cell.question.op == Op::all_gather ||
                   cell.question.op == Op::reduce_scatter || cell.question.op == Op::all_to_all))
      continue;  // with a root, ranks have different work
    ++judged;
    const auto least = std::ranges::min_element(cell.rank_medians);
    auto others = cell.rank_medians;
    others.erase(others.begin() + (least - cell.rank_medians.begin()));
    const double usual = *measure::median_of(others);
    if (usual - *least < 20e-6 || *least > 0.8 * usual) continue;
    auto& entry = late[static_cast<int>(least - cell.rank_medians.begin())];
    ++entry.cells;
    entry.waits.push_back(usual - *least);
  }
  std::vector<model::Judgement> out;
  for (const auto& [rank, entry] : late) {
    if (entry.cells * 2 <= judged) continue;
    out.push_back(
        {model::Severity::warn, place_of(rank),
         fmt::format("comes late: in {} of {} collectives the other ranks wait for it, {:.0f} us (median)",
                     entry.cells, judged, *measure::median_of(entry.waits) * 1e6)});
  }
  return out;
}

}  // namespace topotune::coll
