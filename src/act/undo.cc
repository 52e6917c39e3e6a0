#include <algorithm>

#include "act/allow.h"
#include "act/apply.h"
#include "act/pci_config.h"
#include "act/state.h"
#include "base/text.h"

namespace topotune::act {

namespace {

using model::ActionKind;

std::string shown(const std::optional<std::string>& value) {
  if (!value) return "nothing";
  if (value->size() > 60 || value->find('\n') != std::string::npos)
    return fmt::format("{} bytes", value->size());
  return printable(*value);
}

std::optional<std::string> before_of(const Entry& entry) {
  if (!entry.before) return std::nullopt;
  return entry.before->bytes;
}

bool same(ActionKind kind, const std::optional<std::string>& a, const std::optional<std::string>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return same_value(kind, *a, *b);
}

// A journal is a file: what it says to restore obeys the same table as a plan.
std::optional<std::string> refused_entry(const Entry& entry) {
  model::Action action;
  action.kind = entry.kind;
  action.target = entry.target;
  action.command = entry.command;
  action.value = entry.kind == ActionKind::file ? entry.after : before_of(entry);
  return refused(action);
}

Result<bool> restore_file(System& system, const Entry& entry) {
  if (auto removed = system.remove_file(entry.target + kUnfinished); !removed) return removed;
  if (auto done =
          entry.before ? system.replace_file(entry.target, *entry.before) : system.remove_file(entry.target);
      !done)
    return done;
  for (auto folder = entry.folders.rbegin(); folder != entry.folders.rend(); ++folder)
    if (auto removed = system.remove_folder(*folder); !removed) return removed;
  return true;
}

Result<bool> restore_config(System& system, const Entry& entry) {
  const auto path = path_of(entry.kind, entry.target);
  const auto at = config_target(entry.target);
  const auto bytes = system.read(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto field = find_field(*bytes, at->field);
  if (!field) return tl::unexpected(field.error());
  const auto word = changed_register(*field, at->field, entry.before->bytes);
  if (!word) return tl::unexpected(word.error());
  return system.write_word(path, field->offset, *word);
}

Result<bool> restore(System& system, const Entry& entry) {
  switch (entry.kind) {
    case ActionKind::file:
      return restore_file(system, entry);
    case ActionKind::command:
      if (entry.target == "nvidia-peermem")
        return entry.before ? Result<bool>(true) : system.run({"modprobe", "-r", "nvidia-peermem"});
      return system.run(entry.command);
    case ActionKind::config:
      return restore_config(system, entry);
    default:
      return system.write_value(entry.target, entry.before->bytes);
  }
}

// The place is as this program left it, or as it was before: otherwise another hand has changed it. While an
// action or its undo was interrupted it may be anything in between.
std::optional<Error> foreign(const Entry& entry, const std::optional<std::string>& now) {
  if (!entry.done || entry.undoing || entry.kind == ActionKind::command) return std::nullopt;
  if (same(entry.kind, now, entry.after) || same(entry.kind, now, before_of(entry))) return std::nullopt;
  return Error{Errc::unsupported,
               fmt::format("{}: {} is {}, neither {} as it was left nor {} as it was before", entry.id,
                           entry.target, shown(now), shown(entry.after), shown(before_of(entry))),
               {},
               {},
               {},
               "topotune undo --force restores it all the same"};
}

Result<bool> undo_one(System& system, Journal& journal, std::size_t place, const UndoOptions& options) {
  const Entry entry = journal.text().entries[place];
  if (const auto why = refused_entry(entry))
    return fail(Errc::unsupported, "{}: {}: {}", entry.id, entry.target, *why);
  const auto now = observe(system, entry.kind, entry.target);
  if (!now) return tl::unexpected(now.error());
  if (const auto error = foreign(entry, *now); error && !options.force) return tl::unexpected(*error);
  if (options.dry_run) return true;
  if (const auto noted = journal.mark("undoing", place); !noted) return noted;
  if (const auto restored = restore(system, entry); !restored) return restored;
  const auto after = observe(system, entry.kind, entry.target);
  if (!after) return tl::unexpected(after.error());
  if (entry.kind != ActionKind::command && !same(entry.kind, *after, before_of(entry)))
    return fail(Errc::io, "{}: {} reads {} after {} was restored", entry.id, entry.target, shown(*after),
                shown(before_of(entry)));
  return journal.mark("undone", place);
}

}  // namespace

Result<ApplyReport> undo(System& system, const UndoOptions& options) {
  ApplyReport out;
  if (!system.exists(kJournal)) return out;
  auto journal = Journal::open(system);
  if (!journal) return tl::unexpected(journal.error());
  bool failed = false;
  for (std::size_t place = journal->text().entries.size(); place-- > 0;) {
    const Entry entry = journal->text().entries[place];
    if (entry.undone) continue;
    Account account{entry.id, entry.target, failed ? Outcome::not_reached : Outcome::done,
                    fmt::format("{} -> {}", shown(entry.after), shown(before_of(entry)))};
    const auto done = failed ? Result<bool>(true) : undo_one(system, *journal, place, options);
    if (!done) {
      account.outcome = Outcome::failed;
      account.text = done.error().text + (done.error().hint.empty() ? "" : " (" + done.error().hint + ")");
      failed = true;
    }
    out.accounts.push_back(std::move(account));
  }
  if (!failed && !options.dry_run)
    if (const auto closed = journal->close_undone(); !closed) return tl::unexpected(closed.error());
  return out;
}

}  // namespace topotune::act
