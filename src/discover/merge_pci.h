#pragma once

#include "discover/merger.h"

namespace topotune::discover {

tl::expected<void, Error> merge_lspci(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_lspci_tree(Merger& merger, const Piece& piece);

// What a function is, by vendor, class and, without a class (lspci -t), by the chip's name.
model::PciKind kind_of(const parse::LspciDevice& device, bool is_bridge);

// Bridges without a printed secondary bus get one by the rule that firmware and kernel follow: in order of
// address, depth first, each bridge takes the next bus number. Only where this explains every bus on which a
// GPU, NIC or NVSwitch sits; otherwise nothing is changed. True when it did.
bool infer_secondary_buses(std::map<Bdf, PciSeen>& pci);

}  // namespace topotune::discover
