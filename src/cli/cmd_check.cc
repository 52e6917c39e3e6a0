#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "checks/fleet.h"
#include "checks/language.h"
#include "checks/rule.h"
#include "cli/cli.h"
#include "cli/fleet_input.h"
#include "cli/folder_input.h"
#include "cli/input.h"
#include "cli/job.h"
#include "cli/measurement_check.h"
#include "emit/findings_json.h"
#include "emit/findings_junit.h"
#include "emit/findings_markdown.h"
#include "emit/findings_nagios.h"
#include "emit/findings_text.h"
#include "emit/fleet_text.h"

namespace topotune::cli {

namespace {

struct CheckOptions {
  std::vector<std::string> inputs;
  std::string fail_on = "warn";
  std::vector<std::string> rules;
  std::string since;
  double interval = 0;  // seconds
  bool list = false, nagios = false, junit = false, markdown = false;
};

constexpr double kLongestInterval = 86400;

int status_of(model::Verdict verdict, const std::string& fail_on) {
  switch (verdict) {
    case model::Verdict::ok:
    case model::Verdict::info:
      return kOk;
    case model::Verdict::warn:
      return fail_on == "error" ? kOk : kWarn;
    case model::Verdict::error:
      return kError;
    case model::Verdict::unknown:
      return kUnknown;
  }
  return kUnknown;
}

// Only what --rule names, in all three lists.
void keep_only(const std::vector<std::string>& rules, model::Diagnosis& diagnosis) {
  if (rules.empty()) return;
  const auto other = [&](const std::string& id) { return std::ranges::find(rules, id) == rules.end(); };
  std::erase_if(diagnosis.findings, [&](const model::Finding& f) { return other(f.rule); });
  std::erase_if(diagnosis.checked, other);
  std::erase_if(diagnosis.not_checked, [&](const model::NotChecked& n) { return other(n.rule); });
}

std::string listing(model::Language language) {
  std::string out;
  for (const auto& row : checks::catalogue()) {
    const auto* translated = checks::find_translation(row.id);
    const bool chinese = language == model::Language::zh && translated != nullptr;
    out += fmt::format("{:<8} {:<5} {:<13} {}\n", row.id, row.severity, row.input,
                       chinese ? translated->title : row.title);
  }
  return out;
}

std::optional<Error> unknown_rule(const std::vector<std::string>& rules) {
  for (const auto& id : rules)
    if (checks::find_rule(id) == nullptr)
      return Error{
          Errc::usage, fmt::format("--rule {}: no such rule", id), {}, {}, {}, "topotune check --list"};
  return std::nullopt;
}

std::string rendered(const CheckOptions& options, const Globals& globals, const model::Diagnosis& found,
                     const model::Source& source) {
  const auto language = language_of(globals);
  auto diagnosis = found;
  checks::translate(diagnosis, language);
  if (options.nagios) return emit::findings_nagios(diagnosis);
  if (options.junit) return emit::findings_junit(diagnosis, source.name);
  if (options.markdown) return emit::findings_markdown(diagnosis, source.name, language);
  if (globals.json) return emit::findings_json(diagnosis, source);
  return emit::findings_text(diagnosis, source.name, {use_color(globals), globals.verbose, language});
}

// The earlier reading and the time between both; nothing was asked for: no machine.
struct Before {
  std::optional<Input> input;
  std::optional<double> seconds;
};

std::optional<double> between(const model::Machine& before, const model::Machine& now) {
  if (!before.read_at || !now.read_at || *now.read_at <= *before.read_at) return std::nullopt;
  return static_cast<double>(*now.read_at - *before.read_at);
}

// --since FILE, or a first reading of this machine and a wait of --interval seconds.
Result<Before> read_before(const CheckOptions& options, const Globals& globals, const std::string& name) {
  Before out;
  if (options.interval > 0) out.seconds = options.interval;
  if (options.since.empty() && options.interval <= 0) return out;
  auto input = load_input(options.since.empty() ? name : options.since, globals);
  if (!input) return tl::unexpected(input.error());
  out.input = std::move(*input);
  if (options.since.empty()) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval));
  return out;
}

std::optional<Error> wrong_readings(const CheckOptions& options, const std::string& name) {
  const auto usage = [](std::string text, std::string hint) {
    return Error{Errc::usage, std::move(text), {}, {}, {}, std::move(hint)};
  };
  if (options.interval != 0 && !(options.interval > 0 && options.interval <= kLongestInterval))
    return usage(fmt::format("--interval {}: seconds between 0 and {}", options.interval, kLongestInterval),
                 "");
  if (options.interval > 0 && options.since.empty() && name != "live")
    return usage("--interval alone waits between two readings of this machine",
                 "topotune check --since OLD NEW compares two recordings");
  return std::nullopt;
}

int unreadable(const CheckOptions& options, const Globals& globals, const Error& error) {
  if (options.nagios) write_result(globals, emit::findings_nagios({}));
  return report(error);
}

// A measurement by itself: whether its numbers mean what they seem to.
int check_numbers(const CheckOptions& options, const Globals& globals, const std::string& name) {
  auto diagnosis = check_measurement(name, nullptr);
  if (!diagnosis) return unreadable(options, globals, diagnosis.error());
  keep_only(options.rules, *diagnosis);
  const auto written =
      write_result(globals, rendered(options, globals, *diagnosis, {model::SourceKind::text, name, true}));
  return written == kOk ? status_of(model::verdict_of(*diagnosis), options.fail_on) : written;
}

// Measurements in a machine's folder, judged by the links of that machine.
void add_measurements(const Input& input, const std::string& folder, model::Diagnosis& to) {
  for (const auto& file : input.unrecognised) {
    const auto name = folder + "/" + file;
    if (!is_measurement_file(name)) continue;
    auto found =
        check_measurement(name, input.machine.topology.gpus.empty() ? nullptr : &input.machine.topology);
    if (!found) {
      report(found.error());
      continue;
    }
    append(to, std::move(*found));
  }
}

int check_one(const CheckOptions& options, const Globals& globals, const std::string& name) {
  if (const auto error = wrong_readings(options, name)) return report(*error);
  if (globals.kind.empty() && is_measurement_file(name)) return check_numbers(options, globals, name);
  const auto before = read_before(options, globals, name);
  if (!before) return unreadable(options, globals, before.error());
  auto input = load_input(name, globals);
  if (!input) return unreadable(options, globals, input.error());
  // Of texts; what a machine did not tell stands with the rules that were not checked.
  if (!input->machine.inputs.empty()) say_diagnostics(globals, *input);
  add_versions(input->machine, globals);
  Earlier earlier{before->input ? &before->input->machine : nullptr, before->seconds};
  if (!options.since.empty()) {
    const auto told = between(before->input->machine, input->machine);
    if (told) earlier.seconds = told;
  }
  auto diagnosis = diagnose(*input, read_job(*input), globals, earlier);
  add_measurements(*input, name, diagnosis);
  keep_only(options.rules, diagnosis);
  const auto written =
      write_result(globals, rendered(options, globals, diagnosis, input->machine.topology.source));
  return written == kOk ? status_of(model::verdict_of(diagnosis), options.fail_on) : written;
}

// Several inputs are the nodes of a fleet. An input that cannot be read is said and makes the status 3 unless
// worse was found; the others are compared all the same.
int check_fleet(const CheckOptions& options, const Globals& globals, const std::vector<std::string>& inputs) {
  bool unreadable = false;
  auto nodes = read_fleet(inputs, globals, unreadable);
  auto report = checks::compare_fleet(nodes);
  for (auto& node : nodes) {
    for (auto& finding : node.findings) {
      finding.subject = node.name + ": " + finding.subject;
      report.diagnosis.findings.push_back(std::move(finding));
    }
  }
  std::ranges::stable_sort(report.diagnosis.findings,
                           [](const auto& x, const auto& y) { return x.severity > y.severity; });
  keep_only(options.rules, report.diagnosis);
  model::Source source{model::SourceKind::folder, fmt::format("{} nodes", nodes.size()), !unreadable};
  const bool text = !globals.json && !options.nagios && !options.junit && !options.markdown;
  const auto written = write_result(globals, (text ? emit::fleet_text(report) + "\n" : "") +
                                                 rendered(options, globals, report.diagnosis, source));
  const int status = status_of(model::verdict_of(report.diagnosis), options.fail_on);
  if (written != kOk) return written;
  return unreadable && status == kOk ? static_cast<int>(kUnknown) : status;
}

// Inputs, with a folder of captures as its files.
std::vector<std::string> expanded(const std::vector<std::string>& inputs) {
  std::vector<std::string> out;
  for (const auto& name : inputs) {
    const auto nodes = is_folder(name) ? fleet_of_folder(name) : std::vector<std::string>{};
    if (nodes.empty())
      out.push_back(name);
    else
      out.insert(out.end(), nodes.begin(), nodes.end());
  }
  return out;
}

int check(const CheckOptions& options, const Globals& globals) {
  if (options.list) return write_result(globals, listing(language_of(globals)));
  if (const auto error = unknown_rule(options.rules)) return report(*error);
  const auto inputs = expanded(options.inputs);
  if (inputs.size() < 2) return check_one(options, globals, inputs.empty() ? "live" : inputs.front());
  if (options.interval != 0 || !options.since.empty())
    return report(
        Error{Errc::usage, "--since and --interval are for one machine, not for a fleet", {}, {}, {}, {}});
  return check_fleet(options, globals, inputs);
}

}  // namespace

void add_check(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<CheckOptions>();
  auto* verb = app.add_subcommand("check", "diagnose a machine, a file or a folder of command outputs");
  verb->add_option("INPUT", options->inputs,
                   "live (the default), a file, a folder, or -; several, or a folder of captures, are "
                   "compared as a fleet");
  verb->add_option("--fail-on", options->fail_on, "the verdict that makes the exit status other than 0")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("VERDICT");
  verb->add_option("--rule", options->rules, "only this rule (repeatable)")
      ->type_name("ID")
      ->allow_extra_args(false);
  verb->add_option("--since", options->since,
                   "an earlier recording of this machine: what its counters did since then")
      ->type_name("FILE");
  verb->add_option(
          "--interval", options->interval,
          "seconds between two readings (this machine is read twice; with --since: where no file tells)")
      ->type_name("SECONDS");
  verb->add_flag("--nagios", options->nagios, "one line for Nagios and its kin");
  verb->add_flag("--junit", options->junit, "JUnit XML");
  verb->add_flag("--markdown", options->markdown, "Markdown for a ticket");
  verb->add_flag("--list", options->list, "print the rules and end");
  verb->footer(
      "Exit status: 0 ok or info, 1 warn (0 with --fail-on error), 2 error, 3 could not be determined.\n"
      "Examples:\n"
      "  topotune check                         this machine\n"
      "  topotune check topo.xml                an NCCL topology file\n"
      "  topotune check node7/ --json           the command outputs of a folder as topotune.findings/1\n"
      "  topotune check node1.capture node2.capture node3.capture    which node differs, in what\n"
      "  topotune check captures/               a folder of captures: the nodes of a fleet\n"
      "  topotune check --interval 60           what the error counters do within a minute\n"
      "  topotune check --since monday.capture node7.capture\n"
      "  topotune check bench.json              whether the numbers of a measurement mean what they seem to\n"
      "  topotune check --lang zh --markdown    for a ticket, in Chinese\n"
      "  topotune check --rule ACS01 --rule KERN01");
  verb->callback([options, &globals, &status] { status = check(*options, globals); });
}

}  // namespace topotune::cli
