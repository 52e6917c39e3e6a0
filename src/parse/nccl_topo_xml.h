#pragma once

#include <string_view>

#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

// NCCL's and RCCL's topology XML: NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE (src/graph/xml.cc). Read leniently:
// whether NCCL itself would take the file is another question.
bool looks_like_nccl_topo_xml(std::string_view text);

// What can be read of it. A file that is cut off or breaks off in error gives `source.complete` false and a
// warning. Errors: malformed (nothing can be read), too_large.
Result<model::Topology> parse_nccl_topo_xml(std::string_view text);

}  // namespace topotune::parse
