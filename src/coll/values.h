#pragma once

#include <cstdint>

// What each rank hands over and what must arrive, element by element, so that every result is exact in every
// order of additions. The same code runs on the host and in kernels.cu.
#ifdef __CUDACC__
#define TOPOTUNE_HD __host__ __device__
#else
#define TOPOTUNE_HD
#endif

namespace topotune::coll {

// How the value of a rank at an element follows from h, a hash of the element's index modulo `period`.
enum class Shape : std::uint32_t {
  cycle,    // (h + rank) % period
  one_hot,  // 1 where (h + rank) % period is 0, else 0: for more ranks than the type can count
  twos      // 2 there, else 1: for products
};

// Elements first, first + 1, ... of what rank `rank` sends (or of the reduction over `ranks`). Numbers of
// types and reductions as in collective.h.
struct Slice {
  std::uint64_t first = 0, count = 0;
  std::uint32_t type = 7;
  std::uint32_t reduction = 0;
  std::uint32_t reduced = 0;  // 0: bits of `rank`; 1: the value of `rank`, or of all ranks where checked
  std::uint32_t rank = 0, ranks = 1;
  std::uint32_t seed = 0;
  Shape shape = Shape::cycle;
  std::uint32_t period = 1;
};

TOPOTUNE_HD inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

TOPOTUNE_HD inline std::uint32_t word_at(std::uint64_t place, std::uint32_t seed) {
  return mix(static_cast<std::uint32_t>(place) ^ seed) ^
         mix(static_cast<std::uint32_t>(place >> 32) + 0x9e3779b9u * seed);
}

TOPOTUNE_HD inline std::uint32_t element_bytes(std::uint32_t type) {
  switch (type) {
    case 2:
    case 3:
    case 7:
      return 4;
    case 4:
    case 5:
    case 8:
      return 8;
    case 6:
    case 9:
      return 2;
    default:
      return 1;
  }
}

// Bits that rank `rank` holds at an element of its send buffer, for collectives that only move data.
TOPOTUNE_HD inline std::uint64_t moved_bits(std::uint64_t index, std::uint32_t bytes, std::uint32_t rank,
                                            std::uint32_t seed) {
  const std::uint32_t mine = seed + 0x632be5abu * (rank + 1);
  if (bytes == 8) return (std::uint64_t{word_at(2 * index + 1, mine)} << 32) | word_at(2 * index, mine);
  const std::uint64_t at = index * bytes;
  const std::uint32_t word = word_at(at / 4, mine) >> (8 * (at % 4));
  return bytes == 4 ? word : word & ((1u << (8 * bytes)) - 1);
}

// Bits of a floating point type; mantissa 0: an integer.
struct FloatFormat {
  std::uint32_t mantissa = 0, exponent = 0, bias = 0;
};
TOPOTUNE_HD inline FloatFormat float_format(std::uint32_t type) {
  switch (type) {
    case 6:
      return {10, 5, 15};
    case 7:
      return {23, 8, 127};
    case 8:
      return {52, 11, 1023};
    case 9:
      return {7, 8, 127};
    case 10:
      return {3, 4, 7};
    case 11:
      return {2, 5, 15};
    default:
      return {};
  }
}

// The bits of a small whole number in a type. Exact for all numbers that fit into its mantissa and range; of
// integers the low bits.
TOPOTUNE_HD inline std::uint64_t encode(std::uint32_t type, std::uint64_t value) {
  const auto [mantissa, exponent, bias] = float_format(type);
  if (mantissa == 0) {
    const std::uint32_t bytes = element_bytes(type);
    return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
  }
  if (value == 0) return 0;
  std::uint32_t power = 0;
  while ((value >> power) > 1) ++power;
  const std::uint64_t rest = value ^ (std::uint64_t{1} << power);
  const std::uint64_t fraction = power <= mantissa ? rest << (mantissa - power) : rest >> (power - mantissa);
  return (std::uint64_t{power + bias} << mantissa) | fraction;
}

// A non-negative number as a double; NaN and infinities become 1e300.
TOPOTUNE_HD inline double decode(std::uint32_t type, std::uint64_t bits) {
  const auto [mantissa, exponent, bias] = float_format(type);
  if (mantissa == 0) return static_cast<double>(bits);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << mantissa) - 1);
  const auto power = static_cast<std::int32_t>((bits >> mantissa) & ((1u << exponent) - 1));
  if ((bits >> (mantissa + exponent)) != 0) return 1e300;  // negative
  if (power == (1 << exponent) - 1 && type != 10) return 1e300;
  double value = static_cast<double>(fraction);
  for (std::uint32_t i = 0; i < mantissa; ++i) value *= 0.5;
  std::int32_t e = power == 0 ? 1 - static_cast<std::int32_t>(bias) : power - static_cast<std::int32_t>(bias);
  if (power != 0) value += 1;
  for (; e > 0; --e) value *= 2;
  for (; e < 0; ++e) value *= 0.5;
  return value;
}

TOPOTUNE_HD inline std::uint32_t hash_at(const Slice& s, std::uint64_t index) {
  return word_at(index, s.seed) % s.period;
}

TOPOTUNE_HD inline std::uint64_t value_of(const Slice& s, std::uint64_t index, std::uint32_t rank) {
  const std::uint32_t place = (hash_at(s, index) + rank % s.period) % s.period;
  if (s.shape == Shape::cycle) return place;
  if (s.shape == Shape::one_hot) return place == 0 ? 1 : 0;
  return place == 0 ? 2 : 1;
}

// How many ranks stand at place 0 of the period.
TOPOTUNE_HD inline std::uint64_t zeros_of(std::uint64_t h, std::uint64_t ranks, std::uint64_t period) {
  return (h + ranks - 1) / period + (h == 0 ? 1 : 0);
}

// Sum over ranks of (h + rank) % period.
TOPOTUNE_HD inline std::uint64_t cycle_sum(std::uint64_t h, std::uint64_t ranks, std::uint64_t period) {
  const std::uint64_t rounds = ranks / period, rest = ranks % period;
  std::uint64_t sum =
      rounds * (period * (period - 1) / 2) + rest * h + (rest == 0 ? 0 : rest * (rest - 1) / 2);
  if (h + rest > period) sum -= period * (h + rest - period);
  return sum;
}

// The exact result of the reduction; of avg the sum.
TOPOTUNE_HD inline std::uint64_t reduced_value(const Slice& s, std::uint64_t index) {
  const std::uint64_t h = hash_at(s, index), n = s.ranks, period = s.period;
  if (s.reduction == 1) return std::uint64_t{1} << zeros_of(h, n, period);
  if (s.shape == Shape::one_hot) {
    const std::uint64_t zeros = zeros_of(h, n, period);
    if (s.reduction == 2) return zeros > 0 ? 1 : 0;
    if (s.reduction == 3) return zeros == n ? 1 : 0;
    return zeros;
  }
  const bool wraps = h + n - 1 >= period;
  if (s.reduction == 2) return wraps ? period - 1 : h + n - 1;
  if (s.reduction == 3) return wraps ? 0 : h;
  return cycle_sum(h, n, period);
}

TOPOTUNE_HD inline std::uint64_t sent_bits(const Slice& s, std::uint64_t index) {
  if (s.reduced == 0) return moved_bits(index, element_bytes(s.type), s.rank, s.seed);
  return encode(s.type, value_of(s, index, s.rank));
}

// An average of floating point numbers is a sum of rounded parts: a rounding a rank is let pass.
TOPOTUNE_HD inline bool near_average(const Slice& s, std::uint64_t index, std::uint64_t bits) {
  double eps = 1;
  const std::uint32_t digits = float_format(s.type).mantissa;
  for (std::uint32_t i = 0; i < digits; ++i) eps *= 0.5;
  const double want = static_cast<double>(reduced_value(s, index)) / s.ranks;
  const double have = decode(s.type, bits);
  const double off = have > want ? have - want : want - have;
  return off <= eps * (s.ranks + 1) * (want > 0 ? want : 0);
}

TOPOTUNE_HD inline bool arrived_right(const Slice& s, std::uint64_t index, std::uint64_t bits) {
  if (s.reduced == 0 || s.reduction != 4) {
    const std::uint64_t want = s.reduced == 0 ? moved_bits(index, element_bytes(s.type), s.rank, s.seed)
                                              : encode(s.type, reduced_value(s, index));
    return bits == want;
  }
  if (s.type <= 5) return bits == encode(s.type, reduced_value(s, index) / s.ranks);
  return near_average(s, index, bits);
}

}  // namespace topotune::coll
