#pragma once

#include <string>
#include <vector>

#include "plan/versions.h"

namespace topotune::cli {

std::string versions_text(const std::vector<plan::VersionRow>& rows);
std::string versions_json(const std::vector<plan::VersionRow>& rows);  // `topotune.versions/1`

}  // namespace topotune::cli
