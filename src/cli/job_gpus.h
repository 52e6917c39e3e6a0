#pragma once

#include <optional>
#include <vector>

#include "cuda/device.h"
#include "launch/meeting.h"

namespace topotune::cli {

// This process's place among those of its host.
void count_locals(launch::JobPlace& place, const peers::Peers& peers);

// A process's GPUs: all or the chosen ones (CUDA's numbers) of the only process of a host, else `each` (1)
// for each process, in the order of local ranks.
Result<std::vector<const cuda::Gpu*>> gpus_of_process(const cuda::Machine& machine,
                                                      const launch::JobPlace& place,
                                                      const std::vector<int>& chosen,
                                                      std::optional<int> each);

}  // namespace topotune::cli
