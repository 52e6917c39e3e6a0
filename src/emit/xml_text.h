#pragma once

#include <string>
#include <string_view>

namespace topotune::emit {

// `text` as XML 1.0 character data or attribute value: valid UTF-8, markup escaped, control characters replaced.
std::string xml_text(std::string_view text);

}  // namespace topotune::emit
