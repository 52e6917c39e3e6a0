#pragma once

#include <functional>
#include <string>
#include <vector>

#include "act/journal.h"
#include "act/system.h"
#include "model/plan.h"

namespace topotune::act {

enum class Outcome { done, already, skipped, failed, not_reached };
const char* name_of(Outcome outcome);

struct Account {
  std::string id, target;
  Outcome outcome = Outcome::not_reached;
  std::string text;  // why, or from what to what
};

struct ApplyOptions {
  bool disruptive = false;  // also what interrupts traffic
};

struct ApplyReport {
  std::vector<Account> accounts;  // one an action that apply could do, in order
  bool complete() const;          // nothing failed and nothing was left out after a failure
};

// Does the plan's automatic actions. First every precondition is checked and every place opened for writing:
// where one fails, nothing at all is changed and that is the error. Then each action: journal, write, read
// back, journal; the first that fails ends it. The journal says what was done, whatever happens to this
// process.
Result<ApplyReport> apply(System& system, const model::Plan& plan, const ApplyOptions& options);

// Takes back everything in the journal, newest first, and reads back. A place that somebody else has changed
// since is an error and stays, unless `force`. Ended by a crash, it starts again where it was. Nothing to
// undo: no account.
struct UndoOptions {
  bool force = false, dry_run = false;
};
Result<ApplyReport> undo(System& system, const UndoOptions& options);

}  // namespace topotune::act
