#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint.h"

namespace topotune::lint {

// The text with the edits of all findings about input `index` done. Of edits that overlap the first one
// counts.
std::string fixed_text(std::string_view text, std::span<const Found> found, std::size_t index);

// A unified diff with three lines of context, as `patch -p1` takes it ("a/NAME", "b/NAME"); "" for equal
// texts.
std::string unified_diff(std::string_view name, std::string_view before, std::string_view after);

}  // namespace topotune::lint
