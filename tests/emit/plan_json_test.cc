#include "emit/plan_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emit/plan_files.h"
#include "emit/plan_text.h"
#include "parse/plan_json.h"

namespace topotune::emit {
namespace {

using testing::HasSubstr;

model::Plan sample() {
  model::Plan plan;
  plan.source = {model::SourceKind::live, "live", true};
  plan.job = {{"nodes", "2"}, {"dscp", "26"}};
  plan.nccl_version = "2.28.9";
  model::Action action;
  action.id = "set-NCCL_IB_TC";
  action.target = "NCCL_IB_TC";
  action.value = "106";
  action.reason = "a class";
  plan.actions.push_back(action);
  action = {};
  action.id = "unset-NCCL_P2P_DISABLE";
  action.target = "NCCL_P2P_DISABLE";
  action.observed = "1";
  action.reason = "line one\nline two";
  plan.actions.push_back(action);
  action = {};
  action.id = "file";
  action.kind = model::ActionKind::file;
  action.target = "/etc/sysctl.d/90-topotune.conf";
  action.value = "it's $HOME\n";
  action.automatic = true;
  action.scope = model::ActionScope::boot;
  plan.actions.push_back(action);
  model::Binding binding;
  binding.gpu = "GPU0";
  binding.cpus = parse_cpu_list("0-7,16-23").value();
  binding.memory_node = 0;
  binding.nics = {"NIC0"};
  binding.nic_names = {"mlx5_0"};
  binding.share = parse_cpu_list("0-3").value();
  plan.bindings.push_back(binding);
  plan.notes = {"a note"};
  return plan;
}

TEST(PlanJson, IsReadBackToTheSameBytes) {
  const auto text = plan_json(sample());
  EXPECT_TRUE(parse::looks_like_plan_json(text));
  const auto back = parse::parse_plan_json(text);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(plan_json(*back), text);
}

TEST(PlanJson, WhatIsWrongIsNamed) {
  const auto said = [](std::string_view text) { return parse::parse_plan_json(text).error().text; };
  EXPECT_EQ(said("{"), "not JSON");
  EXPECT_THAT(said("{}"), HasSubstr("not a topotune.plan/1 document"));
  EXPECT_EQ(said(R"({"schema":"topotune.plan/1","source":{"kind":"live","name":"live"}})"),
            "actions: not a list");
  EXPECT_EQ(
      said(
          R"({"schema":"topotune.plan/1","source":{"kind":"live","name":"live"},"actions":[{"id":"x","kind":"env"}]})"),
      "actions[0].target: missing");
  EXPECT_EQ(
      said(
          R"({"schema":"topotune.plan/1","source":{"kind":"live","name":"live"},"actions":[{"id":"x","kind":"spell"}]})"),
      "actions[0].kind: not one of its words");
  EXPECT_THAT(said(std::string(100000, '[')), HasSubstr("not JSON"));
}

TEST(PlanForms, ShellWordsAreQuoted) {
  EXPECT_EQ(shell_word("mlx5_0:1,mlx5_1:1"), "mlx5_0:1,mlx5_1:1");
  EXPECT_EQ(shell_word("=mlx5_0:1"), "'=mlx5_0:1'");  // zsh expands =word
  EXPECT_EQ(shell_word("it's $(x)"), "'it'\\''s $(x)'");
  EXPECT_EQ(shell_word(""), "''");
  const auto text = find_plan_form("shell")->render(sample());
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("export NCCL_IB_TC=106\n"));
  EXPECT_THAT(*text, HasSubstr("unset NCCL_P2P_DISABLE\n"));
  EXPECT_THAT(*text, HasSubstr("# line one line two\n"));
  EXPECT_THAT(*text, HasSubstr("printf '%s' 'it'\\''s $HOME\n' > /etc/sysctl.d/90-topotune.conf\n"));
}

TEST(PlanForms, EachFormThatHasSomethingToSaySaysIt) {
  for (const auto& form : plan_forms()) {
    const auto text = form.render(sample());
    const bool nothing = form.name == "kernel-argument" || form.name == "udev" || form.name == "sysctl";
    EXPECT_EQ(text.has_value(), !nothing) << form.name;
    EXPECT_FALSE(form.render({})) << form.name << " of an empty plan";
  }
}

TEST(PlanForms, NcclConfHasNoBlanksAroundTheSign) {
  EXPECT_THAT(*find_plan_form("nccl-conf")->render(sample()), HasSubstr("\nNCCL_IB_TC=106\n"));
  EXPECT_THAT(*find_plan_form("nccl-conf")->render(sample()), testing::Not(HasSubstr("export")));
}

TEST(PlanText, SaysWhoDoesWhat) {
  const auto text = plan_text(sample(), {});
  EXPECT_THAT(text, HasSubstr("NCCL_IB_TC=106"));
  EXPECT_THAT(text, HasSubstr("unset NCCL_P2P_DISABLE=1"));
  EXPECT_THAT(text,
              HasSubstr("GPU0   CPUs 0-7,16-23  memory node 0  NICs mlx5_0  alone: 0-3, 0 loader workers"));
}

}  // namespace
}  // namespace topotune::emit
