// libnccl-tuner-topotune.so: the tuner interfaces v2 to v6 of NCCL over one decision. Nothing in here returns
// an error or lets an exception out: where something is wrong, NCCL decides.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "plugins/memory.h"
#include "plugins/tuner.h"
#include "plugins/tuner_api.h"
#include "plugins/tuner_control.h"

namespace topotune::plugins {

namespace {

#define TOPOTUNE_EXPORT __attribute__((visibility("default")))

// The version of the NCCL that calls: of the library in which its log function lives.
std::string nccl_version(Logger log) {
  using GetVersion = Rc (*)(int*);
  void* found = ::dlsym(RTLD_DEFAULT, "ncclGetVersion");
  Dl_info info{};
  void* address = nullptr;
  static_assert(sizeof address == sizeof log);
  __builtin_memcpy(&address, &log, sizeof address);
  if (log != nullptr && ::dladdr(address, &info) != 0 && info.dli_fname != nullptr) {
    if (void* library = ::dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL)) {
      if (void* own = ::dlsym(library, "ncclGetVersion")) found = own;
      ::dlclose(library);
    }
  }
  int code = 0;
  if (found == nullptr || reinterpret_cast<GetVersion>(found)(&code) != kSuccess || code <= 0) return "";
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

// Variables and file are read by the first communicator of the process; all of them use what they held then.
struct Once {
  TunerSettings settings = TunerSettings::from_environment();
  Loaded loaded = load_table(settings);
  Once() {
    if (loaded.table) remove_left_agreements(settings.shared);
  }
};
const Once& once() {
  static const Once first;
  return first;
}

// Bit 63: a choice is forced. Bytes: algorithm + 1, protocol + 1, channels.
std::atomic<std::uint64_t> forced{0};
std::mutex last_mutex;
LastDecision last;
char last_said[512];
std::size_t last_ranks = 0, last_nodes = 0;
std::atomic<std::uint64_t> applied{0};  // counted by the steered process only
std::atomic<std::uint64_t> unusable{0};
std::atomic<bool> steered{false}, watched{false};

void remember(int function, std::uint64_t bytes, const float* costs, int algorithms, int protocols) {
  const std::lock_guard hold(last_mutex);
  ++last.calls;
  last.function = function, last.bytes = bytes;
  last.algorithms = std::clamp(algorithms, 0, 16), last.protocols = std::clamp(protocols, 0, 4);
  for (int a = 0; a < last.algorithms; ++a)
    for (int p = 0; p < last.protocols; ++p) last.costs[a][p] = costs[a * protocols + p];
}

// Only in the process of `topotune tune`.
void steer(std::uint64_t word, int function, std::uint64_t bytes, float* costs, int algorithms, int protocols,
           int* channels) {
  tune::Choice choice;
  choice.algorithm = static_cast<int>(word & 0xff) - 1;
  choice.protocol = static_cast<int>(word >> 8 & 0xff) - 1;
  choice.channels = static_cast<int>(word >> 16 & 0xff);
  // What NCCL thinks is remembered before it is changed.
  if (watched.load(std::memory_order_relaxed)) remember(function, bytes, costs, algorithms, protocols);
  if (tune::apply(choice, costs, algorithms, protocols, channels) == tune::Applied::unusable)
    unusable.fetch_add(1, std::memory_order_relaxed);
}

Rc init(void** context, std::optional<std::uint64_t> comm_id, std::size_t ranks, std::size_t nodes,
        Logger log) noexcept {
  if (context == nullptr) return kSuccess;
  *context = nullptr;
  const auto out_of_memory = [log] {
    if (log != nullptr)
      log(kLogInfo, kLogInit | kLogTuning, "topotune", __LINE__, "topotune tuner: off: out of memory");
    return kSuccess;
  };
  if (!memory_is_there()) return out_of_memory();
  try {
    auto* tuner = new Tuner(once().loaded, once().settings, {comm_id, ranks, nodes, nccl_version(log)}, log);
    *context = tuner;
    const std::lock_guard hold(last_mutex);
    last_ranks = ranks, last_nodes = nodes;
    const auto length = std::min(tuner->said().size(), sizeof last_said - 1);
    std::memcpy(last_said, tuner->said().data(), length);
    last_said[length] = '\0';
  } catch (...) {
    return out_of_memory();
  }
  return kSuccess;
}

Rc init_unnamed(std::size_t ranks, std::size_t nodes, Logger log, void** context) {
  return init(context, std::nullopt, ranks, nodes, log);
}

Rc init_named(void** context, std::uint64_t comm_id, std::size_t ranks, std::size_t nodes, Logger log,
              NvlDomains*, TunerConstants*) {
  return init(context, comm_id, ranks, nodes, log);
}

Rc get(void* context, int function, std::size_t bytes, float** table, int algorithms, int protocols,
       int* channels) {
  float* costs = nullptr;  // declared float**, is one block
  __builtin_memcpy(&costs, &table, sizeof costs);
  if (costs == nullptr || algorithms <= 0 || protocols <= 0) return kSuccess;
  if (const auto word = forced.load(std::memory_order_relaxed); word != 0) {
    steer(word, function, bytes, costs, algorithms, protocols, channels);
    return kSuccess;
  }
  if (context == nullptr) return kSuccess;
  const auto* choice = static_cast<const Tuner*>(context)->decide(function, bytes);
  if (choice != nullptr) {
    const auto done = tune::apply(*choice, costs, algorithms, protocols, channels);
    if (steered.load(std::memory_order_relaxed) && done != tune::Applied::unusable)
      applied.fetch_add(1, std::memory_order_relaxed);
  }
  return kSuccess;
}

Rc get_v2(void* context, int function, std::size_t bytes, int, int, int, int* algorithm, int* protocol,
          int* channels) {
  if (context == nullptr || algorithm == nullptr || protocol == nullptr) return kSuccess;
  const auto& tuner = *static_cast<const Tuner*>(context);
  const auto* choice = tuner.decide(function, bytes);
  if (choice == nullptr) return kSuccess;
  // This interface does not show what is possible: only what every machine has, and only if nobody filters.
  // LL128 is not safe on all of them, and there is Tree for one collective.
  constexpr int kTree = 0, kRing = 1, kLl128 = 1;
  const bool named = choice->algorithm != tune::kNcclChooses;
  const bool tree = choice->algorithm == kTree && function == static_cast<int>(tune::Collective::all_reduce);
  if (tuner.filtered() || (named && ((choice->algorithm != kRing && !tree) || choice->protocol == kLl128)))
    return kSuccess;
  if (named) *algorithm = choice->algorithm, *protocol = choice->protocol;
  if (choice->channels > 0 && channels != nullptr) *channels = choice->channels;
  return kSuccess;
}

Rc get_v3(void* context, int function, std::size_t bytes, int, float** costs, int algorithms, int protocols,
          int* channels) {
  return get(context, function, bytes, costs, algorithms, protocols, channels);
}

Rc get_v4(void* context, int function, std::size_t bytes, int, float** costs, int algorithms, int protocols,
          int, int* channels) {
  return get(context, function, bytes, costs, algorithms, protocols, channels);
}

Rc finalize(void* context) {
  delete static_cast<Tuner*>(context);
  return kSuccess;
}

constexpr const char* kName = "topotune";

}  // namespace

}  // namespace topotune::plugins

namespace plugins = topotune::plugins;

extern "C" {
TOPOTUNE_EXPORT extern plugins::TunerV2 ncclTunerPlugin_v2;
TOPOTUNE_EXPORT extern plugins::TunerV3 ncclTunerPlugin_v3;
TOPOTUNE_EXPORT extern plugins::TunerV4 ncclTunerPlugin_v4;
TOPOTUNE_EXPORT extern plugins::TunerV5 ncclTunerPlugin_v5;
TOPOTUNE_EXPORT extern plugins::TunerV6 ncclTunerPlugin_v6;
plugins::TunerV2 ncclTunerPlugin_v2 = {plugins::kName, plugins::init_unnamed, plugins::get_v2,
                                       plugins::finalize};
plugins::TunerV3 ncclTunerPlugin_v3 = {plugins::kName, plugins::init_unnamed, plugins::get_v3,
                                       plugins::finalize};
plugins::TunerV4 ncclTunerPlugin_v4 = {plugins::kName, plugins::init_unnamed, plugins::get_v4,
                                       plugins::finalize};
plugins::TunerV5 ncclTunerPlugin_v5 = {plugins::kName, plugins::init_named, plugins::get_v4,
                                       plugins::finalize};
plugins::TunerV6 ncclTunerPlugin_v6 = {plugins::kName, plugins::init_named, plugins::get_v4,
                                       plugins::finalize, nullptr};

TOPOTUNE_EXPORT int topotune_tuner_control() { return plugins::kControlVersion; }

TOPOTUNE_EXPORT void topotune_tuner_force(int algorithm, int protocol, int channels) {
  const auto byte = [](int value) { return static_cast<std::uint64_t>(value) & 0xff; };
  plugins::forced = 1ull << 63 | byte(channels) << 16 | byte(protocol + 1) << 8 | byte(algorithm + 1);
}

TOPOTUNE_EXPORT void topotune_tuner_release() {
  plugins::forced = 0;
  plugins::steered = true;
}

TOPOTUNE_EXPORT void topotune_tuner_watch(int on) { plugins::watched = on != 0; }

TOPOTUNE_EXPORT void topotune_tuner_last(plugins::LastDecision* out) {
  if (out == nullptr) return;
  const std::lock_guard hold(plugins::last_mutex);
  *out = plugins::last;
  out->applied = plugins::applied.load(), out->unusable = plugins::unusable.load();
}

TOPOTUNE_EXPORT void topotune_tuner_said(char* text, unsigned long bytes) {
  if (text == nullptr || bytes == 0) return;
  const std::lock_guard hold(plugins::last_mutex);
  const auto length = std::min<unsigned long>(std::strlen(plugins::last_said), bytes - 1);
  std::memcpy(text, plugins::last_said, length);
  text[length] = '\0';
}

TOPOTUNE_EXPORT void topotune_tuner_shape(unsigned long* ranks, unsigned long* nodes) {
  if (ranks == nullptr || nodes == nullptr) return;
  const std::lock_guard hold(plugins::last_mutex);
  *ranks = plugins::last_ranks, *nodes = plugins::last_nodes;
}
}
