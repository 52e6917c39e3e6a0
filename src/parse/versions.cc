#include "parse/versions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::size_t kMaxLine = 8192;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// The first line for which `value_of` finds something.
template <class Find>
std::optional<LineValue> first_line(std::string_view text, Find value_of) {
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.empty() || line.size() > kMaxLine) continue;
    if (auto value = value_of(line)) return LineValue{std::move(*value), std::string(line), reader.number()};
  }
  return std::nullopt;
}

std::optional<std::string> version_word(std::string_view text) {
  for (auto word : words(text)) {
    if (is_digit(word.front()) && has(word, ".")) return std::string(word);
  }
  return std::nullopt;
}

std::optional<std::string> nvrm_version(std::string_view line) {
  const auto rest = after(line, "NVRM version:");
  return rest ? version_word(*rest) : std::nullopt;
}

std::optional<std::string> nvcc_release(std::string_view line) {
  const auto rest = after(line, "Cuda compilation tools, release ");
  if (!rest) return std::nullopt;
  const auto version = rest->substr(0, rest->find(','));
  return version.size() < 12 ? std::optional(std::string(trim(version))) : std::nullopt;
}

// Words that kernel command lines have and prose has not. Two of them, or a boot image, make one.
std::optional<std::string> command_line(std::string_view line) {
  if (line.starts_with("BOOT_IMAGE=")) return std::string(line);
  constexpr std::array<std::string_view, 14> kWords = {
      "root=", "console=",     "intel_iommu=", "amd_iommu=",  "iommu=",       "quiet", "ro",
      "rw",    "crashkernel=", "rd.",          "hugepagesz=", "mitigations=", "pci=",  "numa_balancing="};
  const auto all = words(line);
  if (all.size() < 2) return std::nullopt;
  const auto hits = std::ranges::count_if(all, [&](std::string_view word) {
    return std::ranges::any_of(kWords, [&](std::string_view k) {
      return k.ends_with('=') || k.ends_with('.') ? word.starts_with(k) : word == k;
    });
  });
  const bool assigns = has(all[0], "=") || all[0] == "ro" || all[0] == "quiet";
  return hits >= 2 && assigns && !has(line, "\"") ? std::optional(std::string(line)) : std::nullopt;
}

bool is_cmdline_command(std::string_view command) { return has(command, "/proc/cmdline"); }

// "Linux node7 5.15.0-101-generic #111-Ubuntu SMP … x86_64 GNU/Linux"
std::optional<std::string> uname_release(std::string_view line) {
  if (!line.starts_with("Linux ")) return std::nullopt;
  const auto all = words(line);
  if (all.size() < 5 || !is_digit(all[2].front()) || !has(all[2], ".")) return std::nullopt;
  if (!all[3].starts_with("#")) return std::nullopt;
  return std::string(all[2]);
}

bool is_uname_r(std::string_view command) {
  const auto all = words(command);
  return all.size() == 2 && all[0] == "uname" && all[1] == "-r";
}

std::optional<std::string> release_alone(std::string_view line) {
  return is_digit(line.front()) && has(line, ".") && !has(line, " ") ? std::optional(std::string(line))
                                                                     : std::nullopt;
}

std::optional<std::string> pretty_name(std::string_view line) {
  if (!line.starts_with("PRETTY_NAME=")) return std::nullopt;
  auto value = line.substr(12);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
    value = value.substr(1, value.size() - 2);
  return std::string(value);
}

std::optional<std::string> ofed_version(std::string_view line) {
  for (const std::string_view prefix : {"MLNX_OFED_LINUX-", "OFED-internal-", "DOCA-OFED-", "MLNX_OFED-"}) {
    if (!line.starts_with(prefix)) continue;
    auto value = line.substr(prefix.size());
    if (value.ends_with(":")) value.remove_suffix(1);
    if (!value.empty() && value.size() < 60 && is_digit(value.front())) return std::string(value);
  }
  return std::nullopt;
}

// "64M", "256G", "65536" (1 KiB blocks) -> bytes
std::optional<std::uint64_t> df_bytes(std::string_view word) {
  const auto value = leading_number(word);
  if (!value || *value < 0) return std::nullopt;
  const std::string_view units = "KMGTP";
  const char last = word.empty() ? '\0' : word.back();
  const auto at = units.find(last);
  const double factor = at == std::string_view::npos ? 1024.0 : std::pow(1024.0, static_cast<double>(at + 1));
  const double bytes = *value * factor;
  return bytes < 1e18 ? std::optional(static_cast<std::uint64_t>(bytes)) : std::nullopt;
}

std::optional<ShmSize> shm_of(std::string_view line) {
  const auto all = words(line);
  if (all.size() < 6 || all.back() != "/dev/shm") return std::nullopt;
  const auto n = all.size();
  const auto size = df_bytes(all[n - 5]);
  if (!size || !all[n - 2].ends_with("%")) return std::nullopt;
  return ShmSize{*size, df_bytes(all[n - 3]), std::string(line), 0};
}

template <class T>
Result<T> or_not_a(std::optional<T> value, std::string_view kind) {
  if (!value) return not_a(kind);
  return std::move(*value);
}

}  // namespace

bool looks_like_driver_version_file(std::string_view text) { return has(text, "NVRM version:"); }

Result<DriverVersionFile> parse_driver_version_file(std::string_view text) {
  auto driver = first_line(text, nvrm_version);
  if (!driver) return not_a("/proc/driver/nvidia/version");
  const bool open = has(driver->text, "Open Kernel Module");
  return DriverVersionFile{std::move(*driver), open};
}

bool looks_like_nvcc(std::string_view text) { return has(text, "Cuda compilation tools, release "); }

Result<LineValue> parse_nvcc(std::string_view text) {
  return or_not_a(first_line(text, nvcc_release), "nvcc --version");
}

bool looks_like_kernel_command_line(std::string_view text, std::string_view command) {
  if (is_cmdline_command(command)) return true;
  if (!has(text, "=") || (!has(text, "BOOT_IMAGE") && !has(text, "root=") && !has(text, "console=") &&
                          !has(text, "iommu=") && !has(text, "quiet")))
    return false;
  return first_line(text, command_line).has_value();
}

Result<LineValue> parse_kernel_command_line(std::string_view text, std::string_view command) {
  auto found = first_line(text, command_line);
  if (!found && is_cmdline_command(command))
    found = first_line(text, [](std::string_view line) { return std::optional(std::string(line)); });
  return or_not_a(std::move(found), "/proc/cmdline");
}

bool looks_like_uname(std::string_view text, std::string_view command) {
  if (is_uname_r(command)) return true;
  return has(text, "Linux ") && first_line(text, uname_release).has_value();
}

Result<LineValue> parse_uname(std::string_view text, std::string_view command) {
  auto found = first_line(text, uname_release);
  if (!found && is_uname_r(command)) found = first_line(text, release_alone);
  return or_not_a(std::move(found), "uname -a");
}

bool looks_like_os_release(std::string_view text) { return has(text, "PRETTY_NAME="); }

Result<LineValue> parse_os_release(std::string_view text) {
  return or_not_a(first_line(text, pretty_name), "/etc/os-release");
}

bool looks_like_ofed_info(std::string_view text) {
  return has(text, "OFED") && first_line(text, ofed_version).has_value();
}

Result<LineValue> parse_ofed_info(std::string_view text) {
  return or_not_a(first_line(text, ofed_version), "ofed_info -s");
}

bool looks_like_df_shm(std::string_view text) {
  return has(text, "/dev/shm") && parse_df_shm(text).has_value();
}

Result<ShmSize> parse_df_shm(std::string_view text) {
  for (LineReader reader(text); reader.next();) {
    if (reader.line().size() > 400) continue;
    if (auto found = shm_of(trim(reader.line()))) {
      found->line = reader.number();
      return std::move(*found);
    }
  }
  return not_a("df");
}

}  // namespace topotune::parse
