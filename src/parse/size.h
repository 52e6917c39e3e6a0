#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace topotune::parse {

// "512M", "1G", "65536" in bytes (powers of 1024, "iB" may follow); nothing for other texts, 0 and more than
// 64 GiB.
std::optional<std::size_t> size_from(std::string_view text);
// "250us", "2ms", "1.5s" in seconds, "0"; nothing for other texts and more than an hour.
std::optional<double> duration_from(std::string_view text);

}  // namespace topotune::parse
