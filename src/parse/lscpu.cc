#include "parse/lscpu.h"

#include <algorithm>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

// "NUMA node0 CPU(s)" -> 0
std::optional<int> node_of(std::string_view key) {
  if (!key.starts_with("NUMA node") || !key.ends_with(" CPU(s)")) return std::nullopt;
  return parse_int<int>(key.substr(9, key.size() - 16));
}

bool has_word(std::string_view text, std::string_view word) {
  const auto all = words(text);
  return std::ranges::find(all, word) != all.end();
}

std::optional<std::string> text_of(std::string_view value) {
  return value.empty() || value == "-" ? std::nullopt : std::optional(std::string(value));
}

void take(const KeyValue& field, int line, bool whole, Lscpu& out) {
  const auto& [key, value] = field;
  if (key == "Architecture") out.architecture = text_of(value);
  if (key == "Vendor ID") out.vendor = text_of(value);
  if (key == "Model name") out.model_name = text_of(value);
  if (key == "CPU(s)") out.cpus = parse_int<int>(value);
  if (key == "Socket(s)") out.sockets = parse_int<int>(value);
  if (key == "NUMA node(s)") out.numa_nodes = parse_int<int>(value);
  if (key == "Thread(s) per core") out.threads_per_core = parse_int<int>(value);
  if (key == "Core(s) per socket") out.cores_per_socket = parse_int<int>(value);
  if (key == "CPU family") out.family = parse_int<int>(value);
  if (key == "Model") out.model = parse_int<int>(value);
  if (key == "On-line CPU(s) list" && whole) {
    out.online = parse_cpu_list(value);
    out.online_line = line;
  }
  if (key == "Hypervisor vendor") {
    out.hypervisor = text_of(value);
    out.hypervisor_line = line;
  }
  if (key == "Flags" && whole) {
    out.hypervisor_flag = has_word(value, "hypervisor");
    out.flags_line = line;
  }
  const auto node = node_of(key);
  const auto cpus = node && whole ? parse_cpu_list(value) : std::nullopt;
  if (cpus && *node >= 0 && *node < 4096 && out.nodes.size() < 4096)
    out.nodes.push_back({*node, *cpus, line});
}

// Columns of `lscpu -e` ("CPU NODE SOCKET CORE …") or `lscpu -p` ("# CPU,Core,Socket,Node,…").
std::vector<std::string> columns_of(std::string_view line) {
  std::vector<std::string> out;
  const bool commas = line.starts_with("# CPU,");
  if (!commas && !line.starts_with("CPU NODE") && !line.starts_with("CPU SOCKET")) return out;
  if (commas) {
    for (const auto word : split(line.substr(2), ',')) out.push_back(to_lower(word));
  } else {
    for (const auto word : words(line)) out.push_back(to_lower(word));
  }
  return out;
}

std::optional<LscpuCpu> row_of(std::string_view line, const std::vector<std::string>& columns) {
  const auto cells = line.find(',') != std::string_view::npos ? split(line, ',') : words(line);
  LscpuCpu out;
  bool cpu = false;
  for (std::size_t i = 0; i < cells.size() && i < columns.size(); ++i) {
    const auto value = parse_int<int>(cells[i]);
    if (!value || *value < 0 || *value >= CpuSet::kMaxCpu) continue;
    if (columns[i] == "cpu") {
      out.cpu = *value;
      cpu = true;
    }
    if (columns[i] == "node") out.node = value;
    if (columns[i] == "socket") out.socket = value;
    if (columns[i] == "core") out.core = value;
  }
  return cpu ? std::optional(out) : std::nullopt;
}

// "Architektur: x86_64", "架构： x86_64": lscpu begins with the architecture, whatever it calls it.
bool translated(std::string_view text) {
  text = trim(text);
  const auto line = trim(text.substr(0, std::min(text.find('\n'), std::size_t{200})));
  const bool field = line.find(':') != std::string_view::npos || line.find("：") != std::string_view::npos;
  return field && (line.ends_with(" x86_64") || line.ends_with(" aarch64")) &&
         text.find("CPU") != std::string_view::npos;
}

}  // namespace

bool looks_like_lscpu(std::string_view text) {
  if (text.find("CPU(s):") != std::string_view::npos || translated(text)) return true;
  for (LineReader reader(text); reader.next();) {
    if (!columns_of(trim(reader.line()).substr(0, 200)).empty()) return true;
  }
  return false;
}

Result<Lscpu> parse_lscpu(std::string_view text) {
  Lscpu out;
  std::vector<std::string> columns;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (auto found = columns_of(line.substr(0, 200)); !found.empty()) {
      // A second table counts by other columns ("-p" beside "-p=CPU,SOCKET"): the first one is taken.
      columns = out.table.empty() ? std::move(found) : std::vector<std::string>{};
    } else if (const auto row = columns.empty() ? std::nullopt : row_of(line.substr(0, 400), columns)) {
      if (out.table.size() >= kMaxRecords) return too_many("CPUs", reader.number());
      out.table.push_back(*row);
    } else if (const auto field = key_value(line)) {
      take(*field, reader.number(), reader.ended(), out);
    }
  }
  const bool told = out.architecture || out.online || out.sockets || !out.nodes.empty() || !out.table.empty();
  if (!told && translated(text)) {
    auto error = fail(Errc::unsupported, "lscpu in a language other than English");
    error.value().hint = "LC_ALL=C lscpu";
    return error;
  }
  if (!told && !out.cpus) return not_a("lscpu");
  return out;
}

}  // namespace topotune::parse
