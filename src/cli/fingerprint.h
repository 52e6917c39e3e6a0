#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/machine.h"

namespace topotune::cli {

// "8 x NVIDIA H100", "1 x A, 7 x B"; "" without a GPU; a GPU without a name is "unknown".
std::string gpus_text(const model::Topology& topology);

// What tells the machine of a measurement from others: hardware, versions, and the settings that can change
// its numbers (kernel files by their name, variables of NCCL and UCX). Two runs that differ in one of them
// show what it does.
std::vector<std::pair<std::string, std::string>> fingerprint(const model::Machine& machine);

}  // namespace topotune::cli
