#pragma once

#include <optional>
#include <string_view>

namespace topotune::model {

// The language of titles, impact and remedy. Identifiers, evidence and JSON keys are the same in all of them.
enum class Language { en, zh };

inline std::optional<Language> language_from(std::string_view word) {
  if (word == "en") return Language::en;
  if (word == "zh") return Language::zh;
  return std::nullopt;
}

}  // namespace topotune::model
