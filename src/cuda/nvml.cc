#include "cuda/nvml.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "host/nvml_api.h"

namespace topotune::cuda {

namespace {

namespace nvml = host::nvml;

// nvmlProcessInfo_t (v2 and v3)
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

constexpr unsigned kFieldDataTx = 138;  // NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, KiB
constexpr unsigned kFieldDataRx = 139;
constexpr unsigned kAllLinks = 0xffffffff;
constexpr int kClockSm = 1, kClockMemory = 2;

template <class... Args>
bool ask(const host::SharedLibrary& library, const char* name, Args... args) {
  void* const symbol = library.symbol(name);
  return symbol != nullptr && reinterpret_cast<nvml::Return (*)(Args...)>(symbol)(args...) == nvml::kSuccess;
}

std::optional<std::uint64_t> value_of(const nvml::FieldValue& field) {
  if (field.result != nvml::kSuccess) return std::nullopt;
  return field.type == 1 ? field.value.u32 : field.value.u64;
}

std::optional<int> clock_of(const host::SharedLibrary& library, nvml::Device device, int which) {
  unsigned mhz = 0;
  if (!ask(library, "nvmlDeviceGetClockInfo", device, which, &mhz)) return std::nullopt;
  return static_cast<int>(mhz);
}

std::optional<std::vector<std::uint32_t>> processes_of(const host::SharedLibrary& library,
                                                       nvml::Device device) {
  std::array<ProcessInfo, 64> list{};
  unsigned count = list.size();
  if (!ask(library, "nvmlDeviceGetComputeRunningProcesses_v3", device, &count, list.data()))
    return std::nullopt;
  std::vector<std::uint32_t> others;
  for (unsigned i = 0; i < count && i < list.size(); ++i) {
    if (list[i].pid != static_cast<unsigned>(::getpid())) others.push_back(list[i].pid);
  }
  return others;
}

}  // namespace

Result<Nvml> Nvml::open() {
  const auto library = host::SharedLibrary::open("libnvidia-ml.so.1");
  if (!library) return tl::unexpected(library.error());
  if (!ask(*library, "nvmlInit_v2")) return fail(Errc::unsupported, "nvmlInit failed");
  return Nvml(*library);
}

void* Nvml::device_of(const std::string& bdf) const {
  nvml::Device device = nullptr;
  if (!ask(library_, "nvmlDeviceGetHandleByPciBusId_v2", bdf.c_str(), &device)) return nullptr;
  return device;
}

model::GpuMoment Nvml::moment(const GpuName& gpu) const {
  model::GpuMoment m;
  m.gpu = gpu.id;
  const auto device = static_cast<nvml::Device>(device_of(gpu.bdf));
  if (device == nullptr) return m;
  m.sm_mhz = clock_of(library_, device, kClockSm);
  m.memory_mhz = clock_of(library_, device, kClockMemory);
  unsigned degrees = 0;
  if (ask(library_, "nvmlDeviceGetTemperature", device, 0, &degrees))
    m.temperature_c = static_cast<int>(degrees);
  unsigned long long reasons = 0;
  if (ask(library_, "nvmlDeviceGetCurrentClocksEventReasons", device, &reasons) ||
      ask(library_, "nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons))
    m.throttle_reasons = reasons;
  m.other_processes = processes_of(library_, device);
  return m;
}

std::optional<Nvml::LinkBytes> Nvml::link_bytes(const std::string& bdf) const {
  const auto device = static_cast<nvml::Device>(device_of(bdf));
  if (device == nullptr) return std::nullopt;
  std::array<nvml::FieldValue, 2> fields{};
  fields[0].field = kFieldDataTx;
  fields[1].field = kFieldDataRx;
  for (auto& field : fields) field.scope = kAllLinks;
  if (!ask(library_, "nvmlDeviceGetFieldValues", device, 2, fields.data())) return std::nullopt;
  const auto sent = value_of(fields[0]), received = value_of(fields[1]);
  if (!sent || !received) return std::nullopt;
  return LinkBytes{*sent * 1024, *received * 1024};
}

std::optional<bool> Nvml::mig(const std::string& bdf) const {
  const auto device = static_cast<nvml::Device>(device_of(bdf));
  unsigned current = 0, pending = 0;
  if (device == nullptr || !ask(library_, "nvmlDeviceGetMigMode", device, &current, &pending))
    return std::nullopt;
  return current == 1;
}

std::string throttle_text(std::uint64_t reasons) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 6> names{
      {{0x4, "power cap"},
       {0x8, "hardware slowdown"},
       {0x10, "sync boost"},
       {0x20, "thermal slowdown by software"},
       {0x40, "hardware thermal slowdown"},
       {0x80, "power brake"}}};
  std::string text;
  for (const auto& [bit, name] : names) {
    if ((reasons & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

}  // namespace topotune::cuda
