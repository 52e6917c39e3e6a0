#pragma once

#include "host/host.h"
#include "model/machine.h"

namespace topotune::discover {

model::Machine discover(const host::Host& host);

}  // namespace topotune::discover
