#include "cli/folder_input.h"

#include <algorithm>
#include <filesystem>

namespace topotune::cli {

namespace fs = std::filesystem;

namespace {

// A NUL early on, unless the text is UTF-16 of ASCII (as PowerShell writes it).
bool is_binary(std::string_view text) {
  const auto head = text.substr(0, 4096);
  if (head.starts_with("\xff\xfe")) return false;
  return head.find('\0') != std::string_view::npos;
}

// Regular files in a folder, sorted; folders too where `folders` is given.
void list(const fs::path& folder, std::vector<fs::path>& files, std::vector<fs::path>* folders) {
  std::error_code failed;
  for (fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, failed), end;
       !failed && at != end && files.size() <= 4 * kMaxFolderFiles; at.increment(failed)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) {
      files.push_back(at->path());
    } else if (folders != nullptr && at->is_directory(ignored) && !at->is_symlink(ignored) &&
               !at->path().filename().string().starts_with(".")) {
      folders->push_back(at->path());
    }
  }
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files, folders;
  list(folder, files, &folders);
  for (const auto& one : folders) list(one, files, nullptr);
  std::ranges::sort(files);
  return files;
}

// Why a file is not taken, or "".
std::string take(const fs::path& file, const std::string& name, std::size_t& bytes, FolderTexts& out) {
  if (out.texts.size() >= kMaxFolderFiles) return fmt::format("more than {} files", kMaxFolderFiles);
  std::error_code failed;
  const auto size = fs::file_size(file, failed);
  if (failed) return failed.message();
  if (size > kMaxFolderFile) return fmt::format("larger than {} MiB", kMaxFolderFile >> 20);
  if (bytes + size > kMaxFolderBytes) return fmt::format("more than {} MiB in all", kMaxFolderBytes >> 20);
  auto text = read_input(file.string());
  if (!text) return text.error().text;
  if (is_binary(*text)) return "binary";
  bytes += text->size();
  out.texts.push_back({name, std::move(*text)});
  return {};
}

void add_skipped(model::Machine& machine, const std::vector<std::string>& skipped) {
  constexpr std::size_t kMaxNamed = 100;
  for (std::size_t i = 0; i < skipped.size() && i < kMaxNamed; ++i)
    machine.diagnostics.push_back({"skipped", "not read: " + skipped[i], {}});
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<FolderTexts> read_folder(const std::string& path) {
  std::error_code failed;
  const fs::directory_iterator readable(path, failed);
  if (failed) return fail(Errc::denied, "cannot read the folder: {}", failed.message());
  FolderTexts out;
  std::size_t bytes = 0;
  for (const auto& file : files_of(path)) {
    const auto name = file.lexically_relative(path).generic_string();
    const auto why = take(file, name, bytes, out);
    if (!why.empty()) out.skipped.push_back(fmt::format("{}: {}", name, why));
  }
  if (out.texts.empty()) return fail(Errc::unrecognised, "the folder has no text file");
  return out;
}

Result<Input> input_of_texts(const std::string& name, const FolderTexts& folder) {
  auto found = discover::read_texts(folder.texts);
  if (!found) return tl::unexpected(found.error());
  Input input;
  input.machine = std::move(found->machine);
  add_skipped(input.machine, folder.skipped);
  input.machine.topology.source.name = name;
  input.kind = input.machine.topology.source.kind;
  input.logs = std::move(found->logs);
  input.configs = std::move(found->configs);
  input.unrecognised = std::move(found->unrecognised);
  input.name = name;
  return input;
}

void add_other_commands(Input& input) {
  const discover::NamedText text{input.name, input.raw_text};
  auto found = discover::read_texts(std::span(&text, 1));
  if (!found || found->machine.inputs.size() < 2) {
    if (found) input.logs = std::move(found->logs);
    return;
  }
  const auto source = input.machine.topology.source;
  auto warnings = std::move(input.machine.topology.warnings);
  input.machine = std::move(found->machine);
  input.machine.topology.source = source;
  input.machine.topology.warnings = std::move(warnings);
  input.logs = std::move(found->logs);
}

}  // namespace topotune::cli
