#include "tune/machine.h"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace topotune::tune {

namespace {

// A hexadecimal attribute such as "0x10de"; -1 where it cannot be read.
long attribute(const std::string& folder, const char* name) {
  long value = -1;
  if (std::FILE* file = std::fopen((folder + "/" + name).c_str(), "re")) {
    char text[32] = {};
    if (std::fgets(text, sizeof text, file) != nullptr) value = std::strtol(text, nullptr, 16);
    std::fclose(file);
  }
  return value;
}

}  // namespace

std::string machine_fingerprint(const std::string& root) {
  const std::string folder = root + "/sys/bus/pci/devices";
  std::map<long, int> gpus;
  if (DIR* dir = ::opendir(folder.c_str())) {
    while (const dirent* entry = ::readdir(dir)) {
      if (entry->d_name[0] == '.') continue;
      const std::string device = folder + "/" + entry->d_name;
      if (attribute(device, "vendor") != 0x10de) continue;
      const long kind = attribute(device, "class") >> 8;  // 0x0300 VGA, 0x0302 3D controller
      if (kind == 0x0300 || kind == 0x0302) ++gpus[attribute(device, "device")];
    }
    ::closedir(dir);
  }
  std::string out;
  for (const auto& [device, count] : gpus) {
    char text[48];
    std::snprintf(text, sizeof text, "%s%dx10de:%04lx", out.empty() ? "" : "+", count,
                  static_cast<unsigned long>(device) & 0xffff);
    out += text;
  }
  return out;
}

}  // namespace topotune::tune
