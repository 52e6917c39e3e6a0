#include "cli/planning.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>

#include "base/text.h"
#include "checks/log_rules.h"
#include "checks/rule.h"
#include "cli/fingerprint.h"
#include "lint/lint.h"
#include "lint/machine.h"
#include "model/paths.h"
#include "parse/log_costs.h"
#include "parse/measurement.h"
#include "parse/measurement_run.h"
#include "parse/nccl_log.h"

extern char** environ;

namespace topotune::cli {

namespace {

// The texts that set variables of the job. A deque: lint inputs point into it.
struct JobTexts {
  std::deque<std::string> texts;
  std::vector<lint::Input> inputs;
  std::vector<std::pair<std::string, model::NcclLog>> logs;
  std::map<std::string, std::string> conf_files;
};

void take(JobTexts& to, std::string name, std::string text, std::optional<parse::ConfigKind> kind) {
  to.texts.push_back(std::move(text));
  if (auto input = lint::read_input(std::move(name), to.texts.back(), kind))
    to.inputs.push_back(std::move(*input));
}

std::string environ_text() {
  std::string out;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    out += *at;
    out += '\0';
  }
  return out;
}

// What a log says that NCCL read, as variables.
std::string environ_of(const model::NcclLog& log) {
  std::string out;
  for (const auto& setting : log.env) {
    out += setting.name + "=" + setting.value;
    out += '\0';
  }
  return out;
}

// The files that NCCL reads: NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf (src/misc/param.cc).
void take_conf_files(JobTexts& to, const Globals& globals) {
  std::vector<std::string> names;
  if (globals.sysroot.empty()) {
    const char *own = std::getenv("NCCL_CONF_FILE"), *home = std::getenv("HOME");
    if (own != nullptr)
      names.emplace_back(own);
    else if (home != nullptr)
      names.push_back(std::string(home) + "/.nccl.conf");
  }
  names.emplace_back("/etc/nccl.conf");
  for (const auto& name : names) {
    auto text = read_input(globals.sysroot + name);
    if (!text) continue;
    to.conf_files[name] = *text;
    take(to, name, std::move(*text), parse::ConfigKind::nccl_conf);
  }
}

Result<bool> take_files(JobTexts& to, const PlanRequest& request) {
  for (const auto& name : request.env_files) {
    auto text = read_input(name);
    if (!text) return about(name, text.error());
    take(to, name == "-" ? "stdin" : name, std::move(*text), std::nullopt);
  }
  return true;
}

Result<JobTexts> texts_of(const PlanRequest& request, const Input& input, const Globals& globals) {
  JobTexts out;
  for (const auto& text : input.configs) take(out, text.name, text.text, std::nullopt);
  for (const auto& text : input.logs) {
    parse::NcclLogParser parser;
    parser.begin_file(text.name);
    parser.feed(text.text);
    out.logs.emplace_back(text.name, parser.finish());
    take(out, text.name, environ_of(out.logs.back().second), parse::ConfigKind::environ);
  }
  if (auto taken = take_files(out, request); !taken) return tl::unexpected(taken.error());
  const bool live = input.kind == model::SourceKind::live;
  if (request.is_rank || (live && globals.sysroot.empty()))
    take(out, "environment", environ_text(), parse::ConfigKind::environ);
  if (live) take_conf_files(out, globals);
  return out;
}

std::vector<plan::Setting> settings_of(const JobTexts& texts) {
  std::vector<plan::Setting> out;
  for (const auto& input : texts.inputs)
    for (const auto& setting : input.facts.settings) {
      if (!setting.literal || setting.replaced_at) continue;
      const bool lines = input.kind != parse::ConfigKind::environ;
      out.push_back({setting.name, setting.value,
                     lines ? fmt::format("{}:{}", input.name, setting.at.line) : input.name});
    }
  return out;
}

void append(model::Diagnosis& to, model::Diagnosis more) {
  std::ranges::move(more.findings, std::back_inserter(to.findings));
}

model::Diagnosis diagnose(const Input& input, const JobTexts& texts, checks::Evidence& evidence,
                          const plan::Job& job, MachineRules rules, const Globals& globals) {
  auto out = rules == MachineRules::judge ? checks::run(evidence) : model::Diagnosis{};
  for (const auto& [name, log] : texts.logs)
    append(out,
           checks::diagnose_log(log, input.machine.topology.gpus.empty() ? nullptr : &input.machine, name));
  lint::Options known;
  known.nccl = lint::parse_version(evidence.nccl_version);
  known.ucx = lint::parse_version(globals.ucx_version);
  known.driver = lint::parse_version(globals.driver_version);
  known.nodes = job.nodes;
  lint::know_machine(known, evidence);
  append(out, lint::judge(texts.inputs, known).diagnosis());
  return out;
}

// --- measurements

struct Measurements {
  std::vector<plan::NamedRun> runs;
  std::vector<plan::MeasuredEffect> effects;
};

// Measured on another machine: its numbers say nothing about this one.
std::optional<Error> other_machine(const std::string& name, const std::string& theirs,
                                   const std::string& ours) {
  if (theirs.empty() || ours.empty() || theirs == ours || ours.find("unknown") != std::string::npos ||
      theirs.find("unknown") != std::string::npos)
    return std::nullopt;
  return Error{Errc::malformed,
               fmt::format("measured on {}, the plan is for {}", printable(theirs), printable(ours)),
               name,
               {},
               {},
               "give measurements of the machine that is planned for"};
}

// GPUs of a log that the machine does not have, where both tell their addresses.
bool foreign_addresses(const std::vector<std::string>& bdfs, const model::Topology& topology) {
  const auto known = [&](const std::string& bdf) {
    return std::ranges::any_of(topology.gpus, [&](const model::Gpu& gpu) { return gpu.bdf == bdf; });
  };
  const bool all =
      std::ranges::all_of(topology.gpus, [](const model::Gpu& gpu) { return gpu.bdf.has_value(); });
  return all && !topology.gpus.empty() && !bdfs.empty() && std::ranges::none_of(bdfs, known);
}

Result<bool> take_measurement(Measurements& to, const std::string& name, const std::string& text,
                              const model::Topology& topology) {
  if (parse::looks_like_measurement(text)) {
    auto run = parse::parse_measurement_run(text);
    if (!run) return about(name, run.error());
    for (const auto& [key, value] : run->machine)
      if (const auto error = other_machine(name, value, gpus_text(topology)); key == "gpus" && error)
        return tl::unexpected(*error);
    to.runs.push_back({name, std::move(*run)});
    return true;
  }
  if (!parse::looks_like_log_document(text)) return false;
  auto costs = parse::parse_log_costs(text);
  if (!costs) return about(name, costs.error());
  if (foreign_addresses(costs->bdfs, topology))
    return about(name, Error{Errc::malformed,
                             "measured on GPUs that this machine does not have (PCI addresses)",
                             {},
                             {},
                             {},
                             "give measurements of the machine that is planned for"});
  std::ranges::move(plan::effects_of(costs->costs, name), std::back_inserter(to.effects));
  return true;
}

std::vector<std::string> json_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".json") out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

// What the files of --measured show; of a folder those that are measurements.
Result<std::vector<plan::MeasuredEffect>> measured_effects(const PlanRequest& request,
                                                           const model::Topology& topology) {
  Measurements all;
  for (const auto& given : request.measured) {
    std::error_code error;
    const bool folder = std::filesystem::is_directory(given, error);
    std::size_t taken = 0;
    for (const auto& name : folder ? json_files(given) : std::vector<std::string>{given}) {
      const auto text = read_input(name);
      if (!text) return about(name, text.error());
      const auto one = take_measurement(all, name, *text, topology);
      if (!one) return tl::unexpected(one.error());
      taken += *one ? 1 : 0;
    }
    if (taken == 0)
      return about(given, Error{Errc::malformed,
                                folder ? "no measurement in this folder" : "not a measurement",
                                {},
                                {},
                                {},
                                "bench --json, or log --run --json, writes one"});
  }
  auto out = plan::effects_of(std::span<const plan::NamedRun>(all.runs));
  std::ranges::move(all.effects, std::back_inserter(out));
  return out;
}

std::string nccl_version(const Input& input, const JobTexts& texts, const Globals& globals) {
  if (!globals.nccl_version.empty()) return globals.nccl_version;
  for (const auto& [name, log] : texts.logs)
    if (!log.versions.empty()) return log.versions.front().version;
  return input.machine.nccl.value.value_or("");
}

}  // namespace

void add_job_options(CLI::App& verb, PlanRequest& request) {
  verb.add_option("--job", request.job_file, "what the job is: lines \"key = value\" or JSON (docs/plan.md)")
      ->type_name("FILE");
  verb.add_option("--set", request.sets, "one key of the job, e.g. --set nodes=2 (repeatable)")
      ->type_name("KEY=VALUE");
  verb.add_option("--env-file", request.env_files,
                  "a text that sets the job's variables: env file, script, nccl.conf, YAML (repeatable)")
      ->type_name("FILE");
  verb.add_flag("--any-cpus", request.any_cpus,
                "where the cpuset excludes a GPU's node, take the nearest CPUs that are left");
}

Result<plan::Job> job_of(const PlanRequest& request) {
  plan::Job job;
  if (!request.job_file.empty()) {
    const auto text = read_input(request.job_file);
    if (!text) return about(request.job_file, text.error());
    auto read = plan::parse_job(*text);
    if (!read) return about(request.job_file, read.error());
    job = std::move(*read);
  }
  for (const auto& set : request.sets) {
    const auto mark = set.find('=');
    if (mark == std::string::npos) return fail(Errc::usage, "--set {}: not KEY=VALUE", printable(set));
    const auto name = std::string(trim(set.substr(0, mark)));
    if (auto done = plan::set_job(job, name, trim(std::string_view(set).substr(mark + 1))); !done)
      return about("--set", done.error());
  }
  if (const auto valid = plan::validate_job(job, std::nullopt); !valid)
    return about(request.job_file.empty() ? "--set" : request.job_file, valid.error());
  return job;
}

Result<Planned> plan_for(const PlanRequest& request, const Globals& globals) {
  auto job = job_of(request);
  if (!job) return tl::unexpected(job.error());
  auto input = load_input(request.input, globals);
  if (!input) return tl::unexpected(input.error());
  return plan_input(request, std::move(*input), std::move(*job), MachineRules::judge, globals);
}

Result<Planned> plan_input(const PlanRequest& request, Input input, plan::Job job, MachineRules rules,
                           const Globals& globals) {
  auto texts = texts_of(request, input, globals);
  if (!texts) return tl::unexpected(texts.error());
  const auto paths = model::paths_of(input.machine.topology);
  checks::Evidence evidence;
  evidence.machine = &input.machine;
  evidence.paths = &paths;
  evidence.raw_text = input.raw_text;
  evidence.nccl_version = nccl_version(input, *texts, globals);
  evidence.multi_node_job = plan::multi_node(job);
  const auto diagnosis = diagnose(input, *texts, evidence, job, rules, globals);
  plan::Situation situation;
  situation.machine = &input.machine;
  situation.paths = &paths;
  situation.diagnosis = &diagnosis;
  situation.settings = settings_of(*texts);
  situation.conf_files = texts->conf_files;
  situation.job = job;
  situation.nccl_version = evidence.nccl_version;
  situation.ucx_version =
      !globals.ucx_version.empty() ? globals.ucx_version : input.machine.ucx.value.value_or("");
  situation.any_cpus = request.any_cpus;
  auto measured = measured_effects(request, input.machine.topology);
  if (!measured) return tl::unexpected(measured.error());
  situation.measured = std::move(*measured);
  auto made = plan::make_plan(situation);
  if (!made) return about(input.name, made.error());
  return Planned{std::move(input), std::move(job), std::move(*made), std::move(situation.settings)};
}

}  // namespace topotune::cli
