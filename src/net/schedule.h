#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace topotune::net {

using Pair = std::pair<int, int>;  // the first one begins
// Pairs that can be measured at the same time: nobody stands in two of them.
using Round = std::vector<Pair>;

// Each of n meets each other once, in n - 1 rounds (n even) or n (odd).
std::vector<Round> all_pairs(int n);

// Each of n meets two others, its neighbours in a ring: two rounds (n even) or three. n < 2: none; n == 2:
// one.
std::vector<Round> screening(int n);

// The same pairs in more rounds, so that of each group (machine) only one pair is measured at a time: hosts
// that are namespaces of one machine share its CPUs.
std::vector<Round> one_at_a_time(const std::vector<Round>& rounds, const std::vector<int>& group_of);

struct Link {
  int a = 0, b = 0;
  double there = 0, back = 0;  // GB/s from a to b, from b to a
  double slower() const { return there < back ? there : back; }
};
// Members that may be slow: their links lie under the limit, those to other such members left out;
// and links that are slow while both ends have a good one. What is slow is measured again before it is said.
struct Suspects {
  std::vector<int> members;
  std::vector<Pair> links;
  double usual = 0;  // GB/s
  double limit = 0;  // under it a link is suspect: `share` of the usual
};
Suspects suspects_of(const std::vector<Link>& links, int n, double share = 0.8);

// With whom a suspect is measured again: two members (fewer where there are none) that are no suspects, as
// long as there are any; not its neighbours, where there are others.
std::vector<int> partners_of(int member, const Suspects& suspects, const std::vector<Link>& links, int n);

// A link with which `link` is compared: an ordinary one of those that do not touch `member` and suspects.
std::optional<Pair> reference_for(Pair link, std::optional<int> member, const Suspects& suspects,
                                  const std::vector<Link>& links);

// A link that may be slow, measured turn about with one that is not. Others' load makes either of them slow
// now and then, but none fast: of each the best turn counts.
class Doubt {
 public:
  static constexpr int kMostTurns = 12;
  enum class State { open, good, slow };

  // `most_turns`: six where a second link must be slow too, all where this one decides alone.
  Doubt(Pair link, Pair reference, int most_turns = kMostTurns)
      : link_(link), reference_(reference), most_turns_(most_turns) {}
  Pair link() const { return link_; }
  Pair reference() const { return reference_; }
  int turns() const { return turns_; }

  void add_turn(const Link& link, const Link& reference);
  // Good as soon as it reaches 70 % of the reference and of what is usual. After the last turn slow under 70
  // % of the reference; already after half of the turns under half of it.
  State state(double usual) const;
  double rate() const { return best_.slower(); }
  double reference_rate() const { return other_.slower(); }

 private:
  Pair link_, reference_;
  Link best_, other_;
  int turns_ = 0, most_turns_ = kMostTurns;
};

}  // namespace topotune::net
