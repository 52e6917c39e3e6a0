#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tune/table.h"

namespace topotune::tune {

// The regions of one communicator's shape, ready to be asked: no allocation, no lock, a few nanoseconds.
class Decider {
 public:
  Decider() = default;
  Decider(const Table& table, std::size_t ranks, std::size_t nodes);

  // Null: the table says nothing, NCCL decides. `function` is NCCL's ncclFunc_t.
  const Choice* choice(int function, std::uint64_t bytes) const;
  std::size_t regions() const;

 private:
  struct Row {
    std::uint64_t from = 0, to = 0;
    Choice choice;
  };
  struct Rows {
    std::vector<std::uint64_t> from;  // ascending: close together, since all of a table's may be searched
    std::vector<Row> rows;
  };
  std::array<Rows, kTunedCollectives> rows_;
};

// Whether NCCL keeps to the channels that a communicator has when its tuner asks for more. It does not for
// what a switch of the network reduces: there a choice says nothing of channels.
bool keeps_to_channels(int algorithm, std::size_t nodes);

// What became of a choice in NCCL's cost table.
enum class Applied { nothing, channels_only, forced, unusable };

// Writes a choice into NCCL's table of microseconds (`costs`: algorithms x protocols, negative = not
// possible) and channel count. An entry that is not possible stays so, and then nothing at all is changed.
// The same for one that NCCL holds to be 256 times as slow as another: so it marks what it does not want for
// other reasons than time (Ring for fp8 on more than eight ranks loses precision: times 1024).
Applied apply(const Choice& choice, float* costs, int algorithms, int protocols, int* channels);

// The entry that NCCL itself would take: the smallest that is not negative, the first of equals.
Choice cheapest(const float* costs, int algorithms, int protocols);

}  // namespace topotune::tune
