#include "emit/topology_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace topotune::emit {
namespace {

model::Topology small() {
  model::Topology t;
  t.source = {model::SourceKind::nccl_topo_xml, "a.xml", true};
  t.numa.push_back({0, parse_cpu_list("0-3"), {}, {{0, 10}}});
  t.warnings.push_back({"code", "text", 7});
  model::Gpu gpu;
  gpu.id = "GPU0";
  gpu.pci_vendor = 0x10de;
  gpu.pci_device = 0x20b0;
  t.gpus.push_back(gpu);
  return t;
}

TEST(TopologyJson, UnknownIsNull) {
  const auto j = nlohmann::json::parse(topology_json(small()));
  EXPECT_EQ(j["schema"], "topotune.topology/1");
  EXPECT_EQ(j["source"]["kind"], "nccl-topo-xml");
  EXPECT_EQ(j["source"]["complete"], true);
  EXPECT_EQ(j["warnings"][0]["line"], 7);
  EXPECT_EQ(j["numa"][0]["cpus"], "0-3");
  EXPECT_TRUE(j["numa"][0]["memory_bytes"].is_null());
  EXPECT_EQ(j["numa"][0]["distances"]["0"], 10);
  EXPECT_EQ(j["gpus"][0]["pci_id"], "10de:20b0");
  for (const char* key : {"bdf", "name", "sm", "numa", "cpus", "nvlinks", "gdr"})
    EXPECT_TRUE(j["gpus"][0][key].is_null()) << key;
  for (const char* key : {"nics", "switches", "paths", "islands", "pairs"})
    EXPECT_EQ(j[key], nlohmann::json::array()) << key;
}

TEST(TopologyJson, NamesOfAnyBytesAreValidJson) {
  auto t = small();
  t.source.name = "\xff\xfe\"\n\x01.xml";
  t.gpus[0].name = std::string("a\0b\xc3", 4);
  model::Nic nic;
  nic.id = "NIC0";
  nic.name = "\xf0\x9f";
  t.nics.push_back(nic);
  const auto text = topology_json(t);
  EXPECT_NO_THROW({
    const auto j = nlohmann::json::parse(text);
    EXPECT_EQ(j["nics"][0]["link_layer"], nullptr);
  });
}

TEST(TopologyJson, LeftOutPathsMakeItIncomplete) {
  model::Topology t;
  for (int i = 0; i < 600; ++i) {
    model::Gpu gpu;
    gpu.id = "GPU" + std::to_string(i);
    t.gpus.push_back(gpu);
  }
  const auto j = nlohmann::json::parse(topology_json(t));
  EXPECT_EQ(j["source"]["complete"], false);
  EXPECT_EQ(j["warnings"][0]["code"], "too-many-devices");
  EXPECT_EQ(j["gpus"].size(), 600U);
}

}  // namespace
}  // namespace topotune::emit
