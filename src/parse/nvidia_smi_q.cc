#include "parse/nvidia_smi_q.h"

#include <algorithm>
#include <array>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

using smi::value_of;

// A field of the text: its heading ("" any), its key, and what to do with the value.
struct Field {
  std::string_view heading, key;
  void (*set)(SmiGpu&, std::string_view);
};

std::optional<int> number_of(std::string_view text) { return parse_int<int>(leading_digits(text)); }

void set_text(std::optional<std::string>& to, std::string_view text) {
  if (auto value = value_of(text)) to = std::move(value);
}

void set_generation(std::optional<double>& to, std::string_view text) {
  if (const auto number = number_of(text)) to = smi::gts_of_generation(*number);
}

void set_width(std::optional<int>& to, std::string_view text) {
  const auto number = number_of(text);
  if (number && *number > 0 && *number <= 32) to = number;
}

void set_other(SmiGpu& gpu, std::string_view key, std::string_view text) {
  if (const auto value = value_of(text)) gpu.state.other[std::string(key)] = *value;
}

constexpr std::string_view kOtherKeys[] = {"Product Architecture",
                                           "GPU Recovery Action",
                                           "Reset Required",
                                           "Drain and Reset Recommended",
                                           "GPU C2C Mode",
                                           "GSP Firmware Version",
                                           "Remapping Failure Occurred",
                                           "Pending Page Blacklist",
                                           "Unrepairable Memory",
                                           "Channel Repair Pending",
                                           "TPC Repair Pending",
                                           "Performance State",
                                           "Module Id",
                                           "GPU Part Number"};

constexpr Field kFields[] = {
    {"", "Product Name", [](SmiGpu& g, std::string_view v) { set_text(g.name, v); }},
    {"", "GPU UUID", [](SmiGpu& g, std::string_view v) { set_text(g.uuid, v); }},
    {"", "Persistence Mode", [](SmiGpu& g, std::string_view v) { set_text(g.state.persistence, v); }},
    {"", "Compute Mode", [](SmiGpu& g, std::string_view v) { set_text(g.state.compute_mode, v); }},
    {"", "VBIOS Version", [](SmiGpu& g, std::string_view v) { set_text(g.state.vbios, v); }},
    {"", "Board Part Number", [](SmiGpu& g, std::string_view v) { set_text(g.state.board_part, v); }},
    {"", "Virtualization Mode", [](SmiGpu& g, std::string_view v) { set_text(g.virtualization, v); }},
    {"", "Virtualization mode", [](SmiGpu& g, std::string_view v) { set_text(g.virtualization, v); }},
    {"", "Bus Id",
     [](SmiGpu& g, std::string_view v) {
       if (const auto bdf = parse_bdf(v)) g.bdf = bdf->to_string();
     }},
    {"", "Device Id", [](SmiGpu& g, std::string_view v) { smi::set_pci_ids(v, g.pci_vendor, g.pci_device); }},
    {"", "Sub System Id",
     [](SmiGpu& g, std::string_view v) { smi::set_pci_ids(v, g.subsystem_vendor, g.subsystem_device); }},
    {"MIG Mode", "Current",
     [](SmiGpu& g, std::string_view v) {
       if (iequals(v, "Enabled") || iequals(v, "Disabled")) g.mig = iequals(v, "Enabled");
     }},
    {"MIG Mode", "Pending", [](SmiGpu& g, std::string_view v) { set_other(g, "MIG Mode Pending", v); }},
    {"ECC Mode", "Current", [](SmiGpu& g, std::string_view v) { set_other(g, "ECC Mode Current", v); }},
    {"ECC Mode", "Pending", [](SmiGpu& g, std::string_view v) { set_other(g, "ECC Mode Pending", v); }},
    {"Remapped Rows", "Pending",
     [](SmiGpu& g, std::string_view v) { set_other(g, "Remapped Rows Pending", v); }},
    {"PCIe Generation", "Max", [](SmiGpu& g, std::string_view v) { set_generation(g.capable.gts, v); }},
    {"PCIe Generation", "Current", [](SmiGpu& g, std::string_view v) { set_generation(g.current.gts, v); }},
    {"PCIe Generation", "Device Max",
     [](SmiGpu& g, std::string_view v) {
       if (!g.capable.gts) set_generation(g.capable.gts, v);
       set_other(g, "PCIe Generation Device Max", v);
     }},
    {"PCIe Generation", "Host Max",
     [](SmiGpu& g, std::string_view v) { set_other(g, "PCIe Generation Host Max", v); }},
    {"Link Width", "Max", [](SmiGpu& g, std::string_view v) { set_width(g.capable.width, v); }},
    {"Link Width", "Current", [](SmiGpu& g, std::string_view v) { set_width(g.current.width, v); }},
    {"", "Replays Since Reset",
     [](SmiGpu& g, std::string_view v) { g.state.pcie_replays = parse_int<std::uint64_t>(v); }},
    {"", "Replays since reset",
     [](SmiGpu& g, std::string_view v) { g.state.pcie_replays = parse_int<std::uint64_t>(v); }},
    {"FB Memory Usage", "Total",
     [](SmiGpu& g, std::string_view v) { g.state.memory_bytes = smi::bytes_of(v); }},
    {"BAR1 Memory Usage", "Total",
     [](SmiGpu& g, std::string_view v) { g.state.bar1_bytes = smi::bytes_of(v); }},
    {"Utilization", "Gpu", [](SmiGpu& g, std::string_view v) { g.state.utilisation = number_of(v); }},
    {"Utilization", "GPU", [](SmiGpu& g, std::string_view v) { g.state.utilisation = number_of(v); }},
    {"", "GPU Current Temp",
     [](SmiGpu& g, std::string_view v) { g.state.temperature_c = leading_number(v); }},
    {"Fabric", "State", [](SmiGpu& g, std::string_view v) { g.state.fabric_state = smi::fabric_state(v); }},
    {"Fabric", "Status",
     [](SmiGpu& g, std::string_view v) {
       g.state.fabric_status = smi::fabric_status(v);
       g.state.other["Fabric Status"] = std::string(v);
     }},
    {"Fabric", "CliqueId", [](SmiGpu& g, std::string_view v) { set_text(g.state.clique, v); }},
    {"Fabric", "Clique ID", [](SmiGpu& g, std::string_view v) { set_text(g.state.clique, v); }},
    {"Fabric", "ClusterUUID", [](SmiGpu& g, std::string_view v) { set_text(g.state.cluster_uuid, v); }},
    {"Fabric", "Cluster UUID", [](SmiGpu& g, std::string_view v) { set_text(g.state.cluster_uuid, v); }},
};

bool is_clock_reasons(std::string_view heading) {
  return heading == "Clocks Event Reasons" || heading == "Clocks Throttle Reasons";
}

void set_clock_reason(SmiGpu& gpu, std::string_view key, std::string_view value) {
  const auto bit = smi::clock_event_bit(key);
  if (!bit || (!iequals(value, "Active") && !iequals(value, "Not Active"))) return;
  const auto known = gpu.state.clock_event_reasons.value_or(0);
  gpu.state.clock_event_reasons = iequals(value, "Active") ? known | *bit : known;
}

// Keeps the open headings; fields of MIG devices and processes are of no interest.
class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Result<NvidiaSmi> read() {
    while (lines_.next()) {
      if (out_.gpus.size() > kMaxRecords) return too_many("GPUs", lines_.number());
      take(lines_.line());
    }
    out_.truncated = !lines_.ended() && !out_.gpus.empty();
    return std::move(out_);
  }

 private:
  struct Heading {
    int indent;
    std::string_view name;
  };

  void take(std::string_view line) {
    const auto text = trim(line);
    if (text.empty()) return;
    if (start_gpu(text, indent_of(line))) return;
    const auto field = field_of(text);
    if (!field) {
      open(indent_of(line), text);
      opened_ = !out_.gpus.empty() && !flat_;
    } else if (out_.gpus.empty()) {
      set_global(*field);
    } else {
      // A field right below its heading and not farther right: the runs of blanks are lost.
      if (opened_ && !headings_.empty() && indent_of(line) == headings_.back().indent) flat_ = true;
      opened_ = false;
      close(indent_of(line));
      set_field(*field);
      if (field->value.empty()) open(indent_of(line), field->key);
    }
  }

  // "GPU 00000000:83:00.0"
  bool start_gpu(std::string_view text, int indent) {
    if (!text.starts_with("GPU ")) return false;
    const auto bdf = parse_bdf(trim(text.substr(4)));
    if (!bdf) return false;
    SmiGpu gpu;
    gpu.line = lines_.number();
    gpu.bdf = bdf->to_string();
    out_.gpus.push_back(std::move(gpu));
    headings_.clear();
    gpu_indent_ = indent;
    return true;
  }

  // "Key        : Value"; a colon inside of a key or a value does not separate.
  static std::optional<KeyValue> field_of(std::string_view text) {
    if (const auto at = text.find(" : "); at != std::string_view::npos)
      return KeyValue{trim(text.substr(0, at)), trim(text.substr(at + 3))};
    if (text.ends_with(" :")) return KeyValue{trim(text.substr(0, text.size() - 2)), {}};
    const auto at = text.find(": ");
    if (at == std::string_view::npos || at == 0) return std::nullopt;
    return KeyValue{trim(text.substr(0, at)), trim(text.substr(at + 2))};
  }

  bool flat() const { return flat_; }

  void open(int indent, std::string_view name) {
    if (name.size() > 80) return;
    flat_ = !out_.gpus.empty() && indent <= gpu_indent_;
    close(indent);
    if (flat_) headings_.clear();
    if (headings_.size() < 16) headings_.push_back({indent, name});
  }

  void close(int indent) {
    if (flat_) return;
    while (!headings_.empty() && headings_.back().indent >= indent) headings_.pop_back();
  }

  bool below(std::string_view name) const {
    return std::ranges::any_of(headings_, [&](const Heading& h) { return h.name == name; });
  }

  void set_global(const KeyValue& field) {
    if (field.key == "Driver Version") {
      out_.driver = value_of(field.value);
      out_.driver_line = lines_.number();
    } else if (field.key == "CUDA Version") {
      out_.cuda = value_of(field.value);
    } else if (field.key == "Attached GPUs") {
      out_.attached = parse_int<int>(field.value);
      out_.attached_line = lines_.number();
    }
  }

  void set_field(const KeyValue& field) {
    if (below("MIG Device") || below("MIG Devices") || below("Processes")) return;
    auto& gpu = out_.gpus.back();
    if (smi::says_lost(field.value)) gpu.state.other["GPU is lost"] = "Yes";
    const auto heading = headings_.empty() ? std::string_view{} : headings_.back().name;
    if (std::ranges::any_of(headings_, [](const Heading& h) { return is_clock_reasons(h.name); }))
      return set_clock_reason(gpu, field.key, field.value);
    if (heading == "Health") {
      smi::add_fabric_health(field.key, field.value, gpu.state.fabric_health_mask);
      if (field.key == "Summary") set_other(gpu, "Fabric Health", field.value);
      return;
    }
    if (std::ranges::find(kOtherKeys, field.key) != std::end(kOtherKeys))
      set_other(gpu, field.key, field.value);
    for (const auto& known : kFields) {
      if (known.key != field.key || (!known.heading.empty() && known.heading != heading)) continue;
      known.set(gpu, field.value);
      gpu.lines.try_emplace(std::string(field.key), lines_.number());
      return;
    }
  }

  LineReader lines_;
  NvidiaSmi out_;
  std::vector<Heading> headings_;
  int gpu_indent_ = 0;
  bool flat_ = false;    // the indentation is lost: a heading holds until the next one
  bool opened_ = false;  // the last line was a heading
};

}  // namespace

bool looks_like_nvidia_smi_q(std::string_view text) {
  if (text.find("NVSMI LOG") != std::string_view::npos &&
      text.find("nvidia_smi_log") == std::string_view::npos)
    return true;
  if (text.find("Product Name") == std::string_view::npos &&
      text.find("GPU Link Info") == std::string_view::npos && text.find("Fabric") == std::string_view::npos &&
      text.find("MIG Mode") == std::string_view::npos)
    return false;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.starts_with("GPU ") && parse_bdf(trim(line.substr(4)))) return true;
  }
  return false;
}

Result<NvidiaSmi> parse_nvidia_smi_q(std::string_view text) {
  auto out = Reader(text).read();
  if (out && out->gpus.empty() && !out->driver && !out->attached) return not_a("nvidia-smi -q");
  return out;
}

}  // namespace topotune::parse
