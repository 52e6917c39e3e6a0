#include "host/nvml_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/bdf.h"
#include "base/text.h"
#include "host/nvml_api.h"

namespace topotune::host {
namespace {

using Json = nlohmann::ordered_json;
using nvml::Device;
using nvml::kSuccess;

// Calls by name. An absent function and a refusal are both answers, as {"error": text}.
class Library {
 public:
  explicit Library(const SymbolLookup& lookup) : lookup_(lookup) {}

  template <class... Args>
  std::optional<nvml::Return> call(const char* name, Args... args) const {
    void* const symbol = lookup_(name);
    if (symbol == nullptr) return std::nullopt;
    return reinterpret_cast<nvml::Return (*)(Args...)>(symbol)(args...);
  }

  // Null when the call succeeded, else the object that says why not.
  template <class... Args>
  Json ask(const char* name, Args... args) const {
    const auto result = call(name, args...);
    if (result == kSuccess) return nullptr;
    return error(result ? text_of(*result) : std::string(name) + ": not in this library");
  }

  std::string text_of(nvml::Return result) const {
    if (void* const symbol = lookup_("nvmlErrorString"))
      if (const char* const text = reinterpret_cast<const char* (*)(nvml::Return)>(symbol)(result))
        return text;
    return "NVML error " + std::to_string(result);
  }

  static Json error(std::string text) { return Json{{"error", printable(text)}}; }

 private:
  const SymbolLookup& lookup_;
};

// The text of a fixed array that might lack its end.
template <std::size_t N>
std::string text_in(const char (&buffer)[N]) {
  return printable(std::string_view(buffer, strnlen(buffer, N)));
}

template <class... Args>
Json ask_text(const Library& lib, const char* name, Args... args) {
  char buffer[128] = {};
  Json failed = lib.ask(name, args..., static_cast<char*>(buffer), static_cast<unsigned>(sizeof buffer - 1));
  if (!failed.is_null()) return failed;
  return text_in(buffer);
}

template <class T>
Json ask_number(const Library& lib, const char* name, Device device) {
  T value{};
  Json failed = lib.ask(name, device, &value);
  if (!failed.is_null()) return failed;
  return value;
}

std::string word_of(unsigned value, std::initializer_list<const char*> words) {
  return value < words.size() ? words.begin()[value] : std::to_string(value);
}

// An enumeration that becomes one of `words`, a number beyond them becomes its text.
template <class T, class... Args>
Json ask_word(const Library& lib, const char* name, std::initializer_list<const char*> words, Args... args) {
  T value{};
  Json failed = lib.ask(name, args..., &value);
  if (!failed.is_null()) return failed;
  return word_of(static_cast<unsigned>(value), words);
}

Json pci_of(const Library& lib, Device device) {
  nvml::PciInfo info{};
  Json failed = lib.ask("nvmlDeviceGetPciInfo_v3", device, &info);
  if (!failed.is_null()) return failed;
  return {{"bus_id", text_in(info.bus_id)},
          {"vendor", info.device_id & 0xffff},
          {"device", info.device_id >> 16},
          {"subsystem_vendor", info.subsystem_id & 0xffff},
          {"subsystem_device", info.subsystem_id >> 16}};
}

Json capability_of(const Library& lib, Device device) {
  int major = 0, minor = 0;
  Json failed = lib.ask("nvmlDeviceGetCudaComputeCapability", device, &major, &minor);
  return failed.is_null() ? Json{major, minor} : failed;
}

Json mig_of(const Library& lib, Device device) {
  unsigned current = 0, pending = 0;
  Json failed = lib.ask("nvmlDeviceGetMigMode", device, &current, &pending);
  if (!failed.is_null()) return failed;
  return {{"current", current != 0}, {"pending", pending != 0}};
}

Json pcie_of(const Library& lib, Device device) {
  Json out;
  out["gen"] = ask_number<unsigned>(lib, "nvmlDeviceGetCurrPcieLinkGeneration", device);
  out["gen_max"] = ask_number<unsigned>(lib, "nvmlDeviceGetMaxPcieLinkGeneration", device);
  out["gen_device_max"] = ask_number<unsigned>(lib, "nvmlDeviceGetGpuMaxPcieLinkGeneration", device);
  out["width"] = ask_number<unsigned>(lib, "nvmlDeviceGetCurrPcieLinkWidth", device);
  out["width_max"] = ask_number<unsigned>(lib, "nvmlDeviceGetMaxPcieLinkWidth", device);
  out["replays"] = ask_number<unsigned>(lib, "nvmlDeviceGetPcieReplayCounter", device);
  return out;
}

template <class T>
Json memory_of(const Library& lib, const char* name, Device device) {
  T memory{};
  Json failed = lib.ask(name, device, &memory);
  if (!failed.is_null()) return failed;
  return {{"total_bytes", memory.total}, {"used_bytes", memory.used}};
}

std::string uuid_text(const unsigned char (&bytes)[16]) {
  std::string out;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", bytes[i]);
  }
  return out;
}

template <class T>
Json fabric_json(const T& info) {
  return {{"state", info.state},
          {"status", info.status},
          {"clique_id", info.clique_id},
          {"cluster_uuid", uuid_text(info.cluster_uuid)}};
}

Json fabric_of(const Library& lib, Device device) {
  nvml::FabricInfoV2 info{};
  info.version = nvml::kFabricInfoV2;
  Json failed = lib.ask("nvmlDeviceGetGpuFabricInfoV", device, &info);
  if (failed.is_null()) {
    Json out = fabric_json(info);
    out["health_mask"] = info.health_mask;
    return out;
  }
  nvml::FabricInfo old{};  // before driver 545
  if (lib.ask("nvmlDeviceGetGpuFabricInfo", device, &old).is_null()) return fabric_json(old);
  return failed;
}

Json utilisation_of(const Library& lib, Device device) {
  nvml::Utilization rates{};
  Json failed = lib.ask("nvmlDeviceGetUtilizationRates", device, &rates);
  return failed.is_null() ? Json(rates.gpu) : failed;
}

Json temperature_of(const Library& lib, Device device) {
  unsigned degrees = 0;
  constexpr int kGpuSensor = 0;  // NVML_TEMPERATURE_GPU
  Json failed = lib.ask("nvmlDeviceGetTemperature", device, kGpuSensor, &degrees);
  return failed.is_null() ? Json(degrees) : failed;
}

Json power_of(const Library& lib, Device device) {
  Json milliwatts = ask_number<unsigned>(lib, "nvmlDeviceGetPowerUsage", device);
  return milliwatts.is_number() ? Json(milliwatts.get<double>() / 1000) : milliwatts;
}

Json reasons_of(const Library& lib, Device device) {
  Json mask = ask_number<unsigned long long>(lib, "nvmlDeviceGetCurrentClocksEventReasons", device);
  if (mask.is_number()) return mask;  // before driver 535 it had another name
  Json old = ask_number<unsigned long long>(lib, "nvmlDeviceGetCurrentClocksThrottleReasons", device);
  return old.is_number() ? old : mask;
}

std::optional<double> number_of(const nvml::FieldValue& field) {
  switch (field.type) {
    case 0:
      return field.value.f64;
    case 1:
      return field.value.u32;
    case 2:
    case 3:
      return static_cast<double>(field.value.u64);
    case 4:
      return static_cast<double>(field.value.s64);
    case 5:
      return field.value.s32;
    case 6:
      return field.value.u16;
    default:
      return std::nullopt;
  }
}

// One field as a number, or the error object.
Json field_of(const Library& lib, Device device, unsigned field, unsigned scope = 0) {
  nvml::FieldValue value{};
  value.field = field;
  value.scope = scope;
  Json failed = lib.ask("nvmlDeviceGetFieldValues", device, 1, &value);
  if (!failed.is_null()) return failed;
  if (value.result != kSuccess) return Library::error(lib.text_of(value.result));
  const auto number = number_of(value);
  if (number && *number >= 0 && *number == std::floor(*number) && *number < 1e15)
    return static_cast<std::uint64_t>(*number);
  return number ? Json(*number) : Library::error(fmt::format("field {}: value type {}", field, value.type));
}

Json gbytes_from_mbytes(Json megabytes) {
  return megabytes.is_number() ? Json(megabytes.get<double>() / 1000) : megabytes;
}

// MB/s of one link: by scope (Hopper and later), by the link's own field, by the field that all links share.
Json link_speed(const Library& lib, Device device, unsigned link) {
  const Json scoped = field_of(lib, device, nvml::kFieldLinkSpeed, link);
  if (scoped.is_number() && scoped > 0) return gbytes_from_mbytes(scoped);
  if (link < 12) {
    const Json own =
        field_of(lib, device, link < 6 ? nvml::kFieldSpeedL0 + link : nvml::kFieldSpeedL6 + link - 6);
    if (own.is_number() && own > 0) return gbytes_from_mbytes(own);
  }
  const Json common = field_of(lib, device, nvml::kFieldSpeedCommon);
  return common.is_number() && common > 0 ? gbytes_from_mbytes(common)
                                          : (scoped.is_number() ? Library::error("speed 0") : scoped);
}

Json link_capabilities(const Library& lib, Device device, unsigned link) {
  constexpr std::array kNames{"p2p", "system_memory", "p2p_atomics", "system_memory_atomics", "sli", "valid"};
  Json out = Json::array();
  for (int capability = 0; capability < static_cast<int>(kNames.size()); ++capability) {
    unsigned has = 0;
    Json failed = lib.ask("nvmlDeviceGetNvLinkCapability", device, link, capability, &has);
    if (!failed.is_null()) return failed;
    if (has != 0) out.push_back(kNames[static_cast<std::size_t>(capability)]);
  }
  return out;
}

Json remote_bus_id(const Library& lib, Device device, unsigned link) {
  nvml::PciInfo info{};
  Json failed = lib.ask("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &info);
  return failed.is_null() ? Json(text_in(info.bus_id)) : failed;
}

Json remote_type(const Library& lib, Device device, unsigned link) {
  int type = 255;
  Json failed = lib.ask("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, &type);
  if (!failed.is_null()) return failed;
  return type == 255 ? "unknown" : word_of(static_cast<unsigned>(type), {"gpu", "npu", "switch"});
}

// Error counters since the driver was loaded; a library or GPU that refuses the first refuses them all.
Json link_errors(const Library& lib, Device device, unsigned link) {
  constexpr std::array kNames{"replay", "recovery", "crc_flit",
                              "crc_data"};  // nvmlNvLinkErrorCounter_t 0 to 3
  Json out = Json::object();
  for (int counter = 0; counter < static_cast<int>(kNames.size()); ++counter) {
    unsigned long long value = 0;
    const Json failed = lib.ask("nvmlDeviceGetNvLinkErrorCounter", device, link, counter, &value);
    if (!failed.is_null() && out.empty()) return failed;
    if (failed.is_null()) out[kNames[static_cast<std::size_t>(counter)]] = value;
  }
  return out;
}

Json link_of(const Library& lib, Device device, unsigned link, bool active) {
  Json out{{"link", link}, {"active", active}};
  unsigned version = 0;
  Json failed = lib.ask("nvmlDeviceGetNvLinkVersion", device, link, &version);
  out["version"] = failed.is_null() ? Json(version) : failed;
  if (!active) return out;
  out["gbytes_per_s"] = link_speed(lib, device, link);
  out["remote_type"] = remote_type(lib, device, link);
  out["remote_bus_id"] = remote_bus_id(lib, device, link);
  out["capabilities"] = link_capabilities(lib, device, link);
  out["errors"] = link_errors(lib, device, link);
  return out;
}

// Without a count every number up to NVML_NVLINK_MAX_LINKS is tried; the library refuses those that do not
// exist. The refusal of link 0 is the answer of a GPU without NVLink.
Json links_of(const Library& lib, Device device, const Json& count) {
  constexpr unsigned kMaxLinks = 18, kSaneLinks = 64;
  const bool counted = count.is_number();
  const unsigned links =
      counted ? static_cast<unsigned>(std::min(count.get<double>(), double{kSaneLinks})) : kMaxLinks;
  Json out = Json::array();
  for (unsigned link = 0; link < links; ++link) {
    unsigned active = 0;
    Json failed = lib.ask("nvmlDeviceGetNvLinkState", device, link, &active);
    if (failed.is_null()) {
      out.push_back(link_of(lib, device, link, active != 0));
    } else if (counted) {
      out.push_back({{"link", link}, {"error", failed["error"]}});
    } else {
      return out.empty() ? failed : out;
    }
  }
  return out;
}

Json c2c_of(const Library& lib, Device device) {
  Json count = field_of(lib, device, nvml::kFieldC2cCount);
  if (!count.is_number()) return count;
  const auto links = std::min(static_cast<unsigned>(count.get<double>()), 64u);
  unsigned active = 0;
  for (unsigned link = 0; link < links; ++link) {
    const Json status = field_of(lib, device, nvml::kFieldC2cStatus, link);
    if (status.is_number() && status.get<double>() != 0) ++active;
  }
  Json out{{"links", links}, {"active", active}};
  if (active > 0) out["gbytes_per_s"] = gbytes_from_mbytes(field_of(lib, device, nvml::kFieldC2cSpeed));
  return out;
}

void add_state(const Library& lib, Device device, Json& out) {
  out["utilisation"] = utilisation_of(lib, device);
  out["temperature_c"] = temperature_of(lib, device);
  out["power_w"] = power_of(lib, device);
  out["clock_event_reasons"] = reasons_of(lib, device);
  out["persistence"] = ask_word<int>(lib, "nvmlDeviceGetPersistenceMode", {"off", "on"}, device);
  out["compute_mode"] =
      ask_word<int>(lib, "nvmlDeviceGetComputeMode",
                    {"default", "exclusive_thread", "prohibited", "exclusive_process"}, device);
}

Json gpu_of(const Library& lib, Device device, unsigned index, const std::set<std::string>& excluded) {
  Json out{{"index", index}};
  out["pci"] = pci_of(lib, device);
  if (const auto bus = out["pci"].find("bus_id");
      bus != out["pci"].end() && excluded.contains(canonical_bdf(bus->get<std::string>()))) {
    out["error"] = "excluded";
    return out;
  }
  out["name"] = ask_text(lib, "nvmlDeviceGetName", device);
  out["uuid"] = ask_text(lib, "nvmlDeviceGetUUID", device);
  out["serial"] = ask_text(lib, "nvmlDeviceGetSerial", device);
  out["minor"] = ask_number<unsigned>(lib, "nvmlDeviceGetMinorNumber", device);
  out["vbios"] = ask_text(lib, "nvmlDeviceGetVbiosVersion", device);
  out["board_part"] = ask_text(lib, "nvmlDeviceGetBoardPartNumber", device);
  out["architecture"] = ask_number<unsigned>(lib, "nvmlDeviceGetArchitecture", device);
  out["compute_capability"] = capability_of(lib, device);
  out["mig"] = mig_of(lib, device);
  out["pcie"] = pcie_of(lib, device);
  out["bar1"] = memory_of<nvml::Bar1Memory>(lib, "nvmlDeviceGetBAR1MemoryInfo", device);
  out["memory"] = memory_of<nvml::Memory>(lib, "nvmlDeviceGetMemoryInfo", device);
  out["fabric"] = fabric_of(lib, device);
  add_state(lib, device, out);
  out["c2c"] = c2c_of(lib, device);
  out["nvlink_count"] = field_of(lib, device, nvml::kFieldLinkCount);
  out["nvlinks"] = links_of(lib, device, out["nvlink_count"]);
  return out;
}

Json p2p_status(const Library& lib, Device from, Device to, int capability) {
  return ask_word<int>(lib, "nvmlDeviceGetP2PStatus", {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"}, from, to,
                       capability);
}

Json common_ancestor(const Library& lib, Device from, Device to) {
  int level = 0;
  Json failed = lib.ask("nvmlDeviceGetTopologyCommonAncestor", from, to, &level);
  if (!failed.is_null()) return failed;
  return word_of(static_cast<unsigned>(level) / 10, {"internal", "PIX", "PXB", "PHB", "NODE", "SYS"});
}

Json pair_of(const Library& lib, const std::vector<Device>& devices, std::size_t from, std::size_t to) {
  Json out{{"from", from}, {"to", to}};
  constexpr std::array kCapabilities{"read", "write", "nvlink", "atomics", "prop"};  // numbers 0 to 4
  for (std::size_t i = 0; i < kCapabilities.size(); ++i)
    out[kCapabilities[i]] = p2p_status(lib, devices[from], devices[to], static_cast<int>(i));
  if (from < to) out["common_ancestor"] = common_ancestor(lib, devices[from], devices[to]);
  return out;
}

Json pairs_of(const Library& lib, const std::vector<Device>& devices) {
  Json out = Json::array();
  for (std::size_t from = 0; from < devices.size(); ++from)
    for (std::size_t to = 0; to < devices.size(); ++to)
      if (from != to && devices[from] != nullptr && devices[to] != nullptr)
        out.push_back(pair_of(lib, devices, from, to));
  return out;
}

Json cuda_version(const Library& lib) {
  int version = 0;
  Json failed = lib.ask("nvmlSystemGetCudaDriverVersion_v2", &version);
  if (!failed.is_null()) return failed;
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Json confidential_compute(const Library& lib) {
  nvml::ConfidentialState state{};
  Json failed = lib.ask("nvmlSystemGetConfComputeState", &state);
  if (!failed.is_null()) return failed;
  return state.feature != 0 ? "on" : "off";
}

void add_gpus(const Library& lib, const std::set<std::string>& excluded, Json& out) {
  constexpr unsigned kMaxGpus = 1024;
  unsigned count = 0;
  Json failed = lib.ask("nvmlDeviceGetCount_v2", &count);
  out["gpu_count"] = failed.is_null() ? Json(count) : failed;
  out["gpus"] = Json::array();
  std::vector<Device> devices(std::min(count, kMaxGpus), nullptr);
  for (unsigned i = 0; i < devices.size(); ++i) {
    Device device = nullptr;
    const auto result = lib.ask("nvmlDeviceGetHandleByIndex_v2", i, &device);
    if (!result.is_null()) {
      out["gpus"].push_back({{"index", i}, {"error", result["error"]}});
      continue;
    }
    out["gpus"].push_back(gpu_of(lib, device, i, excluded));
    if (!out["gpus"].back().contains("error")) devices[i] = device;
  }
  out["p2p"] = pairs_of(lib, devices);
}

}  // namespace

Result<std::string> nvml_json(const SymbolLookup& lookup, const std::set<std::string>& excluded) {
  const Library lib(lookup);
  const auto init = lib.call("nvmlInit_v2");
  if (!init) return fail(Errc::unsupported, "nvmlInit_v2: not in this library");
  if (*init != kSuccess) return fail(Errc::unsupported, "nvmlInit_v2: {}", lib.text_of(*init));
  Json out{{"schema", "topotune.probe.nvml/1"}};
  out["driver_version"] = ask_text(lib, "nvmlSystemGetDriverVersion");
  out["nvml_version"] = ask_text(lib, "nvmlSystemGetNVMLVersion");
  out["cuda_driver_version"] = cuda_version(lib);
  out["confidential_compute"] = confidential_compute(lib);
  add_gpus(lib, excluded, out);
  lib.call("nvmlShutdown");
  return out.dump();
}

}  // namespace topotune::host
