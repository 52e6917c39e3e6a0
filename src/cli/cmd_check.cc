#include <algorithm>
#include <memory>

#include "base/text.h"
#include "checks/causes.h"
#include "checks/rule.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "emit/findings_json.h"
#include "emit/findings_text.h"

namespace topotune::cli {

namespace {

struct CheckOptions {
  std::string input = "live";
  std::string fail_on = "warn";
  std::vector<std::string> rules;
  bool list = false;
};

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

std::string listing() {
  std::string out;
  for (const auto& row : checks::catalogue())
    out += fmt::format("{:<8} {:<5} {:<13} {}\n", row.id, row.severity, row.input, row.title);
  return out;
}

std::optional<Error> unknown_rule(const std::vector<std::string>& rules) {
  for (const auto& id : rules)
    if (checks::find_rule(id) == nullptr)
      return Error{
          Errc::usage, fmt::format("--rule {}: no such rule", id), {}, {}, {}, "topotune check --list"};
  return std::nullopt;
}

model::Diagnosis diagnose(const Input& input, const Globals& globals) {
  checks::Evidence evidence;
  evidence.machine = &input.machine;
  evidence.raw_text = input.raw_text;
  evidence.nccl_version = globals.nccl_version;
  auto diagnosis = checks::run(evidence);
  checks::join_causes(diagnosis);
  return diagnosis;
}

// --driver-version tells what no file tells.
void add_versions(model::Machine& machine, const Globals& globals) {
  if (!globals.driver_version.empty() && !machine.nvidia_driver)
    machine.nvidia_driver = model::Fact<std::string>::of(globals.driver_version, "--driver-version");
}

int check(const CheckOptions& options, const Globals& globals) {
  if (options.list) return write_result(globals, listing());
  if (const auto error = unknown_rule(options.rules)) return report(*error);
  auto input = load_input(options.input, globals);
  if (!input) return report(input.error());
  add_versions(input->machine, globals);
  auto diagnosis = diagnose(*input, globals);
  keep_only(options.rules, diagnosis);
  const auto& source = input->machine.topology.source;
  const auto written = write_result(
      globals, globals.json
                   ? emit::findings_json(diagnosis, source)
                   : emit::findings_text(diagnosis, source.name, {use_color(globals), globals.verbose}));
  return written == kOk ? status_of(model::verdict_of(diagnosis), options.fail_on) : written;
}

}  // namespace

void add_check(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<CheckOptions>();
  auto* verb = app.add_subcommand("check", "diagnose a machine, a file or a folder of command outputs");
  verb->add_option("INPUT", options->input, "live (the default), a file, a folder, or - for standard input");
  verb->add_option("--fail-on", options->fail_on, "the verdict that makes the exit status other than 0")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("VERDICT");
  verb->add_option("--rule", options->rules, "only this rule (repeatable)")->type_name("ID");
  verb->add_flag("--list", options->list, "print the rules and end");
  verb->footer(
      "Exit status: 0 ok or info, 1 warn (0 with --fail-on error), 2 error, 3 could not be determined.\n"
      "Examples:\n"
      "  topotune check                         this machine\n"
      "  topotune check topo.xml                an NCCL topology file\n"
      "  topotune check node7/ --json           the command outputs of a folder as topotune.findings/1\n"
      "  topotune check --rule ACS01 --rule KERN01");
  verb->callback([options, &globals, &status] { status = check(*options, globals); });
}

}  // namespace topotune::cli
