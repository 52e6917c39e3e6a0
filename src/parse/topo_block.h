#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parse/topo_cells.h"

namespace topotune::parse::topo {

// One row as it stands in the text, continuation lines appended.
struct RawRow {
  std::string device;              // its label
  int line = 0;                    // from 1
  std::string before;              // what stands left of the label
  std::string text;                // what stands right of it
  std::size_t column = 0;          // where `text` begins
  std::vector<std::string> table;  // cells of a Markdown table, the label's included
  std::size_t label_cell = 0;      // its place in `table`
};

// The lines of one matrix.
struct Block {
  int line = 0;                          // of the header, else of the first row
  Header header;                         // no columns: the text begins after the header
  bool is_table = false;                 // Markdown: header.columns[i].column counts table cells
  std::vector<RawRow> rows;              // each device once
  bool at_end = true;                    // nothing but blanks and code fences follows the last row
  std::map<int, std::string> nic_names;  // the NIC legend
};

// What the text holds.
struct Found {
  std::optional<Block> matrix;      // the first topology matrix
  std::optional<int> p2p_line;      // a `topo -p2p` matrix
  std::optional<int> second_line;   // a further topology matrix, not read
  std::optional<int> refusal_line;  // a line in which nvidia-smi says why it prints no matrix
  std::string refusal;
  std::optional<std::size_t> too_many;  // devices of a header beyond kMaxDevices
};

// One pass over the text.
Found find_matrix(std::string_view text);

}  // namespace topotune::parse::topo
