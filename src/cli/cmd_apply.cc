#include <memory>

#include "act/apply.h"
#include "base/text.h"
#include "cli/act_output.h"
#include "cli/cli.h"
#include "cli/planning.h"
#include "emit/plan_text.h"
#include "parse/plan_json.h"

namespace topotune::cli {

namespace {

struct ApplyVerb {
  PlanRequest request;
  std::string plan_file, root;
  bool yes = false;
  act::ApplyOptions act;
  std::vector<std::string> only, skip;
};

Result<model::Plan> read_plan(const std::string& name) {
  const auto text = read_input(name);
  if (!text) return about(name, text.error());
  auto plan = parse::parse_plan_json(*text);
  if (!plan) return about(name, plan.error());
  if (plan->source.kind != model::SourceKind::live)
    return about(name, Error{Errc::unsupported,
                             fmt::format("a plan for {} ({}), not for this machine",
                                         printable(plan->source.name), name_of(plan->source.kind)),
                             {},
                             {},
                             {},
                             "make it here: topotune plan --json"});
  return plan;
}

Result<model::Plan> plan_of(const ApplyVerb& options, const Globals& globals) {
  if (!options.plan_file.empty() && options.plan_file != "live") return read_plan(options.plan_file);
  auto below = globals;
  below.sysroot = options.root;
  auto planned = plan_for(options.request, below);
  if (!planned) return tl::unexpected(planned.error());
  return std::move(planned->plan);
}

Result<bool> choose(const ApplyVerb& options, model::Plan& plan) {
  const auto named = [](const std::vector<std::string>& names, const std::string& id) {
    return std::ranges::find(names, id) != names.end();
  };
  for (const auto* names : {&options.only, &options.skip})
    for (const auto& name : *names)
      if (std::ranges::find(plan.actions, name, &model::Action::id) == plan.actions.end())
        return fail(Errc::usage, "{}: no such action in the plan", printable(name));
  std::erase_if(plan.actions, [&](const model::Action& action) {
    return (!options.only.empty() && !named(options.only, action.id)) || named(options.skip, action.id);
  });
  return true;
}

int apply(const ApplyVerb& options, const Globals& globals) {
  const auto root = acting_root(options.root, globals);
  if (!root) return report(root.error());
  auto plan = plan_of(options, globals);
  if (!plan) return report(plan.error());
  if (const auto chosen = choose(options, *plan); !chosen) return report(chosen.error());
  if (!globals.json && !globals.quiet)
    if (const int status =
            write_result(globals, emit::plan_text(*plan, {use_color(globals), globals.verbose}));
        status != kOk)
      return status;
  if (!options.yes) {
    if (!globals.quiet) fmt::print(stderr, "topotune: nothing was changed; --yes does it\n");
    return kOk;
  }
  act::System system(*root);
  const auto done = act::apply(system, *plan, options.act);
  if (!done) return report(done.error());
  const auto text = globals.json ? accounts_json(*done, "topotune.apply/1")
                                 : (globals.quiet ? "" : "\n") + accounts_text(*done);
  if (const int status = write_result(globals, text); status != kOk) return status;
  if (done->complete()) return kOk;
  return report(Error{Errc::io,
                      "stopped at the first failure; what was done before it is in the journal",
                      {},
                      {},
                      {},
                      "topotune undo takes it back"});
}

}  // namespace

void add_apply(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<ApplyVerb>();
  auto* verb = app.add_subcommand(
      "apply", "do a plan's changes on this machine (with --yes), journalled so that undo takes them back");
  verb->add_option("PLAN", options->plan_file,
                   "a file of `topotune plan --json` made here; without one this machine is planned for now");
  add_job_options(*verb, options->request);
  add_root_option(*verb, options->root);
  verb->add_flag("--yes", options->yes, "do it; without it the plan is only printed");
  verb->add_flag("--disruptive", options->act.disruptive, "also changes that interrupt traffic (MTU)");
  verb->add_option("--only", options->only, "only this action (repeatable)")->type_name("ID");
  verb->add_option("--skip", options->skip, "all but this action (repeatable)")->type_name("ID");
  verb->footer(
      "Every precondition is checked before the first change; each change is read back; the first failure "
      "ends it.\n"
      "Exit status: 0 done, 3 not done or not all. The journal is /var/lib/topotune/journal.\n"
      "Examples:\n"
      "  topotune apply                         what would be done\n"
      "  topotune apply --yes --only numa-balancing-off\n"
      "  topotune plan --json -o plan.json; topotune apply plan.json --yes");
  verb->callback([options, &globals, &status] { status = apply(*options, globals); });
}

}  // namespace topotune::cli
