// fmt's functions, compiled once. Debian and Ubuntu ship fmt as headers and as a shared library; the program shall
// need no shared library, and compiling fmt anew in every file that formats doubles the time of a build.
#include <fmt/format-inl.h>

namespace fmt::inline v9::detail {

template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;

}  // namespace fmt::inline v9::detail
