#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::cli {

// Writes a whole file or nothing: to a new file beside it that then takes its name. An interruption (SIGINT,
// SIGTERM, SIGHUP) leaves the old state. Devices and FIFOs are written to directly. The value is always true.
Result<bool> write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace topotune::cli
