#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What an NCCL or RCCL debug log says, once its lines are joined. Fields as in `topotune.nccl-log/1`
// (docs/formats/nccl-log.md). Unknown is nullopt.
namespace topotune::model {

// Where a statement stands: lines count from 1 within their file.
struct LogLine {
  int file = 0;  // index into NcclLog::files
  std::uint64_t line = 0;
};

struct LogRank {
  int rank = 0;
  std::optional<std::string> host;
  std::optional<int> pid;
  std::optional<int> gpu;   // CUDA device index
  std::optional<int> nvml;  // NVML index
  std::optional<std::string> bdf, cpus, gpu_name;
  int communicator = 0;  // index into NcclLog::communicators
};

struct LogCommunicator {
  std::optional<std::string> id;  // "0x…": the commId
  std::optional<int> nranks, nnodes, channels, p2p_channels, nvls_channels, collnet_channels;
  std::optional<int> parent;  // index: the ranks are numbered within this one, and are part of that one
  // Its ranks' numbers in the main communicator, by own number; empty: the numbers are the same, or not
  // known.
  std::vector<int> in_main;
  bool nnodes_by_names = false;  // NCCL's own number is not in the log
  int ranks_seen = 0;
  bool finished = false;  // a rank printed that it was destroyed or aborted
  bool mnnvl = false;
  std::optional<double> init_seconds;  // slowest rank
};

enum class SettingBy { environment, config, plugin, defaults };
const char* name_of(SettingBy by);

// "bfloat16" for 9; "unknown" beyond the table (nccl.h, ncclDataType_t).
std::string_view datatype_name(unsigned number);
std::optional<std::uint64_t> datatype_bytes(std::string_view name);
// The size that nccl-tests gives an operation: the whole buffer, so count x ranks for gathers, scatters and
// all-to-all (whose count argument is per rank). Nothing when the type or a needed number of ranks is
// unknown.
std::optional<std::uint64_t> call_bytes(std::string_view op, std::string_view datatype, std::uint64_t count,
                                        std::optional<int> nranks);

struct LogSetting {
  std::string name, value;
  SettingBy by = SettingBy::environment;
  std::uint64_t count = 0;
  LogLine at;
  std::string host;  // of the first that printed it; "" unknown
};

struct LogNet {
  std::optional<std::string> used;  // "IB", "Socket", "AWS Libfabric"
  std::vector<std::string> plugins;
  std::vector<std::string> devices;  // of the network used
  std::optional<bool> gdr;
  std::vector<std::string> ib_devices;  // "mlx5_0:1/IB" as printed after "NET/IB : Using"
  std::vector<std::string> sockets;     // "eth0:10.0.0.2<0>"
  std::vector<std::string> bootstrap;   // interfaces of the bootstrap, as printed
};

// One (source, destination, transport, device): what the connection lines add up to.
struct LogEdge {
  int src = 0, dst = 0;
  std::string transport;  // "P2P/CUMEM", "SHM/direct/direct", "NET/IB", "COLLNET/…"
  int channels = 0;       // distinct channel numbers
  std::optional<bool> gdr, gdr_send, gdr_receive;
  std::optional<int> device, peer_device, proxy_rank;
  std::optional<int> communicator;  // set where the numbers are not those of the main communicator
  LogLine at;
};

struct LogRing {
  std::vector<int> ranks;
  std::vector<int> channels;
  int communicator = 0;
};

struct LogTree {
  int channel = 0, rank = 0;
  std::optional<int> up;
  std::vector<int> down;
  int communicator = 0;
};

struct LogTuning {
  std::optional<std::string> op;
  std::uint64_t bytes = 0;
  std::string algorithm, protocol;
  std::optional<int> first_channel, last_channel;
  std::optional<double> microseconds;  // NCCL's own estimate (up to 2.23)
  std::uint64_t count = 0;
};

struct LogCollective {
  std::string op, datatype;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> bytes;
  std::uint64_t calls = 0;
  std::optional<int> root;
  int communicator = 0;
  bool estimated = false;  // how the calls of about one size share: not all events were left
};

// Bytes that the ranks of one communicator sent to each other.
struct LogTraffic {
  int communicator = 0;              // index into NcclLog::communicators
  std::optional<std::string> basis;  // "modelled", "measured"
  std::string why;                   // without a basis: why nothing is known
  bool partial = false;              // pairs that are not listed are unknown; else they sent nothing
  std::vector<std::pair<std::pair<int, int>, std::uint64_t>> bytes;  // (source, destination)
  std::uint64_t foreign = 0;  // sent for ranks of other processes (PXN): missing in `bytes`
};

// One step of a communicator's first rank: equal neighbours are one entry.
struct LogStep {
  int communicator = 0;
  std::string op, datatype;
  std::uint64_t count = 0, times = 1;
  LogLine at;
  std::string time;  // the line's time stamp; "" none
};

struct LogProblem {
  LogLine at;
  std::string text;  // without prefix
  std::uint64_t count = 1;
  std::optional<int> rank;
  std::optional<std::string> host;
  std::string source;  // "transport/net_ib.cc:94"
  std::string time;
  std::vector<std::string> unwound;  // "init.cc:1157 -> 1": the calls that returned the error
  bool returned = false;             // to the program: its call failed
  std::string harmless;              // why it changes nothing; "" it may
};

// INFO statements that rules judge. Equal ones are one entry.
enum class NoteKind {
  no_ib_device,     // NET/IB : No device found.
  ibverbs_missing,  // Failed to open libibverbs (INFO)
  gdr_hca_off,      // subject: NIC; detail: reason
  gdr_hca_on,
  gdr_distance_off,  // "GPU Direct RDMA Disabled for GPU … (distance 8 > 5)"
  gdr_distance_on,
  p2p_refused,   // P2P not supported / could not be enabled / disabled between GPUs
  p2p_all_cuda,  // "Check P2P Type isAllDirectP2p 0 … isAllCudaP2p 1"
  nvls_unavailable,
  nvls_available,
  no_nvls_channels,
  simple_order,  // no path for a pattern
  graph_pattern_poor,
  link_speed_unknown,  // dictionary fallback
  topo_file_missing,
  topo_file_loaded,
  plugin_missing,  // subject: "NET", "TUNER", …
  plugin_failed,
  plugin_loaded,
  provider_missing,  // aws-ofi: no provider
  mlx5_symbols,
  affinity_empty,
  async_event,
  shm_fallback,  // cuMem host allocations fall back to /dev/shm
  conn_retry,    // connect retried
  one_channel,   // coll channels
  watchdog,      // PyTorch: a collective timed out
  aborted,
  ras_mismatch,
  ras_status,
  git_version,
  ofi_gdr_off,
};

struct LogNote {
  NoteKind kind = NoteKind::no_ib_device;
  std::string subject, text;
  std::uint64_t count = 0;
  LogLine at;
  std::string host;
  std::optional<int> rank, gpu;
};

struct GraphPattern {
  int pattern = 0, channels = 0;
  std::optional<int> cross_nic;
  double bw_intra = 0, bw_inter = 0;  // GB/s a channel
  std::string type_intra, type_inter;
  bool same_channels = false;
};

// A line of NCCL's printed topology: the node and the link that leads to it.
struct GraphLink {
  std::string from, type, to;  // "CPU/0", "PCI", "GPU/18000"
  double gbytes_per_s = 0;
  std::optional<int> rank;  // of a GPU
  LogLine at;
};

struct GraphPath {
  std::string from, to, type;
  int hops = 0;
  double gbytes_per_s = 0;
};

struct LogGraph {
  std::optional<double> max_bw, total_bw;
  std::string host;
  std::vector<GraphPattern> patterns;
  std::vector<GraphLink> links;
  std::vector<GraphPath> paths;
};

// Counts of one collective in an NCCL RAS report.
struct RasCount {
  std::string group;  // "#0-0 (fa93daea854b060b)"
  std::string op;
  std::uint64_t ranks = 0;
  std::optional<std::uint64_t> operation;  // last one launched; nullopt: none
  std::vector<int> named;                  // ranks that the report names
  LogLine at;
};

// PyTorch: a rank waited for a collective until the watchdog ended it.
struct TimedOut {
  int rank = 0;
  std::string group;  // "PG 1"; "" the lines do not tell
  std::uint64_t number = 0;
  std::string op, sizes;  // "ALLREDUCE", "NumelIn=64, NumelOut=128"; "" the lines do not tell
  LogLine at;
};

struct VersionSeen {
  std::string library, version, cuda;
  std::uint64_t count = 0;
  LogLine at;
  std::vector<std::string> hosts;
};

// Ranks of one communicator that printed different collectives under one number.
struct CallMismatch {
  int communicator = 0;
  std::uint64_t number = 0;  // opCount
  std::string first, second;
  std::optional<int> first_rank, second_rank;
  LogLine at;
};

// What topotune's tuner plugin said to one rank when its communicator was made ("topotune tuner: …").
struct TunerAnswer {
  enum class Kind {
    none,
    table,
    nothing,
    off,
    cut
  };  // nothing: the table is for communicators of other sizes
  Kind kind = Kind::none;
  std::string text;                       // behind "topotune tuner: "
  std::string hash;                       // of a table
  int nranks = 0, nnodes = 0;             // as the line has them; 0: it does not
  std::optional<int> communicator, rank;  // index; nothing: no line names it
  bool made = false;                      // the communicator was complete for this rank
  std::string host;
  std::optional<int> pid;
  LogLine at;
};

// "in use" and "off" of a process whose collectives asked the plugin.
struct TunerAsked {
  std::string host;
  std::optional<int> pid;
  int in_use = 0;   // communicators and ranks, one line each
  std::string off;  // why not; "" never said
  LogLine at;
};

struct LogTuner {
  std::vector<TunerAnswer> answers;  // with those of kind none only where the plugin spoke at all
  std::vector<TunerAsked> asked;
  std::vector<std::string> loaded;     // tuner plugins, as NCCL names them
  std::optional<std::string> env_off;  // "topotune env: off: …"
  LogLine env_at;
  bool missing = false;  // NCCL says that it found no tuner plugin
  bool made = false;     // a communicator was complete
};

// What settings cost: the same command with and without them.
struct LogCost {
  std::vector<std::string> settings;  // "NCCL_P2P_DISABLE=1"
  std::uint64_t bytes = 0;            // size at which the bandwidths were measured: the largest of both runs
  std::optional<double> with_gbytes_per_s, without_gbytes_per_s;  // bus bandwidth
  std::optional<double> with_seconds, without_seconds;            // the whole command
};

inline constexpr int kDenseMatrix = 512;  // ranks; beyond, only the pairs that exchange bytes are written

struct NcclLog {
  std::string kind = "nccl-log";  // or "nccl-ras"
  std::vector<std::string> files;
  std::optional<std::string> library, version, version_suffix, cuda, hip, rocm, cuda_driver;
  std::uint64_t lines = 0, library_lines = 0, unrecognised = 0;
  std::uint64_t glued = 0;     // records that shared a line with others
  std::uint64_t cut = 0;       // understood in part only
  std::uint64_t overlong = 0;  // lines whose end was not read
  std::vector<std::string> unrecognised_samples;
  std::vector<LogRank> ranks;
  std::vector<LogCommunicator> communicators;
  std::vector<LogSetting> env;
  LogNet net;
  std::vector<LogEdge> edges;
  std::map<std::string, std::uint64_t> transports;
  std::vector<LogRing> rings;
  std::vector<LogTree> trees;
  std::vector<LogTuning> tuning;
  std::vector<LogCollective> collectives;
  std::vector<LogStep> timeline;
  bool timeline_complete = true;
  std::vector<LogProblem> problems;
  std::uint64_t problems_left_out = 0;
  std::vector<LogNote> notes;
  LogTuner tuner;
  LogGraph graph;
  std::vector<VersionSeen> versions;
  bool versions_differ_in_job = false;  // ranks of one communicator
  std::vector<CallMismatch> mismatches;
  std::vector<RasCount> ras;
  std::vector<TimedOut> timed_out;
  std::vector<std::string> hosts;
  // Host names that several machines bear; false: as it may be.
  std::map<std::string, bool> shared_names;
  std::vector<std::string> gpu_names;      // of the nccl-tests header
  bool benchmark = false;                  // nccl-tests output is in the log
  std::optional<double> bus_gbytes_per_s;  // "Avg bus bandwidth" of nccl-tests
  // The best bus bandwidth of a row of nccl-tests, and its size in bytes.
  std::optional<double> peak_bus_gbytes_per_s;
  std::uint64_t peak_bus_bytes = 0;
  std::map<std::uint64_t, double> bus_by_size;  // GB/s, the best of each size in bytes
  std::uint64_t bus_sizes_left_out = 0;
  std::optional<double> wall_seconds;  // of the command that `log --run` started
  std::vector<LogCost> costs;          // of settings, where a run without them was measured too
  // bytes that each rank sends to each other, modelled from collectives, rings and trees; (source,
  // destination)
  std::vector<std::pair<std::pair<int, int>, std::uint64_t>> traffic;
  std::optional<std::string> traffic_basis;  // "modelled", "measured"
  // Of a profile: one for each communicator; `traffic` is that of `traffic_shown`.
  std::vector<LogTraffic> traffics;
  std::optional<std::size_t> traffic_shown;
  // Algorithms that moved collectives which `traffic` does not hold: their pairs do not follow from the log.
  std::set<std::string> traffic_without;
  // Ranks that talk to the CollNet switch: (communicator, rank within it).
  std::set<std::pair<int, int>> collnet_heads;
  int main_ranks = 0;  // size of the main communicator; 0 unknown

  const LogNote* find(NoteKind wanted) const {
    for (const auto& note : notes)
      if (note.kind == wanted) return &note;
    return nullptr;
  }
};

}  // namespace topotune::model
