#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checks/known_gpus.h"
#include "checks/rule.h"
#include "model/paths.h"
#include "model/tree.h"

// What several rules ask of a machine.
namespace topotune::checks {

// The answer to a question about a machine. What was not read is `unknown`, never `no`.
enum class Tell { yes, no, unknown };

// Collects what one rule finds and what it could not read.
class Judge {
 public:
  explicit Judge(std::string_view rule) : rule_(rule) {}

  // Adds a finding with the catalogue's texts; the reference ends with the next call.
  model::Finding& found(std::string subject, std::string expected, std::string observed,
                        std::vector<model::Evidence> evidence);
  // A fact that the condition needs and that nobody read. The first reason is the one that is told.
  void unknown(std::string why);

  // Findings; else not evaluated when a fact was missing; else clean.
  Outcome outcome(std::string clean_why = {});

 private:
  std::string_view rule_;
  std::vector<model::Finding> findings_;
  std::string why_;
};

// "locked-memory limit: denied": the reason of a fact that is missing.
template <class T>
NotEvaluated missing(std::string_view what, const model::Fact<T>& fact) {
  return NotEvaluated{std::string(what) + ": " + fact.why};
}

template <class T>
model::Evidence evidence_of(const model::Fact<T>& fact, std::string text) {
  return {fact.source, fact.text.empty() ? std::move(text) : fact.text};
}

// The machine's paths: those that run() derived once, else derived now.
std::vector<model::Path> paths_in(const Evidence& evidence);

// Bridges from the device's parent to its root port, nearest first; stops at a cycle.
std::vector<const model::PciDevice*> bridges_above(const model::PciTree& tree,
                                                   const model::PciDevice& device);

// The first port of the NIC's RDMA device (the NIC's own port where it names one); null when unknown.
const model::RdmaPort* port_of(const model::Machine& machine, const model::Nic& nic);

// "GPU0", "mlx5_0", else the address: how people name a PCI device.
std::string name_of_device(const model::Topology& topology, const model::PciDevice& device);
std::string name_of(const model::Nic& nic);
std::string name_of_port(const model::RdmaPort& port);  // "mlx5_0", "mlx5_0 port 2"

// Soft-RoCE or soft-iWARP: no PCI function of its own.
bool is_software(const model::RdmaPort& port);

// Nodes of the machine that have CPUs. Nothing when the input need not name them all: a matrix and NCCL's XML
// show the nodes of GPUs only, so that one node proves nothing there.
std::optional<int> nodes_with_cpus(const model::Topology& topology);

// The input lists the machine's PCI devices, so that an absent one is absent: not NCCL's XML, not a file
// without any.
bool lists_devices(const model::Topology& topology);
// AMD GPUs carry a PCIe switch on the card: the bridge above is the card's own end of the slot.
bool is_on_card_bridge(const model::PciDevice& gpu, const model::PciDevice& bridge);

// A NIC whose PCI device is a physical or virtual RDMA device (not a software one).
bool is_rdma_hardware(const model::Nic& nic);

// The ports that carry a job's traffic: RDMA ports at PIX or PXB of a GPU. Where no port is so near, or the
// paths are not known, RDMA ports of 100 Gb/s and more (`by_path` is false then, and rules give their milder
// severity).
struct Rails {
  std::vector<const model::Nic*> nics;
  std::vector<const model::RdmaPort*> ports;
  bool by_path = false;
  std::string unknown;  // why a port may be a rail beside these; "": these are all
};
Rails rails_of(const Evidence& evidence);

// The rails' hardware ports that are active and of this link layer ("": of any). What is not told of a port,
// or of which ports are rails, goes to the judge.
std::vector<const model::RdmaPort*> active_rails(const Evidence& evidence, std::string_view layer,
                                                 Judge& judge);

// True in a virtual machine or container: paths may be hidden there. Unknown counts as false.
bool may_hide_paths(const model::Machine& machine);

bool version_at_least(std::string_view version,
                      std::string_view floor);  // "2.9" < "2.18.3"; "" is below everything
// The place of line `i` of the kernel log, as evidence.
model::Evidence kernel_line(const model::Machine& machine, std::size_t i);

// --nccl-version, else the library found; "" when neither is known.
std::string nccl_version_of(const Evidence& evidence);

// A link as people write it: "x16 at 32 GT/s".
std::string link_text(const model::PcieLink& link);

}  // namespace topotune::checks
