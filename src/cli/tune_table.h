#pragma once

#include <string>

#include "base/result.h"
#include "tune/table.h"

namespace topotune::cli {

struct TuningTable {
  tune::Table table;
  std::string hash;  // of the file's bytes, 16 hexadecimal digits
  std::string path;  // absolute
};

// A table of the disk; errors name file and line.
Result<TuningTable> load_tuning_table(const std::string& name);

}  // namespace topotune::cli
