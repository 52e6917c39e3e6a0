#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/fleet.h"
#include "model/machine.h"

namespace topotune::checks {

// The facts of a machine that should be the same on every node of its kind, in a stable order.
std::vector<model::FleetFact> fleet_facts(const model::Machine& machine);

// Communication variables of one node that ranks must agree on (FLEET04). Left out: debug output, and names of
// interfaces and devices, which may differ by node.
std::vector<model::FleetFact> fleet_environment(const std::map<std::string, std::string>& environment,
                                                const std::string& source);

// PCI ids of the machine's GPUs, each once, sorted: "10de:2330"; "no GPU" without any.
std::string fleet_kind(const model::Machine& machine);

// Compares the nodes of each kind by majority (FLEET01-07, CONT07). With fewer than three nodes of a kind a difference
// is told without an outlier. Linear in nodes × facts.
model::FleetReport compare_fleet(std::span<const model::FleetNode> nodes);

}  // namespace topotune::checks
