#include "parse/sysfs_pci.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parse/pci_text.h"

namespace topotune::parse {
namespace {

using testing::ElementsAre;

TEST(SysfsPci, LinkSpeedAndWidth) {
  EXPECT_EQ(parse_link_speed("16.0 GT/s PCIe\n"), 16.0);
  EXPECT_EQ(parse_link_speed("2.5 GT/s"), 2.5);
  EXPECT_EQ(parse_link_speed("Unknown\n"), std::nullopt);
  EXPECT_EQ(parse_link_speed("0 GT/s"), std::nullopt);
  EXPECT_EQ(parse_link_speed(""), std::nullopt);
  EXPECT_EQ(parse_link_width("16\n"), 16);
  EXPECT_EQ(parse_link_width("0\n"), std::nullopt);
  EXPECT_EQ(parse_link_width("255\n"), std::nullopt);
}

TEST(SysfsPci, Numbers) {
  EXPECT_EQ(parse_pci_class("0x030200\n"), 0x030200u);
  EXPECT_EQ(parse_pci_class("0x1030200\n"), std::nullopt);
  EXPECT_EQ(parse_pci_id("0x10de\n"), 0x10de);
  EXPECT_EQ(parse_pci_id("0x110de"), std::nullopt);
  EXPECT_EQ(parse_numa_node("1\n"), 1);
  EXPECT_EQ(parse_numa_node("-1\n"), std::nullopt);
}

TEST(SysfsPci, LinkGivesTheChainOfBridges) {
  const auto at =
      parse_pci_link("../../../devices/pci0000:20/0000:20:00.0/0000:21:00.0/0000:22:00.0/0000:23:00.0");
  ASSERT_TRUE(at);
  EXPECT_EQ(at->root, "0000:20");
  EXPECT_EQ(at->id, "0000:23:00.0");
  EXPECT_THAT(at->bridges, ElementsAre("0000:20:00.0", "0000:21:00.0", "0000:22:00.0"));
}

TEST(SysfsPci, DeviceBehindVmdHangsOnItsOwnRoot) {
  const auto at =
      parse_pci_link("../../../devices/pci0000:64/0000:64:05.5/pci10000:80/10000:80:02.0/10000:81:00.0");
  ASSERT_TRUE(at);
  EXPECT_EQ(at->root, "10000:80");
  EXPECT_THAT(at->bridges, ElementsAre("10000:80:02.0"));
}

TEST(SysfsPci, OddLinksAreRefused) {
  EXPECT_FALSE(parse_pci_link(""));
  EXPECT_FALSE(parse_pci_link("../../devices/virtual/net/lo"));
  EXPECT_FALSE(parse_pci_link("../../../devices/pci0000:20"));
  EXPECT_FALSE(parse_pci_link("../../../devices/pci0000:20/0000:20:00.0/virtio1"));
  EXPECT_FALSE(parse_pci_link("0000:20:00.0"));
  std::string deep = "/devices/pci0000:00";
  for (int i = 0; i < 1000; ++i) deep += "/0000:00:00.0";
  EXPECT_FALSE(parse_pci_link(deep));
}

TEST(SysfsPci, NearestAddressOfANetdev) {
  EXPECT_EQ(last_pci_address("../../devices/pci0000:20/0000:20:01.0/0000:29:00.0/virtio4/net/nic1"),
            "0000:29:00.0");
  EXPECT_EQ(last_pci_address("../../devices/virtual/net/lo"), std::nullopt);
}

// A configuration space with a PCI Express capability at 0x40, ACS at 0x100 and ATS at 0x140.
std::string config_space() {
  std::string space(4096, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) space[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  };
  put(0x00, 0x10de, 2);
  put(0x02, 0x2335, 2);
  put(0x06, 0x10, 2);
  put(0x34, 0x40, 1);
  put(0x40, 0x10, 1);              // PCI Express, last of its list
  put(0x42, 0x42, 2);              // root port
  put(0x48, 2 << 5 | 5 << 12, 2);  // payload 512, read request 4096
  put(0x100, 0x1401000d, 4);       // ACS, next 0x140
  put(0x104, 0x5f, 2);
  put(0x106, 0x1d, 2);
  put(0x140, 0x0001000f, 4);  // ATS
  put(0x146, 0x8000, 2);
  return space;
}

TEST(SysfsPci, ConfigurationSpace) {
  const auto config = parse_pci_config(config_space());
  EXPECT_EQ(config.vendor, 0x10de);
  EXPECT_EQ(config.device, 0x2335);
  EXPECT_EQ(config.port, PciConfig::Port::root_port);
  EXPECT_EQ(config.max_payload, 512);
  EXPECT_EQ(config.max_read_request, 4096);
  EXPECT_EQ(config.acs_capability, 0x5f);
  EXPECT_EQ(config.acs_control, 0x1d);
  EXPECT_EQ(config.ats_enabled, true);
  EXPECT_EQ(config.extended, true);
  EXPECT_EQ(config.why, "");
  EXPECT_FALSE(config.all_ones);
}

TEST(SysfsPci, ShortSpaceIsUnknownNotOff) {
  const auto user = parse_pci_config(config_space().substr(0, 64));
  EXPECT_EQ(user.vendor, 0x10de);
  EXPECT_EQ(user.acs_control, std::nullopt);
  EXPECT_EQ(user.max_read_request, std::nullopt);
  EXPECT_EQ(user.extended, false);
  EXPECT_THAT(user.why, testing::HasSubstr("needs root"));
  EXPECT_THAT(parse_pci_config("").why, testing::HasSubstr("only 0 bytes"));
}

TEST(SysfsPci, DeadDeviceReadsAllOnes) {
  EXPECT_TRUE(parse_pci_config(std::string(4096, '\xff')).all_ones);
  EXPECT_EQ(parse_pci_config(std::string(64, '\xff')).vendor, std::nullopt);
}

TEST(SysfsPci, CapabilityCyclesEnd) {
  auto space = config_space();
  space[0x40] = 0x05;  // not PCI Express, next points to itself
  space[0x41] = 0x40;
  space[0x100] = 0x02;  // not ACS, next points to itself
  space[0x101] = space[0x102] = 0;
  space[0x103] = 0x10;
  const auto config = parse_pci_config(space);
  EXPECT_EQ(config.port, std::nullopt);
  EXPECT_EQ(config.acs_control, std::nullopt);
}

}  // namespace
}  // namespace topotune::parse
