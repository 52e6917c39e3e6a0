#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::parse {

// A value of one line, with that line word for word.
struct LineValue {
  std::string value;
  std::string text;
  int line = 0;
};

// /proc/driver/nvidia/version: "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release
// Build …"
struct DriverVersionFile {
  LineValue driver;
  bool open = false;  // the open kernel modules
};
bool looks_like_driver_version_file(std::string_view text);
Result<DriverVersionFile> parse_driver_version_file(std::string_view text);

// `nvcc --version`: "Cuda compilation tools, release 12.4, V12.4.131" -> "12.4"
bool looks_like_nvcc(std::string_view text);
Result<LineValue> parse_nvcc(std::string_view text);

// /proc/cmdline: the first line that is a kernel command line. `command` names the file where it is known.
bool looks_like_kernel_command_line(std::string_view text, std::string_view command = {});
Result<LineValue> parse_kernel_command_line(std::string_view text, std::string_view command = {});

// `uname -a` -> kernel release; `uname -r` when `command` says so.
bool looks_like_uname(std::string_view text, std::string_view command = {});
Result<LineValue> parse_uname(std::string_view text, std::string_view command = {});

// /etc/os-release -> PRETTY_NAME
bool looks_like_os_release(std::string_view text);
Result<LineValue> parse_os_release(std::string_view text);

// `ofed_info -s`: "MLNX_OFED_LINUX-5.8-1.1.2.1:" -> "5.8-1.1.2.1"; "OFED-internal-…" and DOCA likewise.
bool looks_like_ofed_info(std::string_view text);
Result<LineValue> parse_ofed_info(std::string_view text);

// `df` or `df -h` (any options): size and free space of /dev/shm, in bytes.
struct ShmSize {
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> free_bytes;
  std::string text;
  int line = 0;
};
bool looks_like_df_shm(std::string_view text);
Result<ShmSize> parse_df_shm(std::string_view text);

}  // namespace topotune::parse
