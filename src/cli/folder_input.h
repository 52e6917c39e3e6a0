#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/input.h"
#include "discover/folder.h"

namespace topotune::cli {

inline constexpr std::size_t kMaxFolderFiles = 1000;
inline constexpr std::size_t kMaxFolderFile = std::size_t{64} << 20;    // bytes
inline constexpr std::size_t kMaxFolderBytes = std::size_t{512} << 20;  // of all files together

// The texts of a folder: its files and those one level below ("nodes/ibstat.txt"), in order of their names.
// What is no text, too large or beyond the limits is left out and named in `skipped`.
struct FolderTexts {
  std::vector<discover::NamedText> texts;
  std::vector<std::string> skipped;  // "core.bin: binary"
};
Result<FolderTexts> read_folder(const std::string& path);

// Texts of commands as one machine; `name` is the input's name.
Result<Input> input_of_texts(const std::string& name, const FolderTexts& folder);

// A topology text that also holds other commands' output: adds what those tell of the machine. The topology
// keeps its paths, its kind and its warnings.
void add_other_commands(Input& input);

bool is_folder(const std::string& path);

}  // namespace topotune::cli
