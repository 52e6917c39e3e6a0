#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "base/text.h"
#include "checks/causes.h"
#include "checks/fleet.h"
#include "checks/language.h"
#include "checks/log_rules.h"
#include "checks/rule.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "emit/findings_json.h"
#include "emit/findings_junit.h"
#include "emit/findings_markdown.h"
#include "emit/findings_nagios.h"
#include "emit/findings_text.h"
#include "emit/fleet_text.h"
#include "lint/lint.h"
#include "parse/nccl_log.h"

namespace topotune::cli {

namespace {

struct CheckOptions {
  std::vector<std::string> inputs;
  std::string fail_on = "warn";
  std::vector<std::string> rules;
  bool list = false, nagios = false, junit = false, markdown = false;
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

// Findings and lists of `more`, each rule once in the lists; a rule that one text decides is checked.
void append(model::Diagnosis& to, model::Diagnosis more) {
  std::ranges::move(more.findings, std::back_inserter(to.findings));
  std::ranges::move(more.checked, std::back_inserter(to.checked));
  std::ranges::move(more.not_checked, std::back_inserter(to.not_checked));
  std::ranges::sort(to.checked);
  to.checked.erase(std::unique(to.checked.begin(), to.checked.end()), to.checked.end());
  std::erase_if(to.not_checked,
                [&](const auto& n) { return std::ranges::binary_search(to.checked, n.rule); });
  std::ranges::stable_sort(to.not_checked, {}, &model::NotChecked::rule);
  const auto same = [](const auto& x, const auto& y) { return x.rule == y.rule; };
  to.not_checked.erase(std::unique(to.not_checked.begin(), to.not_checked.end(), same), to.not_checked.end());
  checks::sort_findings(to.findings);
}

// What stands beside the machine: the job's logs and configuration, read once.
struct Beside {
  std::vector<std::pair<std::string, model::NcclLog>> logs;  // name, log
  std::vector<lint::Input> configs;
};

Beside read_beside(const Input& input) {
  Beside out;
  for (const auto& text : input.logs) {
    parse::NcclLogParser parser;
    parser.begin_file(text.name);
    parser.feed(text.text);
    out.logs.emplace_back(text.name, parser.finish());
  }
  for (const auto& text : input.configs) {
    if (auto read = lint::read_input(text.name, text.text)) out.configs.push_back(std::move(*read));
  }
  return out;
}

// The job's variables, as its configuration sets them and its logs print them (the log is what NCCL saw).
std::optional<std::map<std::string, std::string>> environment_of(const Beside& beside) {
  if (beside.logs.empty() && beside.configs.empty()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& config : beside.configs) {
    for (const auto& setting : config.facts.settings) {
      if (setting.literal && !setting.replaced_at) out[setting.name] = setting.value;
    }
  }
  for (const auto& [name, log] : beside.logs) {
    for (const auto& setting : log.env) out[setting.name] = setting.value;
  }
  return out;
}

// --nccl-version, else what the first log says; "" unknown.
std::string nccl_version_of(const Beside& beside, const Globals& globals) {
  if (!globals.nccl_version.empty()) return globals.nccl_version;
  for (const auto& [name, log] : beside.logs)
    if (!log.versions.empty()) return log.versions.front().version;
  return "";
}

lint::Options lint_options(const std::string& nccl_version, const Globals& globals) {
  lint::Options known;
  known.nccl = lint::parse_version(nccl_version);
  known.ucx = lint::parse_version(globals.ucx_version);
  known.driver = lint::parse_version(globals.driver_version);
  return known;
}

model::Diagnosis diagnose(const Input& input, const Globals& globals) {
  const auto beside = read_beside(input);
  checks::Evidence evidence;
  evidence.machine = &input.machine;
  evidence.raw_text = input.raw_text;
  evidence.nccl_version = nccl_version_of(beside, globals);
  evidence.environment = environment_of(beside);
  for (const auto& [name, log] : beside.logs)
    evidence.multi_node_job = evidence.multi_node_job || checks::LogView(log, nullptr, name).many_hosts();
  auto diagnosis = checks::run(evidence);
  const bool machine = !input.machine.topology.gpus.empty();
  for (const auto& [name, log] : beside.logs)
    append(diagnosis, checks::diagnose_log(log, machine ? &input.machine : nullptr, name));
  if (!beside.configs.empty())
    append(diagnosis, lint::judge(beside.configs, lint_options(evidence.nccl_version, globals)).diagnosis());
  checks::join_causes(diagnosis);
  return diagnosis;
}

// --driver-version tells what no file tells.
void add_versions(model::Machine& machine, const Globals& globals) {
  if (!globals.driver_version.empty() && !machine.nvidia_driver)
    machine.nvidia_driver = model::Fact<std::string>::of(globals.driver_version, "--driver-version");
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

int check_one(const CheckOptions& options, const Globals& globals, const std::string& name) {
  auto input = load_input(name, globals);
  if (!input) {
    if (options.nagios) write_result(globals, emit::findings_nagios({}));
    return report(input.error());
  }
  add_versions(input->machine, globals);
  auto diagnosis = diagnose(*input, globals);
  keep_only(options.rules, diagnosis);
  const auto written =
      write_result(globals, rendered(options, globals, diagnosis, input->machine.topology.source));
  return written == kOk ? status_of(model::verdict_of(diagnosis), options.fail_on) : written;
}

// Several inputs are the nodes of a fleet. An input that cannot be read is said and makes the status 3 unless
// worse was found; the others are compared all the same.
int check_fleet(const CheckOptions& options, const Globals& globals) {
  std::vector<model::FleetNode> nodes;
  bool unreadable = false;
  for (const auto& name : options.inputs) {
    auto input = load_input(name, globals);
    if (!input) {
      report(input.error());
      unreadable = true;
      continue;
    }
    add_versions(input->machine, globals);
    auto findings = diagnose(*input, globals).findings;
    nodes.push_back(
        {name, checks::fleet_kind(input->machine), checks::fleet_facts(input->machine), std::move(findings)});
  }
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

int check(const CheckOptions& options, const Globals& globals) {
  if (options.list) return write_result(globals, listing(language_of(globals)));
  if (const auto error = unknown_rule(options.rules)) return report(*error);
  if (options.inputs.size() > 1) return check_fleet(options, globals);
  return check_one(options, globals, options.inputs.empty() ? "live" : options.inputs.front());
}

}  // namespace

void add_check(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<CheckOptions>();
  auto* verb = app.add_subcommand("check", "diagnose a machine, a file or a folder of command outputs");
  verb->add_option("INPUT", options->inputs,
                   "live (the default), a file, a folder, or -; several are compared as nodes of a fleet");
  verb->add_option("--fail-on", options->fail_on, "the verdict that makes the exit status other than 0")
      ->check(CLI::IsMember({"warn", "error"}))
      ->type_name("VERDICT");
  verb->add_option("--rule", options->rules, "only this rule (repeatable)")->type_name("ID");
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
      "  topotune check --rule ACS01 --rule KERN01");
  verb->callback([options, &globals, &status] { status = check(*options, globals); });
}

}  // namespace topotune::cli
