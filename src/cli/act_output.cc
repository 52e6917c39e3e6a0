#include "cli/act_output.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/folder_input.h"

namespace topotune::cli {

Result<std::string> acting_root(const std::string& root, const Globals& globals) {
  if (!globals.sysroot.empty())
    return tl::unexpected(Error{Errc::unsupported,
                                "--sysroot is a recorded machine: nothing is changed there",
                                {},
                                {},
                                {},
                                "--root DIR acts on a prepared tree"});
  if (!root.empty() && !is_folder(root)) return fail(Errc::not_found, "--root {}: not a folder", root);
  return root;
}

void add_root_option(CLI::App& verb, std::string& root) {
  verb.add_option("--root", root, "act on the tree below DIR instead of the machine (tests, images)")
      ->type_name("DIR");
}

std::string accounts_text(const act::ApplyReport& report) {
  std::string out;
  for (const auto& one : report.accounts)
    out += fmt::format("{:<11} {}: {}{}\n", name_of(one.outcome), one.id, one.target,
                       one.text.empty() ? "" : ": " + one.text);
  return printable(out);
}

std::string accounts_json(const act::ApplyReport& report, const std::string& schema) {
  nlohmann::ordered_json out;
  out["schema"] = schema;
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["complete"] = report.complete();
  out["actions"] = nlohmann::ordered_json::array();
  for (const auto& one : report.accounts)
    out["actions"].push_back({{"id", one.id},
                              {"target", printable(one.target)},
                              {"outcome", name_of(one.outcome)},
                              {"text", printable(one.text)}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::cli
