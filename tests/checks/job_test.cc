#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checks/build.h"

namespace topotune::checks::test {
namespace {

Said says_of_job(const std::string& rule, const Machine& machine,
                 std::map<std::string, std::string> environment) {
  Evidence evidence;
  evidence.machine = &machine;
  evidence.environment = std::move(environment);
  return said_in(run(evidence), rule);
}

// Two rails at PIX of one GPU.
Machine two_rails() {
  auto machine = gpu_and_nic_on_a_switch();
  add_nic(machine, "0000:05:00.0", "0000:02:01.0");
  return machine;
}

TEST(Job, WithoutItsVariablesNothingIsListed) {
  const auto said = says("NCCL10", two_rails());
  EXPECT_FALSE(said.checked);
  EXPECT_TRUE(said.why.empty()) << "a machine alone is no job";
}

TEST(Nccl10, IdleRails) {
  const auto machine = two_rails();
  EXPECT_TRUE(says_of_job("NCCL10", machine, {}).clean());
  EXPECT_TRUE(says_of_job("NCCL10", machine, {{"NCCL_IB_HCA", "mlx5"}}).clean());
  const auto said = says_of_job("NCCL10", machine, {{"NCCL_IB_HCA", "=mlx5_0"}});
  EXPECT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "mlx5_1");
  EXPECT_EQ(says_of_job("NCCL10", machine, {{"NCCL_IB_HCA", "^mlx5_0"}}).subject(), "mlx5_0");
  EXPECT_EQ(says_of_job("NCCL10", machine, {{"NCCL_IB_HCA", "mlx5_0:1,mlx5_1:2"}}).subject(), "mlx5_1");
  EXPECT_TRUE(says_of_job("NCCL10", gpu_and_nic_on_a_switch(), {{"NCCL_IB_HCA", "=none"}}).clean())
      << "a single rail";
}

TEST(Nccl13, LevelBelowTheBestPath) {
  const auto machine = two_rails();  // one switch: PXB or nearer
  EXPECT_TRUE(says_of_job("NCCL13", machine, {{"NCCL_NET_GDR_LEVEL", "LOC"}}).one(Severity::warn));
  EXPECT_TRUE(says_of_job("NCCL13", machine, {{"NCCL_NET_GDR_LEVEL", "PXB"}}).clean());
  EXPECT_TRUE(says_of_job("NCCL13", machine, {{"NCCL_NET_GDR_LEVEL", "SYS"}}).clean()) << "the path is near";
  EXPECT_TRUE(says_of_job("NCCL13", machine, {}).clean());
}

TEST(Nccl13, LevelThroughTheCpu) {
  auto machine = bare_metal();
  add_pci(machine, "0000:00:01.0", PciKind::bridge).root_port = true;
  add_pci(machine, "0000:00:02.0", PciKind::bridge).root_port = true;
  add_gpu(machine, "0000:03:00.0", kH100, "0000:00:01.0");
  add_nic(machine, "0000:04:00.0", "0000:00:02.0");
  EXPECT_TRUE(says_of_job("NCCL13", machine, {{"NCCL_NET_GDR_LEVEL", "SYS"}}).one(Severity::warn));
  EXPECT_TRUE(says_of_job("NCCL13", machine, {{"NCCL_NET_GDR_LEVEL", "PXB"}}).clean())
      << "off is right there";
  machine.topology.gpus[0].c2c = model::C2cLink{10, {}};
  EXPECT_TRUE(says_of_job("NCCL13", machine, {{"NCCL_NET_GDR_LEVEL", "PXB"}}).one(Severity::info));
}

TEST(Nccl28, NetworksAndPlugins) {
  auto machine = two_rails();
  EXPECT_TRUE(says_of_job("NCCL28", machine, {{"NCCL_NET", "AWS Libfabric"}}).not_evaluated());
  machine.nccl_plugins = known<std::vector<std::string>>({});
  EXPECT_TRUE(says_of_job("NCCL28", machine, {{"NCCL_NET", "AWS Libfabric"}}).one(Severity::error));
  EXPECT_TRUE(says_of_job("NCCL28", machine, {{"NCCL_NET", "ib"}}).clean());
  EXPECT_TRUE(says_of_job("NCCL28", machine, {{"NCCL_NET_PLUGIN", "ofi"}}).one(Severity::warn));
  EXPECT_TRUE(says_of_job("NCCL28", machine, {{"NCCL_NET_PLUGIN", "none"}}).clean());
  machine.nccl_plugins = known<std::vector<std::string>>({"/opt/lib/libnccl-net-ofi.so"});
  EXPECT_TRUE(says_of_job("NCCL28", machine, {{"NCCL_NET_PLUGIN", "ofi"}}).clean());
}

TEST(Nccl32, TunerPlugins) {
  auto machine = two_rails();
  machine.nccl_plugins = known<std::vector<std::string>>({"/opt/lib/libnccl-tuner-mine.so"});
  EXPECT_TRUE(says_of_job("NCCL32", machine, {{"NCCL_TUNER_PLUGIN", "mine"}}).clean());
  EXPECT_TRUE(says_of_job("NCCL32", machine, {{"NCCL_TUNER_PLUGIN", "other"}}).one(Severity::warn));
  EXPECT_TRUE(says_of_job("NCCL32", machine, {}).clean());
}

}  // namespace
}  // namespace topotune::checks::test
