#pragma once

#include <string_view>

namespace topotune::host {

// Whether the whole of `name` fits `pattern`: '*' stands for any text without '/', "**" for any text.
// Linear in the name for each star of the pattern.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace topotune::host
