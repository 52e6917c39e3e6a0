#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli.h"
#include "discover/folder.h"
#include "model/machine.h"

namespace topotune::cli {

// One INPUT of the command line, read and understood.
struct Input {
  model::Machine machine;
  std::string raw_text;  // of a file; "" for a live machine or a folder
  model::SourceKind kind = model::SourceKind::live;
  std::string name;  // as given; "stdin" for "-"
  // Found among the texts of a folder (or being the one text): for the checkers of logs and configurations.
  std::vector<discover::NamedText> logs, configs;
  std::vector<std::string> unrecognised;
};

// "live", a file, a folder of files about one machine, or "-" for standard input. A file is a topology or the
// text of usual commands. The kind follows from the content unless --kind names it. Errors carry the name as
// their file; `unrecognised` when the content is nothing known.
Result<Input> load_input(const std::string& name, const Globals& globals);

// What an input says about itself, on standard error: contradictions between its texts, what could not be
// read or is cut off, devices that did not answer. Not with --quiet; the first 20.
void say_diagnostics(const Globals& globals, const Input& input);

// The error, about this file where it names none.
tl::unexpected<Error> about(const std::string& name, Error error);

inline constexpr std::size_t kMaxInput = std::size_t{256} << 20;  // bytes
// The whole of a file or of "-" (standard input). too_large beyond kMaxInput.
Result<std::string> read_input(const std::string& name);

}  // namespace topotune::cli
