#pragma once

#include <functional>

#include "peers/peers.h"

namespace topotune::peers {

// Where processes meet: rank 0 listens there.
struct Meeting {
  std::string host;  // name or address, IPv4 or IPv6, or several with commas; "" at rank 0: all addresses
  int port = 0;
  int rank = 0, size = 1;
  double limit_seconds = 60;             // until all are there
  std::function<bool()> stop = nullptr;  // asked meanwhile: a reason to give up
  int listener = -1;                     // rank 0: a socket that listens already; taken over
  std::string version;                   // of the program; all must have the same. "": this program's
};

// "h1:29400", "10.0.0.1:29400", "[::1]:29400".
Result<Meeting> meeting_from(const std::string& address);

// A socket of rank 0 that listens on a port that the kernel chooses; the port.
struct Listener {
  int fd = -1;
  int port = 0;
};
Result<Listener> listen_anywhere();

// Waits until all `size` processes are there. Errors name who is missing, or who speaks another version, is
// no topotune, has a rank that was given already, or that a name of rank 0's host is none (after a few
// seconds: a rank that does not listen yet is waited for, a name that is wrong is not).
Result<std::unique_ptr<Peers>> meet(const Meeting& meeting);

}  // namespace topotune::peers
