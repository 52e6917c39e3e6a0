#pragma once

#include "base/result.h"
#include "cli/cli.h"
#include "host/capture.h"

namespace topotune::cli {

// Everything that discovery asks of this machine (or of --sysroot), not redacted; rules ask nothing more,
// they see only the machine that discovery makes. Errors: --sysroot is no folder; the environment's options
// are malformed.
Result<host::Capture> record(const Globals& globals);

}  // namespace topotune::cli
