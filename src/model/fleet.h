#pragma once

#include <string>
#include <vector>

#include "model/finding.h"

namespace topotune::model {

// One comparable fact of one node. Nodes are compared key by key; a key that a node lacks is unknown there, not different.
struct FleetFact {
  std::string rule;    // the FLEET rule that a difference belongs to
  std::string key;     // "0000:1b:00.0 PCIe width", "kernel parameter iommu"
  std::string value;
  std::string source;  // where it was read on that node
};

// What is kept of a node: small, so that thousands fit.
struct FleetNode {
  std::string name;
  std::string kind;  // nodes of one kind should be alike: PCI ids of the GPUs
  std::vector<FleetFact> facts;
  std::vector<Finding> findings;  // of the node by itself
};

// A node that differs from the majority of its kind in one fact. `expected` is "" where there is no majority.
struct FleetOutlier {
  std::string node, rule, key, value, expected, source;
};

struct FleetReport {
  std::size_t nodes = 0;
  std::vector<std::string> kinds;
  std::vector<FleetOutlier> outliers;  // by node, then key
  Diagnosis diagnosis;                 // the nodes' own findings and the FLEET findings
};

}  // namespace topotune::model
