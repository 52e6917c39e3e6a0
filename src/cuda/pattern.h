#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace topotune::cuda {

// The pattern that kernels.cu fills and compares, on the host: 16 bytes a piece, `bytes` a multiple of 16.
struct PatternPiece {
  std::uint32_t x, y, z, w;
  bool operator==(const PatternPiece&) const = default;
};
PatternPiece pattern_piece(std::uint64_t place, std::uint32_t seed);
void fill_pattern_on_host(std::byte* data, std::size_t bytes, std::uint32_t seed);
// Offset in bytes of the first piece that differs; nothing when all are right.
std::optional<std::size_t> first_wrong_on_host(const std::byte* data, std::size_t bytes, std::uint32_t seed);

}  // namespace topotune::cuda
