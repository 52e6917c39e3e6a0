#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace topotune {

// What kind of thing went wrong. `not_captured` is said by recordings only: nobody asked when it was made.
enum class Errc { not_found, denied, unsupported, not_captured, malformed, timed_out, too_large, io, usage, unrecognised };

const char* name_of(Errc code);

// An error is written once, by whoever first knows the cause; callers add where, not why.
// `line` and `column` count from 1. `hint` says what to do next.
struct Error {
  Errc code = Errc::io;
  std::string text;
  std::optional<std::string> file;
  std::optional<int> line;
  std::optional<int> column;
  std::string hint;

  // "FILE:LINE: text", the form in which the program prints it.
  std::string to_string() const;
};

template <class T>
using Result = tl::expected<T, Error>;

template <class... Args>
tl::unexpected<Error> fail(Errc code, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(text, std::forward<Args>(args)...), {}, {}, {}, {}});
}

// An error of an input text: `line` counts from 1.
template <class... Args>
tl::unexpected<Error> fail_at(int line, fmt::format_string<Args...> text, Args&&... args) {
  return tl::unexpected<Error>(
      Error{Errc::malformed, fmt::format(text, std::forward<Args>(args)...), {}, line, {}, {}});
}

}  // namespace topotune
