#include "host/nvml_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "host/nvml_api.h"

namespace topotune::host {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

// A machine of two GPUs as the library would describe it; the second one has been lost.
int init_ok() { return 0; }
int init_mismatch() { return 18; }
const char* error_text(int code) {
  return code == 15 ? "GPU is lost" : code == 18 ? "version mismatch" : "Not Supported";
}
int count(unsigned* out) { return *out = 2, 0; }
int handle(unsigned index, nvml::Device* out) {
  *out = reinterpret_cast<nvml::Device>(static_cast<std::uintptr_t>(index + 1));
  return index == 1 ? 15 : 0;
}
int name(nvml::Device, char* out, unsigned size) { return std::snprintf(out, size, "%s", "Test GPU"), 0; }
int refuse_text(nvml::Device, char*, unsigned) { return 3; }
int pci(nvml::Device, nvml::PciInfo* out) {
  out->device_id = 0x233510de;
  std::snprintf(out->bus_id, sizeof out->bus_id, "%s", "00000000:1B:00.0");
  return 0;
}
int fields(nvml::Device, int n, nvml::FieldValue* out) {
  for (int i = 0; i < n; ++i) {
    out[i].type = 1;
    out[i].result = 0;
    if (out[i].field == nvml::kFieldLinkCount)
      out[i].value.u32 = 2;
    else if (out[i].field == nvml::kFieldLinkSpeed)
      out[i].value.u32 = 26562;
    else
      out[i].result = 3;
  }
  return 0;
}
int link_state(nvml::Device, unsigned link, unsigned* out) { return *out = link == 0, 0; }
int remote_type(nvml::Device, unsigned, int* out) { return *out = 2, 0; }
int fabric(nvml::Device, nvml::FabricInfoV2* out) {
  if (out->version != nvml::kFabricInfoV2) return 25;
  out->state = 3;
  out->cluster_uuid[0] = 0xab;
  out->clique_id = 7;
  out->health_mask = 1;
  return 0;
}

SymbolLookup library(std::map<std::string, void*> extra = {}) {
  std::map<std::string, void*> table{
      {"nvmlInit_v2", reinterpret_cast<void*>(&init_ok)},
      {"nvmlErrorString", reinterpret_cast<void*>(&error_text)},
      {"nvmlDeviceGetCount_v2", reinterpret_cast<void*>(&count)},
      {"nvmlDeviceGetHandleByIndex_v2", reinterpret_cast<void*>(&handle)},
      {"nvmlDeviceGetName", reinterpret_cast<void*>(&name)},
      {"nvmlDeviceGetSerial", reinterpret_cast<void*>(&refuse_text)},
      {"nvmlDeviceGetPciInfo_v3", reinterpret_cast<void*>(&pci)},
      {"nvmlDeviceGetFieldValues", reinterpret_cast<void*>(&fields)},
      {"nvmlDeviceGetNvLinkState", reinterpret_cast<void*>(&link_state)},
      {"nvmlDeviceGetNvLinkRemoteDeviceType", reinterpret_cast<void*>(&remote_type)},
      {"nvmlDeviceGetGpuFabricInfoV", reinterpret_cast<void*>(&fabric)}};
  for (const auto& [key, symbol] : extra) table[key] = symbol;
  return [table](const char* symbol) {
    const auto found = table.find(symbol);
    return found == table.end() ? nullptr : found->second;
  };
}

Json ask(const SymbolLookup& lookup, const std::set<std::string>& excluded = {}) {
  const auto text = nvml_json(lookup, excluded);
  return text ? Json::parse(*text) : Json(text.error().text);
}

TEST(NvmlJson, TellsAGpu) {
  const auto gpu = ask(library())["gpus"][0];
  EXPECT_EQ(gpu["name"], "Test GPU");
  EXPECT_EQ(gpu["pci"]["device"], 0x2335);
  EXPECT_EQ(gpu["pci"]["bus_id"], "00000000:1B:00.0");
  EXPECT_EQ(gpu["fabric"]["state"], 3);
  EXPECT_EQ(gpu["fabric"]["cluster_uuid"], "ab000000-0000-0000-0000-000000000000");
}

TEST(NvmlJson, LinksAreCountedAndTheirSpeedIsPerDirection) {
  const auto links = ask(library())["gpus"][0]["nvlinks"];
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0]["active"], true);
  EXPECT_EQ(links[0]["gbytes_per_s"], 26.562);
  EXPECT_EQ(links[0]["remote_type"], "switch");
  EXPECT_EQ(links[1]["active"], false);
  EXPECT_FALSE(links[1].contains("gbytes_per_s"));
}

int no_fields(nvml::Device, int, nvml::FieldValue*) { return 3; }
int no_links(nvml::Device, unsigned, unsigned*) { return 3; }

TEST(NvmlJson, GpuWithoutNvlinkSaysSo) {
  const auto gpu =
      ask(library({{"nvmlDeviceGetFieldValues", reinterpret_cast<void*>(&no_fields)},
                   {"nvmlDeviceGetNvLinkState", reinterpret_cast<void*>(&no_links)}}))["gpus"][0];
  EXPECT_EQ(gpu["nvlinks"]["error"], "Not Supported");
}

TEST(NvmlJson, CountsAreWholeNumbers) {
  EXPECT_TRUE(ask(library())["gpus"][0]["nvlink_count"].is_number_integer());
}

TEST(NvmlJson, RefusalsAndMissingFunctionsAreSaidInPlace) {
  const auto gpu = ask(library())["gpus"][0];
  EXPECT_EQ(gpu["serial"]["error"], "Not Supported");
  EXPECT_EQ(gpu["uuid"]["error"], "nvmlDeviceGetUUID: not in this library");
}

TEST(NvmlJson, LostGpuKeepsItsPlace) {
  const auto all = ask(library());
  EXPECT_EQ(all["gpu_count"], 2);
  ASSERT_EQ(all["gpus"].size(), 2u);
  EXPECT_EQ(all["gpus"][1]["error"], "GPU is lost");
  EXPECT_TRUE(all["p2p"].empty());
}

TEST(NvmlJson, FailedInitIsTheLibrarysText) {
  const auto said = ask(library({{"nvmlInit_v2", reinterpret_cast<void*>(&init_mismatch)}}));
  EXPECT_EQ(said, "nvmlInit_v2: version mismatch");
}

TEST(NvmlJson, EmptyLibraryIsAnError) {
  EXPECT_FALSE(nvml_json([](const char*) { return nullptr; }, {}));
}

TEST(NvmlJson, ExcludedGpuIsNotAsked) {
  const auto gpu = ask(library(), {"0000:1b:00.0"})["gpus"][0];
  EXPECT_EQ(gpu["error"], "excluded");
  EXPECT_FALSE(gpu.contains("name"));
}

}  // namespace
}  // namespace topotune::host
