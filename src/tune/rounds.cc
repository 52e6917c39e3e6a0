#include "tune/rounds.h"

namespace topotune::tune {

Result<std::vector<std::vector<double>>> rounds(Measurer& measurer, const Cell& cell,
                                                const std::vector<Candidate>& candidates, std::size_t count,
                                                Way way, const std::function<bool()>& over) {
  std::vector<std::vector<double>> out(candidates.size());
  const auto sample = [&](std::size_t i) {
    return way == Way::usual ? measurer.sample(cell, candidates[i])
                             : measurer.sample_other_way(cell, candidates[i]);
  };
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (const auto got = sample(i); !got) return tl::unexpected(got.error());
  for (std::size_t round = 0; round < count && (round < 7 || !over()); ++round) {
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      const auto i = round % 2 == 0 ? k : candidates.size() - 1 - k;
      const auto got = sample(i);
      if (!got) return tl::unexpected(got.error());
      out[i].push_back(*got);
    }
  }
  return out;
}

std::vector<double> mean_of(const std::vector<std::vector<double>>& samples, std::size_t first,
                            std::size_t count) {
  std::vector<double> out;
  for (std::size_t round = 0; round < samples[first].size(); ++round) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i) sum += samples[i][round];
    out.push_back(sum / static_cast<double>(count));
  }
  return out;
}

}  // namespace topotune::tune
