#pragma once

#include <string>
#include <vector>

#include "act/system.h"
#include "base/cpuset.h"
#include "model/plan.h"

namespace topotune::act {

enum class Proof { holds, fails, unknown };
const char* name_of(Proof proof);

// One thing that was looked at.
struct Check {
  std::string subject;  // action id, "pid 4711", "edge 0 -> 1"
  Proof proof = Proof::unknown;
  std::string expected, observed;
};

// Every automatic action of the plan is read back.
std::vector<Check> verify_actions(const System& system, const model::Plan& plan);

// A running rank: its CPUs lie inside its GPU's (`gpu` "": inside one binding of the plan), its memory policy
// and most of its pages are on that GPU's node, its variables are as planned.
// /proc/PID/{status,numa_maps,environ}.
std::vector<Check> verify_process(const System& system, const model::Plan& plan, int pid,
                                  const std::string& gpu);

// Pages of a process by node, from /proc/PID/numa_maps: anonymous and heap pages ("N0=12 N1=3"), in bytes.
std::vector<std::pair<int, unsigned long long>> bytes_by_node(std::string_view numa_maps);

}  // namespace topotune::act
