#pragma once

#include <string>
#include <vector>

#include "model/paths.h"

namespace topotune::emit {

// The matrix in nvidia-smi's own look (rows GPUs then NICs, "NV18", "X", affinity columns, legend of the classes that
// occur), then what it means: shape, islands, the NICs of each GPU, the bandwidth each class of path should have and
// the arithmetic. Devices beyond 32 are left out of the matrix and counted.
std::string matrix_text(const model::Topology& topology, const std::vector<model::Path>& paths, bool color);

}  // namespace topotune::emit
