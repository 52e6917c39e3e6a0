#pragma once

#include <span>

#include "discover/merger.h"

namespace topotune::discover {

// One kind of command output. The order of the table is the order of merging: what names GPUs with their
// index first, then what gives them addresses, then what is joined to them.
struct TextKind {
  std::string_view name;  // as people call it: "nvidia-smi -q"
  bool (*looks_like)(const Piece& piece);
  Merge merge;
};
std::span<const TextKind> text_kinds();

// NCCL, RCCL or UCX debug output, or the output of a program that carries it.
bool is_communication_log(std::string_view text);
// An env, conf, script, YAML or systemd file by its name.
bool is_configuration_name(std::string_view name);
// A line of it gives a value to a variable of NCCL, UCX, MPI or the like.
bool sets_variables(std::string_view text);

}  // namespace topotune::discover
