#include "coll/check.h"

#include <algorithm>
#include <cstring>

namespace topotune::coll {

namespace {

// Whole numbers up to this are exact in the type.
std::uint64_t exact_up_to(Type type) {
  switch (type) {
    case Type::float8e5m2:
      return 8;
    case Type::float8e4m3:
      return 16;
    case Type::int8:
    case Type::uint8:
      return 127;
    case Type::bfloat16:
      return 256;
    case Type::float16:
      return 2048;
    default:
      return 1u << 23;
  }
}

// Values whose sum over all ranks stays exact.
void choose_values(Slice& s, Type type, Reduction reduction) {
  const std::uint64_t n = s.ranks, limit = exact_up_to(type);
  constexpr std::uint64_t kMostTwos = 7, kLongest = 1u << 12;
  const auto u32 = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  if (reduction == Reduction::prod) {
    s.shape = Shape::twos;
    s.period = u32((n + kMostTwos - 1) / kMostTwos + 1);
  } else if (n > limit) {
    s.shape = Shape::one_hot;
    s.period = u32((n + limit - 1) / limit);
  } else {
    s.shape = Shape::cycle;
    s.period = u32(std::min(limit / n + 1, kLongest));
  }
}

Slice reduction_slice(const Question& question, int ranks, int rank, std::uint32_t seed) {
  Slice s;
  s.type = static_cast<std::uint32_t>(question.type);
  s.reduction = static_cast<std::uint32_t>(question.reduction);
  s.reduced = reduces(question.op) ? 1 : 0;
  s.rank = static_cast<std::uint32_t>(rank);
  s.ranks = static_cast<std::uint32_t>(ranks);
  s.seed = seed;
  if (s.reduced != 0) choose_values(s, question.type, question.reduction);
  return s;
}

}  // namespace

Slice sent_by(const Question& question, int ranks, int rank, std::uint32_t seed) {
  auto s = reduction_slice(question, ranks, rank, seed);
  s.count = counts_of(question, ranks).send;
  return s;
}

std::vector<Arrival> arrivals_at(const Question& question, int ranks, int rank, std::uint32_t seed) {
  const auto counts = counts_of(question, ranks);
  const auto from = [&](int source, std::size_t first, std::size_t count, std::size_t offset) {
    auto s = reduction_slice(question, ranks, source, seed);
    s.first = first;
    s.count = count;
    return Arrival{offset, s};
  };
  const auto part = counts.argument;
  const auto place = static_cast<std::size_t>(rank) * part;
  std::vector<Arrival> out;
  const bool is_root = rank == question.root;
  switch (question.op) {
    case Op::all_reduce:
      return {from(rank, 0, counts.recv, 0)};
    case Op::reduce:
      if (is_root) out.push_back(from(rank, 0, counts.recv, 0));
      return out;
    case Op::reduce_scatter:
      return {from(rank, place, part, 0)};
    case Op::broadcast:
      return {from(question.root, 0, counts.recv, 0)};
    case Op::scatter:
      return {from(question.root, place, part, 0)};
    case Op::send_recv:
      return {from((rank + ranks - 1) % ranks, 0, counts.recv, 0)};
    case Op::gather:
      if (!is_root) return out;
      [[fallthrough]];
    case Op::all_gather:
    case Op::all_to_all:
      for (int source = 0; source < ranks; ++source) {
        const std::size_t first = question.op == Op::all_to_all ? place : 0;
        out.push_back(from(source, first, part, static_cast<std::size_t>(source) * part));
      }
      return out;
  }
  return out;
}

void fill_on_host(std::byte* data, const Slice& s) {
  const auto bytes = element_bytes(s.type);
  for (std::uint64_t i = 0; i < s.count; ++i) {
    const auto bits = sent_bits(s, s.first + i);
    std::memcpy(data + i * bytes, &bits, bytes);
  }
}

HostCheck check_on_host(const std::byte* data, const Slice& s) {
  const auto bytes = element_bytes(s.type);
  HostCheck out;
  for (std::uint64_t i = 0; i < s.count; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, data + i * bytes, bytes);
    if (arrived_right(s, s.first + i, bits)) continue;
    if (out.wrong++ == 0) out.first = i, out.have = bits;
  }
  return out;
}

std::string wrong_text(int rank, const Arrival& arrival, std::size_t elements, std::uint64_t first,
                       std::uint64_t have) {
  const auto& s = arrival.slice;
  const auto index = s.first + first;
  const auto want = s.reduced == 0 ? sent_bits(s, index) : encode(s.type, reduced_value(s, index));
  const auto from = s.reduced == 0 ? fmt::format(" (from rank {})", s.rank) : std::string();
  const bool average = s.reduced != 0 && s.reduction == 4;
  return fmt::format("rank {}: element {} of {} is {:#x}, not {}{:#x}{}", rank, arrival.offset + first,
                     elements, have, average ? "the average of " : "", want, from);
}

}  // namespace topotune::coll
