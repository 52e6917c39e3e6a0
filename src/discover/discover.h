#pragma once

#include "host/host.h"
#include "model/machine.h"

namespace topotune::discover {

// Everything that can be read of the machine behind `host`, each fact with its source. Never fails: what cannot be read
// is a reason on the fact or a diagnostic on the device. The same host answers give the same machine, byte for byte.
model::Machine discover(const host::Host& host);

}  // namespace topotune::discover
