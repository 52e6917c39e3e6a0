#include "parse/size.h"

#include "base/text.h"

namespace topotune::parse {

namespace {

std::size_t unit_of(char c) {
  switch (c) {
    case 'K':
    case 'k':
      return std::size_t{1} << 10;
    case 'M':
    case 'm':
      return std::size_t{1} << 20;
    case 'G':
    case 'g':
      return std::size_t{1} << 30;
    default:
      return 1;
  }
}

}  // namespace

std::optional<std::size_t> size_from(std::string_view text) {
  if (text.ends_with('B') || text.ends_with('b')) text.remove_suffix(1);
  if (text.ends_with('i')) text.remove_suffix(1);
  const auto unit = text.empty() ? 1 : unit_of(text.back());
  if (unit > 1) text.remove_suffix(1);
  const auto value = parse_int<std::size_t>(text);
  constexpr std::size_t kMost = std::size_t{64} << 30;
  if (!value || *value == 0 || *value > kMost / unit) return std::nullopt;
  return *value * unit;
}

std::optional<double> duration_from(std::string_view text) {
  if (text == "0") return 0;
  double unit = 1;
  if (text.ends_with("us"))
    unit = 1e-6, text.remove_suffix(2);
  else if (text.ends_with("ms"))
    unit = 1e-3, text.remove_suffix(2);
  else if (text.ends_with("s"))
    text.remove_suffix(1);
  else
    return std::nullopt;
  const auto value = parse_double(text);
  if (!value || *value < 0 || *value * unit > 3600) return std::nullopt;
  return *value * unit;
}

}  // namespace topotune::parse
