#pragma once

#include <vector>

#include "base/result.h"
#include "model/plan.h"
#include "plan/plan.h"

namespace topotune::plan {

// The CPUs that this machine's jobs may use: the cgroup's, else the process's, else those online; nothing:
// not known.
std::optional<CpuSet> usable_cpus(const model::Machine& machine);

// One binding for each GPU, in order of their numbers. `reserved`: CPUs that interrupts keep for themselves.
Result<std::vector<model::Binding>> bindings_of(const Situation& situation, const CpuSet& reserved);

// Whole cores of `cpus`; a core that is only partly in `cpus` counts with that part. Where no fact tells,
// the ranges of the list do (see there); empty: not known.
std::vector<CpuSet> cores_in(const model::Topology& topology, const CpuSet& cpus);

}  // namespace topotune::plan
