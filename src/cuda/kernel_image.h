#pragma once

#include <string_view>

namespace topotune::cuda {

// The fat binary of kernels.cu; empty when the program was built without a CUDA compiler.
std::string_view kernel_image();
// "13.0": of the compiler that made it; "" without one.
std::string_view kernel_toolkit();

}  // namespace topotune::cuda
