#include "cuda/pattern.h"

#include <cstring>

namespace topotune::cuda {

namespace {

std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

}  // namespace

PatternPiece pattern_piece(std::uint64_t place, std::uint32_t seed) {
  const std::uint32_t low = mix(static_cast<std::uint32_t>(place) ^ seed);
  const std::uint32_t high = mix(static_cast<std::uint32_t>(place >> 32) + 0x9e3779b9u * seed);
  return {low, high ^ low, low + seed, mix(low + high)};
}

void fill_pattern_on_host(std::byte* data, std::size_t bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes / 16; ++i) {
    const auto piece = pattern_piece(i, seed);
    std::memcpy(data + i * 16, &piece, 16);
  }
}

std::optional<std::size_t> first_wrong_on_host(const std::byte* data, std::size_t bytes, std::uint32_t seed) {
  for (std::size_t i = 0; i < bytes / 16; ++i) {
    const auto want = pattern_piece(i, seed);
    if (std::memcmp(data + i * 16, &want, 16) != 0) return i * 16;
  }
  return std::nullopt;
}

}  // namespace topotune::cuda
