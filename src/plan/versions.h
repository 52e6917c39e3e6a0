#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/machine.h"

namespace topotune::plan {

enum class Fit { fits, violated, not_here, unknown };
const char* name_of(Fit fit);

// A row of data/versions.tsv with what this machine has. Nothing: not known.
struct VersionRow {
  std::string have, from, to, needs, minimum, why, source, date;
  std::optional<std::string> here, needed_here;
  Fit fit =
      Fit::unknown;  // not_here: the row is about another version, or something that this machine has not
};

// The whole matrix in the file's order. `nccl`, `ucx`, `driver`: what the command line says, "" nothing.
std::vector<VersionRow> version_matrix(const model::Machine& machine, const std::string& nccl,
                                       const std::string& ucx, const std::string& driver);

}  // namespace topotune::plan
