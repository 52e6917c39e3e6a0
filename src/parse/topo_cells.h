#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology.h"

// The words of `nvidia-smi topo -m`: cells of a row and columns of a header. Used by parse/topo_block and
// parse/nvidia_smi_topo only.
namespace topotune::parse::topo {

enum class Mark {
  path,     // PIX PXB PHB NODE SYS C2C, and the older SOC (SYS) and PSB (PIX)
  nvlink,   // NV<links>
  self,     // X
  status,   // a word of `topo -p2p`: OK CNS GNS TNS NS DR U
  unknown,  // N/A, -, ?: nothing is said
  list,     // digits, '-' and ',': a CPU or node list
  other,    // anything else; with empty text: no cell at all
};

struct Cell {
  Mark mark = Mark::other;
  model::PathType type = model::PathType::sys;  // of Mark::path
  int links = 0;                                // of Mark::nvlink
  std::string_view text;                        // points into the text that was read
  std::size_t column = 0;                       // from 0, where it begins in its line
};

// The meaning of one whole word.
Cell read_cell(std::string_view word);
// True for a cell that belongs between the devices of a row.
bool is_matrix_cell(const Cell& cell);

// The cells of a text that begins at `column` of its line; glued ones ("NODENODE", "SYS0-31") are taken
// apart. At most `limit` cells are read.
std::vector<Cell> read_cells(std::string_view text, std::size_t column, std::size_t limit);

enum class Kind { gpu, nic, nvswitch, cpu_affinity, numa_affinity, gpu_numa };
bool is_device(Kind kind);

struct Column {
  Kind kind = Kind::gpu;
  std::string name;        // "GPU0", "NIC3", "mlx5_0"; of an affinity column its title
  std::size_t column = 0;  // where it begins in its line
};

struct Header {
  std::vector<Column> columns;
  std::string partial;  // what the end of the line cut in its middle: "NI", "CPU Aff"
};

// More devices than any machine has, and few enough that a matrix of all pairs is cheap.
constexpr std::size_t kMaxDevices = 1024;

// The run of column titles at the end of a line; text before the first GPU (a prompt, a log prefix) is
// skipped. Nothing when there is none: a header names a GPU, and a second device or an affinity column.
std::optional<Header> read_header(std::string_view line);
// As above for one cell of a Markdown table: exactly one title, or nothing.
std::optional<Column> read_title(std::string_view cell);

// A device's name at the beginning of a text ("GPU0", "NIC3", "mlx5_0"; also of "GPU0X", "mlx5_0PIX"), length
// 0: none.
struct DeviceName {
  std::size_t length = 0;
  Kind kind = Kind::gpu;
};
DeviceName device_at(std::string_view text);
// True for a word that the end of a line may have cut from a cell: "SY", "NOD", "N/".
bool is_cut_cell(std::string_view word);

// One line with tabs widened to eight columns and without escapes, quote marks, emphasis, non-breaking
// blanks; box-drawing bars become '|'. The visible rests of escapes ("[4m", "^[[0m") go too.
std::string clean_line(std::string_view line);

}  // namespace topotune::parse::topo
