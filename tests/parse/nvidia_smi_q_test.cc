#include "parse/nvidia_smi_q.h"

#include <gtest/gtest.h>

#include "parse/nvidia_smi_table.h"
#include "parse/nvidia_smi_x.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kTwoGpus = R"(
==============NVSMI LOG==============

Timestamp                                 : Mon Jan  5 10:00:00 2026
Driver Version                            : 570.10.01
CUDA Version                              : 12.8

Attached GPUs                             : 2
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA X100
    MIG Mode
        Current                           : Enabled
        Pending                           : Disabled
    MIG Device
        Index                             : 0
        FB Memory Usage
            Total                         : 9 MiB
    GPU UUID                              : GPU-1
    GPU Virtualization Mode
        Virtualization Mode               : Pass-Through
    PCI
        Device Id                         : 0x233010DE
        Bus Id                            : 00000000:1B:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
                Device Max                : 5
            Link Width
                Max                       : 16x
                Current                   : 8x
        Replays Since Reset               : 7
    Clocks Throttle Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
    FB Memory Usage
        Total                             : 100 MiB
    Utilization
        Gpu                               : 42 %
    Temperature
        GPU Current Temp                  : 88 C
    Fabric
        State                             : In Progress
        Status                            : N/A
        CliqueId                          : N/A
        Health
            Bandwidth                     : Degraded
            Route Unhealthy               : False
GPU 00000000:2B:00.0
    Product Name                          : NVIDIA X100
    GPU UUID                              : GPU-2
    Fabric
        State                             : Completed
        Status                            : Success
)";

TEST(NvidiaSmiQ, ReadsWhatRulesNeed) {
  ASSERT_TRUE(looks_like_nvidia_smi_q(kTwoGpus));
  const auto out = parse_nvidia_smi_q(kTwoGpus);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->driver, "570.10.01");
  EXPECT_EQ(out->driver_line, 5);
  EXPECT_EQ(out->cuda, "12.8");
  EXPECT_EQ(out->attached, 2);
  ASSERT_EQ(out->gpus.size(), 2u);
  const auto& gpu = out->gpus[0];
  EXPECT_EQ(gpu.line, 9);
  EXPECT_EQ(gpu.bdf, "0000:1b:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-1");
  EXPECT_EQ(gpu.mig, true);
  EXPECT_EQ(gpu.pci_vendor, 0x10de);
  EXPECT_EQ(gpu.pci_device, 0x2330);
  EXPECT_EQ(gpu.capable, (model::PcieLink{32.0, 16}));
  EXPECT_EQ(gpu.current, (model::PcieLink{2.5, 8}));
  EXPECT_EQ(gpu.virtualization, "Pass-Through");
  EXPECT_EQ(gpu.state.pcie_replays, 7u);
  EXPECT_EQ(gpu.state.clock_event_reasons, 0x48u);
  EXPECT_EQ(gpu.state.memory_bytes, 100u << 20);
  EXPECT_EQ(gpu.state.utilisation, 42);
  EXPECT_EQ(gpu.state.temperature_c, 88.0);
  EXPECT_EQ(gpu.state.fabric_state, 2);
  EXPECT_EQ(gpu.state.fabric_status, std::nullopt);
  EXPECT_EQ(gpu.state.clique, std::nullopt);
  EXPECT_EQ(gpu.state.fabric_health_mask, 0x21u);
  EXPECT_EQ(out->gpus[1].state.fabric_state, 3);
  EXPECT_EQ(out->gpus[1].state.fabric_status, 0);
  EXPECT_EQ(out->gpus[1].mig, std::nullopt);
}

TEST(NvidiaSmiQ, ReadsTextThatLostItsIndentation) {
  const auto out = parse_nvidia_smi_q(
      "GPU 00000000:1B:00.0\nProduct Name : X\nMIG Mode\nCurrent : Disabled\nLink Width\nMax : 16x\nCurrent "
      ": 4x\n"
      "Fabric\nState : Completed\nStatus : Success\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->gpus.size(), 1u);
  EXPECT_EQ(out->gpus[0].mig, false);
  EXPECT_EQ(out->gpus[0].current.width, 4);
  EXPECT_EQ(out->gpus[0].capable.width, 16);
  EXPECT_EQ(out->gpus[0].state.fabric_state, 3);
}

TEST(NvidiaSmiQ, ReadsTextWhoseRunsOfBlanksAreOne) {
  const auto out = parse_nvidia_smi_q(
      "GPU 00000000:1B:00.0\n Product Name : X\n MIG Mode\n Current : Disabled\n Fabric\n State : "
      "Completed\n Status : "
      "Insufficient Resources\n Health\n Summary : Healthy\n Serial Number : \n UUID : GPU-1\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->gpus[0].mig, false);
  EXPECT_EQ(out->gpus[0].state.fabric_state, 3);
  EXPECT_NE(out->gpus[0].state.fabric_status.value_or(0), 0);
}

TEST(NvidiaSmiQ, UnknownStaysUnknown) {
  const auto out = parse_nvidia_smi_q(
      "GPU 00000000:1B:00.0\n    Product Name : N/A\n    PCI\n        GPU Link Info\n            PCIe "
      "Generation\n"
      "                Max : N/A\n                Current : 99\n            Link Width\n                Max "
      ": 0x\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->gpus[0].name, std::nullopt);
  EXPECT_EQ(out->gpus[0].capable, model::PcieLink{});
  EXPECT_EQ(out->gpus[0].current, model::PcieLink{});
}

TEST(NvidiaSmiQ, SaysThatATextEndsInsideAGpu) {
  EXPECT_TRUE(parse_nvidia_smi_q("GPU 00000000:1B:00.0\n    Product Na")->truncated);
  EXPECT_FALSE(parse_nvidia_smi_q(kTwoGpus)->truncated);
  EXPECT_FALSE(parse_nvidia_smi_q("hello"));
}

constexpr std::string_view kXml = R"(junk before
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">
<nvidia_smi_log>
 <driver_version>515.1</driver_version>
 <attached_gpus>2</attached_gpus>
 <gpu id="00000000:3B:00.0">
  <product_name>NVIDIA X100</product_name><uuid>GPU-7</uuid>
  <mig_mode><current_mig>Disabled</current_mig></mig_mode>
  <pci><pci_device_id>20B210DE</pci_device_id><pci_bus_id>00000000:3B:00.0</pci_bus_id>
   <pci_gpu_link_info><pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>3</current_link_gen></pcie_gen>
   <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
   </pci_gpu_link_info><replay_counter>3</replay_counter></pci>
  <clocks_throttle_reasons><clocks_throttle_reason_hw_power_brake_slowdown>Active</clocks_throttle_reason_hw_power_brake_slowdown>
  <clocks_throttle_reason_gpu_idle>Not Active</clocks_throttle_reason_gpu_idle></clocks_throttle_reasons>
  <fabric><state>N/A</state><status>N/A</status></fabric>
 </gpu>
 <gpu id="00000000:4B:00.0"><product_name>NVIDIA X1)";

TEST(NvidiaSmiX, ReadsOldNamesAndWhatACutFileHas) {
  ASSERT_TRUE(looks_like_nvidia_smi_x(kXml));
  const auto out = parse_nvidia_smi_x(kXml);
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->truncated);
  EXPECT_EQ(out->driver, "515.1");
  EXPECT_EQ(out->driver_line, 5);
  ASSERT_EQ(out->gpus.size(), 2u);
  const auto& gpu = out->gpus[0];
  EXPECT_EQ(gpu.line, 7);
  EXPECT_EQ(gpu.bdf, "0000:3b:00.0");
  EXPECT_EQ(gpu.mig, false);
  EXPECT_EQ(gpu.pci_device, 0x20b2);
  EXPECT_EQ(gpu.current, (model::PcieLink{8.0, 8}));
  EXPECT_EQ(gpu.state.clock_event_reasons, 0x80u);
  EXPECT_EQ(gpu.state.pcie_replays, 3u);
  EXPECT_EQ(gpu.state.fabric_state, std::nullopt);
}

TEST(NvidiaSmiX, RefusesWhatIsNotXml) {
  EXPECT_FALSE(looks_like_nvidia_smi_x("<topology>"));
  EXPECT_FALSE(parse_nvidia_smi_x("<topology>"));
}

constexpr std::string_view kTable =
    "+-----------+\n"
    "| NVIDIA-SMI 560.1     Driver Version: 560.1     CUDA Version: 12.6     |\n"
    "|=====+=====+=====|\n"
    "|   0  NVIDIA X100                Off  |   00000000:06:00.0 Off |                    0 |\n"
    "| N/A   27C    P0     104W /  700W |       5MiB / 1000MiB |      9%      Default |\n"
    "|                                  |                      |             Enabled* |\n"
    "+-----------+\n"
    "|   1  NVIDIA X100                 On  |   00000000:07:00.0 Off |                    0 |\n"
    "| Processes: |\n"
    "|    0   N/A  N/A      1234      C   python     10MiB |\n";

TEST(NvidiaSmiTable, ReadsRowsAndHeader) {
  ASSERT_TRUE(looks_like_nvidia_smi_table(kTable));
  const auto out = parse_nvidia_smi_table(kTable);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->driver, "560.1");
  EXPECT_EQ(out->cuda, "12.6");
  ASSERT_EQ(out->gpus.size(), 2u);
  EXPECT_EQ(out->gpus[0].index, 0);
  EXPECT_EQ(out->gpus[0].name, "NVIDIA X100");
  EXPECT_EQ(out->gpus[0].bdf, "0000:06:00.0");
  EXPECT_EQ(out->gpus[0].mig, true);
  EXPECT_EQ(out->gpus[0].state.persistence, "Disabled");
  EXPECT_EQ(out->gpus[0].state.memory_bytes, 1000u << 20);
  EXPECT_EQ(out->gpus[0].state.utilisation, 9);
  EXPECT_EQ(out->gpus[1].mig, std::nullopt);
  EXPECT_EQ(out->attached, 2);
}

TEST(NvidiaSmiTable, ANameThatIsAnErrorIsNone) {
  const auto out = parse_nvidia_smi_table(
      "| NVIDIA-SMI 535.1  Driver Version: 535.1  CUDA Version: 12.2 |\n"
      "|   1  ERR!                On  | 00000000:0A:00.0 Off |    ERR! |\n");
  ASSERT_TRUE(out);
  ASSERT_EQ(out->gpus.size(), 1u);
  EXPECT_EQ(out->gpus[0].name, std::nullopt);
  EXPECT_EQ(out->gpus[0].state.other.at("Name"), "ERR!");
}

TEST(NvidiaSmiTable, KeepsTheErrorOfNvml) {
  const auto out = parse_nvidia_smi_table(
      "\nFailed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.86\n");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->error, "Failed to initialize NVML: Driver/library version mismatch");
  EXPECT_EQ(out->error_line, 2);
  EXPECT_EQ(out->nvml, "570.86");
  EXPECT_EQ(out->attached, std::nullopt);
}

TEST(NvidiaSmiWords, MeanWhatNvmlSays) {
  EXPECT_EQ(smi::fabric_state("Not Supported"), 0);
  EXPECT_EQ(smi::fabric_state("N/A"), std::nullopt);
  EXPECT_EQ(smi::fabric_status("GPU is lost"), 15);
  EXPECT_EQ(smi::fabric_status("Something new"), 999);
  EXPECT_EQ(smi::clock_event_bit("SW Power Cap"), 0x4u);
  EXPECT_EQ(smi::clock_event_bit("Nonsense"), std::nullopt);
  EXPECT_EQ(smi::bytes_of("2 GiB"), 2ull << 30);
  EXPECT_EQ(smi::bytes_of("99999999999999999999 MiB"), std::nullopt);
}

}  // namespace
}  // namespace topotune::parse
