#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/version.h"

namespace topotune::lint {

// How NCCL reads a variable's value.
enum class ValueType { integer, text, level, unknown };

// A row of data/nccl-env.tsv, data/ucx-env.tsv or data/topotune-env.tsv.
struct Variable {
  std::string_view name, default_value, meaning, notes;
  ValueType type = ValueType::unknown;
  std::optional<Version> first;  // first release that reads it; nothing: the oldest known
  std::optional<Version> gone;   // first release that no longer does
  bool core = true;              // false: a plugin's or an example's
  bool phantom = false;          // circulates, but no release ever read it
};

const Variable* find_nccl(std::string_view name);
const Variable* find_ucx(std::string_view name);
const Variable* find_topotune(std::string_view name);
std::span<const Variable> nccl_variables();

// A name that circulates in guides though nothing reads it, and what does the work instead.
struct Phantom {
  std::string_view name, instead;
  bool certain = true;  // false: some training scripts read it themselves
};
const Phantom* find_phantom(std::string_view name);

// Removed or renamed: the name that replaced it, "" when nothing did.
struct Renamed {
  std::string_view name, now;
  Version gone;
  bool still_read = false;  // deprecated only
};
const Renamed* find_renamed(std::string_view name);

// Read by a plugin, a framework, a test or a build, not by NCCL: NCCL_UCX_TLS, NCCL_VERSION,
// NCCL_TESTS_DEVICE.
bool is_foreign(std::string_view name);

// The nearest name that NCCL of that version reads, when it is near enough to be meant (2 edits, 3 in long
// names).
std::optional<std::string_view> nearest_nccl(std::string_view name, const std::optional<Version>& version);

// Likewise of topotune's own variables (2 edits).
std::optional<std::string_view> nearest_topotune(std::string_view name);

// Names of variables ("NCCL_...") inside the bytes of an installed libnccl.
std::set<std::string, std::less<>> names_in_library(std::string_view bytes);

// NCCL's integer parameters are read by strtoll with base 0.
struct IntegerReading {
  long long value = 0;  // what NCCL takes
  bool whole = false;   // every character was used
  bool octal = false;   // a leading 0 made it octal
  bool range = false;   // out of range: NCCL takes the default
};
IntegerReading read_integer(std::string_view text);

}  // namespace topotune::lint
