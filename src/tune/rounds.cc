#include "tune/rounds.h"

#include <numeric>

#include "measure/statistics.h"

namespace topotune::tune {

namespace {

class Order {
 public:
  explicit Order(std::size_t count) : order_(count) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }
  // Two alternate, A B B A.
  const std::vector<std::size_t>& next() {
    const auto last = order_.back();
    if (order_.size() == 2) {
      std::swap(order_[0], order_[1]);
      return order_;
    }
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_.below(i)]);
    if (order_.size() > 1 && order_.front() == last)
      std::swap(order_.front(), order_[1 + random_.below(order_.size() - 1)]);
    return order_;
  }

 private:
  std::vector<std::size_t> order_;
  measure::Random random_{order_.size()};
};

}  // namespace

Result<std::vector<std::vector<double>>> rounds(Measurer& measurer, const Cell& cell,
                                                const std::vector<Candidate>& candidates, std::size_t count,
                                                Way way, const std::function<bool()>& over) {
  std::vector<std::vector<double>> out(candidates.size());
  const auto sample = [&](std::size_t i) {
    return way == Way::usual ? measurer.sample(cell, candidates[i])
                             : measurer.sample_other_way(cell, candidates[i]);
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (over()) return out;
    if (const auto got = sample(i); !got) return tl::unexpected(got.error());
  }
  Order order(candidates.size());
  for (std::size_t round = 0; round < count; ++round) {
    for (const auto i : order.next()) {
      if (over()) {
        for (auto& samples : out) samples.resize(round);
        return out;
      }
      const auto got = sample(i);
      if (!got) return tl::unexpected(got.error());
      out[i].push_back(*got);
    }
  }
  return out;
}

}  // namespace topotune::tune
