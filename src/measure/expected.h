#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/measurement.h"
#include "model/topology.h"

namespace topotune::measure {

// What healthy hardware gives: nominal rate of the links that discovery found, times the efficiency measured
// on that architecture (data/efficiency.tsv). Nothing where the links are unknown.
class ExpectedValues {
 public:
  explicit ExpectedValues(const model::Topology& topology);

  // op: "read", "write", "both.read", "both.write"; engine: "ce", "sm". Ids of the topology. The ranges are
  // those of copies of 512 MiB; a shorter one may take up to 10 us more for its start and end (measured on
  // H200).
  std::optional<model::Expected> p2p(std::string_view op, std::string_view engine, std::string_view src,
                                     std::string_view dst, std::size_t bytes) const;
  // op: "h2d", "d2h", "both"; pinned memory.
  std::optional<model::Expected> host(std::string_view op, std::string_view gpu) const;
  // The PCIe link of a GPU, one direction after line coding, with the narrowest link above it; nothing when
  // unknown.
  struct PcieRate {
    double gbytes_per_s = 0;
    double gts = 0;
    int width = 0;
    std::string why;  // "PCIe 32 GT/s x16"
  };
  std::optional<PcieRate> pcie_of(std::string_view gpu) const;

  // The NVLinks between two GPUs: of the narrower hop, with the rate of one link and one direction.
  struct NvLinks {
    int links = 0;
    double per_link = 0;
  };
  std::optional<NvLinks> nvlinks_between(std::string_view a, std::string_view b) const;

 private:
  const model::Topology& topology_;
  std::vector<model::Path> paths_;
};

// A row of data/efficiency.tsv, the first that fits: exact architecture and model before wildcards.
struct Efficiency {
  double low = 0, high = 0;
  bool measured = false;
  std::string_view source;
};
std::optional<Efficiency> efficiency_of(int sm, std::string_view gpu_name, std::string_view medium,
                                        std::string_view op, std::string_view engine);

}  // namespace topotune::measure
