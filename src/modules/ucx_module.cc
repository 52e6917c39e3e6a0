// libtopotune-ucx.so: the part that is linked with UCX (libucp).
#include <time.h>
#include <ucp/api/ucp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "net/module_api.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace {

enum Op { kTag = 0, kActive = 1, kPut = 2, kGet = 3 };

double now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Ticks whose length the caller learns from the whole loop.
std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(now() * 1e9);
#endif
}

// Carries a text to the C interface.
struct Failure {
  std::string text;
};

void ok(ucs_status_t status, const char* what) {
  if (status != UCS_OK) throw Failure{std::string(what) + ": " + ucs_status_string(status)};
}

struct Connection {
  ucp_ep_h ep = nullptr;
  ucp_rkey_h rkey = nullptr;
  std::uint64_t memory = 0;  // of the peer: its receive half
};

struct State {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_mem_h mem = nullptr;
  std::size_t half = 0;
  unsigned char* memory = nullptr;  // what is sent, then what is received
  std::vector<unsigned char> blob;
  std::map<int, Connection> peers;
  std::uint64_t active_messages = 0;
  double deadline = 0;
  std::string last_error;

  unsigned char* out() const { return memory; }
  unsigned char* in() const { return memory + half; }
};
State* state = nullptr;

ucs_status_t on_active(void*, const void*, std::size_t, void* data, std::size_t length,
                       const ucp_am_recv_param_t* param) {
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    std::memcpy(state->in(), data, length < state->half ? length : state->half);
    ++state->active_messages;
    return UCS_OK;
  }
  ucp_request_param_t p{};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
  p.cb.recv_am = [](void* request, ucs_status_t, std::size_t, void*) {
    ++state->active_messages;
    ucp_request_free(request);
  };
  const auto got = ucp_am_recv_data_nbx(state->worker, data, state->in(), length, &p);
  if (got == nullptr) ++state->active_messages;
  return UCS_PTR_IS_ERR(got) ? UCS_PTR_STATUS(got) : UCS_INPROGRESS;
}

// Every so often: has the time run out?
void look_at_the_clock(unsigned& turns, const char* what) {
  if ((++turns & 0x3ff) != 0) return;
  if (now() > state->deadline) throw Failure{std::string(what) + ": the other side did not answer in time"};
}

using Request = ucs_status_ptr_t;

bool done(Request& request, const char* what) {
  if (request == nullptr) return true;
  if (UCS_PTR_IS_ERR(request)) {
    const auto status = UCS_PTR_STATUS(request);
    request = nullptr;
    ok(status, what);
  }
  const auto status = ucp_request_check_status(request);
  if (status == UCS_INPROGRESS) return false;
  ucp_request_free(request);
  request = nullptr;
  ok(status, what);
  return true;
}

void wait(Request request, const char* what) {
  unsigned turns = 0;
  while (!done(request, what)) {
    ucp_worker_progress(state->worker);
    look_at_the_clock(turns, what);
  }
}

const ucp_request_param_t kPlain{};

// Tags: who sends (so that pairs do not mix), and what for.
enum class Use : std::uint64_t { data = 1, control = 2 };
ucp_tag_t tag_of(int sender, Use use) {
  return (static_cast<std::uint64_t>(sender) << 8) | static_cast<std::uint64_t>(use);
}

Request send_tag(const Connection& c, int me, const void* data, std::size_t bytes, Use use = Use::data) {
  return ucp_tag_send_nbx(c.ep, data, bytes, tag_of(me, use), &kPlain);
}
Request receive_tag(int peer, void* data, std::size_t bytes, Use use = Use::data) {
  return ucp_tag_recv_nbx(state->worker, data, bytes, tag_of(peer, use), ~std::uint64_t{0}, &kPlain);
}

void tell(const Connection& c, int me, std::uint64_t word) {
  wait(send_tag(c, me, &word, 8, Use::control), "control message");
}
std::uint64_t hear(int peer) {
  std::uint64_t word = 0;
  wait(receive_tag(peer, &word, 8, Use::control), "control message");
  return word;
}

Connection& connection(int peer) {
  const auto found = state->peers.find(peer);
  if (found == state->peers.end()) throw Failure{"there is no connection to peer " + std::to_string(peer)};
  return found->second;
}

Request send_active(const Connection& c, const void* data, std::size_t bytes) {
  return ucp_am_send_nbx(c.ep, 0, nullptr, 0, data, bytes, &kPlain);
}
Request put(const Connection& c, const void* data, std::size_t bytes) {
  return ucp_put_nbx(c.ep, data, bytes, c.memory, c.rkey, &kPlain);
}
Request get(const Connection& c, void* data, std::size_t bytes) {
  return ucp_get_nbx(c.ep, data, bytes, c.memory, c.rkey, &kPlain);
}

void wait_active(std::uint64_t count) {
  unsigned turns = 0;
  while (state->active_messages < count) {
    ucp_worker_progress(state->worker);
    look_at_the_clock(turns, "active message");
  }
}

// The last byte of what the other side puts changes with each round.
void wait_put(std::size_t bytes, unsigned char value) {
  unsigned turns = 0;
  const volatile unsigned char* const at = state->in() + bytes - 1;
  while (*at != value) {
    ucp_worker_progress(state->worker);
    look_at_the_clock(turns, "put");
  }
}

unsigned char mark(int round) { return static_cast<unsigned char>(round % 255 + 1); }

// One message there and back at the initiator; a read for get.
struct Ping {
  Connection& c;
  int peer, me, op;
  std::size_t bytes;
  std::uint64_t active_base;

  void there_and_back(int round) {
    switch (op) {
      case kTag: {
        const auto in = receive_tag(peer, state->in(), bytes);
        wait(send_tag(c, me, state->out(), bytes), "send");
        return wait(in, "receive");
      }
      case kActive:
        wait(send_active(c, state->out(), bytes), "active message");
        return wait_active(active_base + static_cast<std::uint64_t>(round) + 1);
      case kPut:
        state->out()[bytes - 1] = mark(round);
        wait(put(c, state->out(), bytes), "put");
        return wait_put(bytes, mark(round));
      default:
        return wait(get(c, state->in(), bytes), "get");
    }
  }
  void back(int round) {
    switch (op) {
      case kTag:
        wait(receive_tag(peer, state->in(), bytes), "receive");
        return wait(send_tag(c, me, state->out(), bytes), "send");
      case kActive:
        wait_active(active_base + static_cast<std::uint64_t>(round) + 1);
        return wait(send_active(c, state->out(), bytes), "active message");
      case kPut:
        wait_put(bytes, mark(round));
        state->out()[bytes - 1] = mark(round);
        return wait(put(c, state->out(), bytes), "put");
      default:
        return;
    }
  }
};

// The other side of reads only lets its library work until it is told that they are over.
void serve(int peer) {
  std::uint64_t word = 0;
  wait(receive_tag(peer, &word, 8, Use::control), "control message");
}

void ping_loop(Ping& p, int rounds, bool initiator, double* seconds, double* samples) {
  p.active_base = state->active_messages;
  if (p.op == kPut) state->in()[p.bytes - 1] = 0;
  if (initiator) {
    hear(p.peer);
  } else {
    tell(p.c, p.me, 1);
    if (p.op == kGet) return serve(p.peer);
    for (int i = 0; i < rounds; ++i) p.back(i);
    return;
  }
  const double start = now();
  const auto first = ticks();
  auto before = first;
  for (int i = 0; i < rounds; ++i) {
    p.there_and_back(i);
    if (samples == nullptr) continue;
    const auto at = ticks();
    samples[i] = static_cast<double>(at - before);
    before = at;
  }
  *seconds = now() - start;
  const double ways = p.op == kGet ? 1 : 2;
  const double per_tick = *seconds / static_cast<double>(before > first ? before - first : 1);
  for (int i = 0; samples != nullptr && i < rounds; ++i) samples[i] *= per_tick / ways;
  *seconds /= rounds * ways;
  if (p.op == kGet) tell(p.c, p.me, 0);
}

void start_limit(double seconds) { state->deadline = now() + seconds; }

// `count` messages in the directions, at most `window` under way.
class Flow {
 public:
  Flow(Connection& c, int peer, int me, int op, std::size_t bytes, int window)
      : c_(c), peer_(peer), me_(me), op_(op), bytes_(bytes), window_(static_cast<std::size_t>(window)) {}

  void run(std::uint64_t count, bool sends, bool receives) {
    const auto active_base = state->active_messages;
    // Of put and get only one side works; the other waits for the word that follows.
    const std::uint64_t to_send = sends ? count : 0;
    const bool passive = op_ == kPut || op_ == kGet;
    const std::uint64_t to_receive = receives && op_ == kTag ? count : 0;
    std::uint64_t sent = 0, received = 0, posted = 0;
    std::vector<Request> out(window_, nullptr), in(window_, nullptr);
    unsigned turns = 0;
    while (sent < to_send || received < to_receive ||
           (receives && op_ == kActive && state->active_messages < active_base + count)) {
      for (std::size_t i = 0; i < window_ && posted < to_receive; ++i) {
        if (in[i] != nullptr) continue;
        in[i] = receive_tag(peer_, state->in(), bytes_);
        ++posted;
        if (done(in[i], "receive")) ++received;
      }
      for (std::size_t i = 0; i < window_ && sent < to_send; ++i) {
        if (out[i] != nullptr && !done(out[i], "send")) continue;
        out[i] = one();
        ++sent;
        static_cast<void>(done(out[i], "send"));
      }
      ucp_worker_progress(state->worker);
      for (auto& request : in)
        if (request != nullptr && done(request, "receive")) ++received;
      look_at_the_clock(turns, "stream");
    }
    for (auto& request : out) wait(request, "send");
    if (passive && sends) wait(ucp_ep_flush_nbx(c_.ep, &kPlain), "flush");
  }

 private:
  Request one() {
    switch (op_) {
      case kTag:
        return send_tag(c_, me_, state->out(), bytes_);
      case kActive:
        return send_active(c_, state->out(), bytes_);
      case kPut:
        return put(c_, state->out(), bytes_);
      default:
        return get(c_, state->in(), bytes_);
    }
  }
  Connection& c_;
  int peer_, me_, op_;
  std::size_t bytes_, window_;
};

// What follows a run: the receiver has all. Both directions: each tells the other.
void settle(Connection& c, int peer, int me, bool initiator) {
  if (initiator) {
    tell(c, me, 2);
    hear(peer);
  } else {
    hear(peer);
    tell(c, me, 3);
  }
}

void stream_as_initiator(Connection& c, int peer, int me, int op, std::size_t bytes, double seconds,
                         int window, bool both, TopotuneNetStream& result) {
  Flow flow(c, peer, me, op, bytes, window);
  std::uint64_t count = 4;
  while (true) {
    tell(c, me, count);
    const double start = now(), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    flow.run(count, true, both);
    settle(c, peer, me, true);
    result.seconds = now() - start;
    result.cpu_seconds = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    result.messages = count;
    if (result.seconds >= seconds * 0.7) break;
    const double factor = seconds / (result.seconds > 1e-6 ? result.seconds : 1e-6);
    count = static_cast<std::uint64_t>(static_cast<double>(count) * (factor < 16 ? factor * 1.05 : 16)) + 1;
  }
  tell(c, me, 0);
}

void stream_as_other(Connection& c, int peer, int me, int op, std::size_t bytes, int window, bool both,
                     TopotuneNetStream& result) {
  Flow flow(c, peer, me, op, bytes, window);
  while (const auto count = hear(peer)) {
    const double start = now(), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    flow.run(count, both, true);
    settle(c, peer, me, false);
    result = {now() - start, count, now(CLOCK_THREAD_CPUTIME_ID) - cpu};
  }
}

unsigned char byte_at(std::size_t i, std::uint32_t seed) {
  std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9e3779b9u ^ seed;
  x ^= x >> 16;
  x *= 0x7feb352du;
  return static_cast<unsigned char>(x >> 24);
}

void fill(unsigned char* data, std::size_t bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) data[i] = byte_at(i, seed);
}

std::uint64_t wrong_bytes(const unsigned char* data, std::size_t bytes, std::uint32_t seed) {
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += data[i] != byte_at(i, seed);
  return wrong;
}

// From the initiator to the other; get: the initiator reads what the other laid into its receive half.
std::uint64_t verify_once(Connection& c, int peer, int me, int op, std::size_t bytes, std::uint32_t seed,
                          bool initiator) {
  const auto active_base = state->active_messages;
  std::memset(state->in(), 0x5a, bytes);
  if (op == kGet) {
    if (!initiator) {
      fill(state->in(), bytes, seed);
      tell(c, me, 1);
      serve(peer);
      return 0;
    }
    hear(peer);
    wait(get(c, state->out(), bytes), "get");
    tell(c, me, 0);
    return wrong_bytes(state->out(), bytes, seed);
  }
  if (initiator) {
    fill(state->out(), bytes, seed);
    hear(peer);
    wait(op == kTag      ? send_tag(c, me, state->out(), bytes)
         : op == kActive ? send_active(c, state->out(), bytes)
                         : put(c, state->out(), bytes),
         "send");
    if (op == kPut) wait(ucp_ep_flush_nbx(c.ep, &kPlain), "flush");
    settle(c, peer, me, true);
    return 0;
  }
  tell(c, me, 1);
  if (op == kTag) wait(receive_tag(peer, state->in(), bytes), "receive");
  if (op == kActive) wait_active(active_base + 1);
  settle(c, peer, me, false);
  return wrong_bytes(state->in(), bytes, seed);
}

template <class F>
int guarded(char* error, std::size_t size, const F& f) {
  try {
    f();
    return 0;
  } catch (const Failure& failure) {
    std::snprintf(error, size, "%s", failure.text.c_str());
  } catch (const std::bad_alloc&) {
    std::snprintf(error, size, "not enough memory");
  }
  return 1;
}

void modify(ucp_config_t* config, const char* name, const char* value) {
  if (value != nullptr && *value != '\0') ok(ucp_config_modify(config, name, value), name);
}

void open_context(const char* tls, const char* devices) {
  ucp_config_t* config = nullptr;
  ok(ucp_config_read(nullptr, nullptr, &config), "UCX's configuration");
  modify(config, "TLS", tls);
  modify(config, "NET_DEVICES", devices);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA;
  const auto status = ucp_init(&params, config, &state->context);
  ucp_config_release(config);
  ok(status, "ucp_init");
}

void open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ok(ucp_worker_create(state->context, &params, &state->worker), "ucp_worker_create");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
  handler.id = 0;
  handler.cb = on_active;
  ok(ucp_worker_set_am_recv_handler(state->worker, &handler), "active message handler");
}

void open_memory(std::size_t bytes) {
  state->half = (bytes + 8191) / 4096 * 4096;
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.address = nullptr;
  params.length = 2 * state->half;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  ok(ucp_mem_map(state->context, &params, &state->mem), "ucp_mem_map");
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  ok(ucp_mem_query(state->mem, &attributes), "ucp_mem_query");
  state->memory = static_cast<unsigned char*>(attributes.address);
  std::memset(state->memory, 0, params.length);
}

void append(std::vector<unsigned char>& blob, const void* data, std::size_t bytes) {
  const auto* const at = static_cast<const unsigned char*>(data);
  blob.insert(blob.end(), at, at + bytes);
}

void append_sized(std::vector<unsigned char>& blob, const void* data, std::uint64_t bytes) {
  append(blob, &bytes, 8);
  append(blob, data, bytes);
}

// Worker address, key of the memory, address of the receive half.
void make_blob() {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  ok(ucp_worker_get_address(state->worker, &address, &size), "ucp_worker_get_address");
  append_sized(state->blob, address, size);
  ucp_worker_release_address(state->worker, address);
  void* key = nullptr;
  ok(ucp_rkey_pack(state->context, state->mem, &key, &size), "ucp_rkey_pack");
  append_sized(state->blob, key, size);
  ucp_rkey_buffer_release(key);
  const auto in = reinterpret_cast<std::uint64_t>(state->in());
  append(state->blob, &in, 8);
}

int open(const char* tls, const char* devices, std::size_t bytes, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    state = new State;
    open_context(tls, devices);
    open_worker();
    open_memory(bytes);
    make_blob();
  });
}

void library(char* text, std::size_t size) { std::snprintf(text, size, "%s", ucp_get_version_string()); }

int address(const void** data, std::size_t* size, char*, std::size_t) {
  *data = state->blob.data();
  *size = state->blob.size();
  return 0;
}

int connect(int peer, const void* data, std::size_t size, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    const auto* at = static_cast<const unsigned char*>(data);
    const auto* const end = at + size;
    const auto part = [&] {
      std::uint64_t bytes = 0;
      if (end - at < 8) throw Failure{"the peer's address is cut short"};
      std::memcpy(&bytes, at, 8);
      at += 8;
      if (static_cast<std::uint64_t>(end - at) < bytes) throw Failure{"the peer's address is cut short"};
      const auto* const start = at;
      at += bytes;
      return start;
    };
    const auto* const worker = part();
    const auto* const key = part();
    if (end - at != 8) throw Failure{"the peer's address is cut short"};
    Connection c;
    std::memcpy(&c.memory, at, 8);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<const ucp_address_t*>(worker);
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
    ok(ucp_ep_create(state->worker, &params, &c.ep), "ucp_ep_create");
    ok(ucp_ep_rkey_unpack(c.ep, key, &c.rkey), "ucp_ep_rkey_unpack");
    state->peers[peer] = c;
  });
}

void describe(int peer, char* text, std::size_t size) {
  char* all = nullptr;
  std::size_t length = 0;
  std::FILE* const file = ::open_memstream(&all, &length);
  const auto found = state->peers.find(peer);
  if (file == nullptr || found == state->peers.end()) return;
  ucp_ep_print_info(found->second.ep, file);
  std::fclose(file);
  std::snprintf(text, size, "%s", all);
  std::free(all);
}

int ping(int peer, int me, int op, std::size_t bytes, int rounds, int initiator, double limit_seconds,
         double* mean, double* samples, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    start_limit(limit_seconds);
    Ping p{connection(peer), peer, me, op, bytes, 0};
    double ignored = 0;
    ping_loop(p, rounds / 10 + 1, initiator != 0, &ignored, nullptr);
    ping_loop(p, rounds, initiator != 0, mean, nullptr);
    ping_loop(p, rounds, initiator != 0, &ignored, samples);
  });
}

int stream(int peer, int me, int op, std::size_t bytes, double seconds, int window, int direction,
           int initiator, double limit_seconds, TopotuneNetStream* result, char* error,
           std::size_t error_size) {
  return guarded(error, error_size, [&] {
    start_limit(limit_seconds);
    auto& c = connection(peer);
    if (initiator != 0)
      stream_as_initiator(c, peer, me, op, bytes, seconds, window, direction == 1, *result);
    else
      stream_as_other(c, peer, me, op, bytes, window, direction == 1, *result);
  });
}

int verify(int peer, int me, int op, std::size_t bytes, std::uint32_t seed, int initiator,
           double limit_seconds, std::uint64_t* wrong, char* error, std::size_t error_size) {
  return guarded(error, error_size, [&] {
    start_limit(limit_seconds);
    *wrong = verify_once(connection(peer), peer, me, op, bytes, seed, initiator != 0);
  });
}

// Peers may be gone already: what they say of it is no error.
void close() {
  if (state == nullptr) return;
  const double end = now() + 1;
  for (auto& [number, c] : state->peers) {
    if (c.rkey != nullptr) ucp_rkey_destroy(c.rkey);
    auto request = ucp_ep_close_nbx(c.ep, &kPlain);
    while (request != nullptr && !UCS_PTR_IS_ERR(request) &&
           ucp_request_check_status(request) == UCS_INPROGRESS && now() < end)
      ucp_worker_progress(state->worker);
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucp_request_free(request);
  }
  if (state->mem != nullptr) ucp_mem_unmap(state->context, state->mem);
  if (state->worker != nullptr) ucp_worker_destroy(state->worker);
  if (state->context != nullptr) ucp_cleanup(state->context);
  delete state;
  state = nullptr;
}

constexpr TopotuneNet kModule{kNetModuleVersion, open, library, address, connect,
                              describe,          ping, stream,  verify,  close};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TopotuneNet* topotune_net() { return &kModule; }
