#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/nccl_log.h"
#include "parse/nccl_log_heads.h"
#include "parse/nccl_log_prefix.h"
#include "parse/nccl_log_table.h"

// What the parser remembers between lines. Everything here is bounded by ranks x channels or by a stated
// limit.
namespace topotune::parse::log {

inline constexpr int kMaxRank = 1 << 20;
inline constexpr int kMaxChannel = 1024;
inline constexpr std::size_t kMaxSites = 1U << 18U;
inline constexpr std::size_t kMaxInstances = 1U << 19U;
inline constexpr int kRecentInstances = 256;  // of one site, where a pointer is looked for
inline constexpr std::size_t kMaxShapes = 8192;
inline constexpr std::size_t kMaxEdges = std::size_t{1} << 22U;
inline constexpr std::size_t kMaxBrackets = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxProblems = 4096;
inline constexpr std::size_t kMaxTexts = 64;  // different texts of one kind of note
inline constexpr std::size_t kMaxSteps = 100000;
inline constexpr std::size_t kMaxCounters = std::size_t{1} << 26U;  // of calls by shape and rank

inline std::uint64_t mix(std::uint64_t h) {
  h ^= h >> 31U;
  h *= 0x9e3779b97f4a7c15ULL;
  return h ^ (h >> 29U);
}

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
template <class T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

// Short names (operations, transports, algorithms, hosts) as numbers. Full: the number of "".
class Names {
 public:
  Names() { id(""); }
  int id(std::string_view name);
  const std::string& operator[](int id) const { return names_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
  StringMap<int> ids_;
};

// Where connection, ring and tree lines of one rank of one communicator are put.
struct Scope {
  int site = -1;
  int instance = -1;  // -1: no line has told yet which communicator this is
  int me = -1;        // the rank that prints these lines
  struct Tree {
    int channel, rank, up;
    std::array<int, 8> down;
    int downs;
  };
  struct Link {
    int channel, prev, me, next;
  };
  struct Ring {
    int channel;
    bool cut;
    std::vector<int> ranks;
  };
  std::vector<Tree> trees;
  std::vector<Link> links;
  std::vector<Ring> rings;
  int bracket_from = -1, bracket_to = -1;  // ranks whose brackets were kept last
  int ring_channels = 0;                   // NN of "Channel 00/NN :"
};

// A line of topotune's tuner plugin about a communicator that is being made.
struct TunerLine {
  int site = -1, instance = -1;  // -1: no line has told which communicator it is
  bool cut = false;
  std::string text;
  model::LogLine at;
};

// One rank's handle of one communicator.
struct Instance {
  int site = -1, scope = -1;
  std::optional<std::uint64_t> pointer, comm_id, parent;
  int rank = -1, nranks = -1;
  int gpu = -1, nvml = -1;
  std::optional<std::uint64_t> bus_id;
  int nnodes = -1, channels = -1, p2p_channels = -1, nvls_channels = -1, collnet_channels = -1;
  bool mnnvl = false, initialised = false, finished = false;
  double init_seconds = -1;
  std::optional<std::uint64_t> last_number;
  int last_shape = -1;
  bool began = false;  // its first line was read
  bool tuner_answered = false;
  bool follows = false;  // another rank's calls make the timeline
};

// One (host, process, device) of the log: what a prefix names.
struct Site {
  int host = 0, pid = -1, dev = -1;
  std::uint64_t records = 0;  // taken apart
  int current = -1;           // the communicator that this site last spoke of
  int pending = -1;           // scope whose communicator is not yet told
  std::vector<int> instances;
  std::string cpus;
  std::vector<std::string> addresses;  // "eth0:10.0.0.2" of the bootstrap and of sockets
  int version = -1;                    // index into State::versions
  int rank_hint = -1;                  // from the nccl-tests header
  std::string gpu_name;
  std::string bdf_hint;
  // The last collective, for tuning lines that do not name theirs.
  int last_op = 0;
  std::uint64_t last_bytes = 0;
  int last_head = -1;  // that counted calls of which the fields above do not know yet
  // What topotune's tuner plugin said to collectives.
  int tuner_in_use = 0;
  std::string tuner_off;
  model::LogLine tuner_at;
  // Problem whose unwinding ("-> 3") is being printed.
  int problem = -1;
};

struct EdgeKey {
  std::uint32_t scope, src, dst;
  std::uint16_t transport, channel;  // channel: of network connections, else 0
  std::uint16_t connection;
  bool operator==(const EdgeKey&) const = default;
};
struct EdgeHash {
  std::size_t operator()(const EdgeKey& k) const {
    const auto a = mix((std::uint64_t{k.scope} << 32U) ^ k.src);
    return mix(a ^ (std::uint64_t{k.dst} << 32U) ^ (std::uint64_t{k.transport} << 20U) ^
               (std::uint64_t{k.channel} << 4U) ^ k.connection);
  }
};

// Channels of one pair over one transport.
class ChannelSet {
 public:
  void add(int channel);
  void add(const ChannelSet& other);
  int count() const;
  bool contains(int channel) const;

 private:
  std::array<std::uint64_t, 2> low_{};  // channels 0-127: NCCL has at most 64, RCCL 128
  std::vector<std::uint64_t> high_;
};

struct LocalEdge {
  ChannelSet channels;
  model::LogLine at;
};

// One network connection as one side tells it.
struct NetSide {
  std::int32_t device = -1, proxy = -1;
  std::int8_t gdr = -1;
  model::LogLine at;
};
struct NetConnection {
  NetSide send, receive;
  bool sent = false, received = false;
};

struct ShapeKey {
  std::uint64_t count;
  std::uint32_t op, datatype;
  bool operator==(const ShapeKey&) const = default;
};
struct ShapeHash {
  std::size_t operator()(const ShapeKey& k) const {
    return mix(k.count ^ (std::uint64_t{k.op} << 48U) ^ (std::uint64_t{k.datatype} << 40U));
  }
};

// What the middle of a call's line says, " count 16 datatype 7 op 0 root 0 comm ", once it was taken apart.
struct KnownCall {
  std::array<char, 32> op{};
  std::array<char, 88> middle{};
  std::uint8_t op_length = 0, middle_length = 0;
  bool to_peer = false;  // Send or Recv: `root` is the peer
  std::int32_t shape = -1;
  std::uint64_t root = 0, bytes = 0;

  bool is(std::string_view name, std::string_view text) const {
    return name.size() == op_length && text.size() == middle_length &&
           std::memcmp(op.data(), name.data(), op_length) == 0 &&
           std::memcmp(middle.data(), text.data(), middle_length) == 0;
  }
};

struct TuningKey {
  std::uint64_t bytes;
  int op, algorithm, protocol, first, last;
  auto operator<=>(const TuningKey&) const = default;
};

struct PeerKey {
  std::uint32_t instance, peer;
  bool operator==(const PeerKey&) const = default;
};
struct PeerHash {
  std::size_t operator()(const PeerKey& k) const { return mix((std::uint64_t{k.instance} << 32U) | k.peer); }
};

// What stands in brackets behind a rank: "7", "1a000".
struct Bracket {
  std::array<char, 10> text{};
  std::uint8_t length = 0;
  std::string_view view() const { return {text.data(), length}; }
};
struct RankKey {
  std::uint32_t scope, rank;
  bool operator==(const RankKey&) const = default;
};
struct RankHash {
  std::size_t operator()(const RankKey& k) const { return mix((std::uint64_t{k.scope} << 32U) | k.rank); }
};

struct RunningTimeline {
  int instance = -1;
  std::vector<model::LogStep> steps;
};

struct SeenVersion {
  model::VersionSeen seen;
  std::string suffix;
  std::set<int> hosts;
};

struct State {
  model::NcclLog log;  // filled directly where a line stands for itself
  KnownHosts known_hosts;
  Names hosts, ops, transports, algorithms, protocols;
  std::vector<Site> sites;
  HeadCache heads;
  StringMap<int> site_ids;  // "host\0pid\0dev"
  std::vector<Instance> instances;
  std::vector<Scope> scopes;
  Table<EdgeKey, LocalEdge, EdgeHash> edges;
  Table<EdgeKey, NetConnection, EdgeHash> net;
  std::vector<ShapeKey> shapes;
  std::vector<std::vector<std::uint32_t>> calls;  // by shape, then by instance
  std::size_t counters = 0;                       // in `calls`
  std::uint32_t epoch = 0;                        // counts lines that may give a pointer another meaning
  // The last operation and shape: the ranks print the same one after another.
  struct LastCall {
    std::string op;
    int op_id = 0, shape = -1;
    ShapeKey key{};
  } last_call;
  std::vector<KnownCall> known_calls;  // by the hash of their text; a later one takes an earlier one's place
  std::unordered_map<ShapeKey, int, ShapeHash> shape_ids;
  std::vector<int> type_ids;  // names of the datatypes, by number
  std::uint64_t collectives_left_out = 0;
  std::unordered_map<std::uint64_t, RunningTimeline> timelines;  // by communicator (id, else size)
  std::size_t steps = 0;
  Table<PeerKey, std::uint64_t, PeerHash> sent, received;  // bytes of Send and Recv
  std::map<TuningKey, model::LogTuning> tuning;
  std::vector<SeenVersion> versions;
  StringMap<int> problem_ids, setting_ids;
  std::array<StringMap<int>, 64> note_ids;      // by kind; values index log.notes
  StringMap<std::uint64_t> networks;            // "Using network X"
  StringMap<std::vector<std::string>> devices;  // "NET/X : Using [0]a [1]b"
  std::unordered_map<std::string, bool> hca_gdr;
  std::set<std::string> plugins, tuners;
  std::vector<TunerLine> tuner_lines;
  std::optional<int> bracket_bus_ids;  // 1: brackets hold PCI bus ids, 0: device indices, by version
  bool bracket_hex_seen = false;
  Table<RankKey, Bracket, RankHash> bracket_of_rank;
  struct Called {
    std::uint64_t number;
    int shape, instance;
    model::LogLine at;
  };
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Called>> calls_by_number;
  std::set<std::uint64_t> numbers_unusable;  // communicators whose opCount does not count calls
  bool graph_taken = false;
  int graph_site = -1;
  std::vector<std::pair<int, std::string>> graph_stack;  // indent and name of the nodes above the next line
  bool rccl_words = false, nccl_words = false;
  int header_ranks = 0;                                                // ranks in the nccl-tests header
  std::map<std::pair<int, std::uint64_t>, model::TimedOut> timed_out;  // by rank and number

  model::LogLine at;  // of the current line
  int site = -1;      // of the current record; -1 unknown
  std::string_view time;
  bool unterminated = false;  // the input's last line, without an end: it may be cut anywhere

  // The current record is of this site.
  void enter(int where) {
    site = where;
    if (where >= 0) ++sites[static_cast<std::size_t>(where)].records;
    if (where >= 0 && sites[static_cast<std::size_t>(where)].last_head >= 0) catch_up();
  }
  void catch_up();
  Site* here() { return site < 0 ? nullptr : &sites[static_cast<std::size_t>(site)]; }
  Instance* current_instance() {
    auto* s = here();
    return s == nullptr || s->current < 0 ? nullptr : &instances[static_cast<std::size_t>(s->current)];
  }
};

int site_of(State& state, const LogRecord& record);
// A stand-in for the unknown process of a rank, where lines have lost their prefix.
int site_of_bare_rank(State& state, int rank);
// The scope for connection lines of the current site; `init` when the line belongs to an initialisation.
Scope* scope_here(State& state, bool init);
int new_scope(State& state, int site);
void note(State& state, model::NoteKind kind, std::string_view subject, std::string_view text);
void setting(State& state, std::string_view name, std::string_view value, model::SettingBy by);
void saw_version(State& state, std::string_view library, std::string_view text);
std::string bdf_of_bus_id(std::uint64_t bus_id);

// Understands one INFO message (nccl_log_lines.cc). False: nothing known fits.
bool understand(State& state, const LogRecord& record);
void add_problem(State& state, const LogRecord& record);
// "AllReduce: opCount …" and "AllReduce: N Bytes -> Algo …" (nccl_log_coll.cc).
bool collective_line(State& state, std::string_view message);
// The message of a line with a known head is nothing but a collective; false: it has to be taken apart.
bool collective_by_head(State& state, int head, std::string_view message);
bool tuning_line(State& state, std::string_view message);
// Lines of other programs that help: nccl-tests, PyTorch, RCCL's continuation lines (nccl_log_foreign.cc).
void foreign_line(State& state, std::string_view line);
// The joined log (nccl_log_merge.cc).
model::NcclLog merge(const State& state);

}  // namespace topotune::parse::log
