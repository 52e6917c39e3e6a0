#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "host/library_search.h"
#include "host/probe_list.h"

namespace topotune::host {

static nlohmann::ordered_json text_or_null(const std::string& text) {
  if (text.empty()) return nullptr;
  return printable(text);
}

Result<std::string> probe_libraries(const ProbeQuestion& question) {
  const char* const path = question.sysroot.empty() ? std::getenv("LD_LIBRARY_PATH") : nullptr;
  const auto folders = library_folders(question.sysroot, path == nullptr ? "" : path);
  nlohmann::ordered_json out{{"libraries", nlohmann::ordered_json::array()}};
  for (const auto& library : find_libraries(folders))
    out["libraries"].push_back({{"kind", library.kind},
                                {"path", printable(library.path.substr(question.sysroot.size()))},
                                {"version", text_or_null(library.version)},
                                {"cuda", text_or_null(library.cuda)},
                                {"from", text_or_null(library.from)}});
  return out.dump();
}

}  // namespace topotune::host
