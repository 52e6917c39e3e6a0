#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "cli/cli.h"

namespace topotune::cli {

int report(const Error& error) {
  fmt::print(stderr, "topotune: {}\n", printable(error.to_string()));
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", printable(error.hint));
  return error.code == Errc::usage ? kUsage : kUnknown;
}

int write_result(const Globals& globals, const std::string& text) {
  std::FILE* out = globals.output.empty() ? stdout : std::fopen(globals.output.c_str(), "wb");
  bool good = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  good = good && std::fflush(out) == 0;
  if (out != nullptr && out != stdout) good = std::fclose(out) == 0 && good;
  if (good) return kOk;
  const std::string name = globals.output.empty() ? "standard output" : globals.output;
  return report(Error{Errc::io, fmt::format("cannot write {}", name), {}, {}, {}, "is the disk full, or the folder missing?"});
}

bool use_color(const Globals& globals) {
  if (globals.color != "auto") return globals.color == "always";
  return std::getenv("NO_COLOR") == nullptr && globals.output.empty() && ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace topotune::cli
