#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "measure/statistics.h"
#include "tune/instances.h"

namespace topotune::tune {

// Communicators that a formula describes, and that differ as real ones do: each has an offset of its own, the
// one made first another, and the one that was measured just before finds its caches warm.
class Fresh : public Generations, public Measurer {
 public:
  double offset = 0.01;        // standard deviation of what equal communicators differ by
  double made_first = 0;       // how much faster the first of a generation is
  double measured_before = 0;  // how much faster the same one again is
  double noise = 0.003;
  bool two_ways = false;
  bool graphs_hide = false;  // once the usual way was taken, the other one costs the same for all
  std::function<double(const Cell&, Kind, const Choice&)> usual = [](const Cell&, Kind, const Choice&) {
    return 10e-6;
  };
  std::function<double(const Cell&, Kind, const Choice&)> other = usual;
  std::size_t generations = 0, fails_at = SIZE_MAX;
  double clock = 0, making = 1e-3, per_sample = 1e-3;

  explicit Fresh(std::uint64_t seed = 11) : random_(seed) {}

  Result<Measurer*> make(const std::vector<Kind>& order) override {
    if (generations == fails_at) return fail(Errc::io, "out of memory");
    ++generations;
    clock += making;
    usual_taken_ = false;
    order_ = order;
    levels_.assign(order.size(), {});
    offsets_.clear();
    for (std::size_t i = 0; i < order.size(); ++i)
      offsets_.push_back((1 + offset * random_.normal()) * (i == 0 ? 1 - made_first : 1));
    return this;
  }

  int ranks() const override { return 2; }
  const std::vector<Level>& levels() const override { return levels_; }
  bool steerable(Collective) const override { return true; }
  Result<Costs> costs(const Cell&, std::size_t) override { return fail(Errc::unsupported, "not asked"); }
  Result<double> sample(const Cell& cell, const Candidate& c) override {
    usual_taken_ = true;
    return timed(usual(cell, order_[c.level], c.choice), c);
  }
  bool has_other_way(const Cell&) const override { return two_ways; }
  Result<double> sample_other_way(const Cell& cell, const Candidate& c) override {
    const bool hidden = graphs_hide && usual_taken_;
    return timed(hidden ? 15e-6 : other(cell, order_[c.level], c.choice), c);
  }
  Result<bool> verify(const Cell&, const Candidate&) override { return true; }

  Hooks hooks() {
    Hooks h;
    h.now = [this] { return clock; };
    return h;
  }

 private:
  double timed(double seconds, const Candidate& c) {
    clock += per_sample;
    const bool again = c == last_;
    last_ = c;
    return seconds * offsets_[c.level] * (1 + noise * random_.normal()) * (1 + 0.1 * std::sin(clock * 5)) *
           (again ? 1 - measured_before : 1);
  }
  bool usual_taken_ = false;
  std::vector<Kind> order_;
  std::vector<Level> levels_;
  std::vector<double> offsets_;
  Candidate last_{SIZE_MAX, {}};
  measure::Random random_;
};

}  // namespace topotune::tune
