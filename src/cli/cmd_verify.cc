#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "act/verify.h"
#include "base/text.h"
#include "checks/log_rules.h"
#include "cli/act_output.h"
#include "cli/cli.h"
#include "cli/planning.h"
#include "parse/nccl_log.h"
#include "parse/plan_json.h"

namespace topotune::cli {

namespace {

using act::Check;
using act::Proof;

struct VerifyOptions {
  PlanRequest request;
  std::string plan_file, log_file, root;
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

// Lines of the tuner plugin: "topotune tuner: table ...", "... in use", "... off: WHY". A job that names the
// plugin and does not print the first one never loaded it.
std::vector<std::string> tuner_lines(std::string_view text) {
  std::vector<std::string> out;
  constexpr std::string_view kMark = "topotune tuner: ";
  for (auto at = text.find(kMark); at != std::string_view::npos && out.size() < 10000;
       at = text.find(kMark, at + 1)) {
    const auto end = std::min(text.find('\n', at), text.size());
    out.emplace_back(text.substr(at + kMark.size(), std::min<std::size_t>(end - at - kMark.size(), 500)));
  }
  return out;
}

void check_tuner(std::string_view text, const model::NcclLog& log, std::vector<Check>& out) {
  const auto named = std::ranges::find(log.env, "NCCL_TUNER_PLUGIN", &model::LogSetting::name);
  const auto lines = tuner_lines(text);
  const bool ours = named != log.env.end() && named->value.find("topotune") != std::string::npos;
  if (lines.empty() && !ours) return;
  Check check{"log tuner plugin", Proof::unknown, "table read and in use", "not in the log"};
  const auto line = [&](std::string_view start) {
    return std::ranges::find_if(lines, [&](const std::string& l) { return l.starts_with(start); });
  };
  // A job also has communicators of sizes that no table was asked for.
  constexpr std::string_view kNothingFor = "off: the table has nothing for ";
  const auto off = std::ranges::find_if(
      lines, [&](const std::string& l) { return l.starts_with("off: ") && !l.starts_with(kNothingFor); });
  const auto other = line(kNothingFor);
  if (off != lines.end()) {
    check.proof = Proof::fails, check.observed = *off;
  } else if (line("in use") != lines.end()) {
    check.proof = Proof::holds;
    check.observed = line("table ") != lines.end() ? *line("table ") + ", in use" : "in use";
    if (other != lines.end()) check.observed += "; nothing for " + other->substr(kNothingFor.size());
  } else if (line("table ") != lines.end()) {
    check.observed = *line("table ") + "; no collective has asked for it yet";
  } else if (other != lines.end()) {
    check.proof = Proof::fails, check.observed = *other;
  } else {
    check.proof = Proof::fails, check.observed = "NCCL did not load " + printable(named->value);
  }
  out.push_back(std::move(check));
}

Result<std::vector<Check>> check_log(const std::string& name, const model::Plan& plan) {
  const auto text = read_input(name);
  if (!text) return about(name, text.error());
  parse::NcclLogParser parser;
  parser.begin_file(name);
  parser.feed(*text);
  const auto log = parser.finish();
  std::vector<Check> out;
  const checks::LogView view(log, nullptr, name);
  for (const auto& edge : log.edges) out.push_back(check_edge(view, edge));
  if (log.edges.empty())
    out.push_back(
        {"log", Proof::unknown, "lines that name the transports", "none (NCCL_DEBUG=INFO prints them)"});
  check_log_variables(log, plan, out);
  check_tuner(*text, log, out);
  return out;
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

const char* verdict_of(const std::vector<Check>& checks) {
  const auto any = [&](Proof proof) {
    return std::ranges::any_of(checks, [&](const Check& c) { return c.proof == proof; });
  };
  if (any(Proof::fails)) return "error";
  return any(Proof::holds) ? "ok" : "unknown";
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

std::string json_of(const std::vector<Check>& checks) {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.verify/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["verdict"] = verdict_of(checks);
  out["checks"] = nlohmann::ordered_json::array();
  for (const auto& check : checks)
    out["checks"].push_back({{"subject", printable(check.subject)},
                             {"proof", name_of(check.proof)},
                             {"expected", printable(check.expected)},
                             {"observed", printable(check.observed)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int verify(const VerifyOptions& options, const Globals& globals) {
  const auto plan = plan_of(options, globals);
  if (!plan) return report(plan.error());
  const act::System system(options.root.empty() ? globals.sysroot : options.root);  // reading only
  auto checks = act::verify_actions(system, *plan);
  const auto add = [&](Result<std::vector<Check>> more) -> std::optional<int> {
    if (!more) return report(more.error());
    checks.insert(checks.end(), more->begin(), more->end());
    return std::nullopt;
  };
  for (const auto& pid : options.pids)
    if (const auto status = add(check_process(pid, *plan, system))) return *status;
  if (!options.log_file.empty())
    if (const auto status = add(check_log(options.log_file, *plan))) return *status;
  if (checks.empty() && !globals.json) {
    const int status = write_result(
        globals,
        "nothing to verify: the plan changes nothing of this machine; --pid and --log look at the job\n");
    return status == kOk ? static_cast<int>(plan->actions.empty() ? kOk : kUnknown) : status;
  }
  const int written = write_result(globals, globals.json ? json_of(checks) : text_of(checks));
  if (written != kOk) return written;
  const std::string_view verdict = verdict_of(checks);
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
  verb->add_option("--log", options->log_file, "an NCCL log of the job (NCCL_DEBUG=INFO)")->type_name("FILE");
  verb->footer(
      "Exit status: 0 all that could be looked at holds, 2 something does not, 3 nothing could be looked "
      "at.\n"
      "Examples:\n"
      "  topotune verify plan.json\n"
      "  topotune verify plan.json --pid 4711=GPU0 --pid 4712=GPU1\n"
      "  topotune verify plan.json --log nccl.log");
  verb->callback([options, &globals, &status] { status = verify(*options, globals); });
}

}  // namespace topotune::cli
