// MTU of RoCE interfaces and interrupts of NICs. Linux include/rdma/ib_addr.h (iboe_get_mtu), core-api/irq.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "plan/bindings.h"
#include "plan/parts.h"

namespace topotune::plan {

namespace {

using model::ActionKind;
using model::ActionRisk;
using model::ActionScope;

constexpr int kRoceMtu =
    4200;  // the smallest interface MTU that carries 4096 bytes of RoCE payload and its headers
constexpr int kUsualMtu = 9000;
constexpr std::size_t kFewCores = 4;  // a node with fewer cores a GPU keeps none for interrupts

const model::RdmaPort* port_named(const Draft& draft, const std::string& subject) {
  for (const auto& port : draft.machine().ports)
    if (subject == port.device || subject == fmt::format("{} port {}", port.device, port.port) ||
        subject == fmt::format("{}:{}", port.device, port.port))
      return &port;
  return nullptr;
}

void one_mtu(Draft& draft, const model::Finding& finding, int mtu) {
  const auto* port = port_named(draft, finding.subject);
  if (port == nullptr || !port->netdev || port->link_layer == "InfiniBand") return;
  if (port->netdev_mtu && *port->netdev_mtu >= kRoceMtu && !draft.job().mtu) return;
  if (port->netdev_mtu == mtu) return;
  auto action = write_action(
      "mtu-" + *port->netdev, fmt::format("/sys/class/net/{}/mtu", *port->netdev), std::to_string(mtu),
      port->netdev_mtu ? std::optional(std::to_string(*port->netdev_mtu)) : std::nullopt,
      fmt::format("{} moves {} bytes a packet; 4096 need an interface MTU of {} or more", port->device,
                  finding.observed, kRoceMtu));
  action.rule = finding.rule;
  action.source = finding.reference;
  action.precondition += "; every switch port and host of the path carries at least this MTU (ping -M do -s)";
  action.risk = ActionRisk::disruptive;
  action.command = {"ip", "link", "set", "dev", *port->netdev, "mtu", std::to_string(mtu)};
  draft.actions.push_back(std::move(action));
}

void mtu(Draft& draft) {
  const int wanted = draft.job().mtu.value_or(kUsualMtu);
  for (const auto* rule : {"RDMA05", "RDMA06"})
    for (const auto* finding : findings_of(draft, rule)) one_mtu(draft, *finding, wanted);
}

// Where the vectors of NICs are and where they should be.
struct Spread {
  std::map<int, std::vector<const model::Interrupt*>> by_node;
};

const model::Nic* nic_named(const Draft& draft, const std::string& name) {
  for (const auto& nic : draft.topology().nics)
    if (nic.name == name) return &nic;
  return nullptr;
}

Spread vectors_to_move(const Draft& draft) {
  Spread out;
  const auto found = findings_of(draft, "IRQ03");
  const model::PciTree tree(draft.topology());
  for (const auto& interrupt : draft.machine().interrupts) {
    const bool wrong =
        std::ranges::any_of(found, [&](const auto* finding) { return finding->subject == interrupt.device; });
    const auto* nic = nic_named(draft, interrupt.device);
    if (nic == nullptr || (!wrong && !draft.job().irq_spread)) continue;
    const auto* device = tree.route_to(*nic).device;
    const auto node = device != nullptr && device->numa ? device->numa : nic->numa;
    if (node) out.by_node[*node].push_back(&interrupt);
  }
  return out;
}

std::size_t gpus_on(const Draft& draft, int node) {
  return static_cast<std::size_t>(
      std::ranges::count_if(draft.topology().gpus, [&](const model::Gpu& gpu) { return gpu.numa == node; }));
}

// The last cores of a node, one for each eight, where its GPUs can spare them.
CpuSet cores_for_interrupts(const Draft& draft, const CpuSet& cpus, std::size_t gpus) {
  const auto cores = cores_in(draft.topology(), cpus);
  const std::size_t count = std::max<std::size_t>(1, cores.size() / 8);
  if (cores.size() < gpus * kFewCores + count) return {};
  CpuSet out;
  for (std::size_t i = cores.size() - count; i < cores.size(); ++i) out = out | cores[i];
  return out;
}

void move_vector(Draft& draft, const model::Interrupt& interrupt, int cpu, int node) {
  const auto* nic = nic_named(draft, interrupt.device);
  if (interrupt.effective && interrupt.effective->to_list() == std::to_string(cpu)) return;
  model::Action action;
  action.id = fmt::format("irq-{}", interrupt.irq);
  action.kind = ActionKind::affinity;
  action.target = fmt::format("/proc/irq/{}/smp_affinity_list", interrupt.irq);
  action.value = std::to_string(cpu);
  if (interrupt.effective) action.observed = interrupt.effective->to_list();
  if (nic != nullptr) action.where = nic->bdf;
  action.reason =
      fmt::format("a vector of {} on its own node {}, away from the ranks", interrupt.device, node);
  action.rule = "IRQ03";
  action.source = "Linux core-api/irq/irq-affinity.rst; Mellanox/mlnx-tools";
  action.precondition = fmt::format("/proc/irq/{} belongs to {} (msi_irqs)", interrupt.irq, interrupt.device);
  action.read_back = fmt::format("{} reads {}", action.target, cpu);
  action.undo = fmt::format("write the earlier list to {}", action.target);
  action.scope = ActionScope::boot;
  action.risk = ActionRisk::low;
  action.automatic = true;
  draft.actions.push_back(std::move(action));
}

// irqbalance would move them back within seconds; a drop-in names the vectors that it leaves alone.
void tell_irqbalance(Draft& draft, const std::vector<int>& vectors) {
  if (vectors.empty() || !draft.machine().irqbalance.value.value_or(false)) return;
  std::string text = std::string(kFileMark) + "[Service]\nEnvironment=\"IRQBALANCE_ARGS=";
  for (std::size_t i = 0; i < vectors.size(); ++i)
    text += fmt::format("{}--banirq={}", i == 0 ? "" : " ", vectors[i]);
  text += "\"\n";
  auto file = file_action("irqbalance-file", "/etc/systemd/system/irqbalance.service.d/90-topotune.conf",
                          text, "irqbalance runs and would move the vectors back");
  file.rule = "IRQ03";
  draft.actions.push_back(std::move(file));
  for (const auto& [id, words] :
       {std::pair{"systemd-reload", std::vector<std::string>{"systemctl", "daemon-reload"}},
        std::pair{"irqbalance-restart",
                  std::vector<std::string>{"systemctl", "try-restart", "irqbalance.service"}}}) {
    auto action = command_action(id, id, words, "irqbalance takes its new arguments");
    action.rule = "IRQ03";
    action.precondition = "systemd runs this machine";
    action.read_back = "the command ends with status 0";
    action.undo = "the same command after the file is gone";
    draft.actions.push_back(std::move(action));
  }
}

void interrupts(Draft& draft) {
  std::vector<int> moved;
  for (const auto& [id, vectors] : vectors_to_move(draft).by_node) {
    const auto node = std::ranges::find(draft.topology().numa, id, &model::NumaNode::id);
    if (node == draft.topology().numa.end() || !node->cpus) continue;
    auto usable = draft.machine().online_cpus ? *node->cpus & *draft.machine().online_cpus : *node->cpus;
    const auto own = cores_for_interrupts(draft, usable, gpus_on(draft, id));
    draft.reserved = draft.reserved | own;
    const auto cpus = (own.empty() ? usable : own).to_vector();
    if (cpus.empty()) continue;
    for (std::size_t i = 0; i < vectors.size(); ++i) {
      move_vector(draft, *vectors[i], cpus[i % cpus.size()], id);
      moved.push_back(vectors[i]->irq);
    }
  }
  tell_irqbalance(draft, moved);
}

}  // namespace

void plan_network(Draft& draft) {
  mtu(draft);
  interrupts(draft);
}

}  // namespace topotune::plan
