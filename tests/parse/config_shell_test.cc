#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parse/config.h"
#include "parse/config_shell.h"

namespace topotune::parse {
namespace {

using ::testing::ElementsAre;

const Setting* find(const ConfigText& text, std::string_view name) {
  for (const auto& one : text.settings)
    if (one.name == name && !one.replaced_at) return &one;
  return nullptr;
}

std::string value(const ConfigText& text, std::string_view name) {
  const auto* one = find(text, name);
  return one == nullptr ? "(none)" : one->value;
}

TEST(ConfigShell, TakesExportsWithTheirPlace) {
  const auto text = scan_shell("#!/bin/sh\n  export NCCL_A=1 NCCL_B='two words'\nNCCL_C=3\n");
  ASSERT_NE(find(text, "NCCL_B"), nullptr);
  EXPECT_EQ(find(text, "NCCL_A")->at, (Place{2, 10}));
  EXPECT_EQ(find(text, "NCCL_B")->at, (Place{2, 19}));
  EXPECT_EQ(value(text, "NCCL_B"), "two words");
  EXPECT_EQ(find(text, "NCCL_C"), nullptr) << "a shell variable that is not exported reaches no program";
}

TEST(ConfigShell, KnowsWhatReachesAProgram) {
  EXPECT_EQ(value(scan_shell("A=1\nexport A\n"), "A"), "1");
  EXPECT_EQ(value(scan_shell("set -a\nA=2\nset +a\nB=3\n"), "A"), "2");
  EXPECT_EQ(value(scan_shell("set -a\nA=2\nset +a\nB=3\n"), "B"), "(none)");
  EXPECT_EQ(value(scan_shell("declare -x A=4\n"), "A"), "4");
  EXPECT_EQ(value(scan_shell("A=5 torchrun x.py\n"), "A"), "5");
  EXPECT_EQ(value(scan_shell("env -i A=6 python x.py\n"), "A"), "6");
  EXPECT_EQ(value(scan_shell("mpirun -np 2 -x A=7 ./x\n"), "A"), "7");
  EXPECT_EQ(value(scan_shell("srun --export=ALL,A=8 ./x\n"), "A"), "8");
  EXPECT_EQ(value(scan_shell("docker run --rm -e A=9 image\n"), "A"), "9");
  EXPECT_EQ(value(scan_shell("setenv A 10\n"), "A"), "10");
  EXPECT_EQ(value(scan_shell("#SBATCH --export=ALL,A=11\n"), "A"), "11");
  EXPECT_EQ(value(scan_shell("mpiexec -genv A 12 ./x\n"), "A"), "12");
}

TEST(ConfigShell, MentionsAreNoSettings) {
  for (const char* script : {"# export A=1\n", "echo \"export A=1\"\n", "echo 'A=1'\n", ": # A=1\n",
                             "cat <<EOF\nexport A=1\nEOF\n", "cat <<-'X'\n\texport A=1\n\tX\n",
                             "printf '%s' \"A=1\"\n", "grep A=1 file\n", "[ \"$x\" = A=1 ] && true\n",
                             "case $x in A=1) true;; esac\n", "x=\"\nexport A=1\n\"\n"})
    EXPECT_EQ(find(scan_shell(script), "A"), nullptr) << script;
}

TEST(ConfigShell, LaterLinesReplaceEarlierOnesUntilSomethingStarts) {
  const auto text = scan_shell("export A=1\nexport A=2\nunset A\nexport A=3\n./run\nexport A=4\n");
  ASSERT_EQ(text.settings.size(), 4u);
  EXPECT_EQ(text.settings[0].replaced_at, 2);
  EXPECT_EQ(text.settings[0].replaced_by, "2");
  EXPECT_EQ(text.settings[1].replaced_at, 3);
  EXPECT_FALSE(text.settings[1].replaced_by);
  EXPECT_FALSE(text.settings[2].replaced_at) << "was in force when ./run started";
}

TEST(ConfigShell, BranchesDoNotReplaceEachOther) {
  const auto text = scan_shell("if x; then\n export A=1\nelse\n export A=2\nfi\n");
  EXPECT_FALSE(text.settings[0].replaced_at);
  EXPECT_TRUE(text.settings[0].conditional);
  const auto after = scan_shell("[ -n \"$x\" ] && export A=1\nexport A=2\n");
  EXPECT_EQ(after.settings[0].replaced_at, 2);
  const auto before = scan_shell("export A=1\n[ -n \"$x\" ] && export A=2\n");
  EXPECT_FALSE(before.settings[0].replaced_at);
}

TEST(ConfigShell, FollowsConstantVariables) {
  EXPECT_EQ(value(scan_shell("H=mlx5_1\nexport A=$H:1\n"), "A"), "mlx5_1:1");
  EXPECT_EQ(value(scan_shell("export A=${H:-eth0}\n"), "A"), "eth0");
  EXPECT_EQ(value(scan_shell("OPTS=\"-x A=1 -x B=2\"\nmpirun $OPTS ./x\n"), "B"), "2");
  EXPECT_EQ(value(scan_shell("OPTS=(-x A=1 -x B=3)\nmpirun \"${OPTS[@]}\" ./x\n"), "B"), "3");
  const auto open = scan_shell("export A=$1\nexport B=$(date)\n");
  EXPECT_FALSE(find(open, "A")->literal);
  EXPECT_FALSE(find(open, "B")->literal);
}

TEST(ConfigShell, ReadsNestedScripts) {
  const auto text = scan_shell(
      "x=$(grep foo bar | awk '{print}')\nbash -c 'export A=1\nexport B=2'\nssh n1 \"export C=3; run\"\n");
  ASSERT_GE(text.commands.size(), 2u);
  EXPECT_THAT(text.commands[0].words, ElementsAre("grep", "foo", "bar"));
  EXPECT_EQ(text.commands[0].pipeline, text.commands[1].pipeline);
  EXPECT_EQ(find(text, "B")->at.line, 3);
  EXPECT_EQ(value(text, "C"), "3");
}

TEST(ConfigShell, HereDocumentsThatBecomeSomething) {
  const auto conf =
      scan_config(ConfigKind::shell, "sudo tee /etc/nccl.conf <<EOF\nNCCL_A=1\nexport NCCL_B=2\nEOF\n");
  ASSERT_EQ(conf.conf_lines.size(), 2u);
  EXPECT_EQ(conf.conf_lines[1].at.line, 3);
  EXPECT_EQ(conf.conf_lines[1].name, "export NCCL_B");
  EXPECT_EQ(value(scan_shell("bash <<EOF\nexport A=1\nEOF\n"), "A"), "1");
  EXPECT_EQ(value(scan_config(ConfigKind::shell, "echo 'export A=1' >> ~/.bashrc\n"), "A"), "1");
}

TEST(ConfigShell, LoopsKeepTheirHeader) {
  const auto text = scan_shell(
      "lspci | while read -r d; do\n setpci -s $d X\ndone\nfor f in /proc/irq/*; do echo 1; done\n");
  ASSERT_EQ(text.loops.size(), 2u);
  EXPECT_THAT(text.loops[0].header, ::testing::HasSubstr("lspci"));
  EXPECT_THAT(text.loops[1].header, ::testing::HasSubstr("/proc/irq/*"));
}

TEST(ConfigShell, BrokenTextIsSaidAndTheRestRead) {
  const auto quote = scan_shell("echo \"hello\nexport A=1\necho it's\nexport B=2\n");
  ASSERT_FALSE(quote.diagnostics.empty());
  EXPECT_EQ(quote.diagnostics[0].at.line, 1);
  EXPECT_EQ(value(quote, "A"), "1");
  EXPECT_EQ(value(quote, "B"), "2");
  const auto open = scan_shell("cat <<EOF\nexport A=1\n");
  ASSERT_EQ(open.diagnostics.size(), 1u);
  EXPECT_EQ(open.diagnostics[0].at.line, 1);
  const auto indented = scan_shell("cat <<EOF\nexport A=1\n  EOF\nexport B=1\n");
  EXPECT_EQ(find(indented, "A"), nullptr);
  EXPECT_EQ(value(indented, "B"), "1");
}

TEST(ConfigShell, FindsTheProgramBehindWrappers) {
  const auto index = [](std::vector<std::string> words) { return program_index(words); };
  EXPECT_EQ(index({"sudo", "-u", "me", "numactl", "-N", "0", "--membind=0", "python", "x"}), 7u);
  EXPECT_EQ(index({"taskset", "-c", "0-3", "nice", "-n", "5", "./x"}), 6u);
  EXPECT_EQ(index({"taskset", "0xff", "./x"}), 2u);
  EXPECT_EQ(index({"taskset", "-pc", "0", "123"}), 4u);
  EXPECT_EQ(index({"timeout", "10", "ibstat"}), 2u);
}

TEST(ConfigShell, HostileTextEnds) {
  for (const std::string& part : {std::string("$("), std::string("("), std::string("${"), std::string("`"),
                                  std::string("<<E\n"), std::string("((")}) {
    std::string text;
    for (int n = 0; n < 50000; ++n) text += part;
    scan_shell(text);
  }
}

}  // namespace
}  // namespace topotune::parse
