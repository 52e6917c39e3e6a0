#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topotune::coll {

// The collectives and the ring exchange (each rank sends to the next one) that are measured.
enum class Op {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send_recv
};
const std::vector<Op>& all_ops();
const char* name_of(Op op);       // "all_reduce"
const char* nccl_name_of(Op op);  // "AllReduce", as NCCL's logs and nccl-tests call it
std::optional<Op> op_from(std::string_view name);
bool reduces(Op op);
bool has_root(Op op);  // broadcast, reduce, gather, scatter

// Numbers as in ncclDataType_t.
enum class Type {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float8e4m3 = 10,
  float8e5m2 = 11
};
const std::vector<Type>& all_types();
std::size_t size_of(Type type);                        // bytes
const char* name_of(Type type);                        // "float32"
const char* nccl_tests_name(Type type);                // "float", "half"
std::optional<Type> type_from(std::string_view name);  // both kinds of names

// Numbers as in ncclRedOp_t.
enum class Reduction { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };
const std::vector<Reduction>& all_reductions();
const char* name_of(Reduction reduction);
std::optional<Reduction> reduction_from(std::string_view name);

struct Question {
  Op op = Op::all_reduce;
  Type type = Type::float32;
  Reduction reduction = Reduction::sum;
  std::size_t bytes = 0;  // nccl-tests' size: what -b, -e and the column "size" count
  int root = 0;
  bool in_place = false;
};

// Elements that one rank hands over, by nccl-tests' definitions (doc/PERFORMANCE.md): of its send and its
// receive buffer, and what the call's count says. Parts of a buffer are cut to 16 bytes. In place, the send
// buffer begins at recv + rank * send_step, the receive buffer at recv + rank * recv_step elements.
struct Counts {
  std::size_t send = 0, recv = 0, argument = 0, send_step = 0, recv_step = 0;
};
Counts counts_of(const Question& question, int ranks);
// The size that is shown and counted in bandwidths: of the larger buffer.
std::size_t shown_bytes(const Question& question, int ranks);
bool works_in_place(Op op);  // false: its result is not defined (nccl-tests times it all the same)

// algbw = algorithm_bytes / seconds; busbw = algbw * bus_factor.
double algorithm_bytes(const Question& question, int ranks);
double bus_factor(Op op, int ranks);

// Bytes that one rank sends over its link for one operation by the algorithm that ran ("Ring", "Tree",
// "NVLS",
// ...), the most loaded rank where they differ; nothing where the algorithm is unknown or its traffic depends
// on more than the number of ranks.
std::optional<double> wire_bytes(const Question& question, int ranks, std::string_view algorithm);

}  // namespace topotune::coll
