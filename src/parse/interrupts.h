#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// A line of /proc/interrupts or /proc/softirqs.
struct InterruptLine {
  std::string id;                     // "24", "NMI", "NET_RX"
  std::vector<std::uint64_t> counts;  // by column of the head line; ERR and MIS have one alone
  std::string name;                   // last word: "mlx5_comp0@pci:0000:17:00.0"; "" none
};

struct InterruptTable {
  std::vector<int> cpus;  // of the columns
  std::vector<InterruptLine> lines;
};

// The table that arch_show_interrupts and show_softirqs print (Linux kernel/irq/proc.c, fs/proc/softirqs.c):
// a head of CPU names, then a line of counts an interrupt. Errors: malformed with the line.
Result<InterruptTable> parse_interrupts(std::string_view text);

}  // namespace topotune::parse
