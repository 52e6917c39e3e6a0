#pragma once

#include <cstddef>
#include <cstdint>

// The C interface between the program and libtopotune-ucx.so, which alone is linked with UCX. Functions
// return 0, or another number and a text in `error`. One thread calls. In ping, stream and verify two
// processes take part, one of them as the initiator; no wait for the other lasts longer than `limit_seconds`.
// Between calls `progress` must be called again and again until the other process has returned from the same
// call too: what this one sent last may still lie in UCX's queues.
extern "C" {

// Memory that is not the host's: a GPU's.
struct TopotuneNetMemory {
  void* self;
  int (*use)(void* self);                            // the calling thread will work with it; 0: it may
  void* (*allocate)(void* self, std::size_t bytes);  // null: none
  void (*release)(void* self, void* memory);
  // 0: copied. By any thread that has called `use`.
  int (*copy_in)(void* self, void* to, const void* from_host, std::size_t bytes);
  int (*copy_out)(void* self, void* to_host, const void* from, std::size_t bytes);
};

struct TopotuneNetSetup {
  const char* tls;      // as UCX_TLS; null or "": UCX's own choice and environment
  const char* devices;  // as UCX_NET_DEVICES
  std::size_t bytes;    // the largest message
  int streams;          // connections to each peer, each with its own thread in `stream`; at least 1
  const TopotuneNetMemory* memory;  // null: host memory; stays valid until `close`
};

struct TopotuneNetStream {
  double seconds;          // of the last, longest run at the initiator
  std::uint64_t messages;  // of one direction in it, of all streams
  double cpu_seconds;      // of all threads in it
};

struct TopotuneNet {
  int version;  // kNetModuleVersion
  int (*open)(const TopotuneNetSetup* setup, char* error, std::size_t error_size);
  // "1.13.1"
  void (*library)(char* text, std::size_t size);
  // What UCX has here with its own choice, "tcp/eth0 posix/memory": one word each.
  void (*resources)(char* text, std::size_t size);
  // What another process needs to connect; valid until `close`.
  int (*address)(const void** data, std::size_t* size, char* error, std::size_t error_size);
  // Connects to a peer by its number; the same number in all calls.
  int (*connect)(int peer, const void* data, std::size_t size, char* error, std::size_t error_size);
  // What UCX says of the connection, as it prints endpoints; after the first message.
  void (*describe)(int peer, char* text, std::size_t size);
  // One message there and back, `rounds` times, fewer when that takes longer than `seconds`; `made` is how
  // many. op: 0 tag, 1 active message, 2 put, 3 get (the initiator reads). The initiator's `mean` is the time
  // of one way (get: of one read; put into memory that is not the host's: until it is there) over a loop
  // without clocks in it; `samples` (room for `rounds`) are single ones from a second loop.
  int (*ping)(int peer, int me, int op, std::size_t bytes, int rounds, double seconds, int initiator,
              double limit_seconds, double* mean, double* samples, int* made, char* error,
              std::size_t error_size);
  // Messages one after the other for about `seconds`, at most `window` under way in each stream. direction: 0
  // initiator to the other, 1 both at once.
  int (*stream)(int peer, int me, int op, std::size_t bytes, double seconds, int window, int direction,
                int initiator, double limit_seconds, TopotuneNetStream* result, char* error,
                std::size_t error_size);
  // One message of which every byte is compared; `wrong`: bytes that were not right, at the receiver.
  int (*verify)(int peer, int me, int op, std::size_t bytes, std::uint32_t seed, int initiator,
                double limit_seconds, std::uint64_t* wrong, char* error, std::size_t error_size);
  // Lets UCX work once; from any thread, while no other function runs.
  void (*progress)();
  void (*close)();
};

inline constexpr int kNetModuleVersion = 2;
const TopotuneNet* topotune_net();

}  // extern "C"
