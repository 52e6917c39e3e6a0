#include <gtest/gtest.h>

#include "checks/build.h"
#include "parse/nccl_strict.h"

namespace topotune::checks::test {
namespace {

const std::string kCpu =
    R"(<cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">)";

std::string system_of(const std::string& inside) {
  return "<system version=\"1\">\n" + kCpu + "\n" + inside + "\n</cpu>\n</system>\n";
}

// An attribute list without its blank is two blanks: build it exactly.
std::string pci(const std::string& busid, const std::string& cls, const std::string& attributes,
                const std::string& inside) {
  return "<pci busid=\"" + busid + "\" class=\"" + cls + "\"" + (attributes.empty() ? "" : " " + attributes) +
         ">\n" + inside + "\n</pci>";
}

TEST(Topo01, AcceptsWhatNcclAccepts) {
  EXPECT_TRUE(says_of_file("TOPO01", system_of("")).clean());
  EXPECT_TRUE(says_of_file("TOPO01", "\n\n<!-- a\tcomment\n -->\n" + system_of("<pci busid='0000:01:00.0'/>"))
                  .clean());
  EXPECT_TRUE(says_of_file("TOPO01", system_of("<pci busid=\"a\tb\"/>")).clean())
      << "a TAB inside a quoted value";
}

TEST(Topo01, SaysWhereNcclGivesUp) {
  const auto prolog = says_of_file("TOPO01", "<?xml version=\"1.0\"?>\n" + system_of(""));
  ASSERT_TRUE(prolog.one(Severity::error));
  EXPECT_EQ(prolog.findings[0].line, 1);
  const auto tab = says_of_file("TOPO01", "<system version=\"1\">\n\t<cpu numaid=\"0\"/>\n</system>\n");
  ASSERT_TRUE(tab.one(Severity::error));
  EXPECT_EQ(tab.findings[0].line, 2);
  EXPECT_EQ(tab.findings[0].column, 1);
  EXPECT_TRUE(says_of_file("TOPO01", system_of("<pci busid=\"a\"\nclass=\"b\"/>")).one(Severity::error))
      << "line break in a tag";
  EXPECT_TRUE(says_of_file("TOPO01", system_of("<pci busid=\"a\"\tclass=\"b\"/>")).one(Severity::error))
      << "TAB in a tag";
  EXPECT_TRUE(
      says_of_file("TOPO01", "<system version=\"1\">\n" + kCpu + "\n</system>\n").one(Severity::error))
      << "never closed";
  EXPECT_TRUE(says_of_file("TOPO01", "<system version=\"3\">\n</system>\n").one(Severity::error))
      << "another version";
  EXPECT_TRUE(says_of_file("TOPO01", "<system>\n</system>\n").one(Severity::error)) << "no version";
}

TEST(Topo01, CountsTheLimitOfStrings) {
  EXPECT_TRUE(says_of_file("TOPO01", system_of("<pci busid=\"" + std::string(253, 'a') + "\"/>")).clean());
  EXPECT_TRUE(says_of_file("TOPO01", system_of("<pci busid=\"" + std::string(254, 'a') + "\"/>"))
                  .one(Severity::error));
}

TEST(Topo01, LostAttributesAreInfo) {
  EXPECT_TRUE(says_of_file("TOPO01", system_of("<pci busid=\"a\"  class=\"b\"/>")).one(Severity::info));
  std::string many = "<pci";
  for (int i = 0; i < 17; ++i) many += " a" + std::to_string(i) + "=\"\"";
  EXPECT_TRUE(says_of_file("TOPO01", system_of(many + "/>")).one(Severity::info));
}

TEST(Topo01, IsSilentAboutRcclsFiles) {
  EXPECT_TRUE(
      says_of_file("TOPO01", "<system version=\"2\">\n</system>\n", "", SourceKind::rccl_topo_xml).clean());
}

TEST(Topo01, NeedsAFile) { EXPECT_TRUE(says("TOPO01", bare_metal()).not_evaluated()); }

TEST(NcclStrict, ReportsTheOpenElementAfterLaterRemarks) {
  const auto problems =
      parse::nccl_problems("<system version=\"1\">\n<cpu numaid=\"0\">\n<pci  busid=\"a\"/>\n");
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_FALSE(problems[0].fatal);
  EXPECT_EQ(problems[0].line, 3);
  EXPECT_TRUE(problems[1].fatal);
  EXPECT_EQ(problems[1].line, 2);
}

TEST(Topo02, WantsASystem) {
  const auto graph = says_beside("TOPO02", bare_metal(), "<graphs version=\"1\"></graphs>");
  ASSERT_TRUE(graph.one(Severity::error));
  EXPECT_NE(graph.findings[0].observed.find("NCCL_GRAPH_FILE"), std::string::npos);
  EXPECT_FALSE(says_beside("TOPO02", bare_metal(), "{\"a\": 1}").clean());
  EXPECT_TRUE(says_beside("TOPO02", bare_metal(), system_of("")).clean());
}

TEST(Topo03, ComparesWithTheMachine) {
  Machine machine = gpu_and_nic_on_a_switch();
  const auto here = pci("0000:03:00.0", "0x030200", "", "<gpu dev=\"0\"/>");
  const auto nic = pci("0000:04:00.0", "0x020700", "", "<nic/>");
  EXPECT_TRUE(says_beside("TOPO03", machine, system_of(here + "\n" + nic)).clean());
  EXPECT_TRUE(
      says_beside("TOPO03", machine, system_of(pci("0000:0b:00.0", "0x030200", "", ""))).one(Severity::warn))
      << "another GPU";
  EXPECT_TRUE(says_beside("TOPO03", machine,
                          system_of(here + "\n" + nic + "\n" + pci("0000:0b:00.0", "0x030200", "", "")))
                  .one(Severity::info))
      << "more devices than the machine has";
  EXPECT_TRUE(
      says_beside("TOPO03", machine, system_of(pci("ffff:ff:01.0", "0x060400", "", here + "\n" + nic)))
          .clean())
      << "synthetic switch";
  EXPECT_TRUE(says_beside("TOPO03", machine, system_of(pci("0000:02:00.0", "0x060400", "", ""))).clean())
      << "skeleton";
  EXPECT_TRUE(says_of_file("TOPO03", system_of(here)).not_evaluated()) << "away from its machine";
}

TEST(Topo03, ReadsBusIdsLikeTheKernel) {
  Machine machine = bare_metal();
  add_gpu(machine, "0001:00:00.0", kH100);
  EXPECT_TRUE(says_beside("TOPO03", machine, system_of(pci("0001:00:00.0", "0x030200", "", ""))).clean());
  EXPECT_TRUE(
      says_beside("TOPO03", machine, system_of(pci("0000:00:00.0", "0x030200", "", ""))).one(Severity::warn));
}

std::string cpus_of(const std::string& first, const std::string& second, const std::string& numaid = "1") {
  return "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"" + first +
         "\" arch=\"arm64\"/>\n<cpu numaid=\"" + numaid + "\" affinity=\"" + second +
         "\" arch=\"arm64\"/>\n</system>\n";
}

TEST(Topo04, FindsOverlap) {
  const auto overlap = says_of_file("TOPO04", cpus_of("0000ffff", "0001ff00"));
  ASSERT_TRUE(overlap.one(Severity::warn));
  EXPECT_NE(overlap.findings[0].observed.find("8-15"), std::string::npos);
  EXPECT_TRUE(says_of_file("TOPO04", cpus_of("0000ffff", "ffff0000")).clean());
  EXPECT_TRUE(says_of_file("TOPO04", cpus_of("0000ffff", "0000ffff", "0")).clean())
      << "one node written twice";
  EXPECT_TRUE(says_of_file("TOPO04", cpus_of("ff", "")).clean()) << "no mask";
}

TEST(Topo05, ComparesWithTheNodes) {
  Machine machine = bare_metal();
  add_nodes(machine, 2);
  EXPECT_TRUE(says_beside("TOPO05", machine, cpus_of("00ff", "ff00")).clean());
  EXPECT_TRUE(says_beside("TOPO05", machine, cpus_of("000f", "f000")).clean()) << "reserved CPUs";
  EXPECT_EQ(says_beside("TOPO05", machine, cpus_of("ff00", "00ff")).findings.size(), 2U) << "swapped nodes";
  EXPECT_TRUE(says_of_file("TOPO05", cpus_of("ff00", "00ff")).not_evaluated());
  machine.container = known(true);
  EXPECT_TRUE(says_beside("TOPO05", machine, cpus_of("ff00", "00ff")).not_evaluated());
}

std::string three_cpus(const std::string& a, const std::string& b, const std::string& c) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"" + a +
         "\" arch=\"arm64\"/>\n<cpu numaid=\"1\" affinity=\"" + b +
         "\" arch=\"arm64\"/>\n<cpu numaid=\"2\" affinity=\"" + c + "\" arch=\"arm64\"/>\n</system>\n";
}

TEST(Topo06, FindsALostDigit) {
  const auto lost = says_of_file("TOPO06", three_cpus("00000f", "0000f0", "000700"));
  ASSERT_TRUE(lost.one(Severity::warn));
  EXPECT_EQ(lost.subject(), "node 2");
  EXPECT_TRUE(says_of_file("TOPO06", three_cpus("00000f", "0000f0", "000f00")).clean());
  EXPECT_TRUE(says_of_file("TOPO06", cpus_of("000f", "0070")).one(Severity::info))
      << "two nodes: which is wrong is not known";
  EXPECT_EQ(says_of_file("TOPO06", cpus_of("0000000f,0000000f", "000000f0,0000070")).findings.at(0).severity,
            Severity::warn)
      << "a word that lacks a digit";
}

TEST(Topo06, AGapIsInfo) {
  EXPECT_TRUE(says_of_file("TOPO06", cpus_of("000f", "0f00")).one(Severity::info));
  EXPECT_TRUE(says_of_file("TOPO06", cpus_of("000f", "0f00", "2")).clean())
      << "a node without devices is not in the file";
}

TEST(Topo07, FindsALinkToItself) {
  const auto self = says_of_file(
      "TOPO07", system_of(pci("0000:0A:00.0", "0x030200", "",
                              "<gpu dev=\"0\">\n<nvlink target=\"0000:0a:00.0\" count=\"12\"/>\n</gpu>")));
  ASSERT_TRUE(self.one(Severity::warn));
  EXPECT_EQ(self.findings[0].line, 5);
  EXPECT_TRUE(
      says_of_file("TOPO07",
                   system_of(pci("0000:0a:00.0", "0x030200", "",
                                 "<gpu dev=\"0\">\n<nvlink target=\"0000:0b:00.0\" count=\"12\"/>\n</gpu>")))
          .clean());
}

TEST(Topo08, ComparesWithTheDriver) {
  Machine machine = bare_metal();
  add_gpu(machine, "0000:0a:00.0", kA6000);
  add_gpu(machine, "0000:0b:00.0", kA6000);
  const auto file = [](const char* count) {
    return system_of(pci(
        "0000:0a:00.0", "0x030200", "",
        std::string("<gpu dev=\"0\">\n<nvlink target=\"0000:0b:00.0\" count=\"") + count + "\"/>\n</gpu>"));
  };
  EXPECT_TRUE(says_beside("TOPO08", machine, file("4")).not_evaluated());
  machine.topology.gpus[0].links = {{"GPU1", 4, false, {}}};
  EXPECT_TRUE(says_beside("TOPO08", machine, file("4")).clean());
  EXPECT_TRUE(says_beside("TOPO08", machine, file("3")).one(Severity::warn));
  EXPECT_TRUE(says_beside("TOPO08", machine, system_of("")).clean()) << "NCCL asks NVML";
  EXPECT_TRUE(says_of_file("TOPO08", file("4")).not_evaluated());
}

TEST(Topo08, ComparesTheNumberOfLinksBehindASwitch) {
  Machine machine = bare_metal();
  add_gpu(machine, "0000:0a:00.0", kA6000);
  add_gpu(machine, "0000:0b:00.0", kA6000);
  auto& gpu = machine.topology.gpus[0];
  const auto file = [](const char* count) {
    return system_of(
        pci("0000:0a:00.0", "0x030200", "",
            std::string("<gpu dev=\"0\">\n<nvlink target=\"0000:c1:00.0\" tclass=\"0x068000\" count=\"") +
                count + "\"/>\n</gpu>"));
  };
  gpu.links = {{"GPU1", 18, false, {}}};
  gpu.nvlinks = 18;
  EXPECT_TRUE(says_beside("TOPO08", machine, file("18")).clean());
  EXPECT_TRUE(says_beside("TOPO08", machine, file("12")).one(Severity::warn));
  gpu.nvlinks.reset();
  EXPECT_TRUE(says_beside("TOPO08", machine, file("18")).not_evaluated());
}

std::string with_speed(const std::string& speed) {
  return system_of(
      pci("0000:0a:00.0", "0x030200", "link_speed=\"" + speed + "\" link_width=\"16\"", "<gpu dev=\"0\"/>"));
}

TEST(Topo09, KnowsNcclsDictionary) {
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("16.0 GT/s")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("64 GT/s")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("16.0 GT/s PCIe")).clean());
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("32 GT/s")).clean());
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("8.0 GT/s")).clean()) << "Gen3 anyway";
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("")).one(Severity::info));
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("Unknown")).one(Severity::info));
}

TEST(Topo09, KnowsTheOldDictionary) {
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("16.0 GT/s PCIe"), "2.11.4").one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("16.0 GT/s PCIe"), "2.12.0").clean());
  EXPECT_TRUE(says_of_file("TOPO09", with_speed("16 GT/s"), "2.11.4").clean());
}

TEST(Topo09, LooksOnlyAboveGpusAndNics) {
  EXPECT_TRUE(says_of_file("TOPO09", system_of(pci("0000:01:00.0", "0x060400", "link_speed=\"16.0 GT/s\"",
                                                   pci("0000:02:00.0", "0x010802", "", ""))))
                  .clean());
  EXPECT_TRUE(says_of_file("TOPO09", system_of(pci("0000:01:00.0", "0x060400", "link_speed=\"16.0 GT/s\"",
                                                   pci("0000:02:00.0", "0x020000", "", ""))))
                  .one(Severity::warn));
}

std::string below_switch(const std::string& sw, const std::string& device,
                         const std::string& cls = "0x030200") {
  return system_of(pci("0000:01:00.0", "0x060400", sw, pci("0000:02:00.0", cls, device, "")));
}

TEST(Topo10, FindsASlowUplink) {
  const std::string fast = "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"",
                    slow = "link_speed=\"2.5 GT/s PCIe\" link_width=\"1\"",
                    gen4 = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
  const auto found = says_of_file("TOPO10", below_switch(slow, fast));
  ASSERT_TRUE(found.one(Severity::warn));
  EXPECT_EQ(found.subject(), "0000:01:00.0");
  EXPECT_NE(found.findings[0].observed.find("0.19"), std::string::npos);
  EXPECT_TRUE(says_of_file("TOPO10", below_switch(gen4, fast)).clean()) << "half, not less than half";
  EXPECT_TRUE(says_of_file("TOPO10", below_switch(fast, slow)).clean())
      << "the device is slower than its switch";
  EXPECT_TRUE(says_of_file("TOPO10", below_switch(slow, fast, "0x010802")).clean()) << "storage";
  EXPECT_TRUE(says_of_file("TOPO10", below_switch("", fast)).clean()) << "unknown";
}

TEST(Topo10, KnowsTheSwitchOnAmdCards) {
  const auto card = system_of(
      pci("0000:01:00.0", "0x060400", "vendor=\"0x1022\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\"",
          pci("0000:02:00.0", "0x038000", "vendor=\"0x1002\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"",
              "")));
  EXPECT_TRUE(says_of_file("TOPO10", card).clean());
}

TEST(Topo11, WantsWhatNcclNeeds) {
  const auto cpu = [](const std::string& attributes, const std::string& inside = "") {
    return "<system version=\"1\">\n<cpu numaid=\"0\"" + attributes + ">\n" + inside +
           "\n</cpu>\n</system>\n";
  };
  EXPECT_TRUE(says_of_file("TOPO11", cpu("")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO11", cpu(" arch=\"x86_64\"")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO11", cpu(" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\""))
                  .one(Severity::warn));
  EXPECT_TRUE(
      says_of_file("TOPO11", cpu(" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\""))
          .clean());
  EXPECT_TRUE(says_of_file("TOPO11", cpu(" arch=\"x86_64\" vendor=\"AuthenticAMD\"")).clean());
  EXPECT_TRUE(says_of_file("TOPO11", cpu(" arch=\"arm64\"")).clean());
  EXPECT_TRUE(says_of_file("TOPO11", cpu("", pci("0000:0a:00.0", "0x030200", "", ""))).one(Severity::info))
      << "NCCL may fill it in";
  EXPECT_TRUE(says_of_file("TOPO11", cpu("", "<pci busid=\"0000:0a:00.0\"/>")).one(Severity::info))
      << "a device that NCCL reads the class of";
}

TEST(Topo12, KnowsTheLimitsOfEachVersion) {
  std::string many;
  for (int i = 0; i < 40; ++i) many += "<pci busid=\"0000:00:" + std::to_string(i) + "\"/>\n";
  EXPECT_TRUE(says_of_file("TOPO12", system_of(many), "2.20.5").one(Severity::error));
  EXPECT_TRUE(says_of_file("TOPO12", system_of(many), "2.21.5").clean());
  EXPECT_TRUE(says_of_file("TOPO12", system_of(many)).one(Severity::info)) << "version not known";
  EXPECT_TRUE(says_of_file("TOPO12", system_of("")).clean());
  std::string elements;
  for (int i = 0; i < 20; ++i)
    elements +=
        pci("0000:01:00.0", "0x060400", "",
            std::string(
                "<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>\n<x/>")) +
        "\n";
  EXPECT_TRUE(says_of_file("TOPO12", system_of(elements), "2.21.5").one(Severity::error))
      << "300 elements of one rank";
  EXPECT_TRUE(says_of_file("TOPO12", system_of(elements), "2.20.5").clean());
}

TEST(Topo13, WantsNodes) {
  EXPECT_TRUE(says_of_file("TOPO13", cpus_of("ff", "ff00", "-1")).one(Severity::warn));
  EXPECT_TRUE(
      says_of_file("TOPO13", "<system version=\"1\">\n<cpu numaid=\"-1\"/>\n</system>").one(Severity::info));
  EXPECT_TRUE(says_of_file("TOPO13", cpus_of("ff", "ff00")).clean());
}

TEST(Topo14, NicPlaces) {
  EXPECT_TRUE(says_of_file("TOPO14", system_of(pci("0000:01:00.0", "0x030200", "", "<nic>\n</nic>")))
                  .one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO14", system_of(pci("0000:01:00.0", "0x060000", "", "<nic>\n</nic>")))
                  .one(Severity::warn));
  EXPECT_TRUE(
      says_of_file("TOPO14", system_of(pci("0000:01:00.0", "0x020000", "", "<nic>\n</nic>"))).clean());
  EXPECT_TRUE(says_of_file("TOPO14", system_of("<nic>\n</nic>")).clean()) << "a virtual NIC under its cpu";
}

std::string net(const std::string& speed) {
  return system_of(pci("0000:01:00.0", "0x020000", "", "<nic>\n<net name=\"mlx5_0\"" + speed + "/>\n</nic>"));
}

TEST(Topo15, SpeedsInMegabits) {
  EXPECT_TRUE(says_of_file("TOPO15", net(" speed=\"400000\"")).clean());
  EXPECT_TRUE(says_of_file("TOPO15", net(" speed=\"3200000\"")).clean());
  EXPECT_TRUE(says_of_file("TOPO15", net(" speed=\"3200001\"")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO15", net(" speed=\"0\"")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO15", net(" speed=\"-1\"")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO15", net("")).clean());
}

TEST(Topo16, VirtualInterfaces) {
  const auto file = [](const std::string& real, const std::string& odd, const std::string& speed) {
    return system_of(
        pci("0000:01:00.0", "0x020000", "", "<nic>\n<net name=\"" + real + "\" speed=\"1000\"/>\n</nic>") +
        "\n<nic>\n<net name=\"" + odd + "\" speed=\"" + speed + "\"/>\n</nic>");
  };
  EXPECT_TRUE(says_of_file("TOPO16", file("eno1", "veth12", "10000")).one(Severity::warn));
  EXPECT_TRUE(says_of_file("TOPO16", file("eno1", "veth12", "1000")).clean()) << "not faster";
  EXPECT_TRUE(says_of_file("TOPO16", file("mlx5_0", "veth12", "10000")).clean()) << "RDMA is present";
  EXPECT_TRUE(says_of_file("TOPO16", file("eno1", "bond0", "10000")).clean()) << "a bond is real";
}

TEST(Topo17, FindsContradictions) {
  Machine machine = matrix_of(2);
  state_path(machine, "GPU0", "GPU1", PathType::sys);
  machine.topology.gpus[0].cpus = cpus(0, 15);
  machine.topology.gpus[0].numa = 0;
  machine.topology.gpus[1].cpus = cpus(8, 23);
  machine.topology.gpus[1].numa = 1;
  EXPECT_TRUE(says("TOPO17", machine).one(Severity::warn));
  machine.topology.gpus[1].numa = 0;
  EXPECT_TRUE(says("TOPO17", machine).clean()) << "one node";
  machine.topology.gpus[1].numa.reset();
  EXPECT_TRUE(says("TOPO17", machine).clean()) << "N/A";
  machine.topology.warnings.push_back({"reversed-range", "31-0", 3});
  EXPECT_TRUE(says("TOPO17", machine).one(Severity::warn));
  EXPECT_TRUE(says("TOPO17", bare_metal()).not_evaluated());
}

TEST(Topo18, SeesACpuset) {
  Machine machine = matrix_of(2);
  state_path(machine, "GPU0", "GPU1", PathType::node);
  for (auto& gpu : machine.topology.gpus) gpu.cpus = cpus(0, 0);
  EXPECT_TRUE(says("TOPO18", machine).one(Severity::info)) << "one CPU for two GPUs";
  for (auto& gpu : machine.topology.gpus) gpu.cpus = cpus(0, 7);
  EXPECT_TRUE(says("TOPO18", machine).clean()) << "one socket";
  machine.topology.stated[0].type = PathType::sys;
  EXPECT_TRUE(says("TOPO18", machine).one(Severity::info)) << "one list on both sides of the socket link";
}

}  // namespace
}  // namespace topotune::checks::test
