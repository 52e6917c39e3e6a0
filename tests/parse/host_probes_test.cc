#include "parse/host_probes.h"

#include <gtest/gtest.h>

namespace topotune::parse {
namespace {

TEST(HostProbes, Process) {
  const auto probe = parse_process_probe(
      R"({"euid":1000,"cap_effective":"00000000a80425fb","affinity":"0-3,8","memlock":{"soft":65536,"hard":null},
          "nofile":{"soft":"many","hard":1},"hypervisor":true,"hypervisor_vendor":"KVMKVMKVM"})");
  ASSERT_TRUE(probe);
  EXPECT_EQ(*probe->effective_uid, 1000);
  EXPECT_EQ(*probe->cap_effective, 0xa80425fbu);
  EXPECT_EQ(probe->affinity->count(), 5);
  EXPECT_EQ(probe->memlock->soft, 65536u);
  EXPECT_EQ(probe->memlock->hard, std::nullopt);
  EXPECT_FALSE(probe->nofile);
  EXPECT_EQ(*probe->hypervisor, true);
}

TEST(HostProbes, Refusals) {
  const auto probe = parse_process_probe(R"({"memlock":{"error":"getrlimit failed"},"affinity":"x"})");
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->memlock.why, "getrlimit failed");
  EXPECT_FALSE(probe->affinity);
  EXPECT_EQ(probe->hypervisor.why, "not asked");
  EXPECT_FALSE(parse_process_probe("[1]"));
}

TEST(HostProbes, FileSystem) {
  const auto probe = parse_statvfs_probe(R"({"bytes":67108864,"free_bytes":0,"type":"tmpfs"})");
  ASSERT_TRUE(probe);
  EXPECT_EQ(*probe->bytes, 67108864u);
  EXPECT_EQ(*probe->free_bytes, 0u);
}

TEST(HostProbes, Libraries) {
  const auto list = parse_libraries_probe(
      R"({"libraries":[{"kind":"nccl","path":"/usr/lib/libnccl.so.2","version":"2.28.9","cuda":null},7]})");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].version, "2.28.9");
  EXPECT_EQ((*list)[0].cuda, "");
  EXPECT_FALSE(parse_libraries_probe("{}"));
}

TEST(HostProbes, HypervisorNames) {
  EXPECT_EQ(hypervisor_name("KVMKVMKVM"), "KVM");
  EXPECT_EQ(hypervisor_name("Other"), "Other");
}

}  // namespace
}  // namespace topotune::parse
