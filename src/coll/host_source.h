#pragma once

#include <memory>

#include "coll/lane.h"

namespace topotune::coll {

// Host memory (at most a gigabyte of it, over and over) that is copied to other host memory: stands for a
// device where there is none.
std::unique_ptr<ByteSource> host_source(std::size_t bytes);

// What every piece of a source holds: numbers that differ from place to place.
void fill_piece(std::span<std::byte> piece);
// Bytes from the start of `piece` that are as fill_piece made them.
std::size_t right_bytes(std::span<const std::byte> piece);

}  // namespace topotune::coll
