#pragma once

#include <cstdint>

// The part of NVML's binary interface that the probe uses, declared here because no header of it is needed to
// build. Names, numbers and layouts follow the published NVML API reference; each function is looked up by
// name at run time.
namespace topotune::host::nvml {

using Return = int;  // nvmlReturn_t
inline constexpr Return kSuccess = 0;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;

using Device = struct DeviceHandle*;  // nvmlDevice_t

struct PciInfo {  // nvmlPciInfo_t (v3)
  char bus_id_legacy[16];
  unsigned domain, bus, device;
  unsigned device_id;     // device << 16 | vendor
  unsigned subsystem_id;  // likewise
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
struct Bar1Memory {  // nvmlBAR1Memory_t
  unsigned long long total, free, used;
};
struct Utilization {  // nvmlUtilization_t
  unsigned gpu, memory;
};

struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  long long timestamp, latency_us;
  int type;  // nvmlValueType_t: 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5
             // int, 6 u16
  Return result;
  union {
    double f64;
    unsigned u32;
    unsigned long long u64;
    long long s64;
    int s32;
    unsigned short u16;
  } value;
};
static_assert(sizeof(FieldValue) == 40);

inline constexpr unsigned kFieldSpeedL0 = 84;      // NVLINK_SPEED_MBPS_L0 ... L5 = 89
inline constexpr unsigned kFieldSpeedL6 = 124;     // NVLINK_SPEED_MBPS_L6 ... L11 = 129
inline constexpr unsigned kFieldSpeedCommon = 90;  // NVLINK_SPEED_MBPS_COMMON
inline constexpr unsigned kFieldLinkCount = 91;    // NVLINK_LINK_COUNT
inline constexpr unsigned kFieldLinkSpeed = 164;   // NVLINK_GET_SPEED, scope: link
inline constexpr unsigned kFieldC2cCount = 170;    // C2C_LINK_COUNT
inline constexpr unsigned kFieldC2cStatus = 171;   // C2C_LINK_GET_STATUS, scope: link
inline constexpr unsigned kFieldC2cSpeed = 172;    // C2C_LINK_GET_MAX_BW, scope: link, MB/s

struct FabricInfoV2 {  // nvmlGpuFabricInfo_v2_t
  unsigned version;
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique_id;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36);
inline constexpr unsigned kFabricInfoV2 = sizeof(FabricInfoV2) | 2u << 24;

struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char cluster_uuid[16];
  Return status;
  unsigned clique_id;
  unsigned char state;
};
static_assert(sizeof(FabricInfo) == 28);

struct ConfidentialState {  // nvmlConfComputeSystemState_t
  unsigned environment, feature, dev_tools_mode;
};

}  // namespace topotune::host::nvml
