#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "net/module_api.h"

namespace topotune::ucx {

// Carries a text to the C interface.
struct Failure {
  std::string text;
};

void ok(ucs_status_t status, const char* what);

double now();

struct Connection {
  ucp_ep_h ep = nullptr;
  ucp_rkey_h rkey = nullptr;
  std::uint64_t memory = 0;           // of the peer: its receive half
  std::uint32_t told = 0, heard = 0;  // control messages so far: both sides count alike
};

// What a control message is about.
enum class Word : std::uint32_t { ready = 1, count, sent, received };

using Request = ucs_status_ptr_t;

// One wait: how often it looked, and since when, once that was more than a moment.
struct Patience {
  unsigned turns = 0;
  double since = 0;
};

// This process's end of one connection to each peer: a worker, its memory, and what was sent and received.
// Used by one thread at a time.
class Side {
 public:
  Side() = default;
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  void open(const TopotuneNetSetup& setup);
  // Worker address, key of the memory, address of the receive half: appended.
  void address(std::vector<unsigned char>& blob) const;
  // Takes its part from the front of a peer's address.
  void connect(int peer, const unsigned char*& at, const unsigned char* end);
  Connection& connection(int peer);
  const Connection* find(int peer) const;

  // Of each wait that follows.
  void limit(double seconds) { limit_ = seconds; }
  void progress() { ucp_worker_progress(worker_); }
  // Every so often: has the time run out?
  void look_at_the_clock(Patience& patience, const char* what) const {
    if ((++patience.turns & 0x3ff) == 0) long_wait(patience, what);
  }
  bool done(Request& request, const char* what) const {
    if (request == nullptr) return true;
    return done_later(request, what);
  }
  void wait(Request request, const char* what) {
    Patience patience;
    while (!done(request, what)) {
      progress();
      look_at_the_clock(patience, what);
    }
  }

  Request send_tag(const Connection& c, int me, const void* data, std::size_t bytes) const {
    return ucp_tag_send_nbx(c.ep, data, bytes, tag_of(me, Use::data), &kPlain);
  }
  Request receive_tag(int peer, void* data, std::size_t bytes) const {
    return ucp_tag_recv_nbx(worker_, data, bytes, tag_of(peer, Use::data), ~std::uint64_t{0}, &kPlain);
  }
  static Request send_active(const Connection& c, const void* data, std::size_t bytes) {
    return ucp_am_send_nbx(c.ep, 0, nullptr, 0, data, bytes, &kPlain);
  }
  static Request put(const Connection& c, const void* data, std::size_t bytes) {
    return ucp_put_nbx(c.ep, data, bytes, c.memory, c.rkey, &kPlain);
  }
  static Request get(const Connection& c, void* data, std::size_t bytes) {
    return ucp_get_nbx(c.ep, data, bytes, c.memory, c.rkey, &kPlain);
  }
  void flush(const Connection& c) { wait(ucp_ep_flush_nbx(c.ep, &kPlain), "flush"); }

  // Active messages are counted from the start of the process, never from "now": the first ones of a phase
  // may arrive together with the control message that begins it.
  void expect_active(std::uint64_t more) { active_due_ += more; }
  bool all_active() const { return active_arrived_ >= active_due_; }
  void wait_active() {
    Patience patience;
    while (!all_active()) {
      progress();
      look_at_the_clock(patience, "active message");
    }
  }

  // Control messages carry their number and what they are about; one out of step is an error at once.
  void tell(Connection& c, int me, Word word, std::uint64_t value = 0);
  std::uint64_t hear(Connection& c, int peer, Word word);

  unsigned char* out() const { return memory_; }
  unsigned char* in() const { return memory_ + half_; }
  bool is_host() const { return foreign_ == nullptr; }
  // The calling thread will work with the memory.
  void use() const;
  void write(unsigned char* to, const void* from, std::size_t bytes) const;  // into out() or in()
  void read(void* to, const unsigned char* from, std::size_t bytes) const;
  void set(unsigned char* to, unsigned char value, std::size_t bytes) const;

 private:
  enum class Use : std::uint64_t { data = 1, control = 2 };
  static const ucp_request_param_t kPlain;
  // Who sends (so that pairs do not mix), and what for.
  static ucp_tag_t tag_of(int sender, Use use) {
    return (static_cast<std::uint64_t>(sender) << 8) | static_cast<std::uint64_t>(use);
  }
  bool copied_in(unsigned char* to, const void* from, std::size_t bytes) const;
  bool done_later(Request& request, const char* what) const;
  void long_wait(Patience& patience, const char* what) const;
  void open_context(const TopotuneNetSetup& setup);
  void open_worker();
  void open_memory(std::size_t bytes);
  static ucs_status_t on_active(void* self, const void*, std::size_t, void* data, std::size_t length,
                                const ucp_am_recv_param_t* param);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_mem_h mem_ = nullptr;
  const TopotuneNetMemory* foreign_ = nullptr;
  std::size_t half_ = 0;
  unsigned char* memory_ = nullptr;  // what is sent, then what is received
  std::map<int, Connection> peers_;
  std::uint64_t active_arrived_ = 0, active_due_ = 0;
  double limit_ = 0;
};

}  // namespace topotune::ucx
