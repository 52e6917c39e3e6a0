#include "host/modules.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace topotune::host {

namespace {

std::vector<std::string> folders() {
  std::vector<std::string> out;
  if (const char* chosen = std::getenv("TOPOTUNE_MODULES"); chosen != nullptr && *chosen != '\0')
    return {chosen};
  const auto program = program_file();
  if (program.empty()) return out;
  const auto folder = program.substr(0, program.rfind('/'));
  return {folder, folder + "/../lib/topotune"};
}

}  // namespace

std::string program_file() {
  std::array<char, 4096> path{};
  const auto size = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : "";
}

Result<std::string> module_file(const std::string& file) {
  const auto where = folders();
  for (const auto& folder : where) {
    std::error_code error;
    const auto path = std::filesystem::canonical(folder + "/" + file, error);
    if (!error && ::access(path.c_str(), R_OK) == 0) return path.string();
  }
  auto error = Error{
      Errc::not_found,
      fmt::format("{} is not beside the program{}", file, where.empty() ? "" : " (" + where.front() + ")"),
      {},
      {},
      {},
      "it is built where its library is installed; TOPOTUNE_MODULES names another folder"};
  return tl::unexpected(error);
}

Result<SharedLibrary> open_module(const std::string& file) {
  const auto path = module_file(file);
  if (!path) return tl::unexpected(path.error());
  return SharedLibrary::open(path->c_str());
}

}  // namespace topotune::host
