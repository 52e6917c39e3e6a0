#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "checks/rule.h"
#include "model/paths.h"

namespace topotune::plan {
namespace {

using model::ActionKind;
using testing::HasSubstr;

CpuSet cpus(const char* list) { return parse_cpu_list(list).value(); }

// Two nodes of eight cores with two threads each (0-7,16-23 and 8-15,24-31), two GPUs on each.
model::Machine two_nodes() {
  model::Machine machine;
  auto& topology = machine.topology;
  topology.source.name = "test";
  for (int node = 0; node < 2; ++node) {
    model::NumaNode one;
    one.id = node;
    one.cpus = cpus(node == 0 ? "0-7,16-23" : "8-15,24-31");
    one.distances = {{0, node == 0 ? 10 : 21}, {1, node == 0 ? 21 : 10}};
    topology.numa.push_back(one);
  }
  for (int core = 0; core < 16; ++core)
    topology.cores.push_back(cpus(fmt::format("{},{}", core, core + 16).c_str()));
  for (int i = 0; i < 4; ++i) {
    model::Gpu gpu;
    gpu.id = fmt::format("GPU{}", i);
    gpu.index = i;
    gpu.bdf = fmt::format("0000:{:02x}:00.0", 0x10 + i);
    gpu.numa = i / 2;
    topology.gpus.push_back(gpu);
  }
  return machine;
}

struct Made {
  model::Machine machine = two_nodes();
  model::Diagnosis diagnosis;
  Situation situation;
  std::vector<model::Path> paths;

  Result<model::Plan> plan() {
    paths = model::paths_of(machine.topology);
    situation.machine = &machine;
    situation.paths = &paths;
    situation.diagnosis = &diagnosis;
    return make_plan(situation);
  }
};

const model::Action* action(const model::Plan& plan, std::string_view id) {
  const auto at = std::ranges::find(plan.actions, id, &model::Action::id);
  return at == plan.actions.end() ? nullptr : &*at;
}

TEST(Bindings, EachGpuGetsItsNode) {
  Made made;
  const auto plan = made.plan();
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_EQ(plan->bindings.size(), 4U);
  EXPECT_EQ(plan->bindings[0].cpus.to_list(), "0-7,16-23");
  EXPECT_EQ(plan->bindings[3].cpus.to_list(), "8-15,24-31");
  EXPECT_EQ(plan->bindings[3].memory_node, 1);
}

TEST(Bindings, SharesAreWholeCores) {
  Made made;
  made.situation.job.binding = BindingPolicy::share;
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bindings[0].cpus.to_list(), "0-3,16-19");
  EXPECT_EQ(plan->bindings[1].cpus.to_list(), "4-7,20-23");
  EXPECT_EQ(plan->bindings[0].workers, 1);  // four cores: the rank and NCCL's threads take three
  EXPECT_FALSE(plan->bindings[0].cpus.intersects(plan->bindings[1].cpus));
}

TEST(Bindings, SiblingsByTheRangesOfTheList) {
  Made made;
  made.machine.topology.cores.clear();
  auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bindings[0].share.to_list(), "0-3,16-19") << "the two threads of four cores";
  EXPECT_EQ(plan->bindings[1].share.to_list(), "4-7,20-23");
  made.machine.cgroup_cpus = model::Fact<CpuSet>::of(cpus("0-7,16-20,24-31"), "test");
  made.situation.job.binding = BindingPolicy::share;
  plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->bindings[0].share.empty());
  EXPECT_EQ(plan->bindings[0].cpus.to_list(), "0-7,16-20");
  EXPECT_THAT(plan->bindings[0].why, HasSubstr("no share of its own"));
}

TEST(Bindings, StayInsideTheCpuset) {
  Made made;
  made.machine.cgroup_cpus = model::Fact<CpuSet>::of(cpus("2-3,8-9"), "test");
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->bindings[0].cpus.to_list(), "2-3");
  EXPECT_EQ(plan->bindings[2].cpus.to_list(), "8-9");
  EXPECT_THAT(plan->bindings[0].why, HasSubstr("inside the cpuset"));
}

TEST(Bindings, ACpusetWithoutTheNodeIsRefused) {
  Made made;
  made.machine.cgroup_cpus = model::Fact<CpuSet>::of(cpus("0-3"), "test");
  const auto plan = made.plan();
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().text, "GPU2: the CPUs 8-15,24-31 of its node 1 are outside the cpuset 0-3");
  made.situation.any_cpus = true;
  const auto anyway = made.plan();
  ASSERT_TRUE(anyway);
  EXPECT_EQ(anyway->bindings[2].cpus.to_list(), "0-3");
}

TEST(Bindings, AnUnknownNodeLeavesEverythingAndSaysSo) {
  Made made;
  made.machine.topology.gpus[0].numa.reset();
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->bindings[0].memory_node);
  EXPECT_THAT(plan->bindings[0].why, HasSubstr("not known"));
}

TEST(Bindings, AMatrixThatACpusetCutBindsNothing) {
  Made made;
  made.machine.topology.source.kind = model::SourceKind::nvidia_smi_topo;
  made.diagnosis.findings = {checks::finding("TOPO18", "matrix", "", "", {})};
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->bindings[0].cpus.empty());
  EXPECT_THAT(plan->bindings[0].why, HasSubstr("TOPO18"));
}

model::Finding unset(const char* name, model::Severity severity = model::Severity::error) {
  model::Finding finding;
  finding.rule = "NCCL02";
  finding.severity = severity;
  finding.title = fmt::format("{} is harmful", name);
  finding.observed = "1";
  finding.action = fmt::format("unset-{}", name);
  finding.file = "/etc/nccl.conf";
  finding.line = 2;
  return finding;
}

TEST(Environment, HarmfulVariablesAreTakenOut) {
  Made made;
  made.diagnosis.findings = {unset("NCCL_P2P_DISABLE"), unset("NCCL_DEBUG", model::Severity::info)};
  made.situation.conf_files["/etc/nccl.conf"] = "# site\nNCCL_P2P_DISABLE=1\nNCCL_DEBUG=WARN";
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  const auto* gone = action(*plan, "unset-NCCL_P2P_DISABLE");
  ASSERT_NE(gone, nullptr);
  EXPECT_FALSE(gone->value);
  EXPECT_EQ(gone->where, "/etc/nccl.conf:2");
  EXPECT_EQ(gone->risk, model::ActionRisk::low) << "it may hide a fault";
  EXPECT_EQ(action(*plan, "unset-NCCL_DEBUG"), nullptr);  // a remark is no reason to change anything
  const auto* file = action(*plan, "edit-/etc/nccl.conf");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->value, "# site\nNCCL_DEBUG=WARN");
  EXPECT_EQ(file->observed, "# site\nNCCL_P2P_DISABLE=1\nNCCL_DEBUG=WARN");
}

TEST(Environment, AWarningIsLeftToAPerson) {
  Made made;
  auto pinned = unset("NCCL_ALGO", model::Severity::warn);
  pinned.subject = "NCCL_ALGO";
  pinned.remedy = "a tuner plugin";
  auto interface = pinned;
  interface.subject = "NCCL_SOCKET_IFNAME";
  interface.action = "fix-NCCL_SOCKET_IFNAME";
  made.diagnosis.findings = {pinned, interface};
  made.situation.settings = {{"NCCL_ALGO", "Ring", "job.sh:1"}, {"NCCL_SOCKET_IFNAME", "lo", "job.sh:2"}};
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(action(*plan, "unset-NCCL_ALGO"), nullptr);
  EXPECT_THAT(plan->notes, testing::Contains(HasSubstr("NCCL_ALGO=Ring (job.sh:1) stays unless a person")));
  EXPECT_THAT(plan->notes, testing::Contains(HasSubstr("NCCL_SOCKET_IFNAME=lo (job.sh:2)")));
}

model::RdmaPort port(const char* device, const char* gid) {
  model::RdmaPort out;
  out.device = device;
  out.state = "ACTIVE";
  out.link_layer = "Ethernet";
  out.gbits_per_s = 400;
  out.gids = {{0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", ""}, {3, gid, "RoCE v2", ""}};
  return out;
}

void add_nic(model::Machine& machine, const char* name, const char* bdf, const char* parent,
             const char* root) {
  model::Nic nic;
  nic.index = static_cast<int>(machine.topology.nics.size());
  nic.id = fmt::format("NIC{}", nic.index);
  nic.name = name;
  nic.bdf = bdf;
  nic.rdma = true;
  machine.topology.nics.push_back(nic);
  model::PciDevice device;
  device.id = bdf;
  device.parent = parent;
  device.root = root;
  device.kind = model::PciKind::nic;
  machine.topology.pci.push_back(device);
  auto one = port(name, "0000:0000:0000:0000:0000:ffff:0a00:0001");
  one.bdf = bdf;
  machine.ports.push_back(one);
}

// mlx5_0 under GPU0's switch, mlx5_9 on another host bridge.
void add_rails(model::Machine& machine) {
  auto& topology = machine.topology;
  topology.tree_known = true;
  for (const auto& gpu : topology.gpus) {
    model::PciDevice device;
    device.id = *gpu.bdf;
    device.parent = gpu.index == 0 ? "0000:02:00.0" : "";
    device.root = gpu.index == 0 ? "0000:00" : "0000:80";
    device.kind = model::PciKind::gpu;
    topology.pci.push_back(device);
  }
  for (const auto& [id, parent] :
       {std::pair{"0000:00:01.0", ""}, std::pair{"0000:01:00.0", "0000:00:01.0"},
        std::pair{"0000:02:00.0", "0000:01:00.0"}, std::pair{"0000:02:01.0", "0000:01:00.0"}}) {
    model::PciDevice bridge;
    bridge.id = id;
    bridge.parent = parent;
    bridge.root = "0000:00";
    bridge.kind = model::PciKind::bridge;
    topology.pci.push_back(bridge);
  }
  add_nic(machine, "mlx5_0", "0000:03:00.0", "0000:02:01.0", "0000:00");
  add_nic(machine, "mlx5_9", "0000:90:00.0", "", "0000:90");
}

TEST(Environment, RailsAreNamedOnlyForSeveralNodes) {
  Made made;
  add_rails(made.machine);
  auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(action(*plan, "set-NCCL_IB_HCA"), nullptr);
  made.situation.job.nodes = 2;
  plan = made.plan();
  ASSERT_TRUE(plan);
  const auto* hca = action(*plan, "set-NCCL_IB_HCA");
  ASSERT_NE(hca, nullptr);
  EXPECT_EQ(hca->value, "=mlx5_0:1");
}

TEST(Environment, TheGidIndexFollowsTheVersion) {
  Made made;
  add_rails(made.machine);
  made.situation.job.nodes = 2;
  for (const auto& [version, set] : {std::pair{"2.19.4", true}, std::pair{"2.21.5", false},
                                     std::pair{"2.28.9", false}, std::pair{"", false}}) {
    made.situation.nccl_version = version;
    const auto plan = made.plan();
    ASSERT_TRUE(plan);
    const auto* gid = action(*plan, "set-NCCL_IB_GID_INDEX");
    EXPECT_EQ(gid != nullptr, set) << version;
    if (gid != nullptr) {
      EXPECT_EQ(gid->value, "3");
    }
  }
}

TEST(Environment, C2cSettingsOfOneVersionOnly) {
  Made made;
  made.machine.topology.gpus[0].c2c = model::C2cLink{1, {}};
  made.situation.job.nodes = 2;
  made.situation.nccl_version = "2.26.5";
  EXPECT_NE(action(*made.plan(), "set-NCCL_NET_GDR_C2C"), nullptr);
  made.situation.nccl_version = "2.27.3";
  EXPECT_EQ(action(*made.plan(), "set-NCCL_NET_GDR_C2C"), nullptr);
  EXPECT_NE(action(*made.plan(), "set-NCCL_PXN_C2C"), nullptr);
  made.situation.nccl_version = "2.28.3";
  EXPECT_EQ(action(*made.plan(), "set-NCCL_PXN_C2C"), nullptr);
}

TEST(Environment, TrafficClassIsDscpWithEcn) {
  Made made;
  made.situation.job.dscp = 26;
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(action(*plan, "set-NCCL_IB_TC")->value, "106");
}

TEST(Ucx, TheNcclPluginNeedsItsSwitchAndNoCuda) {
  Made made;
  made.situation.job.transport = Transport::nccl_over_ucx;
  made.situation.settings = {{"UCX_TLS", "rc,cuda", "environment"}};
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(action(*plan, "set-NCCL_PLUGIN_P2P")->value, "ucx");
  EXPECT_NE(action(*plan, "unset-UCX_TLS"), nullptr);
}

TEST(Kernel, ActionsComeFromFindings) {
  Made made;
  made.machine.numa_balancing = model::Fact<int>::of(1, "test");
  EXPECT_EQ(action(*made.plan(), "numa-balancing-off"), nullptr);
  made.diagnosis.findings = {checks::finding("NUMA06", "host", "0", "1", {})};
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  const auto* off = action(*plan, "numa-balancing-off");
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(off->observed, "1");
  EXPECT_EQ(off->value, "0");
  EXPECT_TRUE(off->automatic);
}

TEST(Kernel, HugePagesOnRequestWhereNobodyCanHaveThem) {
  Made made;
  EXPECT_EQ(action(*made.plan(), "huge-pages-on-request"), nullptr) << "not known";
  made.machine.thp = model::Fact<std::string>::of("never", "test");
  const auto plan = made.plan();
  const auto* pages = action(*plan, "huge-pages-on-request");
  ASSERT_NE(pages, nullptr);
  EXPECT_EQ(pages->target, "/sys/kernel/mm/transparent_hugepage/enabled");
  EXPECT_EQ(pages->value, "madvise");
  EXPECT_EQ(pages->observed, "never");
  EXPECT_EQ(pages->basis, model::ActionBasis::convention);
  EXPECT_TRUE(pages->automatic);
  made.machine.container = model::Fact<bool>::of(true, "test");
  EXPECT_EQ(action(*made.plan(), "huge-pages-on-request"), nullptr) << "the host's setting";
  made.machine.container = model::Fact<bool>::of(false, "test");
  for (const char* set : {"madvise", "always"}) {
    made.machine.thp = model::Fact<std::string>::of(set, "test");
    EXPECT_EQ(action(*made.plan(), "huge-pages-on-request"), nullptr) << set;
  }
  EXPECT_THAT(made.plan()->notes, testing::Contains(HasSubstr("huge pages stay at \"always\"")));
}

// ---- what was measured

model::LogCost p2p_cost(double with, double without) {
  model::LogCost cost;
  cost.settings = {"NCCL_P2P_DISABLE=1"};
  cost.bytes = 1 << 30;
  cost.with_gbytes_per_s = with;
  cost.without_gbytes_per_s = without;
  return cost;
}

// A plan that takes NCCL_P2P_DISABLE out, with what was measured about it.
Made with_p2p_off(std::vector<MeasuredEffect> measured) {
  Made made;
  auto off = checks::finding("NCCL02", "NCCL_P2P_DISABLE", "unset", "1", {});
  off.action = "unset-NCCL_P2P_DISABLE";
  made.diagnosis.findings = {off};
  made.situation.settings = {{"NCCL_P2P_DISABLE", "1", "environment"}};
  made.situation.measured = std::move(measured);
  return made;
}

TEST(Measured, AnActionCarriesItsNumber) {
  auto none = with_p2p_off({});
  EXPECT_EQ(action(*none.plan(), "unset-NCCL_P2P_DISABLE")->basis, model::ActionBasis::documented);
  const std::vector costs{p2p_cost(26.9, 327.4)};
  auto made = with_p2p_off(effects_of(costs, "run.json"));
  const auto plan = made.plan();
  const auto* off = action(*plan, "unset-NCCL_P2P_DISABLE");
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(off->basis, model::ActionBasis::measured);
  EXPECT_THAT(off->reason,
              HasSubstr("measured here: 26.9 GB/s with NCCL_P2P_DISABLE=1, 327.4 GB/s without it "
                        "(bus bandwidth at 1073741824 bytes)"));
  EXPECT_THAT(off->source, HasSubstr("run.json"));
  // Of others nothing was measured.
  EXPECT_EQ(action(*plan, "set-CUDA_DEVICE_ORDER")->basis, model::ActionBasis::documented);
}

TEST(Measured, WithoutAGainItStaysANote) {
  for (const double without : {26.0, 27.0, 13.0}) {
    const std::vector costs{p2p_cost(26.9, without)};
    auto made = with_p2p_off(effects_of(costs, "run.json"));
    const auto plan = made.plan();
    EXPECT_EQ(action(*plan, "unset-NCCL_P2P_DISABLE")->basis, model::ActionBasis::documented) << without;
    EXPECT_THAT(plan->notes, testing::Contains(HasSubstr("run.json shows no gain"))) << without;
  }
  auto two = p2p_cost(26.9, 327.4);
  two.settings.emplace_back("NCCL_SHM_DISABLE=1");
  EXPECT_TRUE(effects_of(std::vector{two}, "run.json").empty()) << "which of both it was is not known";
}

model::Measurement measurement(std::string name, double median, double width) {
  model::Measurement m;
  m.name = std::move(name);
  m.params = {{"gpu", std::string("GPU0")}};
  m.unit = "gbytes_per_s";
  m.median = median;
  m.ci95 = model::Interval{median - width, median + width};
  return m;
}

NamedRun bench_run(std::string name, std::string balancing, double h2d, double d2h) {
  NamedRun out{std::move(name), {}};
  out.run.machine = {{"gpus", "4 x X"}, {"numa_balancing", std::move(balancing)}};
  out.run.results = {measurement("host.h2d", h2d, 0.5), measurement("host.d2h", d2h, 0.5)};
  return out;
}

Made with_balancing(std::vector<NamedRun> runs) {
  Made made;
  made.machine.numa_balancing = model::Fact<int>::of(1, "test");
  made.diagnosis.findings = {checks::finding("NUMA06", "host", "0", "1", {})};
  made.situation.measured = effects_of(std::span<const NamedRun>(runs));
  return made;
}

TEST(Measured, TwoRunsThatDifferInOneSetting) {
  auto made = with_balancing({bench_run("on.json", "1", 40, 50), bench_run("off.json", "0", 55, 50)});
  const auto plan = made.plan();
  const auto* off = action(*plan, "numa-balancing-off");
  ASSERT_NE(off, nullptr);
  EXPECT_EQ(off->basis, model::ActionBasis::measured);
  EXPECT_THAT(off->reason,
              HasSubstr("40.0 GB/s with numa_balancing=1, 55.0 GB/s with numa_balancing=0 (host.h2d "
                        "gpu=GPU0); 1 of 2 results better"));
  // The file for the next boot was not measured.
  EXPECT_EQ(action(*plan, "numa-balancing-file")->basis, model::ActionBasis::documented);
}

TEST(Measured, RunsProveNothingWhereTheyDifferOtherwise) {
  auto other = bench_run("off.json", "0", 55, 50);
  other.run.machine.emplace_back("kernel", "6.9");
  auto made = with_balancing({bench_run("on.json", "1", 40, 50), other});
  EXPECT_EQ(action(*made.plan(), "numa-balancing-off")->basis, model::ActionBasis::documented);
  auto mixed = with_balancing({bench_run("on.json", "1", 40, 50), bench_run("off.json", "0", 55, 40)});
  EXPECT_EQ(action(*mixed.plan(), "numa-balancing-off")->basis, model::ActionBasis::documented)
      << "one is worse";
  auto close = with_balancing({bench_run("on.json", "1", 40, 50), bench_run("off.json", "0", 40.6, 50.6)});
  EXPECT_EQ(action(*close.plan(), "numa-balancing-off")->basis, model::ActionBasis::documented) << "noise";
}

TEST(Measured, ResultsOfOneRunThatDifferInAVariable) {
  NamedRun run{"coll.json", {}};
  auto off = measurement("coll.all_reduce", 28, 0.5), on = measurement("coll.all_reduce", 330, 0.5);
  off.params.push_back({"NCCL_P2P_DISABLE", std::int64_t{1}});
  run.run.results = {off, on};
  auto made = with_p2p_off(effects_of(std::span<const NamedRun>(&run, 1)));
  const auto plan = made.plan();
  EXPECT_EQ(action(*plan, "unset-NCCL_P2P_DISABLE")->basis, model::ActionBasis::measured);
  EXPECT_THAT(action(*plan, "unset-NCCL_P2P_DISABLE")->reason,
              HasSubstr("330.0 GB/s without NCCL_P2P_DISABLE"));
}

TEST(Kernel, TheLayerThatLimitsMemlockFollowsTheLauncher) {
  Made made;
  made.diagnosis.findings = {checks::finding("KERN01", "this process", "unlimited", "64 KiB", {})};
  EXPECT_NE(action(*made.plan(), "memlock-login"), nullptr);
  made.situation.job.launcher = "srun";
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(action(*plan, "memlock-slurmd")->target,
            "/etc/systemd/system/slurmd.service.d/90-topotune-memlock.conf");
  made.machine.container = model::Fact<bool>::of(true, "test");
  EXPECT_FALSE(action(*made.plan(), "memlock-container")->automatic);
}

TEST(Pcie, AcsOnlyOfBridgesThatRedirect) {
  Made made;
  add_rails(made.machine);
  for (auto& device : made.machine.topology.pci)
    if (device.id == "0000:02:00.0") device.acs_control = 0x1d;
  made.diagnosis.findings = {checks::finding("ACS01", "0000:02:00.0", "", "", {}),
                             checks::finding("ACS01", "0000:02:01.0", "", "", {})};
  auto plan = made.plan();
  ASSERT_TRUE(plan);
  const auto* acs = action(*plan, "acs-0000:02:00.0");
  ASSERT_NE(acs, nullptr);
  EXPECT_EQ(acs->value, "0x0001");  // source validation stays
  EXPECT_EQ(action(*plan, "acs-0000:02:01.0"), nullptr);
  made.machine.topology.pci[0].driver = "vfio-pci";
  plan = made.plan();
  EXPECT_FALSE(action(*plan, "acs-0000:02:00.0")->automatic);
}

TEST(Pcie, ReadRequestsAreTheHostsBusinessInAVirtualMachine) {
  Made made;
  add_rails(made.machine);
  for (auto& device : made.machine.topology.pci)
    if (device.id == "0000:03:00.0") device.max_read_request = 512;
  made.diagnosis.findings = {checks::finding("PCIE07", "mlx5_0", "", "", {})};
  auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_TRUE(action(*plan, "max-read-request-0000:03:00.0")->automatic);
  made.machine.virtual_machine = model::Fact<bool>::of(true, "test");
  plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_FALSE(action(*plan, "max-read-request-0000:03:00.0")->automatic);
}

TEST(Network, VectorsGoToTheNicsNodeAwayFromTheRanks) {
  Made made;
  add_rails(made.machine);
  for (auto& device : made.machine.topology.pci)
    if (device.id == "0000:03:00.0") device.numa = 1;
  made.machine.topology.gpus.resize(1);
  made.machine.interrupts = {{40, "mlx5_0", cpus("0")}, {41, "mlx5_0", cpus("0")}};
  made.machine.irqbalance = model::Fact<bool>::of(true, "test");
  made.diagnosis.findings = {checks::finding("IRQ03", "mlx5_0", "", "", {})};
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(action(*plan, "irq-40")->value, "15");
  EXPECT_EQ(action(*plan, "irq-41")->value, "31");
  EXPECT_THAT(*action(*plan, "irqbalance-file")->value, HasSubstr("--banirq=40 --banirq=41"));
  EXPECT_EQ(plan->bindings[0].cpus.to_list(), "0-7,16-23");
}

TEST(Plan, HarmlessFirstAndNoIdTwice) {
  Made made;
  made.machine.numa_balancing = model::Fact<int>::of(1, "test");
  made.situation.job.dscp = 26;
  made.diagnosis.findings = {checks::finding("ACS03", "GPU0", "", "", {}),
                             checks::finding("NUMA06", "host", "0", "1", {}), unset("NCCL_P2P_DISABLE"),
                             unset("NCCL_P2P_DISABLE")};
  const auto plan = made.plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->actions.front().id, "unset-NCCL_P2P_DISABLE");
  EXPECT_EQ(plan->actions.back().id, "iommu-passthrough");
  std::vector<std::string> ids;
  for (const auto& one : plan->actions) ids.push_back(one.id);
  std::ranges::sort(ids);
  EXPECT_EQ(std::ranges::adjacent_find(ids), ids.end());
}

}  // namespace
}  // namespace topotune::plan
