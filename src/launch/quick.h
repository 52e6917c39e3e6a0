#pragma once

#include <string>
#include <vector>

#include "host/host.h"
#include "launch/rank.h"
#include "model/machine.h"

namespace topotune::launch {

// Files of this machine, or of the folder `root` that stands for it, read by this process itself: no probe,
// no program, no child. For the few files of a start that must take milliseconds; they are kept in memory by
// the kernel.
class PlainHost final : public host::Host {
 public:
  explicit PlainHost(std::string root = "") : root_(std::move(root)) {}
  Result<std::string> read(std::string_view path) const override;
  Result<std::vector<std::string>> list(std::string_view path) const override;
  Result<std::string> link(std::string_view path) const override;
  Result<std::string> run(std::span<const std::string> argv) const override;
  Result<std::string> probe(std::string_view name) const override;

 private:
  std::string root_;
};

// What binding needs and no more: nodes with their CPUs and distances, cores, GPUs in order of their PCI
// addresses, RDMA devices, and the bridges above both. Only the GPUs that /proc/driver/nvidia/gpus lists
// count where it exists: in a container that is a part of them. Takes about a millisecond for eight GPUs.
model::Machine quick_machine(const host::Host& host);

std::vector<KnownGpu> known_gpus(const model::Machine& machine);

}  // namespace topotune::launch
