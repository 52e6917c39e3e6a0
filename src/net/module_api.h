#pragma once

#include <cstddef>
#include <cstdint>

// The C interface between the program and libtopotune-ucx.so, which alone is linked with UCX. Functions
// return 0, or another number and a text in `error`. One thread uses it. In every call two processes take
// part, one of them as the initiator; nothing waits longer than `limit_seconds`.
extern "C" {

struct TopotuneNetStream {
  double seconds;          // of the last, longest run at the initiator
  std::uint64_t messages;  // of one direction in it
  double cpu_seconds;      // of this thread in it
};

struct TopotuneNet {
  int version;  // kNetModuleVersion
  // tls and devices as in UCX_TLS and UCX_NET_DEVICES; null or "": UCX's own choice and environment. `bytes`:
  // the largest message.
  int (*open)(const char* tls, const char* devices, std::size_t bytes, char* error, std::size_t error_size);
  // "1.13.1"
  void (*library)(char* text, std::size_t size);
  // What another process needs to connect; valid until `close`.
  int (*address)(const void** data, std::size_t* size, char* error, std::size_t error_size);
  // Connects to a peer by its number; the same number in all calls.
  int (*connect)(int peer, const void* data, std::size_t size, char* error, std::size_t error_size);
  // What UCX says of the connection, as it prints endpoints; after the first message.
  void (*describe)(int peer, char* text, std::size_t size);
  // One message there and back, `rounds` times. op: 0 tag, 1 active message, 2 put, 3 get (the initiator
  // reads). The initiator's `mean` is the time of one way (get: of one read) over a loop without clocks in
  // it; `samples` (rounds of them) are single ones from a second loop.
  int (*ping)(int peer, int me, int op, std::size_t bytes, int rounds, int initiator, double limit_seconds,
              double* mean, double* samples, char* error, std::size_t error_size);
  // Messages one after the other for about `seconds`, at most `window` under way. direction: 0 initiator to
  // the other, 1 both at once.
  int (*stream)(int peer, int me, int op, std::size_t bytes, double seconds, int window, int direction,
                int initiator, double limit_seconds, TopotuneNetStream* result, char* error,
                std::size_t error_size);
  // One message of which every byte is compared; `wrong`: bytes that were not right, at the receiver.
  int (*verify)(int peer, int me, int op, std::size_t bytes, std::uint32_t seed, int initiator,
                double limit_seconds, std::uint64_t* wrong, char* error, std::size_t error_size);
  void (*close)();
};

inline constexpr int kNetModuleVersion = 1;
const TopotuneNet* topotune_net();

}  // extern "C"
