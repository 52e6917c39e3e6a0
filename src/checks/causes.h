#pragma once

#include "model/finding.h"

namespace topotune::checks {

// Joins findings that explain each other: fills `because` of an effect with the rules of its causes that were found in
// the same diagnosis (ACS on the path -> GPUDirect slow -> network through host memory). A finding whose cause is there
// stays in the list; the texts group it below its cause. Only findings that are there are named; no cycle arises,
// because the table is acyclic (a test checks it).
void join_causes(model::Diagnosis& diagnosis);

// What seemed checked was not, since the input told nothing: by rule in `not_checked`.
void nothing_checked(model::Diagnosis& diagnosis, const std::string& why);

struct CauseLink {
  const char* effect;
  const char* cause;
  const char* why;  // in a user's words
};
// The visible table, for `explain` and for its test.
const CauseLink* cause_table(std::size_t& count);

}  // namespace topotune::checks
