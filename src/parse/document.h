#pragma once

#include <string_view>

namespace topotune::parse {

// A JSON object that names `schema` near its beginning: one of this program's own documents.
inline bool looks_like_document(std::string_view text, std::string_view schema) {
  text = text.substr(0, 4096);
  const auto first = text.find_first_not_of(" \t\r\n");  // JSON's blanks
  return first != std::string_view::npos && text[first] == '{' && text.find(schema) != std::string_view::npos;
}

}  // namespace topotune::parse
