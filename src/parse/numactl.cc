#include "parse/numactl.h"

#include <algorithm>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr int kMaxNode = 4096;

std::optional<CpuSet> cpus_of(std::string_view text) {
  CpuSet out;
  for (const auto word : words(text)) {
    const auto cpu = parse_int<int>(word);
    if (!cpu || *cpu < 0 || *cpu >= CpuSet::kMaxCpu) return std::nullopt;
    out.add(*cpu);
  }
  return out;
}

// "193129 MB" -> bytes; numactl's MB is 2^20.
std::optional<std::uint64_t> size_of(std::string_view text) {
  const auto parts = words(text);
  if (parts.size() != 2 || (parts[1] != "MB" && parts[1] != "kB" && parts[1] != "GB")) return std::nullopt;
  const auto value = parse_int<std::uint64_t>(parts[0]);
  if (!value || *value > (1ull << 33)) return std::nullopt;
  return *value << (parts[1] == "MB" ? 20 : parts[1] == "GB" ? 30 : 10);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Numactl read() {
    while (lines_.next()) take(trim(lines_.line()));
    for (auto& [id, node] : nodes_) out_.list.push_back(std::move(node));
    return std::move(out_);
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("available:")) return available(line.substr(10));
    if (line.starts_with("node distances:")) {
      in_distances_ = true;
      columns_.clear();
      out_.distances_line = lines_.number();
      return;
    }
    if (line.starts_with("physcpubind:")) {
      out_.allowed = cpus_of(line.substr(12));
      out_.allowed_line = lines_.number();
      return;
    }
    if (in_distances_) return distances(line);
    if (line.starts_with("node ")) node_line(line.substr(5));
  }

  void available(std::string_view text) {
    const auto parts = words(text);
    if (parts.size() < 2 || !parts[1].starts_with("node")) return;
    out_.nodes = parse_int<int>(parts[0]);
    out_.nodes_line = lines_.number();
    in_distances_ = false;
  }

  NumactlNode* node(int id) {
    if (id < 0 || id >= kMaxNode) return nullptr;
    auto& found = nodes_[id];
    found.node.id = id;
    if (found.line == 0) found.line = lines_.number();
    return &found;
  }

  // "0 cpus: 0 1 2", "0 size: 193129 MB", "0 free: …"
  void node_line(std::string_view text) {
    const auto field = key_value(text);
    if (!field) return;
    const auto key = words(field->key);
    const auto id = key.size() == 2 ? parse_int<int>(key[0]) : std::nullopt;
    if (!id || (key[1] != "cpus" && key[1] != "size" && key[1] != "free")) return;
    auto* found = node(*id);
    if (!found) return;
    // A list that ends where the text ends may have been longer.
    if (key[1] == "cpus" && lines_.ended()) found->node.cpus = cpus_of(field->value);
    if (key[1] == "size") found->node.memory_bytes = size_of(field->value);
    if (key[1] == "free") found->free_bytes = size_of(field->value);
  }

  // "node   0   1", then "  0:  10  32"
  void distances(std::string_view line) {
    if (line.starts_with("node ")) {
      for (const auto word : words(line.substr(5))) {
        const auto id = parse_int<int>(word);
        if (id && columns_.size() < kMaxNode) columns_.push_back(*id);
      }
      return;
    }
    const auto field = key_value(line);
    const auto id = field ? parse_int<int>(field->key) : std::nullopt;
    if (!id) {
      in_distances_ = line.empty();
      return;
    }
    auto* row = node(*id);
    const auto cells = words(field->value);
    for (std::size_t i = 0; row && i < cells.size() && i < columns_.size(); ++i) {
      const auto value = parse_int<int>(cells[i]);
      if (value && *value >= 0 && *value <= 255) row->node.distances[columns_[i]] = *value;
    }
  }

  LineReader lines_;
  Numactl out_;
  std::map<int, NumactlNode> nodes_;
  std::vector<int> columns_;
  bool in_distances_ = false;
};

}  // namespace

// "Knoten 0 CPUs: 0 1 2 3"
static bool translated(std::string_view text) {
  for (LineReader reader(text); reader.next();) {
    const auto line = words(trim(reader.line()).substr(0, 60));
    if (line.size() > 2 && line[0] != "node" && parse_int<int>(line[1]) && iequals(line[2], "cpus:"))
      return true;
  }
  return false;
}

bool looks_like_numactl(std::string_view text) {
  if (text.find("physcpubind:") != std::string_view::npos) return true;
  if (text.find("node distances:") != std::string_view::npos) return true;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line()).substr(0, 40);
    if (line.starts_with("available: ") && line.find(" node") != std::string_view::npos) return true;
    if (line.starts_with("node ") && line.find(" cpus:") != std::string_view::npos) return true;
  }
  return translated(text);
}

Result<Numactl> parse_numactl(std::string_view text) {
  auto out = Reader(text).read();
  const bool told = !out.list.empty() || out.nodes || out.allowed;
  if (!told && translated(text)) {
    auto error = fail(Errc::unsupported, "numactl --hardware in a language other than English");
    error.value().hint = "LC_ALL=C numactl --hardware";
    return error;
  }
  if (!told) return not_a("numactl --hardware");
  return out;
}

}  // namespace topotune::parse
