#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "model/plan.h"

namespace topotune::act {

// A small machine below a folder of its own.
class TreeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "topotune-act-XXXXXX").string();
    root = ::mkdtemp(pattern.data());
    put("/proc/sys/kernel/numa_balancing", "1\n");
    put("/proc/irq/40/smp_affinity_list", "0-3\n");
    put("/sys/class/net/eth7/mtu", "1500\n");
    put("/etc/nccl.conf", "NCCL_P2P_DISABLE=1\nNCCL_DEBUG=WARN\n");
    put("/sys/bus/pci/devices/0000:02:00.0/config", config_with_acs(0x001d));
    std::filesystem::create_directories(root + "/etc/sysctl.d");
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  void put(const std::string& path, const std::string& bytes) const {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path, std::ios::binary) << bytes;
  }
  std::string get(const std::string& path) const {
    std::ifstream in(root + path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return in ? out.str() : "(absent)";
  }
  // Every file and folder with its content, without the journal's folder.
  std::map<std::string, std::string> picture() const {
    std::map<std::string, std::string> out;
    for (const auto& at : std::filesystem::recursive_directory_iterator(root)) {
      const auto path = at.path().string().substr(root.size());
      if (path.starts_with("/var")) continue;
      out[path] = at.is_regular_file() ? get(path) : "(folder)";
    }
    return out;
  }

  // 4096 bytes: PCI Express capability at 0x40, ACS at 0x100.
  static std::string config_with_acs(unsigned control) {
    std::string out(4096, '\0');
    out[0x34] = 0x40;
    out[0x40] = 0x10;
    out[0x49] = 0x20;  // Device Control 0x2000: reads of 512 bytes
    out[0x100] = 0x0d;
    out[0x102] = 0x01;
    out[0x106] = static_cast<char>(control & 0xff);
    out[0x107] = static_cast<char>(control >> 8);
    return out;
  }

  static model::Action action(model::ActionKind kind, const std::string& target, const std::string& value,
                              std::optional<std::string> observed = {}) {
    model::Action out;
    out.id = target;
    out.kind = kind;
    out.target = target;
    out.value = value;
    out.observed = std::move(observed);
    out.automatic = true;
    return out;
  }
  static model::Plan plan() {
    using model::ActionKind;
    model::Plan out;
    out.actions = {action(ActionKind::sysfs, "/proc/sys/kernel/numa_balancing", "0", "1"),
                   action(ActionKind::affinity, "/proc/irq/40/smp_affinity_list", "2"),
                   action(ActionKind::config, "pci:0000:02:00.0/ACSCtl", "0x0001", "0x001d"),
                   action(ActionKind::config, "pci:0000:02:00.0/MaxReadReq", "4096", "512"),
                   action(ActionKind::file, "/etc/sysctl.d/90-topotune.conf",
                          "# written by topotune\nkernel.numa_balancing = 0\n"),
                   action(ActionKind::file, "/etc/systemd/system/slurmd.service.d/90-topotune.conf",
                          "# written by topotune\n[Service]\nLimitMEMLOCK=infinity\n"),
                   action(ActionKind::file, "/etc/nccl.conf", "NCCL_DEBUG=WARN\n",
                          "NCCL_P2P_DISABLE=1\nNCCL_DEBUG=WARN\n")};
    return out;
  }

  std::string root;
};

}  // namespace topotune::act
