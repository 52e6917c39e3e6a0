#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// Counters of one RDMA port under the kernel's names (Documentation/ABI/stable/sysfs-class-infiniband).
struct CounterRecord {
  int line = 0;
  std::string device;  // "" where the text names the port by LID
  int port = 1;
  std::optional<int> lid;  // perfquery
  std::map<std::string, std::uint64_t> counters;
};

// `perfquery`, `perfquery -x`; `rdma statistic`; `grep . /sys/class/infiniband/*/ports/*/counters/*`.
bool looks_like_port_counters(std::string_view text);
Result<std::vector<CounterRecord>> parse_port_counters(std::string_view text);

}  // namespace topotune::parse
