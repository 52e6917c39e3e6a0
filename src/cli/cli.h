#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "model/language.h"

namespace topotune::cli {

// The options that every verb takes; they may stand before or after the verb.
struct Globals {
  bool json = false;
  std::string output;  // -o FILE; "" is stdout
  bool quiet = false;
  bool verbose = false;
  std::string color = "auto";
  std::string lang = "en";  // --lang: language of titles, impact and remedy
  std::string kind;     // --kind: overrides recognition
  std::string sysroot;  // --sysroot: folder that stands for "/" of a machine
  std::string nccl_version, ucx_version, driver_version;
};

// Exit statuses of the contract.
enum Status { kOk = 0, kWarn = 1, kError = 2, kUnknown = 3, kUsage = 64, kInterrupted = 130 };

// One line on stderr, "topotune: FILE:LINE: text", and the hint; returns the status that fits.
int report(const Error& error);
// Writes to --output or stdout. A full disk is an error, not silence.
int write_result(const Globals& globals, const std::string& text);
inline model::Language language_of(const Globals& globals) {
  return model::language_from(globals.lang).value_or(model::Language::en);
}
// Whether to colour what goes to stdout (--color, NO_COLOR, terminal).
bool use_color(const Globals& globals);

// Each src/cli/cmd_<verb>.cc defines `void add_<verb>(CLI::App&, Globals&, int& status)`; CMake makes the table
// (verbs.inc) from the file names.
using AddVerb = void (*)(CLI::App& app, Globals& globals, int& status);

}  // namespace topotune::cli
