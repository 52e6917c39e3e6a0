#include "parse/sysfs_proc.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "parse/kernel_log.h"

namespace topotune::parse {

// "unlimited" or a number; false when it is neither.
static bool read_limit(std::string_view word, std::optional<std::uint64_t>& out) {
  if (word == "unlimited") return true;
  out = parse_int<std::uint64_t>(word);
  return out.has_value();
}

std::optional<model::MemoryLimit> parse_proc_limit(std::string_view text, std::string_view name) {
  for (const auto line : lines(text)) {
    if (!line.starts_with(name)) continue;
    const auto fields = words(line.substr(name.size()));
    model::MemoryLimit out;
    if (fields.size() < 2 || !read_limit(fields[0], out.soft) || !read_limit(fields[1], out.hard))
      return std::nullopt;
    return out;
  }
  return std::nullopt;
}

ProcStatus parse_proc_status(std::string_view text) {
  ProcStatus out;
  for (const auto line : lines(text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto key = line.substr(0, colon);
    const auto value = trim(line.substr(colon + 1));
    if (key == "Uid") {  // real, effective, saved, file system
      const auto ids = words(value);
      if (ids.size() >= 2) out.effective_uid = parse_int<int>(ids[1]);
    } else if (key == "CapEff") {
      out.cap_effective = parse_hex(value);
    } else if (key == "Cpus_allowed_list") {
      out.allowed_cpus = parse_cpu_list(value);
    }
  }
  return out;
}

static bool has_word(std::string_view text, std::string_view word) {
  const auto all = words(text);
  return std::ranges::find(all, word) != all.end();
}

CpuInfo parse_cpuinfo(std::string_view text) {
  CpuInfo out;
  for (const auto line : lines(text)) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) {
      if (trim(line).empty() && out.hypervisor) break;  // end of the first processor
      continue;
    }
    const auto key = trim(line.substr(0, colon));
    const auto value = trim(line.substr(colon + 1));
    if (key == "flags") out.hypervisor = has_word(value, "hypervisor");
    if (key == "vendor_id" && !value.empty()) out.vendor = std::string(value);
    if (key == "model name" && !value.empty()) out.model_name = std::string(value);
    if (key == "flags") break;
  }
  return out;
}

std::string hypervisor_name(std::string_view vendor) {
  constexpr std::array<std::pair<std::string_view, const char*>, 5> kNames{{{"KVMKVMKVM", "KVM"},
                                                                            {"Microsoft Hv", "Hyper-V"},
                                                                            {"VMwareVMware", "VMware"},
                                                                            {"XenVMMXenVMM", "Xen"},
                                                                            {"TCGTCGTCGTCG", "QEMU"}}};
  for (const auto& [text, name] : kNames)
    if (vendor == text) return name;
  return printable(vendor);
}

std::vector<std::string> parse_proc_modules(std::string_view text) {
  constexpr std::size_t kMaxModules = 10000;
  std::vector<std::string> out;
  for (const auto line : lines(text)) {
    const auto name = line.substr(0, line.find(' '));
    if (!name.empty() && name.size() <= 64 && out.size() < kMaxModules) out.emplace_back(name);
  }
  return out;
}

static std::string container_word(std::string_view text) {
  for (const auto word :
       {"kubepods", "docker", "containerd", "libpod", "crio", "lxc", "machine.slice/machine-"})
    if (text.find(word) != std::string_view::npos) return word;
  return {};
}

std::optional<CgroupPath> parse_proc_cgroup(std::string_view text) {
  std::optional<CgroupPath> out;
  for (const auto line : lines(text)) {  // "hierarchy:controllers:path"
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const auto path = line.substr(second + 1);
    if (!path.starts_with('/') || path.size() > 4096) continue;
    const bool cpuset = std::ranges::find(controllers, "cpuset") != controllers.end();
    const bool unified = line.starts_with("0::");
    if (!out && (cpuset || unified)) out = CgroupPath{unified, std::string(path), {}};
    if (out && cpuset) out->unified = false, out->path = path;  // hybrid: cpuset is still in version 1
  }
  if (out) out->container = container_word(text);
  return out;
}

std::optional<std::string> parse_root_file_system(std::string_view text) {
  std::optional<std::string> out;
  for (const auto line : lines(text)) {  // "36 35 98:0 /root /mount options - type source super"
    const auto fields = words(line);
    if (fields.size() < 7 || fields[4] != "/") continue;
    const auto dash = std::ranges::find(fields, "-");
    if (dash != fields.end() && dash + 1 != fields.end()) out = std::string(dash[1]);
  }
  return out;
}

std::optional<bool> parse_uid_map(std::string_view text) {
  const auto fields = words(text);
  if (fields.empty() || fields.size() % 3 != 0) return std::nullopt;
  return fields.size() == 3 && fields[0] == "0" && fields[1] == "0" && fields[2] == "4294967295";
}

std::optional<std::string> parse_pretty_name(std::string_view text) {
  for (auto line : lines(text)) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    line = trim(line.substr(12));
    const bool quoted =
        line.size() >= 2 && (line.front() == '"' || line.front() == '\'') && line.back() == line.front();
    if (quoted) line = line.substr(1, line.size() - 2);
    if (line.empty() || line.size() > 256) return std::nullopt;
    return std::string(line);
  }
  return std::nullopt;
}

// "580.159.04", "470.82", "525.60.13": two or three groups of digits, the first of three.
static bool is_driver_version(std::string_view word) {
  const auto groups = split(word, '.');
  if (groups.size() < 2 || groups.size() > 3 || groups[0].size() < 3) return false;
  return std::ranges::all_of(groups, [](std::string_view g) {
    return !g.empty() && g.size() <= 4 && std::ranges::all_of(g, is_digit);
  });
}

std::optional<std::string> find_driver_version(std::string_view text) {
  const auto all = words(text.substr(0, 4096));
  const auto found = std::ranges::find_if(all, is_driver_version);
  if (found == all.end()) return std::nullopt;
  return std::string(*found);
}

std::optional<NvidiaVersion> parse_nvidia_version(std::string_view text) {
  for (const auto line : lines(text)) {
    if (!line.starts_with("NVRM version:")) continue;
    auto version = find_driver_version(line);
    if (!version) return std::nullopt;
    return NvidiaVersion{std::move(*version), line.find("Open Kernel Module") != std::string_view::npos};
  }
  return std::nullopt;
}

std::optional<std::string> parse_nvidia_parameter(std::string_view text, std::string_view name) {
  for (const auto line : lines(text)) {
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    return printable(trim(line.substr(name.size() + 1)));
  }
  return std::nullopt;
}

std::optional<std::string> parse_bracketed(std::string_view text) {
  const auto open = text.find('[');
  const auto close = open == std::string_view::npos ? open : text.find(']', open);
  if (close == std::string_view::npos || close - open < 2 || close - open > 64) return std::nullopt;
  return std::string(text.substr(open + 1, close - open - 1));
}

std::optional<std::uint64_t> parse_node_memory(std::string_view text) {
  for (const auto line : lines(text)) {
    const auto fields = words(line);
    if (fields.size() < 5 || fields[2] != "MemTotal:" || fields[4] != "kB") continue;
    const auto kilobytes = parse_int<std::uint64_t>(fields[3]);
    if (!kilobytes || *kilobytes > 1ull << 50) return std::nullopt;
    return *kilobytes * 1024;
  }
  return std::nullopt;
}

std::optional<std::vector<int>> parse_distances(std::string_view text) {
  std::vector<int> out;
  for (const auto word : words(text)) {
    const auto distance = parse_int<int>(word);
    if (!distance || *distance < 1 || *distance > 255 || out.size() >= 4096) return std::nullopt;
    out.push_back(*distance);
  }
  if (out.empty()) return std::nullopt;
  return out;
}

// syslog(2) begins each line with its level: "<4>[    1.5] text".
static std::string_view without_level(std::string_view line) {
  const auto end = line.find('>');
  const bool level = line.starts_with('<') && end != std::string_view::npos && end <= 4;
  return level ? line.substr(end + 1) : line;
}

std::vector<std::string> device_faults(std::string_view log, std::size_t limit) {
  std::vector<std::string> out;
  for (const auto line : lines(log))
    if (const auto event = kernel_event_of(without_level(line))) out.push_back(printable(event->text));
  if (out.size() > limit) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(limit));
  return out;
}

std::optional<std::uint64_t> parse_throttled(std::string_view text) {
  for (const auto line : lines(text.substr(0, 4096))) {
    const auto parts = words(line);
    if (parts.size() == 2 && parts[0] == "nr_throttled") return parse_int<std::uint64_t>(parts[1]);
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_utc(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (kForm[i] == 'd' ? !is_digit(text[i]) : text[i] != kForm[i]) return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t size) {
    return *parse_int<int>(text.substr(at, size));
  };
  const int month = number(5, 2), day = number(8, 2);
  if (month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  // Days of the civil calendar: a year that begins in March has its leap day last.
  const std::int64_t year = number(0, 4) - (month <= 2 ? 1 : 0);
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719468;
  return days * 86400 + number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2);
}

}  // namespace topotune::parse
