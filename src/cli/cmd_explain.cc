#include <fstream>
#include <memory>

#include "base/text.h"
#include "checks/language.h"
#include "checks/pages.h"
#include "cli/cli.h"
#include "emit/claim.h"
#include "emit/page.h"
#include "measure/claim.h"

namespace topotune::cli {

namespace {

struct ExplainOptions {
  std::vector<std::string> words;
  std::string markdown;  // folder
  std::string number;    // a claim: "92 GB/s on 100G RoCE"
  bool list = false;
};

Error unknown_name(const std::string& name) {
  const auto near = checks::nearest_names(name);
  const std::string hint =
      near.empty() ? "topotune explain --list" : fmt::format("nearest: {}", fmt::join(near, ", "));
  return Error{
      Errc::usage, fmt::format("explain {}: no such rule, path type, variable, Xid or counter", name),
      {},          {},
      {},          hint};
}

std::string listing() {
  std::string out;
  for (const auto& one : checks::all_names())
    out += fmt::format("{:<40} {:<13} {}\n", one.name, one.kind, one.title);
  return out;
}

int write_markdown(const std::string& folder) {
  for (const auto family : checks::families()) {
    const auto path = fmt::format("{}/{}.md", folder, to_lower(family));
    std::ofstream file(path, std::ios::binary);
    file << checks::family_markdown(family);
    file.close();
    if (!file) return report(Error{Errc::io, fmt::format("cannot write {}", path), {}, {}, {}, {}});
  }
  return kOk;
}

// Whether somebody's number can be: 1 when it cannot, 3 when it was not understood.
int judge_number(const std::string& text, const Globals& globals) {
  const auto claim = measure::judge_claim(text);
  if (!claim) {
    auto error = claim.error();
    error.hint = "such as: topotune explain --number \"92 GB/s on 100G RoCE\"";
    return report(error);
  }
  const int status = write_result(globals, globals.json ? emit::claim_json(*claim) : emit::claim_text(*claim));
  if (status != kOk) return status;
  return model::is_wrong(claim->verdict) ? kWarn : kOk;
}

int explain(const ExplainOptions& options, const Globals& globals) {
  if (!options.number.empty()) return judge_number(options.number, globals);
  if (!options.markdown.empty()) return write_markdown(options.markdown);
  if (options.list) return write_result(globals, listing());
  const auto name = fmt::format("{}", fmt::join(options.words, " "));
  if (name.empty())
    return report(Error{Errc::usage, "explain: which name?", {}, {}, {}, "topotune explain --list"});
  auto page = checks::page_of(name);
  if (!page) return report(unknown_name(name));
  checks::translate(*page, language_of(globals));
  return write_result(globals,
                      globals.json ? emit::page_json(*page) : emit::page_text(*page, use_color(globals)));
}

}  // namespace

void add_explain(CLI::App& app, Globals& globals, int& status) {
  const auto options = std::make_shared<ExplainOptions>();
  auto* verb = app.add_subcommand("explain", "what a rule, path type, variable, Xid or port counter is");
  verb->add_option("NAME", options->words,
                   "a rule id, PIX, NCCL_P2P_LEVEL, UCX_TLS, Xid 79, symbol_error, ...");
  verb->add_option("--number", options->number, "whether a number can be: \"92 GB/s on 100G RoCE\"")->type_name("CLAIM");
  verb->add_flag("--list", options->list, "print all names and end");
  verb->add_option("--markdown", options->markdown, "write docs/rules")->type_name("DIR")->group("");
  verb->footer(
      "Examples:\n"
      "  topotune explain ACS01\n"
      "  topotune explain PXB\n"
      "  topotune explain NCCL_P2P_DISABLE\n"
      "  topotune explain Xid 79\n"
      "  topotune explain --number \"480 GB/s busbw on 8 x H100 NVLink\"");
  verb->callback([options, &globals, &status] { status = explain(*options, globals); });
}

}  // namespace topotune::cli
