#include <fmt/format.h>

#include <algorithm>
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

// The name, or what is printed where it is new; "" where it can be no name.
std::string_view spelled(std::string_view printed) {
  for (const auto& s : kSpellings)
    if (iequals(s.printed, printed)) return s.name;
  const bool word = printed.size() <= 64 && std::ranges::all_of(printed, [](char c) {
                      return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
                    });
  return word ? printed : std::string_view{};
}

// "LL", "LL128", "Simple"; "" for anything else: the line is cut.
std::string_view protocol_name(std::string_view printed) {
  const auto name = spelled(printed);
  return std::ranges::find(kProtocols, name) == kProtocols.end() ? std::string_view{} : name;
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
  int looked = 0;
  for (auto i = site->instances.rbegin(); i != site->instances.rend() && looked < kRecentInstances;
       ++i, ++looked)
    if (pointer && state.instances[static_cast<std::size_t>(*i)].pointer == pointer)
      return site->current = *i;
  if (!pointer && !site->instances.empty()) return site->instances.back();
  if (state.instances.size() >= kMaxInstances) return -1;
  Instance made;
  made.site = state.site;
  made.pointer = pointer;
  made.nranks = nranks;
  made.initialised = true;
  state.instances.push_back(made);
  const int index = static_cast<int>(state.instances.size() - 1);
  site->instances.push_back(index);
  return site->current = index;
}

int shape_of(State& state, const ShapeKey& key) {
  auto& last = state.last_call;
  if (last.shape >= 0 && last.key == key) return last.shape;
  last.key = key;
  last.shape = -1;
  const auto found = state.shape_ids.find(key);
  if (found != state.shape_ids.end()) return last.shape = found->second;
  if (state.shapes.size() >= kMaxShapes) return -1;
  state.shapes.push_back(key);
  state.shape_ids.emplace(key, static_cast<int>(state.shapes.size() - 1));
  return last.shape = static_cast<int>(state.shapes.size() - 1);
}

int op_id(State& state, std::string_view op) {
  auto& last = state.last_call;
  if (last.op == op) return last.op_id;
  last.op = std::string(op);
  return last.op_id = state.ops.id(op);
}

// Communicators as the timeline and the comparison of calls see them: by commId, else by size.
std::uint64_t family_of(const Instance& instance) {
  return instance.comm_id ? *instance.comm_id : static_cast<std::uint64_t>(instance.nranks + 1);
}

void add_step(State& state, Instance& instance, int index, const ShapeKey& key) {
  auto& line = state.timelines[family_of(instance)];
  if (line.instance < 0) line.instance = index;
  instance.follows = line.instance != index;
  if (instance.follows) return;
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

// Counts one call; false when there are too many counters for another one.
bool add_call(State& state, int shape, int instance) {
  if (state.calls.size() <= static_cast<std::size_t>(shape))
    state.calls.resize(static_cast<std::size_t>(shape) + 1);
  auto& row = state.calls[static_cast<std::size_t>(shape)];
  if (row.size() <= static_cast<std::size_t>(instance)) {
    const auto wanted =
        std::min(std::max<std::size_t>(static_cast<std::size_t>(instance) + 1, 2 * row.size()),
                 std::max<std::size_t>(static_cast<std::size_t>(instance) + 1, state.instances.size()));
    if (state.counters + wanted - row.size() > kMaxCounters) return false;
    state.counters += wanted - row.size();
    row.resize(wanted);
  }
  ++row[static_cast<std::size_t>(instance)];
  return true;
}

void count_shape(State& state, Instance& instance, int index, std::uint64_t number, int shape) {
  if (!add_call(state, shape, index)) {
    ++state.collectives_left_out;
    return;
  }
  if (!instance.follows) add_step(state, instance, index, state.shapes[static_cast<std::size_t>(shape)]);
  if (number != 0 || instance.last_number) compare_calls(state, instance, index, number, shape);
}

void count_call(State& state, Instance& instance, int index, std::uint64_t number, const ShapeKey& key) {
  const int shape = shape_of(state, key);
  if (shape >= 0) return count_shape(state, instance, index, number, shape);
  ++state.collectives_left_out;
  state.log.timeline_complete = false;
}

void count_peer(State& state, int index, std::string_view op, std::uint64_t peer, std::uint64_t bytes) {
  auto& table = op == "Send" ? state.sent : state.received;
  if (table.size() >= (1U << 22U) || peer >= kMaxRank) return;
  table[{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(peer)}] += bytes;
}

// What a COLL line says.
struct Call {
  std::string_view op;
  std::uint64_t number = 0, count = 0, root = 0;
  unsigned type = 0;
  std::optional<std::uint64_t> pointer;
  int nranks = -1;
};

// Digits right here, read without the checks of a full number reader; false without one, or with more
// than 18.
bool digits(std::string_view& text, std::uint64_t& value) {
  std::size_t n = 0;
  value = 0;
  while (n < text.size() && static_cast<unsigned char>(text[n] - '0') < 10)
    value = value * 10 + static_cast<unsigned char>(text[n++] - '0');
  text.remove_prefix(n);
  return n > 0 && n <= 18;
}

unsigned hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  return 16;
}

bool hex(std::string_view& text, std::uint64_t& value) {
  std::size_t n = 0;
  value = 0;
  for (; n < text.size() && hex_value(text[n]) < 16; ++n) value = value << 4U | hex_value(text[n]);
  text.remove_prefix(n);
  return n > 0 && n <= 16;
}

inline bool literal(std::string_view& text, std::string_view word) {
  if (text.size() < word.size() || std::memcmp(text.data(), word.data(), word.size()) != 0) return false;
  text.remove_prefix(word.size());
  return true;
}

// A pointer, mostly; "0x7f0aa8a00000" is looked for first.
inline bool skip_word(std::string_view& text) {
  constexpr std::size_t kPointer = 14;
  if (text.size() > kPointer && text[kPointer] == ' ') {
    text.remove_prefix(kPointer);
    return true;
  }
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos) return false;
  text.remove_prefix(blank);
  return true;
}

// "AllReduce: opCount 0 sendbuff 0x… … [nranks=2] stream 0x…" and not a character more or less.
bool read_whole(std::string_view text, Call& call) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon > 32) return false;
  call.op = text.substr(0, colon);
  text.remove_prefix(colon);
  std::uint64_t number = 0;
  if (!literal(text, ": opCount ") || !hex(text, call.number)) return false;
  if (!literal(text, " sendbuff ") || !skip_word(text) || !literal(text, " recvbuff ") || !skip_word(text))
    return false;
  if (!literal(text, " count ") || !digits(text, call.count) || !literal(text, " datatype ") ||
      !digits(text, number))
    return false;
  call.type = static_cast<unsigned>(std::min<std::uint64_t>(number, 1000));
  if (!literal(text, " op ") || !digits(text, number) || !literal(text, " root ") || !digits(text, call.root))
    return false;
  if (!literal(text, " comm 0x") || !hex(text, number)) return false;
  call.pointer = number;
  if (!literal(text, " [nranks=") || !digits(text, number) || number > static_cast<std::uint64_t>(kMaxRank))
    return false;
  call.nranks = static_cast<int>(number);
  if (!literal(text, "] stream ")) return false;
  if (text == "(nil)") return true;
  return literal(text, "0x") && hex(text, number) && text.empty();
}

void take_call(State& state, const Call& call) {
  const int index = instance_of(state, call.pointer, call.nranks);
  if (index < 0) return;
  auto& instance = state.instances[static_cast<std::size_t>(index)];
  if (instance.nranks < 0) instance.nranks = call.nranks;
  const auto bytes = call.type < kElement.size() ? call.count * kElement[call.type] : 0;
  auto* site = state.here();
  site->last_op = op_id(state, call.op);
  site->last_bytes = bytes;
  if (state.type_ids.empty())
    for (unsigned type = 0; type <= kElement.size(); ++type)
      state.type_ids.push_back(state.ops.id(model::datatype_name(type)));
  const auto type = std::min<std::size_t>(call.type, kElement.size());
  count_call(state, instance, index, call.number,
             {call.count, static_cast<std::uint32_t>(site->last_op),
              static_cast<std::uint32_t>(state.type_ids[type])});
  if (call.op == "Send" || call.op == "Recv") count_peer(state, index, call.op, call.root, bytes);
}

}  // namespace

bool collective_line(State& state, std::string_view message) {
  const auto colon = message.find(':');
  if (colon == std::string_view::npos || colon > 32) return false;
  Cursor in(message.substr(colon));
  if (!in.take(": opCount ")) return false;
  Call call;
  call.op = message.substr(0, colon);
  call.number = in.need<std::uint64_t>(16);
  if (!in.ok() || !is_operation(call.op)) return false;
  if (in.take(" sendbuff ")) in.word();
  if (in.take(" recvbuff ")) in.word();
  // "sendcounts" and "recvcounts" of RCCL's AllToAllv have no single count.
  if (!in.take(" count ")) return in.skip_past(" datatype ");
  call.count = in.need<std::uint64_t>();
  call.type = in.expect(" datatype ").need<unsigned>();
  in.expect(" op ").need<unsigned>();
  call.root = in.expect(" root ").need<std::uint64_t>();
  if (!in.expect(" comm ").ok()) return false;
  call.pointer = in.pointer();
  if (in.take(" [nranks=")) call.nranks = in.need<int>();
  take_call(state, call);
  return true;
}

namespace {

constexpr std::size_t kKnownCalls = 4096;

// The parts of "AllReduce: opCount 0 sendbuff 0x… recvbuff 0x… count 16 datatype 7 op 0 root 0 comm 0x…
// [nranks=2] stream 0x…".
struct Parts {
  std::string_view op, middle;  // "AllReduce", " count 16 … comm "
  std::uint64_t number = 0;
};

// `end`: length of what stands behind " comm ".
bool split_call(std::string_view message, std::size_t end, Parts& parts) {
  const void* colon = std::memchr(message.data(), ':', std::min<std::size_t>(message.size(), 33));
  if (colon == nullptr) return false;
  parts.op = message.substr(0, static_cast<std::size_t>(static_cast<const char*>(colon) - message.data()));
  message.remove_prefix(parts.op.size());
  if (!literal(message, ": opCount ") || !hex(message, parts.number)) return false;
  if (!literal(message, " sendbuff ") || !skip_word(message) || !literal(message, " recvbuff ") ||
      !skip_word(message))
    return false;
  if (message.size() < end) return false;
  parts.middle = message.substr(0, message.size() - end);
  return parts.middle.ends_with(" comm ");
}

KnownCall& known_call(State& state, const Parts& parts) {
  if (state.known_calls.empty()) state.known_calls.resize(kKnownCalls);
  return state.known_calls[(HeadCache::hash_of(parts.middle) ^ HeadCache::hash_of(parts.op)) % kKnownCalls];
}

void remember_call(State& state, Head& head, const Call& call, std::string_view message) {
  const auto* site = state.here();
  head.instance = -1;
  const auto comm = message.rfind(" comm ");
  Parts parts;
  if (state.last_call.shape < 0 || site->current < 0 || comm == std::string_view::npos) return;
  const auto end = message.substr(comm + 6);
  if (end.size() > Head::kLongestEnd || !split_call(message, end.size(), parts)) return;
  auto& known = known_call(state, parts);
  if (parts.op.size() > known.op.size() || parts.middle.size() > known.middle.size()) return;
  std::ranges::copy(parts.op, known.op.begin());
  std::ranges::copy(parts.middle, known.middle.begin());
  known.op_length = static_cast<std::uint8_t>(parts.op.size());
  known.middle_length = static_cast<std::uint8_t>(parts.middle.size());
  known.to_peer = call.op == "Send" || call.op == "Recv";
  known.shape = state.last_call.shape;
  known.root = call.root;
  known.bytes = site->last_bytes;
  head.set_end(end);
  head.instance = site->current;
  head.epoch = state.epoch;
  head.shape = known.shape;
  const auto& instance = state.instances[static_cast<std::size_t>(head.instance)];
  head.plain = instance.follows && !instance.last_number;
}

// A call whose text was taken apart before, by a rank whose communicator and stream are those of its last
// one.
bool repeats_known(State& state, int index, std::string_view message) {
  auto& head = state.heads.at(index);
  if (head.instance < 0 || head.epoch != state.epoch || message.size() < head.end_length ||
      !head.ends(message.substr(message.size() - head.end_length)))
    return false;
  Parts parts;
  if (!split_call(message, head.end_length, parts)) return false;
  const auto& known = known_call(state, parts);
  if (!known.is(parts.op, parts.middle)) return false;
  head.shape = known.shape;
  if (!head.dirty) {
    head.dirty = true;
    state.sites[static_cast<std::size_t>(head.site)].last_head = index;
  }
  if (known.to_peer) count_peer(state, head.instance, parts.op, known.root, known.bytes);
  if (head.plain && parts.number == 0) {
    if (!add_call(state, known.shape, head.instance)) ++state.collectives_left_out;
    return true;
  }
  state.enter(head.site);
  state.time = {};
  auto& instance = state.instances[static_cast<std::size_t>(head.instance)];
  count_shape(state, instance, head.instance, parts.number, known.shape);
  head.plain = instance.follows && !instance.last_number;
  return true;
}

}  // namespace

bool collective_by_head(State& state, int head, std::string_view message) {
  if (message.ends_with('\r')) message.remove_suffix(1);
  if (repeats_known(state, head, message)) return true;
  Call call;
  if (!read_whole(message, call) || !is_operation(call.op)) return false;
  state.enter(state.heads.at(head).site);
  state.time = {};
  take_call(state, call);
  remember_call(state, state.heads.at(head), call, message);
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
  if (!in.blanks().take("proto ")) return false;  // people align the columns of what they quote
  const auto proto = in.word();
  const auto algo_number = parse_int<unsigned>(algo);
  const auto proto_number = parse_int<unsigned>(proto);
  std::optional<double> time;
  int first = -1;
  int last = -1;
  in.blanks();
  if (in.take("time ")) time = parse_double(in.word());
  if (in.blanks().take("channel{Lo..Hi}={")) {
    first = in.need<int>();
    last = in.expect("..").need<int>();
    if (!in.ok() || first < 0 || last < first || last >= kMaxChannel) return false;
  }
  const auto algorithm = algo_number ? numbered_algorithm(state, *algo_number) : spelled(algo);
  const auto protocol = proto_number ? (*proto_number < 3 ? kProtocols[*proto_number] : std::string_view{})
                                     : protocol_name(proto);
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
    if (!in.take(":")) return false;
    op = state.ops.id(name);
  }
  const auto bytes = in.blanks().need<std::uint64_t>();
  if (!in.expect(" Bytes -> ").ok()) return false;
  // Up to 2.22 the line does not name its operation: it follows that of its thread.
  if (op == 0)
    if (const auto* site = state.here(); site != nullptr && site->last_bytes == bytes) op = site->last_op;
  return choice(state, op, bytes, in);
}

}  // namespace topotune::parse::log
