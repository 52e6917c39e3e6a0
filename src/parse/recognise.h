#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

// A kind of text that is a whole topology by itself. `looks_like` is linear and decides by content alone;
// where several say yes, the first row of the table wins.
struct Format {
  model::SourceKind kind;
  bool (*looks_like)(std::string_view text);
  Result<model::Topology> (*parse)(std::string_view text);
};

std::span<const Format> formats();
const Format* recognise(std::string_view text);  // null: none
const Format* format_of(std::string_view kind);  // by the word of `--kind`; null: none

// "nvidia-smi topo -m text, NCCL or RCCL topology XML, ...": for the message about an unknown input.
std::string_view known_formats();

}  // namespace topotune::parse
