#include "cli/job.h"

#include <algorithm>
#include <iterator>

#include "checks/causes.h"
#include "checks/log_rules.h"
#include "lint/machine.h"
#include "model/paths.h"
#include "parse/nccl_log.h"

namespace topotune::cli {

void append(model::Diagnosis& to, model::Diagnosis more) {
  std::ranges::move(more.findings, std::back_inserter(to.findings));
  std::ranges::move(more.checked, std::back_inserter(to.checked));
  std::ranges::move(more.not_checked, std::back_inserter(to.not_checked));
  to.unexplained = to.unexplained || more.unexplained;
  std::ranges::sort(to.checked);
  to.checked.erase(std::unique(to.checked.begin(), to.checked.end()), to.checked.end());
  std::erase_if(to.not_checked,
                [&](const auto& n) { return std::ranges::binary_search(to.checked, n.rule); });
  std::ranges::stable_sort(to.not_checked, {}, &model::NotChecked::rule);
  const auto same = [](const auto& x, const auto& y) { return x.rule == y.rule; };
  to.not_checked.erase(std::unique(to.not_checked.begin(), to.not_checked.end(), same), to.not_checked.end());
  checks::sort_findings(to.findings);
}

namespace {

// --nccl-version, else what the first log says; "" unknown.
std::string nccl_version_of(const Job& job, const Globals& globals) {
  if (!globals.nccl_version.empty()) return globals.nccl_version;
  for (const auto& [name, log] : job.logs)
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

}  // namespace

Job read_job(const Input& input) {
  Job out;
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

std::optional<std::map<std::string, std::string>> environment_of(const Job& job) {
  if (job.logs.empty() && job.configs.empty()) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& config : job.configs) {
    for (const auto& setting : config.facts.settings) {
      if (setting.literal && !setting.replaced_at) out[setting.name] = setting.value;
    }
  }
  for (const auto& [name, log] : job.logs) {
    for (const auto& setting : log.env) out[setting.name] = setting.value;
  }
  return out;
}

model::Diagnosis diagnose(const Input& input, const Job& job, const Globals& globals,
                          const Earlier& earlier) {
  checks::Evidence evidence;
  evidence.machine = &input.machine;
  evidence.before = earlier.machine;
  evidence.seconds = earlier.seconds;
  evidence.raw_text = input.raw_text;
  evidence.nccl_version = nccl_version_of(job, globals);
  evidence.environment = environment_of(job);
  for (const auto& [name, log] : job.logs)
    evidence.multi_node_job = evidence.multi_node_job || checks::LogView(log, nullptr, name).many_hosts();
  auto diagnosis = checks::run(evidence);
  const bool machine = !input.machine.topology.gpus.empty();
  for (const auto& [name, log] : job.logs)
    append(diagnosis, checks::diagnose_log(log, machine ? &input.machine : nullptr, name));
  if (!job.configs.empty()) {
    auto known = lint_options(evidence.nccl_version, globals);
    const auto paths = model::paths_of(input.machine.topology);
    evidence.paths = &paths;
    lint::know_machine(known, evidence);
    append(diagnosis, lint::judge(job.configs, known).diagnosis());
  }
  checks::join_causes(diagnosis);
  return diagnosis;
}

void add_versions(model::Machine& machine, const Globals& globals) {
  if (!globals.driver_version.empty() && !machine.nvidia_driver)
    machine.nvidia_driver = model::Fact<std::string>::of(globals.driver_version, "--driver-version");
}

}  // namespace topotune::cli
