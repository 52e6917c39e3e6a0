#pragma once

#include <dlfcn.h>

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugins/profiler_api.h"
#include "plugins/tuner_api.h"

// The plugin side of the fake NCCL: loads NCCL_TUNER_PLUGIN (v5) and NCCL_PROFILER_PLUGIN (v5) as the real
// one does, and lets a collective take as long as a formula says for what the tuner chose.
namespace fake {

namespace plugins = topotune::plugins;

inline void log(int, unsigned long, const char*, int, const char* format, ...) {
  const char* level = std::getenv("NCCL_DEBUG");
  if (level == nullptr || std::strcmp(level, "INFO") != 0) return;
  std::va_list list;
  va_start(list, format);
  std::fputs("fake:1:1 [0] NCCL INFO ", stderr);
  std::vfprintf(stderr, format, list);
  std::fputc('\n', stderr);
  va_end(list);
}

template <class T>
T* plugin(const char* variable, const char* symbol) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : static_cast<T*>(::dlsym(library, symbol));
}

struct Plugins {
  plugins::TunerV5* tuner = nullptr;
  plugins::ProfilerNamed<plugins::DescrV5>* profiler = nullptr;
  void *tuner_context = nullptr, *profiler_context = nullptr;
  int channels = 24;
};

inline int profiler_mask = 0;

inline void start(Plugins& p, std::uint64_t id, int rank, int ranks, int channels) {
  p.channels = channels;
  p.tuner = plugin<plugins::TunerV5>("NCCL_TUNER_PLUGIN", "ncclTunerPlugin_v5");
  p.profiler = plugin<plugins::ProfilerNamed<plugins::DescrV5>>("NCCL_PROFILER_PLUGIN", "ncclProfiler_v5");
  const char* several = std::getenv("FAKE_NCCL_NODES");
  const int nodes = several == nullptr ? 1 : std::atoi(several);
  plugins::NvlDomains domains{nodes, ranks / nodes, ranks / nodes};
  static plugins::TunerConstants constants{};
  if (p.profiler != nullptr)
    p.profiler->init(&p.profiler_context, id, &profiler_mask, nullptr, nodes, ranks, rank, log);
  if (p.tuner != nullptr)
    p.tuner->init(&p.tuner_context, id, static_cast<std::size_t>(ranks), static_cast<std::size_t>(nodes), log,
                  &domains, &constants);
}

inline void finish(Plugins& p) {
  if (p.tuner != nullptr) p.tuner->finalize(p.tuner_context);
  if (p.profiler != nullptr) p.profiler->finalize(p.profiler_context);
}

// What the tuner decides for a collective, and how long it takes: LL is quick and narrow, and NCCL does not
// know how good LL128 is. NCCL's own choice is LL up to 64 KiB, Simple beyond.
inline double decide(Plugins& p, int function, std::size_t bytes) {
  static const char* const names[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
  static const char* const protocols[] = {"LL", "LL128", "SIMPLE"};
  float costs[7][3];
  for (auto& row : costs)
    for (float& cost : row) cost = -1;
  const bool small = bytes <= 65536;
  costs[1][0] = small ? 5 : 50, costs[1][1] = 20, costs[1][2] = small ? 50 : 5;
  costs[0][2] = 60;
  int channels = 0;
  if (p.tuner != nullptr)
    p.tuner->get_coll_info(p.tuner_context, function, bytes, 1, reinterpret_cast<float**>(costs), 7, 3, 1,
                           &channels);
  int algorithm = 0, protocol = 2;
  for (int a = 0; a < 7; ++a)
    for (int c = 0; c < 3; ++c)
      if (costs[a][c] >= 0 && costs[a][c] < costs[algorithm][protocol]) algorithm = a, protocol = c;
  if (channels == 0 || channels > p.channels) channels = p.channels;
  if (p.profiler != nullptr && (profiler_mask & 2) != 0) {
    void* handle = nullptr;
    plugins::DescrV5 d{};
    d.type = plugins::kCollApi;
    d.coll_api = {names[function], bytes / 4, "ncclFloat32", 0, nullptr, false};
    p.profiler->start(p.profiler_context, &handle, &d);
    d.type = plugins::kColl;
    d.coll = {1,
              names[function],
              nullptr,
              nullptr,
              bytes / 4,
              0,
              "ncclFloat32",
              static_cast<std::uint8_t>(channels),
              16,
              algorithm == 1 ? "RING" : "TREE",
              protocols[protocol],
              nullptr};
    p.profiler->start(p.profiler_context, &handle, &d);
    if (handle != nullptr) p.profiler->stop(handle);
  }
  constexpr double alpha[] = {100e-6, 150e-6, 300e-6}, width[] = {0.35, 0.93, 1};
  return alpha[protocol] * (algorithm == 0 ? 1.2 : 1) +
         static_cast<double>(bytes) / (0.2e9 * width[protocol] * channels);
}

inline void spin(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace fake
