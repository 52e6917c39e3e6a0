#include "mixed/advice.h"

#include <algorithm>

#include "mixed/loss.h"

namespace topotune::mixed {

namespace {

using model::Judgement;
using model::Severity;

constexpr double kDisturbed = 1.5, kFine = 1.2;  // times slower
constexpr double kOneCpu = 0.8;                  // share of a vector's or softirq's interrupts
constexpr std::size_t kEnough = 8;               // operations of a stream
constexpr double kBusySoftirq = 10000;           // a second

// How a kind of stream fared: its least and most disturbed member.
struct Fate {
  std::string text;  // "small 1.04 x (1.02-1.06)"
  double least = 1e9, most = 0;
  bool sure = true;  // the interval lies on the same side as the ratio
};

bool is_save(const StreamResult& stream) { return stream.plan.stream.op == "checkpoint"; }

class Rules {
 public:
  explicit Rules(const Evidence& evidence) : e_(evidence), report_(*evidence.report) {}

  std::vector<Judgement> all() {
    for (const auto& stream : report_.streams) {
      if (is_save(stream)) continue;
      (is_big(stream) ? large_ : small_).push_back(&stream);
    }
    size_rules();
    beside_checkpoints();
    rates_not_held();
    one_cpu();
    counters();
    not_judged();
    return std::move(out_);
  }

 private:
  // Also where all sizes were scaled down: three times the least stream.
  bool is_big(const StreamResult& stream) const {
    double least = stream.plan.mean_bytes();
    for (const auto& other : report_.streams)
      if (!is_save(other)) least = std::min(least, other.plan.mean_bytes());
    return stream.plan.mean_bytes() >= std::min(8.0 * (1 << 20), 3 * least);
  }

  void say(Severity severity, const char* rule, std::string text) {
    out_.push_back({severity, std::string("advice ") + rule, std::move(text)});
  }

  std::optional<Fate> fate_of(const std::vector<const StreamResult*>& streams) {
    Fate fate;
    const double end = common_end(report_.streams);
    for (const auto* stream : streams) {
      const auto slower = slowdown_of(stream->alone, within(stream->together, end));
      if (!slower) {
        unjudged_.push_back(fmt::format("{}: fewer than three operations", stream->plan.stream.name));
        continue;
      }
      fate.least = std::min(fate.least, slower->ratio), fate.most = std::max(fate.most, slower->ratio);
      fate.sure = fate.sure && (slower->ratio < kDisturbed || slower->ci95.low > kFine);
      fate.text +=
          fmt::format("{}{} {:.2f} x slower beside the others ({:.2f}-{:.2f})", fate.text.empty() ? "" : ", ",
                      stream->plan.stream.name, slower->ratio, slower->ci95.low, slower->ci95.high);
    }
    if (fate.text.empty()) return std::nullopt;
    return fate;
  }

  void size_rules() {
    const auto small = fate_of(small_), large = fate_of(large_);
    if (!small || !large) return;
    const auto evidence = small->text + "; " + large->text;
    const bool small_fine = small->most <= kFine, large_fine = large->most <= kFine;
    const bool small_slow = small->most >= kDisturbed && small->sure;
    const bool large_slow = large->most >= kDisturbed && large->sure;
    if (small_fine && large_slow)
      say(Severity::info, "small-fine-large-slow",
          "the streams share bandwidth, not latency: large transfers lose it to each other; spread them over "
          "the step, "
          "or over other links (evidence: " +
              evidence + ")");
    if (large_fine && small_slow)
      say(Severity::info, "large-fine-small-slow",
          "small messages wait behind large ones: give them a communicator, stream priority or traffic class "
          "of their "
          "own, or cut large transfers into pieces (evidence: " +
              evidence + ")");
    if (small_slow && large_slow) both_slow(evidence);
  }

  void both_slow(const std::string& evidence) {
    for (const auto& [host, load] : e_.load) {
      // Each rank polls with one CPU, and a checkpoint takes another.
      if (e_.on_gpus || load.ranks + 1 <= load.cpus) continue;
      say(Severity::info, "too-few-cpus",
          fmt::format("{} ranks and their checkpoints have {} CPUs on {}: what is measured is the scheduler; "
                      "give each "
                      "rank two CPUs (evidence: {})",
                      load.ranks, load.cpus, host, evidence));
      return;
    }
    say(Severity::info, "all-slow",
        "large and small transfers disturb each other: they share a link, a copy engine or memory; the "
        "checkpoint's and "
        "the transfers' paths are shown by 'topotune show' (evidence: " +
            evidence + ")");
  }

  void beside_checkpoints() {
    for (const auto& save : report_.streams) {
      if (!is_save(save)) continue;
      for (const auto& stream : report_.streams) {
        if (&stream == &save) continue;
        const auto beside = slowdown_of(stream.alone, overlapping(stream.together, save.together));
        if (!beside || beside->operations < kEnough || beside->ratio < kDisturbed ||
            beside->ci95.low <= kFine)
          continue;
        say(Severity::info, "checkpoint-disturbs",
            fmt::format("while a checkpoint is saved, {} is {:.2f} x slower ({:.2f}-{:.2f}, {} operations): "
                        "save from a "
                        "thread of its own on other CPUs, in smaller pieces, or beside computation",
                        stream.plan.stream.name, beside->ratio, beside->ci95.low, beside->ci95.high,
                        beside->operations));
      }
    }
  }

  void rates_not_held() {
    for (const auto& stream : report_.streams) {
      const auto expected = expected_of(stream);
      const auto reached = achieved_gbytes_per_s(stream.together);
      if (!expected || !reached || *reached >= expected->low || stream.together.size() < kEnough) continue;
      say(Severity::info, "rate-not-held",
          fmt::format("{} reaches {:.3g} GB/s beside the others, {}: the profile asks for more than the "
                      "machine gives at "
                      "once",
                      stream.plan.stream.name, *reached, expected->why));
    }
  }

  void one_cpu() {
    std::map<std::pair<std::string, std::string>, std::map<int, double>> nics;
    for (const auto& rate : report_.interrupts) {
      if (rate.kind == "nic") nics[{rate.host, rate.nic}][rate.busiest_cpu] += rate.per_second;
      if (rate.kind != "softirq" || !rate.id.starts_with("NET_") || rate.per_second < kBusySoftirq ||
          rate.busiest_share < kOneCpu)
        continue;
      say(Severity::info, "softirqs-on-one-cpu",
          fmt::format(
              "CPU {} of {} handles {:.0f} % of {:.0f} {} softirqs a second: more queues (ethtool -L) or RPS "
              "spread them",
              rate.busiest_cpu, rate.host, rate.busiest_share * 100, rate.per_second, rate.id));
    }
    for (const auto& [place, cpus] : nics) {
      double sum = 0;
      auto most = cpus.begin();
      for (auto one = cpus.begin(); one != cpus.end(); ++one) {
        sum += one->second;
        if (one->second > most->second) most = one;
      }
      if (sum < 1000 || most->second < kOneCpu * sum) continue;
      say(Severity::info, "interrupts-on-one-cpu",
          fmt::format("CPU {} takes {:.0f} % of the {:.0f} interrupts a second of {} on {}: 'topotune check' "
                      "says where "
                      "they belong (IRQ03)",
                      most->first, most->second / sum * 100, sum, place.second, place.first));
    }
  }

  void counters() {
    for (const auto& [host, added] : e_.counters) {
      const auto signs = signs_of_loss(added);
      if (signs.empty()) continue;
      say(Severity::warn, "network-loss",
          fmt::format(
              "{} lost packets while the streams ran: {}; 'topotune check' judges the ports, 'topotune bench "
              "net' finds the link",
              host, fmt::join(signs, ", ")));
    }
  }

  void not_judged() {
    for (const auto& [host, why] : e_.unread)
      unjudged_.push_back(fmt::format("interrupts and counters of {}: {}", host, why));
    const bool nics = std::ranges::any_of(report_.interrupts, [](const auto& r) { return r.kind == "nic"; });
    if (e_.unread.empty() && !nics)
      unjudged_.push_back("interrupts of NICs: none fired, or the kernel shows none");
    if (e_.counters.empty() && e_.unread.empty()) unjudged_.push_back("retransmits: no counters");
    if (unjudged_.empty()) return;
    say(Severity::info, "not-judged", fmt::format("{}", fmt::join(unjudged_, "; ")));
  }

  const Evidence& e_;
  const Report& report_;
  std::vector<const StreamResult*> small_, large_;
  std::vector<std::string> unjudged_;
  std::vector<Judgement> out_;
};

}  // namespace

std::vector<Judgement> advise(const Evidence& evidence) { return Rules(evidence).all(); }

}  // namespace topotune::mixed
