#include <algorithm>
#include <cmath>
#include <memory>

#include "cuda/arena.h"
#include "cuda/latency.h"
#include "cuda/suite.h"
#include "measure/fit.h"

namespace topotune::cuda {

namespace {

using model::Measurement;
using model::Param;

// GB/s, for the length of a sample only: a link, and what one multiprocessor moves.
constexpr double kNvLinkGuess = 300, kMultiprocessorGuess = 45;

std::int64_t whole(std::size_t value) { return static_cast<std::int64_t>(value); }

Measurement result(std::string name, std::string unit, std::vector<Param> params) {
  Measurement m;
  m.name = std::move(name);
  m.unit = std::move(unit);
  m.params = std::move(params);
  return m;
}

struct Shape {
  int chunk, stages, drain;
};
// The best of 24 shapes for each number of blocks on two H200
// (measurements/2026-11-29-h200x2-bench/tune.csv). Reads want few bytes in many pieces once there are blocks
// enough; writes want large pieces until every multiprocessor works.
Shape read_shape(int blocks) {
  if (blocks <= 24) return {16384, 13, 2};
  if (blocks <= 48) return {16384, 13, 8};
  return blocks <= 96 ? Shape{8192, 8, 4} : Shape{4096, 8, 4};
}
Shape write_shape(int blocks) {
  if (blocks <= 12) return {16384, 13, 8};
  return blocks <= 96 ? Shape{32768, 6, 4} : Shape{4096, 8, 2};
}

// How kernels copy `bytes` best: TMA for large ones where the architecture has it (sm_90 on), 16-byte
// accesses else.
KernelCopy kernel_for(const Gpu& gpu, bool read, std::size_t bytes, int blocks) {
  KernelCopy k;
  k.bulk = gpu.sm >= 90 && bytes >= (1u << 20) && gpu.shared_per_block >= 65536;
  k.blocks = blocks > 0 ? blocks : gpu.multiprocessors;
  if (!k.bulk) {
    const auto needed = static_cast<int>(std::min<std::size_t>((bytes / 16 + 511) / 512, 1u << 20));
    if (blocks == 0) k.blocks = std::clamp(needed, 1, gpu.multiprocessors * 2);
    return k;
  }
  const auto shape = read ? read_shape(k.blocks) : write_shape(k.blocks);
  k.chunk = shape.chunk, k.drain = shape.drain;
  k.stages = std::clamp(gpu.shared_per_block / k.chunk, k.drain + 1, shape.stages);
  if (k.chunk * k.stages > gpu.shared_per_block) k.chunk = 4096, k.stages = 8, k.drain = 4;
  return k;
}

double guess_of(const Measurement& m, const Transfer& t) {
  if (m.expected) return m.expected->value();
  return t.by_kernel ? std::min(kNvLinkGuess, kMultiprocessorGuess * t.kernel.blocks) : kNvLinkGuess;
}

std::vector<Param> kernel_facts(const Transfer& t) {
  if (!t.by_kernel) return {};
  std::vector<Param> facts{{"kernel", std::string(t.kernel.bulk ? "tma" : "16-byte")},
                           {"blocks", std::int64_t{t.kernel.blocks}}};
  if (t.kernel.bulk) {
    facts.push_back({"chunk_bytes", std::int64_t{t.kernel.chunk}});
    facts.push_back({"stages", std::int64_t{t.kernel.stages}});
    facts.push_back({"drain", std::int64_t{t.kernel.drain}});
  }
  return facts;
}

class P2p {
 public:
  P2p(const Bench& bench, std::vector<const Gpu*> gpus) : b_(bench), gpus_(std::move(gpus)) {}
  void run();

 private:
  struct Pair {
    std::size_t src, dst;
  };
  bool wants(const std::string& part) const {
    return b_.options.parts.empty() ? part != "tune" && part != "loads" : b_.options.parts.contains(part);
  }
  const Arena& arena(std::size_t i) const { return *arenas_[i]; }
  const std::string& id(std::size_t i) const { return gpus_[i]->id; }
  bool open_pairs();
  bool open_arenas();
  std::vector<Pair> ordered_pairs() const;
  std::vector<Pair> unordered_pairs() const;
  void waive_pair(const Pair& pair, const std::string& why);

  Transfer transfer(const Pair& pair, bool read, bool by_kernel, std::size_t bytes, int blocks) const;
  // Bandwidth of the first transfer of a set; the others run beside it.
  struct CellHow {
    bool counters = false;      // of the NVLinks, before and after
    double sample_seconds = 0;  // 0: the options'
  };
  void cell(Measurement m, std::vector<Transfer> transfers, std::vector<Landing> landings,
            const measure::Policy& policy, const CellHow& how);
  void cell(Measurement m, std::vector<Transfer> transfers, std::vector<Landing> landings,
            const measure::Policy& policy) {
    cell(std::move(m), std::move(transfers), std::move(landings), policy, {});
  }
  Result<TransferSet> prepared(std::vector<Transfer> transfers, const std::vector<Landing>& landings);
  void check(Measurement& m, const TransferSet& set, const std::vector<Landing>& landings);

  void matrix();
  void both_ways();
  void latency();
  void chase_from_all(Measurement m, const Chain& chain, const Lane& lane, ChaseLoad load);
  void loads();
  void ping_pongs();
  void sweep();
  void sms();
  void tune();
  void stress();
  void together(const std::string& name, const std::vector<Pair>& pairs);

  const Bench& b_;
  std::vector<const Gpu*> gpus_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::set<std::pair<std::size_t, std::size_t>> closed_;  // pairs without peer access
  std::size_t bytes_ = 0;
};

bool P2p::open_pairs() {
  const measure::Session::Timed timed(b_.session, &model::RunTimes::allocation);
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    for (std::size_t j = 0; j < gpus_.size(); ++j) {
      if (i == j) continue;
      const auto ok = enable_peer(b_.machine, *gpus_[i], *gpus_[j]);
      if (ok) continue;
      closed_.insert({std::min(i, j), std::max(i, j)});
      if (i < j) waive_pair({i, j}, ok.error().text);
    }
  }
  return closed_.size() < gpus_.size() * (gpus_.size() - 1) / 2;
}

void P2p::waive_pair(const Pair& pair, const std::string& why) {
  b_.session.waive(result("p2p", "gbytes_per_s", {{"src", id(pair.src)}, {"dst", id(pair.dst)}}), why);
}

bool P2p::open_arenas() {
  const measure::Session::Timed timed(b_.session, &model::RunTimes::allocation);
  const bool large = wants("sweep") && b_.options.bytes >= (512u << 20);
  const std::size_t wanted = large ? std::size_t{1} << 30 : b_.options.bytes;
  std::vector<const Gpu*> kept;
  for (const auto* gpu : gpus_) {
    b_.session.step(gpu->id + ": memory");
    auto arena = make_arena(b_.machine, *gpu, wanted);
    if (!arena) {
      b_.session.waive(result("p2p", "gbytes_per_s", {{"gpu", gpu->id}}), arena.error().text);
      continue;
    }
    kept.push_back(gpu);
    arenas_.push_back(std::move(*arena));
  }
  gpus_ = kept;
  bytes_ = b_.options.bytes;
  for (const auto& arena : arenas_) bytes_ = std::min(bytes_, arena->bytes());
  return gpus_.size() >= 2;
}

// All of them, or with --screen three partners of each: the next one, the one after, and the one across.
std::vector<P2p::Pair> P2p::ordered_pairs() const {
  std::vector<Pair> pairs;
  const std::size_t n = gpus_.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const std::size_t distance = (j + n - i) % n;
      const bool screened = b_.options.screen && distance != 1 && distance != 2 && distance != n / 2;
      if (i != j && !screened && !closed_.contains({std::min(i, j), std::max(i, j)})) pairs.push_back({i, j});
    }
  }
  return pairs;
}

std::vector<P2p::Pair> P2p::unordered_pairs() const {
  auto pairs = ordered_pairs();
  std::erase_if(pairs, [](const Pair& p) { return p.src > p.dst; });
  return pairs;
}

Transfer P2p::transfer(const Pair& pair, bool read, bool by_kernel, std::size_t bytes, int blocks) const {
  auto t = transfer_between(arena(pair.src), arena(pair.dst), read, bytes);
  t.by_kernel = by_kernel;
  t.one_launch = by_kernel;
  if (!by_kernel) return t;
  t.kernel = kernel_for(*t.executor, read, bytes, blocks);
  if (b_.options.kernel) {
    t.kernel = *b_.options.kernel;
    if (t.kernel.blocks == 0) t.kernel.blocks = blocks > 0 ? blocks : t.executor->multiprocessors;
  }
  return t;
}

void P2p::cell(Measurement m, std::vector<Transfer> transfers, std::vector<Landing> landings,
               const measure::Policy& policy, const CellHow& how) {
  for (const auto& t : transfers) {
    if (t.by_kernel && t.executor->module == nullptr) return b_.session.waive(m, t.executor->kernels_why);
  }
  const std::size_t bytes = transfers.front().bytes;
  m.extra = kernel_facts(transfers.front());
  auto set = prepared(std::move(transfers), landings);
  if (!set) return b_.session.fail(m, set.error().text);
  const double length = how.sample_seconds > 0 ? how.sample_seconds : b_.options.sample_seconds;
  const int times = copies_for(bytes, guess_of(m, set->transfers().front()), length);
  const auto sample = [&]() -> Result<double> {
    const auto seconds = set->run(times);
    if (!seconds) return tl::unexpected(seconds.error());
    return static_cast<double>(bytes) / seconds->front() / 1e9;
  };
  const auto& source = *landings.front().src->gpu;
  const auto before = how.counters && b_.nvml != nullptr ? b_.nvml->link_bytes(source.bdf) : std::nullopt;
  auto done = b_.session.sampled(m, policy, sample);
  if (!done) return;
  if (before) {
    const auto after = b_.nvml->link_bytes(source.bdf);
    done->extra.push_back({"logical_bytes", static_cast<std::int64_t>(bytes * set->copies())});
    if (after && after->sent > before->sent)
      done->extra.push_back({"nvlink_bytes_sent", static_cast<std::int64_t>(after->sent - before->sent)});
  }
  check(*done, *set, landings);
  b_.session.add(std::move(*done));
}

// Streams for the transfers; the destinations hold other data than what will arrive.
Result<TransferSet> P2p::prepared(std::vector<Transfer> transfers, const std::vector<Landing>& landings) {
  {
    const measure::Session::Timed timed(b_.session, &model::RunTimes::verification);
    if (auto ok = clear_all(b_.machine, transfers, landings); !ok) return tl::unexpected(ok.error());
  }
  const measure::Session::Timed timed(b_.session, &model::RunTimes::allocation);
  return TransferSet::make(b_.machine, std::move(transfers));
}

void P2p::check(Measurement& m, const TransferSet& set, const std::vector<Landing>& landings) {
  if (m.status == model::MeasureStatus::failed) return;
  const measure::Session::Timed timed(b_.session, &model::RunTimes::verification);
  const auto verdict = verify(b_.machine, set.transfers(), landings);
  m.verified = verdict && verdict->verified;
  m.verified_how = verdict ? verdict->how : verdict.error().text;
  if (!verdict || verdict->wrong) m.status = model::MeasureStatus::failed, m.why = m.verified_how;
}

// These cells are many and steady (0.04 % between samples of one copy): five short samples say as much as
// long ones. Kernels make three copies a sample, since the first launch fills the link and the last empties
// it: with two that took 0.2 %.
void P2p::matrix() {
  auto policy = b_.session.policy();
  policy.min_samples = std::min<std::size_t>(policy.min_samples, 5);
  for (const bool by_kernel : {false, true}) {
    for (const bool read : {false, true}) {
      for (const auto& pair : ordered_pairs()) {
        const std::string op = read ? "read" : "write", engine = by_kernel ? "sm" : "ce";
        auto m = result("p2p." + op + "." + engine, "gbytes_per_s",
                        {{"src", id(pair.src)}, {"dst", id(pair.dst)}, {"bytes", whole(bytes_)}});
        m.expected = b_.expected.p2p(op, engine, id(pair.src), id(pair.dst), bytes_);
        cell(std::move(m), {transfer(pair, read, by_kernel, bytes_, 0)},
             {{&arena(pair.src), &arena(pair.dst)}}, policy, {true, by_kernel ? 0.004 : 0.00125});
      }
    }
  }
}

void P2p::both_ways() {
  for (const bool by_kernel : {false, true}) {
    for (const bool read : {false, true}) {
      for (const auto& pair : unordered_pairs()) {
        const Pair back{pair.dst, pair.src};
        const std::string op = read ? "both.read" : "both.write", engine = by_kernel ? "sm" : "ce";
        for (const auto& [one, other] : {std::pair{pair, back}, std::pair{back, pair}}) {
          auto m = result("p2p." + op + "." + engine, "gbytes_per_s",
                          {{"src", id(one.src)}, {"dst", id(one.dst)}, {"bytes", whole(bytes_)}});
          m.expected = b_.expected.p2p(op, engine, id(one.src), id(one.dst), bytes_);
          cell(std::move(m),
               {transfer(one, read, by_kernel, bytes_, 0), transfer(other, read, by_kernel, bytes_, 0)},
               {{&arena(one.src), &arena(one.dst)}, {&arena(other.src), &arena(other.dst)}},
               b_.session.policy());
        }
      }
    }
  }
}

void P2p::latency() {
  constexpr std::size_t kBytes = 2u << 20, kStride = 128;
  for (std::size_t owner = 0; owner < gpus_.size(); ++owner) {
    const auto chain = Chain::make(b_.machine, *gpus_[owner], kBytes, kStride);
    for (std::size_t reader = 0; reader < gpus_.size(); ++reader) {
      if (reader != owner && closed_.contains({std::min(owner, reader), std::max(owner, reader)})) continue;
      auto m = result(reader == owner ? "p2p.latency.local" : "p2p.latency.load", "seconds",
                      {{"src", id(owner)}, {"dst", id(reader)}, {"bytes", whole(kBytes)}});
      if (gpus_[reader]->module == nullptr) {
        b_.session.waive(m, gpus_[reader]->kernels_why);
        continue;
      }
      auto lane = Lane::make(b_.machine, *gpus_[reader]);
      if (!chain || !lane) {
        b_.session.fail(m, chain ? lane.error().text : chain.error().text);
        continue;
      }
      m.verified = true;  // a chase that ends elsewhere is an error
      m.verified_how = "the chain of pointers ended where it must";
      m.extra = {{"stride_bytes", whole(kStride)}};
      chase_from_all(std::move(m), *chain, *lane, ChaseLoad::relaxed);
    }
  }
}

// A multiprocessor is nearer to a link than another: each sample is of another one, spread over the chip.
void P2p::chase_from_all(Measurement m, const Chain& chain, const Lane& lane, ChaseLoad load) {
  const int all = lane.gpu().multiprocessors;
  m.extra.push_back({"multiprocessors", std::int64_t{all}});
  auto policy = b_.session.policy();
  policy.min_samples = policy.max_samples = static_cast<std::size_t>(std::max(all, 8));
  policy.max_warmup = 2;
  policy.noise.ci = 0.05;  // places differ by some per cent: that is the chip, not noise
  policy.noise.spread = 0.25;
  int turn = 0;
  b_.session.measure(std::move(m), policy,
                     [&] { return chain.chase(lane, 2048, turn++ % std::max(all, 1), load); });
}

void add_places(Measurement& m, const PingPong& played) {
  std::vector<double> middles, spreads;
  for (const auto& place : played.places) {
    const auto middle = measure::median_of(place), p99 = measure::percentile_of(place, 0.99);
    if (!middle || *middle <= 0) continue;
    middles.push_back(*middle);
    spreads.push_back(*p99 / *middle - 1);
  }
  if (middles.empty()) return;
  m.extra = {{"places", whole(middles.size())},
             {"fastest_place_p50", *std::ranges::min_element(middles)},
             {"slowest_place_p50", *std::ranges::max_element(middles)},
             {"p99_over_p50_of_one_place", 1 + *measure::median_of(spreads)}};
}

// A flag alone takes little time and differs most from place to place: at 128 of them six runs lay 62 ns
// apart, at 512 9 ns. Where there are many pairs, that is not worth their time.
void P2p::ping_pongs() {
  const auto pairs = unordered_pairs();
  for (const auto& pair : pairs) {
    for (const std::size_t bytes : {0u, 16u, 1024u, 8192u}) {
      if (b_.session.stopped()) return;
      if (bytes != 0 && pair.src + pair.dst > 1) continue;  // payloads on the first pair only
      const auto& first = *gpus_[pair.src];
      const auto& second = *gpus_[pair.dst];
      auto m = result(bytes == 0 ? "p2p.pingpong.flag" : "p2p.pingpong.put", "seconds",
                      {{"src", first.id}, {"dst", second.id}, {"bytes", whole(bytes)}});
      if (first.module == nullptr || second.module == nullptr) {
        b_.session.waive(m, first.module == nullptr ? first.kernels_why : second.kernels_why);
        continue;
      }
      b_.session.step(measure::title_of(m));
      const auto played = [&] {
        const measure::Session::Timed timed(b_.session, &model::RunTimes::measuring);
        return ping_pong(b_.machine, first, second, bytes,
                         bytes == 0 && pairs.size() <= 6 ? kMostPlaces : 128);
      }();
      if (!played) {
        b_.session.fail(m, played.error().text);
        continue;
      }
      m.samples = played->seconds();
      m.verified = played->wrong == 0;
      m.verified_how = played->wrong == 0
                           ? "every round counted and its data compared by the GPU that received it"
                           : fmt::format("{} pieces of data arrived wrong", played->wrong);
      add_places(m, *played);
      auto limits = b_.session.policy().noise;
      limits.spread = 0.5;  // places differ; the spread of one place is told beside it
      measure::summarise(m, limits);
      if (played->wrong != 0) m.status = model::MeasureStatus::failed, m.why = m.verified_how;
      b_.session.add(std::move(m));
    }
  }
}

measure::Policy short_policy(const measure::Policy& policy) {
  auto p = policy;
  p.max_seconds = std::min(policy.max_seconds, 0.03);
  p.min_samples = 5;
  p.max_samples = 30;
  p.max_warmup = 4;
  // Small copies are dominated by what the driver does for each: the spread is a property, not noise.
  p.noise.ci = 0.02;
  p.noise.spread = 0.5;
  return p;
}

void P2p::sweep() {
  const Pair pair = ordered_pairs().front();
  std::size_t largest = arena(pair.src).bytes();
  largest = std::min(largest, arena(pair.dst).bytes());
  for (const bool by_kernel : {false, true}) {
    for (const bool read : {false, true}) {
      const std::string name =
          fmt::format("p2p.sweep.{}.{}", read ? "read" : "write", by_kernel ? "sm" : "ce");
      std::vector<measure::SizePoint> points;
      for (std::size_t bytes = by_kernel ? 16 : 8; bytes <= largest; bytes *= 2) {
        if (b_.session.stopped()) return;
        const auto before = b_.session.collected().results.size();
        auto t = transfer(pair, read, by_kernel, bytes, 0);
        t.one_launch = false;  // what each copy costs to start is a part of the answer
        cell(result(name, "gbytes_per_s",
                    {{"src", id(pair.src)}, {"dst", id(pair.dst)}, {"bytes", whole(bytes)}}),
             {t}, {{&arena(pair.src), &arena(pair.dst)}}, short_policy(b_.session.policy()));
        const auto collected = b_.session.collected();
        if (collected.results.size() == before) continue;
        const auto& m = collected.results.back();
        if (m.median && *m.median > 0)
          points.push_back({static_cast<double>(bytes), static_cast<double>(bytes) / (*m.median * 1e9)});
      }
      const auto fit = measure::fit_sizes(points);
      if (fit.segments.empty()) continue;
      b_.session.add(model::SizeModel{
          name, {{"src", id(pair.src)}, {"dst", id(pair.dst)}}, fit.segments, fit.mean_error});
    }
  }
}

void P2p::sms() {
  const Pair pair = ordered_pairs().front();
  for (const bool bulk : {true, false}) {
    for (const bool read : {false, true}) {
      const auto& gpu = *gpus_[read ? pair.dst : pair.src];
      if (bulk && gpu.sm < 90) continue;
      auto budget = b_.options.sms;
      if (budget.empty()) budget = {1, 2, 4, 8, 16, 24, 32, 48, 66, gpu.multiprocessors};
      for (const int blocks : budget) {
        if (b_.session.stopped()) return;
        if (blocks < 1 || blocks > gpu.multiprocessors) continue;
        const auto bytes = std::min<std::size_t>(bytes_, static_cast<std::size_t>(blocks) << 24);
        auto t = transfer(pair, read, true, bytes, blocks);
        if (!b_.options.kernel) {
          t.kernel = kernel_for(gpu, read, bytes_, blocks);
          t.kernel.bulk = bulk;
        }
        auto policy = short_policy(b_.session.policy());
        policy.noise.ci = 0.01;
        cell(result(fmt::format("p2p.sms.{}.{}", read ? "read" : "write", bulk ? "tma" : "16-byte"),
                    "gbytes_per_s",
                    {{"src", id(pair.src)},
                     {"dst", id(pair.dst)},
                     {"sms", std::int64_t{blocks}},
                     {"bytes", whole(bytes)}}),
             {t}, {{&arena(pair.src), &arena(pair.dst)}}, policy);
      }
    }
  }
}

// What the kind of load and the order of the chain do to the latency.
void P2p::loads() {
  const Pair pair = ordered_pairs().front();
  for (const bool shuffled : {true, false}) {
    const auto chain = Chain::make(b_.machine, *gpus_[pair.src], 2u << 20, 128, shuffled);
    auto lane = Lane::make(b_.machine, *gpus_[pair.dst]);
    if (!chain || !lane || gpus_[pair.dst]->module == nullptr) return;
    for (const auto& [load, name] :
         {std::pair{ChaseLoad::relaxed, "relaxed.sys"}, {ChaseLoad::cg, "cg"}, {ChaseLoad::plain, "plain"}}) {
      auto m =
          result("p2p.loads", "seconds",
                 {{"load", std::string(name)}, {"order", std::string(shuffled ? "shuffled" : "in order")}});
      m.verified = true;
      m.verified_how = "the chain of pointers ended where it must";
      chase_from_all(std::move(m), *chain, *lane, load);
    }
  }
}

// Every shape of the TMA ring, for choosing the defaults of kernel_for: not part of a normal run.
void P2p::tune() {
  const Pair pair = ordered_pairs().front();
  for (const bool read : {false, true}) {
    for (const int blocks : {4, 8, 16, 32, 66, 132}) {
      for (const auto& [chunk, stages] : {std::pair{2048, 16},
                                          {4096, 8},
                                          {4096, 16},
                                          {8192, 8},
                                          {8192, 16},
                                          {16384, 8},
                                          {16384, 13},
                                          {32768, 6}}) {
        for (const int drain : {2, 4, 8}) {
          if (b_.session.stopped()) return;
          if (drain >= stages || chunk * stages > gpus_[pair.src]->shared_per_block) continue;
          auto t = transfer(pair, read, true, bytes_, blocks);
          t.kernel = {true, blocks, chunk, stages, drain};
          cell(result(read ? "p2p.tune.read" : "p2p.tune.write", "gbytes_per_s",
                      {{"blocks", std::int64_t{blocks}},
                       {"chunk", std::int64_t{chunk}},
                       {"stages", std::int64_t{stages}},
                       {"drain", std::int64_t{drain}}}),
               {t}, {{&arena(pair.src), &arena(pair.dst)}}, short_policy(b_.session.policy()));
        }
      }
    }
  }
}

// All transfers at once, by the copy engines, and each one's share.
void P2p::together(const std::string& name, const std::vector<Pair>& pairs) {
  std::map<std::size_t, std::size_t> arriving;
  for (const auto& pair : pairs) ++arriving[pair.dst];
  std::size_t most = 1;
  for (const auto& [gpu, count] : arriving) most = std::max(most, count);
  const std::size_t bytes = bytes_ / most / 4096 * 4096;
  std::map<std::size_t, std::size_t> used;
  std::vector<Transfer> transfers;
  std::vector<Landing> landings;
  for (const auto& pair : pairs) {
    const std::size_t offset = bytes * used[pair.dst]++;
    transfers.push_back(transfer_between(arena(pair.src), arena(pair.dst), false, bytes, offset));
    landings.push_back({&arena(pair.src), &arena(pair.dst), offset});
  }
  auto m = result(name, "gbytes_per_s", {{"transfers", whole(pairs.size())}, {"bytes", whole(bytes)}});
  auto set = prepared(transfers, landings);
  if (!set) return b_.session.fail(m, set.error().text);
  double slowest = 0;
  std::size_t slow = 0;
  const int times = copies_for(bytes, kNvLinkGuess / static_cast<double>(most), b_.options.sample_seconds);
  auto done = b_.session.sampled(m, b_.session.policy(), [&]() -> Result<double> {
    const auto seconds = set->run(times);
    if (!seconds) return tl::unexpected(seconds.error());
    const auto worst = std::ranges::max_element(*seconds);
    slowest = *worst;
    slow = static_cast<std::size_t>(worst - seconds->begin());
    return static_cast<double>(bytes * pairs.size()) / slowest / 1e9;
  });
  if (!done) return;
  done->extra = {{"slowest", id(pairs[slow].src) + "->" + id(pairs[slow].dst)},
                 {"slowest_gbytes_per_s", static_cast<double>(bytes) / slowest / 1e9},
                 {"total_of", whole(pairs.size())}};
  check(*done, *set, landings);
  b_.session.add(std::move(*done));
}

void P2p::stress() {
  const std::size_t n = gpus_.size();
  if (n < 3 || !closed_.empty()) return;
  std::vector<Pair> to_one, from_one, all, across;
  for (std::size_t i = 1; i < n; ++i) {
    to_one.push_back({i, 0});
    from_one.push_back({0, i});
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t d = 1; d < n && n <= 16; ++d) all.push_back({i, (i + d) % n});
    if (n % 2 == 0) across.push_back({i, (i + n / 2) % n});
  }
  together("p2p.many_to_one", to_one);
  together("p2p.one_to_many", from_one);
  if (!all.empty()) together("p2p.all_pairs", all);
  if (!across.empty()) together("p2p.bisection", across);
}

void P2p::run() {
  if (!open_pairs() || !open_arenas()) return;
  using Part = void (P2p::*)();
  const std::map<std::string, Part> parts{
      {"matrix", &P2p::matrix},       {"both", &P2p::both_ways}, {"latency", &P2p::latency},
      {"pingpong", &P2p::ping_pongs}, {"sms", &P2p::sms},        {"sweep", &P2p::sweep},
      {"stress", &P2p::stress},       {"loads", &P2p::loads},    {"tune", &P2p::tune}};
  b_.session.plan(static_cast<std::size_t>(
      std::ranges::count_if(p2p_parts(), [&](const std::string& name) { return wants(name); })));
  for (const auto& name : p2p_parts()) {
    if (!wants(name) || b_.session.stopped()) continue;
    (this->*parts.at(name))();
    b_.session.end_part();
  }
}

}  // namespace

const std::vector<std::string>& p2p_parts() {
  static const std::vector<std::string> parts{"matrix", "both",  "latency", "pingpong", "stress",
                                              "sms",    "sweep", "loads",   "tune"};
  return parts;
}

Result<std::vector<const Gpu*>> chosen_gpus(const Bench& bench) {
  std::vector<const Gpu*> out;
  const auto& gpus = bench.machine.gpus;
  if (bench.options.gpus.empty()) {
    for (const auto& gpu : gpus) out.push_back(&gpu);
    return out;
  }
  for (const auto& id : bench.options.gpus) {
    const auto found = std::ranges::find(gpus, id, &Gpu::id);
    if (found != gpus.end()) {
      out.push_back(&*found);
      continue;
    }
    const auto lost = std::ranges::find(bench.machine.absent, id, &Absent::id);
    if (lost != bench.machine.absent.end()) continue;  // waived by the caller
    return fail(Errc::usage, "there is no {} here: CUDA shows {} GPUs", id, gpus.size());
  }
  return out;
}

void run_p2p(const Bench& bench) {
  const auto gpus = chosen_gpus(bench);
  const auto none = result("p2p", "gbytes_per_s", {});
  if (!gpus) return bench.session.waive(none, gpus.error().text);
  if (gpus->size() < 2)
    return bench.session.waive(none, fmt::format("{} usable GPU: two are needed", gpus->size()));
  P2p(bench, *gpus).run();
  bench.session.idle();
}

}  // namespace topotune::cuda
