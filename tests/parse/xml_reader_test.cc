#include "parse/xml_reader.h"

#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

XmlDocument read(std::string_view text) {
  auto document = read_xml(text);
  EXPECT_TRUE(document) << document.error().text;
  return std::move(*document);
}

TEST(XmlReader, ReadsElementsAttributesTextAndLines) {
  const auto d = read(
      "<?xml version='1.0'?>\n<!DOCTYPE a SYSTEM \"x.dtd\">\n<!-- <no/> -->\n<a b=\"1\" c='x &amp; &#65;'>\n "
      "hi <d/></a>");
  ASSERT_EQ(d.elements.size(), 2U);
  EXPECT_TRUE(d.problems.empty());
  EXPECT_EQ(d[0].name, "a");
  EXPECT_EQ(d[0].line, 4);
  EXPECT_EQ(d[0].get("b"), "1");
  EXPECT_EQ(d[0].get("c"), "x & A");
  EXPECT_EQ(d[0].text, "hi");
  EXPECT_EQ(d[1].parent, 0U);
  EXPECT_EQ(d[0].children, std::pmr::vector<std::size_t>{1});
}

TEST(XmlReader, EmptyAttributeIsFoundButNotGot) {
  const auto d = read("<a b=\"\"/>");
  EXPECT_EQ(d[0].find("b"), "");
  EXPECT_FALSE(d[0].get("b"));
  EXPECT_FALSE(d[0].find("c"));
}

TEST(XmlReader, CutOffTextKeepsWhatIsWhole) {
  for (const char* text : {"<a><b x=\"1\"/><c y=\"2", "<a><b x=\"1\"/><c", "<a><b x=\"1\"/>",
                           "<a><b x=\"1\"/><!-- no end", "<a><b x=\"1\"/></a", "<a><b x=\"1\"/><"}) {
    const auto d = read(text);
    EXPECT_EQ(d.elements.size(), 2U) << text;
    EXPECT_TRUE(d.truncated) << text;
    ASSERT_EQ(d.problems.size(), 1U) << text;
    EXPECT_EQ(d.problems[0].code, "truncated") << text;
  }
}

TEST(XmlReader, ClosesWhatWasForgotten) {
  const auto d = read("<a><b><c/></a><d/>");
  EXPECT_EQ(d.roots.size(), 2U);
  ASSERT_EQ(d.problems.size(), 1U);
  EXPECT_EQ(d.problems[0].code, "malformed");
  EXPECT_FALSE(d.truncated);
}

TEST(XmlReader, AnAttributeWithoutEndLosesItsElementOnly) {
  const auto d = read("<a><b x=\"1><c/></a>");
  ASSERT_EQ(d.elements.size(), 2U);
  EXPECT_EQ(d[1].name, "c");
  EXPECT_EQ(d.problems.size(), 1U);
}

TEST(XmlReader, RefusesDepthAndNumber) {
  std::string deep, many = "<a>";
  for (int i = 0; i < 300; ++i) deep += "<a>";
  for (int i = 0; i < 20; ++i) many += "<b/>";
  ASSERT_FALSE(read_xml(deep));
  EXPECT_EQ(read_xml(deep).error().code, Errc::too_large);
  EXPECT_FALSE(read_xml(many, {.elements = 10}));
}

TEST(XmlReader, CountsFaultsBeyondTheFirst) {
  const auto d = read("<a>" + std::string(100, '<') + "/a>");
  EXPECT_EQ(d.problems.size(), kMaxProblems);
  EXPECT_GT(d.more_problems, 50U);
  EXPECT_EQ(warnings_of(d).size(), kMaxProblems + 1);
}

TEST(XmlReader, FirstElementPassesOverTheProlog) {
  const auto head = first_element("text <?x?><!-- <no> --><!DOCTYPE y><system version=\"1\">");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->name, "system");
  EXPECT_EQ(head->rest, " version=\"1\">");
  EXPECT_FALSE(first_element("1 < 2"));
  EXPECT_FALSE(first_element("<!-- "));
}

}  // namespace
}  // namespace topotune::parse
