#pragma once

#include <string_view>

#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

// True when the text holds a topology matrix as `nvidia-smi topo -m` prints it, anywhere in it, or
// nvidia-smi's own words for why there is none. A `topo -p2p` matrix alone is not one.
bool looks_like_nvidia_smi_topo(std::string_view text);

// Reads the first matrix of a text: with terminal escapes, tabs or blanks, as a Markdown table, in quotes,
// behind prefixes, with glued or wrapped cells, cut off, with columns of any driver. `stated` holds every
// pair of GPUs and NICs once (GPUs, then NICs, in the order of the header); a pair that no half shows has no
// type.
//
// complete: every device of the header has its whole row.
// nvlinks, links: only where the counts can mean one thing (docs/formats/nvidia-smi-topo.md).
// Warnings: truncated, header-missing, unreadable-cell, contradiction, self-nvlink, duplicate-column,
// reversed-range, duplicate-cpu, unreadable-affinity, affinity-overlap, numa-range, more-matrices.
// Errors: no matrix (with nvidia-smi's message and its line, where there is one), more than 1024 devices.
Result<model::Topology> parse_nvidia_smi_topo(std::string_view text);

}  // namespace topotune::parse
