#include "cuda/device.h"

#include <algorithm>
#include <functional>
#include <future>
#include <utility>

#include "base/bdf.h"
#include "cuda/kernel_image.h"

namespace topotune::cuda {

namespace {

int attribute(const Driver& driver, api::Device device, int which) {
  int value = 0;
  return driver.f.device_attribute(&value, which, device) == api::kSuccess ? value : 0;
}

std::string why_no_context(const Driver& driver, api::Device device, api::Rc rc) {
  const int mode = attribute(driver, device, api::kComputeMode);
  if (mode == 2) return "its compute mode is Prohibited: no program may use it";
  if (rc == api::kDeviceUnavailable && mode == 3)
    return "its compute mode is Exclusive_Process and another process holds it";
  return "no context: " + driver.words_for(rc);
}

void load_kernels(const Driver& driver, Gpu& gpu) {
  const auto image = kernel_image();
  if (image.empty()) {
    gpu.kernels_why = "this program was built without a CUDA compiler: it has no kernels";
    return;
  }
  const auto rc = driver.f.module_load(&gpu.module, image.data());
  if (rc == api::kSuccess) return;
  gpu.module = nullptr;
  gpu.kernels_why = fmt::format("the kernels (CUDA {}) do not load on sm_{} with driver {}: {}",
                                kernel_toolkit(), gpu.sm, driver.version_text(), driver.words_for(rc));
}

Result<Gpu> open_gpu(const Driver& driver, int index,
                     const std::function<std::string(const std::string&)>& id_of) {
  Gpu gpu;
  gpu.index = index;
  gpu.id = fmt::format("GPU{}", index);
  if (auto ok = driver.check(driver.f.device_get(&gpu.device, index), "cuDeviceGet"); !ok)
    return tl::unexpected(ok.error());
  char text[256] = {};
  if (driver.f.device_bus_id(text, sizeof text - 1, gpu.device) == api::kSuccess)
    gpu.bdf = canonical_bdf(text);
  if (const auto id = id_of(gpu.bdf); !id.empty()) gpu.id = id;
  std::fill(std::begin(text), std::end(text), '\0');
  if (driver.f.device_name(text, sizeof text - 1, gpu.device) == api::kSuccess) gpu.name = text;
  gpu.sm = attribute(driver, gpu.device, api::kMajor) * 10 + attribute(driver, gpu.device, api::kMinor);
  gpu.multiprocessors = attribute(driver, gpu.device, api::kMultiprocessors);
  gpu.shared_per_block = attribute(driver, gpu.device, api::kSharedPerBlockOptin);
  gpu.copy_engines = attribute(driver, gpu.device, api::kAsyncEngines);
  if (const auto rc = driver.f.primary_retain(&gpu.context, gpu.device); rc != api::kSuccess)
    return fail(Errc::unsupported, "{}", why_no_context(driver, gpu.device, rc));
  if (auto ok = driver.check(driver.f.set_current(gpu.context), gpu.id); !ok)
    return tl::unexpected(ok.error());
  load_kernels(driver, gpu);
  return gpu;
}

Result<api::Function> function_of(const Machine& machine, const Gpu& gpu, const char* name) {
  if (gpu.module == nullptr) return fail(Errc::unsupported, "{}", gpu.kernels_why);
  api::Function function = nullptr;
  auto ok = machine.driver.check(machine.driver.f.module_function(&function, gpu.module, name), name);
  if (!ok) return tl::unexpected(ok.error());
  return function;
}

}  // namespace

Result<std::unique_ptr<Machine>> open_machine(const std::function<std::string(const std::string&)>& id_of) {
  auto driver = Driver::load();
  if (!driver) return tl::unexpected(driver.error());
  auto machine = std::make_unique<Machine>();
  machine->driver = *driver;
  int count = 0;
  if (auto ok = driver->check(driver->f.device_count(&count), "cuDeviceGetCount"); !ok)
    return tl::unexpected(ok.error());
  // A context takes some tenths of a second: those of several GPUs are made at the same time.
  const auto how = count > 1 ? std::launch::async : std::launch::deferred;
  std::vector<std::future<Result<Gpu>>> opening;
  for (int i = 0; i < count; ++i)
    opening.push_back(std::async(how, open_gpu, std::cref(machine->driver), i, std::cref(id_of)));
  for (int i = 0; i < count; ++i) {
    auto gpu = opening[static_cast<std::size_t>(i)].get();
    if (gpu)
      machine->gpus.push_back(*gpu);
    else
      machine->absent.push_back({fmt::format("GPU{}", i), gpu.error().text});
  }
  if (!machine->gpus.empty()) driver->f.set_current(machine->gpus.back().context);  // of this thread
  if (machine->gpus.empty() && machine->absent.empty())
    return fail(Errc::not_found, "CUDA shows no GPU to this process (CUDA_VISIBLE_DEVICES?)");
  return machine;
}

Result<void> enable_peer(const Machine& machine, const Gpu& from, const Gpu& to) {
  const auto& f = machine.driver.f;
  int can = 0;
  f.device_can_access_peer(&can, from.device, to.device);
  if (can == 0) return fail(Errc::unsupported, "the driver gives {} no peer access to {}", from.id, to.id);
  if (auto ok = machine.use(from); !ok) return ok;
  const auto rc = f.enable_peer(to.context, 0);
  if (rc == api::kPeerAccessAlreadyEnabled) return {};
  return machine.driver.check(rc, fmt::format("peer access {} to {}", from.id, to.id));
}

Result<Buffer> Buffer::make(const Machine& machine, const Gpu& gpu, std::size_t bytes) {
  if (auto ok = machine.use(gpu); !ok) return tl::unexpected(ok.error());
  Buffer buffer;
  const auto rc = machine.driver.f.mem_alloc(&buffer.pointer_, bytes);
  if (rc != api::kSuccess) {
    std::size_t free = 0, total = 0;
    machine.driver.f.mem_info(&free, &total);
    return fail(rc == api::kOutOfMemory ? Errc::too_large : Errc::io,
                "{}: {} MiB of GPU memory: {} ({} MiB free)", gpu.id, bytes >> 20,
                machine.driver.words_for(rc), free >> 20);
  }
  buffer.machine_ = &machine;
  buffer.gpu_ = &gpu;
  buffer.bytes_ = bytes;
  return buffer;
}

Buffer::~Buffer() {
  if (machine_ == nullptr) return;
  machine_->driver.f.set_current(gpu_->context);
  machine_->driver.f.mem_free(pointer_);
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(machine_, other.machine_);
  std::swap(gpu_, other.gpu_);
  std::swap(pointer_, other.pointer_);
  std::swap(bytes_, other.bytes_);
}

Result<Lane> Lane::make(const Machine& machine, const Gpu& gpu) {
  if (auto ok = machine.use(gpu); !ok) return tl::unexpected(ok.error());
  const auto& driver = machine.driver;
  Lane lane;
  lane.machine_ = &machine;
  lane.gpu_ = &gpu;
  auto ok = driver.check(driver.f.stream_create(&lane.stream_, api::kStreamNonBlocking), gpu.id + ": stream");
  if (ok) ok = driver.check(driver.f.event_create(&lane.start_, api::kEventDefault), gpu.id + ": event");
  if (ok) ok = driver.check(driver.f.event_create(&lane.stop_, api::kEventDefault), gpu.id + ": event");
  if (!ok) return tl::unexpected(ok.error());
  return lane;
}

Lane::~Lane() {
  if (machine_ == nullptr) return;
  const auto& f = machine_->driver.f;
  f.set_current(gpu_->context);
  if (start_ != nullptr) f.event_destroy(start_);
  if (stop_ != nullptr) f.event_destroy(stop_);
  if (stream_ != nullptr) f.stream_destroy(stream_);
}

void Lane::swap(Lane& other) noexcept {
  std::swap(machine_, other.machine_);
  std::swap(gpu_, other.gpu_);
  std::swap(stream_, other.stream_);
  std::swap(start_, other.start_);
  std::swap(stop_, other.stop_);
}

Result<void> Lane::start() const {
  if (auto ok = machine_->use(*gpu_); !ok) return ok;
  return machine_->driver.check(machine_->driver.f.event_record(start_, stream_), gpu_->id + ": event");
}

Result<void> Lane::stop() const {
  if (auto ok = machine_->use(*gpu_); !ok) return ok;
  return machine_->driver.check(machine_->driver.f.event_record(stop_, stream_), gpu_->id + ": event");
}

Result<double> Lane::seconds() const {
  if (auto ok = machine_->use(*gpu_); !ok) return tl::unexpected(ok.error());
  const auto& driver = machine_->driver;
  auto ok = driver.check(driver.f.stream_synchronize(stream_), gpu_->id);
  float ms = 0;
  if (ok) ok = driver.check(driver.f.event_elapsed(&ms, start_, stop_), gpu_->id + ": event");
  if (!ok) return tl::unexpected(ok.error());
  return static_cast<double>(ms) * 1e-3;
}

Result<Gate> Gate::make(const Machine& machine) {
  Gate gate;
  gate.machine_ = &machine;
  if (machine.gpus.empty() || machine.driver.f.stream_wait_value == nullptr) return gate;
  if (auto ok = machine.use(machine.gpus.front()); !ok) return tl::unexpected(ok.error());
  void* word = nullptr;
  const auto rc = machine.driver.f.host_alloc(&word, 64, api::kHostPortable | api::kHostMapped);
  if (auto ok = machine.driver.check(rc, "64 bytes of pinned memory"); !ok) return tl::unexpected(ok.error());
  gate.word_ = static_cast<std::uint32_t*>(word);
  *gate.word_ = 0;
  gate.round_ = 1;
  return gate;
}

Gate::~Gate() {
  if (word_ == nullptr) return;
  open();
  machine_->driver.f.set_current(machine_->gpus.front().context);
  machine_->driver.f.host_free(word_);
}

void Gate::swap(Gate& other) noexcept {
  std::swap(machine_, other.machine_);
  std::swap(word_, other.word_);
  std::swap(round_, other.round_);
}

Result<void> Gate::hold(const Lane& lane) const {
  if (word_ == nullptr) return {};
  if (auto ok = machine_->use(lane.gpu()); !ok) return ok;
  const auto& f = machine_->driver.f;
  api::DevicePtr pointer = 0;
  auto ok = machine_->driver.check(f.host_device_pointer(&pointer, word_, 0), "pinned memory");
  if (!ok) return ok;
  return machine_->driver.check(f.stream_wait_value(lane.stream(), pointer, round_, api::kWaitGreaterOrEqual),
                                lane.gpu().id + ": wait");
}

void Gate::open() const {
  if (word_ != nullptr) __atomic_store_n(word_, round_, __ATOMIC_RELEASE);
}

void Gate::close() { ++round_; }

Result<void> launch(const Machine& machine, const Gpu& gpu, const char* kernel, int blocks, int threads,
                    int shared_bytes, api::Stream stream, std::span<void*> parameters) {
  if (auto ok = machine.use(gpu); !ok) return ok;
  const auto function = function_of(machine, gpu, kernel);
  if (!function) return tl::unexpected(function.error());
  const auto& driver = machine.driver;
  if (shared_bytes > 48 * 1024) {
    auto ok = driver.check(driver.f.function_set(*function, api::kMaxDynamicShared, shared_bytes), kernel);
    if (!ok) return ok;
  }
  const auto u = [](int value) { return static_cast<unsigned>(value); };
  const auto rc = driver.f.launch(*function, u(blocks), 1, 1, u(threads), 1, 1, u(shared_bytes), stream,
                                  parameters.data(), nullptr);
  return driver.check(rc, fmt::format("{}: kernel {}", gpu.id, kernel));
}

Result<void> launch_copy(const Machine& machine, const Lane& lane, const KernelCopy& how, api::DevicePtr dst,
                         api::DevicePtr src, std::size_t bytes, int repeats) {
  auto times = static_cast<std::uint32_t>(repeats);
  if (!how.bulk) {
    std::uint64_t count = bytes / 16;
    void* parameters[] = {&dst, &src, &count, &times};
    return launch(machine, lane.gpu(), "tt_copy16", how.blocks, 512, 0, lane.stream(), parameters);
  }
  const char* name = how.drain <= 2 ? "tt_bulk2" : how.drain <= 4 ? "tt_bulk4" : "tt_bulk8";
  std::uint64_t size = bytes;
  auto chunk = static_cast<std::uint32_t>(how.chunk), stages = static_cast<std::uint32_t>(how.stages);
  void* parameters[] = {&dst, &src, &size, &chunk, &stages, &times};
  return launch(machine, lane.gpu(), name, how.blocks, 32, how.chunk * how.stages, lane.stream(), parameters);
}

Result<void> fill_pattern(const Machine& machine, const Lane& lane, api::DevicePtr p, std::size_t bytes,
                          std::uint32_t seed) {
  std::uint64_t count = bytes / 16;
  void* parameters[] = {&p, &count, &seed};
  return launch(machine, lane.gpu(), "tt_fill", lane.gpu().multiprocessors * 2, 512, 0, lane.stream(),
                parameters);
}

Result<PatternCheck> check_pattern(const Machine& machine, const Lane& lane, api::DevicePtr p,
                                   std::size_t bytes, std::uint32_t seed) {
  auto result = Buffer::make(machine, lane.gpu(), 16);
  if (!result) return tl::unexpected(result.error());
  const auto& driver = machine.driver;
  unsigned long long words[2] = {0, ~0ull};
  auto ok = driver.check(driver.f.copy_to_device(result->get(), words, sizeof words), "check");
  std::uint64_t count = bytes / 16;
  api::DevicePtr out = result->get();
  void* parameters[] = {&p, &count, &seed, &out};
  if (ok)
    ok = launch(machine, lane.gpu(), "tt_check", lane.gpu().multiprocessors * 2, 512, 0, lane.stream(),
                parameters);
  if (ok) ok = driver.check(driver.f.stream_synchronize(lane.stream()), lane.gpu().id + ": check");
  if (ok) ok = driver.check(driver.f.copy_to_host(words, result->get(), sizeof words), "check");
  if (!ok) return tl::unexpected(ok.error());
  return PatternCheck{words[0], words[0] == 0 ? 0 : words[1] * 16};
}

}  // namespace topotune::cuda
