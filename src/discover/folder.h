#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/machine.h"

namespace topotune::discover {

struct NamedText {
  std::string name;  // shown as the source of facts: "ibstat.txt"
  std::string text;
};

// A folder of texts about one machine, understood.
struct FolderInput {
  model::Machine machine;
  // Kept for other checkers, as given: NCCL, RCCL and UCX logs; env, conf and script files.
  std::vector<NamedText> logs, configs;
  std::vector<std::string> unrecognised;  // names
};

// Recognises every text by its content (a file may hold the output of several commands) and puts all facts
// into one machine, each with its source ("ibstat.txt:12"). Where sources disagree the first by the order of
// the table of kinds wins and a diagnostic says so. Texts of no known kind are named in a diagnostic. GPUs
// are joined by PCI address, else UUID, else index. Errors: `unrecognised` when not one text was of any use;
// too_large beyond sane limits.
Result<FolderInput> read_texts(std::span<const NamedText> texts);

// The machine alone.
Result<model::Machine> machine_from_texts(std::span<const NamedText> texts);

// True when a single text is any command's output that read_texts() knows (not a log or configuration).
bool is_command_text(std::string_view text);

// "nvidia-smi -q, ibstat, lspci, ...": for messages.
std::string known_commands();

}  // namespace topotune::discover
