#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "host/host.h"
#include "parse/interrupts.h"

namespace topotune::mixed {

// The interrupts of a host at one moment.
struct InterruptReading {
  double at = 0;  // seconds, monotonic
  parse::InterruptTable interrupts, softirqs;
  std::map<std::string, std::string> nic_of;  // interrupt "24" -> "eth0", from msi_irqs of the devices
};
// From /proc/interrupts, /proc/softirqs, and /sys/class/{net,infiniband}/*/device. Errors of the first two.
Result<InterruptReading> read_interrupts(const host::Host& host, double at);

struct InterruptRate {
  std::string host;          // filled in by whoever gathers
  std::string kind;          // "nic": a NIC's vector; "softirq"
  std::string nic;           // "eth0"
  std::string id, name;      // "24", "virtio1-input.0"; of softirqs "NET_RX"
  double per_second = 0;     // all CPUs
  int busiest_cpu = 0;       // that took most of them
  double busiest_share = 0;  // of it, 0 to 1
};
// Of NICs' vectors and softirqs that fired, the most frequent first. A vector that is in one reading alone is
// left out.
std::vector<InterruptRate> rates_between(const InterruptReading& before, const InterruptReading& after);

// One line each, for other processes; what does not read back is left out.
std::string packed(const std::vector<InterruptRate>& rates);
std::vector<InterruptRate> unpacked(const std::string& text, const std::string& host);

}  // namespace topotune::mixed
