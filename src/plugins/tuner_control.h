#pragma once

#include <cstdint>

// How `topotune tune` steers the tuner plugin inside its own process: it finds these functions by name in the
// library that NCCL has loaded. No job uses them.
namespace topotune::plugins {

inline constexpr int kControlVersion = 3;

// What was asked last while the plugin was watched, as NCCL's table stood before the plugin wrote into it.
// The counts go on unwatched.
struct LastDecision {
  std::uint64_t calls = 0;     // of getCollInfo under a forced choice, watched
  std::uint64_t applied = 0;   // decisions that came from a table
  std::uint64_t unusable = 0;  // calls in which a forced choice was not possible
  int function = -1;
  std::uint64_t bytes = 0;
  int algorithms = 0, protocols = 0;
  float costs[16][4] = {};  // microseconds; negative: not possible
};

extern "C" {
// "topotune_tuner_control": kControlVersion.
using ControlVersion = int (*)();
// "topotune_tuner_force": from now on, in every communicator of this process, take algorithm, protocol and
// channels
// (-1, -1, 0: none of them) instead of what a table says. "topotune_tuner_release": tables again.
using Force = void (*)(int algorithm, int protocol, int channels);
using Release = void (*)();
// "topotune_tuner_watch": 1 writes down what is asked; 0 costs nothing, so that times can be compared.
using Watch = void (*)(int on);
// "topotune_tuner_last"
using Last = void (*)(LastDecision* last);
// "topotune_tuner_said": what the plugin said about the communicator that was made last: the line in the log.
// At most `bytes` characters with the end.
using Said = void (*)(char* text, unsigned long bytes);
// "topotune_tuner_shape": ranks and nodes of that communicator, as NCCL counts them.
using Shape = void (*)(unsigned long* ranks, unsigned long* nodes);
}

}  // namespace topotune::plugins
