#pragma once

#include <string>

#include "model/finding.h"

namespace topotune::emit {

// One line in the form of the Nagios plugin API: "TOPOTUNE CRITICAL - NVL01 GPU3: … (+2 more) | errors=1 warnings=2 …".
// UNKNOWN when nothing could be checked. Never more than one line, never a '|' in the text.
std::string findings_nagios(const model::Diagnosis& diagnosis);

}  // namespace topotune::emit
