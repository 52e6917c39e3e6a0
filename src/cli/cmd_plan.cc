#include <memory>

#include "cli/cli.h"
#include "cli/planning.h"
#include "emit/plan_json.h"
#include "emit/plan_text.h"

namespace topotune::cli {

namespace {

struct PlanOptions {
  PlanRequest request;
};

int plan(const PlanOptions& options, const Globals& globals) {
  const auto planned = plan_for(options.request, globals);
  if (!planned) return report(planned.error());
  if (globals.json) return write_result(globals, emit::plan_json(planned->plan));
  return write_result(globals, emit::plan_text(planned->plan, {use_color(globals), globals.verbose}));
}

}  // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<PlanOptions>();
  auto* verb = app.add_subcommand(
      "plan", "settings for a machine and a job: what to change, why, and how to take it back");
  verb->add_option("INPUT", options->request.input, "live (the default), a file, a folder, or -");
  add_job_options(*verb, options->request);
  verb->footer(
      "A plan changes nothing. Exit status: 0 a plan was made, 3 it could not be made.\n"
      "Examples:\n"
      "  topotune plan                               this machine\n"
      "  topotune plan node7.capture --json          a recorded machine, as topotune.plan/1\n"
      "  topotune plan --set nodes=4 --set dscp=26   for a job on four nodes over RoCE\n"
      "  topotune plan topo.txt --job job.conf --env-file train.env");
  verb->callback([options, &globals, &status] { status = plan(*options, globals); });
}

}  // namespace topotune::cli
