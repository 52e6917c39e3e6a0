#include "plugins/names.h"

#include <cstring>
#include <iterator>

namespace topotune::plugins {

namespace {

constexpr const char* kTypes[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                  "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                  "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
constexpr std::uint8_t kTypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr const char* kAlgorithms[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                       "NVLS_TREE", "PAT"};
constexpr const char* kProtocols[] = {"LL", "LL128", "SIMPLE"};

template <std::size_t count>
std::uint8_t place_of(const char* name, const char* const (&names)[count]) {
  for (std::size_t i = 0; name != nullptr && i < count; ++i)
    if (std::strcmp(name, names[i]) == 0) return static_cast<std::uint8_t>(i);
  return kUnknown;
}

}  // namespace

std::uint8_t Names::look_up_function(const char* name) { return place_of(name, kProfileFunctions); }
// NCCL has a name for every type but this one, and says "Unknown" (2.23 to 2.30).
std::uint8_t Names::look_up_type(const char* name) {
  constexpr std::uint8_t kUint8 = 1;
  return name != nullptr && std::strcmp(name, "Unknown") == 0 ? kUint8 : place_of(name, kTypes);
}
std::uint8_t Names::look_up_algorithm(const char* name) { return place_of(name, kAlgorithms); }
std::uint8_t Names::look_up_protocol(const char* name) { return place_of(name, kProtocols); }

std::uint64_t bytes_of(std::uint64_t count, std::uint8_t type) {
  return type < std::size(kTypeBytes) ? count * kTypeBytes[type] : 0;
}

}  // namespace topotune::plugins
