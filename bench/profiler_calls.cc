// What a collective costs inside the profiler plugin: drives one or more builds of it in turns, in the order
// of NCCL 2.28's calls, once back to back and once with other work between calls that takes the caches away.
//   profiler_calls PLUGIN.so ...
// Prints for each plugin the median of its blocks, ns a collective, and the range that holds the middle half
// of them.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugins/profiler_api.h"

namespace {

using namespace topotune::plugins;
using Interface = ProfilerNamed<DescrV5>;
using Clock = std::chrono::steady_clock;

struct Plugin {
  const char* path;
  Interface* calls;
  void* context;
  std::vector<double> hot, cold;
};

Plugin load(const char* path) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto* calls = library == nullptr ? nullptr : static_cast<Interface*>(::dlsym(library, "ncclProfiler_v5"));
  if (calls == nullptr) std::fprintf(stderr, "%s: %s\n", path, ::dlerror()), std::exit(2);
  static int mask = 0;
  Plugin out{path, calls, nullptr, {}, {}};
  calls->init(&out.context, 1, &mask, nullptr, 1, 2, 0, nullptr);
  if (out.context == nullptr) std::fprintf(stderr, "%s: no file was made\n", path), std::exit(2);
  return out;
}

// One all-reduce as NCCL 2.28.9 tells it when collectives are asked for: what nobody keeps, when it is
// called,
void announce(const Plugin& p) {
  void *group = nullptr, *api = nullptr;
  DescrV5 d{};
  d.type = 256;
  p.calls->start(p.context, &group, &d);
  d = DescrV5{};
  d.type = kCollApi, d.coll_api = {"AllReduce", 1024, "ncclFloat32", 0, nullptr, false};
  p.calls->start(p.context, &api, &d);
}

// and when it is launched, the event that is kept.
void collective(const Plugin& p, std::uint64_t number) {
  void *plan = nullptr, *coll = nullptr;
  DescrV5 d{};
  d.type = kGroup;
  p.calls->start(p.context, &plan, &d);
  d = DescrV5{};
  d.type = kColl;
  d.coll = {number, "AllReduce", nullptr, nullptr, 1024, 0, "ncclFloat32", 24, 16, "RING", "LL", nullptr};
  p.calls->start(p.context, &coll, &d);
  if (coll != nullptr) p.calls->stop(coll);
}

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double hot(const Plugin& p) {
  constexpr int kCalls = 20000;
  const auto start = Clock::now();
  for (int i = 0; i < kCalls; ++i) announce(p), collective(p, static_cast<std::uint64_t>(i));
  return ns_since(start) / kCalls;
}

// The clock itself is taken off. Between call and launch, NCCL works for some microseconds.
double cold(const Plugin& p, std::vector<unsigned char>& other) {
  constexpr int kCalls = 100;
  double sum = 0;
  for (int i = 0; i < kCalls; ++i) {
    for (std::size_t at = 0; at < other.size(); at += 64) ++other[at];
    const auto empty = Clock::now();
    const double clock = ns_since(empty);
    const auto called = Clock::now();
    announce(p);
    sum += ns_since(called) - clock;
    for (const auto since = Clock::now(); ns_since(since) < 1000;) {
    }
    const auto launched = Clock::now();
    collective(p, static_cast<std::uint64_t>(i));
    sum += ns_since(launched) - clock;
  }
  return sum / kCalls;
}

void print(const char* what, std::vector<double>& ns) {
  std::sort(ns.begin(), ns.end());
  std::printf("  %s %6.0f ns (%.0f to %.0f)", what, ns[ns.size() / 2], ns[ns.size() / 4],
              ns[ns.size() * 3 / 4]);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<Plugin> plugins;
  for (int i = 1; i < count; ++i) plugins.push_back(load(arguments[i]));
  std::vector<unsigned char> other(4 << 20);
  for (int round = 0; round < 60; ++round)
    for (std::size_t i = 0; i < plugins.size(); ++i) {
      auto& p = plugins[(i + static_cast<std::size_t>(round)) % plugins.size()];
      p.hot.push_back(hot(p));
      p.cold.push_back(cold(p, other));
    }
  for (auto& p : plugins) {
    std::printf("%s\n", p.path);
    print("back to back", p.hot);
    print(", caches taken", p.cold);
    std::printf("\n");
    p.calls->finalize(p.context);
  }
  return plugins.empty() ? 2 : 0;
}
