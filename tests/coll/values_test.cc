#include "coll/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "coll/check.h"

namespace topotune::coll {
namespace {

// What the closed forms must give, rank by rank.
double by_hand(const Slice& s, std::uint64_t index) {
  double out = static_cast<double>(value_of(s, index, 0));
  for (std::uint32_t r = 1; r < s.ranks; ++r) {
    const double next = static_cast<double>(value_of(s, index, r));
    switch (s.reduction) {
      case 1:
        out *= next;
        break;
      case 2:
        out = std::max(out, next);
        break;
      case 3:
        out = std::min(out, next);
        break;
      default:
        out += next;
    }
  }
  return out;
}

TEST(CollValues, ResultsAreThoseOfAddingUpRankByRank) {
  for (const auto type : all_types()) {
    for (const auto reduction : all_reductions()) {
      for (const int ranks : {1, 2, 3, 7, 8, 16, 72, 300, 2049}) {
        Question q;
        q.type = type, q.reduction = reduction, q.bytes = 4096;
        const auto s = sent_by(q, ranks, 0, 5);
        for (std::uint64_t i = 0; i < 200; ++i) {
          const double want = by_hand(s, i);
          ASSERT_EQ(static_cast<double>(reduced_value(s, i)), want)
              << name_of(type) << " " << name_of(reduction) << " ranks " << ranks << " element " << i;
          // Exact in the type: whole numbers that its mantissa holds.
          if (static_cast<int>(type) <= 5) continue;
          ASSERT_EQ(decode(s.type, encode(s.type, reduced_value(s, i))), want)
              << name_of(type) << " " << ranks;
        }
      }
    }
  }
}

TEST(CollValues, SumsChangeWhenARankIsMissingOrCountedTwice) {
  for (const auto type : all_types()) {
    Question q;
    q.type = type, q.bytes = 65536;
    const auto whole = sent_by(q, 8, 0, 5);
    auto seven = whole;
    int differ = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const auto without = reduced_value(whole, i) - value_of(seven, i, 7);
      differ += without != reduced_value(whole, i);
    }
    EXPECT_GT(differ, 100) << name_of(type);
  }
}

TEST(CollValues, EncodesAsTheMachineDoes) {
  for (std::uint64_t value : {0u, 1u, 2u, 3u, 255u, 2048u, 8388607u}) {
    const auto f = static_cast<float>(value);
    const auto d = static_cast<double>(value);
    std::uint32_t f_bits = 0;
    std::uint64_t d_bits = 0;
    std::memcpy(&f_bits, &f, 4);
    std::memcpy(&d_bits, &d, 8);
    EXPECT_EQ(encode(7, value), f_bits);
    EXPECT_EQ(encode(8, value), d_bits);
  }
  EXPECT_EQ(encode(6, 1), 0x3c00u);  // half
  EXPECT_EQ(encode(6, 2048), 0x6800u);
  EXPECT_EQ(encode(9, 3), 0x4040u);  // bfloat16
  EXPECT_EQ(encode(10, 1), 0x38u);   // e4m3
  EXPECT_EQ(encode(10, 16), 0x58u);
  EXPECT_EQ(encode(11, 1), 0x3cu);  // e5m2
  EXPECT_EQ(encode(0, 128), 0x80u);
}

TEST(CollValues, AveragesMayBeRoundedButNotWrong) {
  Question q;
  q.reduction = Reduction::avg, q.bytes = 4096;
  const auto s = sent_by(q, 3, 0, 5);
  int wrong = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto exact = static_cast<float>(static_cast<double>(reduced_value(s, i)) / 3);
    for (const float have : {exact, std::nextafterf(exact, 1e9f)}) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &have, 4);
      EXPECT_TRUE(arrived_right(s, i, bits)) << i;
    }
    const float off = exact * 1.001f + 1e-3f;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &off, 4);
    wrong += !arrived_right(s, i, bits);
  }
  EXPECT_EQ(wrong, 100);
}

TEST(CollCheck, EveryFlippedBitIsFound) {
  for (const auto type : all_types()) {
    Question q;
    q.op = Op::all_gather, q.type = type, q.bytes = 512;
    std::vector<std::byte> buffer(512);
    for (const auto& arrival : arrivals_at(q, 4, 1, 9))
      fill_on_host(buffer.data() + arrival.offset * size_of(type), arrival.slice);
    const auto wrong = [&] {
      std::uint64_t sum = 0;
      for (const auto& arrival : arrivals_at(q, 4, 1, 9))
        sum += check_on_host(buffer.data() + arrival.offset * size_of(type), arrival.slice).wrong;
      return sum;
    };
    EXPECT_EQ(wrong(), 0u);
    for (std::size_t bit = 0; bit < 512 * 8; bit += 5) {
      buffer[bit / 8] ^= std::byte{1} << (bit % 8);
      ASSERT_EQ(wrong(), 1u) << name_of(type) << " bit " << bit;
      buffer[bit / 8] ^= std::byte{1} << (bit % 8);
    }
  }
}

TEST(CollCheck, ArrivalsCoverTheReceiveBuffer) {
  for (const auto op : all_ops()) {
    for (const int ranks : {1, 2, 3, 8}) {
      Question q;
      q.op = op, q.bytes = 4096, q.root = ranks - 1;
      for (int rank = 0; rank < ranks; ++rank) {
        std::size_t covered = 0;
        for (const auto& a : arrivals_at(q, ranks, rank, 1)) {
          EXPECT_EQ(a.offset, covered);
          covered += a.slice.count;
        }
        const bool receives = (op != Op::reduce && op != Op::gather) || rank == q.root;
        EXPECT_EQ(covered, receives ? counts_of(q, ranks).recv : 0u) << name_of(op) << " " << ranks;
      }
    }
  }
}

TEST(Collective, SizesAreThoseOfNcclTests) {
  Question q;
  q.bytes = 1000;  // 250 floats
  EXPECT_EQ(shown_bytes(q, 2), 1000u);
  q.op = Op::all_gather;  // 125 a rank, cut to 124
  EXPECT_EQ(counts_of(q, 2).send, 124u);
  EXPECT_EQ(shown_bytes(q, 2), 992u);
  q.op = Op::reduce_scatter;
  EXPECT_EQ(counts_of(q, 2).send, 248u);
  q.op = Op::all_gather, q.bytes = 8;  // less than 16 bytes a rank
  EXPECT_EQ(shown_bytes(q, 2), 0u);
}

TEST(Collective, BandwidthFactors) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Op::broadcast, 8), 1);
}

TEST(Collective, WireBytesByAlgorithm) {
  Question q;
  q.bytes = 8000;
  EXPECT_DOUBLE_EQ(*wire_bytes(q, 8, "Ring"), 14000);
  EXPECT_DOUBLE_EQ(*wire_bytes(q, 8, "NVLS"), 9000);
  EXPECT_FALSE(wire_bytes(q, 8, "Tree"));
  EXPECT_FALSE(wire_bytes(q, 8, ""));
  q.op = Op::all_gather, q.bytes = 8192;
  EXPECT_DOUBLE_EQ(*wire_bytes(q, 8, "Ring"), 7168);
}

TEST(Collective, NamesOfBothKindsAreRead) {
  EXPECT_EQ(op_from("AllReduce"), Op::all_reduce);
  EXPECT_EQ(op_from("reduce-scatter"), Op::reduce_scatter);
  EXPECT_EQ(op_from("all_to_all"), Op::all_to_all);
  EXPECT_FALSE(op_from("allsomething"));
  EXPECT_EQ(type_from("half"), Type::float16);
  EXPECT_EQ(type_from("bfloat16"), Type::bfloat16);
  EXPECT_EQ(reduction_from("avg"), Reduction::avg);
}

}  // namespace
}  // namespace topotune::coll
