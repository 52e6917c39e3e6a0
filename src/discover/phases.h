#pragma once

#include "host/host.h"
#include "model/machine.h"

namespace topotune::discover {

// The phases of discover(), in order. Each adds its facts and, for what could not be read, a diagnostic or a reason.
void discover_cpu_numa_pci(const host::Host& host, model::Machine& machine);
void discover_gpus(const host::Host& host, model::Machine& machine);
void discover_nics(const host::Host& host, model::Machine& machine);
void discover_limits(const host::Host& host, model::Machine& machine);
void discover_software(const host::Host& host, model::Machine& machine);

}  // namespace topotune::discover
