#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "host/host.h"
#include "model/fact.h"

namespace topotune::discover {

// Why a fact is missing, in the words of `not_checked`: "not found", "denied", "not captured"; others with their text.
inline std::string reason(const Error& error) {
  switch (error.code) {
    case Errc::not_found: return "not found";
    case Errc::denied: return "denied";
    case Errc::not_captured: return "not captured";
    default: return error.text.empty() ? name_of(error.code) : error.text;
  }
}

// A small kernel file without its line end; nothing when it cannot be read.
inline std::optional<std::string> read_line(const host::Host& host, std::string_view path) {
  const auto text = host.read(path);
  if (!text) return std::nullopt;
  return std::string(trim(*text));
}

// A file turned into a fact by `parse` (text -> optional<T>). The source is the path.
template <class T, class Parse>
model::Fact<T> read_fact(const host::Host& host, const std::string& path, Parse parse) {
  const auto text = host.read(path);
  if (!text) return model::Fact<T>::missing(reason(text.error()), path);
  std::optional<T> value = parse(std::string_view(*text));
  if (!value) return model::Fact<T>::missing("unreadable text in " + path, path);
  return model::Fact<T>::of(std::move(*value), path, printable(trim(std::string_view(*text).substr(0, 200))));
}

}  // namespace topotune::discover
