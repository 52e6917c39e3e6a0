#pragma once

#include <string>

#include "model/diff.h"

namespace topotune::emit {

// `topotune.diff/1` (docs/formats/diff.md), one line end at its end.
std::string diff_json(const model::Diff& diff, const model::Source& before, const model::Source& after);

}  // namespace topotune::emit
