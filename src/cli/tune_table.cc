#include "cli/tune_table.h"

#include <filesystem>

#include "cli/input.h"

namespace topotune::cli {

Result<TuningTable> load_tuning_table(const std::string& name) {
  const auto text = read_input(name);
  if (!text) return about(name, text.error());
  auto parsed = tune::parse_table(*text);
  if (!parsed.table) {
    Error error{Errc::malformed, parsed.error.text, name, {}, {}, parsed.error.hint};
    if (parsed.error.line > 0) error.line = parsed.error.line;
    return tl::unexpected(error);
  }
  std::error_code code;
  const auto path = std::filesystem::absolute(name, code);
  return TuningTable{std::move(*parsed.table), tune::hash_text(tune::hash_of(*text)),
                     code ? name : path.string()};
}

}  // namespace topotune::cli
