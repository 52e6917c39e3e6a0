#include <gtest/gtest.h>

#include "checks/build.h"

namespace topotune::checks::test {
namespace {

constexpr auto kRoot = "0000:00:01.0", kUp = "0000:01:00.0", kGpuPort = "0000:02:00.0",
               kNicPort = "0000:02:01.0", kGpu = "0000:03:00.0", kNic = "0000:04:00.0";

void link_all(Machine& machine, double gts, int width) {
  for (auto& device : machine.topology.pci) device.current = device.capable = {gts, width};
}

Machine healthy() {
  Machine machine = gpu_and_nic_on_a_switch();
  link_all(machine, 32, 16);
  return machine;
}

TEST(Pcie01, FullWidthIsClean) { EXPECT_TRUE(says("PCIE01", healthy()).clean()); }

TEST(Pcie01, LostLanes) {
  Machine machine = healthy();
  pci(machine, kGpu).current.width = 8;
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::warn)) << "no sibling proves that the slot is wider";
  add_pci(machine, "0000:02:02.0", PciKind::bridge, kUp).capable.width = 16;
  add_gpu(machine, "0000:05:00.0", kH100, "0000:02:02.0");
  pci(machine, "0000:05:00.0").current = pci(machine, "0000:05:00.0").capable = {32, 16};
  const auto said = says("PCIE01", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), "GPU0");
  EXPECT_EQ(said.findings[0].observed, "x8");
  pci(machine, kGpu).current.width = 12;
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::warn)) << "more than half is left";
  pci(machine, "0000:05:00.0").device = kRtx4090;
  pci(machine, kGpu).current.width = 8;
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::warn)) << "the sibling is another model";
}

TEST(Pcie01, NarrowSlotIsInfo) {
  Machine machine = healthy();
  pci(machine, kGpu).current.width = 8;
  pci(machine, kGpuPort).capable.width = 8;
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::info));
}

TEST(Pcie01, UnknownIsNotClean) {
  Machine machine = healthy();
  pci(machine, kGpu).current.width.reset();
  EXPECT_TRUE(says("PCIE01", machine).not_evaluated());
}

TEST(Pcie01, ManagementNicsAndVirtualFunctionsAreLeftOut) {
  Machine machine = healthy();
  add_nic(machine, "0000:20:00.0");
  pci(machine, "0000:20:00.0").current = {8, 4};
  pci(machine, "0000:20:00.0").capable = {8, 8};
  EXPECT_TRUE(says("PCIE01", machine).clean()) << "not a rail";
  pci(machine, kNic).current.width = 4;
  EXPECT_FALSE(says("PCIE01", machine).findings.empty());
  pci(machine, kNic).virtual_function = true;
  EXPECT_TRUE(says("PCIE01", machine).clean());
}

TEST(Pcie01, NothingToCheck) {
  EXPECT_TRUE(says("PCIE01", bare_metal()).clean());
  EXPECT_TRUE(says("PCIE01", matrix_of(2)).not_evaluated());
}

TEST(Pcie02, NicBelowItsSpeed) {
  Machine machine = healthy();
  EXPECT_TRUE(says("PCIE02", machine).clean());
  pci(machine, kNic).current.gts = 8;
  const auto said = says("PCIE02", machine);
  ASSERT_TRUE(said.one(Severity::warn));
  EXPECT_EQ(said.subject(), "mlx5_0");
  pci(machine, kNicPort).capable.gts = 8;
  EXPECT_TRUE(says("PCIE02", machine).clean()) << "the port cannot do more";
}

TEST(Pcie02, Gen4NicInGen5Slot) {
  Machine machine = healthy();
  pci(machine, kNic).capable.gts = pci(machine, kNic).current.gts = 16;
  EXPECT_TRUE(says("PCIE02", machine).clean());
}

TEST(Pcie02, IdleGpuIsNotJudged) {
  Machine machine = healthy();
  pci(machine, kGpu).current.gts = 2.5;
  EXPECT_TRUE(says("PCIE02", machine).not_evaluated());
  machine.gpu_states.push_back({});
  machine.gpu_states[0].gpu = "GPU0";
  machine.gpu_states[0].utilisation = 0;
  EXPECT_TRUE(says("PCIE02", machine).not_evaluated());
  machine.gpu_states[0].utilisation = 97;
  EXPECT_TRUE(says("PCIE02", machine).one(Severity::warn));
}

TEST(Pcie02, SwitchWithANic) {
  Machine machine = healthy();
  pci(machine, kUp).current.gts = 16;
  EXPECT_TRUE(says("PCIE02", machine).one(Severity::warn));
  EXPECT_EQ(says("PCIE02", machine).subject(), kUp);
}

TEST(Pcie02, SwitchWithGpusOnlyMayIdle) {
  Machine machine = bare_metal();
  add_pci(machine, kRoot, PciKind::bridge).root_port = true;
  add_pci(machine, kUp, PciKind::bridge, kRoot).pcie_switch_port = true;
  add_pci(machine, kGpuPort, PciKind::bridge, kUp).pcie_switch_port = true;
  add_gpu(machine, kGpu, kH100, kGpuPort);
  link_all(machine, 32, 16);
  pci(machine, kUp).current.gts = 2.5;
  EXPECT_TRUE(says("PCIE02", machine).clean());
}

TEST(Pcie03, AspmPolicy) {
  Machine machine = healthy();
  EXPECT_TRUE(says("PCIE03", machine).not_evaluated());
  pci(machine, kNic).l1_aspm = true;
  machine.aspm_policy = known<std::string>("default");
  EXPECT_TRUE(says("PCIE03", machine).one(Severity::info));
  machine.aspm_policy = known<std::string>("performance");
  EXPECT_TRUE(says("PCIE03", machine).clean());
  machine.aspm_policy = known<std::string>("default");
  pci(machine, kNic).l1_aspm.reset();
  EXPECT_TRUE(says("PCIE03", machine).clean()) << "no ASPM capability";
}

TEST(Pcie04, ABridgeAboveIsNarrower) {
  Machine machine = healthy();
  EXPECT_TRUE(says("PCIE04", machine).clean());
  pci(machine, kUp).capable.width = 8;
  EXPECT_EQ(says("PCIE04", machine).findings.size(), 2U);
  pci(machine, kUp).capable.width = 16;
  pci(machine, kUp).capable.gts.reset();
  EXPECT_TRUE(says("PCIE04", machine).clean()) << "an unknown hop proves nothing";
  pci(machine, kGpu).capable.gts.reset();
  EXPECT_TRUE(says("PCIE04", machine).not_evaluated());
}

TEST(Pcie04, ASlowerDeviceIsNotLimited) {
  Machine machine = healthy();
  for (const auto* id : {kGpu, kNic}) pci(machine, id).capable.gts = 16;
  pci(machine, kRoot).capable.gts = 16;
  EXPECT_TRUE(says("PCIE04", machine).clean());
}

TEST(Pcie04, KernelSaysSo) {
  Machine machine = healthy();
  machine.kernel_log =
      known<std::vector<std::string>>({"mlx5_core 0000:04:00.0: 63.008 Gb/s available PCIe bandwidth, "
                                       "limited by 8.0 GT/s PCIe x8 link at 0000:00:01.0"});
  EXPECT_TRUE(says("PCIE04", machine).one(Severity::warn));
  machine.kernel_log = known<std::vector<std::string>>(
      {"ixgbe 0000:99:00.0: 4 Gb/s available PCIe bandwidth, limited by 5 GT/s x1"});
  EXPECT_TRUE(says("PCIE04", machine).clean()) << "not a rail";
}

TEST(Pcie05, NeedsTwoReadings) { EXPECT_TRUE(says("PCIE05", healthy()).not_evaluated()); }

TEST(Pcie06, OffTheBus) {
  Machine machine = healthy();
  EXPECT_TRUE(says("PCIE06", machine).not_evaluated());
  pci(machine, kGpu).config_all_ones = false;
  EXPECT_TRUE(says("PCIE06", machine).clean());
  pci(machine, kGpu).config_all_ones = true;
  EXPECT_TRUE(says("PCIE06", machine).one(Severity::error));
  pci(machine, kGpu).power_state = "D3cold";
  EXPECT_TRUE(says("PCIE06", machine).clean());
  pci(machine, kGpu).power_state = "D0";
  pci(machine, kGpu).virtual_function = true;
  pci(machine, kNic).config_all_ones = false;
  EXPECT_TRUE(says("PCIE06", machine).clean());
}

TEST(Pcie07, ReadRequests) {
  Machine machine = healthy();
  EXPECT_TRUE(says("PCIE07", machine).not_evaluated());
  pci(machine, kNic).max_read_request = 512;
  EXPECT_TRUE(says("PCIE07", machine).one(Severity::info));
  pci(machine, kNic).max_read_request = 4096;
  EXPECT_TRUE(says("PCIE07", machine).clean());
  pci(machine, kNic).max_read_request = 512;
  pci(machine, kNic).virtual_function = true;
  EXPECT_TRUE(says("PCIE07", machine).clean());
}

// ---- ACS

constexpr std::uint16_t kRedirect = 0x1d, kSrcValid = 0x01;

Machine read_config() {
  Machine machine = healthy();
  for (auto& device : machine.topology.pci) {
    device.max_read_request = 4096;
    device.acs_control = 0;
  }
  return machine;
}

TEST(Acs01, CleanBitsAreClean) { EXPECT_TRUE(says("ACS01", read_config()).clean()); }

TEST(Acs01, RedirectBelowTheCommonSwitch) {
  Machine machine = read_config();
  pci(machine, kGpuPort).acs_control = kRedirect;
  const auto said = says("ACS01", machine);
  ASSERT_TRUE(said.one(Severity::error));
  EXPECT_EQ(said.subject(), kGpuPort);
  pci(machine, kGpuPort).acs_control = 0x04;
  EXPECT_TRUE(says("ACS01", machine).one(Severity::error)) << "ReqRedir alone";
  pci(machine, kGpuPort).acs_control = 0x08;
  EXPECT_TRUE(says("ACS01", machine).one(Severity::error)) << "CmpltRedir alone";
}

TEST(Acs01, SourceValidationAloneIsInfo) {
  Machine machine = read_config();
  pci(machine, kGpuPort).acs_control = kSrcValid;
  EXPECT_TRUE(says("ACS01", machine).one(Severity::info));
  pci(machine, kGpuPort).acs_control = 0x10;
  EXPECT_TRUE(says("ACS01", machine).one(Severity::info)) << "UpstreamFwd alone";
}

TEST(Acs01, TheSwitchAboveBothIsNotOnThePath) {
  Machine machine = read_config();
  pci(machine, kUp).acs_control = kRedirect;
  pci(machine, kRoot).acs_control = kRedirect;
  EXPECT_TRUE(says("ACS01", machine).clean());
}

TEST(Acs01, StorageSwitchesAreNotOnThePath) {
  Machine machine = read_config();
  add_pci(machine, "0000:02:07.0", PciKind::bridge, kUp).acs_control = kRedirect;
  add_pci(machine, "0000:09:00.0", PciKind::other, "0000:02:07.0");
  EXPECT_TRUE(says("ACS01", machine).clean());
}

Machine two_gpus_at_root_ports(std::uint16_t model) {
  Machine machine = bare_metal();
  add_nodes(machine, 1);
  for (const auto* n : {"1", "2"}) {
    auto& port = add_pci(machine, std::string("0000:00:0") + n + ".0", PciKind::bridge);
    port.root_port = true;
    port.acs_control = kRedirect;
    port.max_read_request = 512;
    add_gpu(machine, std::string("0000:0") + n + ":00.0", model, std::string("0000:00:0") + n + ".0");
  }
  return machine;
}

TEST(Acs01, RootPortsOfAPairAreAWarning) {
  Machine machine = two_gpus_at_root_ports(kRtx4090);
  const auto said = says("ACS01", machine);
  ASSERT_EQ(said.findings.size(), 2U);
  EXPECT_EQ(said.findings[0].severity, Severity::warn);
}

TEST(Acs01, NvlinkPairsDoNotUseTheBridge) {
  Machine machine = two_gpus_at_root_ports(kH100);
  const auto unknown_links = says("ACS01", machine);
  ASSERT_EQ(unknown_links.findings.size(), 2U);
  EXPECT_EQ(unknown_links.findings[0].severity, Severity::info) << "the board joins this model";
  for (auto& gpu : machine.topology.gpus) gpu.nvlinks = 18, gpu.links = {{"NVSwitch", 18, false, {}}};
  EXPECT_EQ(says("ACS01", machine).findings[0].severity, Severity::info);
}

TEST(Acs01, VirtualMachinesAreLeftAlone) {
  Machine machine = read_config();
  pci(machine, kGpuPort).acs_control = kRedirect;
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("ACS01", machine).clean());
  machine.virtual_machine = Fact<bool>::missing("not captured");
  EXPECT_TRUE(says("ACS01", machine).one(Severity::warn)) << "whether it is one is not known";
  pci(machine, kGpuPort).vendor = 0x1000;
  EXPECT_TRUE(says("ACS01", machine).one(Severity::error)) << "no hypervisor emulates a Broadcom switch";
  pci(machine, kGpuPort).parent_inferred = true;
  EXPECT_TRUE(says("ACS01", machine).one(Severity::warn)) << "the tree is a guess";
}

TEST(Acs01, NoRightsIsNotClean) {
  Machine machine = healthy();
  EXPECT_TRUE(says("ACS01", machine).not_evaluated());
  machine = read_config();
  pci(machine, kGpuPort).acs_control.reset();
  pci(machine, kGpuPort).config_why = "denied";
  EXPECT_TRUE(says("ACS01", machine).not_evaluated());
  pci(machine, kGpuPort).config_why.clear();
  EXPECT_TRUE(says("ACS01", machine).clean()) << "a bridge without the capability redirects nothing";
}

TEST(Acs01, DirectTranslationWithAtsIsMeant) {
  Machine machine = read_config();
  for (const auto* id : {kGpuPort, kNicPort}) pci(machine, id).acs_control = kRedirect | 0x40;
  EXPECT_EQ(says("ACS01", machine).findings.size(), 2U);
  for (const auto* id : {kGpu, kNic}) pci(machine, id).ats_enabled = true;
  EXPECT_TRUE(says("ACS01", machine).clean());
}

TEST(Acs01, LinesWithoutADevice) {
  Machine machine;
  machine.topology.source.kind = SourceKind::text;
  machine.loose_acs.push_back({"a.txt:3", "ACSCtl: SrcValid+ ReqRedir+", kRedirect});
  EXPECT_TRUE(says("ACS01", machine).one(Severity::warn));
  machine.loose_acs[0].control = kSrcValid;
  EXPECT_TRUE(says("ACS01", machine).not_evaluated());
}

TEST(Acs02, AtsInVirtualMachines) {
  Machine machine = healthy();
  EXPECT_TRUE(says("ACS02", machine).clean()) << "bare metal";
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("ACS02", machine).not_evaluated()) << "hidden capability";
  pci(machine, kNic).ats_enabled = false;
  EXPECT_TRUE(says("ACS02", machine).one(Severity::info));
  pci(machine, kNic).ats_enabled = true;
  EXPECT_TRUE(says("ACS02", machine).clean());
  Machine no_nic = bare_metal();
  no_nic.virtual_machine = known(true);
  EXPECT_TRUE(says("ACS02", no_nic).clean());
}

TEST(Acs03, Translation) {
  Machine machine = healthy();
  EXPECT_TRUE(says("ACS03", machine).not_evaluated());
  machine.iommu_groups = known<std::map<std::string, std::string>>(
      {{kGpu, "identity"}, {kNic, "identity"}, {"0000:aa:00.0", "DMA"}});
  EXPECT_TRUE(says("ACS03", machine).clean()) << "another device's group";
  (*machine.iommu_groups.value)[kGpu] = "DMA-FQ";
  EXPECT_TRUE(says("ACS03", machine).one(Severity::warn));
  machine.topology.cpu = model::CpuModel{"arm64", "", {}, {}};
  EXPECT_TRUE(says("ACS03", machine).one(Severity::info)) << "Grace";
  machine.topology.cpu.reset();
  add_pci(machine, "0000:bb:00.0", PciKind::other).driver = "vfio-pci";
  EXPECT_TRUE(says("ACS03", machine).clean()) << "a host of virtual machines";
  machine.topology.pci.pop_back();
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("ACS03", machine).clean());
  machine.virtual_machine = known(false);
  machine.iommu_groups = Fact<std::map<std::string, std::string>>::missing("not found");
  EXPECT_TRUE(says("ACS03", machine).clean()) << "no groups";
}

TEST(Pcie01, AVirtualMachineMayHideANarrowSlot) {
  Machine machine = bare_metal();
  add_gpu(machine, "0000:00:1e.0", kH100);
  pci(machine, "0000:00:1e.0").capable = {16, 16};
  pci(machine, "0000:00:1e.0").current = {16, 8};
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::warn));
  machine.virtual_machine = known(true);
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::info));
  add_gpu(machine, "0000:00:1f.0", kH100);
  pci(machine, "0000:00:1f.0").capable = pci(machine, "0000:00:1f.0").current = {16, 16};
  EXPECT_TRUE(says("PCIE01", machine).one(Severity::warn)) << "a sibling has the full width";
}

}  // namespace
}  // namespace topotune::checks::test
