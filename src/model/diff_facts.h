#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/diff.h"
#include "model/diff_match.h"

namespace topotune::model {

// One known fact of a machine, ready to be compared.
struct DiffFact {
  DiffGroup group = DiffGroup::gpu;
  std::string subject;
  std::string what;  // "" says that the subject exists; the value describes it
  std::string value;
  std::string domain;  // where the other side knows this domain, a fact that it lacks is absent, not unknown
  std::string note;
};

struct DiffFacts {
  std::vector<DiffFact> facts;
  std::set<std::string> domains;  // what this side knows completely
};

DiffFacts diff_facts(const Machine& machine, const Labels& labels);

}  // namespace topotune::model
