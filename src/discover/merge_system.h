#pragma once

#include "discover/merger.h"

namespace topotune::discover {

tl::expected<void, Error> merge_numactl(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_lscpu(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_kernel_log(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_ulimit(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_limits_conf(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_fabric_manager(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_lsmod(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_nvidia_version(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_nvcc(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_kernel_command_line(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_uname(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_os_release(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_ofed_info(Merger& merger, const Piece& piece);
tl::expected<void, Error> merge_df_shm(Merger& merger, const Piece& piece);

// `cat` (or a separator, or a file name) of a kernel file that holds one value:
// /proc/sys/kernel/numa_balancing and the like. False: the command names no such file.
bool is_kernel_file(const Piece& piece);
tl::expected<void, Error> merge_kernel_file(Merger& merger, const Piece& piece);

}  // namespace topotune::discover
