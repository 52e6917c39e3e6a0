#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parse/topo_block.h"

namespace topotune::parse::topo {

// A device of the matrix: a column, and a row where there is one.
struct Device {
  Kind kind = Kind::gpu;
  std::string name;  // as the text writes it; "" for a column of which nothing is known
};

// A row with its cells under their devices.
struct Row {
  std::size_t device = 0;
  int line = 0;
  std::vector<Cell> cells;                // one a device; Mark::other with empty text where there is none
  std::optional<std::string> cpus, numa, gpu_numa;  // words of the affinity columns
  std::size_t tail = 0;                   // affinity cells seen
  bool whole = false;                     // every cell is there and was not cut
  bool cut = false;                       // the line ends too early, or in the middle of its last cell
  std::vector<model::Warning> warnings;
};

struct Table {
  std::vector<Device> devices;
  std::vector<Row> rows;
  std::size_t unnamed = 0;  // columns of which nothing is known
  std::vector<model::Warning> warnings;
};

// Gives every cell its device. Cells points into `block`.
Table arrange(const Block& block);

}  // namespace topotune::parse::topo
