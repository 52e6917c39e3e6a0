#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::cli {

// Writes a whole file or nothing: to a new file beside it that then takes its name. An interruption (SIGINT,
// SIGTERM, SIGHUP) leaves the old state. A link stays, what it names is written; devices and FIFOs are
// written to directly. The value is always true.
Result<bool> write_whole_file(const std::string& path, std::string_view bytes);

// Whether write_whole_file could begin now; changes nothing.
Result<bool> can_write_file(const std::string& path);

// The same for a file that is written again and again: whoever reads or is killed in between finds the one
// before. Nothing waits for the disk and signals are left alone; the new file's name is `path` with ".new".
// unsupported: the folder takes no new file; io: the disk did not take all of it, and the old one is kept.
Result<bool> replace_file(const std::string& path, std::string_view bytes);

}  // namespace topotune::cli
