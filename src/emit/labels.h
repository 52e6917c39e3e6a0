#pragma once

#include "model/language.h"

namespace topotune::emit {

// The words around findings in text and Markdown. {} stands for a number or a list, as in fmt.
struct Labels {
  const char* expected_in_line;  // "; expected {}"
  const char *costs, *remedy_line, *because_line, *more;
  const char *remarks, *warnings, *errors;  // counted; English adds its plural
  const char *nothing_found, *nothing_checked, *not_checked;
  const char *checked, *why_hint;
  const char *expected, *observed, *evidence, *because, *impact, *remedy, *reference;  // Markdown items
  const char* table_head;
  const char *rules_checked, *could_not_be;
  const char* unexplained;
};
const Labels& labels_of(model::Language language);

}  // namespace topotune::emit
