#include "emit/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/text.h"
#include "emit/path_table.h"

namespace topotune::emit {

namespace {

using model::Path;
using model::PathType;
using model::Topology;

constexpr std::size_t kMaxDevices = 32;

struct Row {
  std::string id;
  const model::Gpu* gpu = nullptr;
};

std::vector<Row> rows_of(const Topology& topology) {
  std::vector<Row> out;
  for (const auto& gpu : topology.gpus) out.push_back({gpu.id, &gpu});
  for (const auto& nic : topology.nics) out.push_back({nic.id, nullptr});
  if (out.size() > kMaxDevices) out.resize(kMaxDevices);
  return out;
}

// ANSI colour of a class: near is green, through the CPU yellow, across CPUs red.
const char* color_of(const Path* path) {
  if (path == nullptr || !path->type) return "\x1b[2m";
  switch (*path->type) {
    case PathType::nvl:
    case PathType::xgmi:
    case PathType::c2c:
      return "\x1b[1;32m";
    case PathType::pix:
    case PathType::pxb:
      return "\x1b[32m";
    case PathType::phb:
    case PathType::node:
      return "\x1b[33m";
    case PathType::sys:
      return "\x1b[31m";
  }
  return "";
}

std::string pad(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

// "0-31,64-95 …": a list that fits the column.
std::string short_list(const std::optional<CpuSet>& cpus) {
  if (!cpus) return "N/A";
  const std::string list = cpus->to_list();
  return list.size() <= 40 ? list : list.substr(0, 37) + "...";
}

// Items with commas between them, on lines of at most 110 columns, all indented like the first.
std::string wrapped(const std::string& lead, const std::vector<std::string>& items) {
  std::string out;
  std::string line = lead;
  for (const auto& item : items) {
    if (line.size() > lead.size() && line.size() + item.size() + 2 > 110) {
      out += line + ",\n";
      line = std::string(lead.size(), ' ');
    }
    line += (line.size() > lead.size() ? ", " : "") + item;
  }
  return items.empty() ? "" : out + line + "\n";
}

class Matrix {
 public:
  Matrix(const Topology& topology, const std::vector<Path>& paths, bool color)
      : topology_(topology),
        paths_(paths),
        table_(paths),
        rows_(rows_of(topology)),
        width_(widest_cell() + 1),
        affinity_width_(widest_affinity()),
        color_(color) {}

  std::string text() const {
    if (rows_.empty()) return "No GPU and no NIC.\n" + numa();
    std::string out = header();
    for (const auto& row : rows_) out += line(row);
    const auto devices = topology_.gpus.size() + topology_.nics.size();
    if (devices > rows_.size())
      out += fmt::format("… and {} more devices (--json has them)\n", devices - rows_.size());
    return out + "\n" + legend() + "\n" + meaning();
  }

 private:
  std::size_t widest_cell() const {
    std::size_t widest = 5;
    for (const auto& row : rows_) widest = std::max(widest, row.id.size());
    for (const auto& path : paths_) widest = std::max(widest, cell_of(&path).size());
    return widest;
  }

  std::string header() const {
    std::string out(width_, ' ');
    for (const auto& row : rows_) out += pad(row.id, width_);
    if (topology_.gpus.empty()) return out + "\n";
    return out + pad("CPU Affinity", affinity_width_) + "NUMA Affinity\n";
  }

  std::size_t widest_affinity() const {
    std::size_t widest = 14;
    for (const auto& gpu : topology_.gpus) widest = std::max(widest, short_list(gpu.cpus).size() + 2);
    return widest;
  }

  std::string line(const Row& row) const {
    std::string out = pad(row.id, width_);
    for (const auto& column : rows_) {
      const auto* path = table_.find(row.id, column.id);
      const std::string cell = row.id == column.id ? " X" : cell_of(path);
      const bool painted = color_ && row.id != column.id;
      out += painted ? color_of(path) + pad(cell, width_) + "\x1b[0m" : pad(cell, width_);
    }
    if (row.gpu != nullptr)
      out += pad(short_list(row.gpu->cpus), affinity_width_) +
             (row.gpu->numa ? fmt::format("{}", *row.gpu->numa) : "N/A");
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

  std::string legend() const {
    std::string out = "Legend:\n  X    = itself\n";
    for (const auto type : {PathType::sys, PathType::node, PathType::phb, PathType::pxb, PathType::pix,
                            PathType::c2c, PathType::xgmi, PathType::nvl}) {
      if (std::ranges::any_of(paths_, [&](const Path& p) { return p.type == type; }))
        out += fmt::format("  {:<4} = {}\n", type == PathType::nvl ? "NV#" : name_of(type), meaning_of(type));
    }
    if (std::ranges::any_of(paths_, [](const Path& p) { return !p.type; }))
      out += "  ?    = the input does not tell\n";
    std::vector<std::string> nics;
    for (const auto& nic : topology_.nics) {
      if (!label_of(nic).empty()) nics.push_back(nic_text(nic));
    }
    return out + wrapped("  ", nics);
  }

  static std::string nic_text(const model::Nic& nic) {
    std::string out = fmt::format("{}: {}", nic.id, printable(label_of(nic)));
    if (nic.name && nic.bdf) out += " " + *nic.bdf;
    if (nic.link_layer) out += " " + printable(*nic.link_layer);
    if (nic.rate) out += fmt::format(" {:g} Gb/s", nic.rate->value);
    if (nic.is_virtual) out += " (virtual)";
    return out;
  }

  std::string numa() const {
    std::string out;
    for (const auto& node : topology_.numa) {
      out += fmt::format("NUMA node {}: CPUs {}", node.id,
                         !node.cpus           ? "unknown"
                         : node.cpus->empty() ? "none"
                                              : node.cpus->to_list());
      if (node.memory_bytes)
        out += fmt::format(", {:.1f} GiB", static_cast<double>(*node.memory_bytes) / (1 << 30));
      out += "\n";
    }
    return out;
  }

  std::string meaning() const {
    std::string out;
    const auto shape = model::shape_of(topology_, paths_);
    if (!topology_.gpus.empty()) out += fmt::format("Shape: {} ({})\n", shape.name, shape.why);
    for (const auto& island : model::islands_of(topology_, paths_))
      out += fmt::format("NVLink island: {}\n", fmt::join(island, " "));
    out += pairs() + expected();
    if (!topology_.source.complete) out += "The input is not complete: see the warnings.\n";
    return out;
  }

  std::string pairs() const {
    std::vector<std::string> said;
    for (const auto& pair : model::pairs_of(topology_, paths_))
      said.push_back(fmt::format("{} {} {}", pair.gpu, name_of(pair.type), fmt::join(pair.nics, "+")));
    return wrapped("Nearest NICs: ", said);
  }

  // One line for each different expectation: "GPU-GPU NV18: 370.8 GB/s one way (18 links x 20.6 GB/s ...)".
  std::string expected() const {
    std::string out;
    std::set<std::tuple<bool, std::optional<PathType>, std::optional<int>, long>> said;
    std::unordered_set<std::string_view> known;
    for (const auto& gpu : topology_.gpus) known.insert(gpu.id);
    for (const auto& path : paths_) {
      if (!path.bandwidth || said.size() >= 8) continue;
      const bool gpus = known.contains(path.a) && known.contains(path.b);
      if (!said.emplace(gpus, path.type, path.nvlinks, std::lround(path.bandwidth->value * 10)).second)
        continue;
      out += fmt::format("Expected {} {}: {:.1f} GB/s one way ({}; {})\n", gpus ? "GPU-GPU" : "GPU/NIC",
                         cell_of(&path), path.bandwidth->value, path.a + "-" + path.b, path.why);
    }
    return out;
  }

  const Topology& topology_;
  const std::vector<Path>& paths_;
  PathTable table_;
  std::vector<Row> rows_;
  std::size_t width_;
  std::size_t affinity_width_;
  bool color_;
};

}  // namespace

std::string matrix_text(const Topology& topology, const std::vector<Path>& paths, bool color) {
  return Matrix(topology, paths, color).text();
}

}  // namespace topotune::emit
