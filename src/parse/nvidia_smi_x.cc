#include "parse/nvidia_smi_x.h"

#include <algorithm>
#include <pugixml.hpp>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kRoot = "<nvidia_smi_log";

std::optional<std::string> text_of(const pugi::xml_node& node) { return smi::value_of(node.text().get()); }

std::optional<int> number_of(const pugi::xml_node& node) {
  return parse_int<int>(leading_digits(trim(node.text().get())));
}

// The first of two names that exists: names changed between versions of the format.
pugi::xml_node either(const pugi::xml_node& parent, const char* newer, const char* older) {
  const auto node = parent.child(newer);
  return node ? node : parent.child(older);
}

std::optional<double> generation(const pugi::xml_node& node) {
  const auto number = number_of(node);
  return number ? smi::gts_of_generation(*number) : std::nullopt;
}

std::optional<int> width(const pugi::xml_node& node) {
  const auto number = number_of(node);
  return number && *number > 0 && *number <= 32 ? number : std::nullopt;
}

void read_pci(const pugi::xml_node& pci, SmiGpu& gpu) {
  if (const auto bdf = parse_bdf(trim(pci.child("pci_bus_id").text().get()))) gpu.bdf = bdf->to_string();
  smi::set_pci_ids(pci.child("pci_device_id").text().get(), gpu.pci_vendor, gpu.pci_device);
  smi::set_pci_ids(pci.child("pci_sub_system_id").text().get(), gpu.subsystem_vendor, gpu.subsystem_device);
  const auto info = pci.child("pci_gpu_link_info");
  const auto gen = info.child("pcie_gen");
  gpu.capable.gts = generation(gen.child("max_link_gen"));
  if (!gpu.capable.gts) gpu.capable.gts = generation(gen.child("max_device_link_gen"));
  gpu.current.gts = generation(gen.child("current_link_gen"));
  gpu.capable.width = width(info.child("link_widths").child("max_link_width"));
  gpu.current.width = width(info.child("link_widths").child("current_link_width"));
  gpu.state.pcie_replays = parse_int<std::uint64_t>(trim(pci.child("replay_counter").text().get()));
}

void read_clocks(const pugi::xml_node& gpu_node, SmiGpu& gpu) {
  const auto reasons = either(gpu_node, "clocks_event_reasons", "clocks_throttle_reasons");
  for (const auto& node : reasons.children()) {
    const auto bit = smi::clock_event_bit(node.name());
    const std::string_view value = trim(node.text().get());
    if (!bit || (value != "Active" && value != "Not Active")) continue;
    gpu.state.clock_event_reasons =
        gpu.state.clock_event_reasons.value_or(0) | (value == "Active" ? *bit : 0);
  }
}

void read_fabric(const pugi::xml_node& fabric, SmiGpu& gpu) {
  if (!fabric) return;
  const std::string_view status = trim(fabric.child("status").text().get());
  gpu.state.fabric_state = smi::fabric_state(trim(fabric.child("state").text().get()));
  gpu.state.fabric_status = smi::fabric_status(status);
  if (!status.empty()) gpu.state.other["Fabric Status"] = std::string(status);
  gpu.state.clique = text_of(either(fabric, "cliqueId", "clique_id"));
  gpu.state.cluster_uuid = text_of(either(fabric, "clusterUuid", "cluster_uuid"));
  for (const auto& node : fabric.child("health").children())
    smi::add_fabric_health(node.name(), trim(node.text().get()), gpu.state.fabric_health_mask);
}

struct Other {
  const char* parent;  // nullptr: of the GPU itself
  const char* name;
  const char* key;  // as in the text form
};
constexpr Other kOthers[] = {
    {nullptr, "product_architecture", "Product Architecture"},
    {nullptr, "gpu_recovery_action", "GPU Recovery Action"},
    {nullptr, "gsp_firmware_version", "GSP Firmware Version"},
    {nullptr, "performance_state", "Performance State"},
    {nullptr, "gpu_part_number", "GPU Part Number"},
    {nullptr, "c2c_mode", "GPU C2C Mode"},
    {"gpu_reset_status", "reset_required", "Reset Required"},
    {"gpu_reset_status", "drain_and_reset_recommended", "Drain and Reset Recommended"},
    {"ecc_mode", "current_ecc", "ECC Mode Current"},
    {"ecc_mode", "pending_ecc", "ECC Mode Pending"},
    {"mig_mode", "pending_mig", "MIG Mode Pending"},
    {"remapped_rows", "remapped_row_pending", "Remapped Rows Pending"},
    {"remapped_rows", "remapped_row_failure", "Remapping Failure Occurred"},
    {"retired_pages", "pending_blacklist", "Pending Page Blacklist"},
};

void read_others(const pugi::xml_node& node, SmiGpu& gpu) {
  for (const auto& other : kOthers) {
    const auto parent = other.parent ? node.child(other.parent) : node;
    if (auto value = text_of(parent.child(other.name))) gpu.state.other[other.key] = std::move(*value);
  }
}

SmiGpu read_gpu(const pugi::xml_node& node) {
  SmiGpu gpu;
  if (const auto bdf = parse_bdf(trim(node.attribute("id").value()))) gpu.bdf = bdf->to_string();
  gpu.name = text_of(node.child("product_name"));
  gpu.uuid = text_of(node.child("uuid"));
  gpu.state.persistence = text_of(node.child("persistence_mode"));
  gpu.state.compute_mode = text_of(node.child("compute_mode"));
  gpu.state.vbios = text_of(node.child("vbios_version"));
  gpu.state.board_part = text_of(node.child("board_part_number"));
  const auto mig = text_of(node.child("mig_mode").child("current_mig"));
  if (mig && (*mig == "Enabled" || *mig == "Disabled")) gpu.mig = *mig == "Enabled";
  gpu.virtualization = text_of(node.child("gpu_virtualization_mode").child("virtualization_mode"));
  read_pci(node.child("pci"), gpu);
  read_clocks(node, gpu);
  read_fabric(node.child("fabric"), gpu);
  gpu.state.memory_bytes = smi::bytes_of(node.child("fb_memory_usage").child("total").text().get());
  gpu.state.bar1_bytes = smi::bytes_of(node.child("bar1_memory_usage").child("total").text().get());
  gpu.state.utilisation = number_of(node.child("utilization").child("gpu_util"));
  gpu.state.temperature_c = leading_number(trim(node.child("temperature").child("gpu_temp").text().get()));
  read_others(node, gpu);
  for (const auto& [parent, name] :
       {std::pair{"fb_memory_usage", "total"}, std::pair{"utilization", "gpu_util"},
        std::pair{"temperature", "gpu_temp"}}) {
    if (smi::says_lost(node.child(parent).child(name).text().get())) gpu.state.other["GPU is lost"] = "Yes";
  }
  return gpu;
}

// Line numbers of the growing offsets of nodes, in one pass over the text.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}
  int line_at(std::size_t offset) {
    offset = std::min(offset, text_.size());
    if (offset > at_) {
      line_ += static_cast<int>(std::ranges::count(text_.substr(at_, offset - at_), '\n'));
      at_ = offset;
    }
    return line_;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

bool looks_like_nvidia_smi_x(std::string_view text) { return text.find(kRoot) != std::string_view::npos; }

Result<NvidiaSmi> parse_nvidia_smi_x(std::string_view text) {
  const auto begin = text.find(kRoot);
  if (begin == std::string_view::npos) return not_a("nvidia-smi -q -x");
  const auto xml = text.substr(begin);
  pugi::xml_document document;
  const auto status = document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8);
  const auto root = document.child("nvidia_smi_log");
  if (!root) return fail_at(1, "nvidia-smi XML cannot be read: {}", status.description());
  NvidiaSmi out;
  out.truncated = !status && xml.find("</nvidia_smi_log>") == std::string_view::npos;
  out.driver = text_of(root.child("driver_version"));
  out.cuda = text_of(root.child("cuda_version"));
  out.attached = number_of(root.child("attached_gpus"));
  LineCounter counter(text);
  const auto line_of = [&](const pugi::xml_node& node) {
    return node.offset_debug() < 0 ? 1
                                   : counter.line_at(begin + static_cast<std::size_t>(node.offset_debug()));
  };
  out.driver_line = line_of(root.child("driver_version"));
  out.attached_line = line_of(root.child("attached_gpus"));
  for (const auto& node : root.children("gpu")) {
    if (out.gpus.size() >= kMaxRecords) return too_many("GPUs", line_of(node));
    out.gpus.push_back(read_gpu(node));
    out.gpus.back().line = line_of(node);
  }
  return out;
}

}  // namespace topotune::parse
