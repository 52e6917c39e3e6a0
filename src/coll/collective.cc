#include "coll/collective.h"

#include <algorithm>
#include <array>

namespace topotune::coll {

namespace {

struct OpRow {
  Op op;
  const char *name, *nccl;
  bool reduces, root;
};
constexpr std::array<OpRow, 9> kOps{{{Op::all_reduce, "all_reduce", "AllReduce", true, false},
                                     {Op::all_gather, "all_gather", "AllGather", false, false},
                                     {Op::reduce_scatter, "reduce_scatter", "ReduceScatter", true, false},
                                     {Op::broadcast, "broadcast", "Broadcast", false, true},
                                     {Op::reduce, "reduce", "Reduce", true, true},
                                     {Op::all_to_all, "alltoall", "AlltoAll", false, false},
                                     {Op::gather, "gather", "Gather", false, true},
                                     {Op::scatter, "scatter", "Scatter", false, true},
                                     {Op::send_recv, "sendrecv", "SendRecv", false, false}}};

struct TypeRow {
  Type type;
  std::size_t bytes;
  const char *name, *nccl_tests;
};
constexpr std::array<TypeRow, 12> kTypes{{{Type::int8, 1, "int8", "int8"},
                                          {Type::uint8, 1, "uint8", "uint8"},
                                          {Type::int32, 4, "int32", "int32"},
                                          {Type::uint32, 4, "uint32", "uint32"},
                                          {Type::int64, 8, "int64", "int64"},
                                          {Type::uint64, 8, "uint64", "uint64"},
                                          {Type::float16, 2, "float16", "half"},
                                          {Type::float32, 4, "float32", "float"},
                                          {Type::float64, 8, "float64", "double"},
                                          {Type::bfloat16, 2, "bfloat16", "bfloat16"},
                                          {Type::float8e4m3, 1, "float8e4m3", "f8e4m3"},
                                          {Type::float8e5m2, 1, "float8e5m2", "f8e5m2"}}};

constexpr std::array<const char*, 5> kReductions{"sum", "prod", "max", "min", "avg"};

const OpRow& row_of(Op op) { return *std::ranges::find(kOps, op, &OpRow::op); }
const TypeRow& row_of(Type type) { return *std::ranges::find(kTypes, type, &TypeRow::type); }

std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

// A part of a buffer of `count` elements for one of the ranks, cut to 16 bytes.
std::size_t part_of(std::size_t count, std::size_t element, int ranks) {
  const std::size_t grain = std::max<std::size_t>(16 / element, 1);
  return count / static_cast<std::size_t>(ranks) / grain * grain;
}

}  // namespace

const std::vector<Op>& all_ops() {
  static const auto ops = [] {
    std::vector<Op> out;
    for (const auto& row : kOps) out.push_back(row.op);
    return out;
  }();
  return ops;
}

const char* name_of(Op op) { return row_of(op).name; }
const char* nccl_name_of(Op op) { return row_of(op).nccl; }
bool reduces(Op op) { return row_of(op).reduces; }
bool has_root(Op op) { return row_of(op).root; }

std::optional<Op> op_from(std::string_view name) {
  const auto wanted = plain(name);
  for (const auto& row : kOps)
    if (plain(row.name) == wanted || plain(row.nccl) == wanted) return row.op;
  return std::nullopt;
}

const std::vector<Type>& all_types() {
  static const auto types = [] {
    std::vector<Type> out;
    for (const auto& row : kTypes) out.push_back(row.type);
    return out;
  }();
  return types;
}

std::size_t size_of(Type type) { return row_of(type).bytes; }
const char* name_of(Type type) { return row_of(type).name; }
const char* nccl_tests_name(Type type) { return row_of(type).nccl_tests; }

std::optional<Type> type_from(std::string_view name) {
  const auto wanted = plain(name);
  for (const auto& row : kTypes)
    if (wanted == row.name || wanted == row.nccl_tests) return row.type;
  if (wanted == "bf16") return Type::bfloat16;
  if (wanted == "fp16") return Type::float16;
  return std::nullopt;
}

const std::vector<Reduction>& all_reductions() {
  static const std::vector<Reduction> all{Reduction::sum, Reduction::prod, Reduction::max, Reduction::min,
                                          Reduction::avg};
  return all;
}

const char* name_of(Reduction reduction) { return kReductions[static_cast<std::size_t>(reduction)]; }

std::optional<Reduction> reduction_from(std::string_view name) {
  for (const auto reduction : all_reductions())
    if (name == name_of(reduction)) return reduction;
  return std::nullopt;
}

Counts counts_of(const Question& question, int ranks) {
  const auto element = size_of(question.type);
  const auto n = static_cast<std::size_t>(ranks);
  const auto count = question.bytes / element;
  const auto part = part_of(count, element, ranks);
  switch (question.op) {
    case Op::all_gather:
    case Op::gather:
      return {part, part * n, part, part, 0};
    case Op::reduce_scatter:
    case Op::scatter:
      return {part * n, part, part, 0, part};
    case Op::all_to_all:
      return {part * n, part * n, part, 0, 0};
    default:
      return {count, count, count, 0, 0};
  }
}

std::size_t shown_bytes(const Question& question, int ranks) {
  const auto counts = counts_of(question, ranks);
  return std::max(counts.send, counts.recv) * size_of(question.type);
}

bool works_in_place(Op op) { return op != Op::all_to_all && op != Op::send_recv; }

double algorithm_bytes(const Question& question, int ranks) {
  return static_cast<double>(shown_bytes(question, ranks));
}

double bus_factor(Op op, int ranks) {
  const double n = ranks;
  switch (op) {
    case Op::all_reduce:
      return 2 * (n - 1) / n;
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
    case Op::gather:
    case Op::scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

// Ring: each rank passes on what it has, n - 1 times a part (all-reduce: twice). NVLS: the switch reads each
// rank's operands and multicasts each rank's part of the result. Direct: one message for each other rank.
// Trees: the busiest ranks pass everything up and down.
std::optional<double> wire_bytes(const Question& question, int ranks, std::string_view algorithm) {
  const double n = ranks, size = algorithm_bytes(question, ranks);
  switch (question.op) {
    case Op::all_to_all:
    case Op::scatter:
      return (n - 1) / n * size;  // scatter: the root's
    case Op::gather:
      return size / n;
    case Op::send_recv:
      return size;
    case Op::broadcast:
    case Op::reduce:
      return algorithm == "Ring" ? std::optional(size) : std::nullopt;
    case Op::all_gather:
    case Op::reduce_scatter:
      if (algorithm == "Ring" || algorithm == "PAT") return (n - 1) / n * size;
      return std::nullopt;
    case Op::all_reduce:
      if (algorithm == "Ring") return 2 * (n - 1) / n * size;
      if (algorithm == "NVLS") return (n + 1) / n * size;
      // Two trees, each with half of the data: a rank is an inner node of one and a leaf of the other.
      if (algorithm == "Tree" && ranks == 2) return size;
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace topotune::coll
