#include "host/probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace topotune::host {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

TEST(Probes, UnknownNamesAreUnsupported) {
  EXPECT_EQ(run_probe("nonsense", "").error().code, Errc::unsupported);
  EXPECT_EQ(run_probe("", "").error().code, Errc::unsupported);
}

TEST(Probes, AFolderDoesNotAnswerForThisMachine) {
  EXPECT_EQ(run_probe("process", "/nowhere").error().code, Errc::unsupported);
  EXPECT_EQ(run_probe("nvml", "/nowhere").error().code, Errc::unsupported);
}

TEST(Probes, ProcessTellsItsOwnLimits) {
  const auto text = run_probe("process", "");
  ASSERT_TRUE(text);
  const auto json = Json::parse(*text);
  EXPECT_EQ(json["euid"], ::geteuid());
  EXPECT_TRUE(json["memlock"].contains("soft"));
  EXPECT_TRUE(json["affinity"].is_string());
  EXPECT_FALSE(json["affinity"].get<std::string>().empty());
}

TEST(Probes, FileSystemSizes) {
  const auto text = run_probe("statvfs /tmp", "");
  ASSERT_TRUE(text);
  const auto json = Json::parse(*text);
  EXPECT_GT(json["bytes"].get<std::uint64_t>(), 0u);
  EXPECT_GE(json["bytes"], json["free_bytes"]);
  struct stat info {};
  ASSERT_EQ(::stat("/tmp", &info), 0);
  EXPECT_EQ(json["device"], static_cast<std::uint64_t>(info.st_dev));
  EXPECT_EQ(run_probe("statvfs /no/such/folder", "").error().code, Errc::not_found);
}

TEST(Probes, HwlocOfAFolderLeavesNoEnvironmentBehind) {
  const auto root = std::filesystem::temp_directory_path() / ("topotune-hwloc-" + std::to_string(::getpid()));
  const auto cpu = root / "sys/devices/system/cpu";
  std::filesystem::create_directories(cpu / "cpu0/topology");
  std::ofstream(cpu / "online") << "0\n";
  std::ofstream(cpu / "possible") << "0\n";
  std::ofstream(cpu / "cpu0/topology/core_cpus") << "1\n";
  std::ofstream(cpu / "cpu0/topology/package_cpus") << "1\n";
  std::ofstream(cpu / "cpu0/topology/physical_package_id") << "0\n";
  const auto text = run_probe("hwloc", root.string());
  std::filesystem::remove_all(root);
  ASSERT_TRUE(text) << text.error().text;
  EXPECT_THAT(*text, HasSubstr("<topology"));
  EXPECT_EQ(text->back(), '\n');
  EXPECT_EQ(std::getenv("HWLOC_FSROOT"), nullptr);
  EXPECT_EQ(std::getenv("HWLOC_COMPONENTS"), nullptr);
}

TEST(Probes, HwlocOfThisMachine) {
  const auto text = run_probe("hwloc", "");
  ASSERT_TRUE(text) << text.error().text;
  EXPECT_THAT(*text, HasSubstr("type=\"Machine\""));
}

}  // namespace
}  // namespace topotune::host
