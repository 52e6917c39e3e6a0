// Rules about counters of RDMA ports, from two readings. Linux
// Documentation/ABI/stable/sysfs-class-infiniband; InfiniBand Architecture 1.3, 16.1.3.5 (PortCounters);
// counters of mlx5: Documentation "RDMA counters" of its vendor.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "checks/facts_of.h"
#include "checks/families.h"
#include "checks/readings.h"
#include "parse/kernel_log.h"

namespace topotune::checks {
namespace {

using model::RdmaPort;
using model::Severity;

constexpr std::uint64_t kEnd8 = 255, kEnd16 = 65535,
                        kEnd32 = 4294967295;  // where a counter of that width stops

// A port in both readings. `rail`: it carries a job's traffic; where no rail is known, every hardware port
// counts.
struct Pair {
  const RdmaPort* now;
  const RdmaPort* before;
  bool rail;
};

struct Pairs {
  std::vector<Pair> list;
  std::optional<Outcome> none;  // why there is nothing to look at
};

Pairs pairs_of(const Evidence& evidence) {
  const auto& machine = *evidence.machine;
  if (machine.ports.empty())
    return {{},
            machine.rdma_read ? Outcome(Clean{"no RDMA NIC"})
                              : Outcome(NotEvaluated{"RDMA ports: " + machine.rdma_read.why})};
  if (const auto why = no_earlier_reading(evidence)) return {{}, Outcome(*why)};
  Pairs out;
  const auto rails = rails_of(evidence).ports;
  for (const auto& port : machine.ports) {
    const bool rail = std::ranges::find(rails, &port) != rails.end();
    const auto* before = earlier_port(evidence, port);
    if (is_software(port) || (!rails.empty() && !rail) || before == nullptr) continue;
    out.list.push_back({&port, before, rail});
  }
  if (out.list.empty()) out.none = Outcome(NotEvaluated{"no port of the job in both readings"});
  return out;
}

std::optional<std::uint64_t> rise_of(const Pair& pair, const char* name, std::uint64_t end = 0) {
  return rise(value_of(pair.before->counters, name), value_of(pair.now->counters, name), end);
}

model::Evidence counter_line(const Pair& pair, const char* name) {
  const auto text = [&](const RdmaPort& port) {
    const auto value = value_of(port.counters, name);
    return value ? fmt::format("{}", *value) : std::string("?");
  };
  return {pair.now->source.empty() ? pair.now->device : pair.now->source,
          fmt::format("{} {} -> {}", name, text(*pair.before), text(*pair.now))};
}

bool counted(const Pair& pair, const char* name) {
  return pair.now->counters.contains(name) && pair.before->counters.contains(name);
}

void missing_counter(const Pair& pair, const char* name, Judge& judge) {
  judge.unknown(fmt::format("{}: {}: not in both readings", name_of_port(*pair.now), name));
}

// More than `limit` a second.
bool faster(const Evidence& evidence, std::uint64_t events, double limit) {
  const auto rate = per_second(evidence, events);
  return rate && *rate > limit;
}

constexpr const char* kNoTime = "the time between the readings: unknown (--interval SECONDS tells it)";

// A rule that compares the rate of one counter with a limit.
void judge_rate(const Evidence& evidence, const Pair& pair, const char* name, std::uint64_t end, double limit,
                Judge& judge) {
  if (!counted(pair, name)) return missing_counter(pair, name, judge);
  const auto events = rise_of(pair, name, end);
  if (!events || *events == 0) return;
  if (!evidence.seconds) return judge.unknown(kNoTime);
  if (!faster(evidence, *events, limit)) return;
  judge.found(name_of_port(*pair.now), fmt::format("{} rises by at most {:.3g} per s", name, limit),
              fmt::format("by {} {}", *events, interval_text(evidence)), {counter_line(pair, name)});
}

// ---- CTR01

void judge_link(const Evidence& evidence, const Pair& pair, Judge& judge) {
  const auto downed = rise_of(pair, "link_downed", kEnd8);
  const auto carrier = rise(pair.before->carrier_changes, pair.now->carrier_changes);
  const bool active = pair.now->state == "ACTIVE";
  const std::string name = name_of_port(*pair.now);
  if (downed.value_or(0) > 0) {
    auto& found =
        judge.found(name, "no loss of link",
                    fmt::format("link_downed rose by {} {}, the port is {}", *downed, interval_text(evidence),
                                pair.now->state.value_or("in an unknown state")),
                    {counter_line(pair, "link_downed")});
    const bool bad = !active || *downed > 1 || evidence.multi_node_job;
    if (!bad || !pair.rail) found.severity = Severity::warn;
    return;
  }
  if (carrier.value_or(0) > 2) {
    auto& found = judge.found(name, "no loss of carrier",
                              fmt::format("carrier_changes rose by {} {}", *carrier, interval_text(evidence)),
                              {{pair.now->netdev.value_or(pair.now->device),
                                fmt::format("carrier_changes {} -> {}", *pair.before->carrier_changes,
                                            *pair.now->carrier_changes)}});
    found.severity = Severity::warn;
    return;
  }
  if (!counted(pair, "link_downed") && !carrier) missing_counter(pair, "link_downed", judge);
}

// "…: ib6: Lost carrier", "mlx5_core 0000:18:00.0 ens1f0: Link down", "… mlx5_5: Port: 1 Link DOWN": the
// interface or device that lost its link.
std::optional<std::string_view> lost_link(std::string_view line) {
  for (const std::string_view mark :
       {": Lost carrier", ": lost carrier", ": Link down", ": NIC Link is Down", ": Port: 1 Link DOWN"}) {
    const auto at = line.find(mark);
    if (at == std::string_view::npos) continue;
    const auto before = words(line.substr(0, at));
    return before.empty() ? std::nullopt : std::optional(before.back());
  }
  return std::nullopt;
}

// Where no rail is known: what certainly is an interface of an RDMA NIC.
bool may_be_rail(const Evidence& evidence, const Rails& rails, std::string_view name, std::string_view line) {
  if (rails.ports.empty() && evidence.machine->ports.empty())
    return name.starts_with("mlx5_") || line.find("mlx5_core ") != std::string_view::npos ||
           (name.starts_with("ib") && name.size() > 2 && (is_digit(name[2]) || name[2] == 'p'));
  return std::ranges::any_of(
      rails.ports, [&](const RdmaPort* port) { return port->device == name || port->netdev == name; });
}

// Losses of one link by the log, as many as fall into one day.
std::size_t most_in_a_day(std::vector<double> seconds) {
  constexpr double kDay = 86400;
  std::ranges::sort(seconds);
  std::size_t most = 0, first = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    while (seconds[i] - seconds[first] > kDay) ++first;
    most = std::max(most, i + 1 - first);
  }
  return most;
}

// Flapping links in the kernel's or the system's log; lines without a time are not counted.
bool judge_log(const Evidence& evidence, Judge& judge) {
  constexpr std::size_t kFlapping = 5;
  const auto& machine = *evidence.machine;
  if (!machine.kernel_log) return false;
  struct Losses {
    std::vector<double> seconds;
    std::size_t last = 0;
  };
  std::map<std::string, Losses, std::less<>> losses;
  const auto rails = rails_of(evidence);
  for (std::size_t i = 0; i < machine.kernel_log->size(); ++i) {
    const std::string_view line = (*machine.kernel_log)[i];
    const auto name = lost_link(line);
    const auto time = name ? parse::seconds_of_stamp(line) : std::nullopt;
    if (!time || !may_be_rail(evidence, rails, *name, line)) continue;
    auto& of = losses[std::string(*name)];
    of.seconds.push_back(*time);
    of.last = i;
  }
  bool any = false;
  for (const auto& [name, of] : losses) {
    const auto count = most_in_a_day(of.seconds);
    if (count < kFlapping) continue;
    auto& found = judge.found(name, fmt::format("fewer than {} losses of link in a day", kFlapping),
                              fmt::format("{} within a day", count), {kernel_line(machine, of.last)});
    found.severity = Severity::warn;
    any = true;
  }
  return any;
}

Outcome check_CTR01(const Evidence& evidence) {
  Judge judge("CTR01");
  const bool flaps = judge_log(evidence, judge);
  const auto pairs = pairs_of(evidence);
  if (pairs.none && !flaps) return *pairs.none;
  for (const auto& pair : pairs.list) judge_link(evidence, pair, judge);
  return judge.outcome();
}

// ---- CTR02

// Lanes that send one bit a symbol: slower than 100 Gb/s, or cards that end there (ConnectX-4 and 5). On PAM4
// links raw errors before correction are normal.
bool certainly_nrz(const RdmaPort& port) {
  constexpr double kFirstPam4 = 100;
  if (port.gbits_per_s && *port.gbits_per_s < kFirstPam4) return true;
  const auto type = port.hca_type.value_or("");
  return type == "MT4115" || type == "MT4117" || type == "MT4119" || type == "MT4121";
}

void judge_symbols(const Evidence& evidence, const Pair& pair, Judge& judge) {
  constexpr double kPerSecond = 10, kPerHour = 120, kHour = 3600;
  if (!certainly_nrz(*pair.now)) return;
  if (!counted(pair, "symbol_error")) return missing_counter(pair, "symbol_error", judge);
  const auto events = rise_of(pair, "symbol_error", kEnd16);
  if (!events || *events == 0) return;
  if (!evidence.seconds) return judge.unknown(kNoTime);
  const bool sustained = *evidence.seconds >= kHour && faster(evidence, *events, kPerHour / kHour);
  if (!sustained && !faster(evidence, *events, kPerSecond)) return;
  auto& found = judge.found(name_of_port(*pair.now), "at most 120 symbol errors per hour",
                            fmt::format("{} {}", *events, interval_text(evidence)),
                            {counter_line(pair, "symbol_error")});
  if (sustained && pair.rail) found.severity = Severity::error;
}

Outcome check_CTR02(const Evidence& evidence) {
  constexpr double kRecoveriesPerSecond = 5.0 / 60;
  const auto pairs = pairs_of(evidence);
  if (pairs.none) return *pairs.none;
  Judge judge("CTR02");
  for (const auto& pair : pairs.list) {
    judge_symbols(evidence, pair, judge);
    judge_rate(evidence, pair, "link_error_recovery", kEnd8, kRecoveriesPerSecond, judge);
  }
  return judge.outcome();
}

// ---- CTR03

Outcome check_CTR03(const Evidence& evidence) {
  constexpr double kReceiveErrorsPerSecond = 10;
  const auto pairs = pairs_of(evidence);
  if (pairs.none) return *pairs.none;
  Judge judge("CTR03");
  for (const auto& pair : pairs.list) {
    for (const char* name : {"local_link_integrity_errors", "excessive_buffer_overrun_errors"}) {
      if (!counted(pair, name)) missing_counter(pair, name, judge);
      const auto events = rise_of(pair, name, 15);  // four bits in PortCounters
      if (events.value_or(0) == 0) continue;
      auto& found =
          judge.found(name_of_port(*pair.now), fmt::format("{} does not rise", name),
                      fmt::format("by {} {}", *events, interval_text(evidence)), {counter_line(pair, name)});
      if (!pair.rail) found.severity = Severity::warn;
    }
    const auto events = rise_of(pair, "port_rcv_errors", kEnd16);
    if (events && faster(evidence, *events, kReceiveErrorsPerSecond))
      judge
          .found(name_of_port(*pair.now), "at most 10 receive errors per s",
                 fmt::format("{} {}", *events, interval_text(evidence)),
                 {counter_line(pair, "port_rcv_errors")})
          .severity = Severity::warn;
  }
  return judge.outcome();
}

// ---- CTR04

struct Retransmissions {
  std::uint64_t events = 0;
  bool only_out_of_sequence = true;
  std::vector<model::Evidence> lines;
  bool any_counter = false;
};

Retransmissions retransmissions_of(const Pair& pair) {
  Retransmissions out;
  for (const char* name : {"out_of_sequence", "packet_seq_err", "implied_nak_seq_err",
                           "local_ack_timeout_err", "roce_adp_retrans"}) {
    out.any_counter = out.any_counter || counted(pair, name);
    const auto events = rise_of(pair, name).value_or(0);
    if (events == 0) continue;
    out.events = std::max(out.events, events);
    out.only_out_of_sequence = out.only_out_of_sequence && std::string_view(name) == "out_of_sequence";
    out.lines.push_back(counter_line(pair, name));
  }
  return out;
}

void judge_retransmissions(const Evidence& evidence, const Pair& pair, Judge& judge) {
  if (const auto failed = rise_of(pair, "rnr_nak_retry_err"); failed.value_or(0) > 0) {
    auto& found = judge.found(name_of_port(*pair.now), "no queue pair ends by receiver-not-ready",
                              fmt::format("{} {}", *failed, interval_text(evidence)),
                              {counter_line(pair, "rnr_nak_retry_err")});
    found.severity = Severity::error;
  }
  const auto seen = retransmissions_of(pair);
  if (!seen.any_counter)
    return judge.unknown(name_of_port(*pair.now) + ": hw_counters: not in both readings");
  if (seen.events == 0) return;
  if (!evidence.seconds) return judge.unknown(kNoTime);
  if (!faster(evidence, seen.events, 1)) return;
  auto& found = judge.found(name_of_port(*pair.now), "at most one retransmission per s",
                            fmt::format("{} {}", seen.events, interval_text(evidence)), seen.lines);
  // Adaptive routing reorders packets without loss.
  if (seen.only_out_of_sequence) found.severity = Severity::info;
}

Outcome check_CTR04(const Evidence& evidence) {
  const auto pairs = pairs_of(evidence);
  if (pairs.none) return *pairs.none;
  Judge judge("CTR04");
  for (const auto& pair : pairs.list) judge_retransmissions(evidence, pair, judge);
  return judge.outcome();
}

// ---- CTR05

Outcome check_CTR05(const Evidence& evidence) {
  constexpr double kDiscardsPerSecond = 100;
  const auto pairs = pairs_of(evidence);
  if (pairs.none) return *pairs.none;
  Judge judge("CTR05");
  for (const auto& pair : pairs.list) {
    const bool went_down = rise_of(pair, "link_downed", kEnd8).value_or(0) > 0;
    if (!went_down) judge_rate(evidence, pair, "port_xmit_discards", kEnd16, kDiscardsPerSecond, judge);
  }
  return judge.outcome();
}

// ---- CTR06

struct Waiting {
  const Pair* pair;
  double share;  // ticks of waiting a word sent
};

// Rails that sent something between the readings.
std::vector<Waiting> waiting_of(const std::vector<Pair>& pairs) {
  std::vector<Waiting> out;
  for (const auto& pair : pairs) {
    const auto wait = rise_of(pair, "port_xmit_wait", kEnd32), sent = rise_of(pair, "port_xmit_data");
    if (wait && sent && *sent > 0)
      out.push_back({&pair, static_cast<double>(*wait) / static_cast<double>(*sent)});
  }
  return out;
}

Outcome check_CTR06(const Evidence& evidence) {
  constexpr double kTimesSiblings = 10, kNoticeable = 0.01;
  const auto pairs = pairs_of(evidence);
  if (pairs.none) return *pairs.none;
  const auto rails = waiting_of(pairs.list);
  if (rails.size() < 2)
    return NotEvaluated{"port_xmit_wait and port_xmit_data of two rails that sent data: not read"};
  Judge judge("CTR06");
  for (const auto& rail : rails) {
    double others = 0;
    for (const auto& other : rails)
      if (other.pair != rail.pair) others = std::max(others, other.share);
    if (rail.share < kNoticeable || rail.share < kTimesSiblings * others) continue;
    judge.found(name_of_port(*rail.pair->now), "about as much waiting as on the other rails",
                fmt::format("{:.3g} ticks a word sent, {:.3g} at most elsewhere", rail.share, others),
                {counter_line(*rail.pair, "port_xmit_wait"), counter_line(*rail.pair, "port_xmit_data")});
  }
  return judge.outcome();
}

constexpr Rule kRules[] = {{"CTR01", check_CTR01}, {"CTR02", check_CTR02}, {"CTR03", check_CTR03},
                           {"CTR04", check_CTR04}, {"CTR05", check_CTR05}, {"CTR06", check_CTR06}};

}  // namespace

std::span<const Rule> ctr_rules() { return kRules; }

}  // namespace topotune::checks
