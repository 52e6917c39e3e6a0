// Conditions that the circulating advice does not reach: versions, both sides of a limit, corrections.
#include "lint/registry.h"
#include "lint/scan_yaml.h"
#include "lint/yaml_tree.h"
#include "lint_helpers.h"

namespace topotune::lint {
namespace {

using ::testing::HasSubstr;

std::string ids(const std::string& name, const std::string& text, std::string_view nccl = "") {
  return judged(name, text, with_nccl(nccl))->ids();
}

TEST(Versions, AMissingPartIsTheNewest) {
  EXPECT_GE(*parse_version("2.24"), since(2, 24, 3));
  EXPECT_LT(*parse_version("2.23.4-1"), since(2, 24));
  EXPECT_EQ(*parse_version("v2.27.3-1"), (Version{2, 27, 3}));
  EXPECT_EQ(parse_version("new"), std::nullopt);
  EXPECT_EQ(*parse_version("22705"), (Version{2, 27, 5}));
  EXPECT_EQ(*parse_version("2708"), (Version{2, 7, 8}));
  EXPECT_EQ(ids("a.env", "NCCL_VERSION=22705\nNCCL_ALGO=Ring,Tree,NVLS\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_VERSION=cuda12\nNCCL_ALGO=Ring,Tree,NVLS\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_VERSION=12.8\nNCCL_ALGO=Ring,Tree,NVLS\n"), "");
}

TEST(Registry, KnowsNamesTypesAndRange) {
  ASSERT_NE(find_nccl("NCCL_SOCKET_RETRY_CNT"), nullptr);
  EXPECT_EQ(find_nccl("NCCL_SOCKET_RETRY_CNT")->first, (Version{2, 24, 3}));
  EXPECT_EQ(find_nccl("NCCL_IB_TIMEOUT")->type, ValueType::integer);
  EXPECT_EQ(find_nccl("NCCL_MAX_CTAS")->type, ValueType::integer);
  EXPECT_EQ(find_nccl("NCCL_IB_HCA")->type, ValueType::text);
  EXPECT_EQ(nearest_nccl("NCCL_IB_TIMOUT", {}), "NCCL_IB_TIMEOUT");
  EXPECT_EQ(nearest_nccl("NCCL_DEUBG", {}), "NCCL_DEBUG");
  EXPECT_EQ(nearest_nccl("NCCL_QUITE_ANOTHER", {}), std::nullopt);
  EXPECT_NE(find_ucx("UCX_TLS"), nullptr);
}

TEST(Registry, ReadsNamesOutOfALibrary) {
  const auto names = names_in_library(std::string_view("\0NCCL_DEBUG\0xNCCL_IB_HCA=%s\0NCCL_\0", 34));
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("NCCL_DEBUG", "NCCL_IB_HCA"));
  Options options;
  options.library_names = {"NCCL_BRAND_NEW"};
  EXPECT_EQ(judged("a.env", "NCCL_BRAND_NEW=1\n", options)->ids(), "");
  EXPECT_EQ(judged("a.env", "NCCL_BRAND_NEW=1\n")->ids(), "NCCL01:warn:1");
}

TEST(Registry, ReadsIntegersAsStrtollDoes) {
  EXPECT_EQ(read_integer("yes").value, 0);
  EXPECT_FALSE(read_integer("yes").whole);
  EXPECT_EQ(read_integer("4M").value, 4);
  EXPECT_EQ(read_integer("0x10").value, 16);
  EXPECT_TRUE(read_integer("0x10").whole);
  EXPECT_EQ(read_integer("010").value, 8);
  EXPECT_TRUE(read_integer("010").octal);
  EXPECT_TRUE(read_integer("99999999999999999999").range);
}

TEST(Nccl01, AVariableYoungerThanTheLibrary) {
  EXPECT_EQ(ids("a.env", "NCCL_SOCKET_RETRY_CNT=50\n", "2.19"), "NCCL01:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_SOCKET_RETRY_CNT=50\n", "2.24"), "");
  EXPECT_EQ(ids("a.env", "NCCL_SOCKET_RETRY_CNT=50\n"), "");
}

TEST(Nccl01, NamesOfOthersAreNotJudged) {
  EXPECT_EQ(
      ids("a.env",
          "NCCL_TESTS_DEVICE=0\nNCCL_HOME=/x\nNCCL_SHARP_DISABLE=1\nNCCL_INSPECTOR_ENABLE=1\nMY_NCCL=1\n"),
      "");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\nexport NCCL_MODE_X=1\nif [ $NCCL_MODE_X = 1 ]; then run; fi\n"), "");
}

TEST(Nccl03, RemovedAndDeprecated) {
  EXPECT_EQ(ids("a.env", "NCCL_TREE_THRESHOLD=0\n"), "NCCL03:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_MNNVL=1\n", "2.20"), "");
  EXPECT_EQ(ids("a.env", "NCCL_MNNVL=1\n", "2.28"), "NCCL03:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_MAX_NCHANNELS=32\n"), "NCCL03:info:1");
  EXPECT_EQ(ids("a.env", "NCCL_LAUNCH_MODE=GROUP\n"), "NCCL03:info:1");
  EXPECT_EQ(judged("a.env", "NCCL_MNNVL=1\n")->fixed(), "NCCL_MNNVL_ENABLE=1\n");
}

TEST(Nccl02, OnlyTheValuesThatCodeTests) {
  EXPECT_EQ(ids("a.env", "NCCL_P2P_DISABLE=0\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_P2P_DISABLE=1\n"), "NCCL02:warn:1");
  EXPECT_THAT(ids("a.env", "NCCL_P2P_LEVEL=0\n"), HasSubstr("NCCL02"));
}

TEST(Nccl04, DependsOnTheVersion) {
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=Ring,Tree,NVLS,Foo\n", "2.24"), HasSubstr("NCCL04:error"));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=Ring,Tree,NVLS,Foo\n", "2.23"), HasSubstr("NCCL04:warn"));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=Foo\n", "2.19"), HasSubstr("NCCL04:error")) << "nothing is left";
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=ring,TREE,nvls\n", "2.27"), ::testing::Not(HasSubstr("NCCL04")));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=Ring,Tree,PAT,NVLS\n", "2.19"), HasSubstr("NCCL04"));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=allreduce:ring;broadcast:tree\n", "2.27"),
              ::testing::Not(HasSubstr("NCCL04")));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=allreduce:ring;broadcast:tree\n", "2.19"), HasSubstr("NCCL04"));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=ring;tree\n", "2.27"), HasSubstr("NCCL04:error"));
  EXPECT_THAT(ids("a.env", "NCCL_ALGO=^Foo\n", "2.27"), HasSubstr("NCCL04:error"));
  EXPECT_THAT(ids("a.env", "NCCL_PROTO=Simple,,LL,LL128\n"), HasSubstr("NCCL04:info"));
  EXPECT_EQ(judged("a.env", "NCCL_ALGO=Ring,Tree,Coll,NVLS\n")->fixed(), "NCCL_ALGO=Ring,Tree,NVLS\n");
}

TEST(Nccl05And06, NegatedAndMeasured) {
  EXPECT_EQ(ids("a.env", "NCCL_PROTO=^LL128\n"), "NCCL06:info:1");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\nNCCL_ALGO=Ring ./all_reduce_perf -g 8\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_ALGO=allreduce:ring\n", "2.27"), "");
}

TEST(Nccl06, WhereItIsFixedOnPurposeItIsARemark) {
  const std::string ring = "export NCCL_ALGO=Ring\n", run = "python pretrain.py";
  EXPECT_EQ(ids("a.sh", ring + run + "\n"), "NCCL06:warn:1");
  EXPECT_EQ(ids("a.sh", ring + run + " --deterministic-mode\n"), "NCCL06:info:1");
  EXPECT_EQ(ids("a.sh", ring + "export CUBLAS_WORKSPACE_CONFIG=:4096:8\n" + run + "\n"), "NCCL06:info:1");
  EXPECT_EQ(ids("a.sh", ring + "export NVTE_ALLOW_NONDETERMINISTIC_ALGO=0\n" + run + "\n"), "NCCL06:info:1");
  EXPECT_EQ(ids("a.sh", ring + "export NVTE_ALLOW_NONDETERMINISTIC_ALGO=1\n" + run + "\n"), "NCCL06:warn:1");
  EXPECT_EQ(ids("a.sh", "export FI_PROVIDER=efa NCCL_PROTO=simple\n" + run + "\n"), "NCCL06:info:1");
  EXPECT_EQ(ids("a.sh", "# Tree hangs with this driver\n" + ring + run + "\n"), "NCCL06:info:2");
  EXPECT_EQ(ids("a.sh", "export NCCL_FASTRAK_CTRL_DEV=eth0 NCCL_ALGO=Ring,Tree\n" + run + "\n"),
            "NCCL06:info:1");
  EXPECT_EQ(ids("a.sh", "export NCCL_NVLS_ENABLE=0 NCCL_MAX_NCHANNELS=1\n" + run + " --deterministic-mode\n"),
            "NCCL24:info:1 NCCL03:info:1 NCCL27:info:1");
}

TEST(Rccl, HasDefaultsOfItsOwn) {
  const std::string text =
      "NCCL_PXN_DISABLE=1\nNCCL_NVLS_ENABLE=0\nNCCL_GDR_FLUSH_DISABLE=1\nNCCL_MIN_NCHANNELS=112\n"
      "NCCL_AMDSMI_DISABLE=1\nNCCL_P2P_DISABLE=1\nNCCL_ALGO=Ring,Tree\n";
  const auto amd = judged("a.env", "RCCL_MSCCL_ENABLE=0\n" + text);
  EXPECT_EQ(amd->ids(), "NCCL27:info:5 NCCL01:info:6 NCCL02:warn:7");
  EXPECT_THAT(amd->find("NCCL02")->finding.title, HasSubstr("xGMI"));
  EXPECT_THAT(judged("a.env", text)->ids(), HasSubstr("NCCL22:warn"));
  Options options;
  options.amd = true;
  EXPECT_EQ(judged("a.env", "NCCL_PXN_DISABLE=1\n", options)->ids(), "");
}

TEST(Nccl09, WithAndWithoutDevices) {
  EXPECT_EQ(ids("a.env", "NCCL_IB_HCA=^mlx5_2\n"), "NCCL09:info:1");
  Options options;
  options.rdma_devices = {"mlx5_1", "mlx5_10", "mlx5_2"};
  EXPECT_EQ(judged("a.env", "NCCL_IB_HCA=mlx5_1\n", options)->ids(), "NCCL09:warn:1");
  EXPECT_EQ(judged("a.env", "NCCL_IB_HCA=mlx5_2\n", options)->ids(), "");
  EXPECT_EQ(judged("a.env", "NCCL_IB_HCA=mlx5_1:1\n", options)->fixed(), "NCCL_IB_HCA==mlx5_1:1\n");
  EXPECT_EQ(judged("a.env", "NCCL_IB_HCA=mlx5_1:1\n")->fixed(), "NCCL_IB_HCA=mlx5_1:1\n");
}

TEST(Nccl11, NodesAndOtherNetworks) {
  EXPECT_EQ(
      ids("a.sh", "#!/bin/sh\nexport NCCL_IB_DISABLE=1\ntorchrun --standalone --nproc_per_node=4 x.py\n"),
      "NCCL11:info:2");
  EXPECT_EQ(ids("a.env", "NCCL_IB_DISABLE=1\nFI_PROVIDER=efa\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_IB_DISABLE=1\n"), "NCCL11:warn:1");
}

// What a machine and a job at hand decide.
TEST(Machine, LinksRailsAndNodesDecide) {
  Options links, none, many, few;
  links.peers = true, links.needs_flush = true;
  none.peers = false, none.needs_flush = false;
  many.nodes = 4, many.rails = true;
  few.nodes = 1;
  const auto with = [](const char* text, const Options& options) {
    return judged("a.env", text, options)->ids();
  };
  EXPECT_EQ(with("NCCL_P2P_DISABLE=1\n", links), "NCCL02:error:1");
  EXPECT_EQ(with("NCCL_P2P_DISABLE=1\n", none), "NCCL02:info:1");
  EXPECT_EQ(with("NCCL_GDR_FLUSH_DISABLE=1\n", links), "NCCL22:error:1");
  EXPECT_EQ(with("NCCL_GDR_FLUSH_DISABLE=1\n", none), "NCCL22:info:1");
  EXPECT_EQ(with("NCCL_IB_DISABLE=1\n", many), "NCCL11:error:1");
  EXPECT_EQ(with("NCCL_IB_DISABLE=1\n", few), "NCCL11:info:1");
  EXPECT_EQ(with("NCCL_SOCKET_IFNAME=lo\n", many), "NCCL17:warn:1");
  EXPECT_EQ(with("NCCL_SOCKET_IFNAME=lo\n", few), "");
}

TEST(Nccl12To14, Levels) {
  EXPECT_EQ(ids("a.env", "NCCL_P2P_LEVEL=2\n", "2.4"), "");
  EXPECT_EQ(ids("a.env", "NCCL_P2P_LEVEL=pix\n"), "NCCL14:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_NET_GDR_LEVEL=NODE\n"), "NCCL14:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_NET_GDR_LEVEL=P2C\n", "2.27"), "");
  EXPECT_EQ(ids("a.env", "NCCL_NET_GDR_LEVEL=P2C\n"), "NCCL14:info:1");
  EXPECT_EQ(ids("a.env", "NCCL_NET_GDR_LEVEL=LOC\n"), "NCCL13:warn:1");
  EXPECT_EQ(judged("a.env", "NCCL_P2P_LEVEL=pix\n")->fixed(), "NCCL_P2P_LEVEL=PIX\n");
}

TEST(Nccl17, InterfacesThatReachNobody) {
  EXPECT_EQ(ids("a.env", "NCCL_SOCKET_IFNAME=docker0\n"), "NCCL17:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_SOCKET_IFNAME=^docker,lo\n"), "");
  Options options;
  options.interfaces = {"eth0", "eth1", "lo"};
  EXPECT_EQ(judged("a.env", "NCCL_SOCKET_IFNAME=eth\n", options)->ids(), "NCCL17:warn:1");
  EXPECT_EQ(judged("a.env", "NCCL_SOCKET_IFNAME==eth1\n", options)->ids(), "");
  EXPECT_EQ(judged("a.env", "NCCL_SOCKET_IFNAME=ens1\n", options)->ids(), "NCCL17:warn:1");
}

TEST(Nccl18, OnlyWhereItIsLeftOn) {
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\nexport NCCL_DEBUG=INFO\ntorchrun x.py\n"), "NCCL18:info:2");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\n[ -n \"$D\" ] && export NCCL_DEBUG=INFO\ntorchrun x.py\n"), "");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\n# diagnosis of the hang\nexport NCCL_DEBUG=INFO\ntorchrun x.py\n"), "");
}

TEST(Nccl21, AcrossFiles) {
  const std::string env = "NCCL_IB_TIMEOUT=20\n", conf = "NCCL_IB_TIMEOUT=22\nNCCL_DEBUG=WARN\n";
  std::vector<Input> inputs;
  inputs.push_back(*read_input("job.env", env));
  inputs.push_back(*read_input("/etc/nccl.conf", conf));
  const Report report = judge(inputs, {});
  ASSERT_EQ(report.found.size(), 1u);
  EXPECT_EQ(report.found[0].finding.rule, "NCCL21");
  EXPECT_EQ(report.found[0].finding.file, "/etc/nccl.conf");
  EXPECT_EQ(report.found[0].finding.expected, "20");
}

TEST(Nccl23, Limits) {
  EXPECT_EQ(ids("a.env", "NCCL_IB_TIMEOUT=31\n"), "NCCL23:info:1");
  EXPECT_EQ(ids("a.env", "NCCL_IB_TIMEOUT=32\n"), "NCCL23:error:1");
  EXPECT_EQ(ids("a.env", "NCCL_IB_TIMEOUT=0\n"), "NCCL23:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_IB_TIMEOUT=23\n"), "");
}

TEST(Nccl24, AReasonMakesItARemark) {
  EXPECT_EQ(ids("a.env", "NCCL_NVLS_ENABLE=0\n"), "NCCL24:warn:1");
  EXPECT_EQ(ids("a.env", "# hangs with driver 550, ticket OPS-17\nNCCL_NVLS_ENABLE=0\n"), "NCCL24:info:2");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\nexport NCCL_CUMEM_ENABLE=0\nvllm serve m\n"), "");
}

TEST(Nccl25And26, EmptyAndUnreadableValues) {
  EXPECT_EQ(ids("a.env", "NCCL_IB_TC=\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_IB_TC=\"\"\n"), "NCCL25:info:1");
  EXPECT_EQ(ids("a.env", "NCCL_ALGO=\"\"\n", "2.20"), "NCCL25:error:1");
  EXPECT_EQ(ids("a.env", "NCCL_ALGO=\"\"\n", "2.28"), "NCCL25:info:1");
  EXPECT_EQ(ids("a.env", "NCCL_CROSS_NIC=yes\n"), "NCCL26:error:1");
  EXPECT_EQ(ids("a.env", "NCCL_CROSS_NIC=010\n"), "NCCL26:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_BUFFSIZE=0x400000\n"), "");
  EXPECT_EQ(judged("a.env", "NCCL_BUFFSIZE=4M\n")->fixed(), "NCCL_BUFFSIZE=4194304\n");
  EXPECT_EQ(judged("a.env", "NCCL_CROSS_NIC='on'\n")->fixed(), "NCCL_CROSS_NIC='1'\n");
}

TEST(Nccl30, WhatTheReaderKeeps) {
  EXPECT_EQ(ids("nccl.conf", "NCCL_IB_TIMEOUT=22 # why\n"), "NCCL30:info:1");
  EXPECT_EQ(ids("nccl.conf", "NCCL_SOCKET_IFNAME=eth0 # why\n"), "NCCL30:error:1");
  EXPECT_EQ(ids("nccl.conf", "NCCL_SOCKET_IFNAME=eth0\r\n"), "NCCL30:error:1");
  EXPECT_EQ(ids("nccl.conf", " NCCL_DEBUG=WARN\n"), "NCCL30:error:1");
  EXPECT_EQ(judged("nccl.conf", "export NCCL_DEBUG = \"WARN\"\n")->fixed(), "NCCL_DEBUG=WARN\n");
}

TEST(Ver05, TheVersionOfTheTextCounts) {
  EXPECT_EQ(ids("a.env", "NCCL_VERSION=2.28.9-1\nNCCL_INSPECTOR_ENABLE=1\n"), "VER05:warn:2");
  EXPECT_EQ(ids("a.env", "NCCL_INSPECTOR_ENABLE=1\n", "2.29.7"), "");
}

TEST(Cont01, SizesAndNamespaces) {
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\ndocker run --gpus all --shm-size=64m img\n"), "CONT01:warn:2");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\ndocker run --gpus all --shm-size=64m img\n", "2.20"), "CONT01:error:2");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\ndocker run --gpus all --ipc=host --shm-size=64m img\n"), "");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\ndocker run --gpus 1 --shm-size=64m img\n"), "");
}

TEST(Cmd01, NotWhereADriverFollows) {
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\napt-get purge -y 'nvidia-*'\napt-get install -y nvidia-driver-570\n"),
            "");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\napt-get purge -y nvidia-driver-515\n"), "");
  EXPECT_EQ(ids("Dockerfile", "FROM x\nRUN apt-get purge -y 'nvidia-*'\n"), "");
}

TEST(Cmd09, NotForChosenBridgesOrAtBoot) {
  const std::string loop = "for b in $(lspci | awk '{print $1}'); do setpci -s $b ECAP_ACS+0x6.w=0; done\n";
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\n" + loop), "CMD09:warn:2");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\nfor b in 3a:00.0 3b:00.0; do setpci -s $b ECAP_ACS+0x6.w=0; done\n"), "");
  EXPECT_EQ(ids("a.sh", "#!/bin/sh\nsystemctl enable acs-off\n" + loop), "");
}

TEST(Mon04, DifferencesAreFine) {
  const std::string head = "groups:\n- rules:\n  - alert: A\n    expr: ";
  EXPECT_EQ(ids("a.yaml", head + "infiniband_symbol_error_total > 10\n"), "MON04:warn:4");
  EXPECT_EQ(ids("a.yaml", head + "increase(infiniband_symbol_error_total[1h]) > 10\n"), "");
  EXPECT_EQ(ids("a.yaml", head + "up == 0\n"), "");
}

TEST(Yaml, AliasesAndMergesAreReadOnce) {
  const std::string text =
      "x-env: &e\n  NCCL_P2P_DISABLE: \"1\"\nservices:\n  a:\n    image: i\n    environment:\n      <<: *e\n "
      "     NCCL_ALGO: Coll\n";
  EXPECT_EQ(ids("compose.yaml", text), "NCCL02:warn:2 NCCL04:error:8");
}

TEST(Yaml, ScriptsKeepTheirLines) {
  const std::string text =
      "spec:\n  containers:\n  - name: c\n    command: [bash, -c]\n    args:\n    - |\n      export "
      "NCCL_IB_TIMEOUT=99\n      torchrun x.py\n";
  EXPECT_EQ(ids("job.yaml", text), "NCCL23:error:7");
}

TEST(Yaml, BrokenTextIsReadLineByLine) {
  const std::string text =
      "env:\n  - name: A\n    value: [\n{{ template }}\n  - name: NCCL_NVLINK_DISABLE\n    value: \"0\"\n";
  const auto result = judged("a.yaml", text);
  EXPECT_FALSE(result->inputs[0].facts.diagnostics.empty());
  EXPECT_NE(result->find("NCCL01"), nullptr) << result->ids();
}

TEST(Yaml, VariablesStandInManyPlaces) {
  EXPECT_EQ(ids("a.yaml",
                "write_files:\n- path: /etc/nccl.conf\n  content: |\n    NCCL_IB_TIMEOUT = 22\n"
                "- path: /etc/environment\n  content: |\n    NCCL_ALGO=foo\n"
                "runcmd:\n- export NCCL_BUFFSIZE=4M; torchrun x.py\n"),
            "NCCL30:error:4 NCCL04:error:7 NCCL26:error:9");
  EXPECT_EQ(
      ids("a.yml",
          "- tasks:\n  - lineinfile: {path: /etc/nccl.conf, line: \"NCCL_CROSS_NIC=yes\"}\n"
          "  - copy:\n      dest: /etc/profile.d/nccl.sh\n      content: |\n        export NCCL_IB_TC=abc\n"
          "  - ansible.builtin.shell: |\n      export NCCL_BUFFSIZE=4M\n      torchrun x.py\n"),
      "NCCL26:error:2 NCCL26:error:6 NCCL26:error:8");
  EXPECT_EQ(ids("a.yaml", "configMapGenerator:\n- literals:\n  - NCCL_IB_TIMEOUT=1800\n"), "NCCL23:error:3");
  EXPECT_EQ(ids("values.yaml",
                "worker:\n  tuning:\n    NCCL_IB_TIMEOUT: 1800\n    x: {name: NCCL_IB_TC, value: y}\n"),
            "NCCL23:error:3 NCCL26:error:4");
  EXPECT_EQ(
      ids("a.json",
          "{\"ContainerDefinitions\":[{\"Environment\":[{\"Name\":\"NCCL_BUFFSIZE\",\"Value\":\"4M\"}]}]}"),
      "NCCL26:error:1");
  EXPECT_EQ(
      ids("a.json",
          "{\"runnables\":[{\"script\":{\"text\":\"export NCCL_IB_TIMEOUT=1800\\nx.py\"},\"environment\":"
          "{\"variables\":{\"NCCL_IB_TC\":\"foo\"}}}]}"),
      "NCCL23:error:1 NCCL26:error:1");
  EXPECT_EQ(ids("launch.json",
                "{ // editor\n  \"a\": [\n    {\"env\": {\"NCCL_IB_TIMEOUT\":\"1800\"},},\n  ] /* x */\n}\n"),
            "NCCL23:error:3");
  EXPECT_EQ(ids("a.yaml", "env_vars:\n  UCX_IB_PCI_RELAXED_ORDERING: null\n  NCCL_IB_TC: 106\n"), "");
}

TEST(Yaml, APlaceThatIsNotReadIsSaid) {
  const auto text = judged("a.yaml",
                           "# NCCL_DEBUG\nx:\n  flags: --set NCCL_IB_TC=x\n  env: {NCCL_IB_SL: 1}\n"
                           "pass: [NCCL_ALGO]\nnccl: {NCCL_PROTO: null}\n");
  ASSERT_EQ(text->inputs.at(0).facts.diagnostics.size(), 1U);
  EXPECT_EQ(text->inputs.at(0).facts.diagnostics[0].at.line, 3);
  EXPECT_THAT(text->inputs.at(0).facts.diagnostics[0].text, HasSubstr("NCCL_IB_TC"));
}

TEST(Yaml, FoldedAndEscapedScriptsHaveTheirLines) {
  EXPECT_EQ(ids("a.yaml",
                "command: [\"bash\", \"-c\"]\nargs:\n- >-\n  export A=1 &&\n  export NCCL_BUFFSIZE=4M &&\n  "
                "torchrun "
                "x.py\n"),
            "NCCL26:error:5");
  EXPECT_EQ(
      ids("a.yaml",
          "command:\n- bash\n- -c\n- \"export A=1; \\\n   export NCCL_BUFFSIZE=4M; \\\n   torchrun x.py\"\n"),
      "NCCL26:error:5");
  EXPECT_EQ(ids("a.json",
                "{\"a\":1,\n \"command\": [\"bash\",\"-c\",\"export A=1\\nexport "
                "NCCL_BUFFSIZE=4M\\nrun\"],\n \"b\": "
                "\"x\"}\n"),
            "NCCL26:error:2");
}

TEST(Yaml, ABombStaysSmall) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int n = 1; n < 12; ++n)
    text += fmt::format("a{}: &a{} [*a{}, *a{}, *a{}, *a{}, *a{}, *a{}, *a{}, *a{}]\n", n, n, n - 1, n - 1,
                        n - 1, n - 1, n - 1, n - 1, n - 1, n - 1);
  text += "env: {NCCL_NVLINK_DISABLE: \"1\"}\n";
  scan_yaml(text);
  scan_yaml(std::string(20000, '['));
  scan_yaml("&a [*a, *a]");
}

TEST(Yaml, EmptyNodesWithoutEndAreCutByTheLengthOfTheText) {
  const YamlTree tree = parse_yaml(",\r\r\r\xff\xff\xff\xff\xee\xf2\xf5\xf2\xf2\xf2\xf2\xf2 ");
  EXPECT_TRUE(tree.error);
  EXPECT_LT(tree.nodes.size(), 100U);
  EXPECT_FALSE(parse_yaml("a:\nb: {c, d: [e:, f:]}\n? g\n").error);
}

TEST(Fix, WritesADiffThatOnlyChangesWhatItMust) {
  const auto result = judged("run.sh",
                             "#!/bin/sh\nexport NCCL_NVLINK_DISABLE=0 NCCL_DEBUG=WARN\n# keep\nexport "
                             "NCCL_IB_TIMEOUT=\"1800\"\nrun\n");
  EXPECT_EQ(result->fixed(),
            "#!/bin/sh\nexport NCCL_DEBUG=WARN\n# keep\nexport NCCL_IB_TIMEOUT=\"22\"\nrun\n");
  EXPECT_EQ(unified_diff("run.sh", result->text, result->fixed()),
            "--- a/run.sh\n+++ b/run.sh\n@@ -1,5 +1,5 @@\n #!/bin/sh\n-export NCCL_NVLINK_DISABLE=0 "
            "NCCL_DEBUG=WARN\n+export NCCL_DEBUG=WARN\n"
            " # keep\n-export NCCL_IB_TIMEOUT=\"1800\"\n+export NCCL_IB_TIMEOUT=\"22\"\n run\n");
}

TEST(Fix, YamlItemsPythonAndDockerfiles) {
  EXPECT_EQ(
      judged("p.yaml",
             "env:\n  - name: NCCL_NVLINK_DISABLE\n    value: \"0\"\n  - name: NCCL_DEBUG\n    value: WARN\n")
          ->fixed(),
      "env:\n  - name: NCCL_DEBUG\n    value: WARN\n");
  EXPECT_EQ(judged("p.py", "import os\nif x:\n    os.environ['NCCL_NET_GDR_FLUSH'] = '1'\n")->fixed(),
            "import os\nif x:\n    pass\n");
  EXPECT_EQ(judged("p.py", "import os\nos.environ.setdefault('NCCL_NET_GDR_FLUSH', '1')\nf()\n")->fixed(),
            "import os\nf()\n");
  EXPECT_EQ(judged("Dockerfile", "FROM x\nRUN ls\nENV NCCL_BUFFSIZE=1M\n")->fixed(),
            "FROM x\nRUN ls\nENV NCCL_BUFFSIZE=1048576\n");
}

TEST(Fix, WhatNeedsADecisionStays) {
  const char* const kTexts[] = {"NCCL_P2P_DISABLE=1",       "NCCL_PROTO=simple",
                                "NCCL_SHM_DISABLE=1",       "NCCL_IB_DISABLE=1",
                                "NCCL_MAX_NCHANNELS=4",     "NCCL_NET_GDR_LEVEL=LOC",
                                "NCCL_GRAPH_FILE=/g.xml",   "NCCL_GDR_FLUSH_DISABLE=1",
                                "NCCL_AMDSMI_DISABLE=1",    "NCCL_CROSS_NICS=1",
                                "NCCL_DEBUG=INFO",          "NCCL_LAUNCH_MODE=GROUP",
                                "LD_PRELOAD=/libnccl.so.2", "UCX_TLS=tcp"};
  for (const std::string text : kTexts) {
    const auto script = judged("a.sh", "#!/bin/bash\nexport " + text + "\ntorchrun train.py\n");
    EXPECT_NE(script->ids(), "") << text;
    EXPECT_EQ(script->fixed(), script->text) << text;
  }
  const auto launch = judged("a.sh", "python -m torch.distributed.launch --use_env t.py\n");
  EXPECT_EQ(launch->ids(), "CMD04:info:1");
  EXPECT_EQ(launch->fixed(), launch->text) << "torchrun takes no --use_env and passes no --local_rank";
}

TEST(Fix, WhatAUserMaySetStays) {
  for (const std::string text :
       {"NCCL_IB_TIMEOUT=${NCCL_IB_TIMEOUT:-300}", "NCCL_IB_DISABLE=\"${NCCL_IB_DISABLE:-0}\"",
        "NCCL_ASYNC_ERROR_HANDLING=${NCCL_ASYNC_ERROR_HANDLING:-1}"}) {
    const auto script = judged("a.sh", "export " + text + "\nrun\n");
    EXPECT_NE(script->ids(), "") << text;
    EXPECT_EQ(script->fixed(), script->text);
  }
}

TEST(Fix, WhatDoesNothingGoes) {
  EXPECT_EQ(judged("a.env", "NCCL_IB_DISABLE=0\nNCCL_TREE_THRESHOLD=0\nNCCL_ALGO=\"\"\nA=1\n")->fixed(),
            "A=1\n");
}

TEST(Fix, AFileWithoutAFinalLineEnd) {
  EXPECT_EQ(unified_diff("a", "x\ny", "x\n"),
            "--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n x\n-y\n\\ No newline at end of file\n");
  EXPECT_EQ(unified_diff("a", "x\n", "x\n"), "");
}

TEST(Report, EveryFindingHasItsTexts) {
  const auto result = judged("a.env", "NCCL_IB_TIMEOUT=1800\nNCCL_P2P_DISABLE=1\n");
  for (const auto& one : result->report.found) {
    EXPECT_FALSE(one.finding.title.empty());
    EXPECT_FALSE(one.finding.remedy.empty());
    EXPECT_FALSE(one.finding.impact.empty());
    EXPECT_FALSE(one.finding.reference.empty());
    EXPECT_FALSE(one.finding.action.empty());
    EXPECT_THAT(one.finding.evidence[0].source, HasSubstr("a.env:"));
  }
  EXPECT_THAT(result->report.checked, ::testing::Contains("NCCL23"));
}

// --- corrections leave a text that still runs

std::string fixed(const std::string& name, const std::string& text) { return judged(name, text)->fixed(); }

TEST(Fix, AnOptionGoesWithItsSetting) {
  EXPECT_EQ(fixed("a.sh", "mpirun -np 8 -x NCCL_NVLINK_DISABLE=0 ./a\n"), "mpirun -np 8 ./a\n");
  EXPECT_EQ(fixed("a.sh", "mpirun -np 8 \\\n  -x NCCL_NVLINK_DISABLE=0 \\\n  ./a\n"),
            "mpirun -np 8 \\\n  ./a\n");
  EXPECT_EQ(fixed("a.sh", "docker run -e NCCL_NVLINK_DISABLE=0 --env=NCCL_CONNECT_TIMEOUT=3 img\n"),
            "docker run img\n");
  EXPECT_EQ(fixed("a.sh", "kubectl set env deploy/x NCCL_NVLINK_DISABLE=0\n"),
            "kubectl set env deploy/x NCCL_NVLINK_DISABLE=0\n");
}

TEST(Fix, ACommandOfSeveralLinesEndsWhereItEnded) {
  EXPECT_EQ(fixed("a.sh", "export A=1 \\\n  NCCL_NVLINK_DISABLE=0\necho hi\n"), "export A=1\necho hi\n");
  EXPECT_EQ(fixed("a.sh", "mpirun ./a \\\n  -x NCCL_NVLINK_DISABLE=0\necho hi\n"), "mpirun ./a\necho hi\n");
  EXPECT_EQ(fixed("a.sh", "NCCL_NVLINK_DISABLE=0 \\\n  python t.py\n"), "  python t.py\n");
}

TEST(Fix, ABodyKeepsAStatement) {
  EXPECT_EQ(fixed("a.sh", "if true; then\n  export NCCL_NVLINK_DISABLE=0\nfi\n"), "if true; then\n  :\nfi\n");
  EXPECT_EQ(fixed("a.sh", "f() {\n  export NCCL_NVLINK_DISABLE=0\n  run\n}\nf\n"),
            "f() {\n  :\n  run\n}\nf\n");
  EXPECT_EQ(fixed("a.sh", "if true; then export NCCL_NVLINK_DISABLE=0; fi\n"), "if true; then :; fi\n");
  EXPECT_EQ(fixed("a.sh", "[ -n \"$X\" ] && export NCCL_NVLINK_DISABLE=0\n"), "[ -n \"$X\" ] && :\n");
  EXPECT_EQ(fixed("a.sh", "echo a\nexport NCCL_NVLINK_DISABLE=0\necho b\n"), "echo a\necho b\n");
}

TEST(Python, ValuesInBracketsAndDefaults) {
  EXPECT_EQ(ids("a.py", "import os\nos.environ['NCCL_IB_TC'] = (\n    'x'\n)\n"), "NCCL26:error:2");
  EXPECT_EQ(ids("a.py", "import os\nos.environ['NCCL_IB_TC'] = os.environ.get('NCCL_IB_TC', 'x')\n"),
            "NCCL26:error:2");
  EXPECT_EQ(ids("a.py", "import os\nos.environ['NCCL_IB_TC'] = os.getenv('NCCL_IB_TC', 'x')\n"),
            "NCCL26:error:2");
  EXPECT_EQ(ids("a.py", "import os\nos.environ['NCCL_IB_TC'] = os.getenv('TC', 'x')\n"), "");
  EXPECT_EQ(ids("a.py", "import os\nos.environ['NCCL_IB_TC'] = os.getenv('NCCL_IB_TC', '')\n"), "");
}

TEST(Names, OfPyTorchAndOfOppositeMeaning) {
  const auto torch = judged("a.env", "NCCL_AVOID_RECORD_STREAMS=1\n");
  EXPECT_EQ(torch->ids(), "NCCL19:warn:1");
  EXPECT_EQ(torch->fixed(), torch->text);
  EXPECT_EQ(judged("a.env", "NCCL_CHECKS_DISABLE=1\n")->find("NCCL03")->finding.remedy, "delete it");
  EXPECT_EQ(ids("a.sh", "all_reduce_perf --help\n"), "");
  EXPECT_EQ(ids("a.sh",
                "cp /x/libnccl.so.2 /usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2\n"),
            "");
}

// --- ways to hand a variable over

TEST(Handed, EveryLauncherHasItsOption) {
  for (const char* line : {"time NCCL_BUFFSIZE=4M torchrun a.py",
                           "srun --export ALL,NCCL_BUFFSIZE=4M ./b",
                           "srun --export=ALL,NCCL_BUFFSIZE=4M ./b",
                           "mpirun --mca mca_base_env_list \"NCCL_BUFFSIZE=4M;NCCL_DEBUG=WARN\" ./c",
                           "mpiexec --env NCCL_BUFFSIZE=4M -n 8 ./c",
                           "mpiexec -genv NCCL_BUFFSIZE 4M -n 8 ./c",
                           "mpiexec -genv NCCL_BUFFSIZE=4M -n 8 ./c",
                           "mpirun --x NCCL_BUFFSIZE=4M ./c",
                           "sbatch --wrap=\"NCCL_BUFFSIZE=4M torchrun d.py\"",
                           "deepspeed --launcher_args=\"-x NCCL_BUFFSIZE=4M\" e.py",
                           "deepspeed --launcher_args \"--mca a b -x NCCL_BUFFSIZE=4M\" e.py",
                           "export APPTAINERENV_NCCL_BUFFSIZE=4M; apptainer run img",
                           "qsub -v A=1,NCCL_BUFFSIZE=4M g.sh",
                           "bsub -env \"all,NCCL_BUFFSIZE=4M\" ./x",
                           "jsrun -n 6 -E NCCL_BUFFSIZE=4M ./h",
                           "jsrun -ENCCL_BUFFSIZE=4M ./h",
                           "aprun -e NCCL_BUFFSIZE=4M ./h",
                           "docker run -eNCCL_BUFFSIZE=4M img",
                           "singularity exec --env NCCL_BUFFSIZE=4M,NCCL_DEBUG=WARN img ./x",
                           "kubectl run x --env=\"NCCL_BUFFSIZE=4M\"",
                           ": ${NCCL_BUFFSIZE:=4M}; export NCCL_BUFFSIZE; torchrun h.py",
                           "CMD=\"NCCL_BUFFSIZE=4M torchrun i.py\"; eval $CMD",
                           "E=NCCL_BUFFSIZE=4M; eval \"$E torchrun i.py\"",
                           "tmux new -d \"NCCL_BUFFSIZE=4M torchrun j.py\"",
                           "ssh node1 NCCL_BUFFSIZE=4M torchrun x.py"})
    EXPECT_EQ(ids("a.sh", std::string("#!/bin/bash\n") + line + "\n"), "NCCL26:error:2") << line;
  EXPECT_EQ(fixed("a.sh", "docker run -eNCCL_BUFFSIZE=4M img\n"), "docker run -eNCCL_BUFFSIZE=4194304 img\n");
}

TEST(Handed, AScriptThatIsWrittenIsAScript) {
  const std::string body = "export NCCL_BUFFSIZE=4M\ntorchrun x.py\nEOF\n";
  EXPECT_EQ(ids("a.sh", "cat > run.sh <<'EOF'\n" + body + "bash run.sh\n"), "NCCL26:error:2");
  EXPECT_EQ(ids("a.sh", "cat <<EOF | sbatch\n" + body), "NCCL26:error:2");
  EXPECT_EQ(ids("a.sh", "cat <<EOF > $OUT/job.sbatch\nexport NCCL_IB_TIMEOUT=\\$T\n" + body),
            "NCCL26:error:3");
  const std::string pod = "env:\n- name: NCCL_BUFFSIZE\n  value: 4M\n- name: NCCL_IB_TC\n  value: $TC\nEOF\n";
  EXPECT_EQ(ids("a.sh", "cat <<EOF | kubectl apply -f -\n" + pod), "NCCL26:error:3");
  EXPECT_EQ(ids("a.sh", "kubectl apply -f - <<EOF\n" + pod), "NCCL26:error:3");
  EXPECT_EQ(ids("a.sh", "cat > pod.yaml <<EOF\n" + pod), "NCCL26:error:3");
  EXPECT_EQ(ids("a.sh", "cat <<EOF > README.md\n" + body), "");
  EXPECT_EQ(ids("a.sh", "cat <<EOF\n" + body), "");
  EXPECT_EQ(
      ids("Dockerfile",
          "FROM x\nRUN printf \"NCCL_DEBUG=WARN\\nNCCL_IB_TC=x\\n\" >> /etc/nccl.conf\nSHELL [\"a\"]\n"),
      "NCCL26:error:2");
}

TEST(Handed, AnEmptyDefaultHandsOnWhatWasInherited) {
  EXPECT_EQ(
      ids("a.sh", "export NCCL_DEBUG=${NCCL_DEBUG:-} NCCL_TUNER_PLUGIN=\"${NCCL_TUNER_PLUGIN:-}\"\nrun\n"),
      "");
}

TEST(Handed, PbsTellsNodesAndVariables) {
  EXPECT_EQ(ids("a.pbs", "#!/bin/bash\n#PBS -N 4\n#PBS -l select=1:ngpus=8\nexport NCCL_IB_DISABLE=1\nrun\n"),
            "NCCL11:info:4");
  EXPECT_EQ(ids("a.pbs", "#!/bin/bash\n#PBS -v A=1,NCCL_BUFFSIZE=4M\nrun\n"), "NCCL26:error:2");
}

TEST(Handed, ExportCanBeTakenBack) {
  EXPECT_EQ(ids("a.sh", "export NCCL_BUFFSIZE=4M\nexport -n NCCL_BUFFSIZE\ntorchrun x.py\n"), "");
}

TEST(Nccl18, MeasurementsByOtherNames) {
  EXPECT_EQ(ids("a.sh", "export NCCL_DEBUG=INFO\nmpirun /t/nccl-tests-mpi/build/\"${benchmark}\" -b 8\n"),
            "");
  EXPECT_EQ(ids("a.sh", "export NCCL_DEBUG=INFO\npython all_reduce_bench.py\n"), "");
}

TEST(Handed, WindowsLineEndsAreSaid) {
  const auto script = judged("a.sh", "#!/bin/bash\r\nexport NCCL_DEBUG=WARN\r\n");
  ASSERT_EQ(script->inputs.at(0).facts.diagnostics.size(), 1U);
  EXPECT_THAT(script->inputs.at(0).facts.diagnostics[0].text, HasSubstr("carriage return"));
}

// --- kinds of text

TEST(Kinds, ADocumentIsItsBlocks) {
  const std::string text =
      "# How to\nIt's `NCCL_ALGO=Ring` that is slow; don't use it. NCCL_ALGO=foo is wrong.\n"
      "- `all_reduce_perf` is in the image\n\n```bash\nexport NCCL_IB_TIMEOUT=1800\n```\n"
      "```{python}\nimport os\nos.environ['NCCL_BUFFSIZE'] = '4M'\n```\n"
      "~~~yaml\nenv:\n  NCCL_IB_TC: on\n~~~\n```console\n$ export NCCL_IB_SL=x \\\n    "
      "NCCL_IB_QPS_PER_CONNECTION=y\n"
      "NCCL_CROSS_NIC=z\n```\n```go\nos.Setenv(\"NCCL_IB_TC\", \"x\")\n```\n";
  const auto guide = judged("README.md", text);
  EXPECT_EQ(guide->ids(), "NCCL23:error:6 NCCL26:error:10 NCCL26:error:14 NCCL26:error:17 NCCL26:error:18");
  EXPECT_TRUE(guide->inputs.at(0).facts.diagnostics.empty());
  EXPECT_EQ(guide->fixed(), text);
  EXPECT_EQ(ids("", text), guide->ids()) << "known by its fences";
  EXPECT_EQ(
      ids("a.rst",
          "It's\n\n.. code-block:: bash\n   :linenos:\n\n   export NCCL_IB_TIMEOUT=99\n\nNCCL_ALGO=x\n"),
      "NCCL23:error:6");
  EXPECT_EQ(ids("a.adoc", "[source,bash]\n----\nexport NCCL_IB_TIMEOUT=99\n----\nNCCL_ALGO=x\n"),
            "NCCL23:error:3");
}

TEST(Kinds, EachBlockIsATextOfItsOwn) {
  EXPECT_EQ(ids("a.md", "```sh\nexport NCCL_NODES=2\n```\n```sh\nsrun -N $NCCL_NODES x\n```\n"), "");
  EXPECT_EQ(ids("a.md", "```sh\nexport NCCL_IB_TC=4M\n```\n```sh\nexport NCCL_IB_TC=4\n```\n"),
            "NCCL26:error:2");
  EXPECT_EQ(
      ids("a.md",
          "```sh\nexport NCCL_IGNORE_CPU_AFFINITY=1\n```\n```sh\nnumactl --cpunodebind=0 ./train\n```\n"),
      "");
  const auto open = judged("a.md", "```\nIt's open\n```\n```sh\nexport NCCL_IB_TC=x\n```\n");
  EXPECT_EQ(open->ids(), "NCCL26:error:5");
  EXPECT_TRUE(open->inputs.at(0).facts.diagnostics.empty());
}

TEST(Kinds, NotebooksFishPowerShellAndModules) {
  EXPECT_EQ(ids("a.ipynb",
                "{\"cells\": [{\"cell_type\": \"markdown\", \"source\": [\"NCCL_ALGO=x\"]},\n "
                "{\"cell_type\": \"code\", "
                "\"source\": [\n\"import os\\n\",\n\"os.environ['NCCL_IB_TIMEOUT'] = '1800'\\n\",\n"
                "\"!NCCL_BUFFSIZE=4M torchrun x.py\\n\",\n\"%env NCCL_IB_TC=x\"\n]}]}\n"),
            "NCCL23:error:4 NCCL26:error:5 NCCL26:error:6");
  EXPECT_EQ(ids("a.fish", "set -gx NCCL_IB_TIMEOUT 1800\nset -x\ntorchrun t.py\n"), "NCCL23:error:1");
  EXPECT_EQ(ids("a.ps1", "$env:NCCL_IB_TIMEOUT = \"1800\"\n$env:NCCL_IB_TC=\"x\"\n"),
            "NCCL23:error:1 NCCL26:error:2");
  EXPECT_EQ(ids("2.27.lua",
                "-- NCCL_ALGO\nlocal v = \"2\"\nsetenv(\"NCCL_IB_TIMEOUT\", \"1800\")\n"
                "  pushenv(\"NCCL_IB_TC\",\"x\") -- why\nsetenv(\"NCCL_IB_SL\", level)\n"),
            "NCCL23:error:3 NCCL26:error:4");
}

TEST(Kinds, WhatIsNotReadIsNotRecognised) {
  for (const char* name : {"Makefile", "x.Makefile", "main.tf", "train.log", "slurm-1.out", "CMakeLists.txt"})
    EXPECT_EQ(parse::recognise_config(name, "export NCCL_ALGO := Ring\n"), std::nullopt) << name;
  EXPECT_EQ(parse::recognise_config("a.txt", "The job is slow.\nIt runs on four nodes.\n"), std::nullopt);
  EXPECT_EQ(parse::recognise_config("a.txt", "module load x\nexport A=1\ntorchrun x\n"),
            parse::ConfigKind::shell);
  EXPECT_EQ(parse::recognise_config("a.log", "#!/bin/sh\nrun\n"), parse::ConfigKind::shell);
}

// --- texts that are right, though they look like a fault

TEST(SystemLibraries, TheLinkOfADevelopmentPackageOverwritesNothing) {
  EXPECT_EQ(
      ids("a.sh", "ln -s /usr/lib/x86_64-linux-gnu/libmlx5.so.1 /usr/lib/x86_64-linux-gnu/libmlx5.so\n"), "");
  EXPECT_EQ(ids("a.sh", "test -f /usr/lib/libibverbs.so || ln -sf libibverbs.so.1 /usr/lib/libibverbs.so\n"),
            "");
  EXPECT_EQ(ids("a.sh", "ln -sf /opt/ofed/libibverbs.so.1 /usr/lib/libibverbs.so.1\n"), "CMD03:error:1");
  EXPECT_EQ(ids("a.sh", "ln -sf /opt/ofed/libibverbs.so.1 /usr/lib/libibverbs.so\n"), "CMD03:error:1");
}

TEST(OneRank, TheLaunchersWordsTellHowManyRun) {
  EXPECT_EQ(ids("a.sh", "srun -N 2 --ntasks-per-node=8 sh -c '\n  /t/all_gather_perf -b 1G -g 1\n'\n"), "");
  EXPECT_EQ(ids("a.sh", "if command -v all_reduce_perf > /dev/null; then true; fi\n"), "");
  EXPECT_EQ(ids("a.sh", "bash -c '/t/all_gather_perf -b 1G -g 1'\n"), "BENCH01:warn:1");
}

TEST(UcxTransports, MpiCarriesHostMemoryWhereNcclMovesTheGpusBuffers) {
  const std::string run = "mpirun -np 16 --gpus-per-node 8 -x UCX_TLS=tcp ";
  EXPECT_EQ(ids("a.sh", run + "./app\n").find("UCX02"), 0U);
  EXPECT_EQ(ids("a.sh", run + "-x NCCL_DEBUG=WARN ./app\n").find("UCX02"), std::string::npos);
}

TEST(UcxTransports, AnMpiLaunchersRanksMayUseUcx) {
  const auto launched =
      judged("a.sh", "mpirun -np 16 -x UCX_TLS=tcp -x NCCL_DEBUG=WARN /t/all_reduce_perf -g 1\n");
  EXPECT_EQ(launched->ids(), "UCX01:info:1");
  EXPECT_EQ(launched->fixed(), launched->text);
  EXPECT_EQ(ids("a.sh", "export UCX_TLS=tcp\nsrun --mpi=pmix -n 16 /t/all_reduce_perf -g 1\n"),
            "UCX01:info:1");
  EXPECT_EQ(ids("a.sh", "export UCX_TLS=tcp\ntorchrun --nproc_per_node 8 t.py\n"), "UCX01:warn:1");
}

TEST(UcxValues, WordsAreThoseOfItsParser) {
  EXPECT_EQ(ids("a.env", "UCX_RNDV_SCHEME=GET_ZCOPY\nUCX_PROTO_ENABLE=maybe\nUCX_USE_MT_MUTEX=Yes\n"), "");
  EXPECT_EQ(ids("a.env", "UCX_USE_MT_MUTEX=true\nUCX_PROTO_ENABLE=enable\n"), "UCX03:error:1 UCX03:error:2");
}

TEST(UcxVariables, OthersMoveTheirDataOverUcx) {
  const std::string tls = "export UCX_TLS=rc,cuda_copy\n", torch = "torchrun --nproc_per_node 8 t.py\n";
  EXPECT_EQ(ids("a.sh", tls + torch), "UCX01:warn:1");
  for (const char* user : {"export VLLM_NIXL_SIDE_CHANNEL_PORT=5600\n", "export TRTLLM_USE_UCX_KVCACHE=1\n",
                           "vllm serve m --kv-transfer-config '{\"kv_connector\":\"NixlConnector\"}'\n",
                           "python -m sglang.launch_server --disaggregation-mode prefill\n",
                           "python -m dynamo.vllm --model m\n"}) {
    const auto served = judged("a.sh", tls + torch + user);
    EXPECT_EQ(served->ids(), "UCX01:info:1") << user;
    EXPECT_EQ(served->find("UCX01")->finding.remedy,
              "nothing to do: NCCL does not read it, others of this job may");
  }
}

TEST(UcxVariables, NamesOfBuildsAreNone) {
  EXPECT_EQ(ids("a.sh",
                "export UCX_HOME=/opt/ucx UCX_INSTALL_DIR=/opt/u UCX_VERSION=1.18 UCX_COMMIT=abc\n"
                "torchrun t.py\n"),
            "");
}

TEST(LateVariables, EveryCommunicatorReadsItsAlgorithms) {
  const std::string early =
      "import os\nimport torch.distributed as dist\ndist.init_process_group('nccl')\ndist.barrier()\n";
  EXPECT_EQ(ids("t.py", early + "os.environ['NCCL_COLLNET_ENABLE'] = '0'\ng = dist.new_group([0, 1])\n"),
            "NCCL16:info:5");
  EXPECT_EQ(ids("t.py", early + "os.environ['NCCL_COLLNET_ENABLE'] = '0'\n"), "NCCL16:warn:5");
  EXPECT_EQ(ids("t.py", early + "os.environ['NCCL_IB_TC'] = '106'\ng = dist.new_group([0, 1])\n"),
            "NCCL16:warn:5");
}

TEST(Names, ThoseOfFilesAndOfAVendorsBuildAreNotNcclsToKnow) {
  EXPECT_EQ(ids("a.env", "NCCL_PLUGIN_PATH=/usr/local/lib\nNCCL_INIT_SCRIPT=/x.sh\n"), "");
  EXPECT_EQ(ids("a.env", "NCCL_TOPO_FILE_PATHS=/x\n"), "NCCL01:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_DYNAMIC_CHUNK_SIZE=524288\n"), "NCCL01:warn:1");
  EXPECT_EQ(ids("a.env", "NCCL_DYNAMIC_CHUNK_SIZE=524288\nNCCL_GPUDIRECTTCPX_CTRL_DEV=eth0\n"), "");
}

TEST(Templates, AChartIsReadAroundItsActions) {
  const auto chart =
      judged("job.yaml",
             "{{- $n := .Values.n -}}\n"
             "kind: Pod\n"
             "spec:\n"
             "  {{- if .Values.wide }}\n"
             "  hostNetwork: {{ .Values.host }}\n"
             "  {{- end }}\n"
             "  containers:\n"
             "  - name: {{ .Release.Name }}\n"
             "    image: {{ .Values.image }}\n"
             "    env:\n"
             "    - name: NCCL_IB_TIMEOUT\n"
             "      value: \"1800\"\n"
             "    - name: NCCL_P2P_LEVEL\n"
             "      value: {{ .Values.level | default \"4\" }}\n"
             "    command: [\"bash\", \"-c\", \"export NCCL_CROSS_NICS=1; {{ .Values.run }}\"]\n");
  EXPECT_THAT(chart->ids(), HasSubstr("NCCL23:error:11"));
  EXPECT_THAT(chart->ids(), HasSubstr("NCCL01:warn:15"));
  EXPECT_THAT(chart->ids(), ::testing::Not(HasSubstr("NCCL12")));
  ASSERT_EQ(chart->inputs.at(0).facts.diagnostics.size(), 1U);
  EXPECT_EQ(chart->inputs.at(0).facts.diagnostics[0].at.line, 1);
  EXPECT_THAT(chart->inputs.at(0).facts.diagnostics[0].text, HasSubstr("template"));
  const auto fixed = chart->fixed();
  EXPECT_THAT(fixed, HasSubstr("{{- if .Values.wide }}"));
  EXPECT_THAT(fixed, HasSubstr("value: {{ .Values.level | default \"4\" }}"));
}

TEST(Templates, WhatIsFilledInLaterIsNoValue) {
  for (const char* value : {"\"{{ t }}\"", "\"{{ t | default('a') }}\"", "???", "<timeout>", "\"@TC@\"",
                            "__SL__", "YOUR_TC", "\"%(tc)s\""}) {
    const auto result =
        judged("a.yaml", fmt::format("env_vars:\n  NCCL_IB_TIMEOUT: {0}\n  NCCL_PROTO: {0}\n  "
                                     "UCX_RNDV_SCHEME: {0}\n  NCCL_P2P_LEVEL: {0}\n",
                                     value));
    EXPECT_EQ(result->ids(), "") << value;
    ASSERT_EQ(result->inputs.at(0).facts.diagnostics.size(), 4U) << value;
  }
  const auto script = judged("a.sh",
                             "#!/bin/bash\nexport NCCL_ALGO={{ algo }} NCCL_IB_TC=@TC@\n"
                             "NCCL_IB_SL={{- sl }} torchrun x.py --n={{ n }}\n");
  EXPECT_EQ(script->ids(), "");
  EXPECT_EQ(script->inputs.at(0).facts.commands.at(0).words.size(), 3U);
  EXPECT_EQ(ids("nccl.conf", "NCCL_IB_TC={{ tc }}\n"), "");
  EXPECT_THAT(ids("a.sh", "export NCCL_IB_TIMEOUT=1800\necho {{a,b},c}\n"), HasSubstr("NCCL23"));
}

TEST(Templates, ActionsOfAWholeDocumentAreNoReasonToReadItOtherwise) {
  const auto alerts =
      judged("a.yaml", "a:\n  text: \"{{ $labels.x }}\"\n  env:\n    NCCL_IB_TIMEOUT: 1800\n");
  EXPECT_TRUE(alerts->inputs.at(0).facts.diagnostics.empty());
  EXPECT_EQ(alerts->ids(), "NCCL23:error:4");
  EXPECT_EQ(without_template_actions("a: {{ b"), std::nullopt);
  EXPECT_EQ(without_template_actions("a: {{b}}").value(), "a: $(__)");
}

}  // namespace
}  // namespace topotune::lint
