#include <algorithm>
#include <cstring>
#include <memory>

#include "cuda/arena.h"
#include "cuda/pattern.h"
#include "cuda/suite.h"
#include "measure/node_memory.h"

namespace topotune::cuda {

namespace {

using model::Measurement;

// Host memory of a node that the GPUs reach directly.
class PinnedMemory {
 public:
  static Result<PinnedMemory> make(const Machine& machine, std::size_t bytes, std::optional<int> node) {
    PinnedMemory pinned;
    auto memory = measure::NodeMemory::make(bytes, node);
    if (!memory) return tl::unexpected(memory.error());
    pinned.memory_ = std::move(*memory);
    auto ok = machine.use(machine.gpus.front());
    if (ok)
      ok = machine.driver.check(
          machine.driver.f.host_register(pinned.memory_.data(), pinned.memory_.size(), api::kHostPortable),
          fmt::format("pinning {} MiB", bytes >> 20));
    if (!ok) return tl::unexpected(ok.error());
    pinned.machine_ = &machine;
    return pinned;
  }
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept { return swap(other), *this; }
  ~PinnedMemory() {
    if (machine_ == nullptr) return;
    machine_->driver.f.set_current(machine_->gpus.front().context);
    machine_->driver.f.host_unregister(memory_.data());
  }
  std::byte* data() const { return memory_.data(); }
  api::DevicePtr address() const { return reinterpret_cast<api::DevicePtr>(memory_.data()); }

 private:
  void swap(PinnedMemory& other) noexcept {
    std::swap(machine_, other.machine_);
    std::swap(memory_, other.memory_);
  }
  const Machine* machine_ = nullptr;
  measure::NodeMemory memory_;
};

enum class Way { h2d, d2h };

// The host's memory has other users: more samples where they disagree.
measure::Policy longer(measure::Policy policy) {
  policy.max_seconds *= 5;
  return policy;
}

class HostCopies {
 public:
  HostCopies(const Bench& bench, std::vector<const Gpu*> gpus, const std::vector<HostNode>& nodes)
      : b_(bench),
        gpus_(std::move(gpus)),
        nodes_(nodes),
        bytes_(std::min<std::size_t>(bench.options.bytes, 128u << 20)) {}

  void run() {
    if (!open_arenas()) return;
    b_.session.plan(nodes_.size() * gpus_.size() + (wants("pageable") ? 1 : 0));
    for (const auto& node : nodes_) one_node(node);
    if (wants("pageable")) pageable();
    b_.session.end_part();
  }

 private:
  // Two blocks a GPU: what the GPU reads (holds a pattern) and what it writes.
  struct Blocks {
    PinnedMemory give, take;
  };

  bool wants(const std::string& part) const {
    return b_.options.parts.empty() || b_.options.parts.contains(part);
  }

  Measurement result(const std::string& name, const std::string& gpu, const HostNode* node) const {
    Measurement m;
    m.name = name;
    m.unit = "gbytes_per_s";
    m.params = {{"gpu", gpu}};
    if (node != nullptr) m.params.push_back({"node", std::int64_t{node->node}});
    m.params.push_back({"bytes", static_cast<std::int64_t>(bytes_)});
    return m;
  }

  bool open_arenas() {
    const measure::Session::Timed timed(b_.session, &model::RunTimes::allocation);
    std::vector<const Gpu*> kept;
    for (const auto* gpu : gpus_) {
      b_.session.step(gpu->id + ": memory");
      auto arena = make_arena(b_.machine, *gpu, bytes_);
      if (!arena) {
        b_.session.waive(result("host", gpu->id, nullptr), arena.error().text);
        continue;
      }
      bytes_ = std::min(bytes_, (*arena)->bytes());
      kept.push_back(gpu);
      arenas_.push_back(std::move(*arena));
    }
    gpus_ = kept;
    return !gpus_.empty();
  }

  void one_node(const HostNode& node) {
    std::vector<Blocks> blocks;
    for (const auto* gpu : gpus_) {
      const measure::Session::Timed timed(b_.session, &model::RunTimes::allocation);
      b_.session.step(fmt::format("{}: pinned memory of node {}", gpu->id, node.node));
      auto give = PinnedMemory::make(b_.machine, bytes_, node.node);
      auto take = PinnedMemory::make(b_.machine, bytes_, node.node);
      if (!give || !take)
        return b_.session.waive(result("host", gpu->id, &node), give ? take.error().text : give.error().text);
      fill_pattern_on_host(give->data(), bytes_, kHostSeed);
      blocks.push_back({std::move(*give), std::move(*take)});
    }
    const std::optional<measure::Pinned> pinned =
        node.cpus.empty() ? std::nullopt : std::optional<measure::Pinned>(std::in_place, node.cpus);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      cell("host.h2d", {{i, Way::h2d}}, blocks, node);
      cell("host.d2h", {{i, Way::d2h}}, blocks, node);
      cell("host.both.h2d", {{i, Way::h2d}, {i, Way::d2h}}, blocks, node);
      cell("host.both.d2h", {{i, Way::d2h}, {i, Way::h2d}}, blocks, node);
      b_.session.end_part();
    }
    if (gpus_.size() > 1) {
      all_at_once("host.all.h2d", Way::h2d, blocks, node);
      all_at_once("host.all.d2h", Way::d2h, blocks, node);
    }
  }

  struct Leg {
    std::size_t gpu;
    Way way;
  };

  Transfer transfer(const Leg& leg, const std::vector<Blocks>& blocks) const {
    Transfer t;
    t.executor = gpus_[leg.gpu];
    t.bytes = bytes_;
    t.src = leg.way == Way::h2d ? blocks[leg.gpu].give.address() : arenas_[leg.gpu]->give.get();
    t.dst = leg.way == Way::h2d ? arenas_[leg.gpu]->take.get() : blocks[leg.gpu].take.address();
    return t;
  }

  // The first leg is measured, the others run beside it.
  void cell(const std::string& name, const std::vector<Leg>& legs, const std::vector<Blocks>& blocks,
            const HostNode& node) {
    if (b_.session.stopped()) return;
    auto m = result(name, gpus_[legs[0].gpu]->id, &node);
    const bool both = legs.size() > 1;
    m.expected = b_.expected.host(both                      ? "both"
                                  : legs[0].way == Way::h2d ? "h2d"
                                                            : "d2h",
                                  gpus_[legs[0].gpu]->id);
    add_share(m);
    std::vector<Transfer> transfers;
    for (const auto& leg : legs) transfers.push_back(transfer(leg, blocks));
    auto set = TransferSet::make(b_.machine, transfers);
    if (!set) return b_.session.fail(m, set.error().text);
    const int times = copies_for(bytes_, 30, 2 * b_.options.sample_seconds);
    auto done = b_.session.sampled(m, longer(b_.session.policy()), [&]() -> Result<double> {
      const auto seconds = set->run(times);
      if (!seconds) return tl::unexpected(seconds.error());
      return static_cast<double>(bytes_) / seconds->front() / 1e9;
    });
    if (done) finish(*done, *set, legs, blocks);
  }

  void all_at_once(const std::string& name, Way way, const std::vector<Blocks>& blocks,
                   const HostNode& node) {
    if (b_.session.stopped()) return;
    std::vector<Leg> legs;
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      legs.push_back({i, way});
      transfers.push_back(transfer(legs.back(), blocks));
    }
    auto m = result(name, fmt::format("all {}", gpus_.size()), &node);
    auto set = TransferSet::make(b_.machine, transfers);
    if (!set) return b_.session.fail(m, set.error().text);
    double slowest = 0;
    std::size_t slow = 0;
    const int times = copies_for(bytes_, 30, 2 * b_.options.sample_seconds);
    auto done = b_.session.sampled(m, longer(b_.session.policy()), [&]() -> Result<double> {
      const auto seconds = set->run(times);
      if (!seconds) return tl::unexpected(seconds.error());
      const auto worst = std::ranges::max_element(*seconds);
      slowest = *worst;
      slow = static_cast<std::size_t>(worst - seconds->begin());
      return static_cast<double>(bytes_ * gpus_.size()) / *worst / 1e9;
    });
    if (!done) return;
    if (slowest > 0)
      done->extra = {{"slowest", gpus_[slow]->id},
                     {"slowest_gbytes_per_s", static_cast<double>(bytes_) / slowest / 1e9}};
    finish(*done, *set, legs, blocks);
  }

  void add_share(Measurement& m) const {
    const auto rate = b_.expected.pcie_of(std::get<std::string>(m.params[0].value));
    if (!rate) return;
    m.extra.push_back({"link", rate->why});
    m.extra.push_back({"link_gbytes_per_s", rate->gbytes_per_s});
  }

  void finish(Measurement& m, TransferSet& set, const std::vector<Leg>& legs,
              const std::vector<Blocks>& blocks) {
    if (m.status != model::MeasureStatus::failed) {
      const auto wrong = check(set, legs, blocks);
      m.verified = wrong && wrong->empty();
      m.verified_how = !wrong           ? wrong.error().text
                       : wrong->empty() ? "pattern read back by the owner"
                                        : *wrong;
      if (wrong && !wrong->empty()) m.status = model::MeasureStatus::failed, m.why = *wrong;
    }
    if (const auto link = std::ranges::find(m.extra, "link_gbytes_per_s", &model::Param::name);
        link != m.extra.end() && m.median)
      m.extra.push_back({"share_of_link", *m.median / std::get<double>(link->value)});
    b_.session.add(std::move(m));
  }

  // "" when everything arrived; what was wrong otherwise; an error when it could not be checked.
  Result<std::string> check(TransferSet& set, const std::vector<Leg>& legs,
                            const std::vector<Blocks>& blocks) {
    const measure::Session::Timed timed(b_.session, &model::RunTimes::verification);
    for (const auto& leg : legs) {
      if (gpus_[leg.gpu]->module == nullptr)
        return fail(Errc::unsupported, "{}", gpus_[leg.gpu]->kernels_why);
      if (leg.way == Way::d2h)
        std::memset(blocks[leg.gpu].take.data(), 0xa5, bytes_);
      else if (auto ok = clear(leg.gpu); !ok)
        return tl::unexpected(ok.error());
    }
    if (const auto ran = set.run(1); !ran) return tl::unexpected(ran.error());
    for (const auto& leg : legs) {
      const auto& arena = *arenas_[leg.gpu];
      if (leg.way == Way::d2h) {
        if (const auto at = first_wrong_on_host(blocks[leg.gpu].take.data(), bytes_, arena.seed))
          return fmt::format("data from {} arrived wrong in host memory, first at byte {}", arena.gpu->id,
                             *at);
        continue;
      }
      const auto found = check_pattern(b_.machine, arena.lane, arena.take.get(), bytes_, kHostSeed);
      if (!found) return tl::unexpected(found.error());
      if (found->wrong != 0)
        return fmt::format("{} pieces of 16 bytes from host memory arrived wrong in {}, the first at byte {}",
                           found->wrong, arena.gpu->id, found->first);
    }
    return std::string();
  }

  Result<void> clear(std::size_t gpu) const {
    const auto& arena = *arenas_[gpu];
    const auto& driver = b_.machine.driver;
    auto ok = b_.machine.use(*arena.gpu);
    if (ok)
      ok = driver.check(driver.f.set_d32_async(arena.take.get(), 0xdeadbeef, bytes_ / 4, arena.lane.stream()),
                        "clear");
    return ok ? driver.check(driver.f.stream_synchronize(arena.lane.stream()), "clear") : ok;
  }

  // Memory that is not pinned goes through the driver's own staging buffer; timed by the host's clock.
  void pageable() {
    auto memory = measure::NodeMemory::make(bytes_, std::nullopt);
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      for (const Way way : {Way::h2d, Way::d2h}) {
        if (b_.session.stopped()) return;
        auto m = result(way == Way::h2d ? "host.pageable.h2d" : "host.pageable.d2h", gpus_[i]->id, nullptr);
        if (!memory) {
          b_.session.waive(m, memory.error().text);
          continue;
        }
        auto policy = longer(b_.session.policy());
        policy.noise.ci = 0.05;  // the CPU copies too
        policy.noise.spread = 0.5;
        auto done = b_.session.sampled(m, policy, [&] { return pageable_copy(i, way, *memory); });
        if (!done) return;
        if (done->status != model::MeasureStatus::failed) verify_pageable(*done, i, way, *memory);
        b_.session.add(std::move(*done));
      }
    }
  }

  Result<double> pageable_copy(std::size_t i, Way way, const measure::NodeMemory& memory) const {
    const auto& driver = b_.machine.driver;
    if (auto ok = b_.machine.use(*gpus_[i]); !ok) return tl::unexpected(ok.error());
    const double start = measure::monotonic_seconds();
    const auto rc = way == Way::h2d ? driver.f.copy_to_device(arenas_[i]->take.get(), memory.data(), bytes_)
                                    : driver.f.copy_to_host(memory.data(), arenas_[i]->give.get(), bytes_);
    if (auto ok = driver.check(rc, gpus_[i]->id + ": copy"); !ok) return tl::unexpected(ok.error());
    return static_cast<double>(bytes_) / (measure::monotonic_seconds() - start) / 1e9;
  }

  void verify_pageable(Measurement& m, std::size_t i, Way way, const measure::NodeMemory& memory) const {
    const measure::Session::Timed timed(b_.session, &model::RunTimes::verification);
    const auto& arena = *arenas_[i];
    if (arena.gpu->module == nullptr) {
      m.verified_how = arena.gpu->kernels_why;
      return;
    }
    bool good = false;
    if (way == Way::h2d) {
      fill_pattern_on_host(memory.data(), bytes_, kHostSeed);
      const auto copied = pageable_copy(i, way, memory);
      const auto found = check_pattern(b_.machine, arena.lane, arena.take.get(), bytes_, kHostSeed);
      good = copied && found && found->wrong == 0;
    } else {
      std::memset(memory.data(), 0xa5, bytes_);
      good = pageable_copy(i, way, memory) && !first_wrong_on_host(memory.data(), bytes_, arena.seed);
    }
    m.verified = good;
    m.verified_how = good ? "pattern read back by the owner" : "data arrived wrong";
    if (!good) m.status = model::MeasureStatus::failed, m.why = m.verified_how;
  }

  static constexpr std::uint32_t kHostSeed = 0x705705;
  const Bench& b_;
  std::vector<const Gpu*> gpus_;
  const std::vector<HostNode>& nodes_;
  std::size_t bytes_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace

void run_host(const Bench& bench, const std::vector<HostNode>& nodes) {
  Measurement none;
  none.name = "host";
  none.unit = "gbytes_per_s";
  const auto gpus = chosen_gpus(bench);
  if (!gpus) return bench.session.waive(none, gpus.error().text);
  if (gpus->empty()) return bench.session.waive(none, "no usable GPU");
  HostCopies(bench, *gpus, nodes).run();
  bench.session.idle();
}

}  // namespace topotune::cuda
