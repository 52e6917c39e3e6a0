#include "cuda/arena.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace topotune::cuda {

namespace {

// Whether the checks' own small blocks still fit into the current GPU's memory.
bool leaves_room(const Machine& machine) {
  constexpr std::size_t kSpare = 4u << 20;
  std::size_t free = 0, total = 0;
  return machine.driver.f.mem_info(&free, &total) != api::kSuccess || free >= kSpare;
}

}  // namespace

Result<std::unique_ptr<Arena>> make_arena(const Machine& machine, const Gpu& gpu, std::size_t bytes) {
  constexpr std::size_t kLeast = 16u << 20;
  auto arena = std::make_unique<Arena>();
  arena->gpu = &gpu;
  arena->seed = 0x51ed27u + 7919u * static_cast<std::uint32_t>(gpu.index);
  while (true) {
    auto give = Buffer::make(machine, gpu, bytes);
    if (give) arena->give = std::move(*give);
    auto take = Buffer::make(machine, gpu, bytes);
    if (give && take && (bytes / 2 < kLeast || leaves_room(machine))) {
      arena->take = std::move(*take);
      break;
    }
    const bool full = give && take;
    const auto error = full ? Error() : give ? take.error() : give.error();
    arena->give = Buffer();
    if (!full && (error.code != Errc::too_large || bytes / 2 < kLeast)) return tl::unexpected(error);
    bytes /= 2;
  }
  auto lane = Lane::make(machine, gpu);
  if (!lane) return tl::unexpected(lane.error());
  arena->lane = std::move(*lane);
  if (gpu.module != nullptr) {
    auto ok = fill_pattern(machine, arena->lane, arena->give.get(), bytes, arena->seed);
    if (ok)
      ok = machine.driver.check(machine.driver.f.stream_synchronize(arena->lane.stream()), gpu.id + ": fill");
    if (!ok) return tl::unexpected(ok.error());
  }
  return arena;
}

Transfer transfer_between(const Arena& src, const Arena& dst, bool read, std::size_t bytes,
                          std::size_t offset) {
  Transfer t;
  t.executor = read ? dst.gpu : src.gpu;
  t.src = src.give.get();
  t.dst = dst.take.get() + offset;
  t.bytes = bytes;
  return t;
}

namespace {

Result<void> clear(const Machine& machine, const Landing& landing, std::size_t bytes) {
  const auto& driver = machine.driver;
  if (auto ok = machine.use(*landing.dst->gpu); !ok) return ok;
  const auto stream = landing.dst->lane.stream();
  auto ok = driver.check(driver.f.set_d32_async(landing.dst->take.get() + landing.offset, 0xdeadbeef,
                                                std::max<std::size_t>(bytes / 4, 1), stream),
                         "clear");
  return ok ? driver.check(driver.f.stream_synchronize(stream), landing.dst->gpu->id + ": clear") : ok;
}

// Below 16 bytes: through the host.
Result<PatternCheck> check_few(const Machine& machine, const Landing& landing, std::size_t bytes) {
  std::array<char, 16> sent{}, arrived{};
  const auto& driver = machine.driver;
  auto ok = machine.use(*landing.src->gpu);
  if (ok) ok = driver.check(driver.f.copy_to_host(sent.data(), landing.src->give.get(), bytes), "check");
  if (ok) ok = machine.use(*landing.dst->gpu);
  if (ok)
    ok = driver.check(driver.f.copy_to_host(arrived.data(), landing.dst->take.get() + landing.offset, bytes),
                      "check");
  if (!ok) return tl::unexpected(ok.error());
  return PatternCheck{std::memcmp(sent.data(), arrived.data(), bytes) == 0 ? 0ull : 1ull, 0};
}

}  // namespace

Result<void> clear_all(const Machine& machine, const std::vector<Transfer>& transfers,
                       const std::vector<Landing>& landings) {
  for (std::size_t i = 0; i < landings.size(); ++i) {
    if (auto ok = clear(machine, landings[i], transfers[i].bytes); !ok) return ok;
  }
  return {};
}

Result<Verdict> verify(const Machine& machine, const std::vector<Transfer>& transfers,
                       const std::vector<Landing>& landings) {
  for (const auto& landing : landings) {
    if (landing.dst->gpu->module == nullptr) return Verdict{false, landing.dst->gpu->kernels_why, false};
  }
  for (std::size_t i = 0; i < landings.size(); ++i) {
    const auto& [src, dst, offset] = landings[i];
    const auto bytes = transfers[i].bytes;
    const auto found = bytes < 16
                           ? check_few(machine, landings[i], bytes)
                           : check_pattern(machine, dst->lane, dst->take.get() + offset, bytes, src->seed);
    if (!found) return tl::unexpected(found.error());
    if (found->wrong != 0)
      return Verdict{false,
                     fmt::format("{} pieces of 16 bytes from {} arrived wrong in {}, the first at byte {}",
                                 found->wrong, src->gpu->id, dst->gpu->id, found->first),
                     true};
  }
  return Verdict{true, "pattern read back by the owner", false};
}

}  // namespace topotune::cuda
