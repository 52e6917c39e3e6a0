#include "parse/kernel_log.h"

#include <algorithm>
#include <array>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::size_t kMaxLine = 2048;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "(PCI:0000:9b:00): 119" or "(0000:9b:00): 119": the address in brackets and the number behind them.
void read_code(std::string_view text, KernelEvent& event) {
  const auto end = text.find(')');
  if (!text.starts_with("(") || end == std::string_view::npos) return;
  auto address = text.substr(1, end - 1);
  if (address.starts_with("PCI:")) address.remove_prefix(4);
  if (const auto bdf = parse_bdf(address)) event.bdf = bdf->to_string();
  const auto rest = trim(text.substr(end + 1));
  if (rest.starts_with(":")) event.code = parse_int<int>(leading_digits(trim(rest.substr(1))));
}

// The first word that is a PCI address with a function.
std::optional<std::string> address_in(std::string_view text) {
  for (auto word : words(text.substr(0, 400))) {
    while (!word.empty() && (word.back() == ':' || word.back() == ',' || word.back() == '.'))
      word.remove_suffix(1);
    if (word.starts_with("PCI:")) word.remove_prefix(4);
    if (word.size() < 10) continue;
    if (const auto bdf = parse_bdf(word)) return bdf->to_string();
  }
  return std::nullopt;
}

std::optional<KernelEventKind> nvrm_kind(std::string_view line) {
  if (has(line, "fallen off the bus") || has(line, "RmInitAdapter failed")) return KernelEventKind::gpu_lost;
  if (has(line, "API mismatch")) return KernelEventKind::api_mismatch;
  if (has(line, "GPU at PCI:") || has(line, "loading NVIDIA") || has(line, "RPC history") ||
      has(line, "entry function"))
    return std::nullopt;
  for (const std::string_view bad :
       {"failed", "rror", "needs to be reset", "nvlink", "NVLink", "timeout", "Timeout"}) {
    if (has(line, bad)) return KernelEventKind::other;
  }
  return std::nullopt;
}

bool is_aer_error(std::string_view line) {
  if (has(line, "AER: enabled")) return false;
  return has(line, "PCIe Bus Error") || has(line, "AER: Corrected error") || has(line, "AER: Uncorrected") ||
         has(line, "AER: Multiple") || has(line, "AER: Correctable error") || has(line, "AER: Fatal error");
}

bool is_link_event(std::string_view line) {
  for (const std::string_view part :
       {"Link down", "Link up", "Link DOWN", "Link UP", "NIC Link is Down", "ost carrier", "Cable unplugged",
        "Cable error", "link status definitely down", "Port module event"}) {
    if (has(line, part)) return true;
  }
  return false;
}

std::optional<KernelEventKind> kind_of(std::string_view line) {
  if (has(line, "NVRM: Xid (")) return KernelEventKind::xid;
  if (has(line, "SXid (")) return KernelEventKind::sxid;
  if (has(line, "available PCIe bandwidth")) return KernelEventKind::pcie_bandwidth;
  if (has(line, "ib_register_peer_memory_client") || (has(line, "nvidia_peermem") && has(line, "rror")) ||
      (has(line, "nv_peer_mem") && has(line, "rror")))
    return KernelEventKind::peer_memory;
  if (is_aer_error(line)) return KernelEventKind::aer;
  if (has(line, "[DMA Read") || has(line, "[DMA Write") || has(line, "IO_PAGE_FAULT"))
    return KernelEventKind::iommu_fault;
  if (has(line, "NVRM:")) return nvrm_kind(line);
  if (has(line, "nvidia-nvswitch") && has(line, "rror")) return KernelEventKind::other;
  if (is_link_event(line)) return KernelEventKind::link;
  if (has(line, "mlx5_core") && (has(line, "rror") || has(line, "failed") || has(line, "timeout")))
    return KernelEventKind::other;
  return std::nullopt;
}

// "… 31.504 Gb/s available PCIe bandwidth, limited by … (capable of 252.048 Gb/s with …)"
void read_bandwidth(std::string_view line, KernelEvent& event) {
  const auto all = words(line);
  const auto at = std::ranges::find(all, "available");
  if (at - all.begin() >= 2) event.available_gbits = parse_double(*(at - 2));
  if (const auto capable = after(line, "capable of ")) event.capable_gbits = leading_number(*capable);
}

void read_device(std::string_view line, KernelEvent& event) {
  const auto at = line.find("nvidia-nvswitch");
  if (at == std::string_view::npos) return;
  const auto name = line.substr(at, line.find_first_of(": ", at) - at);
  event.device = std::string(name);
}

// Kinds that come by the thousand; an Xid after a flood of them still counts.
bool may_flood(KernelEventKind kind) {
  return kind == KernelEventKind::aer || kind == KernelEventKind::link ||
         kind == KernelEventKind::iommu_fault || kind == KernelEventKind::other;
}

constexpr std::size_t kMaxFlood = 10000;

// A line that begins another boot: journalctl's separator or the kernel's first line.
bool starts_boot(std::string_view line) {
  return line.starts_with("-- Boot ") || line.starts_with("-- Reboot --") ||
         (has(line, "Linux version ") && (has(line, "0.000000]") || has(line, "kernel: Linux version ")));
}

std::string_view after_last(std::string_view line, std::string_view key) {
  return trim(line.substr(line.find(key) + key.size()));
}

std::string first_word(std::string_view text) {
  return std::string(text.substr(0, text.find_first_of(" \t")));
}

// "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build …"
void read_driver(std::string_view line, int number, KernelLog& out) {
  for (const auto word : words(after_last(line, "NVRM: loading NVIDIA"))) {
    if (!is_digit(word.front()) || !has(word, ".")) continue;
    out.nvidia_driver = std::string(word);
    out.nvidia_driver_line = number;
    out.nvidia_open = has(line, "Open Kernel Module");
    return;
  }
}

void read_facts(std::string_view line, int number, KernelLog& out) {
  if (has(line, "Linux version ") && !out.kernel) {
    out.kernel = first_word(after_last(line, "Linux version "));
    out.kernel_line = number;
  } else if (has(line, "Kernel command line: ") && !has(line, "Unknown")) {
    out.command_line = std::string(after_last(line, "Kernel command line: "));
    out.command_line_line = number;
  } else if (has(line, "Hypervisor detected: ")) {
    out.hypervisor = std::string(after_last(line, "Hypervisor detected: "));
    out.hypervisor_line = number;
  } else if (has(line, "NVRM: loading NVIDIA")) {
    read_driver(line, number, out);
  } else if (has(line, "iommu: Default domain type: ")) {
    out.iommu_domain = first_word(after_last(line, "Default domain type: "));
    out.iommu_line = number;
  }
}

// "kern  :warn  : [   12.345678] …" of dmesg -x
std::string_view without_facility(std::string_view line) {
  for (const std::string_view name : {"kern  :", "user  :", "daemon:", "syslog:"}) {
    const auto at = line.find(": ", name.size());
    if (line.starts_with(name) && at != std::string_view::npos && at < 20) return trim(line.substr(at + 2));
  }
  return line;
}

// "<6>[   12.345678] …" of dmesg -r and pstore, "6,3964,206764307,-;…" of /dev/kmsg
std::optional<std::string_view> after_level(std::string_view line) {
  if (line.starts_with("<")) {
    const auto digits = leading_digits(line.substr(1));
    const bool level =
        !digits.empty() && digits.size() <= 3 && line.substr(digits.size() + 1).starts_with(">");
    return level ? std::optional(line.substr(digits.size() + 2)) : std::nullopt;
  }
  const auto head = line.substr(0, std::min<std::size_t>(line.find(';'), 80));
  if (head.size() == line.size() || std::ranges::count(head, ',') < 3) return std::nullopt;
  const auto fields = split(head, ',');
  const bool numbers = std::ranges::all_of(fields.begin(), fields.begin() + 3, [](std::string_view field) {
    return !field.empty() && leading_digits(field).size() == field.size();
  });
  return numbers ? std::optional(line.substr(head.size() + 1)) : std::nullopt;
}

constexpr std::string_view kMonths = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";

// "Feb 23 16:24:18 node prog[12]: …" of syslog and journalctl: neither for nor against a kernel log.
bool is_syslog_line(std::string_view line) {
  const auto parts = words(line.substr(0, 200));
  return parts.size() > 4 && parts[0].size() == 3 && has(kMonths, parts[0]) && is_digit(parts[1][0]) &&
         parts[2].size() == 8 && parts[2][2] == ':' && parts[2][5] == ':' && has(line.substr(15), ": ");
}

// "2026-01-05T10:00:00,123456+00:00 …"
bool has_iso_stamp(std::string_view line) {
  return line.size() > 26 && is_digit(line[0]) && line[4] == '-' && line[7] == '-' && line[10] == 'T' &&
         line[13] == ':' && line[19] == ',';
}

// "<6>[   12.345678] ", "[   12.345678] ", "[Sun Feb 23 16:24:18 2025] ", "Feb 23 16:24:18 node kernel: "
bool has_kernel_stamp(std::string_view line) {
  if (const auto text = after_level(line)) {
    if (!line.starts_with("<") || has_kernel_stamp(*text)) return true;
  }
  line = without_facility(line);
  if (has(line.substr(0, 100), " kernel: ") || has_iso_stamp(line)) return true;
  const auto end = line.find("] ");
  if (!line.starts_with("[") || end == std::string_view::npos || end > 40) return false;
  const auto stamp = trim(line.substr(1, end - 1));
  if (parse_double(stamp)) return stamp.find('.') != std::string_view::npos;
  return words(stamp).size() == 5 && stamp.find(':') != std::string_view::npos;
}

// "Feb" or "02", "23", "16:24:18"
std::optional<double> date_seconds(std::string_view month, std::string_view day, std::string_view time) {
  const auto name = month.size() == 3 ? kMonths.find(month) : std::string_view::npos;
  const auto number = name == std::string_view::npos ? parse_int<int>(month) : static_cast<int>(name / 4) + 1;
  const auto days = parse_int<int>(day);
  if (!number || !days || time.size() < 8 || time[2] != ':' || time[5] != ':') return std::nullopt;
  const auto h = parse_int<int>(time.substr(0, 2)), m = parse_int<int>(time.substr(3, 2)),
             s = parse_int<int>(time.substr(6, 2));
  if (!h || !m || !s) return std::nullopt;
  return ((*number * 31.0 + *days) * 24 + *h) * 3600 + *m * 60 + *s;
}

// "NVRM: The NVIDIA GPU 0000:b3:00.0": what happened to it stands in the lines below.
std::string gpu_named_above(std::string_view line) {
  return has(line, "NVRM: The NVIDIA GPU ") ? std::string(line) : std::string();
}

// "NVRM: fallen off the bus and is not responding to commands.", the third line of one message.
void join_lines(const std::string& above, KernelEvent& event) {
  if (event.kind != KernelEventKind::gpu_lost || event.bdf || above.empty()) return;
  const auto at = event.text.find("NVRM:");
  event.text = above + " " + std::string(trim(event.text.substr(at == std::string::npos ? 0 : at + 5)));
  event.bdf = address_in(above);
}

}  // namespace

std::optional<double> seconds_of_stamp(std::string_view line) {
  line = without_facility(trim(line));
  if (const auto text = after_level(line); text && line.starts_with("<")) line = trim(*text);
  if (line.starts_with("[")) {
    const auto stamp = trim(line.substr(1, std::min<std::size_t>(line.find(']'), 41) - 1));
    if (const auto since_boot = parse_double(stamp)) return since_boot;
    const auto parts = words(stamp);
    return parts.size() == 5 ? date_seconds(parts[1], parts[2], parts[3]) : std::nullopt;
  }
  if (line.size() > 19 && line[4] == '-' && line[7] == '-' && line[10] == 'T')
    return date_seconds(line.substr(5, 2), line.substr(8, 2), line.substr(11, 8));
  const auto parts = words(line.substr(0, 40));
  return parts.size() > 2 ? date_seconds(parts[0], parts[1], parts[2]) : std::nullopt;
}

std::optional<KernelEvent> kernel_event_of(std::string_view line) {
  line = trim(line).substr(0, kMaxLine);
  const auto kind = kind_of(line);
  if (!kind) return std::nullopt;
  KernelEvent out;
  out.kind = *kind;
  out.text = std::string(line);
  if (const auto rest = after(line, "Xid ")) read_code(*rest, out);
  if (!out.bdf) out.bdf = address_in(line);
  if (*kind == KernelEventKind::pcie_bandwidth) read_bandwidth(line, out);
  read_device(line, out);
  return out;
}

bool looks_like_kernel_log(std::string_view text) {
  if (has(text, "NVRM: ") || has(text, "SXid (") || has(text, "available PCIe bandwidth")) return true;
  int stamps = 0, others = 0;
  for (LineReader reader(text); reader.next() && stamps + others < 200;) {
    const auto line = trim(reader.line()).substr(0, 200);
    if (line.empty() || line.starts_with("-- ")) continue;
    // Lost carriers are told by systemd-networkd and NetworkManager.
    const bool kernels = has_kernel_stamp(line);
    if (!kernels && !is_syslog_line(line))
      ++others;
    else if (kernels || has(line, "ost carrier"))
      ++stamps;
  }
  return stamps > others;
}

Result<KernelLog> parse_kernel_log(std::string_view text) {
  KernelLog out;
  std::size_t flood = 0;
  std::string above;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line()).substr(0, kMaxLine);
    if (starts_boot(line)) {
      out.earlier_boots |= !out.events.empty();
      KernelLog next;
      next.earlier_boots = out.earlier_boots;
      out = std::move(next);
      flood = 0;
    }
    read_facts(line, reader.number(), out);
    if (!has(line, "NVRM:"))
      above.clear();
    else if (auto gpu = gpu_named_above(line); !gpu.empty())
      above = std::move(gpu);
    auto event = kernel_event_of(line);
    if (!event) continue;
    join_lines(above, *event);
    if (may_flood(event->kind) && ++flood > kMaxFlood) {
      ++out.left_out;
      continue;
    }
    if (out.events.size() >= kMaxRecords) return too_many("device faults", reader.number());
    event->line = reader.number();
    out.events.push_back(std::move(*event));
  }
  return out;
}

}  // namespace topotune::parse
