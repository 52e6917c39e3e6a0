#pragma once

#include <string>

#include "base/result.h"
#include "host/shared_library.h"

namespace topotune::host {

// The file of the running program (/proc/self/exe); "" where the kernel does not tell.
std::string program_file();

// A part of the program that is linked with a library which need not be here: "libtopotune-mpi.so" in the
// folder that TOPOTUNE_MODULES names, beside the program, or in ../lib/topotune of it.
// not_found: the file is nowhere; unsupported: what it needs is not here (the loader's words).
Result<SharedLibrary> open_module(const std::string& file);

}  // namespace topotune::host
