#pragma once

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
  double gbytes_per_s = 0;
};
// Members that may be slow: their links lie under the limit, those to other such members left out;
// and links that are slow while both ends have a good one. What is slow is measured again before it is said.
struct Suspects {
  std::vector<int> members;
  std::vector<Pair> links;
  double usual = 0;  // GB/s
  // Under it a link is slow: `share` of the usual, less where the links differ more than that among
  // themselves (two robust standard deviations of their logarithms), as they do on a busy machine.
  double limit = 0;
};
Suspects suspects_of(const std::vector<Link>& links, int n, double share = 0.7);

// The rounds that tell which end of slow links it is: each suspect with two members that are none, each slow
// link again.
std::vector<Round> confirmation(const Suspects& suspects, int n);

}  // namespace topotune::net
