#include <gmock/gmock.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "emit/diff_json.h"
#include "emit/diff_text.h"

namespace topotune::emit {
namespace {

using model::DiffGroup;
using model::DiffKind;
using testing::HasSubstr;
using testing::Not;

model::Diff example() {
  model::Diff out;
  for (int i = 0; i < 8; ++i) {
    out.changes.push_back(
        {DiffKind::changed, DiffGroup::gpu, fmt::format("GPU{}", i), "vbios", "96.00.74", "96.00.99", ""});
  }
  out.changes.push_back({DiffKind::changed, DiffGroup::gpu, "GPU3", "pcie_current_gts", "32", "2.5",
                         "an idle GPU lowers its link speed"});
  out.changes.push_back({DiffKind::removed, DiffGroup::nic, "mlx5_1 0000:9a:00.0", "", "mlx5_1", {}, ""});
  out.changes.push_back(
      {DiffKind::added, DiffGroup::software, "host", "module_nvidia_peermem", {}, "loaded", ""});
  out.changes.push_back(
      {DiffKind::changed, DiffGroup::kernel, "host", "memlock_soft_bytes", "unlimited", "65536", ""});
  out.one_sided.push_back({DiffGroup::kernel, "host", "shm_bytes", "67108864", false});
  out.compared = 321;
  return out;
}

const model::Source kBefore{model::SourceKind::capture, "old.capture", true},
    kAfter{model::SourceKind::live, "live", false};

TEST(DiffText, ReadsAsAMail) {
  EXPECT_EQ(diff_text(example(), kBefore, kAfter),
            "before: old.capture (capture)\n"
            "after:  live (live, not complete)\n"
            "\n"
            "GPUs\n"
            "  * GPU0, GPU1, GPU2, GPU3 and 4 more: VBIOS: 96.00.74 → 96.00.99\n"
            "  * GPU3: PCIe speed in use (GT/s): 32 → 2.5 (an idle GPU lowers its link speed)\n"
            "\n"
            "NICs and ports\n"
            "  - mlx5_1 0000:9a:00.0: removed (mlx5_1)\n"
            "\n"
            "Software\n"
            "  + module nvidia_peermem: none → loaded\n"
            "\n"
            "Kernel and limits\n"
            "  * memlock soft (bytes): unlimited → 65536\n"
            "\n"
            "12 differences in 321 facts that both tell; 1 told by one side only (-v lists them)\n");
}

TEST(DiffText, VerboseNamesEverything) {
  const auto text = diff_text(example(), kBefore, kAfter, {false, true});
  EXPECT_THAT(text, HasSubstr("GPU3, GPU4, GPU5, GPU6, GPU7: VBIOS"));
  EXPECT_THAT(text, HasSubstr("only after: host shm (bytes): 67108864"));
}

TEST(DiffText, SaysThatNothingDiffers) {
  model::Diff same;
  same.compared = 5;
  EXPECT_THAT(diff_text(same, kBefore, kAfter), HasSubstr("\nno differences in 5 facts that both tell\n"));
  EXPECT_THAT(diff_text({}, kBefore, kAfter), HasSubstr("nothing could be compared"));
}

TEST(DiffText, PrintsNothingThatATerminalObeys) {
  model::Diff evil;
  evil.changes.push_back({DiffKind::changed, DiffGroup::software, "h\x1b[2J", "os", "a\x1b]0;x\a\nb",
                          std::string(1000, 'x'), ""});
  const auto text = diff_text(evil, kBefore, kAfter);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_LT(text.size(), 600U);
  EXPECT_THAT(diff_text(example(), kBefore, kAfter, {true, false}), HasSubstr("\x1b[1mGPUs\x1b[0m"));
}

TEST(DiffJson, IsTheDocumentedDocument) {
  const auto json = nlohmann::json::parse(diff_json(example(), kBefore, kAfter));
  EXPECT_EQ(json["schema"], "topotune.diff/1");
  EXPECT_EQ(json["before"]["kind"], "capture");
  EXPECT_EQ(json["after"]["complete"], false);
  EXPECT_EQ(json["identical"], false);
  EXPECT_EQ(json["compared"], 321);
  EXPECT_EQ(json["changes"].size(), 12U);
  const auto& removed = json["changes"][9];
  EXPECT_EQ(removed["kind"], "removed");
  EXPECT_EQ(removed["group"], "nic");
  EXPECT_TRUE(removed["what"].is_null());
  EXPECT_EQ(removed["before"], "mlx5_1");
  EXPECT_TRUE(removed["after"].is_null());
  EXPECT_EQ(json["not_compared"][0]["known_in"], "after");
}

}  // namespace
}  // namespace topotune::emit
