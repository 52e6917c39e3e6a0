// libnccl-profiler-topotune.so: the profiler interfaces v1 to v6 of NCCL over one kind of event. Handles are
// numbers, not pointers: one that comes late, twice or from another process is looked up, never followed.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "plugins/event_mask.h"
#include "plugins/places.h"
#include "plugins/profiler.h"
#include "plugins/profiler_api.h"
#include "plugins/profiler_control.h"
#include "plugins/ticks.h"

#define TOPOTUNE_EXPORT __attribute__((visibility("default")))

namespace topotune::plugins {

namespace {

constexpr unsigned kMostProfiles = 4096;
Profile profiles[kMostProfiles];  // mapped a while longer than open: handles come late
Places<kMostProfiles> places;
pthread_mutex_t places_mutex = PTHREAD_MUTEX_INITIALIZER;
EventMask event_mask;
const int* mask_words[kMostProfiles];  // of each one's NCCL

struct Hold {
  Hold() { ::pthread_mutex_lock(&places_mutex); }
  ~Hold() { ::pthread_mutex_unlock(&places_mutex); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
};

std::optional<unsigned> take_place() {
  const Hold hold;
  const auto place = places.take(now_ns(CLOCK_MONOTONIC));
  if (place) profiles[*place].forget();
  return place;
}

void give_back(unsigned place, std::uint64_t now) {
  const Hold hold;
  if (const auto old = places.give_back(place, now)) profiles[*old].forget();
}

// 2 bits kind, 12 bits profile + 1, 48 bits number of the event; of a proxy operation: 1 bit direction, 32
// bits peer.
enum class Handle : std::uint64_t { event = 0, send = 1, kernel = 2 };

void* handle_of(Handle kind, unsigned profile, std::uint64_t payload) {
  const auto word = static_cast<std::uint64_t>(kind) << 61 | std::uint64_t{profile + 1} << 48 |
                    (payload & 0xffff'ffff'ffffu);
  void* out = nullptr;
  static_assert(sizeof out == sizeof word);
  std::memcpy(&out, &word, sizeof out);
  return out;
}

struct Looked {
  Handle kind = Handle::event;
  unsigned index = 0;
  Profile* profile = nullptr;
  std::uint64_t payload = 0;
};
Looked look(void* handle) {
  std::uint64_t word = 0;
  std::memcpy(&word, &handle, sizeof word);
  Looked out;
  out.index = static_cast<unsigned>((word >> 48 & 0x1fff) - 1);
  out.kind = static_cast<Handle>(word >> 61);
  out.payload = word & 0xffff'ffff'ffffu;
  if (out.index < kMostProfiles && profiles[out.index].is_open()) out.profile = &profiles[out.index];
  return out;
}

void say(Logger log, const char* text) {
  if (log != nullptr) log(kLogInfo, kLogInit, "topotune", __LINE__, "topotune profiler: %s", text);
}

// Without NCCL's log (v1 to v3): on standard error, once.
void warn(Logger log, std::atomic_flag& said, const char* what, const char* text) {
  char line[512];
  std::snprintf(line, sizeof line, "%s%s", what, text);
  say(log, line);
  if (log == nullptr && !said.test_and_set()) ::dprintf(STDERR_FILENO, "topotune profiler: %s\n", line);
}

// A context is the number of its profile + 1, as a pointer. Nothing here throws or takes memory from the
// heap: where there is none, a thread's first exception would end the process.
Rc init(void** context, int* mask, const CommFacts& facts, Logger log) {
  static std::atomic_flag said_off, said_refused, cleaned;
  if (context == nullptr) return kSuccess;
  *context = nullptr;
  const auto settings = ProfilerSettings::from_environment();
  if (settings.refused[0] != '\0') warn(log, said_refused, "", settings.refused);
  if (!cleaned.test_and_set()) remove_stale(settings.folder);
  const auto place = take_place();
  if (!place) {
    warn(log, said_off, "off: ", "4096 communicators of this process are recorded already");
    return kSuccess;
  }
  auto& profile = profiles[*place];
  Reason why;
  if (!profile.open(settings, facts, why)) {
    give_back(*place, 0);
    warn(log, said_off, "off: ", why);
    return kSuccess;
  }
  profile.pause(event_mask.paused());
  event_mask.join(mask, events_of(settings, facts));
  mask_words[*place] = mask;
  *context = handle_of(Handle::event, *place, 0);
  char line[96];
  std::snprintf(line, sizeof line, "records communicator %llu rank %d",
                static_cast<unsigned long long>(facts.comm), facts.rank);
  say(log, line);
  return kSuccess;
}

Rc finalize(void* context) {
  const auto own = look(context);
  if (own.profile == nullptr || !own.profile->close()) return kSuccess;
  event_mask.leave(mask_words[own.index]);
  give_back(own.index, now_ns(CLOCK_MONOTONIC));
  return kSuccess;
}

template <class Coll>
Event event_of_collective(const Coll& c, Names& names) {
  Event e;
  e.kind = ProfileKind::collective;
  e.function = names.function(c.function), e.datatype = names.type(c.datatype);
  e.algorithm = names.algorithm(c.algorithm), e.protocol = names.protocol(c.protocol);
  e.channels = c.channels, e.warps = c.warps;
  e.peer = c.root, e.number = c.number, e.bytes = bytes_of(c.count, e.datatype);
  return e;
}

template <class P2p>
Event event_of_p2p(const P2p& p, Names& names) {
  Event e;
  e.kind = ProfileKind::point_to_point;
  e.function = names.function(p.function), e.datatype = names.type(p.datatype);
  if constexpr (requires { p.channels; }) e.channels = p.channels;
  e.peer = p.peer, e.bytes = bytes_of(p.count, e.datatype);
  return e;
}

template <class Ce>
Event event_of_copy_engine(const Ce& c, Names& names) {
  Event e;
  e.kind = ProfileKind::copy_engine;
  e.function = names.function(c.function), e.datatype = names.type(c.datatype);
  e.peer = c.root, e.number = c.number, e.bytes = bytes_of(c.count, e.datatype);
  return e;
}

void* begin(const Looked& own, const Event& event) {
  const auto number = own.profile->begin(event);
  return number == 0 ? nullptr : handle_of(Handle::event, own.index, number);
}

template <class Descr>
Rc start(void* context, void** handle, Descr* descr) {
  if (handle == nullptr) return kSuccess;
  *handle = nullptr;
  if (descr == nullptr) return kSuccess;
  const auto own = look(context);
  if (own.profile == nullptr) return kSuccess;
  switch (descr->type) {
    case kColl:
      if constexpr (requires { descr->coll.comm; }) own.profile->name(descr->coll.comm, descr->rank);
      *handle = begin(own, event_of_collective(descr->coll, own.profile->names));
      break;
    case kP2p:
      if constexpr (requires { descr->p2p.comm; }) own.profile->name(descr->p2p.comm, descr->rank);
      *handle = begin(own, event_of_p2p(descr->p2p, own.profile->names));
      break;
    case kProxyOp:
      // With PXN the work belongs to a rank of another process, whose peers are not this communicator's.
      if (descr->proxy_op.is_send != 0) {
        const bool foreign = descr->proxy_op.pid != ::getpid();
        const auto peer = static_cast<std::uint32_t>(std::max(descr->proxy_op.peer, 0));
        *handle = handle_of(Handle::send, own.index, (foreign ? 1ull << 32 : 0) | peer);
      }
      break;
    case kProxyStep:
      if (look(descr->parent).kind == Handle::send) *handle = descr->parent;
      break;
    case kKernelCh:
      if constexpr (requires { descr->kernel.timer; }) {
        const auto parent = look(descr->parent);
        if (parent.profile == nullptr || parent.kind != Handle::event || parent.payload == 0) break;
        parent.profile->kernel(parent.payload, descr->kernel.timer, false);
        *handle = handle_of(Handle::kernel, parent.index, parent.payload);
      }
      break;
    default:
      if constexpr (requires {
                      descr->coll_api;
                    }) {  // made by NCCL along with the others, some time before them
        if (descr->type == kCollApi || descr->type == kP2pApi) own.profile->expect();
      }
      if constexpr (requires { descr->ce; }) {
        if (descr->type == kCeColl) *handle = begin(own, event_of_copy_engine(descr->ce, own.profile->names));
      }
      break;
  }
  return kSuccess;
}

Rc stop(void* handle) {
  const auto at = look(handle);
  if (at.profile != nullptr && at.kind == Handle::event && at.payload != 0) at.profile->end(at.payload);
  return kSuccess;
}

Rc record(void* handle, int state, StateArgs* args) {
  if (args == nullptr || (state != kSendWait && state != kKernelChStop)) return kSuccess;
  const auto at = look(handle);
  if (at.profile == nullptr) return kSuccess;
  if (state == kKernelChStop && at.kind == Handle::kernel) at.profile->kernel(at.payload, args->timer, true);
  if (state == kSendWait && at.kind == Handle::send) {
    if (at.payload >> 32 != 0)
      at.profile->sent_for_others(args->bytes);
    else
      at.profile->sent(static_cast<std::uint32_t>(at.payload), args->bytes);
  }
  return kSuccess;
}

template <int Abi>
Rc init_unnamed(void** context, int* mask) {
  CommFacts facts;
  facts.abi = Abi;
  return init(context, mask, facts, nullptr);
}

Rc init_v4(void** context, int* mask, const char* name, std::uint64_t comm, int nodes, int ranks, int rank,
           Logger log) {
  return init(context, mask, {comm, name, nodes, ranks, rank, 4}, log);
}

template <int Abi>
Rc init_named(void** context, std::uint64_t comm, int* mask, const char* name, int nodes, int ranks, int rank,
              Logger log) {
  return init(context, mask, {comm, name, nodes, ranks, rank, Abi}, log);
}

}  // namespace

}  // namespace topotune::plugins

namespace plugins = topotune::plugins;

extern "C" {
TOPOTUNE_EXPORT extern plugins::ProfilerUnnamed<plugins::DescrV1> ncclProfiler_v1;
TOPOTUNE_EXPORT extern plugins::ProfilerUnnamed<plugins::DescrV2> ncclProfiler_v2;
TOPOTUNE_EXPORT extern plugins::ProfilerUnnamed<plugins::DescrV3> ncclProfiler_v3;
TOPOTUNE_EXPORT extern plugins::ProfilerV4 ncclProfiler_v4;
TOPOTUNE_EXPORT extern plugins::ProfilerNamed<plugins::DescrV5> ncclProfiler_v5;
TOPOTUNE_EXPORT extern plugins::ProfilerNamed<plugins::DescrV6> ncclProfiler_v6;
plugins::ProfilerUnnamed<plugins::DescrV1> ncclProfiler_v1 = {
    "topotune", plugins::init_unnamed<1>, plugins::start, plugins::stop, plugins::record, plugins::finalize};
plugins::ProfilerUnnamed<plugins::DescrV2> ncclProfiler_v2 = {
    "topotune", plugins::init_unnamed<2>, plugins::start, plugins::stop, plugins::record, plugins::finalize};
plugins::ProfilerUnnamed<plugins::DescrV3> ncclProfiler_v3 = {
    "topotune", plugins::init_unnamed<3>, plugins::start, plugins::stop, plugins::record, plugins::finalize};
plugins::ProfilerV4 ncclProfiler_v4 = {"topotune",    plugins::init_v4, plugins::start,
                                       plugins::stop, plugins::record,  plugins::finalize};
plugins::ProfilerNamed<plugins::DescrV5> ncclProfiler_v5 = {
    "topotune", plugins::init_named<5>, plugins::start, plugins::stop, plugins::record, plugins::finalize};
plugins::ProfilerNamed<plugins::DescrV6> ncclProfiler_v6 = {
    "topotune", plugins::init_named<6>, plugins::start, plugins::stop, plugins::record, plugins::finalize};

TOPOTUNE_EXPORT void topotune_profiler_pause(int pause) {
  plugins::event_mask.pause(pause != 0);
  const plugins::Hold hold;  // none of them is unmapped meanwhile
  for (auto& profile : plugins::profiles)
    if (profile.is_open()) profile.pause(pause != 0);
}
}
