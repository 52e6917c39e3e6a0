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
       {"Link down", "Link up", "Link DOWN", "Link UP", "NIC Link is Down", "Lost carrier", "Cable unplugged",
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

// "2026-01-05T10:00:00,123456+00:00 …"
bool has_iso_stamp(std::string_view line) {
  return line.size() > 26 && is_digit(line[0]) && line[4] == '-' && line[7] == '-' && line[10] == 'T' &&
         line[13] == ':' && line[19] == ',';
}

// "[   12.345678] ", "[Sun Feb 23 16:24:18 2025] ", "Feb 23 16:24:18 node kernel: "
bool has_kernel_stamp(std::string_view line) {
  line = without_facility(line);
  if (has(line.substr(0, 100), " kernel: ") || has_iso_stamp(line)) return true;
  const auto end = line.find("] ");
  if (!line.starts_with("[") || end == std::string_view::npos || end > 40) return false;
  const auto stamp = trim(line.substr(1, end - 1));
  if (parse_double(stamp)) return stamp.find('.') != std::string_view::npos;
  return words(stamp).size() == 5 && stamp.find(':') != std::string_view::npos;
}

}  // namespace

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
    if (!line.empty()) ++(has_kernel_stamp(line) ? stamps : others);
  }
  return stamps > others;
}

Result<KernelLog> parse_kernel_log(std::string_view text) {
  KernelLog out;
  std::size_t flood = 0;
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
    auto event = kernel_event_of(line);
    if (!event) continue;
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
