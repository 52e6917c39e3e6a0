// What scripts write to the kernel: interrupts, cgroups, drivers, ACS, MTU, paths that do not exist.
#include <algorithm>
#include <array>

#include "base/cpuset.h"
#include "base/text.h"
#include "lint/context.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::Command;
using sv = std::string_view;

struct Write {
  std::string path, value;
  bool value_known = true;
};

// echo VALUE > PATH, printf, echo VALUE | tee PATH. The value is "" where another program makes it.
std::vector<Write> writes_of(const Context& context, const Command& command) {
  std::vector<Write> out;
  const std::size_t at = parse::program_index(command.words);
  const sv program = at < command.words.size() ? parse::base_name(command.words[at]) : sv();
  const Command* source = &command;
  std::vector<std::string> paths;
  for (const auto& redirect : command.redirects)
    if (redirect.op.find('>') != std::string::npos && !redirect.op.starts_with('2'))
      paths.push_back(redirect.target);
  if (program == "tee") {
    for (std::size_t n = at + 1; n < command.words.size(); ++n)
      if (!command.words[n].starts_with('-')) paths.push_back(command.words[n]);
    const auto all = context.pipeline_of(command);
    if (!all.empty() && all.front() != &command) source = all.front();
  }
  const bool echo = !source->words.empty() && is_one_of(source->words[0], {"echo", "printf"});
  std::string value;
  bool known = echo;
  for (std::size_t n = 1; echo && n < source->words.size(); ++n) {
    if (n == 1 && source->words[n].starts_with('-') && source->words[n].size() == 2) continue;
    value += (value.empty() ? "" : " ") + source->words[n];
    known = known && source->known[n];
  }
  while (value.ends_with("\\n")) value.resize(value.size() - 2);
  for (auto& path : paths) out.push_back({std::move(path), value, known});
  return out;
}

bool is_irq_path(sv path) { return path.find("/proc/irq/") != sv::npos; }

// --- IRQ01, IRQ02
// ----------------------------------------------------------------------------------------------

constexpr int kMostCpus = 8192;  // NR_CPUS of distribution kernels

std::string why_no_list(sv value) {
  const auto list = parse_cpu_list(value);
  if (list && (list->empty() || list->to_vector().back() < kMostCpus)) return "";
  if (!list && value.find_first_not_of("0123456789abcdefABCDEFx,-") != sv::npos) return "";
  std::string meant;
  if (const auto mask = parse_cpu_mask(value); mask && !mask->empty())
    meant = fmt::format("; as a mask it is CPU {}", mask->to_list());
  return fmt::format("\"{}\" is no list of CPUs{}", value, meant);
}

std::string why_no_mask(sv value) {
  if (value.find('-') != sv::npos && parse_cpu_list(value))
    return fmt::format("\"{}\" is a list, not a hexadecimal mask", value);
  const sv digits = value.starts_with("0x") ? value.substr(2) : value;
  if (digits.find(',') == sv::npos && digits.size() > 8 &&
      digits.find_first_not_of("0123456789abcdefABCDEF") == sv::npos)
    return fmt::format("\"{}\" has more than 32 bits without a comma", value);
  return "";
}

void affinity_form(Context& context, const Command& command, const Write& write) {
  const bool list = write.path.ends_with("smp_affinity_list");
  const bool mask = write.path.ends_with("smp_affinity");
  if ((!list && !mask) || !write.value_known || write.value.empty()) return;
  const std::string why = list ? why_no_list(trim(write.value)) : why_no_mask(trim(write.value));
  if (why.empty()) return;
  Found& found = context.add(
      "IRQ01", command, list ? "a list such as 63 or 0-3,8" : "a mask such as 80000000,00000000 (CPU 63)");
  found.finding.subject = write.path;
  found.finding.title = why;
  found.finding.observed = write.value;
}

// Every interrupt of the machine: a glob, or a loop over /proc/irq/*.
bool loops_over_all(const Context& context, const Command& command) {
  if (command.loop < 0) return false;
  const std::string& header = context.input.facts.loops[static_cast<std::size_t>(command.loop)].header;
  return header.find("/proc/irq/*") != std::string::npos ||
         header.find("ls /proc/irq") != std::string::npos ||
         header.find("/proc/irq/[0-9]*") != std::string::npos ||
         header.find("find /proc/irq") != std::string::npos;
}

void all_to_one(Context& context, const Command& command, const Write& write) {
  if (write.path.find("smp_affinity") == std::string::npos) return;
  const bool glob = is_irq_path(write.path) && write.path.find('*') != std::string::npos;
  const bool loop = loops_over_all(context, command) && write.value_known && !write.value.empty();
  if (!glob && !loop) return;
  if (loop && !glob && write.value.find_first_of("-,f") != std::string::npos)
    return;  // a housekeeping list or mask
  Found& found = context.add("IRQ02", command, "per-vector lists on the NIC's node");
  found.finding.subject = write.path;
  if (glob) found.finding.title = "A redirect to a glob: ambiguous, or every interrupt goes to one CPU";
}

// --- QOS01, QOS03
// ----------------------------------------------------------------------------------------------

void rdma_limit(Context& context, const Command& command, const Write& write) {
  if (!write.path.ends_with("rdma.max") || !write.value_known || write.value.empty()) return;
  bool bad = false;
  const auto list = words(write.value);
  for (std::size_t n = 1; n < list.size(); ++n) {
    const auto equals = list[n].find('=');
    const sv key = list[n].substr(0, equals);
    const sv value = equals == sv::npos ? sv() : list[n].substr(equals + 1);
    const bool number = value == "max" || parse_int<int>(value).has_value();
    if (!is_one_of(key, {"hca_handle", "hca_object"}) || !number) bad = true;
  }
  if (!bad && list.size() > 1) return;
  Found& found = context.add("QOS01", command, "hca_handle=N or hca_object=N (numbers of objects)");
  found.finding.subject = write.path;
  found.finding.observed = write.value;
}

void subtree_control(Context& context, const Command& command, const Write& write) {
  if (!write.path.ends_with("cgroup.subtree_control") || !write.value_known) return;
  for (const sv word : words(write.value)) {
    if (word.starts_with('+') || word.starts_with('-')) continue;
    Found& found = context.add("QOS03", command, fmt::format("+{}", word));
    found.finding.subject = "cgroup.subtree_control";
    found.finding.title = fmt::format("A controller needs + or -: +{}", word);
    for (std::size_t n = 1; n < command.words.size(); ++n)
      if (command.words[n] == word && command.known[n])
        context.replace_word(found, command, n, fmt::format("+{}", word));
    return;
  }
}

// cgexec -g rdma:NAME, where nothing in the text makes NAME.
void cgexec(Context& context, const Command& command) {
  const std::size_t at = tool_index(command, "cgexec");
  if (at >= command.words.size()) return;
  const std::string group = option_value(command, {"-g"});
  const auto colon = group.find(':');
  if (colon == std::string::npos || !group.starts_with("rdma")) return;
  const std::string name = group.substr(colon + 1);
  for (const auto& other : context.input.facts.commands) {
    const std::size_t n = parse::program_index(other.words);
    if (n >= other.words.size()) continue;
    const sv program = parse::base_name(other.words[n]);
    if (program != "mkdir" && program != "cgcreate") continue;
    for (const auto& word : other.words)
      if (word.ends_with("/rdma/" + name) || word == "rdma:" + name) return;  // a v1 group
  }
  Found& found = context.add("QOS03", command,
                             "mkdir /sys/fs/cgroup/GROUP; echo $$ > /sys/fs/cgroup/GROUP/cgroup.procs");
  found.finding.subject = "cgexec";
  found.finding.title = fmt::format("The group {} is never created", printable(group).substr(0, 60));
}

// --- RDMA07
// ----------------------------------------------------------------------------------------------------

bool is_ipoib(sv name) {
  return name.starts_with("ib") && name.size() > 2 && (is_digit(name[2]) || name[2] == 'p' || name[2] == 's');
}

void ipoib_mtu(Context& context, const Command& command) {
  const auto& words = command.words;
  const bool ip =
      tool_index(command, "ip") < words.size() && has_word(command, "link") && has_word(command, "set");
  const bool ifconfig = tool_index(command, "ifconfig") < words.size();
  if (!ip && !ifconfig) return;
  const auto name = std::ranges::find_if(words, [](const auto& word) { return is_ipoib(word); });
  const auto mtu = std::ranges::find(words, "mtu");
  if (name == words.end() || mtu == words.end() || mtu + 1 == words.end()) return;
  const auto value = parse_int<int>(*(mtu + 1));
  const bool connected = value.value_or(0) > 4096 || context.mentions({"/mode", "connected"});
  const bool for_rdma = context.mentions({"rdma", "nccl", "verbs", "gpudirect"});
  const bool too_large = value && *value > 2044 && *value != 4092;
  if (connected && !for_rdma) return;
  if (connected && context.mentions({"connected"})) return;
  if (!for_rdma && !too_large) return;
  Found& found = context.add("RDMA07", command, "the fabric's MTU, set in the subnet manager");
  found.finding.subject = *name;
}

// --- CMD07
// -----------------------------------------------------------------------------------------------------

struct PhantomPath {
  sv part, instead;
};
constexpr PhantomPath kPaths[] = {
    {"/attr/cqe_size", "no such file: queue depth is an option of the program (ib_write_bw -t, -r)"},
    {"/module/nv_peer_mem/parameters/enable", "modprobe nvidia-peermem, or DMA-BUF with the open driver"},
    {"/proc/driver/nv-p2p/peers",
     "GPUDirect shows as /GDRDMA in NCCL's log; /sys/kernel/mm/memory_peers and nvidia_peermem in lsmod"},
    {"/proc/driver/nv-p2p",
     "GPUDirect shows as /GDRDMA in NCCL's log; /sys/kernel/mm/memory_peers and nvidia_peermem in lsmod"},
    {"PyTorch/benchmarks/distributed_benchmark",
     "no such file in that repository: nccl-tests, or topotune bench coll"},
};
constexpr PhantomPath kTools[] = {
    {"nccl-topo", "NCCL_TOPO_DUMP_FILE=topo.xml on any run, or topotune show --nccl-xml"},
    {"cuda-gdr-test", "ib_write_bw -d mlx5_0 --use_cuda=0 on both ends (--use_cuda_dmabuf for DMA-BUF)"},
};

Found& missing(Context& context, const Command& command, sv what, sv instead, bool error) {
  Found& found = context.add("CMD07", command, std::string(instead));
  found.finding.subject = what;
  if (!error) found.finding.severity = Severity::warn;
  found.finding.title = fmt::format("{} does not exist", what);
  found.finding.remedy = instead;
  return found;
}

bool is_local(const Context& context, sv word, sv tool) {
  return word.starts_with("./") || word.starts_with("../") || context.input.facts.functions.count(tool) > 0;
}

void phantom_tools(Context& context, const Command& command) {
  for (const auto& tool : kTools) {
    const std::size_t at = tool_index(command, tool.part);
    if (at < command.words.size() && !is_local(context, command.words[at], tool.part))
      missing(context, command, tool.part, tool.instead, true);
  }
  const std::size_t smi = tool_index(command, "nvidia-smi");
  if (smi >= command.words.size()) return;
  const bool topo = has_word(command, "topo") && has_word(command, "-m") && has_word(command, "-i");
  const bool clock =
      option_value(command, {"-d", "--display"}) == "CLOCK" && icontains(context.label_of(command), "nvlink");
  if (topo) missing(context, command, "nvidia-smi topo -m -i", "nvidia-smi topo -m alone", false);
  if (clock) missing(context, command, "NVLink in nvidia-smi -q -d CLOCK", "nvidia-smi nvlink -s", false);
}

void phantom_paths(Context& context, const Command& command, const std::vector<Write>& writes) {
  if (!command.words.empty() && is_one_of(command.words[0], {"echo", "printf"}) && writes.empty()) return;
  for (const auto& path : kPaths) {
    const auto holds = [&](const std::string& word) { return word.find(path.part) != std::string::npos; };
    const bool written = std::ranges::any_of(writes, [&](const Write& write) { return holds(write.path); });
    const bool read =
        std::ranges::any_of(command.words, holds) ||
        std::ranges::any_of(command.redirects, [&](const auto& one) { return holds(one.target); });
    if (!written && !read) continue;
    missing(context, command, path.part, path.instead, written);
    return;
  }
}

// --- CMD08, CMD09
// ----------------------------------------------------------------------------------------------

void user_space_driver(Context& context, const Command& command, const std::vector<Write>& writes) {
  bool taken = false, vfio = false;
  for (const auto& word : command.words) {
    const sv base = parse::base_name(word);
    if (!base.starts_with("dpdk-devbind")) continue;
    const std::string driver = option_value(command, {"-b", "--bind"});
    taken = is_one_of(driver, {"uio_pci_generic", "igb_uio"});
    vfio = driver == "vfio-pci";
  }
  for (const auto& write : writes) {
    const bool bind = write.path.find("/drivers/uio_pci_generic/") != std::string::npos ||
                      write.path.find("/drivers/igb_uio/") != std::string::npos;
    const bool override_ =
        write.path.ends_with("driver_override") && is_one_of(write.value, {"uio_pci_generic", "igb_uio"});
    taken = taken || bind || override_;
  }
  if (!taken && !vfio) return;
  const bool for_rdma = context.mentions({"gpudirect", "gdr", "nccl", "rdma", "roce", "mlx5", "connectx"});
  if (!for_rdma ||
      (vfio && context.mentions({"qemu", "libvirt", "virtual machine", "passthrough", "kvm", " vm"})))
    return;
  if (vfio && !context.mentions({"mlx5", "connectx", "gpudirect"})) return;
  Found& found = context.add("CMD08", command, "the device stays with mlx5_core");
  if (vfio) found.finding.severity = Severity::warn;
}

bool runs_at_boot(const Context& context) {
  return context.input.kind == parse::ConfigKind::systemd ||
         context.mentions({"systemctl enable", "### BEGIN INIT INFO", "/etc/rc.local", "@reboot",
                           "WantedBy=", "chkconfig", "update-rc.d", "/etc/cron.d"});
}

// lspci in the loop's header without a bridge or vendor filter.
bool over_all_devices(sv header) {
  if (header.find("lspci") == sv::npos && header.find("/sys/bus/pci/devices/*") == sv::npos) return false;
  return header.find("060400") == sv::npos && header.find("0604") == sv::npos &&
         !icontains(header, "bridge") && !icontains(header, "plx") && !icontains(header, "switch");
}

void acs_off(Context& context, const Command& command) {
  if (tool_index(command, "setpci") >= command.words.size()) return;
  const bool acs = std::ranges::any_of(command.words, [](const auto& word) {
    return icontains(word, "ECAP_ACS") && word.find('=') != std::string::npos;
  });
  if (!acs) return;
  const bool every = has_word(command, "*:*.*") || has_word(command, "*:*") || has_word(command, "*:*:*") ||
                     has_word(command, "*:*.*.*");
  const bool loop =
      command.loop >= 0 &&
      over_all_devices(context.input.facts.loops[static_cast<std::size_t>(command.loop)].header);
  const bool hypervisor = context.mentions({"vfio-pci", "libvirt", "qemu"});
  if ((!every && !loop) || (runs_at_boot(context) && !hypervisor)) return;
  Found& found = context.add("CMD09", command, "only the bridges above GPUs and rails, at boot");
  if (hypervisor) found.finding.severity = Severity::error;
}

}  // namespace

void check_kernel_files(Context& context) {
  for (const auto& command : context.input.facts.commands) {
    const auto writes = writes_of(context, command);
    for (const auto& write : writes) {
      affinity_form(context, command, write);
      all_to_one(context, command, write);
      rdma_limit(context, command, write);
      subtree_control(context, command, write);
    }
    phantom_paths(context, command, writes);
    user_space_driver(context, command, writes);
    if (command.words.empty()) continue;
    cgexec(context, command);
    ipoib_mtu(context, command);
    phantom_tools(context, command);
    acs_off(context, command);
  }
}

}  // namespace topotune::lint
