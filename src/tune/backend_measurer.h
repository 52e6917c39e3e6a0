#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "coll/backend.h"
#include "tune/measurer.h"

namespace topotune::tune {

// The tuner plugin inside this process.
class Steering {
 public:
  virtual ~Steering() = default;
  virtual void force(const Choice& choice) = 0;  // Choice{}: as without a table
  virtual void release() = 0;                    // the plugin's own table decides
  virtual void watch(bool) {}                    // whether last() is kept up to date
  struct Last {
    std::uint64_t calls = 0, applied = 0, unusable = 0;
    int function = -1;
    std::uint64_t bytes = 0;
    Costs costs;
  };
  virtual Last last() = 0;
  virtual std::string said() { return {}; }    // the plugin's line about the newest communicator
  virtual std::uint32_t nodes() { return 1; }  // of the newest communicator, as NCCL counts them
};

enum class LaunchMode { automatic, stream, graph };  // automatic: graphs up to 4 MiB

// Measures on communicators, one a level: all of them over the same GPUs.
class BackendMeasurer : public Measurer {
 public:
  struct Options {
    coll::Type type = coll::Type::float32;
    LaunchMode mode = LaunchMode::automatic;
    double sample_seconds = 1e-3;           // a sample repeats the operation until it takes about this long
    std::vector<std::size_t> table_levels;  // communicators that follow the plugin's table
  };
  // `backends` beside `levels`; steering and backends outlive it.
  BackendMeasurer(std::vector<Level> levels, std::vector<coll::Backend*> backends, Steering* steering,
                  Options options)
      : levels_(std::move(levels)), backends_(std::move(backends)), steering_(steering), options_(options) {}

  // The same questions to other communicators, as often repeated in a sample.
  void use(std::vector<Level> levels, std::vector<coll::Backend*> backends,
           std::vector<std::size_t> table_levels);

  int ranks() const override { return backends_.front()->ranks(); }
  const std::vector<Level>& levels() const override { return levels_; }
  bool steerable(Collective collective) const override;
  Result<Costs> costs(const Cell& cell, std::size_t level) override;
  Result<double> sample(const Cell& cell, const Candidate& candidate) override;
  bool has_other_way(const Cell& cell) const override;
  Result<double> sample_other_way(const Cell& cell, const Candidate& candidate) override;
  Result<bool> verify(const Cell& cell, const Candidate& candidate) override;

  coll::Mode mode_of(const Cell& cell) const;

 private:
  coll::Question question_of(const Cell& cell) const;
  void steer(const Candidate& candidate);
  Result<int> prepare(const Cell& cell, const Candidate& candidate);

  std::vector<Level> levels_;
  std::vector<coll::Backend*> backends_;
  Steering* steering_;
  Options options_;
  std::map<std::pair<Collective, std::uint64_t>, int> iterations_;  // one number for all candidates of a cell
  std::map<std::tuple<Collective, std::uint64_t, std::size_t, int, int, int>, bool> ready_;
};

}  // namespace topotune::tune
