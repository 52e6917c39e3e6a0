// The verbs module without a NIC: writes and reads are copies. FAKE_VERBS_FAULT: "no-devices", "denied",
// "no-dmabuf", "no-peermem", "memlock", "corrupt" (one byte of each transfer arrives wrong), "apart" (two
// ports do not reach each other), "rnr" (no transfer completes).
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gdr/module_api.h"

namespace {

using Fault = TopotuneVerbsFault;

struct End {
  std::string device;
  unsigned char* memory = nullptr;
};

bool fault(const char* name) {
  const char* text = std::getenv("FAKE_VERBS_FAULT");
  return text != nullptr &&
         (" " + std::string(text) + " ").find(" " + std::string(name) + " ") != std::string::npos;
}

int fail(Fault* out, const char* step, int number, const char* text) {
  std::snprintf(out->step, sizeof out->step, "%s", step);
  std::snprintf(out->text, sizeof out->text, "%s", text);
  out->number = number;
  return 1;
}

int devices(char* names, std::size_t size, Fault* out) {
  if (fault("no-devices"))
    return fail(out, "devices", ENOSYS, "ibv_get_device_list: Function not implemented");
  std::snprintf(names, size, "mlx5_0 mlx5_1");
  return 0;
}

void* open(const char* device, int, int, Fault* out) {
  if (fault("denied")) return fail(out, "open", EACCES, "ibv_open_device: Permission denied"), nullptr;
  return new End{device, nullptr};
}

int register_memory(void* end, void* address, std::size_t, int fd, Fault* out) {
  if (fd >= 0 && fault("no-dmabuf"))
    return fail(out, "ibv_reg_dmabuf_mr", EOPNOTSUPP, "ibv_reg_dmabuf_mr: Operation not supported");
  if (fd < 0 && fault("no-peermem")) return fail(out, "ibv_reg_mr", EFAULT, "ibv_reg_mr: Bad address");
  if (fault("memlock")) return fail(out, "ibv_reg_mr", ENOMEM, "ibv_reg_mr: Cannot allocate memory");
  static_cast<End*>(end)->memory = static_cast<unsigned char*>(address);
  return 0;
}

int connect(void* a, void* b, Fault* out) {
  const bool same = static_cast<End*>(a)->device == static_cast<End*>(b)->device;
  if (!same && fault("apart"))
    return fail(out, "connect", ETIMEDOUT, "ibv_modify_qp to RTR: Connection timed out");
  return 0;
}

int transfer(void* a, void* b, int op, std::size_t from, std::size_t to, std::size_t bytes,
             std::uint64_t count, int, double, double* seconds, Fault* out) {
  if (fault("rnr")) return fail(out, "completion", 12, "transport retry counter exceeded");
  auto *first = static_cast<End*>(a), *second = static_cast<End*>(b);
  unsigned char* const target = (op == 0 ? second : first)->memory + to;
  for (std::uint64_t i = 0; i < count; ++i)
    std::memcpy(target, (op == 0 ? first : second)->memory + from, bytes);
  if (fault("corrupt")) target[bytes / 2] ^= 1;
  *seconds = static_cast<double>(count) * (1e-6 + static_cast<double>(bytes) / 40e9);  // counted, not taken
  return 0;
}

void close(void* end) { delete static_cast<End*>(end); }

constexpr TopotuneVerbs kModule{
    kVerbsModuleVersion, devices, open, register_memory, connect, transfer, close};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TopotuneVerbs* topotune_verbs() { return &kModule; }
