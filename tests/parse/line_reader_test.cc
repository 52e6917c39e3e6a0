#include "parse/line_reader.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace topotune::parse {
namespace {

TEST(LineReader, AgreesWithLines) {
  for (const std::string_view text : {"", "a", "a\n", "a\r\nb\rc\n\nd", "\r\r\n\n", "x\r", "\n\r\n\r"}) {
    std::vector<std::string_view> read;
    for (LineReader reader(text); reader.next();) {
      read.push_back(reader.line());
      EXPECT_EQ(reader.number(), static_cast<int>(read.size()));
    }
    EXPECT_EQ(read, lines(text)) << text;
  }
}

TEST(LineReader, SaysWhetherALineHasAnEnd) {
  LineReader reader("a\nb");
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.ended());
  EXPECT_FALSE(reader.last());
  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.ended());
  EXPECT_TRUE(reader.last());
}

TEST(LineReader, SmallTools) {
  EXPECT_EQ(indent_of("  \tx"), 8);
  EXPECT_EQ(leading_number("25.781 GB/s"), 25.781);
  EXPECT_EQ(leading_number("5."), 5.0);
  EXPECT_EQ(leading_number("x"), std::nullopt);
  EXPECT_EQ(key_value(" a : b:c ")->value, "b:c");
  EXPECT_FALSE(key_value(": b"));
}

}  // namespace
}  // namespace topotune::parse
