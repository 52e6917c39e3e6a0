#pragma once

#include "discover/merger.h"

namespace topotune::discover {

tl::expected<void, Error> merge_nvidia_smi_q(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_nvidia_smi_x(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_nvidia_smi_table(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_nvidia_smi_nvlink(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_nvidia_smi_p2p(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_rocm_smi(Merger& merger, const Piece& piece);

}  // namespace topotune::discover
