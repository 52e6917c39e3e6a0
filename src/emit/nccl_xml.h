#pragma once

#include <string>

#include "model/topology.h"

namespace topotune::emit {

// The topology in the form that NCCL's own reader takes (NCCL_TOPO_FILE; src/graph/xml.cc): one element a
// line, single blanks, no prolog, no TAB, no comment, strings of at most 253 bytes, lower case bus ids, "16.0
// GT/s PCIe"; arch, vendor, familyid and modelid of the CPUs always, as far as they are known. AMD GPUs and
// xGMI give RCCL's form (version 2). Empty when the topology has no PCI tree.
std::string nccl_topo_xml(const model::Topology& topology);

}  // namespace topotune::emit
