#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "act/verify.h"
#include "base/text.h"
#include "checks/log_rules.h"
#include "checks/log_tuner.h"
#include "cli/act_output.h"
#include "cli/cli.h"
#include "cli/planning.h"
#include "cli/tune_table.h"
#include "host/stream.h"
#include "parse/nccl_log.h"
#include "parse/plan_json.h"

namespace topotune::cli {

namespace {

using act::Check;
using act::Proof;

struct VerifyOptions {
  PlanRequest request;
  std::string plan_file, table, root;
  std::vector<std::string> logs;  // of one job
  std::vector<std::string> pids;  // "4711" or "4711=GPU3"
};

Result<model::Plan> plan_of(const VerifyOptions& options, const Globals& globals) {
  if (options.plan_file.empty() || options.plan_file == "live") {
    auto below = globals;
    if (!options.root.empty()) below.sysroot = options.root;
    auto planned = plan_for(options.request, below);
    if (!planned) return tl::unexpected(planned.error());
    return std::move(planned->plan);
  }
  const auto text = read_input(options.plan_file);
  if (!text) return about(options.plan_file, text.error());
  auto plan = parse::parse_plan_json(*text);
  if (!plan) return about(options.plan_file, plan.error());
  return plan;
}

// ---- the log of the job

bool has_nvlink_or_p2p(const std::string& transport) {
  return transport.starts_with("P2P") || transport.starts_with("NVLS");
}

// Between GPUs of one host P2P is meant, between hosts a network with GPUDirect where it is RDMA.
Check check_edge(const checks::LogView& log, const model::LogEdge& edge) {
  Check out{fmt::format("edge {} -> {}", edge.src, edge.dst), Proof::unknown, "", edge.transport};
  const auto one_host = log.same_host(edge);
  if (!one_host) {
    out.expected = "which hosts it joins is not in the log";
    return out;
  }
  if (*one_host) {
    out.expected = "P2P";
    out.proof = has_nvlink_or_p2p(edge.transport) ? Proof::holds : Proof::fails;
    return out;
  }
  out.expected = "NET over RDMA with GPUDirect";
  const bool sockets = edge.transport.starts_with("NET/Socket");
  out.observed += edge.gdr ? (*edge.gdr ? ", GPUDirect" : ", staged through the host") : "";
  if (sockets || edge.gdr) out.proof = !sockets && edge.gdr.value_or(false) ? Proof::holds : Proof::fails;
  return out;
}

void check_log_variables(const model::NcclLog& log, const model::Plan& plan, std::vector<Check>& out) {
  for (const auto& action : plan.actions) {
    if (action.kind != model::ActionKind::env || !action.target.starts_with("NCCL_")) continue;
    const auto at = std::ranges::find(log.env, action.target, &model::LogSetting::name);
    Check check{"log " + action.target, Proof::unknown, action.value.value_or("not set"),
                at == log.env.end() ? "not in the log" : printable(at->value)};
    // A variable that NCCL never read is not printed: its absence proves only that it did no harm.
    if (at != log.env.end())
      check.proof = action.value == at->value ? Proof::holds : Proof::fails;
    else if (!action.value)
      check.proof = Proof::holds;
    out.push_back(std::move(check));
  }
}

// What was looked at together, and how much of it has to be known: else the answer is "unknown".
enum class Needs { nothing, some, all };
struct Part {
  std::vector<Check> checks;
  Needs needs = Needs::some;
};

// One line for all communicators that use the table, with those that had no use for it; one for each fault.
Part check_table(const model::NcclLog& log, const std::optional<TuningTable>& table) {
  using State = checks::TableUse::State;
  Part part{{}, Needs::all};
  if (!table && !checks::wants_table(log)) return part;
  const auto expected =
      table ? fmt::format("table {} hash {} in use by all its ranks", table->path, table->hash)
            : "table read and in use by all ranks";
  std::string rest;
  const auto uses = checks::table_uses(log, table ? table->hash : "");
  const auto any = [&](State state) {
    return std::ranges::find(uses, state, &checks::TableUse::state) != uses.end();
  };
  const auto add = [&](Proof proof, const std::string& text) {
    part.checks.push_back({"log tuner plugin", proof, expected, text});
  };
  constexpr std::string_view kNothing = "off: the table has nothing for ";
  for (const auto& use : uses) {
    if (use.state == State::unused) add(Proof::fails, use.text);
    if (use.state == State::unknown) add(Proof::unknown, use.text);
    if (use.state == State::idle && any(State::used)) rest += "; not asked yet: " + use.text;
    if (use.state == State::idle && !any(State::used)) add(Proof::unknown, use.text);
    if (use.state == State::other_size)
      rest +=
          "; nothing for " + (use.text.starts_with(kNothing) ? use.text.substr(kNothing.size()) : use.text);
  }
  for (const auto& use : uses)
    if (use.state == State::used) add(Proof::holds, use.text);
  // Sizes of which the table says nothing are no fault; but then it is not in use either.
  if (table && part.checks.empty())
    for (const auto& use : uses)
      if (use.state == State::other_size) return add(Proof::fails, use.text), part;
  if (!part.checks.empty()) part.checks.back().observed += rest;
  return part;
}

Result<model::NcclLog> read_logs(const std::vector<std::string>& names) {
  parse::NcclLogParser parser;
  for (const auto& name : names) {
    parser.begin_file(name);
    const auto read = host::read_stream(name, [&](std::string_view piece) { parser.feed(piece); });
    if (!read) return about(name, read.error());
  }
  return parser.finish();
}

std::vector<Part> check_log(const std::string& name, const model::NcclLog& log, const model::Plan& plan,
                            const std::optional<TuningTable>& table) {
  Part variables{{}, Needs::nothing};
  check_log_variables(log, plan, variables.checks);
  if (table) return {std::move(variables), check_table(log, table)};  // not how good the network is
  Part transports;
  const checks::LogView view(log, nullptr, name);
  for (const auto& edge : log.edges) transports.checks.push_back(check_edge(view, edge));
  if (log.edges.empty())
    transports.checks.push_back(
        {"log", Proof::unknown, "lines that name the transports", "none (NCCL_DEBUG=INFO prints them)"});
  return {std::move(transports), std::move(variables), check_table(log, table)};
}

// ---- processes

Result<std::vector<Check>> check_process(const std::string& said, const model::Plan& plan,
                                         const act::System& system) {
  const auto mark = said.find('=');
  const auto pid = parse_int<int>(said.substr(0, mark));
  const auto gpu = mark == std::string::npos ? std::string() : said.substr(mark + 1);
  const bool known =
      gpu.empty() || std::ranges::find(plan.bindings, gpu, &model::Binding::gpu) != plan.bindings.end();
  if (!pid || *pid <= 0 || !known)
    return fail(Errc::usage, "--pid {}: not PID or PID=GPU of the plan", printable(said));
  return act::verify_process(system, plan, *pid, gpu);
}

// ---- the answer

const char* verdict_of(const std::vector<Part>& parts) {
  const auto any = [](const Part& part, Proof proof) {
    return std::ranges::find(part.checks, proof, &Check::proof) != part.checks.end();
  };
  if (std::ranges::any_of(parts, [&](const Part& p) { return any(p, Proof::fails); })) return "error";
  for (const auto& part : parts) {
    if (part.checks.empty()) continue;
    if (part.needs == Needs::all && any(part, Proof::unknown)) return "unknown";
    if (part.needs == Needs::some && !any(part, Proof::holds)) return "unknown";
  }
  return std::ranges::any_of(parts, [&](const Part& p) { return any(p, Proof::holds); }) ? "ok" : "unknown";
}

std::vector<Check> all_of(const std::vector<Part>& parts) {
  std::vector<Check> out;
  for (const auto& part : parts) out.insert(out.end(), part.checks.begin(), part.checks.end());
  return out;
}

std::string text_of(const std::vector<Check>& checks) {
  std::string out;
  for (const auto& check : checks)
    out += fmt::format(
        "{:<8} {}: {}{}\n", name_of(check.proof), check.subject,
        check.observed.empty() ? "not known" : check.observed,
        check.proof == Proof::holds || check.expected.empty() ? "" : "; expected " + check.expected);
  std::size_t holds = 0;
  for (const auto& check : checks) holds += check.proof == Proof::holds ? 1 : 0;
  return printable(out) + fmt::format("{} of {} hold\n", holds, checks.size());
}

std::string json_of(const std::vector<Check>& checks, const char* verdict) {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.verify/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["verdict"] = verdict;
  out["checks"] = nlohmann::ordered_json::array();
  for (const auto& check : checks)
    out["checks"].push_back({{"subject", printable(check.subject)},
                             {"proof", name_of(check.proof)},
                             {"expected", printable(check.expected)},
                             {"observed", printable(check.observed)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

constexpr const char* kNothingToVerify =
    "nothing could be verified: no setting of this machine is in the plan; --pid and --log look at the job\n";

int verify(const VerifyOptions& options, const Globals& globals) {
  if (!options.table.empty() && options.logs.empty())
    return report(Error{Errc::usage, "verify --tuned: which job's log? --log FILE", {}, {}, {}, {}});
  std::optional<TuningTable> table;
  if (!options.table.empty()) {
    auto loaded = load_tuning_table(options.table);
    if (!loaded) return report(loaded.error());
    table = std::move(*loaded);
  }
  // Who asks for a table alone does not ask for this machine's plan.
  const auto plan = table && options.plan_file.empty() ? model::Plan{} : plan_of(options, globals);
  if (!plan) return report(plan.error());
  const act::System system(options.root.empty() ? globals.sysroot : options.root);  // reading only
  const bool job = !options.pids.empty() || !options.logs.empty();
  std::vector<Part> parts{{act::verify_actions(system, *plan), job ? Needs::nothing : Needs::some}};
  for (const auto& pid : options.pids) {
    auto checks = check_process(pid, *plan, system);
    if (!checks) return report(checks.error());
    parts.push_back({std::move(*checks)});
  }
  if (!options.logs.empty()) {
    const auto log = read_logs(options.logs);
    if (!log) return report(log.error());
    for (auto& part : check_log(options.logs.front(), *log, *plan, table)) parts.push_back(std::move(part));
  }
  const auto checks = all_of(parts);
  const std::string_view verdict = verdict_of(parts);
  const int written = write_result(globals, globals.json     ? json_of(checks, verdict.data())
                                            : checks.empty() ? kNothingToVerify
                                                             : text_of(checks));
  if (written != kOk) return written;
  return verdict == "error" ? kError : verdict == "ok" ? kOk : kUnknown;
}

}  // namespace

void add_verify(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<VerifyOptions>();
  auto* verb = app.add_subcommand(
      "verify", "prove that a plan holds: the machine, running ranks, the transports in a log");
  verb->add_option("PLAN", options->plan_file,
                   "a file of `topotune plan --json`; without one this machine is planned for now");
  add_job_options(*verb, options->request);
  add_root_option(*verb, options->root);
  verb->add_option("--pid", options->pids, "a running rank, PID or PID=GPU (repeatable)")->type_name("PID");
  verb->add_option("--log", options->logs, "an NCCL log of the job (NCCL_DEBUG=INFO), plain, gzip or zstd")
      ->type_name("FILE");
  verb->add_option("--tuned", options->table,
                   "with --log: whether this tuning table is in use by all its ranks, and nothing else")
      ->type_name("TABLE");
  verb->footer(
      "Exit status: 0 it holds, 2 something does not, 3 of the machine, a process, the transports or the "
      "tuning "
      "table nothing could be told.\n"
      "Examples:\n"
      "  topotune verify plan.json\n"
      "  topotune verify plan.json --pid 4711=GPU0 --pid 4712=GPU1\n"
      "  topotune verify plan.json --log nccl.log\n"
      "  topotune verify --tuned node.table --log job.log");
  verb->callback([options, &globals, &status] { status = verify(*options, globals); });
}

}  // namespace topotune::cli
