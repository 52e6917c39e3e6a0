#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "host/files.h"
#include "host/probe_list.h"

namespace topotune::host {

// Magic numbers of linux/magic.h; others become their hexadecimal text.
static std::string type_name(unsigned long type) {
  switch (type) {
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlay";
    case 0xef53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683e:
      return "btrfs";
    case 0x6969:
      return "nfs";
    case 0x858458f6:
      return "ramfs";
    default:
      return fmt::format("0x{:x}", type);
  }
}

Result<std::string> probe_statvfs(const ProbeQuestion& question) {
  struct statfs info {};
  if (::statfs(question.argument.c_str(), &info) != 0)
    return tl::unexpected(error_of(errno, question.argument));
  const auto block = static_cast<std::uint64_t>(info.f_frsize != 0 ? info.f_frsize : info.f_bsize);
  nlohmann::ordered_json out{{"bytes", info.f_blocks * block},
                             {"free_bytes", info.f_bavail * block},
                             {"type", type_name(static_cast<unsigned long>(info.f_type))}};
  struct stat file {};
  if (::stat(question.argument.c_str(), &file) == 0) out["device"] = static_cast<std::uint64_t>(file.st_dev);
  return out.dump();
}

}  // namespace topotune::host
