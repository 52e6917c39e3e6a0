#pragma once

#include <cstdint>
#include <optional>
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

// One result of a measurement on a node; nodes are compared where `key` is equal (test, parameters, unit).
struct FleetMeasurement {
  std::string key;     // "coll.all_reduce.busbw bytes=1073741824 (gbytes_per_s)"
  double value = 0;    // median of the samples
  bool larger_is_better = true;
  bool noisy = false;  // its own status says so
  std::size_t samples = 0;
  std::string source;
};

// What is kept of a node: small, so that thousands fit.
struct FleetNode {
  std::string name;
  std::string kind;  // nodes of one kind should be alike: PCI ids of the GPUs
  std::vector<FleetFact> facts;
  std::vector<Finding> findings;  // of the node by itself
  std::string hostname, boot_id;  // "" unknown
  std::optional<std::uint64_t> shm_device;  // st_dev of /dev/shm
  std::vector<FleetMeasurement> measurements;
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
