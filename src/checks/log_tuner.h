#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/nccl_log.h"

// Whether all ranks of each communicator use one tuning table, by what topotune's tuner plugin said to each.
namespace topotune::checks {

struct TableUse {
  enum class State {
    used,        // by every rank of the communicator
    idle,        // no collective of it has asked any rank's plugin
    other_size,  // the table is for communicators of other sizes: no fault
    unknown,     // the log does not tell
    unused       // off, not loaded, or not the same table everywhere
  };
  State state = State::unknown;
  std::string text;  // with the ranks that it is about
  model::LogLine at;
  bool differs = false;  // some ranks use a table and others none, or another
};

// Whether the log shows that a job wanted topotune's table: a plugin of topotune spoke or was named.
bool wants_table(const model::NcclLog& log);

// One entry for each communicator that has something to say, equal ones once. `hash`: of the table that is
// meant; "" any. Never empty.
std::vector<TableUse> table_uses(const model::NcclLog& log, std::string_view hash);

}  // namespace topotune::checks
