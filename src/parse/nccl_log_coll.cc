#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "parse/nccl_log_scan.h"
#include "parse/nccl_log_state.h"

// COLL and TUNING lines: nearly all of a long log. "AllReduce: opCount 0 sendbuff 0x… recvbuff 0x… count 16
// datatype 7 op 0 root 0 comm 0x… [nranks=32] stream 0x…" (NCCL src/enqueue.cc).
namespace topotune::parse::log {
namespace {

// Element sizes by ncclDataType_t (nccl.h).
constexpr std::array<std::uint64_t, 12> kElement{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

constexpr std::array<std::string_view, 7> kAlgorithms{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};

struct Spelling {
  std::string_view printed, name;
};
constexpr std::array kSpellings{Spelling{"TREE", "Tree"},
                                Spelling{"RING", "Ring"},
                                Spelling{"COLLNET_DIRECT", "CollNetDirect"},
                                Spelling{"NVLS", "NVLS"},
                                Spelling{"NVLS_TREE", "NVLSTree"},
                                Spelling{"COLLNET_CHAIN", "CollNetChain"},
                                Spelling{"PAT", "PAT"},
                                Spelling{"COLLNET", "CollNet"},
                                Spelling{"COLLNETDIRECT", "CollNetDirect"},
                                Spelling{"LL", "LL"},
                                Spelling{"LL128", "LL128"},
                                Spelling{"COLLNETCHAIN", "CollNetChain"},
                                Spelling{"SIMPLE", "Simple"},
                                Spelling{"NVLSTREE", "NVLSTree"}};

std::string_view spelled(std::string_view printed) {
  for (const auto& s : kSpellings)
    if (iequals(s.printed, printed)) return s.name;
  return printed.size() <= 64 ? printed : printed.substr(0, 64);
}

bool is_operation(std::string_view word) {
  if (word.empty() || word.size() > 32 || word.front() < 'A' || word.front() > 'Z') return false;
  for (const char c : word)
    if (!is_digit(c) && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')) return false;
  return true;
}

// The communicator's handle of this site; made when no init line named it before.
int instance_of(State& state, std::optional<std::uint64_t> pointer, int nranks) {
  auto* site = state.here();
  if (site == nullptr) return -1;
  if (site->current >= 0) {
    const auto& now = state.instances[static_cast<std::size_t>(site->current)];
    if (!pointer || now.pointer == pointer) return site->current;
  }
  for (const int known : site->instances)
    if (pointer && state.instances[static_cast<std::size_t>(known)].pointer == pointer)
      return site->current = known;
  if (!pointer && !site->instances.empty()) return site->instances.back();
  if (state.instances.size() >= kMaxInstances) return -1;
  Instance made;
  made.site = state.site;
  made.pointer = pointer;
  made.nranks = nranks;
  made.initialised = true;
  state.instances.push_back(std::move(made));
  const int index = static_cast<int>(state.instances.size() - 1);
  site->instances.push_back(index);
  return site->current = index;
}

int shape_of(State& state, const ShapeKey& key) {
  const auto found = state.shape_ids.find(key);
  if (found != state.shape_ids.end()) return found->second;
  if (state.shapes.size() >= kMaxShapes) return -1;
  state.shapes.push_back(key);
  state.shape_ids.emplace(key, static_cast<int>(state.shapes.size() - 1));
  return static_cast<int>(state.shapes.size() - 1);
}

// Communicators as the timeline and the comparison of calls see them: by commId, else by size.
std::uint64_t family_of(const Instance& instance) {
  return instance.comm_id ? *instance.comm_id : static_cast<std::uint64_t>(instance.nranks + 1);
}

void add_step(State& state, const Instance& instance, int index, const ShapeKey& key) {
  auto& line = state.timelines[family_of(instance)];
  if (line.instance < 0) line.instance = index;
  if (line.instance != index) return;
  const auto& op = state.ops[static_cast<int>(key.op)];
  const auto& type = state.ops[static_cast<int>(key.datatype)];
  if (!line.steps.empty()) {
    auto& last = line.steps.back();
    if (last.op == op && last.count == key.count && last.datatype == type) {
      ++last.times;
      return;
    }
  }
  if (state.steps >= kMaxSteps) {
    state.log.timeline_complete = false;
    return;
  }
  ++state.steps;
  line.steps.push_back({0, op, type, key.count, 1, state.at, std::string(state.time)});
}

// Ranks that print different collectives under one number call different things. Some versions print 0
// always, or one number for a whole group: then the numbers say nothing.
void compare_calls(State& state, Instance& instance, int index, std::uint64_t number, int shape) {
  const auto family = family_of(instance);
  if (!instance.comm_id || state.numbers_unusable.contains(family)) return;
  if (instance.last_number == number && instance.last_shape != shape) {
    state.numbers_unusable.insert(family);
    state.calls_by_number.erase(family);
    std::erase_if(state.log.mismatches,
                  [&](const auto& m) { return m.communicator == static_cast<int>(family & 0x7fffffffU); });
    return;
  }
  instance.last_number = number;
  instance.last_shape = shape;
  auto& calls = state.calls_by_number[family];
  if (calls.size() >= 65536) calls.clear();
  const auto [at, fresh] = calls.try_emplace(number, State::Called{number, shape, index, state.at});
  if (fresh || at->second.shape == shape || state.log.mismatches.size() >= 64) return;
  const auto text = [&](int s) {
    const auto& key = state.shapes[static_cast<std::size_t>(s)];
    return fmt::format("{} count {} {}", state.ops[static_cast<int>(key.op)], key.count,
                       state.ops[static_cast<int>(key.datatype)]);
  };
  const auto rank = [&](int i) -> std::optional<int> {
    const int r = state.instances[static_cast<std::size_t>(i)].rank;
    return r < 0 ? std::nullopt : std::optional<int>(r);
  };
  state.log.mismatches.push_back({static_cast<int>(family & 0x7fffffffU), number, text(at->second.shape),
                                  text(shape), rank(at->second.instance), rank(index), state.at});
}

void count_call(State& state, Instance& instance, int index, std::uint64_t number, const ShapeKey& key) {
  const int shape = shape_of(state, key);
  if (shape < 0) {
    ++state.collectives_left_out;
    state.log.timeline_complete = false;
    return;
  }
  if (instance.calls.size() <= static_cast<std::size_t>(shape))
    instance.calls.resize(static_cast<std::size_t>(shape) + 1);
  ++instance.calls[static_cast<std::size_t>(shape)];
  add_step(state, instance, index, key);
  if (number != 0 || instance.last_number) compare_calls(state, instance, index, number, shape);
}

void count_peer(State& state, int index, std::string_view op, std::uint64_t peer, std::uint64_t bytes) {
  auto& table = op == "Send" ? state.sent : state.received;
  if (table.size() >= (1U << 22U) || peer >= kMaxRank) return;
  table[{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(peer)}] += bytes;
}

}  // namespace

bool collective_line(State& state, std::string_view message) {
  const auto colon = message.find(':');
  if (colon == std::string_view::npos || colon > 32) return false;
  Cursor in(message.substr(colon));
  if (!in.take(": opCount ")) return false;
  const auto op = message.substr(0, colon);
  const auto number = in.need<std::uint64_t>(16);
  // Buffers follow; "sendcounts" and "recvcounts" of RCCL's AllToAllv have no single count.
  if (!in.ok() || !is_operation(op)) return false;
  if (in.take(" sendbuff ")) in.word();
  if (in.take(" recvbuff ")) in.word();
  if (!in.take(" count ")) return in.skip_past(" datatype ");
  const auto count = in.need<std::uint64_t>();
  const auto type = in.expect(" datatype ").need<unsigned>();
  in.expect(" op ").need<unsigned>();
  const auto root = in.expect(" root ").need<std::uint64_t>();
  if (!in.expect(" comm ").ok()) return false;
  const auto pointer = in.pointer();
  int nranks = -1;
  if (in.take(" [nranks=")) nranks = in.need<int>();
  const int index = instance_of(state, pointer, nranks);
  if (index < 0) return true;
  auto& instance = state.instances[static_cast<std::size_t>(index)];
  if (instance.nranks < 0) instance.nranks = nranks;
  const auto bytes = type < kElement.size() ? count * kElement[type] : 0;
  auto* site = state.here();
  const int op_id = state.ops.id(op);
  site->last_op = op_id;
  site->last_bytes = bytes;
  const auto type_name = model::datatype_name(type);
  count_call(state, instance, index, number,
             {count, static_cast<std::uint32_t>(op_id), static_cast<std::uint32_t>(state.ops.id(type_name))});
  if (op == "Send" || op == "Recv") count_peer(state, index, op, root, bytes);
  return true;
}

namespace {

void keep_tuning(State& state, int op, std::uint64_t bytes, std::string_view algorithm,
                 std::string_view protocol, int first, int last, std::optional<double> time) {
  const TuningKey key{bytes, op, state.algorithms.id(algorithm), state.protocols.id(protocol), first, last};
  const auto found = state.tuning.find(key);
  if (found != state.tuning.end()) {
    ++found->second.count;
    return;
  }
  if (state.tuning.size() >= kMaxShapes) return;
  model::LogTuning made;
  if (op != 0) made.op = state.ops[op];
  made.bytes = bytes;
  made.algorithm = std::string(algorithm);
  made.protocol = std::string(protocol);
  if (first >= 0) made.first_channel = first;
  if (last >= 0) made.last_channel = last;
  made.microseconds = time;
  made.count = 1;
  state.tuning.emplace(key, std::move(made));
}

std::string_view numbered_algorithm(const State& state, unsigned number) {
  // Up to 2.13 there was one CollNet algorithm (number 2).
  if (number == 2 && !state.versions.empty()) {
    const auto parts = split(state.versions.front().seen.version, '.');
    const auto minor = parts.size() > 1 ? parse_int<int>(parts[1]) : std::nullopt;
    if (minor && *minor <= 13) return "CollNet";
  }
  return number < kAlgorithms.size() ? kAlgorithms[number] : std::string_view{};
}

// Behind "Bytes -> ": "Algo 0 proto 0 time 49.7", "Algo RING proto LL channel{Lo..Hi}={0..3}", "Kernel NAME
// nchannels …".
bool choice(State& state, int op, std::uint64_t bytes, Cursor in) {
  if (in.take("Kernel ")) {
    const auto kernel = in.word();
    int last = -1;
    if (in.take(" nchannels ")) last = in.need<int>() - 1;
    keep_tuning(state, op, bytes, spelled(kernel), "Symmetric", last < 0 ? -1 : 0, last, std::nullopt);
    return true;
  }
  if (!in.take("Algo ")) return in.rest().starts_with("cudaMemcpy") || in.rest().starts_with("RMA");
  const auto algo = in.word();
  if (!in.take(" proto ")) return false;
  const auto proto = in.word();
  const auto algo_number = parse_int<unsigned>(algo);
  const auto proto_number = parse_int<unsigned>(proto);
  std::optional<double> time;
  int first = -1;
  int last = -1;
  if (in.take(" time ")) time = parse_double(in.word());
  if (in.take(" channel{Lo..Hi}={")) {
    first = in.need<int>();
    last = in.expect("..").need<int>();
    if (!in.ok() || first < 0 || last < first || last >= kMaxChannel) return false;
  }
  const auto algorithm = algo_number ? numbered_algorithm(state, *algo_number) : spelled(algo);
  const auto protocol =
      proto_number ? (*proto_number < 3 ? kProtocols[*proto_number] : std::string_view{}) : spelled(proto);
  if (algorithm.empty() || protocol.empty()) return false;
  keep_tuning(state, op, bytes, algorithm, protocol, first, last, time);
  return true;
}

}  // namespace

bool tuning_line(State& state, std::string_view message) {
  Cursor in(message);
  int op = 0;
  if (!message.empty() && !is_digit(message.front())) {
    const auto name = in.until(": ");
    if (!is_operation(name)) return false;
    if (in.take(" [") && !in.skip_past("]")) return false;
    if (!in.take(": ")) return false;
    op = state.ops.id(name);
  }
  const auto bytes = in.need<std::uint64_t>();
  if (!in.expect(" Bytes -> ").ok()) return false;
  // Up to 2.22 the line does not name its operation: it follows that of its thread.
  if (op == 0)
    if (const auto* site = state.here(); site != nullptr && site->last_bytes == bytes) op = site->last_op;
  return choice(state, op, bytes, in);
}

}  // namespace topotune::parse::log
