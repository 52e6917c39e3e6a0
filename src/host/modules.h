#pragma once

#include <string>

#include "base/result.h"
#include "host/shared_library.h"

namespace topotune::host {

// The file of the running program (/proc/self/exe); "" where the kernel does not tell.
std::string program_file();

// Where a part of the program lies that other libraries or programs load: in the folder that TOPOTUNE_MODULES
// names, else beside the program, or in ../lib/topotune of it; links followed. not_found: the file is
// nowhere.
Result<std::string> module_file(const std::string& file);

// A part of the program that is linked with a library which need not be here, such as "libtopotune-mpi.so".
// not_found: the file is nowhere; unsupported: what it needs is not here (the loader's words).
Result<SharedLibrary> open_module(const std::string& file);

}  // namespace topotune::host
