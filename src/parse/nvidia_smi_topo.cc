#include "parse/nvidia_smi_topo.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "parse/topo_block.h"
#include "parse/topo_nvlinks.h"
#include "parse/topo_rows.h"

namespace topotune::parse {
namespace {

using model::Topology;
using model::Warning;
using topo::Cell;
using topo::Kind;
using topo::Mark;

// "GPU5, GPU6 and 3 more"
std::string listing(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  const std::size_t shown = std::min(names.size(), kShown);
  std::string out =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return shown == names.size() ? out : out + fmt::format(" and {} more", names.size() - shown);
}

std::optional<int> number_behind(std::string_view name, std::string_view prefix) {
  return name.starts_with(prefix) ? parse_int<int>(name.substr(prefix.size())) : std::nullopt;
}

// Turns an arranged matrix into a Topology.
class Builder {
 public:
  Builder(const topo::Block& block, const topo::Table& table) : block_(block), table_(table) {}

  Topology run() {
    topology_.source.kind = model::SourceKind::nvidia_smi_topo;
    topology_.warnings = table_.warnings;
    add_devices();
    for (const auto& row : table_.rows) add_affinity(row);
    for (const auto& row : table_.rows) append(topology_.warnings, row.warnings);
    add_paths();
    add_numa_nodes();
    topo::add_nvlinks(topology_);
    judge_completeness();
    return std::move(topology_);
  }

 private:
  static void append(std::vector<Warning>& to, const std::vector<Warning>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  void warn(std::string code, std::string text, std::optional<int> line) {
    topology_.warnings.push_back({std::move(code), std::move(text), line});
  }

  // --- devices ---

  void add_devices() {
    place_.resize(table_.devices.size());
    for (std::size_t i = 0; i < table_.devices.size(); ++i) {
      if (table_.devices[i].kind == Kind::gpu) add_gpu(i);
    }
    for (std::size_t i = 0; i < table_.devices.size(); ++i) {
      if (table_.devices[i].kind == Kind::nic) add_nic(i);
    }
  }

  void add_gpu(std::size_t column) {
    const auto index = number_behind(table_.devices[column].name, "GPU");
    if (!index) return;
    model::Gpu gpu;
    gpu.id = fmt::format("GPU{}", *index);
    gpu.index = *index;
    use(column, gpu.id);
    gpu_at_[column] = topology_.gpus.size();
    topology_.gpus.push_back(std::move(gpu));
  }

  // Old drivers put the RDMA device's name in the header: such NICs are numbered in its order.
  void add_nic(std::size_t column) {
    const auto& name = table_.devices[column].name;
    if (name.empty()) return;
    const auto numbered = number_behind(name, "NIC");
    model::Nic nic;
    nic.index = numbered.value_or(next_nic_);
    next_nic_ = nic.index + 1;
    nic.id = fmt::format("NIC{}", nic.index);
    nic.rdma = true;  // nvidia-smi lists the devices of /sys/class/infiniband
    const auto legend = block_.nic_names.find(nic.index);
    if (!numbered)
      nic.name = name;
    else if (legend != block_.nic_names.end())
      nic.name = printable(legend->second);
    if (!ids_.insert(nic.id).second) return;
    use(column, nic.id);
    topology_.nics.push_back(std::move(nic));
  }

  void use(std::size_t column, const std::string& id) {
    place_[column] = used_.size();
    used_.push_back(column);
    used_ids_.push_back(id);
  }

  // --- affinity ---

  void add_affinity(const topo::Row& row) {
    const auto found = gpu_at_.find(row.device);
    if (found == gpu_at_.end()) return;
    auto& gpu = topology_.gpus[found->second];
    line_of_gpu_[gpu.id] = row.line;
    if (row.cpus) gpu.cpus = cpus_of(gpu.id, *row.cpus, row.line);
    if (row.numa) gpu.numa = numa_of(gpu.id, row);
    if (!row.cpus || topo::read_cell(*row.cpus).mark == Mark::unknown) not_printed_.insert(gpu.id);
    if (row.cut) not_printed_.erase(gpu.id);
  }

  std::optional<CpuSet> cpus_of(const std::string& gpu, std::string_view text, int line) {
    if (topo::read_cell(text).mark == Mark::unknown) return std::nullopt;
    const auto cpus = parse_cpu_list(text);
    if (!cpus || cpus->empty()) {
      const bool reversed = is_reversed(text);
      warn(reversed ? "reversed-range" : "unreadable-affinity",
           fmt::format("CPU affinity \"{}\" of {} {}; unknown", printable(text.substr(0, 64)), gpu,
                       reversed ? "has a range that ends before it begins" : "is not a list of CPUs"),
           line);
      return std::nullopt;
    }
    if (entries_of(text) > cpus->count())
      warn("duplicate-cpu",
           fmt::format("CPU affinity \"{}\" of {} names a CPU twice", text.substr(0, 64), gpu), line);
    return cpus;
  }

  static bool is_reversed(std::string_view text) {
    for (const auto part : split(text, ',')) {
      const auto dash = part.find('-');
      if (dash == std::string_view::npos) continue;
      const auto first = parse_int<long long>(part.substr(0, dash)),
                 last = parse_int<long long>(part.substr(dash + 1));
      if (first && last && *first > *last) return true;
    }
    return false;
  }

  // CPUs of a well-formed list, one named twice counted twice.
  static long long entries_of(std::string_view text) {
    long long count = 0;
    for (const auto part : split(text, ',')) {
      const auto dash = part.find('-');
      const auto first = parse_int<long long>(part.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : parse_int<long long>(part.substr(dash + 1));
      if (first && last) count += *last - *first + 1;
    }
    return count;
  }

  // A GPU that is a memory node of the system (Grace) lists its CPU's node and the nodes that the driver
  // keeps for memory of GPUs, which are numbered after the CPUs'.
  std::optional<int> numa_of(const std::string& gpu, const topo::Row& row) {
    const std::string_view text = *row.numa;
    if (topo::read_cell(text).mark == Mark::unknown || text == "-1") return std::nullopt;
    if (const auto node = parse_int<int>(text); node && *node < CpuSet::kMaxCpu) return node;
    const auto nodes = parse_cpu_list(text);
    const bool list = nodes && !nodes->empty();
    if (list && row.gpu_numa && parse_int<int>(*row.gpu_numa)) return nodes->to_vector().front();
    warn(list ? "numa-range" : "unreadable-affinity",
         fmt::format("NUMA affinity \"{}\" of {} {}; unknown", printable(text.substr(0, 64)), gpu,
                     list ? "names several nodes" : "is not a node"),
         row.line);
    return std::nullopt;
  }

  // --- NUMA nodes ---

  struct NodeCpus {
    CpuSet cpus;
    bool agreed = true;
    int line = 0;
  };

  void add_numa_nodes() {
    std::map<int, NodeCpus> nodes;
    for (const auto& gpu : topology_.gpus) {
      if (gpu.numa) collect(gpu, nodes);
    }
    warn_overlaps(nodes);
    for (const auto& [id, node] : nodes) {
      model::NumaNode out;
      out.id = id;
      if (node.agreed && !node.cpus.empty()) out.cpus = node.cpus;
      topology_.numa.push_back(std::move(out));
    }
    for (auto& gpu : topology_.gpus) take_node_cpus(gpu);
  }

  void collect(const model::Gpu& gpu, std::map<int, NodeCpus>& nodes) {
    auto& node = nodes[*gpu.numa];
    if (!gpu.cpus) return;
    if (node.cpus.empty()) {
      node.cpus = *gpu.cpus;
      node.line = line_of_gpu_[gpu.id];
    } else if (!(node.cpus == *gpu.cpus)) {
      node.agreed = false;
      node.cpus = node.cpus | *gpu.cpus;
    }
  }

  void warn_overlaps(const std::map<int, NodeCpus>& nodes) {
    CpuSet seen;
    for (const auto& [id, node] : nodes) {
      if (seen.intersects(node.cpus))
        warn("affinity-overlap",
             fmt::format("CPUs {} of NUMA node {} also stand under another node",
                         (seen & node.cpus).to_list(), id),
             node.line);
      seen = seen | node.cpus;
    }
  }

  // A GPU for which no CPU list was printed has its node's.
  void take_node_cpus(model::Gpu& gpu) {
    if (gpu.cpus || !gpu.numa || not_printed_.count(gpu.id) == 0) return;
    const auto node = std::ranges::find(topology_.numa, *gpu.numa, &model::NumaNode::id);
    if (node != topology_.numa.end()) gpu.cpus = node->cpus;
  }

  // --- paths ---

  static bool says(const Cell& cell) { return cell.mark == Mark::path || cell.mark == Mark::nvlink; }
  static std::optional<model::PathType> type_of(const Cell& cell) {
    if (cell.mark == Mark::nvlink) return model::PathType::nvl;
    return cell.mark == Mark::path ? std::optional(cell.type) : std::nullopt;
  }

  void add_paths() {
    std::vector<const topo::Row*> row_of(table_.devices.size());
    for (const auto& row : table_.rows) {
      row_of[row.device] = &row;
      warn_self(row);
    }
    static const Cell kNothing;
    const auto cell = [&](std::size_t a, std::size_t b) -> const Cell& {
      return row_of[a] ? row_of[a]->cells[b] : kNothing;
    };
    for (std::size_t i = 0; i < used_.size(); ++i) {
      for (std::size_t j = i + 1; j < used_.size(); ++j) {
        const int line = row_of[used_[j]] ? row_of[used_[j]]->line : 0;
        add_path(i, j, cell(used_[i], used_[j]), cell(used_[j], used_[i]), line);
      }
    }
    warn_contradictions();
  }

  void add_path(std::size_t i, std::size_t j, const Cell& one, const Cell& other, int line) {
    model::Path path;
    path.a = used_ids_[i];
    path.b = used_ids_[j];
    const Cell& known = says(one) ? one : other;
    path.type = type_of(known);
    if (known.mark == Mark::nvlink) path.nvlinks = known.links;
    const bool both = says(one) && says(other);
    const bool differ = both && (type_of(one) != type_of(other) || one.links != other.links);
    if (differ) {
      // A row shows its own GPU's links to the switch: the pair has the smaller number.
      const bool links = type_of(one) == model::PathType::nvl && type_of(one) == type_of(other);
      contradictions_.push_back(
          {fmt::format("{}-{} is {} in one row and {} in the other; {}", path.a, path.b, one.text, other.text,
                       links ? "the smaller number is taken" : "unknown"),
           line});
      path.nvlinks = links ? std::optional(std::min(one.links, other.links)) : std::nullopt;
      if (!links) path.type.reset();
    }
    if (!path.type) ++unknown_pairs_;
    if (!path.type && !differ) ++unstated_pairs_;
    topology_.stated.push_back(std::move(path));
  }

  void warn_self(const topo::Row& row) {
    const Cell& self = row.cells[row.device];
    if (self.mark == Mark::nvlink)
      warn("self-nvlink", fmt::format("{} has {} to itself", table_.devices[row.device].name, self.text),
           row.line);
  }

  // The first few by name, the others by number.
  void warn_contradictions() {
    constexpr std::size_t kShown = 8;
    for (std::size_t i = 0; i < std::min(kShown, contradictions_.size()); ++i)
      warn("contradiction", contradictions_[i].first, contradictions_[i].second);
    if (contradictions_.size() > kShown)
      warn("contradiction",
           fmt::format("{} more pairs differ between the halves of the matrix",
                       contradictions_.size() - kShown),
           std::nullopt);
  }

  // --- completeness ---

  void judge_completeness() {
    warn_header();
    warn_missing_rows();
    const bool whole_rows = std::ranges::all_of(table_.rows, &topo::Row::whole);
    const bool header = !block_.header.columns.empty() && block_.header.partial.empty();
    topology_.source.complete =
        header && whole_rows && missing_.empty() && table_.unnamed == 0 && unstated_pairs_ == 0;
    if (unstated_pairs_ > 0)
      warn("truncated",
           fmt::format("{} of {} pairs are not in the text", unstated_pairs_, topology_.stated.size()),
           std::nullopt);
  }

  void warn_header() {
    if (block_.header.columns.empty()) {
      const std::string unnamed =
          table_.unnamed > 0 ? fmt::format("; {} columns stay without a name", table_.unnamed) : "";
      warn("header-missing", "the header of the matrix is missing; devices follow from the rows" + unnamed,
           block_.line);
    } else if (!block_.header.partial.empty()) {
      warn("truncated", fmt::format("the header is cut off at \"{}\"", printable(block_.header.partial)),
           block_.line);
    }
  }

  void warn_missing_rows() {
    std::vector<bool> has_row(table_.devices.size());
    for (const auto& row : table_.rows) has_row[row.device] = true;
    for (const auto column : used_) {
      if (!has_row[column]) missing_.push_back(table_.devices[column].name);
    }
    if (missing_.empty()) return;
    const int line = table_.rows.empty() ? block_.line : table_.rows.back().line;
    warn("truncated", fmt::format("the matrix is cut off: no row for {}", listing(missing_)), line);
  }

  const topo::Block& block_;
  const topo::Table& table_;
  Topology topology_;
  std::vector<std::size_t> place_, used_;  // column -> device, device -> column
  std::vector<std::string> used_ids_;
  std::map<std::size_t, std::size_t> gpu_at_;  // column -> index in topology_.gpus
  std::set<std::string> ids_;
  std::set<std::string> not_printed_;  // GPUs whose row has no CPU list
  std::map<std::string, int> line_of_gpu_;
  int next_nic_ = 0;
  std::vector<std::pair<std::string, int>> contradictions_;
  std::vector<std::string> missing_;
  std::size_t unknown_pairs_ = 0, unstated_pairs_ = 0;
};

// "\n" and "\t" written out, as in JSON and in repr(): real ones.
std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : ' ';
    if (next == 'n' || next == 't' || next == 'r') {
      out += next == 'n' ? '\n' : next == 't' ? '\t' : '\r';
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Search {
  topo::Found found;
  bool unescaped = false;
};

// An escaped matrix is looked for only where no real one is.
Search search(std::string_view text) {
  Search out{topo::find_matrix(text), false};
  if (out.found.matrix || text.find("\\n") == std::string_view::npos ||
      text.find("GPU0") == std::string_view::npos)
    return out;
  auto found = topo::find_matrix(unescape(text));
  if (found.matrix) out = {std::move(found), true};
  return out;
}

tl::unexpected<Error> refusal(const topo::Found& found) {
  auto error = [&]() -> tl::unexpected<Error> {
    if (found.too_many)
      return fail(Errc::too_large, "the matrix names {} devices; at most {} are read", *found.too_many,
                  topo::kMaxDevices);
    if (found.p2p_line)
      return fail_at(*found.p2p_line, "a matrix of peer access (nvidia-smi topo -p2p), not of the topology");
    if (found.refusal_line)
      return fail_at(*found.refusal_line, "no topology matrix: nvidia-smi said \"{}\"", found.refusal);
    return fail(Errc::unrecognised, "no topology matrix of nvidia-smi in this text");
  }();
  error.value().hint = "give the whole output of: nvidia-smi topo -m";
  return error;
}

}  // namespace

bool looks_like_nvidia_smi_topo(std::string_view text) {
  const auto found = search(text).found;
  constexpr std::size_t kShort = 4096;
  return found.matrix || (found.refusal_line && text.size() < kShort &&
                          text.find("nvidia-smi topo") != std::string_view::npos);
}

Result<model::Topology> parse_nvidia_smi_topo(std::string_view text) {
  const auto result = search(text);
  const bool headless = !result.found.matrix || result.found.matrix->header.columns.empty();
  if (!result.found.matrix || (headless && result.found.too_many)) return refusal(result.found);
  const auto& block = *result.found.matrix;
  const auto table = topo::arrange(block);
  auto topology = Builder(block, table).run();
  if (topology.gpus.empty()) return fail_at(block.line, "a matrix without a GPU");
  if (result.found.second_line)
    topology.warnings.push_back(
        {"more-matrices", "the text holds another matrix; only the first is read", result.found.second_line});
  if (result.unescaped) {
    for (auto& warning : topology.warnings) warning.line.reset();
  }
  return topology;
}

}  // namespace topotune::parse
