#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/machine.h"

namespace topotune::parse {

// One GPU as `nvidia-smi` (-q, -q -x or the plain table) tells it. Unknown, "N/A" and errors are nullopt.
struct SmiGpu {
  int line = 0;              // of its heading
  std::optional<int> index;  // NVML index, where printed
  std::optional<std::string> bdf, uuid, name;
  std::optional<std::uint16_t> pci_vendor, pci_device, subsystem_vendor, subsystem_device;
  std::optional<bool> mig;                    // current mode
  model::PcieLink current, capable;           // capable: what GPU and slot can do together, where told
  std::optional<std::string> virtualization;  // "None", "Pass-Through", "VGPU"
  model::GpuState state;                      // `gpu` stays empty
  std::map<std::string, int> lines;           // field ("name", "fabric_state", ...) -> line; absent in XML
};

struct NvidiaSmi {
  std::optional<std::string> driver, cuda, nvml;
  std::optional<int> attached;       // "Attached GPUs"
  std::optional<std::string> error;  // "Failed to initialize NVML: Driver/library version mismatch"
  int driver_line = 0, attached_line = 0, error_line = 0;
  std::vector<SmiGpu> gpus;
  bool truncated = false;  // the text ends inside a GPU
};

// `nvidia-smi -q`, whole or any part of it (-d), of any driver since 418; also without its indentation.
bool looks_like_nvidia_smi_q(std::string_view text);
Result<NvidiaSmi> parse_nvidia_smi_q(std::string_view text);

// Shared with the XML and table forms.
namespace smi {
// GT/s of a PCIe generation, 1 to 6.
std::optional<double> gts_of_generation(int generation);
// "Completed" -> 3 (nvmlGpuFabricState_t); nothing for N/A.
std::optional<int> fabric_state(std::string_view text);
// "Success" -> 0 (nvmlReturn_t); 999 (unknown) for texts that are not in the list; nothing for N/A.
std::optional<int> fabric_status(std::string_view text);
// Bit of a clocks event (throttle) reason by its name in text or XML form, without case, blanks and
// underscores.
std::optional<std::uint64_t> clock_event_bit(std::string_view name);
// "GPU is lost" (NVML_ERROR_GPU_IS_LOST) in the place of a value.
bool says_lost(std::string_view text);
// "143771 MiB" -> bytes.
std::optional<std::uint64_t> bytes_of(std::string_view text);
// Nothing for "N/A", "[N/A]", "Not Supported", "ERR!", "Unknown Error" and the like.
std::optional<std::string> value_of(std::string_view text);
// One line of the Health block, folded into nvmlGpuFabricInfoV's mask. False: no such line.
bool add_fabric_health(std::string_view key, std::string_view value, std::optional<std::uint32_t>& mask);
// "0x233510DE" or "233510DE": device in the upper half, vendor in the lower.
void set_pci_ids(std::string_view text, std::optional<std::uint16_t>& vendor,
                 std::optional<std::uint16_t>& device);
}  // namespace smi

}  // namespace topotune::parse
