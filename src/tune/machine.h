#pragma once

#include <string>

namespace topotune::tune {

// What a table is bound to: the NVIDIA GPUs of the machine by PCI id, "2x10de:2335", several kinds joined by
// '+'; read from DIR/sys/bus/pci/devices (root "" is this machine). "" when nothing can be read or there is
// no NVIDIA GPU.
std::string machine_fingerprint(const std::string& root = {});

}  // namespace topotune::tune
