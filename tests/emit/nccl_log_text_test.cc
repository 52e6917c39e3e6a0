#include "emit/nccl_log_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "emit/nccl_log_json.h"

namespace topotune::emit {
namespace {

using testing::HasSubstr;
using testing::Not;

model::NcclLog two_ranks(const char* transport, int channels) {
  model::NcclLog log;
  log.lines = 10;
  log.main_ranks = 2;
  log.communicators.emplace_back();
  log.communicators[0].nranks = 2;
  for (int r = 0; r < 2; ++r) {
    model::LogEdge e;
    e.src = r;
    e.dst = 1 - r;
    e.transport = transport;
    e.channels = channels;
    log.edges.push_back(e);
    log.traffic.push_back({{r, 1 - r}, 4096});
  }
  log.traffic_basis = "modelled";
  return log;
}

TEST(NcclLogText, UnknownIsNull) {
  const auto json = nlohmann::json::parse(nccl_log_json({}, {}, "x"));
  EXPECT_EQ(json["schema"], "topotune.nccl-log/1");
  EXPECT_TRUE(json["version"].is_null());
  EXPECT_TRUE(json["matrix"].is_null());
  EXPECT_TRUE(json["net"]["gdr"].is_null());
  EXPECT_EQ(json["source"]["kind"], "nccl-log");
}

TEST(NcclLogText, TheMatrixIsDense) {
  const auto json = nlohmann::json::parse(nccl_log_json(two_ranks("P2P/IPC", 4), {}, "x"));
  EXPECT_EQ(json["matrix"], nlohmann::json::parse("[[0,4096],[4096,0]]"));
  EXPECT_TRUE(json["edges"][0]["gdr"].is_null());
}

TEST(NcclLogText, BytesThatAreNoTextStayJson) {
  auto log = two_ranks("P2P/IPC", 4);
  log.problems.push_back({});
  log.problems[0].text = "bad \xff\x01 text";
  EXPECT_TRUE(nlohmann::json::accept(nccl_log_json(log, {}, "na\xffme")));
}

TEST(NcclLogText, TheScreenNamesPairsAndFindings) {
  model::Diagnosis d;
  d.checked = {"LOG05"};
  d.findings.emplace_back();
  d.findings[0].rule = "LOG05";
  d.findings[0].title = "slow";
  const auto text = nccl_log_text(two_ranks("SHM/direct/direct", 4), d, "job.log");
  EXPECT_THAT(text, HasSubstr("SHM/direct/direct, 4 channels"));
  EXPECT_THAT(text, HasSubstr("LOG05"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(NcclLogText, TheHeatMapIsSvg) {
  const auto svg = nccl_log_matrix_svg(two_ranks("P2P/IPC", 4));
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_THAT(svg, HasSubstr("0 to 1: P2P/IPC, 4 channels, 4096 bytes"));
}

TEST(NcclLogText, ComparisonShowsDifferencesOnly) {
  const auto a = two_ranks("P2P/CUMEM", 24);
  auto b = two_ranks("SHM/direct/direct", 4);
  b.env.push_back({"NCCL_P2P_DISABLE", "1", model::SettingBy::environment, 1, {}, {}});
  const auto text = nccl_log_compare_text(compare_nccl_logs(a, "a", b, "b"));
  EXPECT_THAT(text, HasSubstr("NCCL_P2P_DISABLE"));
  EXPECT_THAT(text, HasSubstr("P2P/CUMEM x24"));
  EXPECT_THAT(nccl_log_compare_text(compare_nccl_logs(a, "a", a, "a")), HasSubstr("no difference"));
}

TEST(NcclLogText, ComparisonsAreJsonToo) {
  model::NcclLog a, b;
  a.version = "2.27.3";
  b.version = "2.28.9";
  a.bus_by_size = {{1024, 2.0}, {2048, 3.0}};
  b.bus_by_size = {{2048, 1.5}};
  const auto json = nlohmann::json::parse(nccl_log_compare_json(compare_nccl_logs(a, "a", b, "b")));
  EXPECT_EQ(json["schema"], "topotune.nccl-log-diff/1");
  ASSERT_EQ(json["differences"].size(), 1U);
  EXPECT_EQ(json["differences"][0]["what"], "version");
  ASSERT_EQ(json["bus_gbytes_per_s"]["sizes"].size(), 1U);
  EXPECT_EQ(json["bus_gbytes_per_s"]["sizes"][0]["bytes"], 2048);
  EXPECT_TRUE(json["bus_gbytes_per_s"]["best"]["a"].is_null());
}

model::LogProblem problem(const char* text) {
  model::LogProblem p;
  p.text = text;
  return p;
}

TEST(NcclLogText, AllIsWellOnlyWhereACommunicatorIsDescribedAndNothingFailed) {
  const auto* well = "Nothing in the log is slower";
  auto log = two_ranks("P2P/IPC", 4);
  EXPECT_THAT(nccl_log_text(log, {}, "x"), HasSubstr(well));
  log.problems.push_back(problem("Call to bind failed"));
  EXPECT_THAT(nccl_log_text(log, {}, "x"), Not(HasSubstr(well)));
  EXPECT_THAT(nccl_log_text(log, {}, "x"), HasSubstr("line 0: Call to bind failed"));
  log.problems[0].harmless = "another job holds the port";
  EXPECT_THAT(nccl_log_text(log, {}, "x"), HasSubstr(well));
  EXPECT_THAT(nccl_log_text(log, {}, "x"), Not(HasSubstr("Call to bind failed")));
  EXPECT_THAT(nccl_log_text({}, {}, "x"), Not(HasSubstr(well)));
}

TEST(NcclLogText, ACauseStandsBeforeWhatFollowsFromIt) {
  auto log = two_ranks("P2P/IPC", 4);
  log.problems = {problem("Connection closed by remote peer b<1>"), problem("Cuda failure 'out of memory'")};
  const auto text = nccl_log_text(log, {}, "x");
  EXPECT_LT(text.find("out of memory"), text.find("Connection closed"));
}

}  // namespace
}  // namespace topotune::emit
