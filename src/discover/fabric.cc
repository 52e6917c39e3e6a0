// What NVLink needs beside the links: the driver's switch for it, the fabric manager's version, IMEX between
// machines.
#include <algorithm>

#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/sysfs_proc.h"

namespace topotune::discover {
namespace {

using model::Fact;
using model::Machine;

bool has_nvswitch(const Machine& machine) {
  return std::ranges::any_of(machine.topology.switches,
                             [](const auto& one) { return one.kind == "nvswitch"; });
}

// GPUs that share their NVLink fabric with other machines: a cluster's UUID that is not zero.
bool spans_machines(const Machine& machine) {
  return std::ranges::any_of(machine.gpu_states, [](const auto& state) {
    const auto uuid = state.cluster_uuid.value_or("");
    return state.fabric_state == 3 && uuid.find_first_not_of("0-") != std::string::npos;
  });
}

Fact<std::string> service_state(const host::Host& host, const std::string& unit) {
  const std::string source = "systemctl show " + unit;
  const std::vector<std::string> argv{"systemctl", "show", "-p", "LoadState", "-p", "ActiveState", unit};
  const auto text = host.run(argv);
  if (!text) return Fact<std::string>::missing(reason(text.error()), source);
  if (text->find("LoadState=not-found") != std::string::npos)
    return Fact<std::string>::of("not installed", source);
  const bool active = text->find("ActiveState=active") != std::string::npos;
  return Fact<std::string>::of(active ? "active" : "inactive", source, printable(trim(*text)));
}

void take_fabric_manager_version(const host::Host& host, Machine& machine) {
  const std::vector<std::string> argv{"nv-fabricmanager", "--version"};
  const std::string source = "nv-fabricmanager --version";
  const auto text = host.run(argv);
  const auto version = text ? parse::find_driver_version(*text) : std::nullopt;
  machine.fabric_manager_version =
      version ? Fact<std::string>::of(*version, source, printable(trim(*text)))
              : Fact<std::string>::missing(text ? "no version in its text" : reason(text.error()), source);
}

void take_imex(const host::Host& host, Machine& machine) {
  const std::string folder = "/dev/nvidia-caps-imex-channels";
  const auto channels = host.list(folder);
  if (channels || channels.error().code == Errc::not_found)
    machine.imex_channel = Fact<bool>::of(channels && !channels->empty(), folder);
  else
    machine.imex_channel = Fact<bool>::missing(reason(channels.error()), folder);
  machine.imex_service = machine.container.value.value_or(false)
                             ? Fact<std::string>::missing("a container does not see the host's services")
                             : service_state(host, "nvidia-imex.service");
}

}  // namespace

void discover_fabric(const host::Host& host, Machine& machine) {
  if (!machine.nvidia_pci_gpus || machine.nvidia_pci_gpus->empty()) return;
  machine.nvlink_disabled =
      read_fact<bool>(host, "/proc/driver/nvidia/params", [](std::string_view text) -> std::optional<bool> {
        const auto value = parse::parse_nvidia_parameter(text, "NvLinkDisable");
        if (!value) return std::nullopt;
        return *value != "0";
      });
  machine.nvlink_disabled.text = "NvLinkDisable";
  if (has_nvswitch(machine)) take_fabric_manager_version(host, machine);
  if (spans_machines(machine)) take_imex(host, machine);
}

}  // namespace topotune::discover
