#include "discover/merge_system.h"

#include <algorithm>

#include "base/text.h"
#include "parse/fabric_manager_log.h"
#include "parse/kernel_log.h"
#include "parse/limits_conf.h"
#include "parse/line_reader.h"
#include "parse/lscpu.h"
#include "parse/lsmod.h"
#include "parse/numactl.h"
#include "parse/ulimit.h"
#include "parse/versions.h"

namespace topotune::discover {
namespace {

using Done = tl::expected<void, Error>;

// A kernel's own answer replaces the masks of a topology file.
void set_cpus(Merger& merger, model::NumaNode& node, const CpuSet& cpus, const std::string& source) {
  if (node.cpus && !(*node.cpus == cpus))
    merger.warn("contradiction", fmt::format("{}: NUMA node {} has CPUs {}, another text says {}", source,
                                             node.id, cpus.to_list(), node.cpus->to_list()));
  node.cpus = cpus;
}

void set_line(Merger& merger, model::Fact<std::string>& fact, const Piece& piece,
              const parse::LineValue& value, std::string_view what) {
  merger.set(fact, value.value, piece.at(value.line), what, value.text.substr(0, 300));
}

void set_limits(Merger& merger, const Piece& piece, const parse::Limits& limits, bool effective) {
  auto& machine = merger.machine;
  if (limits.memlock && (effective || !machine.memlock.known())) {
    machine.memlock = model::Fact<model::MemoryLimit>::of(
        limits.memlock->value, piece.at(limits.memlock->line), limits.memlock->text);
  }
  if (limits.nofile && (effective || !machine.nofile.known())) {
    const auto soft = limits.nofile->value.soft.value_or(UINT64_MAX);
    machine.nofile = model::Fact<std::uint64_t>::of(soft, piece.at(limits.nofile->line), limits.nofile->text);
  }
}

void add_log_line(Merger& merger, std::string text, std::string source) {
  auto& machine = merger.machine;
  machine.kernel_log.value->push_back(std::move(text));
  machine.kernel_log_sources.push_back(std::move(source));
}

void open_log(Merger& merger, const Piece& piece) {
  auto& log = merger.machine.kernel_log;
  if (!log.known()) log = model::Fact<std::vector<std::string>>::of({}, std::string(piece.name));
}

void set_boot_facts(Merger& merger, const Piece& piece, const parse::KernelLog& log) {
  auto& machine = merger.machine;
  if (log.kernel) merger.set(machine.kernel, *log.kernel, piece.at(log.kernel_line), "kernel release");
  if (log.command_line && !machine.kernel_command_line.known()) {
    machine.kernel_command_line =
        model::Fact<std::string>::of(*log.command_line, piece.at(log.command_line_line), *log.command_line);
  }
  if (log.hypervisor) {
    merger.set(machine.virtual_machine, true, piece.at(log.hypervisor_line), "virtual machine");
    if (!machine.hypervisor.known())
      machine.hypervisor = model::Fact<std::string>::of(*log.hypervisor, piece.at(log.hypervisor_line));
  }
  if (log.nvidia_driver)
    merger.set(machine.nvidia_driver, *log.nvidia_driver, piece.at(log.nvidia_driver_line),
               "NVIDIA driver version");
  if (log.nvidia_open)
    merger.set(machine.nvidia_open_kernel_module, *log.nvidia_open, piece.at(log.nvidia_driver_line),
               "kind of the NVIDIA kernel modules");
}

// The CPUs of each package, from `lscpu -e` or -p.
void set_packages(Merger& merger, const parse::Lscpu& lscpu) {
  auto& topology = merger.machine.topology;
  if (!topology.packages.empty()) return;
  std::map<int, CpuSet> packages;
  for (const auto& cpu : lscpu.table) {
    if (cpu.socket) packages[*cpu.socket].add(cpu.cpu);
  }
  for (auto& [id, cpus] : packages) topology.packages.push_back({id, std::move(cpus)});
}

void set_nodes(Merger& merger, const Piece& piece, const parse::Lscpu& lscpu) {
  std::map<int, CpuSet> table;
  for (const auto& cpu : lscpu.table) {
    if (cpu.node) table[*cpu.node].add(cpu.cpu);
  }
  for (const auto& [id, cpus] : table) {
    if (auto* node = merger.numa_node(id)) set_cpus(merger, *node, cpus, std::string(piece.name));
  }
  for (const auto& listed : lscpu.nodes) {
    if (auto* node = merger.numa_node(listed.id)) set_cpus(merger, *node, listed.cpus, piece.at(listed.line));
  }
}

void set_cpu_model(Merger& merger, const parse::Lscpu& lscpu) {
  auto& cpu = merger.machine.topology.cpu;
  if (cpu || !lscpu.architecture || !lscpu.vendor) return;
  cpu = model::CpuModel{*lscpu.architecture, *lscpu.vendor, lscpu.family, lscpu.model};
}

// lscpu's flags tell the hypervisor bit either way; without them only a named hypervisor tells something.
void set_hypervisor(Merger& merger, const Piece& piece, const parse::Lscpu& lscpu) {
  auto& machine = merger.machine;
  if (lscpu.hypervisor) {
    merger.set(machine.virtual_machine, true, piece.at(lscpu.hypervisor_line), "virtual machine",
               "Hypervisor vendor: " + *lscpu.hypervisor);
    if (!machine.hypervisor.known())
      machine.hypervisor = model::Fact<std::string>::of(*lscpu.hypervisor, piece.at(lscpu.hypervisor_line));
  } else if (lscpu.hypervisor_flag) {
    merger.set(machine.virtual_machine, *lscpu.hypervisor_flag, piece.at(lscpu.flags_line), "virtual machine",
               *lscpu.hypervisor_flag ? "Flags: … hypervisor …" : "Flags: no hypervisor");
  }
}

// ---- files of one value

std::string first_line(std::string_view text) {
  for (parse::LineReader reader(text); reader.next();) {
    if (!trim(reader.line()).empty()) return std::string(trim(reader.line()));
  }
  return {};
}

// "always [madvise] never" -> "madvise"
std::string bracketed(const std::string& line) {
  const auto begin = line.find('['), end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return line;
  return line.substr(begin + 1, end - begin - 1);
}

struct KernelFile {
  std::string_view path;
  void (*set)(model::Machine&, const std::string& line, const std::string& source);
};
constexpr KernelFile kKernelFiles[] = {
    {"/proc/sys/kernel/numa_balancing",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       if (const auto value = parse_int<int>(line))
         m.numa_balancing = model::Fact<int>::of(*value, source, line);
     }},
    {"/sys/kernel/mm/transparent_hugepage/enabled",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       m.thp = model::Fact<std::string>::of(bracketed(line), source, line);
     }},
    {"/sys/module/pcie_aspm/parameters/policy",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       m.aspm_policy = model::Fact<std::string>::of(bracketed(line), source, line);
     }},
    {"/proc/sys/kernel/random/boot_id",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       m.boot_id = model::Fact<std::string>::of(line, source);
     }},
    {"/sys/fs/cgroup/cpu.max",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       m.cpu_max = model::Fact<std::string>::of(line, source, "cpu.max " + line);
     }},
    {"/proc/sys/kernel/hostname",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       m.hostname = model::Fact<std::string>::of(line, source);
     }},
    {"/sys/module/nvidia/version",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       if (!m.nvidia_driver.known()) m.nvidia_driver = model::Fact<std::string>::of(line, source, line);
     }},
    {"/sys/module/nvidia_peermem/version",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       m.peermem = model::Fact<std::string>::of(line, source, line);
     }},
    {"/sys/devices/system/cpu/online",
     [](model::Machine& m, const std::string& line, const std::string& source) {
       if (auto cpus = parse_cpu_list(line))
         m.online_cpus = model::Fact<CpuSet>::of(std::move(*cpus), source, line);
     }},
};

const KernelFile* kernel_file_of(std::string_view command) {
  const auto parts = words(command);
  if (parts.empty()) return nullptr;
  if (parts.size() > 1 && parts[0] != "cat" && parts[0] != "head") return nullptr;
  const auto* at = std::ranges::find(kKernelFiles, parts.back(), &KernelFile::path);
  return at == std::end(kKernelFiles) ? nullptr : at;
}

// "systemctl is-active nvidia-fabricmanager": one word.
model::Fact<std::string>* service_of(model::Machine& machine, std::string_view command) {
  if (command.find("systemctl is-active") == std::string_view::npos) return nullptr;
  if (command.find("fabricmanager") != std::string_view::npos) return &machine.fabric_manager;
  if (command.find("nvidia-imex") != std::string_view::npos) return &machine.imex_service;
  return nullptr;
}

// "ls /sys/kernel/mm/memory_peers": names, or nothing.
bool lists_memory_peers(std::string_view command) {
  const auto parts = words(command);
  return parts.size() == 2 && parts[0] == "ls" && parts[1].starts_with("/sys/kernel/mm/memory_peers");
}

bool is_message(std::string_view line) {
  return line.find("No such file") != std::string_view::npos ||
         line.find("ermission denied") != std::string_view::npos;
}

}  // namespace

Done merge_numactl(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_numactl(piece.text);
  if (!text) return tl::unexpected(text.error());
  for (const auto& from : text->list) {
    auto* node = merger.numa_node(from.node.id);
    if (!node) continue;
    if (from.node.cpus) set_cpus(merger, *node, *from.node.cpus, piece.at(from.line));
    if (from.node.memory_bytes) node->memory_bytes = from.node.memory_bytes;
    if (!from.node.distances.empty()) node->distances = from.node.distances;
  }
  if (text->nodes && static_cast<std::size_t>(*text->nodes) != text->list.size() && !text->list.empty())
    merger.warn("truncated", fmt::format("{}: {} of {} NUMA nodes are in the text", piece.name,
                                         text->list.size(), *text->nodes));
  if (text->allowed)
    merger.set(merger.machine.allowed_cpus, *text->allowed, piece.at(text->allowed_line), "allowed CPUs");
  return {};
}

Done merge_lscpu(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_lscpu(piece.text);
  if (!text) return tl::unexpected(text.error());
  set_packages(merger, *text);
  set_nodes(merger, piece, *text);
  set_cpu_model(merger, *text);
  set_hypervisor(merger, piece, *text);
  if (text->online)
    merger.set(merger.machine.online_cpus, *text->online, piece.at(text->online_line), "online CPUs");
  return {};
}

Done merge_kernel_log(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_kernel_log(piece.text);
  if (!text) return tl::unexpected(text.error());
  open_log(merger, piece);
  for (const auto& event : text->events) add_log_line(merger, event.text, piece.at(event.line));
  set_boot_facts(merger, piece, *text);
  if (text->left_out > 0)
    merger.warn("left-out", fmt::format("{}: {} more lines of link, bus and IOMMU errors are left out",
                                        piece.name, text->left_out));
  if (text->earlier_boots)
    merger.warn("earlier-boots", fmt::format("{}: lines of earlier boots are left out", piece.name));
  return {};
}

Done merge_ulimit(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_ulimit(piece.text, piece.command);
  if (!text) return tl::unexpected(text.error());
  set_limits(merger, piece, *text, true);
  return {};
}

Done merge_limits_conf(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_limits_conf(piece.text);
  if (!text) return tl::unexpected(text.error());
  set_limits(merger, piece, parse::limits_of(*text), false);
  return {};
}

Done merge_fabric_manager(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_fabric_manager(piece.text);
  if (!text) return tl::unexpected(text.error());
  auto& machine = merger.machine;
  if (text->version)
    merger.set(machine.fabric_manager_version, *text->version, piece.at(text->version_line),
               "fabric manager version");
  if (text->state)
    merger.set(machine.fabric_manager, *text->state, piece.at(text->state_line),
               "state of the fabric manager");
  // Its own log says nothing of what the kernel's has: only what it reports stands for that.
  if (!text->errors.empty() || text->nothing_to_do) open_log(merger, piece);
  for (const auto& error : text->errors) add_log_line(merger, error.text, piece.at(error.line));
  if (text->nothing_to_do)
    add_log_line(merger, "fabric manager: NV_WARN_NOTHING_TO_DO", piece.at(text->nothing_to_do_line));
  return {};
}

Done merge_lsmod(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_lsmod(piece.text);
  if (!text) return tl::unexpected(text.error());
  auto& machine = merger.machine;
  // A list picked by grep tells which modules are loaded, not which are missing.
  const bool whole = text->header && !text->cut;
  if (whole && !machine.modules.known()) {
    std::map<std::string, std::string> modules;
    for (const auto& [name, line] : text->modules) modules[name] = "";
    machine.modules =
        model::Fact<std::map<std::string, std::string>>::of(std::move(modules), std::string(piece.name));
  }
  const auto peermem = text->modules.find("nvidia_peermem");
  if (peermem != text->modules.end() && !machine.peermem.known())
    machine.peermem = model::Fact<std::string>::of("", piece.at(peermem->second), "nvidia_peermem");
  if (whole && peermem == text->modules.end() && !machine.peermem.known())
    machine.peermem = model::Fact<std::string>::missing("not found", std::string(piece.name));
  return {};
}

Done merge_nvidia_version(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_driver_version_file(piece.text);
  if (!text) return tl::unexpected(text.error());
  set_line(merger, merger.machine.nvidia_driver, piece, text->driver, "NVIDIA driver version");
  merger.set(merger.machine.nvidia_open_kernel_module, text->open, piece.at(text->driver.line),
             "kind of the NVIDIA kernel modules", text->driver.text);
  return {};
}

Done merge_nvcc(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_nvcc(piece.text);
  if (!text) return tl::unexpected(text.error());
  set_line(merger, merger.machine.cuda_runtime, piece, *text, "CUDA toolkit version");
  return {};
}

Done merge_kernel_command_line(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_kernel_command_line(piece.text, piece.command);
  if (!text) return tl::unexpected(text.error());
  set_line(merger, merger.machine.kernel_command_line, piece, *text, "kernel command line");
  return {};
}

Done merge_uname(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_uname(piece.text, piece.command);
  if (!text) return tl::unexpected(text.error());
  set_line(merger, merger.machine.kernel, piece, *text, "kernel release");
  return {};
}

Done merge_os_release(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_os_release(piece.text);
  if (!text) return tl::unexpected(text.error());
  set_line(merger, merger.machine.os, piece, *text, "operating system");
  return {};
}

Done merge_ofed_info(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_ofed_info(piece.text);
  if (!text) return tl::unexpected(text.error());
  set_line(merger, merger.machine.ofed, piece, *text, "OFED version");
  return {};
}

Done merge_df_shm(Merger& merger, const Piece& piece) {
  const auto text = parse::parse_df_shm(piece.text);
  if (!text) return tl::unexpected(text.error());
  auto& machine = merger.machine;
  if (!machine.shm_bytes.known())
    machine.shm_bytes = model::Fact<std::uint64_t>::of(text->bytes, piece.at(text->line), text->text);
  if (text->free_bytes && !machine.shm_free_bytes.known())
    machine.shm_free_bytes =
        model::Fact<std::uint64_t>::of(*text->free_bytes, piece.at(text->line), text->text);
  return {};
}

bool is_kernel_file(const Piece& piece) {
  if (kernel_file_of(piece.command) != nullptr || lists_memory_peers(piece.command)) return true;
  model::Machine none;
  return piece.command.starts_with("systemctl") && service_of(none, piece.command) != nullptr;
}

Done merge_kernel_file(Merger& merger, const Piece& piece) {
  const auto line = first_line(piece.text);
  if (line.empty() || line.size() > 4096 || is_message(line)) return fail(Errc::unrecognised, "no value");
  if (auto* service = service_of(merger.machine, piece.command)) {
    merger.set(*service, line, piece.at(1), "state of a service", line);
  } else if (lists_memory_peers(piece.command)) {
    std::vector<std::string> names;
    for (const auto word : words(piece.text.substr(0, 4096))) names.emplace_back(word);
    merger.machine.memory_peers =
        model::Fact<std::vector<std::string>>::of(std::move(names), piece.at(1), line);
  } else if (const auto* file = kernel_file_of(piece.command)) {
    file->set(merger.machine, line, piece.at(1));
  }
  return {};
}

}  // namespace topotune::discover
