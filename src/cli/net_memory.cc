#include "cli/net_memory.h"

namespace topotune::cli {

namespace {

cuda::api::DevicePtr device(const void* memory) {
  return static_cast<cuda::api::DevicePtr>(reinterpret_cast<std::uintptr_t>(memory));
}

}  // namespace

Result<std::unique_ptr<GpuMemory>> GpuMemory::open(int local) {
  auto machine = cuda::open_machine([](const std::string&) { return std::string(); });
  if (!machine) return tl::unexpected(machine.error());
  if ((*machine)->gpus.empty())
    return fail(Errc::unsupported, "{}: {}", (*machine)->absent.front().id, (*machine)->absent.front().why);
  std::unique_ptr<GpuMemory> out(new GpuMemory(std::move(*machine)));
  const auto& gpus = out->machine_->gpus;
  out->gpu_ = &gpus[static_cast<std::size_t>(local) % gpus.size()];
  out->hooks_.self = out.get();
  out->hooks_.use = [](void* self) {
    const auto* const m = static_cast<GpuMemory*>(self);
    return m->machine_->driver.f.set_current(m->gpu_->context);
  };
  out->hooks_.allocate = [](void* self, std::size_t bytes) -> void* {
    const auto* const m = static_cast<GpuMemory*>(self);
    cuda::api::DevicePtr pointer = 0;
    if (m->machine_->driver.f.set_current(m->gpu_->context) != 0 ||
        m->machine_->driver.f.mem_alloc(&pointer, bytes) != 0)
      return nullptr;
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
  };
  out->hooks_.release = [](void* self, void* memory) {
    const auto* const m = static_cast<GpuMemory*>(self);
    m->machine_->driver.f.mem_free(device(memory));
  };
  out->hooks_.copy_in = [](void* self, void* to, const void* from, std::size_t bytes) {
    const auto* const m = static_cast<GpuMemory*>(self);
    return m->machine_->driver.f.copy_to_device(device(to), from, bytes);
  };
  out->hooks_.copy_out = [](void* self, void* to, const void* from, std::size_t bytes) {
    const auto* const m = static_cast<GpuMemory*>(self);
    return m->machine_->driver.f.copy_to_host(to, device(from), bytes);
  };
  return out;
}

}  // namespace topotune::cli
