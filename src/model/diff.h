#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/machine.h"

namespace topotune::model {

// What a change is about, in the order in which it is told.
enum class DiffGroup { gpu, nic, pci, numa, path, peer, software, place, kernel, gpudirect };
const char* name_of(DiffGroup group);  // "gpu", "nic", ... (docs/formats/diff.md)

enum class DiffKind { added, removed, changed };
const char* name_of(DiffKind kind);

// One fact that differs. `subject` is a device ("GPU3 0000:5d:00.0", "mlx5_0 port 1") or "host"; `what` a
// stable word
// ("pcie_current_width"), "" where the device itself came or went. Values are texts in the unit that `what`
// names; nothing: it is not there.
struct Change {
  DiffKind kind = DiffKind::changed;
  DiffGroup group = DiffGroup::gpu;
  std::string subject, what;
  std::optional<std::string> before, after;
  std::string note;  // what to know before one believes the change; usually empty
};

// A fact that one side tells and the other does not: no change, and no sign that nothing changed.
struct OneSided {
  DiffGroup group = DiffGroup::gpu;
  std::string subject, what;
  std::string value;
  bool known_before = true;  // false: known after
};

struct Diff {
  std::vector<Change> changes;
  std::vector<OneSided> one_sided;
  std::size_t compared = 0;  // facts that both sides tell

  bool identical() const { return changes.empty(); }
};

// Devices are matched by PCI address, then by name, then by number. Not compared: counters, temperatures and
// utilisation, serial numbers, UUIDs, GUIDs and boot ids (captures carry stand-ins), interrupt numbers.
Diff diff(const Machine& before, const Machine& after);

}  // namespace topotune::model
