#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parse/xml_reader.h"

namespace topotune::parse {

// One matrix of an hwloc XML file, of whichever version.
struct HwlocDistances {
  std::string name;          // "NUMALatency", "NVLinkBandwidth", ...; "" unnamed
  std::string type;          // of all objects: "NUMANode"; "" where they differ or version 1 does not say
  bool by_os_index = false;  // indexes are os_index, otherwise gp_index
  std::vector<std::string> ends;  // "0", "OSDev:802"; empty in version 1: logical order
  std::vector<double> values;     // ends x ends, row by row
  int line = 1;

  std::size_t size() const { return ends.empty() ? side : ends.size(); }
  std::size_t side = 0;
};

// <distances> (version 1), <distances2> and <distances2hetero>. Matrices whose numbers do not fill them, or
// with more than kMaxDistanceSide sides, are left out; `broken` counts them.
inline constexpr std::size_t kMaxDistanceSide = 1024;
std::vector<HwlocDistances> read_hwloc_distances(const XmlDocument& document, int& broken);

}  // namespace topotune::parse
