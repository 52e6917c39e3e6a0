#include <algorithm>
#include <memory>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/nccl_xml_check.h"
#include "cli/planning.h"
#include "cli/versions_output.h"
#include "emit/nccl_xml.h"
#include "emit/plan_files.h"
#include "emit/plan_json.h"
#include "emit/plan_text.h"
#include "emit/scenario.h"

namespace topotune::cli {

namespace {

struct PlanOptions {
  PlanRequest request;
  std::string form;      // --emit
  std::string nccl_xml;  // --check-nccl-xml FILE
  bool scenario = false, versions = false;
  CLI::Option* given = nullptr;  // INPUT
};

int write_form(const std::string& name, const Planned& planned, const Globals& globals) {
  std::optional<std::string> text;
  if (name == "nccl-xml") {
    text = emit::nccl_topo_xml(planned.input.machine.topology);
    if (text->empty()) text.reset();
  } else {
    text = emit::find_plan_form(name)->render(planned.plan);
  }
  if (text) return write_result(globals, *text);
  return report(Error{Errc::unsupported,
                      fmt::format("--emit {}: the plan holds nothing for it", name),
                      planned.plan.source.name,
                      {},
                      {},
                      ""});
}

// Status 2 where something is violated.
int write_versions(const PlanOptions& options, const Globals& globals) {
  const auto input = load_input(options.request.input, globals);
  if (!input) return report(input.error());
  const auto rows =
      plan::version_matrix(input->machine, globals.nccl_version, globals.ucx_version, globals.driver_version);
  const int written = write_result(globals, globals.json ? versions_json(rows) : versions_text(rows));
  if (written != kOk) return written;
  return std::ranges::any_of(rows, [](const auto& row) { return row.fit == plan::Fit::violated; }) ? kError
                                                                                                   : kOk;
}

std::string forms_text() {
  std::string out = "Forms (--emit):\n";
  for (const auto& form : emit::plan_forms()) out += fmt::format("  {:<16} {}\n", form.name, form.what);
  return out + "  nccl-xml         the topology in the strict form that NCCL reads (NCCL_TOPO_FILE)\n";
}

std::optional<Error> unknown_form(const std::string& name) {
  if (name.empty() || name == "nccl-xml" || emit::find_plan_form(name) != nullptr) return std::nullopt;
  return Error{Errc::usage, fmt::format("--emit {}: no such form", printable(name)),
               {},          {},
               {},          "topotune plan --help lists them"};
}

int plan(const PlanOptions& options, const Globals& globals) {
  if (options.scenario)
    return write_result(globals, globals.json ? emit::scenario_json() : emit::scenario_text());
  if (options.versions) return write_versions(options, globals);
  if (!options.nccl_xml.empty())
    return check_nccl_xml(options.nccl_xml,
                          options.given->count() > 0 ? std::optional(options.request.input) : std::nullopt,
                          globals);
  if (const auto error = unknown_form(options.form)) return report(*error);
  const auto planned = plan_for(options.request, globals);
  if (!planned) return report(planned.error());
  if (!options.form.empty()) return write_form(options.form, *planned, globals);
  if (globals.json) return write_result(globals, emit::plan_json(planned->plan));
  return write_result(globals, emit::plan_text(planned->plan, {use_color(globals), globals.verbose}));
}

}  // namespace

void add_plan(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<PlanOptions>();
  auto* verb = app.add_subcommand(
      "plan", "settings for a machine and a job: what to change, why, and how to take it back");
  options->given =
      verb->add_option("INPUT", options->request.input, "live (the default), a file, a folder, or -");
  add_job_options(*verb, options->request);
  verb->add_option(
          "--measured", options->request.measured,
          "measurements of this machine (bench or log --run, as JSON), or a folder of them: an action "
          "whose benefit they show is labelled with the number (repeatable)")
      ->type_name("FILE");
  verb->add_option("--emit", options->form, "write the plan in the form of another program")
      ->type_name("FORM");
  verb->add_option("--check-nccl-xml", options->nccl_xml,
                   "would NCCL read this topology file, and as what it is meant?")
      ->type_name("FILE");
  verb->add_flag("--versions", options->versions,
                 "print which versions fit together, with sources, and what of it this machine violates");
  verb->add_flag("--scenario", options->scenario,
                 "print the table: which settings for which cards, nodes and models, and why");
  verb->footer(forms_text() +
               "A plan changes nothing. Exit status: 0 a plan was made, 3 it could not be made; 1 and 2 are "
               "verdicts of --check-nccl-xml\n"
               "and --versions.\n"
               "Examples:\n"
               "  topotune plan                               this machine\n"
               "  topotune plan node7.capture --json          a recorded machine, as topotune.plan/1\n"
               "  topotune plan --set nodes=4 --set dscp=26   for a job on four nodes over RoCE\n"
               "  topotune plan topo.txt --job job.conf --env-file train.env\n"
               "  topotune plan --measured log-run.json       what was measured here carries its number\n"
               "  topotune plan --emit rankfile -o ranks\n"
               "  topotune plan --check-nccl-xml topo.xml");
  verb->callback([options, &globals, &status] { status = plan(*options, globals); });
}

}  // namespace topotune::cli
