#include "parse/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

std::vector<std::string> commands_of(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& section : split_sections(text)) out.push_back(section.command);
  return out;
}

TEST(Sections, TextWithoutPromptsIsOneSection) {
  const auto sections = split_sections("a\nb\n");
  ASSERT_EQ(sections.size(), 1u);
  EXPECT_EQ(sections[0].command, "");
  EXPECT_EQ(sections[0].first_line, 1);
  EXPECT_EQ(sections[0].text, "a\nb\n");
}

TEST(Sections, SplitsAtPromptsOfManyKinds) {
  EXPECT_THAT(
      commands_of("$ ibstat\nx\nroot@n1:/tmp# lspci -vv\ny\n[me@n1 ~]$ sudo dmesg\nz\n+ numactl -H\nw\n"),
      testing::ElementsAre("ibstat", "lspci -vv", "dmesg", "numactl -H"));
  EXPECT_THAT(commands_of("(base) me@n1:~$ nvidia-smi\nx\n"), testing::ElementsAre("nvidia-smi"));
  EXPECT_THAT(commands_of("$ me@n1:~$ lspci -tv\nx\n"), testing::ElementsAre("lspci -tv"));
}

TEST(Sections, SplitsAtSeparatorsThatNameACommandOrFile) {
  EXPECT_THAT(commands_of("=== ibstat ===\nx\n==> /proc/cmdline <==\ny\n# nvidia-smi topo -p2p w\nz\n"),
              testing::ElementsAre("ibstat", "/proc/cmdline", "nvidia-smi topo -p2p w"));
  EXPECT_THAT(commands_of("nvidia-smi topo -m:\nx\n"), testing::ElementsAre("nvidia-smi topo -m"));
}

TEST(Sections, KeepsTheOwnRulersOfOutputs) {
  EXPECT_THAT(commands_of("==============NVSMI LOG==============\n\nDriver Version : 1\n"),
              testing::ElementsAre(""));
  EXPECT_THAT(commands_of("==== ROCm System Management Interface ====\n=== Numa Nodes ===\nx\n"),
              testing::ElementsAre(""));
  EXPECT_THAT(commands_of("# a comment of a script\nexport X=1\n"), testing::ElementsAre(""));
  EXPECT_THAT(commands_of(" +-01.1-[01]--+-00.0  X\n"), testing::ElementsAre(""));
}

TEST(Sections, CountsLinesOfTheWholeText) {
  const auto sections = split_sections("note\n\n$ ibstat\r\nCA 'a'\r\n");
  ASSERT_EQ(sections.size(), 2u);
  EXPECT_EQ(sections[1].first_line, 4);
  EXPECT_EQ(sections[1].text, "CA 'a'\r\n");
}

TEST(PlainText, DropsEscapesQuotesAndByteOrderMarks) {
  EXPECT_EQ(plain_text("\x1b[1mGPU 0\x1b[0m"), "GPU 0");
  EXPECT_EQ(plain_text("\xef\xbb\xbfx"), "x");
  EXPECT_EQ(plain_text(std::string_view("\xff\xfe"
                                        "o\0k\0",
                                        6)),
            "ok");
  EXPECT_EQ(plain_text("> CA 'x'\n> \tPort 1:\n>> deep\n"), "CA 'x'\n\tPort 1:\ndeep\n");
  EXPECT_EQ(plain_text("a > b\nc\n"), "a > b\nc\n");
  EXPECT_EQ(plain_text("Link\xc2\xa0"
                       "0"),
            "Link 0");
}

TEST(Sections, ACommentedPromptIsASeparator) {
  const auto out = split_sections("# $ nvidia-smi -L\nGPU 0: X\n# $ nvidia-smi -q\nMIG Mode\n");
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[1].command, "nvidia-smi -q");
  EXPECT_EQ(out[1].first_line, 4);
}

// Memory of `nvidia-smi -q -x` that cannot be told: what followed it was lost.
TEST(Sections, TagsNamedLikeCommandsSplitNothing) {
  const std::string xml =
      "<gpu id=\"1\">\n\t<free>N/A</free>\n</free>\n<env>\n</env>\n\t\t<free>1 "
      "MiB</free>\n</gpu>\n<gpu>\n</gpu>\n";
  ASSERT_EQ(split_sections(xml).size(), 1u);
  EXPECT_EQ(split_sections(xml)[0].text, xml);
  EXPECT_EQ(split_sections("==> /proc/cmdline <==\na\n").at(0).command, "/proc/cmdline");
  EXPECT_EQ(split_sections("<<< ibstat >>>\na\n").at(0).command, "ibstat");
}

}  // namespace
}  // namespace topotune::parse
