#include "net/suite.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/text.h"
#include "coll/share.h"
#include "measure/fit.h"
#include "measure/statistics.h"
#include "net/counters.h"

namespace topotune::net {

namespace {

using Numbers = std::vector<double>;

// The kernel's number of this boot: equal in all namespaces of a machine.
std::string boot_id(const host::Host& host) {
  const auto id = host.read("/proc/sys/kernel/random/boot_id");
  return id && !id->empty() ? *id : peers::host_name();
}

// The processes of the job, while UCX works on: what this process sent last may still lie in UCX's queues,
// and a process that waits here would never send it.
class WorkingPeers : public peers::Peers {
 public:
  explicit WorkingPeers(peers::Peers& peers) : peers_(peers) {}
  void work(const Ucx* ucx) { ucx_ = ucx; }

  int rank() const override { return peers_.rank(); }
  const std::vector<peers::Peer>& all() const override { return peers_.all(); }
  void fail_all(const Error& error) override { peers_.fail_all(error); }
  std::optional<Error> news() override { return peers_.news(); }
  std::string how() const override { return peers_.how(); }

  Result<std::vector<std::string>> exchange(const std::string& mine, const std::string& what,
                                            double limit_seconds) override {
    if (ucx_ == nullptr) return peers_.exchange(mine, what, limit_seconds);
    std::atomic<bool> over = false;
    std::thread worker([&] {
      for (auto pause = std::chrono::microseconds(20); !over; pause = std::min(pause * 2, kLongestPause)) {
        ucx_->progress();
        std::this_thread::sleep_for(pause);
      }
    });
    auto all = peers_.exchange(mine, what, limit_seconds);
    over = true;
    worker.join();
    return all;
  }

 private:
  static constexpr std::chrono::microseconds kLongestPause{1000};
  peers::Peers& peers_;
  const Ucx* ucx_ = nullptr;
};

class Suite {
 public:
  Suite(peers::Peers& peers, const SuiteOptions& options, const measure::Session& session,
        const host::Host& host, Outcome& outcome)
      : peers_(peers), options_(options), session_(session), host_(host), outcome_(outcome) {}

  Result<void> go() {
    session_.step("net: opening UCX");
    auto ok = open();
    if (!ok) return ok;
    const auto before = read_counters(host_);
    ok = options_.plan == Plan::pair ? pair() : matrix();
    if (ok) ok = counters(added(before, read_counters(host_)));
    return ok;
  }

 private:
  Result<void> open() {
    const UcxOptions ucx{options_.tls,     options_.devices,    largest(),
                         options_.streams, options_.gpu_memory, options_.limit_seconds};
    auto opened = Ucx::open(ucx, peers_.rank());
    const auto address = opened ? (*opened)->address() : Result<std::string>(tl::unexpected(opened.error()));
    if (!address) {
      peers_.fail_all(address.error());
      return tl::unexpected(address.error());
    }
    ucx_ = std::move(*opened);
    peers_.work(ucx_.get());
    outcome_.library = ucx_->library();
    auto addresses = peers_.exchange(*address, "UCX's addresses", options_.limit_seconds);
    if (!addresses) return tl::unexpected(addresses.error());
    addresses_ = std::move(*addresses);
    const auto boots = peers_.exchange(boot_id(host_), "names of machines", options_.limit_seconds);
    if (!boots) return tl::unexpected(boots.error());
    members(*boots);
    return {};
  }

  std::size_t largest() const {
    const auto most = options_.sizes.empty() ? 0 : *std::ranges::max_element(options_.sizes);
    return std::max<std::size_t>(std::max(most, options_.pair_bytes), 4096);
  }

  // A pair is two processes, wherever they are; a matrix is of hosts.
  void members(const std::vector<std::string>& boots) {
    std::map<std::string, int> machines;
    std::set<std::string> hosts;
    for (int r = 0; r < peers_.size(); ++r) {
      const auto& host = peers_.at(r).host;
      const int machine =
          machines.emplace(boots[static_cast<std::size_t>(r)], static_cast<int>(machines.size()))
              .first->second;
      if (!hosts.insert(host).second && options_.plan != Plan::pair) continue;
      outcome_.members.push_back({r, host, machine});
    }
  }

  const Member& member(int i) const { return outcome_.members[static_cast<std::size_t>(i)]; }

  Result<void> connect(int peer) {
    if (!connected_.insert(peer).second) return {};
    return named(peer, ucx_->connect(peer, addresses_[static_cast<std::size_t>(peer)]));
  }

  Result<std::vector<Numbers>> together(const Result<Numbers>& mine, const std::string& what) {
    return coll::share(peers_, mine, what, options_.limit_seconds);
  }

  Result<bool> stopped() {
    const auto all = together(Numbers{session_.stopped() ? 1.0 : 0.0}, "whether to go on");
    if (!all) return tl::unexpected(all.error());
    return std::ranges::any_of(*all, [](const Numbers& n) { return n[0] > 0; });
  }

  // ---- two processes in every detail

  Result<void> pair() {
    for (const auto op : options_.ops) {
      for (const auto bytes : options_.sizes) {
        const auto stop = stopped();
        if (!stop) return tl::unexpected(stop.error());
        if (*stop) return {};
        session_.step(fmt::format("net.{} {} bytes", name_of(op), bytes));
        auto cell = detailed(op, bytes);
        if (!cell) return tl::unexpected(cell.error());
        outcome_.cells.push_back(std::move(*cell));
      }
    }
    return {};
  }

  Result<Cell> detailed(Op op, std::size_t bytes) {
    const bool begins = peers_.rank() == member(0).rank;
    const int other = begins ? member(1).rank : member(0).rank;
    Cell cell{member(0).rank, member(1).rank, op, bytes, 0, {}, {}, {}, {}, {}};
    auto connected = connect(other);
    const auto first =
        together(connected ? few_pings(other, op, bytes, begins) : tl::unexpected(connected.error()),
                 "a few messages");
    if (!first) return tl::unexpected(first.error());
    const double mean = std::max((*first)[static_cast<std::size_t>(cell.a)][0], 1e-8);
    cell.wrong = static_cast<std::uint64_t>((*first)[0][1] + (*first)[1][1]);
    const int rounds = static_cast<int>(std::clamp(options_.seconds / (2 * mean), 16.0, 50000.0));
    const auto pings = together(
        numbers_of(named(other, ucx_->ping(other, op, bytes, rounds, 4 * options_.seconds, begins)), begins),
        "latencies");
    if (!pings) return tl::unexpected(pings.error());
    const auto& got = (*pings)[static_cast<std::size_t>(cell.a)];
    cell.mean = got[0];
    cell.samples.assign(got.begin() + 1, got.end());
    for (const bool both : {false, true}) {
      const auto all = together(numbers_of(named(other, ucx_->stream(other, op, bytes, options_.seconds,
                                                                     options_.window, both, begins))),
                                "bandwidths");
      if (!all) return tl::unexpected(all.error());
      const auto& n = (*all)[static_cast<std::size_t>(cell.a)];
      (both ? cell.both : cell.one) = Ucx::Stream{n[0], n[1], n[2]};
    }
    if (begins) cell.lanes = ucx_->lanes(other);
    const auto lanes = peers_.exchange(cell.lanes, "transports", options_.limit_seconds);
    if (!lanes) return tl::unexpected(lanes.error());
    cell.lanes = (*lanes)[static_cast<std::size_t>(cell.a)];
    return cell;
  }

  // [median of one way, wrong bytes]
  Result<Numbers> few_pings(int other, Op op, std::size_t bytes, bool begins) {
    const auto seed = 0x1234u + static_cast<std::uint32_t>(bytes);
    const auto wrong = named(other, ucx_->verify(other, op, bytes, seed, begins));
    if (!wrong) return tl::unexpected(wrong.error());
    const auto pinged = named(other, ucx_->ping(other, op, bytes, 10, options_.seconds, begins));
    if (!pinged) return tl::unexpected(pinged.error());
    // The median: one turn of the scheduler in ten must not decide how many are measured.
    return Numbers{measure::median_of(pinged->samples).value_or(0), static_cast<double>(*wrong)};
  }

  // An error says with whom it happened.
  template <class T>
  Result<T> named(int other, Result<T> result) const {
    if (!result)
      result.error().text = fmt::format("with {}: {}", peers_.at(other).to_string(), result.error().text);
    return result;
  }

  static Result<Numbers> numbers_of(const Result<Ucx::Ping>& ping, bool begins) {
    if (!ping) return tl::unexpected(ping.error());
    Numbers out{ping->mean};
    if (begins) out.insert(out.end(), ping->samples.begin(), ping->samples.end());
    return out;
  }
  static Result<Numbers> numbers_of(const Result<Ucx::Stream>& stream) {
    if (!stream) return tl::unexpected(stream.error());
    return Numbers{stream->gbytes_per_s, stream->messages_per_s, stream->cpu};
  }

  // ---- many hosts

  Result<void> matrix() {
    const int n = static_cast<int>(outcome_.members.size());
    if (n < 2) return fail(Errc::usage, "all processes are on one host: a matrix needs two");
    const auto rounds = options_.plan == Plan::screen ? screening(n) : all_pairs(n);
    if (auto ok = run_rounds(rounds, outcome_.cells); !ok) return ok;
    const auto suspects = suspects_of(links_of(outcome_.cells), n);
    if (auto ok = run_rounds(confirmation(suspects, n), outcome_.confirmed); !ok) return ok;
    judge(suspects);
    return {};
  }

  // Member numbers, not ranks; of the two directions the slower one.
  std::vector<Link> links_of(const std::vector<Cell>& cells) const {
    std::vector<Link> out;
    for (const auto& cell : cells)
      out.push_back(
          {number_of(cell.a), number_of(cell.b), std::min(cell.one.gbytes_per_s, cell.both.gbytes_per_s)});
    return out;
  }
  int number_of(int rank) const {
    const auto found = std::ranges::find(outcome_.members, rank, &Member::rank);
    return static_cast<int>(found - outcome_.members.begin());
  }

  Result<void> run_rounds(const std::vector<Round>& rounds, std::vector<Cell>& cells) {
    std::vector<int> machines;
    for (const auto& m : outcome_.members) machines.push_back(m.machine);
    for (const auto& round : one_at_a_time(rounds, machines)) {
      const auto stop = stopped();
      if (!stop) return tl::unexpected(stop.error());
      if (*stop) return {};
      session_.step(fmt::format("net.{} {} and {}", options_.plan == Plan::screen ? "screen" : "all-pairs",
                                member(round.front().first).host, member(round.front().second).host));
      if (auto ok = run_round(round, cells); !ok) return ok;
    }
    return {};
  }

  Result<void> run_round(const Round& round, std::vector<Cell>& cells) {
    Result<Numbers> mine = Numbers();
    for (const auto& [a, b] : round) {
      if (member(a).rank == peers_.rank()) mine = coarse(member(b).rank, true);
      if (member(b).rank == peers_.rank()) mine = coarse(member(a).rank, false);
    }
    const auto all = together(mine, "bandwidths between hosts");
    if (!all) return tl::unexpected(all.error());
    for (const auto& [a, b] : round) {
      const auto& n = (*all)[static_cast<std::size_t>(member(a).rank)];
      const auto& m = (*all)[static_cast<std::size_t>(member(b).rank)];
      Cell cell{member(a).rank,
                member(b).rank,
                options_.ops.front(),
                options_.pair_bytes,
                n[0],
                {},
                {n[1], n[2], n[3]},
                {m[1], m[2], m[3]},
                static_cast<std::uint64_t>(n[4] + m[4]),
                {}};
      cells.push_back(cell);
    }
    return {};
  }

  // [latency of 8 bytes; bandwidth, messages, CPU of what this process sent; wrong bytes]
  Result<Numbers> coarse(int other, bool begins) {
    const auto op = options_.ops.front();
    if (auto ok = connect(other); !ok) return tl::unexpected(ok.error());
    const auto checked = std::min<std::size_t>(options_.pair_bytes, 65536);
    const auto wrong = named(other, ucx_->verify(other, op, checked, 77, begins));
    if (!wrong) return tl::unexpected(wrong.error());
    const auto pinged = named(other, ucx_->ping(other, op, 8, 50, options_.seconds, begins));
    if (!pinged) return tl::unexpected(pinged.error());
    // There, and back: a host may be slow in one direction only.
    const double seconds = std::min(options_.seconds, 0.2);
    const auto there =
        named(other, ucx_->stream(other, op, options_.pair_bytes, seconds, options_.window, false, begins));
    if (!there) return tl::unexpected(there.error());
    const auto back =
        named(other, ucx_->stream(other, op, options_.pair_bytes, seconds, options_.window, false, !begins));
    if (!back) return tl::unexpected(back.error());
    const auto& mine = begins ? *there : *back;
    return Numbers{pinged->mean, mine.gbytes_per_s, mine.messages_per_s, mine.cpu,
                   static_cast<double>(*wrong)};
  }

  void judge(const Suspects& suspects) {
    const auto confirmed = links_of(outcome_.confirmed);
    // Every time: a busy machine makes a link slow now and then.
    const auto slow_again = [&](int m) {
      int measured = 0, slow = 0;
      for (const auto& l : confirmed) {
        if (l.a != m && l.b != m) continue;
        ++measured;
        slow += l.gbytes_per_s < suspects.limit ? 1 : 0;
      }
      return measured > 0 && slow == measured;
    };
    const auto say = [&](std::string subject, std::string text,
                         model::Severity severity = model::Severity::warn) {
      outcome_.judgements.push_back({severity, std::move(subject), std::move(text)});
    };
    for (const int m : suspects.members) {
      double best = 0;
      for (const auto& list : {links_of(outcome_.cells), confirmed})
        for (const auto& l : list)
          if (l.a == m || l.b == m) best = std::max(best, l.gbytes_per_s);
      if (slow_again(m))
        say(member(m).host, fmt::format("is slow: with each of its partners {:.3f} GB/s or less in one "
                                        "direction, others have {:.3f} GB/s",
                                        best, suspects.usual));
      else
        say(member(m).host,
            fmt::format("was slow with its neighbours but not with another host: {:.3f} of {:.3f} GB/s; "
                        "the cables between them, or their load",
                        best, suspects.usual),
            model::Severity::info);
    }
    for (const auto& link : suspects.links) {
      const int a = link.first, b = link.second;
      const auto again = std::ranges::find_if(confirmed, [&](const Link& l) { return l.a == a && l.b == b; });
      if (again == confirmed.end() || again->gbytes_per_s >= suspects.limit) continue;
      say(member(a).host + "-" + member(b).host,
          fmt::format("is slow twice, while both hosts are not: {:.3f} of {:.3f} GB/s", again->gbytes_per_s,
                      suspects.usual));
    }
    for (const auto& cell : outcome_.cells)
      if (cell.wrong.value_or(0) > 0)
        outcome_.judgements.push_back({model::Severity::error,
                                       member(number_of(cell.a)).host + "-" + member(number_of(cell.b)).host,
                                       fmt::format("{} bytes arrived wrong", *cell.wrong)});
  }

  // What every host counted over exactly this time.
  Result<void> counters(const std::map<std::string, double>& mine) {
    std::string text;
    for (const auto& [name, value] : mine)
      if (value != 0) text += fmt::format("{} {:.0f}\n", name, value);
    const auto all = peers_.exchange(text, "counters", options_.limit_seconds);
    if (!all) return tl::unexpected(all.error());
    std::set<std::string> hosts;
    for (int r = 0; r < peers_.size(); ++r) {
      if (hosts.insert(peers_.at(r).host).second)
        losses(peers_.at(r).host, (*all)[static_cast<std::size_t>(r)]);
    }
    return {};
  }

  void losses(const std::string& host, const std::string& text) {
    std::map<std::string, double> counted;
    for (const auto line : split(text, '\n')) {
      const auto space = line.find(' ');
      if (space != std::string::npos)
        counted[std::string(line.substr(0, space))] = std::atof(std::string(line.substr(space)).c_str());
    }
    const double sent = counted["tcp.OutSegs"], again = counted["tcp.RetransSegs"];
    counted.erase("tcp.OutSegs");
    counted.erase("tcp.RetransSegs");
    if (again > 0)
      outcome_.judgements.push_back(
          {again > sent * 1e-3 ? model::Severity::warn : model::Severity::info, host,
           fmt::format("TCP sent {:.0f} of {:.0f} segments again during the test", again, sent)});
    for (const auto& [name, value] : counted)
      if (value > 0)
        outcome_.judgements.push_back(
            {model::Severity::info, host, fmt::format("{} rose by {:.0f} during the test", name, value)});
  }

  WorkingPeers peers_;
  const SuiteOptions& options_;
  const measure::Session& session_;
  const host::Host& host_;
  Outcome& outcome_;
  std::unique_ptr<Ucx> ucx_;
  std::vector<std::string> addresses_;
  std::set<int> connected_;
};

const Member* member_of(const Outcome& outcome, int rank) {
  const auto found = std::ranges::find(outcome.members, rank, &Member::rank);
  return found == outcome.members.end() ? nullptr : &*found;
}

std::string end_name(const Outcome& outcome, int rank) {
  const auto* m = member_of(outcome, rank);
  if (m == nullptr) return fmt::format("rank {}", rank);
  const auto same = std::ranges::count(outcome.members, m->host, &Member::host);
  return same > 1 ? fmt::format("{}:{}", m->host, rank) : m->host;
}

// What differs from the usual is part of a result's identity.
std::vector<model::Param> params_of(const Outcome& outcome, const SuiteOptions& options, const Cell& cell) {
  std::vector<model::Param> out{{"a", end_name(outcome, cell.a)},
                                {"b", end_name(outcome, cell.b)},
                                {"bytes", static_cast<std::int64_t>(cell.bytes)}};
  if (options.streams > 1) out.push_back({"streams", std::int64_t{options.streams}});
  if (options.gpu_memory != nullptr) out.push_back({"memory", "gpu"});
  return out;
}

void verified(model::Measurement& m, const Cell& cell) {
  m.verified = cell.wrong == 0u;
  m.verified_how = cell.wrong ? "every byte of a message compared" : "not compared";
  if (cell.wrong.value_or(0) > 0) {
    m.status = model::MeasureStatus::failed;
    m.why = fmt::format("{} of {} bytes arrived wrong", *cell.wrong, cell.bytes);
  }
}

model::Measurement latency_of(const Outcome& outcome, const SuiteOptions& options, const Cell& cell) {
  model::Measurement m;
  m.name = fmt::format("net.latency.{}", name_of(cell.op));
  m.params = params_of(outcome, options, cell);
  m.unit = "seconds";
  m.samples = cell.samples;
  measure::summarise(m, {0.05, 1e9, 3});
  m.outliers.clear();
  m.extra = {{"mean_seconds", cell.mean},
             {"messages", static_cast<std::int64_t>(cell.samples.size())},
             {"max_seconds", *std::ranges::max_element(cell.samples)},
             {"transports", cell.lanes}};
  // The document keeps at most a thousand, evenly over the time; the quantiles are of all.
  const std::size_t step = m.samples.size() / 1000 + 1;
  std::vector<double> kept;
  for (std::size_t i = 0; i < m.samples.size(); i += step) kept.push_back(m.samples[i]);
  m.samples = std::move(kept);
  verified(m, cell);
  return m;
}

Cell turned(const Cell& cell) {
  auto out = cell;
  std::swap(out.a, out.b);
  return out;
}

model::Measurement rate_of(const Outcome& outcome, const SuiteOptions& options, const Cell& cell,
                           const char* kind, const Ucx::Stream& stream) {
  model::Measurement m;
  m.name = fmt::format("net.{}.{}", kind, name_of(cell.op));
  m.params = params_of(outcome, options, cell);
  m.unit = "gbytes_per_s";
  m.samples = {stream.gbytes_per_s};
  m.median = stream.gbytes_per_s;
  m.extra = {{"messages_per_s", stream.messages_per_s}, {"cpus", stream.cpu}};
  verified(m, cell);
  return m;
}

}  // namespace

Result<void> run_suite(peers::Peers& peers, const SuiteOptions& options, const measure::Session& session,
                       const host::Host& host, Outcome& outcome) {
  return Suite(peers, options, session, host, outcome).go();
}

std::vector<model::Measurement> measurements_of(const Outcome& outcome, const SuiteOptions& options) {
  std::vector<model::Measurement> out;
  for (const auto& cell : outcome.cells) {
    if (!cell.samples.empty()) out.push_back(latency_of(outcome, options, cell));
    out.push_back(rate_of(outcome, options, cell, "bandwidth", cell.one));
    if (options.plan == Plan::pair) {
      out.push_back(rate_of(outcome, options, cell, "both", cell.both));
      continue;
    }
    out.back().extra.push_back({"latency_8_bytes_seconds", cell.mean});
    out.push_back(rate_of(outcome, options, turned(cell), "bandwidth", cell.both));
  }
  for (const auto& cell : outcome.confirmed) {
    out.push_back(rate_of(outcome, options, cell, "again", cell.one));
    out.push_back(rate_of(outcome, options, turned(cell), "again", cell.both));
  }
  return out;
}

std::vector<model::SizeModel> models_of(const Outcome& outcome) {
  std::vector<model::SizeModel> out;
  for (const auto op : all_ops()) {
    std::vector<measure::SizePoint> points;
    for (const auto& cell : outcome.cells)
      if (cell.op == op && !cell.samples.empty())
        points.push_back({static_cast<double>(cell.bytes), cell.mean});
    const auto fit = measure::fit_sizes(points);
    if (!fit.segments.empty())
      out.push_back({fmt::format("net.latency.{}", name_of(op)), {}, fit.segments, fit.mean_error});
  }
  return out;
}

namespace {

std::string pair_text(const Outcome& outcome, const SuiteOptions& options) {
  std::string out;
  std::optional<Op> op;
  for (const auto& c : outcome.cells) {
    if (op != c.op) {
      out += fmt::format(
          "{}{} between {} and {}, {}: {}{}{}; one way in us, bandwidth of one direction in GB/s\n",
          out.empty() ? "" : "\n", name_of(c.op), end_name(outcome, c.a), end_name(outcome, c.b),
          outcome.library, c.lanes.empty() ? "transport unknown" : c.lanes,
          options.streams > 1 ? fmt::format(", {} streams", options.streams) : "",
          options.gpu_memory == nullptr ? "" : ", memory of " + options.memory);
      out +=
          fmt::format("{:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>5}  {}\n", "bytes", "mean",
                      "p50", "p99", "p99.9", "max", "one way", "both", "messages/s", "CPUs", "data");
      op = c.op;
    }
    const auto q = [&](double p) { return measure::percentile_of(c.samples, p).value_or(0) * 1e6; };
    out += fmt::format(
        "{:>10} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.3f} {:>9.3f} {:>11.0f} {:>5.2f}  {}\n",
        c.bytes, c.mean * 1e6, q(0.5), q(0.99), q(0.999), q(1), c.one.gbytes_per_s, c.both.gbytes_per_s,
        c.one.messages_per_s, c.one.cpu,
        c.wrong.value_or(0) > 0 ? fmt::format("{} bytes WRONG", *c.wrong) : "all right");
  }
  return out;
}

// Hosts by hosts; the darker, the slower against the usual.
std::string matrix_text(const Outcome& outcome, const SuiteOptions& options) {
  std::map<std::pair<int, int>, double> rate;
  std::vector<double> all;
  for (const auto* list : {&outcome.cells, &outcome.confirmed}) {
    for (const auto& c : *list) {
      rate[{c.a, c.b}] = c.one.gbytes_per_s;
      rate[{c.b, c.a}] = c.both.gbytes_per_s;
      all.push_back(std::min(c.one.gbytes_per_s, c.both.gbytes_per_s));
    }
  }
  const double usual = measure::percentile_of(all, 0.75).value_or(1);
  const auto shade = [&](double value) {
    return value >= 0.9 * usual ? ' ' : value >= 0.7 * usual ? '.' : value >= 0.4 * usual ? 'o' : '#';
  };
  std::string out = fmt::format(
      "GB/s from the row's to the column's host, {} hosts, {} of {} bytes, {} ('.' under 90 % of the usual "
      "{:.3f}, 'o' under 70 %, '#' "
      "under 40 %)\n",
      outcome.members.size(), name_of(options.ops.front()), options.pair_bytes, outcome.library, usual);
  out += fmt::format("{:>12}", "");
  for (const auto& m : outcome.members) out += fmt::format(" {:>9.9}", m.host);
  out += "\n";
  for (const auto& row : outcome.members) {
    out += fmt::format("{:>12.12}", row.host);
    for (const auto& column : outcome.members) {
      const auto found = rate.find({row.rank, column.rank});
      out += found == rate.end() ? fmt::format(" {:>9}", row.rank == column.rank ? "-" : "")
                                 : fmt::format(" {:>8.3f}{}", found->second, shade(found->second));
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string table_text(const Outcome& outcome, const SuiteOptions& options) {
  if (outcome.cells.empty()) return "";
  return options.plan == Plan::pair ? pair_text(outcome, options) : matrix_text(outcome, options);
}

}  // namespace topotune::net
