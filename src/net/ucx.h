#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/module_api.h"

namespace topotune::net {

enum class Op { tag, active_message, put, get };
const std::vector<Op>& all_ops();
const char* name_of(Op op);  // "tag", "am", "put", "get"
std::optional<Op> op_from(const std::string& name);

struct UcxOptions {
  std::string tls, devices;  // UCX_TLS, UCX_NET_DEVICES; "": as the environment has them
  std::size_t bytes = 0;     // largest message
  int streams = 1;
  const TopotuneNetMemory* memory = nullptr;  // of a GPU; outlives the Ucx
  double limit_seconds = 60;
};

// UCX by its module. One of two processes is the initiator; both call the same function at the same time.
class Ucx {
 public:
  // not_found: no module or no UCX here; unsupported: another version of the module, a transport or memory
  // that is not here; io: UCX's words.
  static Result<std::unique_ptr<Ucx>> open(const UcxOptions& options, int me);
  ~Ucx();
  Ucx(const Ucx&) = delete;
  Ucx& operator=(const Ucx&) = delete;

  std::string library() const;
  Result<std::string> address() const;
  Result<void> connect(int peer, const std::string& address);
  // Transports and devices of the connection, as UCX tells: "tcp/e0"; "" where it does not.
  std::string lanes(int peer) const;
  // Lets UCX work once; from any thread, while no other function runs.
  void progress() const { module_.progress(); }

  struct Ping {
    double mean = 0;              // seconds of one way (get: of one read), without clocks in the loop
    std::vector<double> samples;  // single ones
  };
  // At most `rounds`, fewer when they take longer than `seconds`.
  Result<Ping> ping(int peer, Op op, std::size_t bytes, int rounds, double seconds, bool initiator);
  struct Stream {
    double gbytes_per_s = 0;  // of one direction
    double messages_per_s = 0;
    double cpu = 0;  // of all streams' threads; 1 is a whole CPU
  };
  Result<Stream> stream(int peer, Op op, std::size_t bytes, double seconds, int window, bool both,
                        bool initiator);
  // Bytes that were wrong at the receiver; 0 on the other side.
  Result<std::uint64_t> verify(int peer, Op op, std::size_t bytes, std::uint32_t seed, bool initiator);

 private:
  Ucx(const TopotuneNet& module, int me, double limit) : module_(module), me_(me), limit_(limit) {}
  const TopotuneNet& module_;
  int me_;
  double limit_;
};

// A name of UCX_TLS that no resource ("tcp/eth0 rc_mlx5/mlx5_0:1 ...") answers to; nothing where all are here
// or names are excluded (^).
std::optional<std::string> absent_transport(const std::string& tls, const std::string& resources);

// The lanes in what ucp_ep_print_info prints: "tcp/e0", "posix/memory cma/memory".
std::string lanes_in(const std::string& text);

}  // namespace topotune::net
