#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parse/config.h"

namespace topotune::parse {
namespace {

std::string value(const ConfigText& text, std::string_view name) {
  for (const auto& one : text.settings)
    if (one.name == name && !one.replaced_at) return one.value;
  return "(none)";
}

TEST(ConfigEnv, ReadsEveryForm) {
  const auto text = scan_env("# c\nA=1\nexport B=\"two\" C=3  # why\n D='x y'\nE==bond0\nF=\nG=\"\"\nA=9\n");
  EXPECT_EQ(value(text, "A"), "9");
  EXPECT_EQ(text.settings[0].replaced_at, 8);
  EXPECT_EQ(value(text, "B"), "two");
  EXPECT_EQ(value(text, "C"), "3");
  EXPECT_EQ(value(text, "D"), "x y");
  EXPECT_EQ(value(text, "E"), "=bond0");
  EXPECT_EQ(text.settings[6].written, true) << "G=\"\" says something";
  EXPECT_EQ(text.settings[5].written, false);
}

TEST(ConfigEnv, SaysWhatItDoesNotTake) {
  const auto text = scan_env("NCCL_DEBUG = INFO\nA=\"open\n");
  ASSERT_EQ(text.diagnostics.size(), 2u);
  EXPECT_EQ(text.diagnostics[0].at.line, 1);
  EXPECT_EQ(text.diagnostics[1].at.line, 2);
}

TEST(ConfigEnviron, SplitsAtNul) {
  const auto text = scan_environ(std::string_view("A=1\0B=x\ny\0bad\0C=", 17));
  EXPECT_EQ(value(text, "A"), "1");
  EXPECT_EQ(value(text, "B"), "x\ny");
  EXPECT_EQ(value(text, "C"), "");
}

TEST(ConfigNcclConf, KeepsLinesAsNcclStoresThem) {
  const auto text = scan_nccl_conf("#c\nA=1\n B = 2\nexport C=3\nD\nE=4\r\n\n");
  ASSERT_EQ(text.conf_lines.size(), 5u);
  EXPECT_EQ(text.conf_lines[1].name, " B ");
  EXPECT_EQ(text.conf_lines[1].value, " 2");
  EXPECT_EQ(text.conf_lines[2].name, "export C");
  EXPECT_FALSE(text.conf_lines[3].assignment);
  EXPECT_EQ(text.conf_lines[4].value, "4\r");
}

TEST(ConfigDockerfile, EnvRunAndHereDocuments) {
  const auto text = scan_dockerfile(
      "FROM base\nENV A=1 B=\"x y\" \\\n    C=3\nENV D four\nRUN export E=5 && \\\n  # a comment\n  apt-get "
      "update\n"
      "RUN <<EOF\nexport F=6\nEOF\nCMD [\"python\", \"train.py\"]\n# ENV G=7\n");
  EXPECT_EQ(value(text, "A"), "1");
  EXPECT_EQ(value(text, "B"), "x y");
  EXPECT_EQ(value(text, "C"), "3");
  EXPECT_EQ(value(text, "D"), "four");
  EXPECT_EQ(value(text, "E"), "5");
  EXPECT_EQ(value(text, "F"), "6");
  EXPECT_EQ(value(text, "G"), "(none)");
  EXPECT_THAT(text.commands.back().words, ::testing::ElementsAre("python", "train.py"));
}

TEST(ConfigSystemd, EnvironmentAndCommands) {
  const auto text = scan_systemd(
      "[Service]\nEnvironment=\"A=1 2\" "
      "B=3\n;Environment=C=4\nEnvironmentFile=-/etc/x.env\nExecStart=-/usr/bin/numactl -N 0 \\\n  /opt/x\n");
  EXPECT_EQ(value(text, "A"), "1 2");
  EXPECT_EQ(value(text, "B"), "3");
  EXPECT_EQ(value(text, "C"), "(none)");
  ASSERT_EQ(text.commands.size(), 1u);
  EXPECT_EQ(text.commands[0].words.back(), "/opt/x");
  EXPECT_EQ(text.commands[0].at.line, 5);
  ASSERT_EQ(text.includes.size(), 1u);
  EXPECT_TRUE(text.includes[0].optional);
}

TEST(ConfigUcx, Sections) {
  const auto text = scan_ucx_conf("; c\n[Fujitsu ARM]\nUCX_TLS=rc\n[other]\nUCX_TLS=ud\n");
  ASSERT_EQ(text.settings.size(), 2u);
  EXPECT_FALSE(text.settings[0].replaced_at) << "sections belong to different machines";
}

TEST(ConfigRecognise, ByNameAndByContent) {
  EXPECT_EQ(recognise_config("/etc/nccl.conf", "A=1"), ConfigKind::nccl_conf);
  EXPECT_EQ(recognise_config("x.py", "A=1"), ConfigKind::python);
  EXPECT_EQ(recognise_config("run", "#!/usr/bin/env python3\n"), ConfigKind::python);
  EXPECT_EQ(recognise_config("run", "#!/bin/bash\n"), ConfigKind::shell);
  EXPECT_EQ(recognise_config("x", "A=1\nexport B=2\n# c\n"), ConfigKind::env);
  EXPECT_EQ(recognise_config("x", "export A=1\ntorchrun x.py\n"), ConfigKind::shell);
  EXPECT_EQ(recognise_config("x", "FROM a\nRUN b\n"), ConfigKind::dockerfile);
  EXPECT_EQ(recognise_config("x", "[Unit]\n[Service]\nExecStart=/x\n"), ConfigKind::systemd);
  EXPECT_EQ(recognise_config("x", "apiVersion: v1\nkind: Pod\n"), ConfigKind::yaml);
  EXPECT_EQ(recognise_config("x", std::string_view("A=1\0B=2\0", 8)), ConfigKind::environ);
  EXPECT_EQ(recognise_config("x", std::string_view("\x7f\x45\x4c\x46\0\0\1\2\3", 9)), std::nullopt);
}

TEST(ConfigSizes, AreReadAsDockerAndKubernetesTakeThem) {
  EXPECT_EQ(parse_size("64m"), 64u << 20);
  EXPECT_EQ(parse_size("1Gi"), 1u << 30);
  EXPECT_EQ(parse_size("8gb"), 8ull << 30);
  EXPECT_EQ(parse_size("67108864"), 67108864u);
  EXPECT_EQ(parse_size("fast"), std::nullopt);
  EXPECT_EQ(parse_size("-1g"), std::nullopt);
}

}  // namespace
}  // namespace topotune::parse
