#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parse/config.h"

namespace topotune::parse::python {

enum class Kind { name, number, string, op, newline };

struct Token {
  Kind kind = Kind::op;
  std::string text;  // a string without quotes and prefix, escapes resolved; operators and names as written
  Span span;         // as written
  Span inner;        // string: between the quotes
  bool dynamic = false;  // f-string with a replacement field: {x} became $x
  int indent = -1;       // of the first token of a logical line; -1: not the first
};

// Splits Python source into tokens; comments go to out.comments, open quotes and brackets to out.diagnostics.
std::vector<Token> tokens_of(std::string_view text, const LineIndex& lines, ConfigText& out);

}  // namespace topotune::parse::python
