#include "parse/pci_text.h"

#include <gtest/gtest.h>

#include "parse/cpu_masks.h"
#include "parse/numbering.h"

namespace topotune::parse {
namespace {

using model::PciKind;

TEST(PciText, LinkSpeedInEveryUsualForm) {
  EXPECT_EQ(parse_link_speed("16.0 GT/s PCIe"), 16);
  EXPECT_EQ(parse_link_speed("2.5 GT/s"), 2.5);
  EXPECT_EQ(parse_link_speed("8GT/s"), 8);
  for (const char* text : {"", "Unknown", "Unknown speed", "0", "-8 GT/s", "99999 GT/s"})
    EXPECT_FALSE(parse_link_speed(text)) << text;
}

TEST(PciText, WidthsThatAreNoLinkAreUnknown) {
  EXPECT_EQ(parse_link_width("16"), 16);
  EXPECT_EQ(parse_link_width("x8"), 8);
  for (const char* text : {"0", "63", "255", "", "-1"}) EXPECT_FALSE(parse_link_width(text)) << text;
}

TEST(PciText, ClassOfFourAndSixDigits) {
  EXPECT_EQ(parse_pci_class("0x030200"), 0x030200U);
  EXPECT_EQ(parse_pci_class("0302"), 0x030200U);
  EXPECT_FALSE(parse_pci_class("0x12345678"));
  EXPECT_FALSE(parse_pci_class("gpu"));
}

TEST(PciText, KindByClass) {
  EXPECT_EQ(kind_of(0x030200, 0x10de, 0x2330), PciKind::gpu);
  EXPECT_EQ(kind_of(0x030000, std::nullopt, std::nullopt), PciKind::gpu);
  EXPECT_EQ(kind_of(0x038000, 0x1002, 0x740c), PciKind::gpu);
  EXPECT_EQ(kind_of(0x120000, 0x1002, 0x74a1), PciKind::gpu);
  EXPECT_EQ(kind_of(0x030000, 0x1a03, 0x2000), PciKind::other);  // ASPEED
  EXPECT_EQ(kind_of(0x030000, 0x1002, 0x515e), PciKind::other);  // ES1000
  EXPECT_EQ(kind_of(0x020700, 0x15b3, 0x1021), PciKind::nic);
  EXPECT_EQ(kind_of(0x0c0600, 0x15b3, 0x6746), PciKind::nic);
  EXPECT_EQ(kind_of(0x060400, 0x1000, 0xc030), PciKind::bridge);
  EXPECT_EQ(kind_of(0x068000, 0x10de, 0x22a3), PciKind::nvswitch);
  EXPECT_EQ(kind_of(0x010802, 0x144d, 0xa80a), PciKind::other);
  EXPECT_EQ(kind_of(std::nullopt, 0x10de, std::nullopt), PciKind::other);
}

TEST(Numbering, KeepsNumbersAndFillsGaps) {
  const auto n = number_devices({3, std::nullopt, 0, 3, -1});
  EXPECT_EQ(n.numbers, (std::vector<int>{3, 1, 0, 2, 4}));
  EXPECT_TRUE(n.repeated);
  EXPECT_FALSE(number_devices({1, 0}).repeated);
}

std::vector<std::string> codes(const std::vector<std::string_view>& masks) {
  std::vector<WrittenMask> written;
  for (const auto mask : masks) written.push_back({"a node", mask, parse_cpu_mask(mask), 1});
  std::vector<std::string> out;
  for (const auto& warning : doubts_about(written)) out.push_back(warning.code);
  return out;
}

TEST(CpuMasks, DoubtsOnlyWhatCannotBeTrue) {
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes({"00ff,00000000", "0000,00ffffff"}), Codes{});
  EXPECT_EQ(codes({"3030", "c0c0"}), Codes{});
  EXPECT_EQ(codes({"0000ffff", "0000ffff"}), Codes{"affinity-overlap"});
  EXPECT_EQ(codes({"ff,ffff", "00,00000000"}), Codes{"affinity-short-word"});
  EXPECT_EQ(codes({"00000000,00ffffff", "ffff,ff000000"}), Codes{"affinity-short-word"});
  EXPECT_EQ(codes({"zz", "ff"}), Codes{"affinity-malformed"});
}

}  // namespace
}  // namespace topotune::parse
