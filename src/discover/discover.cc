#include "discover/discover.h"

#include "discover/phases.h"

namespace topotune::discover {

model::Machine discover(const host::Host& host) {
  model::Machine machine;
  machine.topology.source.kind = model::SourceKind::live;
  machine.topology.source.name = "live";
  discover_cpu_numa_pci(host, machine);
  discover_gpus(host, machine);
  discover_nics(host, machine);
  discover_limits(host, machine);
  discover_software(host, machine);
  for (const auto& diagnostic : machine.diagnostics) machine.topology.warnings.push_back(diagnostic);
  return machine;
}

}  // namespace topotune::discover
