#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "act/system.h"
#include "base/result.h"
#include "host/fd.h"
#include "model/plan.h"

namespace topotune::act {

inline constexpr const char* kJournalFolder = "/var/lib/topotune";
inline constexpr const char* kJournal = "/var/lib/topotune/journal";  // changes that are not undone
inline constexpr const char* kLastJournal =
    "/var/lib/topotune/journal.last";  // the last one that was undone whole

// One action as the journal knows it (docs/formats/journal.md).
struct Entry {
  std::string id;
  model::ActionKind kind = model::ActionKind::sysfs;
  std::string target;
  std::vector<std::string> command;
  std::optional<std::string> after;  // nothing: the file is removed
  std::optional<FileState> before;   // nothing: there was no file. Values have their text in `bytes`
  std::vector<std::string> folders;  // made for it, outermost first
  bool done = false;                 // the action ended well
  bool undoing = false;              // undo began to restore it
  bool undone = false;
};

struct JournalText {
  std::vector<Entry> entries;  // oldest first
  bool interrupted = false;    // the last apply did not come to its end
  std::size_t good_bytes = 0;  // before a record that was cut off
};

// Reads a journal. A last record that was cut off by a crash never took effect and is left out; one that is
// damaged elsewhere is an error with its line.
Result<JournalText> parse_journal(std::string_view text);

// The journal of a machine, open for appending. Holds a lock: two that change a machine exclude each other.
// Each record is on disk before the call returns.
class Journal {
 public:
  static Result<Journal> open(System& system);

  const JournalText& text() const { return text_; }
  bool empty() const { return text_.entries.empty(); }

  Result<bool> begin();                                    // an apply starts
  Result<bool> before(const Entry& entry);                 // this is about to happen
  Result<bool> mark(const char* what, std::size_t entry);  // "done", "undoing", "undone"; its place in text()
  Result<bool> end();           // the apply ended, well or not, with a clean account
  Result<bool> close_undone();  // everything is undone: the journal becomes kLastJournal

 private:
  explicit Journal(System& system) : system_(&system) {}
  Result<bool> append(const std::string& record);

  System* system_;
  host::Fd lock_, file_;
  JournalText text_;
};

}  // namespace topotune::act
