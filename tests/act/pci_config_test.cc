#include "act/pci_config.h"

#include <gtest/gtest.h>

namespace topotune::act {
namespace {

TEST(PciConfig, CapabilitiesThatLeadInACircleEnd) {
  std::string config(4096, '\0');
  config[0x34] = 0x40;
  config[0x40] = 0x05;
  config[0x41] = 0x40;
  config[0x100] = 0x01;
  config[0x102] = 0x01;
  config[0x103] = 0x10;
  EXPECT_FALSE(find_field(config, "MaxReadReq"));
  EXPECT_FALSE(find_field(config, "ACSCtl"));
}

TEST(PciConfig, AShortSpaceNeedsRoot) {
  const auto field = find_field(std::string(64, '\0'), "ACSCtl");
  ASSERT_FALSE(field);
  EXPECT_EQ(field.error().code, Errc::denied);
  EXPECT_FALSE(find_field("", "ACSCtl"));
}

TEST(PciConfig, OnlyTheFieldChanges) {
  EXPECT_EQ(changed_register({0, 0x2810}, "MaxReadReq", "4096").value(), 0x5810);
  EXPECT_EQ(field_text({0, 0x5810}, "MaxReadReq"), "4096");
  EXPECT_FALSE(changed_register({0, 0}, "MaxReadReq", "300"));
  EXPECT_FALSE(changed_register({0, 0}, "ACSCtl", "17"));
  EXPECT_EQ(changed_register({0, 0x1d}, "ACSCtl", "0x0001").value(), 1);
}

}  // namespace
}  // namespace topotune::act
