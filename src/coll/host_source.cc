#include "coll/host_source.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace topotune::coll {

namespace {

std::uint64_t word_at(std::size_t index) { return (index + 1) * 0x9e3779b97f4a7c15u; }

class HostSource : public ByteSource {
 public:
  explicit HostSource(std::size_t bytes)
      : memory_(std::clamp<std::size_t>((bytes + kPiece - 1) / kPiece, 1, 16) * kPiece), staging_(kPiece) {
    for (std::size_t at = 0; at < memory_.size(); at += kPiece) fill_piece({memory_.data() + at, kPiece});
  }
  Result<std::span<const std::byte>> next(std::size_t bytes) override {
    std::memcpy(staging_.data(), memory_.data() + at_, bytes);
    at_ = (at_ + kPiece) % memory_.size();
    return std::span<const std::byte>(staging_.data(), bytes);
  }

 private:
  std::vector<std::byte> memory_, staging_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> host_source(std::size_t bytes) { return std::make_unique<HostSource>(bytes); }

void fill_piece(std::span<std::byte> piece) {
  for (std::size_t i = 0; (i + 1) * 8 <= piece.size(); ++i) {
    const auto word = word_at(i);
    std::memcpy(piece.data() + i * 8, &word, 8);
  }
}

std::size_t right_bytes(std::span<const std::byte> piece) {
  for (std::size_t i = 0; (i + 1) * 8 <= piece.size(); ++i) {
    const auto word = word_at(i);
    if (std::memcmp(piece.data() + i * 8, &word, 8) != 0) return i * 8;
  }
  return piece.size();
}

}  // namespace topotune::coll
