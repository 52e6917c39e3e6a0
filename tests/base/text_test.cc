#include "base/text.h"

#include <gtest/gtest.h>

namespace topotune {
namespace {

TEST(Text, StripsTerminalEscapesAndNuls) {
  EXPECT_EQ(strip_ansi("\x1b[4mGPU0\x1b[0m"), "GPU0");
  EXPECT_EQ(strip_ansi("\x1b]0;title\aX"), "X");
  EXPECT_EQ(strip_ansi(std::string_view("a\0b\x1b", 4)), "ab");
  EXPECT_EQ(strip_ansi("\x1b[31"), "");
}

TEST(Text, LinesKnowAllEnds) {
  EXPECT_EQ(lines("a\nb\r\nc\rd"), (std::vector<std::string_view>{"a", "b", "c", "d"}));
  EXPECT_TRUE(lines("").empty());
}

TEST(Text, NumbersAreWholeOrNothing) {
  EXPECT_EQ(parse_int<int>("12"), 12);
  EXPECT_EQ(parse_int<int>("12x"), std::nullopt);
  EXPECT_EQ(parse_int<int>(""), std::nullopt);
  EXPECT_EQ(parse_double("inf"), std::nullopt);
  EXPECT_EQ(parse_hex("0x10DE"), 0x10deu);
}

TEST(Text, PrintableKeepsUtf8AndReplacesTheRest) {
  EXPECT_EQ(printable("a\xc3\xa9\n"), "a\xc3\xa9\n");
  EXPECT_EQ(printable("\xff\x01"), "\xef\xbf\xbd?");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace topotune
