#include "act/apply.h"

#include <unistd.h>

#include <algorithm>

#include "act/allow.h"
#include "act/pci_config.h"
#include "act/state.h"
#include "base/bdf.h"
#include "base/text.h"

namespace topotune::act {

namespace {

using model::Action;
using model::ActionKind;

bool wanted(const Action& action, const ApplyOptions& options) {
  if (!action.automatic || action.kind == ActionKind::env) return false;
  return options.disruptive || action.risk != model::ActionRisk::disruptive;
}

std::string shown(const std::optional<std::string>& value) {
  if (!value) return "nothing";
  if (value->size() > 60 || value->find('\n') != std::string::npos)
    return fmt::format("{} bytes", value->size());
  return printable(*value);
}

// A file of another hand is not overwritten, except one whose content the plan knew.
bool ours(const std::string& text) { return text.starts_with("# written by topotune"); }

// Interrupt numbers move from boot to boot: the vector must still be the device's.
std::optional<Error> moved_vector(const System& system, const Action& action) {
  const auto parts = split(action.target, '/');
  if (action.kind != ActionKind::affinity || !action.where || parts.size() < 4) return std::nullopt;
  const auto place = fmt::format("/sys/bus/pci/devices/{}/msi_irqs/{}", *action.where, parts[3]);
  if (parse_bdf(*action.where) && system.exists(place)) return std::nullopt;
  return fail(Errc::unsupported, "{}: interrupt {} does not belong to {} any more; nothing was changed",
              action.id, parts[3], printable(*action.where))
      .value();
}

std::optional<Error> unmet(const Action& action, const std::optional<std::string>& now) {
  const auto differs = [&] {
    return fail(Errc::unsupported, "{}: {} is {}, the plan was made for {}; nothing was changed", action.id,
                action.target, shown(now), shown(action.observed))
        .value();
  };
  switch (action.kind) {
    case ActionKind::sysfs:
    case ActionKind::config:
      if (action.observed && (!now || !same_value(action.kind, *now, *action.observed))) return differs();
      return std::nullopt;
    case ActionKind::file:
      if (action.observed) return now == action.observed ? std::nullopt : std::optional(differs());
      if (now && !ours(*now))
        return fail(Errc::unsupported, "{}: {} exists and was not written by topotune; nothing was changed",
                    action.id, action.target)
            .value();
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

Result<bool> writable(const System& system, const Action& action) {
  switch (action.kind) {
    case ActionKind::file:
      return system.can_create(action.target);
    case ActionKind::command:
      if (system.root().empty()) return true;
      return fail(Errc::unsupported, "{}: no command is run for a machine below a folder", action.id);
    default:
      return system.can_write(path_of(action.kind, action.target));
  }
}

Error about(const Action& action, Error error) {
  if (error.text.find("nothing was changed") == std::string::npos)
    error.text = fmt::format("{}: {}; nothing was changed", action.id, error.text);
  if (error.hint.empty() && error.code == Errc::denied)
    error.hint = "run as root, on the machine itself and not in a container";
  return error;
}

struct Step {
  const Action* action;
  Account account;
};

// Everything that can be known before the first write.
Result<std::vector<Step>> prepare(const System& system, const model::Plan& plan,
                                  const ApplyOptions& options) {
  std::vector<Step> steps;
  for (const auto& action : plan.actions) {
    if (!wanted(action, options)) continue;
    if (const auto why = refused(action))
      return fail(Errc::unsupported, "{}: {}: {}; nothing was changed", action.id, action.target, *why);
    Step step{&action, {action.id, action.target, Outcome::not_reached, ""}};
    const auto now = observe(system, action.kind, action.target);
    if (!now) return tl::unexpected(about(action, now.error()));
    const auto there = holds(system, action);
    const bool always = action.kind == ActionKind::command && action.target != "nvidia-peermem";
    if (there && *there && !always) {
      step.account.outcome = Outcome::already;
      step.account.text = shown(*now);
    } else {
      if (const auto error = moved_vector(system, action)) return tl::unexpected(*error);
      if (const auto error = unmet(action, *now)) return tl::unexpected(*error);
      if (const auto can = writable(system, action); !can) return tl::unexpected(about(action, can.error()));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<Entry> entry_for(const System& system, const Action& action) {
  Entry out;
  out.id = action.id;
  out.kind = action.kind;
  out.target = action.target;
  out.command = action.kind == ActionKind::command ? action.command : std::vector<std::string>{};
  out.after = action.value;
  if (action.kind == ActionKind::file) {
    auto before = system.file(action.target);
    if (!before) return tl::unexpected(before.error());
    out.before = std::move(*before);
    out.folders = system.missing_folders(action.target);
    return out;
  }
  auto now = observe(system, action.kind, action.target);
  if (!now) return tl::unexpected(now.error());
  if (*now) out.before = FileState{**now, 0, 0, 0};
  return out;
}

Result<bool> write_config(System& system, const std::string& target, const std::string& value) {
  const auto at = config_target(target);
  if (!at) return fail(Errc::malformed, "{}: not pci:ADDRESS/FIELD", target);
  const auto path = path_of(ActionKind::config, target);
  const auto bytes = system.read(path);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto field = find_field(*bytes, at->field);
  if (!field) return tl::unexpected(field.error());
  const auto word = changed_register(*field, at->field, value);
  if (!word) return tl::unexpected(word.error());
  return system.write_word(path, field->offset, *word);
}

Result<bool> write_file(System& system, const Entry& entry) {
  if (!entry.after) return system.remove_file(entry.target);
  if (auto made = system.make_folders(entry.target); !made) return tl::unexpected(made.error());
  FileState state = entry.before.value_or(FileState{"", 0644, ::geteuid(), ::getegid()});
  state.bytes = *entry.after;
  return system.replace_file(entry.target, state);
}

Result<bool> perform(System& system, const Entry& entry) {
  switch (entry.kind) {
    case ActionKind::file:
      return write_file(system, entry);
    case ActionKind::command:
      return system.run(entry.command);
    case ActionKind::config:
      return write_config(system, entry.target, entry.after.value_or(""));
    default:
      return system.write_value(entry.target, entry.after.value_or(""));
  }
}

Result<bool> do_one(System& system, Journal& journal, const Action& action, Account& account) {
  const auto entry = entry_for(system, action);
  if (!entry) return tl::unexpected(entry.error());
  if (const auto noted = journal.before(*entry); !noted) return noted;
  if (const auto written = perform(system, *entry); !written) return written;
  const auto there = holds(system, action);
  if (!there) return tl::unexpected(there.error());
  if (!*there) {
    const auto now = observe(system, action.kind, action.target);
    return fail(Errc::io, "{} reads {} after {} was written", action.target, now ? shown(*now) : "nothing",
                shown(action.value));
  }
  const auto before = entry->before ? std::optional(entry->before->bytes) : std::nullopt;
  account.text = action.kind == ActionKind::command
                     ? fmt::format("{}", fmt::join(action.command, " "))
                     : fmt::format("{} -> {}", shown(before), shown(action.value));
  return journal.mark("done", journal.text().entries.size() - 1);
}

ApplyReport report_of(const std::vector<Step>& steps) {
  ApplyReport out;
  for (const auto& step : steps) out.accounts.push_back(step.account);
  return out;
}

}  // namespace

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return "done";
    case Outcome::already:
      return "already so";
    case Outcome::skipped:
      return "skipped";
    case Outcome::failed:
      return "failed";
    case Outcome::not_reached:
      return "not reached";
  }
  return "unknown";
}

bool ApplyReport::complete() const {
  return std::ranges::none_of(accounts, [](const Account& a) {
    return a.outcome == Outcome::failed || a.outcome == Outcome::not_reached;
  });
}

Result<ApplyReport> apply(System& system, const model::Plan& plan, const ApplyOptions& options) {
  auto steps = prepare(system, plan, options);
  if (!steps) return tl::unexpected(steps.error());
  const bool nothing =
      std::ranges::all_of(*steps, [](const Step& step) { return step.account.outcome == Outcome::already; });
  if (nothing) return report_of(*steps);
  auto journal = Journal::open(system);
  if (!journal) return tl::unexpected(journal.error());
  const bool half = std::ranges::any_of(journal->text().entries, &Entry::undoing);
  if (journal->text().interrupted || half) {
    return tl::unexpected(Error{Errc::unsupported,
                                fmt::format("{}: an earlier {} was interrupted; nothing was changed",
                                            kJournal, half ? "undo" : "apply"),
                                {},
                                {},
                                {},
                                "topotune undo"});
  }
  if (const auto begun = journal->begin(); !begun) return tl::unexpected(begun.error());
  for (auto& step : *steps) {
    if (step.account.outcome == Outcome::already) continue;
    const auto done = do_one(system, *journal, *step.action, step.account);
    step.account.outcome = done ? Outcome::done : Outcome::failed;
    if (done) continue;
    step.account.text = done.error().to_string();
    break;
  }
  if (const auto ended = journal->end(); !ended) return tl::unexpected(ended.error());
  return report_of(*steps);
}

}  // namespace topotune::act
