#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "host/probe_list.h"
#include "host/shared_library.h"

namespace topotune::host {
namespace {

using Json = nlohmann::ordered_json;

// CUresult and CUdevice are int in the driver's binary interface; 0 is success.
class Driver {
 public:
  explicit Driver(const SharedLibrary& library) : library_(library) {}

  template <class... Args>
  Json ask(const char* name, Args... args) const {
    void* const symbol = library_.symbol(name);
    if (symbol == nullptr) return {{"error", std::string(name) + ": not in this library"}};
    const int result = reinterpret_cast<int (*)(Args...)>(symbol)(args...);
    if (result == 0) return nullptr;
    return {{"error", name_of_result(result)}};
  }

  std::string name_of_result(int result) const {
    const char* text = nullptr;
    if (void* const symbol = library_.symbol("cuGetErrorName"))
      reinterpret_cast<int (*)(int, const char**)>(symbol)(result, &text);
    return text == nullptr ? "CUDA error " + std::to_string(result) : text;
  }

 private:
  const SharedLibrary& library_;
};

// CUdevice_attribute (cuda.h)
constexpr std::array<std::pair<const char*, int>, 5> kAttributes{{{"gpudirect_rdma", 116},
                                                                  {"dma_buf", 124},
                                                                  {"multicast", 132},
                                                                  {"pageable_memory_access", 88},
                                                                  {"fabric_handles", 128}}};

Json device_of(const Driver& driver, int index) {
  Json out{{"index", index}};
  int device = 0;
  Json failed = driver.ask("cuDeviceGet", &device, index);
  if (!failed.is_null()) return failed["index"] = index, failed;
  char bus_id[32] = {};
  failed = driver.ask("cuDeviceGetPCIBusId", static_cast<char*>(bus_id), static_cast<int>(sizeof bus_id - 1),
                      device);
  out["bus_id"] = failed.is_null() ? Json(std::string(bus_id)) : failed;
  for (const auto& [name, attribute] : kAttributes) {
    int value = 0;
    failed = driver.ask("cuDeviceGetAttribute", &value, attribute, device);
    out[name] = failed.is_null() ? Json(value != 0) : failed;
  }
  return out;
}

}  // namespace

// Initialising CUDA takes hundreds of milliseconds and a context of kernel resources: only on request.
Result<std::string> probe_cuda(const ProbeQuestion&) {
  const auto library = SharedLibrary::open("libcuda.so.1");
  if (!library) return tl::unexpected(library.error());
  const Driver driver(*library);
  Json failed = driver.ask("cuInit", 0u);
  if (!failed.is_null()) return fail(Errc::unsupported, "cuInit: {}", failed["error"].get<std::string>());
  Json out{{"schema", "topotune.probe.cuda/1"}};
  int version = 0, count = 0;
  failed = driver.ask("cuDriverGetVersion", &version);
  out["driver_version"] =
      failed.is_null() ? Json(fmt::format("{}.{}", version / 1000, version % 1000 / 10)) : failed;
  failed = driver.ask("cuDeviceGetCount", &count);
  out["device_count"] = failed.is_null() ? Json(count) : failed;
  out["devices"] = Json::array();
  for (int i = 0; i < count && i < 1024; ++i) out["devices"].push_back(device_of(driver, i));
  return out.dump();
}

}  // namespace topotune::host
