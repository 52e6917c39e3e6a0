// PCI Express: ACS of the bridges between GPUs and NICs, read requests of the NICs, ATS in virtual machines.
// PCIe Base Specification: ACS Control Register; NCCL user guide, troubleshooting.
#include <algorithm>

#include "plan/parts.h"

namespace topotune::plan {

namespace {

using model::ActionKind;
using model::ActionRisk;
using model::ActionScope;

constexpr unsigned kRedirects = 0x04 | 0x08 | 0x10;  // ReqRedir, CmpltRedir, UpstreamFwd

bool hosts_virtual_machines(const Draft& draft) {
  return std::ranges::any_of(draft.topology().pci,
                             [](const model::PciDevice& device) { return device.driver == "vfio-pci"; });
}

model::Action clear_redirects(const model::Finding& finding, const model::PciDevice& bridge) {
  const unsigned before = *bridge.acs_control, after = before & ~kRedirects;
  model::Action action;
  action.id = "acs-" + bridge.id;
  action.kind = ActionKind::config;
  action.target = fmt::format("pci:{}/ACSCtl", bridge.id);
  action.value = fmt::format("0x{:04x}", after);
  action.observed = fmt::format("0x{:04x}", before);
  action.reason = fmt::format("{}: the bridge sends traffic between devices below it up to the root complex",
                              finding.evidence.size() > 1 ? finding.evidence[1].text : "on the path of GPUs");
  action.rule = finding.rule;
  action.source = finding.reference;
  action.precondition = fmt::format(
      "ACSCtl of {} reads 0x{:04x}; no device below it is given to a virtual machine", bridge.id, before);
  action.read_back = fmt::format("ACSCtl of {} reads 0x{:04x}", bridge.id, after);
  action.undo = fmt::format("write 0x{:04x} to ACSCtl of {}", before, bridge.id);
  action.scope = ActionScope::boot;
  action.risk = ActionRisk::low;
  action.automatic = true;
  action.command = {"setpci", "-s", bridge.id, fmt::format("ECAP_ACS+6.w={:04x}", after)};
  return action;
}

void acs(Draft& draft) {
  const bool isolates = hosts_virtual_machines(draft);
  for (const auto* finding : findings_of(draft, "ACS01")) {
    const auto* bridge = model::find_pci(draft.topology(), finding->subject);
    if (finding->severity == model::Severity::info || bridge == nullptr || !bridge->acs_control) continue;
    if ((*bridge->acs_control & kRedirects) == 0) continue;
    auto action = clear_redirects(*finding, *bridge);
    if (isolates) {
      action.automatic = false;
      action.risk = ActionRisk::disruptive;
      action.reason +=
          "; devices of this host are given to virtual machines, whose isolation ACS guards: not done by "
          "apply";
    }
    draft.actions.push_back(std::move(action));
  }
}

void ats(Draft& draft) {
  for (const auto* finding : findings_of(draft, "ACS02")) {
    auto action = person_action(
        "ats-" + finding->subject, ActionKind::config, "nic-firmware:" + finding->subject, "ATS_ENABLED=1",
        "in a virtual machine ACS stays on, and peer traffic needs address translation in the NIC");
    action.rule = finding->rule;
    action.source = finding->reference;
    action.observed = finding->observed;
    action.precondition = "the host's administrator can reset the NIC";
    action.read_back = "ATSCtl: Enable+";
    action.undo = "set ATS_ENABLED=0, reset the NIC";
    action.command = {"mlxconfig", "-d", finding->subject, "set", "ATS_ENABLED=1"};
    draft.actions.push_back(std::move(action));
  }
}

const model::PciDevice* device_of(const Draft& draft, const std::string& subject) {
  for (const auto& nic : draft.topology().nics)
    if ((nic.name == subject || nic.id == subject) && nic.bdf)
      return model::find_pci(draft.topology(), *nic.bdf);
  return model::find_pci(draft.topology(), subject);
}

void read_requests(Draft& draft) {
  for (const auto* finding : findings_of(draft, "PCIE07")) {
    const auto* device = device_of(draft, finding->subject);
    if (device == nullptr || !device->max_read_request) continue;
    model::Action action;
    action.id = "max-read-request-" + device->id;
    action.kind = ActionKind::config;
    action.target = fmt::format("pci:{}/MaxReadReq", device->id);
    action.value = "4096";
    action.observed = std::to_string(*device->max_read_request);
    action.reason = fmt::format("{} fetches memory in requests of {} bytes; GPUDirect reads may be limited",
                                finding->subject, *device->max_read_request);
    action.rule = finding->rule;
    action.source = finding->reference;
    action.precondition = fmt::format("MaxReadReq of {} reads {}", device->id, *device->max_read_request);
    action.read_back = fmt::format("MaxReadReq of {} reads 4096", device->id);
    action.undo = fmt::format("set MaxReadReq of {} to {}", device->id, *device->max_read_request);
    action.scope = ActionScope::boot;
    action.risk = ActionRisk::low;
    action.basis = model::ActionBasis::convention;
    action.automatic = !draft.machine().virtual_machine.value.value_or(false);
    if (!action.automatic)
      action.reason += "; in a virtual machine its host decides: emulated functions ignore the write";
    action.command = {"setpci", "-s", device->id, "CAP_EXP+8.w=5000:7000"};
    draft.actions.push_back(std::move(action));
  }
}

}  // namespace

void plan_pcie(Draft& draft) {
  acs(draft);
  ats(draft);
  read_requests(draft);
}

}  // namespace topotune::plan
