#include "emit/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.h"
#include "emit/path_table.h"
#include "emit/svg_canvas.h"
#include "emit/svg_scene.h"

namespace topotune::emit {

namespace {

using model::PathType;
using model::Topology;

// Colours of the classes, nearest to farthest; dark enough for white letters.
constexpr std::array<std::string_view, 8> kColors{"#3f8f29", "#8e44ad", "#5e548e", "#0b7a75",
                                                  "#2f6db5", "#a66a00", "#c2570c", "#b42318"};
std::string_view color_of(PathType type) { return kColors[static_cast<std::size_t>(type)]; }

constexpr std::string_view kInk = "#1f2933", kQuiet = "#52606d", kWire = "#8494a7", kBad = "#b42318";

constexpr double kMargin = 28;
constexpr double kTop = 84;      // below title and subtitle
constexpr double kPadding = 12;  // inside a node
constexpr double kNodeGap = 54;  // room for a SYS tag
constexpr double kGroupGap = 10;
constexpr double kCpuHeight = 46;
constexpr double kSwitchHeight = 24;
constexpr double kChipHeight = 32;
constexpr double kChipGap = 5;
constexpr double kMaxWidth = 2000;  // then nodes go on in a new row
constexpr std::size_t kMaxColumns = 16;

// A node with its place.
struct PlacedGroup {
  const SceneGroup* group = nullptr;
  std::size_t columns = 1;
  double x = 0, width = 0;
};
struct PlacedNode {
  const SceneNode* node = nullptr;
  std::vector<PlacedGroup> groups;
  Rect box;
  bool continued = false;
};
struct PlacedRow {
  std::vector<PlacedNode> nodes;
  double y = 0;  // top of its nodes
  std::size_t chip_rows = 0;
  double gpu_y = 0, bottom = 0;  // of its GPUs, of its nodes
  double links = 0;              // height of the NVLink zone below
  double width = 0;
};

std::string short_name(std::string_view name) {
  for (const std::string_view vendor : {"NVIDIA ", "Tesla ", "AMD ", "Instinct "}) {
    if (name.starts_with(vendor)) name.remove_prefix(vendor.size());
  }
  return std::string(name);
}

// "Gen5 x16", "" where speed and width are unknown.
std::string link_text(const model::PcieLink& link) {
  static constexpr std::array<double, 6> kRates{2.5, 5, 8, 16, 32, 64};
  std::string out;
  const auto rate = link.gts ? std::ranges::find(kRates, *link.gts) : kRates.end();
  if (rate != kRates.end()) out = fmt::format("Gen{}", rate - kRates.begin() + 1);
  if (link.width) out += fmt::format("{}x{}", out.empty() ? "" : " ", *link.width);
  return out;
}

bool is_narrow(const model::PciDevice& device) {
  return device.current.width && device.capable.width && *device.current.width < *device.capable.width;
}

// NUMA nodes and their groups from left to right, in rows; GPUs at the foot of each node, NVLinks below.
class Layout {
 public:
  // `gpu_lines`: lines of small text below a GPU's id.
  Layout(const Scene& scene, int gpu_lines) : scene_(scene), gpu_height_(36 + 15 * gpu_lines) {
    column_ = scene.gpus <= 8 ? 112 : scene.gpus <= 16 ? 98 : 90;
    for (const auto& node : scene.nodes) add_node(node);
    place_rows();
  }

  const std::vector<PlacedRow>& rows() const { return rows_; }
  double column() const { return column_; }
  double width() const { return width_; }
  double height() const { return height_; }
  // Where a GPU stands; its row in `rows`.
  struct Spot {
    Rect box;
    std::size_t row = 0;
  };
  const std::map<std::size_t, Spot>& gpus() const { return gpus_; }

 private:
  static std::size_t columns_of(const SceneGroup& group) {
    const std::size_t per_column = group.gpus.empty() ? 4 : 3;
    return std::max({group.gpus.size(), (group.nics.size() + per_column - 1) / per_column, std::size_t{1}});
  }

  // A node of more columns than fit is continued in further boxes.
  void add_node(const SceneNode& node) {
    PlacedNode placed{&node, {}, {}, false};
    std::size_t columns = 0;
    for (const auto& group : node.groups) {
      const std::size_t more = columns_of(group);
      if (columns > 0 && columns + more > kMaxColumns) {
        add_placed(std::move(placed));
        placed = {&node, {}, {}, true};
        columns = 0;
      }
      placed.groups.push_back({&group, more, 0, static_cast<double>(more) * column_});
      columns += more;
    }
    add_placed(std::move(placed));
  }

  void add_placed(PlacedNode node) {
    node.box.width = 2 * kPadding - kGroupGap;
    for (const auto& group : node.groups) node.box.width += group.width + kGroupGap;
    node.box.width = std::max(node.box.width, 210.0);
    const bool fits = !rows_.empty() && rows_.back().width + kNodeGap + node.box.width <= kMaxWidth;
    if (!fits) rows_.emplace_back();
    auto& row = rows_.back();
    row.width += (row.nodes.empty() ? 0 : kNodeGap) + node.box.width;
    for (const auto& group : node.groups)
      row.chip_rows = std::max(row.chip_rows, (group.group->nics.size() + group.columns - 1) / group.columns);
    row.nodes.push_back(std::move(node));
  }

  void place_rows() {
    for (const auto& row : rows_) width_ = std::max(width_, row.width + 2 * kMargin);
    width_ = std::max(width_, 640.0);
    for (std::size_t i = 0; i < rows_.size(); ++i) place_row(rows_[i], i, 0);  // for link_zone
    double y = kTop;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      place_row(rows_[i], i, y);
      rows_[i].links = link_zone(i);
      y = rows_[i].bottom + rows_[i].links + 26;
    }
    height_ = y;
  }

  void place_row(PlacedRow& row, std::size_t index, double y) {
    row.y = y;
    const double chips = static_cast<double>(row.chip_rows) * (kChipHeight + kChipGap);
    row.gpu_y = y + kPadding + kCpuHeight + 22 + kSwitchHeight + 12 + chips + 8;
    row.bottom = row.gpu_y + gpu_height_ + kPadding;
    double x = (width_ - row.width) / 2;
    for (auto& node : row.nodes) {
      node.box = {x, y, node.box.width, row.bottom - y};
      place_groups(node, index, row.gpu_y);
      x = node.box.right() + kNodeGap;
    }
  }

  void place_groups(PlacedNode& node, std::size_t row, double gpu_y) {
    double needed = -kGroupGap;
    for (const auto& group : node.groups) needed += group.width + kGroupGap;
    double x = node.box.middle() - needed / 2;
    for (auto& group : node.groups) {
      group.x = x;
      for (std::size_t i = 0; i < group.group->gpus.size(); ++i)
        gpus_[group.group->gpus[i]] = {
            {x + static_cast<double>(i) * column_ + 4, gpu_y, column_ - 8, gpu_height_}, row};
      x += group.width + kGroupGap;
    }
  }

  // Height that bars and arcs below a row need.
  double link_zone(std::size_t row) const {
    double height = 0;
    for (const auto& island : scene_.islands) {
      if (!island.hub) continue;
      for (const auto gpu : island.gpus) {
        if (gpus_.at(gpu).row == row) height = std::max(height, 88.0);
      }
    }
    for (const auto& edge : scene_.edges) {
      const auto &a = gpus_.at(edge.a), &b = gpus_.at(edge.b);
      if (a.row == row && b.row == row) height = std::max(height, arc_depth(a.box, b.box) + 24);
    }
    return height;
  }

 public:
  double arc_depth(const Rect& a, const Rect& b) const {
    const double apart = std::abs(a.middle() - b.middle()) / column_;
    return std::min(22 + 20 * apart, 230.0);
  }

 private:
  const Scene& scene_;
  double gpu_height_;
  double column_ = 112, width_ = 0, height_ = 0;
  std::vector<PlacedRow> rows_;
  std::map<std::size_t, Spot> gpus_;
};

class Drawing {
 public:
  Drawing(const Topology& topology, const std::vector<model::Path>& paths)
      : topology_(topology),
        paths_(paths),
        scene_(scene_of(topology, paths, kMaxDrawn)),
        linked_(linked_gpus()),
        pci_(pci_devices()),
        layout_(scene_, gpu_lines()) {
    find_far_nodes();
    place_ends();
  }

  std::string text() {
    for (const auto& row : layout_.rows()) draw_node_boxes(row);
    draw_islands();
    for (const auto& row : layout_.rows()) draw_row(row);
    const double bottom = legend(layout_.height() + 4);
    title();
    return canvas_.document(layout_.width(), bottom + 18, "GPU topology: " + topology_.source.name);
  }

 private:
  std::set<std::size_t> linked_gpus() const {
    std::set<std::size_t> out;
    for (const auto& island : scene_.islands) out.insert(island.gpus.begin(), island.gpus.end());
    return out;
  }

  std::map<std::string, const model::PciDevice*> pci_devices() const {
    std::map<std::string, const model::PciDevice*> out;
    for (const auto& device : topology_.pci) out.emplace(device.id, &device);
    return out;
  }

  // --- title and legend ---

  void title() {
    const double room = layout_.width() - 2 * kMargin;
    const auto& given = topology_.source.name;
    const std::string name = given.empty() ? "GPU topology" : given.substr(given.find_last_of('/') + 1);
    canvas_.text(kMargin, 38, SvgCanvas::fit(name, room, 20), {20, kInk, "start", true, false});
    canvas_.text(kMargin, 60, SvgCanvas::fit(subtitle(), room, 12.5), {12.5, kQuiet, "start", false, false});
  }

  static std::string plural(std::size_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  }

  std::string subtitle() const {
    std::string out = plural(topology_.gpus.size(), "GPU") + ", " + plural(topology_.nics.size(), "NIC");
    const auto shape = model::shape_of(topology_, paths_);
    out += shape.name == "none" || shape.name == "unknown" ? "; no NVLink shown" : "; " + shape.name;
    if (scene_.gpus < topology_.gpus.size() || scene_.nics < topology_.nics.size())
      out += fmt::format("; drawn: {} and {}", plural(scene_.gpus, "GPU"), plural(scene_.nics, "NIC"));
    if (!topology_.source.complete) out += "; the input is incomplete";
    if (!topology_.warnings.empty()) out += "; " + plural(topology_.warnings.size(), "warning");
    return out;
  }

  // A class that occurs, with the best rate that is expected of it.
  std::map<PathType, std::optional<double>> classes() const {
    std::map<PathType, std::optional<double>> out;
    for (const auto& path : paths_) {
      if (!path.type) continue;
      auto& rate = out[*path.type];
      if (path.bandwidth && (!rate || *rate < path.bandwidth->value)) rate = path.bandwidth->value;
    }
    return out;
  }

  double legend(double y) {
    double x = kMargin;
    for (const auto& [type, rate] : classes()) {
      std::string said(type == PathType::nvl ? "NVLink and its number of links" : meaning_of(type));
      if (rate) said += fmt::format(", {:.0f} GB/s", *rate);
      const double width = 56 + SvgCanvas::text_width(said, 11.5) + 18;
      if (x + width > layout_.width() - kMargin && x > kMargin) x = kMargin, y += 24;
      tag(x + 22, y + 9, name_of(type), type);
      canvas_.text(x + 50, y + 13, said, {11.5, kQuiet, "start", false, false});
      x += width;
    }
    return y + 20;
  }

  // A class in its colour.
  void tag(double middle, double y, std::string_view word, PathType type) {
    const double width = SvgCanvas::text_width(word, 10) + 12;
    canvas_.box({middle - width / 2, y - 8, width, 16}, {color_of(type), color_of(type), 0, 8, ""});
    canvas_.text(middle, y + 3.6, word, {10, "#ffffff", "middle", true, false});
  }

  // --- nodes ---

  static Rect cpu_bar(const PlacedNode& node) {
    return {node.box.x + kPadding, node.box.y + kPadding, node.box.width - 2 * kPadding, kCpuHeight};
  }

  void draw_node_boxes(const PlacedRow& row) {
    for (const auto& node : row.nodes) canvas_.box(node.box, {"#f0f4f8", "#c9d3de", 1.2, 12, ""});
    for (std::size_t i = 1; i < row.nodes.size(); ++i) draw_between(row.nodes[i - 1], row.nodes[i]);
  }

  // What lies between two neighbours: the link of two CPUs.
  void draw_between(const PlacedNode& left, const PlacedNode& right) {
    if (!far_.contains(std::minmax(left.node, right.node))) return;
    const double y = left.box.y + kPadding + kCpuHeight / 2;
    const double x1 = cpu_bar(left).right(), x2 = cpu_bar(right).x;
    for (const double shift : {-2.5, 2.5})
      canvas_.line(x1, y + shift, x2, y + shift, {color_of(PathType::sys), 1.8, ""});
    tag((x1 + x2) / 2, y, "SYS", PathType::sys);
  }

  void find_far_nodes() {
    std::map<std::string_view, const SceneNode*> node_of;
    for (const auto& node : scene_.nodes) {
      for (const auto& group : node.groups) {
        for (const auto i : group.gpus) node_of[topology_.gpus[i].id] = &node;
        for (const auto i : group.nics) node_of[topology_.nics[i].id] = &node;
      }
    }
    for (const auto& path : paths_) {
      const auto a = node_of.find(path.a), b = node_of.find(path.b);
      if (path.type != PathType::sys || a == node_of.end() || b == node_of.end()) continue;
      if (a->second != b->second && is_placed(*a->second) && is_placed(*b->second))
        far_.insert(std::minmax(a->second, b->second));
    }
  }

  void draw_row(const PlacedRow& row) {
    for (const auto& node : row.nodes) {
      for (const auto& group : node.groups) draw_group(node, group, row);
      draw_cpu(node);
    }
  }

  static bool is_placed(const SceneNode& node) { return !node.numa.empty() || !node.cpus.empty(); }

  static std::pair<std::string, std::string> node_words(const SceneNode& node) {
    if (!is_placed(node)) return {"Place unknown", "the input does not tell the NUMA node"};
    const std::string cpus = "CPUs " + node.cpus;
    if (node.numa.empty()) return {cpus, "number of the NUMA node unknown"};
    return {fmt::format("NUMA {}", fmt::join(node.numa, ", ")), node.cpus.empty() ? "" : cpus};
  }

  void draw_cpu(const PlacedNode& placed) {
    const Rect bar = cpu_bar(placed);
    const auto& node = *placed.node;
    auto [name, below] = node_words(node);
    canvas_.begin_group(name);
    canvas_.box(bar, {"#d9e2ec", "#9fb3c8", 1.2, 7, is_placed(node) ? "" : "5 4"});
    if (placed.continued) name += " (continued)";
    const double room = bar.width - (node.inside ? 76 : 24);
    canvas_.text(bar.x + 12, bar.y + 19, SvgCanvas::fit(name, room, 13.5),
                 {13.5, kInk, "start", true, false});
    canvas_.text(bar.x + 12, bar.y + 36, SvgCanvas::fit(below, room, 11),
                 {11, kQuiet, "start", false, false});
    if (node.inside) tag(bar.right() - 32, bar.y + kCpuHeight / 2, name_of(*node.inside), *node.inside);
    canvas_.end_group();
  }

  // --- groups ---

  void draw_group(const PlacedNode& node, const PlacedGroup& placed, const PlacedRow& row) {
    const auto& group = *placed.group;
    const double cpu = cpu_bar(node).bottom();
    const Rect bar{placed.x + 2, cpu + 22, placed.width - 4, kSwitchHeight};
    const double from = group.switched ? bar.bottom() : cpu;
    wire_ = {kWire, 1.8, group.switched || is_placed(*node.node) ? "" : "3 4"};
    if (group.switched) canvas_.line(bar.middle(), cpu, bar.middle(), bar.y, {kWire, 2.4, ""});
    for (std::size_t i = 0; i < group.gpus.size(); ++i) {
      const double x = placed.x + static_cast<double>(i) * layout_.column() + 14;
      canvas_.line(x, from, x, row.gpu_y, wire_);
    }
    draw_chips(placed, from, cpu + 22 + kSwitchHeight + 12);
    if (group.switched) draw_switch(bar, group);
    for (const auto gpu : group.gpus) draw_gpu(gpu);
  }

  void draw_switch(const Rect& bar, const SceneGroup& group) {
    const auto color = group.type ? color_of(*group.type) : kWire;
    canvas_.begin_group("PCIe switch " + group.bridge);
    canvas_.box(bar, {"#ffffff", color, 1.6, 5, ""});
    const double room = bar.width - (group.type ? 52 : 16);
    for (const auto& label :
         {"PCIe switch " + group.bridge, std::string("PCIe switch"), std::string("switch")}) {
      if (SvgCanvas::text_width(label, 10.5) > room) continue;
      canvas_.text(bar.x + 9, bar.y + 16, label, {10.5, kInk, "start", false, false});
      break;
    }
    if (group.type) tag(bar.right() - 24, bar.y + kSwitchHeight / 2, name_of(*group.type), *group.type);
    canvas_.end_group();
  }

  // NICs hang right of the wire of their column, several below each other.
  void draw_chips(const PlacedGroup& placed, double from, double y) {
    const auto& nics = placed.group->nics;
    std::vector<double> ends(placed.columns, 0);
    const auto top_of = [&](std::size_t i) {
      const std::size_t row = i / placed.columns;
      return y + static_cast<double>(row) * (kChipHeight + kChipGap);
    };
    for (std::size_t i = 0; i < nics.size(); ++i) ends[i % placed.columns] = top_of(i) + kChipHeight / 2;
    for (std::size_t column = 0; column < placed.columns; ++column) {
      const double x = placed.x + static_cast<double>(column) * layout_.column() + 14;
      if (column >= placed.group->gpus.size() && ends[column] > 0)
        canvas_.line(x, from, x, ends[column], wire_);
    }
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const double x = placed.x + static_cast<double>(i % placed.columns) * layout_.column();
      const double top = top_of(i);
      canvas_.line(x + 14, top + kChipHeight / 2, x + 24, top + kChipHeight / 2, {kWire, 1.8, ""});
      draw_nic(nics[i], {x + 24, top, layout_.column() - 30, kChipHeight});
    }
  }

  void draw_nic(std::size_t index, const Rect& box) {
    const auto& nic = topology_.nics[index];
    std::string first = nic.id;
    if (nic.rate) first += fmt::format(" {:.0f}G", nic.rate->value);
    canvas_.begin_group(fmt::format("{} {} {} {}", nic.id, nic.name.value_or(""), nic.bdf.value_or(""),
                                    nic.link_layer.value_or("")));
    canvas_.box(box, {"#fff6e0", "#d39a2d", 1.2, 4, nic.is_virtual ? "4 3" : ""});
    const double room = box.width - 10;
    const std::string label = label_of(nic);
    canvas_.text(box.x + 6, box.y + (label.empty() ? 20 : 13.5), SvgCanvas::fit(first, room, 10),
                 {10, kInk, "start", true, false});
    canvas_.text(box.x + 6, box.y + 26, SvgCanvas::fit(label, room, 9.5),
                 {9.5, kQuiet, "start", false, false});
    canvas_.end_group();
  }

  const model::PciDevice* pci_of(const model::Gpu& gpu) const {
    const auto found = pci_.find(gpu.pci.empty() ? gpu.bdf.value_or("") : gpu.pci);
    return found == pci_.end() ? nullptr : found->second;
  }

  struct GpuLine {
    std::string text;
    std::string_view color = kQuiet;
  };

  // The small text of a GPU: its name or address, then what is wrong with it or its PCI link.
  std::vector<GpuLine> lines_of(std::size_t index) const {
    const auto& gpu = topology_.gpus[index];
    const auto* pci = pci_of(gpu);
    std::vector<GpuLine> out;
    out.push_back({gpu.name ? short_name(*gpu.name) : gpu.bdf.value_or("")});
    if (pci != nullptr && is_narrow(*pci))
      out.push_back({fmt::format("x{} of x{}", *pci->current.width, *pci->capable.width), kBad});
    else if (!linked_.empty() && !linked_.contains(index))
      out.push_back({"no NVLink", kBad});
    else if (pci != nullptr)
      out.push_back({link_text(pci->current)});
    std::erase_if(out, [](const GpuLine& line) { return line.text.empty(); });
    return out;
  }

  int gpu_lines() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < scene_.gpus; ++i) most = std::max(most, lines_of(i).size());
    return static_cast<int>(most);
  }

  void draw_gpu(std::size_t index) {
    const auto& gpu = topology_.gpus[index];
    const Rect box = layout_.gpus().at(index).box;
    const bool apart = !linked_.empty() && !linked_.contains(index);
    canvas_.begin_group(fmt::format("{} {} {}", gpu.id, gpu.name.value_or(""), gpu.bdf.value_or("")));
    canvas_.box(box, {"#e9f5e3", "#5a9a3c", 1.6, 7, apart ? "5 4" : ""});
    double y = box.y + 23;
    canvas_.text(box.middle(), y, gpu.id, {15, kInk, "middle", true, false});
    for (const auto& line : lines_of(index)) {
      y += 15;
      canvas_.text(box.middle(), y, SvgCanvas::fit(line.text, box.width - 6, 10),
                   {10, line.color, "middle", line.color == kBad, false});
    }
    canvas_.end_group();
  }

  // --- NVLink ---

  void draw_islands() {
    for (const auto& island : scene_.islands) {
      if (island.hub) draw_hub(island);
    }
    auto edges = scene_.edges;
    const auto apart = [&](const SceneEdge& e) {
      return std::abs(layout_.gpus().at(e.a).box.x - layout_.gpus().at(e.b).box.x);
    };
    std::ranges::stable_sort(edges, std::greater{}, apart);
    for (const auto& edge : edges) draw_edge(edge);
    for (const auto& edge : edges) label_edge(edge);
  }

  PathType type_of(const SceneIsland& island) const {
    const bool xgmi = std::ranges::any_of(island.gpus, [&](std::size_t i) {
      return std::ranges::any_of(topology_.gpus[i].links, &model::NvLinkGroup::xgmi);
    });
    return xgmi ? PathType::xgmi : PathType::nvl;
  }

  static std::string bar_label(const SceneIsland& island, PathType type) {
    const auto [least, most] = std::ranges::minmax(island.links);
    const std::string count = least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
    if (most == 0) return island.label;
    if (island.label == "NVSwitch") return fmt::format("NVSwitch: {} links per GPU", count);
    return fmt::format("{} {}: {} link{} per pair", type == PathType::xgmi ? "xGMI" : "NVLink", island.label,
                       count, most == 1 ? "" : "s");
  }

  void draw_hub(const SceneIsland& island) {
    const auto type = type_of(island);
    const auto color = color_of(type);
    std::map<std::size_t, std::pair<double, double>> spans;  // row -> left, right
    for (const auto gpu : island.gpus) {
      const auto& spot = layout_.gpus().at(gpu);
      const auto [at, added] = spans.emplace(spot.row, std::pair{spot.box.x, spot.box.right()});
      if (!added)
        at->second = {std::min(at->second.first, spot.box.x), std::max(at->second.second, spot.box.right())};
    }
    const auto [least, most] = std::ranges::minmax(island.links);
    for (std::size_t i = 0; i < island.gpus.size(); ++i)
      draw_spoke(layout_.gpus().at(island.gpus[i]), island.links[i], least != most, color);
    for (const auto& [row, span] : spans) {
      const Rect bar{span.first, bar_y(row), span.second - span.first, 30};
      canvas_.box(bar, {color, "#2f6b1f", 0, 8, ""});
      canvas_.text(bar.middle(), bar.y + 20, SvgCanvas::fit(bar_label(island, type), bar.width - 10, 13),
                   {13, "#ffffff", "middle", true, false});
    }
    if (spans.size() > 1) {
      const double x = kMargin / 2;
      canvas_.line(x, bar_y(spans.begin()->first) + 15, x, bar_y(spans.rbegin()->first) + 15, {color, 5, ""});
      for (const auto& [row, span] : spans)
        canvas_.line(x, bar_y(row) + 15, span.first, bar_y(row) + 15, {color, 5, ""});
    }
  }

  double bar_y(std::size_t row) const { return layout_.rows()[row].bottom + 44; }

  void draw_spoke(const Layout::Spot& spot, int links, bool labelled, std::string_view color) {
    const double x = spot.box.middle(), y = bar_y(spot.row);
    canvas_.line(x, spot.box.bottom(), x, y, {color, 4, ""});
    if (labelled && links > 0)
      canvas_.text(x, y - 15, std::to_string(links), {12, color, "middle", true, true});
  }

  // Bundles of one link are drawn lighter than those of several.
  static LineStyle edge_style(const SceneEdge& edge) {
    static constexpr std::array<std::string_view, 4> kGreens{"#8cc152", "#3f8f29", "#1e6b3a", "#0f4c2a"};
    const auto shade = static_cast<std::size_t>(std::clamp(edge.links, 1, 4) - 1);
    const double width = 1.6 + 0.8 * std::clamp(edge.links, 1, 5);
    return {edge.type == PathType::xgmi ? color_of(PathType::xgmi) : kGreens[shade], width,
            edge.links == 0 ? "6 4" : ""};
  }

  // Arcs leave a GPU side by side: the nearest neighbours outermost, so that arcs nest instead of crossing.
  void place_ends() {
    std::map<std::size_t, std::vector<std::size_t>> peers;
    for (const auto& edge : scene_.edges) {
      peers[edge.a].push_back(edge.b);
      peers[edge.b].push_back(edge.a);
    }
    for (auto& [gpu, all] : peers) {
      const Rect& own = layout_.gpus().at(gpu).box;
      const auto turn = [&](std::size_t peer) {
        const double way = layout_.gpus().at(peer).box.x - own.x;
        return way < 0 ? -1 / (1 - way) : 1 / (1 + way);
      };
      std::ranges::sort(all, {}, turn);
      const double step = (own.width - 20) / static_cast<double>(all.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        ends_[{gpu, all[i]}] = own.x + 10 + step * (static_cast<double>(i) + 0.5);
    }
  }

  std::pair<double, double> ends_of(const SceneEdge& edge) const {
    return std::minmax(ends_.at({edge.a, edge.b}), ends_.at({edge.b, edge.a}));
  }

  void draw_edge(const SceneEdge& edge) {
    const auto &a = layout_.gpus().at(edge.a), &b = layout_.gpus().at(edge.b);
    if (a.row != b.row) {
      canvas_.line(a.box.middle(), a.box.bottom(), b.box.middle(), b.box.y, edge_style(edge));
      return;
    }
    const auto [x1, x2] = ends_of(edge);
    canvas_.arc(x1, x2, a.box.bottom(), kPadding + layout_.arc_depth(a.box, b.box), edge_style(edge));
  }

  void label_edge(const SceneEdge& edge) {
    const auto &a = layout_.gpus().at(edge.a), &b = layout_.gpus().at(edge.b);
    if (a.row != b.row || edge.links == 0) return;
    const auto [x1, x2] = ends_of(edge);
    const std::string word = fmt::format("{}{}", edge.type == PathType::xgmi ? "" : "NV", edge.links);
    canvas_.text((x1 + x2) / 2, a.box.bottom() + kPadding + layout_.arc_depth(a.box, b.box) + 4, word,
                 {11, edge_style(edge).stroke, "middle", true, true});
  }

  const Topology& topology_;
  const std::vector<model::Path>& paths_;
  Scene scene_;
  std::set<std::size_t> linked_;  // GPUs with an NVLink to another one
  std::map<std::string, const model::PciDevice*> pci_;
  Layout layout_;
  SvgCanvas canvas_;
  LineStyle wire_;                                               // of the group being drawn
  std::set<std::pair<const SceneNode*, const SceneNode*>> far_;  // nodes with a SYS path between them
  std::map<std::pair<std::size_t, std::size_t>, double>
      ends_;  // (GPU, peer) -> x where the arc leaves the GPU
};

}  // namespace

std::string topology_svg(const Topology& topology, const std::vector<model::Path>& paths) {
  return Drawing(topology, paths).text();
}

}  // namespace topotune::emit
