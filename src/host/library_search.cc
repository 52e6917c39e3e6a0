#include "host/library_search.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/text.h"
#include "host/fd.h"
#include "host/files.h"

namespace topotune::host {
namespace {

namespace fs = std::filesystem;

struct Known {
  std::string_view kind, prefix;
};
// The first prefix that fits counts.
constexpr std::array kKnown{
    Known{"nccl", "libnccl.so"}, Known{"nccl_plugin", "libnccl-"}, Known{"nccl_plugin", "librccl-"},
    Known{"rccl", "librccl.so"}, Known{"cudart", "libcudart.so"},  Known{"ucp", "libucp.so"},
    Known{"cuda", "libcuda.so"}, Known{"nvml", "libnvidia-ml.so"}, Known{"ibverbs", "libibverbs.so"}};

const Known* known(std::string_view name) {
  const auto found =
      std::ranges::find_if(kKnown, [&](const Known& entry) { return name.starts_with(entry.prefix); });
  if (found == kKnown.end() || name.find(".so") == std::string_view::npos) return nullptr;
  return &*found;
}

std::vector<std::string> glob_conf(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    if (entry.path().extension() == ".conf") out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

// Lines of an ld.so.conf: folders, and "include PATTERN", of which only "FOLDER/*.conf" is in use.
void read_conf(const std::string& sysroot, const std::string& path, int depth,
               std::vector<std::string>& out) {
  const auto text = read_file(path, path);
  if (!text || depth > 3) return;
  for (auto line : lines(*text)) {
    line = trim(line.substr(0, line.find('#')));
    if (line.starts_with('/')) out.push_back(sysroot + std::string(line));
    if (!line.starts_with("include")) continue;
    const auto pattern = std::string(trim(line.substr(7)));
    const auto folder =
        sysroot + (pattern.starts_with('/') ? "" : "/etc/") + fs::path(pattern).parent_path().string();
    for (const auto& file : glob_conf(folder)) read_conf(sysroot, file, depth + 1, out);
  }
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= 32 && is_digit(text.front()) && is_digit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_digit(c) || c == '.'; });
}

std::optional<std::string> read_at(const Fd& fd, std::uint64_t at, std::size_t size) {
  std::string out(size, '\0');
  const auto read = ::pread(fd.get(), out.data(), size, static_cast<off_t>(at));
  if (read != static_cast<ssize_t>(size)) return std::nullopt;
  return out;
}

template <class T>
T as(const std::string& bytes, std::size_t at) {
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

struct Range {
  std::uint64_t offset = 0, size = 0;
};

// Read-only data of a 64-bit ELF file that holds no code: ".rodata" (texts of programs). Nothing for other
// files.
std::optional<Range> read_only_data(const Fd& fd) {
  const auto header = read_at(fd, 0, sizeof(Elf64_Ehdr));
  if (!header || header->substr(0, 4) != ELFMAG || (*header)[EI_CLASS] != ELFCLASS64) return std::nullopt;
  const auto elf = as<Elf64_Ehdr>(*header, 0);
  if (elf.e_shentsize != sizeof(Elf64_Shdr) || elf.e_shstrndx >= elf.e_shnum) return std::nullopt;
  const auto table = read_at(fd, elf.e_shoff, std::size_t{elf.e_shnum} * sizeof(Elf64_Shdr));
  if (!table) return std::nullopt;
  const auto section = [&](std::size_t i) { return as<Elf64_Shdr>(*table, i * sizeof(Elf64_Shdr)); };
  const auto names_at = section(elf.e_shstrndx);
  if (names_at.sh_size > 1 << 20) return std::nullopt;
  const auto names = read_at(fd, names_at.sh_offset, names_at.sh_size);
  for (std::size_t i = 0; names && i < elf.e_shnum; ++i) {
    const auto entry = section(i);
    if (entry.sh_name < names->size() && names->c_str() + entry.sh_name == std::string_view(".rodata"))
      return Range{entry.sh_offset, entry.sh_size};
  }
  return std::nullopt;
}

// "2.28.9+cuda13.0" up to the first character that belongs to neither.
NcclVersion split_version(std::string_view text) {
  const auto end = text.find_first_not_of("0123456789.");
  NcclVersion out{std::string(text.substr(0, end)), {}};
  if (!is_version(out.nccl)) return {};
  if (end == std::string_view::npos || !text.substr(end).starts_with("+cuda")) return out;
  const auto cuda = text.substr(end + 5);
  out.cuda = cuda.substr(0, cuda.find_first_not_of("0123456789."));
  if (!is_version(out.cuda)) out.cuda.clear();
  return out;
}

NcclVersion scan(const Fd& fd, Range range) {
  constexpr std::string_view kMark = "NCCL version ";
  constexpr std::size_t kChunk = 1 << 20, kTail = 64;
  for (std::uint64_t at = 0; at < range.size; at += kChunk) {
    const auto size = std::min<std::uint64_t>(kChunk + kTail, range.size - at);
    const auto chunk = read_at(fd, range.offset + at, size);
    if (!chunk) return {};
    for (auto found = chunk->find(kMark); found != std::string::npos; found = chunk->find(kMark, found + 1)) {
      const auto version = split_version(std::string_view(*chunk).substr(found + kMark.size(), 32));
      if (!version.nccl.empty()) return version;
    }
  }
  return {};
}

void learn_version(FoundLibrary& library) {
  if (library.kind == "nccl" || library.kind == "rccl") {
    const auto found = nccl_version_in_file(library.file);
    library.cuda = found.cuda;
    library.version = found.nccl;
    if (!library.version.empty()) library.from = "version text in the file";
  }
  if (!library.version.empty() || library.kind == "ucp") return;  // libucp.so.0.0.0: the interface, not the release
  library.version = version_in_name(fs::path(library.file).filename());
  if (!library.version.empty()) library.from = "file name";
}

}  // namespace

std::vector<std::string> library_folders(const std::string& sysroot, const std::string& library_path) {
  std::vector<std::string> out;
  for (const auto folder : split(library_path, ':'))
    if (folder.starts_with('/')) out.push_back(sysroot + std::string(folder));
  read_conf(sysroot, sysroot + "/etc/ld.so.conf", 0, out);
  for (const auto* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"})
    out.push_back(sysroot + folder);
  return out;
}

std::vector<FoundLibrary> find_libraries(const std::vector<std::string>& folders) {
  constexpr std::size_t kMaxLibraries = 256;
  std::vector<FoundLibrary> out;
  std::set<std::string> seen;
  for (const auto& folder : folders) {
    std::error_code failed;
    if (!seen.insert(fs::weakly_canonical(folder, failed).string() + "/").second) continue;
    const auto names = list_folder(folder, folder);
    if (!names) continue;
    for (const auto& name : *names) {
      const auto* const entry = known(name);
      if (entry == nullptr || out.size() >= kMaxLibraries) continue;
      const auto path = folder + "/" + name;
      const auto file = fs::canonical(path, failed).string();
      if (failed || !seen.insert(file).second) continue;
      out.push_back({std::string(entry->kind), path, file, {}, {}, {}});
      learn_version(out.back());
    }
  }
  return out;
}

std::string version_in_name(const std::string& name) {
  const auto at = name.find(".so.");
  if (at == std::string::npos) return {};
  auto version = name.substr(at + 4);
  return is_version(version) ? version : std::string();
}

NcclVersion nccl_version_in_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.good() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const auto range = read_only_data(fd);
  if (!range || range->offset > static_cast<std::uint64_t>(info.st_size)) return {};
  constexpr std::uint64_t kMaxScan = 64 << 20;
  return scan(fd, {range->offset, std::min(range->size, kMaxScan)});
}

}  // namespace topotune::host
