#include "cli/scratch_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace topotune::cli {

namespace fs = std::filesystem;

ScratchFolder::ScratchFolder() {
  std::error_code none;
  auto name = (fs::temp_directory_path(none) / "topotune-XXXXXX").string();
  if (!none && ::mkdtemp(name.data()) != nullptr) path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<void> ScratchFolder::made() const {
  if (!path_.empty()) return {};
  return tl::unexpected(
      Error{Errc::io, "no temporary folder can be made", {}, {}, {}, "set TMPDIR to a writable folder"});
}

std::vector<std::string> ScratchFolder::files() const {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored))
    if (entry.is_regular_file(ignored)) found.push_back(entry.path().string());
  std::ranges::sort(found);
  return found;
}

}  // namespace topotune::cli
