#include <map>
#include <nlohmann/json.hpp>

#include "discover/phases.h"
#include "discover/reading.h"
#include "parse/sysfs_proc.h"

namespace topotune::discover {

namespace {

using model::Fact;
using model::Machine;
using Text = std::optional<std::string>;

Text whole_line(std::string_view text) { return std::string(trim(text)); }

void take_driver(const host::Host& host, Machine& machine) {
  const std::string path = "/proc/driver/nvidia/version";
  const auto text = host.read(path);
  const auto version = text ? parse::parse_nvidia_version(*text) : std::nullopt;
  if (version) {
    // The loaded module's version; NVML's answer is the library's view of the same thing.
    machine.nvidia_driver = Fact<std::string>::of(version->driver, path);
    if (version->open_module) machine.nvidia_open_kernel_module = Fact<bool>::of(*version->open_module, path);
  } else if (!machine.nvidia_driver) {
    machine.nvidia_driver = Fact<std::string>::missing(text ? "unreadable text" : reason(text.error()), path);
  }
  if (!machine.nvidia_open_kernel_module.known() && !text)
    machine.nvidia_open_kernel_module = Fact<bool>::missing(reason(text.error()), path);
}

// Modules of which rules ask for the version, beside the names of all.
void take_modules(const host::Host& host, Machine& machine) {
  machine.modules = read_fact<std::map<std::string, std::string>>(host, "/proc/modules", [](std::string_view text) {
    std::map<std::string, std::string> out;
    for (auto& name : parse::parse_proc_modules(text)) out.emplace(std::move(name), "");
    return std::optional(out);
  });
  // A guest kernel may have everything built in and no /proc/modules: the module folders tell as well.
  const auto listed = host.list("/sys/module");
  if (!machine.modules && listed) {
    std::map<std::string, std::string> out;
    for (const auto& name : *listed) out.emplace(name, "");
    machine.modules = Fact<std::map<std::string, std::string>>::of(std::move(out), "/sys/module");
  }
  if (!machine.modules) return;
  for (auto& [name, version] : *machine.modules.value) {
    if (name.starts_with("nvidia") || name.starts_with("mlx") || name.starts_with("nv_peer") || name == "efa" || name.starts_with("ib_"))
      version = read_line(host, "/sys/module/" + name + "/version").value_or("");
  }
}

void take_peer_memory(const host::Host& host, Machine& machine) {
  machine.peermem = read_fact<std::string>(host, "/sys/module/nvidia_peermem/version", whole_line);
  if (!machine.peermem && machine.modules && machine.modules->contains("nvidia_peermem"))
    machine.peermem = Fact<std::string>::of("", machine.modules.source);
  const std::string folder = "/sys/kernel/mm/memory_peers";
  auto peers = host.list(folder);
  machine.memory_peers = peers ? Fact<std::vector<std::string>>::of(std::move(*peers), folder)
                               : Fact<std::vector<std::string>>::missing(reason(peers.error()), folder);
  machine.dmabuf = Fact<bool>::missing("not probed: registering GPU memory is bench gdr's business");
}

// Libraries on the search path of the loader, with the version that each one's own bytes or name tell.
void take_libraries(const host::Host& host, Machine& machine) {
  const auto text = host.probe("libraries");
  if (!text) {
    const auto why = reason(text.error());
    for (auto* fact : {&machine.nccl, &machine.cuda_runtime, &machine.ucx}) *fact = Fact<std::string>::missing(why, "libraries");
    machine.nccl_plugins = Fact<std::vector<std::string>>::missing(why, "libraries");
    return;
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  std::vector<std::string> plugins;
  const auto word = [](const nlohmann::json& entry, const char* key) {
    const auto at = entry.find(key);
    return at != entry.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
  };
  const std::map<std::string, Fact<std::string>*> versions = {
      {"nccl", &machine.nccl}, {"cudart", &machine.cuda_runtime}, {"ucp", &machine.ucx}};
  for (auto& [kind, fact] : versions) *fact = Fact<std::string>::missing("not found", "the loader's search path");
  if (json.is_object() && json.contains("libraries") && json["libraries"].is_array()) {
    for (const auto& entry : json["libraries"]) {
      if (!entry.is_object()) continue;
      const auto kind = word(entry, "kind"), path = word(entry, "path"), version = word(entry, "version");
      if (kind.find("plugin") != std::string::npos || kind.find("nccl-") == 0) plugins.push_back(path);
      const auto at = versions.find(kind);
      if (at != versions.end() && !version.empty() && !at->second->known()) *at->second = Fact<std::string>::of(version, path);
    }
  }
  machine.nccl_plugins = Fact<std::vector<std::string>>::of(std::move(plugins), "the loader's search path");
}

// "active", "inactive" or "not installed" of a systemd unit; `systemctl show` ends with 0 for unknown units too.
Fact<std::string> service(const host::Host& host, const std::string& unit) {
  const std::string argv[] = {"systemctl", "show", "-p", "LoadState", "-p", "ActiveState", unit};
  const auto text = host.run(argv);
  const std::string source = "systemctl show " + unit;
  if (!text) return Fact<std::string>::missing(reason(text.error()), source);
  if (text->find("LoadState=not-found") != std::string::npos) return Fact<std::string>::of("not installed", source);
  const auto at = text->find("ActiveState=");
  if (at == std::string::npos) return Fact<std::string>::missing("not told", source);
  const auto state = lines(std::string_view(*text).substr(at + 12)).front();
  return Fact<std::string>::of(state == "active" ? "active" : "inactive", source, std::string(state));
}

// Asked only where the answer matters: it starts a program.
void take_services(const host::Host& host, Machine& machine) {
  const bool nvidia = machine.nvidia_pci_gpus && !machine.nvidia_pci_gpus->empty();
  if (machine.container.value.value_or(false)) {
    machine.fabric_manager = Fact<std::string>::missing("a container does not see the host's services");
    machine.irqbalance = Fact<bool>::missing("a container does not see the host's services");
    return;
  }
  if (nvidia) machine.fabric_manager = service(host, "nvidia-fabricmanager.service");
  if (machine.ports.empty()) return;
  const auto state = service(host, "irqbalance.service");
  machine.irqbalance = state ? Fact<bool>::of(*state == "active", state.source) : Fact<bool>::missing(state.why, state.source);
}

}  // namespace

void discover_software(const host::Host& host, Machine& machine) {
  take_driver(host, machine);
  take_modules(host, machine);
  take_peer_memory(host, machine);
  take_libraries(host, machine);
  machine.kernel = read_fact<std::string>(host, "/proc/sys/kernel/osrelease", whole_line);
  machine.kernel_command_line = read_fact<std::string>(host, "/proc/cmdline", whole_line);
  machine.os = read_fact<std::string>(host, "/etc/os-release", parse::parse_pretty_name);
  machine.boot_id = read_fact<std::string>(host, "/proc/sys/kernel/random/boot_id", whole_line);
  machine.ofed = read_fact<std::string>(host, "/sys/module/mlx5_core/version", whole_line);
  const auto log = host.probe("kernel_log");
  machine.kernel_log = log ? Fact<std::vector<std::string>>::of(parse::device_faults(*log, 500), "kernel log")
                           : Fact<std::vector<std::string>>::missing(reason(log.error()), "kernel log");
  take_services(host, machine);
}

}  // namespace topotune::discover
