#pragma once

#include <optional>
#include <string>

#include "model/machine.h"
#include "model/measurement.h"
#include "model/topology.h"

namespace topotune::gdr {

// What one transfer goes through. `gpu`: whose memory, "" is the host's.
struct Way {
  const model::RdmaPort& from;
  const model::RdmaPort& to;  // the same one: through the adapter itself
  std::string gpu;
};

// NIC and GPU: "PIX" ... "SYS"; nothing where the topology does not tell.
std::optional<model::PathType> class_of(const model::Topology& topology, const std::string& device,
                                        const std::string& gpu);

// The narrowest of the ports' rates and the PCIe links of NIC and GPU, times 0.70-1.00. Nothing for software
// devices, unknown rates, and GPU memory beyond a common PCIe switch (what host bridges let through differs
// by model).
std::optional<model::Expected> expected_of(const model::Topology& topology, const Way& way);

}  // namespace topotune::gdr
