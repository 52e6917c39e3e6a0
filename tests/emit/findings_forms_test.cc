#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emit/findings_junit.h"
#include "emit/findings_markdown.h"
#include "emit/findings_nagios.h"
#include "emit/fleet_text.h"

namespace topotune::emit {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

model::Diagnosis one_error() {
  model::Finding f;
  f.rule = "NVL01";
  f.severity = model::Severity::error;
  f.subject = "GPU3";
  f.title = "A GPU has <fewer> | links";
  f.evidence = {{"nvml", "17 `active`"}};
  f.remedy = "reset it";
  model::Finding info = f;
  info.rule = "RDMA11";
  info.severity = model::Severity::info;
  return {{f, info}, {"NVL01", "NVL02", "RDMA11"}, {{"KERN01", "not captured"}}};
}

TEST(Nagios, OneLineWithStateAndCounts) {
  EXPECT_EQ(findings_nagios(one_error()),
            "TOPOTUNE CRITICAL - NVL01 GPU3: A GPU has <fewer>   links (+1 more) | errors=1 warnings=0 infos=1 checked=3 "
            "not_checked=1\n");
  EXPECT_THAT(findings_nagios({}), StartsWith("TOPOTUNE UNKNOWN - nothing could be checked"));
  EXPECT_THAT(findings_nagios({{}, {"NVL01"}, {}}), StartsWith("TOPOTUNE OK - 1 rules checked"));
}

TEST(Junit, FailuresSkippedAndEscapes) {
  const auto xml = findings_junit(one_error(), "node7");
  EXPECT_THAT(xml, HasSubstr("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"error\" message=\"GPU3: A GPU has &lt;fewer&gt; | links\">"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"not captured\"/>"));
}

TEST(Markdown, TableCellsStayCells) {
  const auto text = findings_markdown(one_error(), "node7");
  EXPECT_THAT(text, HasSubstr("| error | NVL01 | GPU3 | A GPU has \\<fewer\\> \\| links |"));
  EXPECT_THAT(text, HasSubstr("`` 17 `active` ``"));
  EXPECT_THAT(text, HasSubstr("- KERN01: not captured"));
}

TEST(FleetText, NamesNodeValueAndSource) {
  model::FleetReport report;
  report.nodes = 3;
  report.kinds = {"10de:2330 (3 nodes)"};
  EXPECT_THAT(fleet_text(report), HasSubstr("No node differs"));
  report.outliers = {{"b", "FLEET06", "memlock", "65536", "unlimited", "/proc/self/limits"}};
  EXPECT_THAT(fleet_text(report), HasSubstr("65536"));
  EXPECT_THAT(fleet_text(report), HasSubstr("/proc/self/limits"));
}

}  // namespace
}  // namespace topotune::emit
