#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tune/accept.h"
#include "tune/measurer.h"
#include "tune/search.h"

// Equal communicators of one process differ by up to 2 % at small sizes, each one always in the same way: by
// where its memory lies, and by which of them was made first. No number of samples of one pair shows that.
// Here communicators are made anew again and again, and one value of each of them is what is compared.
namespace topotune::tune {

// Under this ratio to the default a size counts as slower.
inline constexpr double kLeast = 0.99;

// What a communicator is made for. The control is a second default, compared with the first as the tuned one
// is.
enum class Kind { standard, control, tuned };

// Two communicators of each kind, in the order of making: A B B A, the next ones B A A B, B A A B, A B B A.
// So every kind comes first and last equally often, also where every other generation gets the memory of the
// last but one.
std::vector<Kind> making_order(const std::vector<Kind>& kinds, std::size_t generation);

class Generations {
 public:
  virtual ~Generations() = default;
  // New communicators, made in this order: level i of the measurer is the i-th. Valid until the next call.
  virtual Result<Measurer*> make(const std::vector<Kind>& order) = 0;
};

// One value of each communicator, in seconds: the median of its samples. The i-th of each kind are a pair: as
// near as can be in the order of making, and measured in turns.
struct InstanceValues {
  std::vector<double> standard, control;
  std::vector<std::vector<double>> tuned;  // [choice]
};

// A cell, and what is tried there.
struct Trial {
  Cell cell;
  std::vector<Choice> choices{Choice{}};  // of the tuned communicators
  InstanceValues usual, other;            // by the way to start kernels
  std::string failed;
  bool settled = false;
};

struct TrialOptions {
  std::vector<Kind> kinds{Kind::standard, Kind::tuned};
  std::size_t first = 6, step = 3, most = 12;  // generations: before the first look, between looks, at most
  std::size_t rounds = 4;                      // samples of a communicator
  double budget_seconds = 60;
  std::function<bool(const Trial&)> settled = [](const Trial&) { return false; };
};

// Three generations are the least that says anything: what would not get them in the time is not begun, and
// values that would take more than a tenth more than the time, or would come after a stop, are not taken. An
// error of one trial is kept with it; one of all is returned, unless enough was measured before.
Result<void> run_trials(Generations& generations, std::vector<Trial>& trials, const TrialOptions& options,
                        const Hooks& hooks);

enum class Verdict { not_slower, slower, undecided };
// not_slower: the whole interval is at `least` or above; slower: it is below.
Verdict verdict_of(const Ratio& ratio, double least);
Verdict both(Verdict a, Verdict b);
// By more pairs than chance makes of equal ones (the interval of a median of few pairs is too narrow for a
// table of hundreds of sizes): of eight or more all but an eighth are slower than `least`.
bool nearly_all_slower(const std::vector<double>& standard, const std::vector<double>& tuned, double least);
const char* name_of(Verdict verdict);  // "not slower", ...

// The ratio of all trials together: pair by pair the mean over the trials (of choice 0), so that what a
// communicator does to all of them alike counts once. Nothing for fewer than five pairs.
std::optional<Ratio> pooled_ratio(const std::vector<const InstanceValues*>& trials);

}  // namespace topotune::tune
