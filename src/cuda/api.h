#pragma once

#include <cstddef>
#include <cstdint>

// The part of the CUDA driver's binary interface that the measurements use, declared here so that no toolkit
// is needed to build and none at run time: each function is looked up by name in libcuda.so.1. Names and
// numbers follow the published CUDA driver API reference (cuda.h); `_v2` is the version that cuda.h's macros
// choose.
namespace topotune::cuda::api {

using Rc = int;      // CUresult
using Device = int;  // CUdevice
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using Module = struct ModuleHandle*;
using Function = struct FunctionHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;
using DevicePtr = unsigned long long;  // CUdeviceptr

inline constexpr Rc kSuccess = 0;
inline constexpr Rc kOutOfMemory = 2;
inline constexpr Rc kNoDevice = 100;
inline constexpr Rc kInvalidDevice = 101;
inline constexpr Rc kDeviceUnavailable = 46;  // exclusive or prohibited compute mode, or MIG
inline constexpr Rc kNoBinaryForGpu = 209;
inline constexpr Rc kPeerAccessAlreadyEnabled = 704;
inline constexpr Rc kNotReady = 600;

// CUdevice_attribute
inline constexpr int kMultiprocessors = 16;
inline constexpr int kComputeMode = 20;  // 0 default, 2 prohibited, 3 exclusive process
inline constexpr int kAsyncEngines = 40;
inline constexpr int kMajor = 75;
inline constexpr int kMinor = 76;
inline constexpr int kSharedPerBlockOptin = 97;
inline constexpr int kGpuDirectRdma = 116;
inline constexpr int kDmaBuf = 124;
inline constexpr int kDmaBufHandle = 1;  // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
inline constexpr int kSyncMemops = 6;    // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
// CUfunction_attribute
inline constexpr int kMaxDynamicShared = 8;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kHostPortable = 1, kHostMapped = 2;
inline constexpr unsigned kWaitGreaterOrEqual = 0;
inline constexpr int kCaptureThreadLocal = 1;  // CUstreamCaptureMode

// X(member, symbol, parameters): all return CUresult.
#define TOPOTUNE_CUDA_FUNCTIONS(X)                                                                       \
  X(init, "cuInit", (unsigned))                                                                          \
  X(driver_version, "cuDriverGetVersion", (int*))                                                        \
  X(error_name, "cuGetErrorName", (Rc, const char**))                                                    \
  X(error_string, "cuGetErrorString", (Rc, const char**))                                                \
  X(device_count, "cuDeviceGetCount", (int*))                                                            \
  X(device_get, "cuDeviceGet", (Device*, int))                                                           \
  X(device_name, "cuDeviceGetName", (char*, int, Device))                                                \
  X(device_bus_id, "cuDeviceGetPCIBusId", (char*, int, Device))                                          \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, Device))                                       \
  X(device_can_access_peer, "cuDeviceCanAccessPeer", (int*, Device, Device))                             \
  X(primary_retain, "cuDevicePrimaryCtxRetain", (Context*, Device))                                      \
  X(primary_release, "cuDevicePrimaryCtxRelease_v2", (Device))                                           \
  X(set_current, "cuCtxSetCurrent", (Context))                                                           \
  X(enable_peer, "cuCtxEnablePeerAccess", (Context, unsigned))                                           \
  X(mem_info, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                           \
  X(mem_alloc, "cuMemAlloc_v2", (DevicePtr*, std::size_t))                                               \
  X(mem_free, "cuMemFree_v2", (DevicePtr))                                                               \
  X(host_alloc, "cuMemHostAlloc", (void**, std::size_t, unsigned))                                       \
  X(host_free, "cuMemFreeHost", (void*))                                                                 \
  X(host_register, "cuMemHostRegister_v2", (void*, std::size_t, unsigned))                               \
  X(host_unregister, "cuMemHostUnregister", (void*))                                                     \
  X(host_device_pointer, "cuMemHostGetDevicePointer_v2", (DevicePtr*, void*, unsigned))                  \
  X(copy_async, "cuMemcpyAsync", (DevicePtr, DevicePtr, std::size_t, Stream))                            \
  X(copy_to_device, "cuMemcpyHtoD_v2", (DevicePtr, const void*, std::size_t))                            \
  X(copy_to_host, "cuMemcpyDtoH_v2", (void*, DevicePtr, std::size_t))                                    \
  X(copy_to_device_async, "cuMemcpyHtoDAsync_v2", (DevicePtr, const void*, std::size_t, Stream))         \
  X(copy_to_host_async, "cuMemcpyDtoHAsync_v2", (void*, DevicePtr, std::size_t, Stream))                 \
  X(copy_peer_async, "cuMemcpyPeerAsync", (DevicePtr, Context, DevicePtr, Context, std::size_t, Stream)) \
  X(set_d32_async, "cuMemsetD32Async", (DevicePtr, unsigned, std::size_t, Stream))                       \
  X(stream_create, "cuStreamCreate", (Stream*, unsigned))                                                \
  X(stream_destroy, "cuStreamDestroy_v2", (Stream))                                                      \
  X(stream_synchronize, "cuStreamSynchronize", (Stream))                                                 \
  X(event_create, "cuEventCreate", (Event*, unsigned))                                                   \
  X(event_destroy, "cuEventDestroy_v2", (Event))                                                         \
  X(event_record, "cuEventRecord", (Event, Stream))                                                      \
  X(event_elapsed, "cuEventElapsedTime", (float*, Event, Event))                                         \
  X(module_load, "cuModuleLoadData", (Module*, const void*))                                             \
  X(module_unload, "cuModuleUnload", (Module))                                                           \
  X(module_function, "cuModuleGetFunction", (Function*, Module, const char*))                            \
  X(function_set, "cuFuncSetAttribute", (Function, int, int))                                            \
  X(launch, "cuLaunchKernel",                                                                            \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void**,     \
     void**))

// Null in drivers older than CUDA 11.4, cuMemGetHandleForAddressRange in those older than 11.7.
#define TOPOTUNE_CUDA_OPTIONAL(X)                                                              \
  X(stream_query, "cuStreamQuery", (Stream))                                                   \
  X(begin_capture, "cuStreamBeginCapture_v2", (Stream, int))                                   \
  X(end_capture, "cuStreamEndCapture", (Stream, Graph*))                                       \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (GraphExec*, Graph, unsigned long long)) \
  X(graph_launch, "cuGraphLaunch", (GraphExec, Stream))                                        \
  X(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec))                                     \
  X(graph_destroy, "cuGraphDestroy", (Graph))                                                  \
  X(pointer_set, "cuPointerSetAttribute", (const void*, int, DevicePtr))                       \
  X(range_handle, "cuMemGetHandleForAddressRange", (void*, DevicePtr, std::size_t, int, unsigned long long))

}  // namespace topotune::cuda::api
