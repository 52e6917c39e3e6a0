#pragma once

#include <string>

#include "gdr/verbs.h"
#include "model/machine.h"

namespace topotune::gdr {

// What to do about a step that failed, by its error and what is known of the machine; names the rule that
// `explain` tells more of where there is one. `gpu_memory`: whose memory it was.
std::string remedy_for(const Fault& fault, bool gpu_memory, const model::Machine& machine);

}  // namespace topotune::gdr
