#include "parse/nccl_log_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "parse/nccl_log_scan.h"

// Which function understands which line: by the first words. NCCL's own words are in its source (INFO calls
// of src/**, 2.2 to 2.30) and in RCCL's; a head without a function is known and holds nothing that is kept.
namespace topotune::parse::log {
namespace {

using Understand = bool (*)(State&, std::string_view);
struct Words {
  std::string_view word;
  Understand understand;
};

bool known(State&, std::string_view) { return true; }

constexpr Words kHeads[] = {
    // Identity and start
    {"NCCL version", version_line},
    {"RCCL version", version_line},
    {"NCCL git version", version_line},
    {"comm ", communicator_line},
    {"[Rank ", communicator_line},
    {"ncclComm", communicator_line},
    {"bootstrapSplit", known},
    {"Init timings", init_timings},
    {"cudaDriverVersion", driver_version},
    {"Setting affinity for GPU", affinity_mask},
    {"ncclTopoGetCpuAffinity: Affinity", affinity_list},
    {"Comm config", config_setting},
    {"Init CE", known},
    {"Init START", known},
    {"Bootstrap timings", known},
    {"Bootstrap : ", bootstrap_line},
    {"Bootstrap: ", bootstrap_line},
    {"Bootstrap", known},
    {"NCCL_", environment_setting},
    {"RCCL_", environment_setting},
    {"HSA_", environment_setting},
    {"OFI_", environment_setting},
    {"FI_", environment_setting},
    {"UCX_", environment_setting},
    {"CUDA_VISIBLE", environment_setting},
    {"SHARP_", environment_setting},
    {"GDRCOPY", known},
    // Connections, rings, trees
    {"Channel ", channel_line},
    {"Ring ", ring_line},
    {"Tree ", tree_line},
    {"Trees", trees_line},
    {"CollNet ", collnet_line},
    {"Coll ", collnet_line},
    {"BinTrees", known},
    {"[RINGS]", known},
    {"Connected", known},
    {"Connection to proxy", known},
    {"New proxy", known},
    // Network, plugins, GPUDirect
    {"NET/", network_line},
    {"NET : ", bootstrap_line},
    {"NET_IB", known},
    {"Net ", known},
    {"Net:", known},
    {"Using network", using_network},
    {"Using internal Network", using_network},
    {"Using external Network", using_network},
    {"TUNER/", plugin_line},
    {"PROFILER/", plugin_line},
    {"ENV/", plugin_line},
    {"GIN/", plugin_line},
    {"RMA/", plugin_line},
    {"COLLNET/", plugin_line},
    {"Successfully loaded external", plugin_line},
    {"Plugin", known},
    {"External ", known},
    {"Initialized NET plugin", known},
    {"Assigned ", known},
    {"Using tuner plugin", plugin_line},
    {"Tuner: ", known},
    {"topotune ", topotune_line},
    {"Opened tuner", known},
    {"Closing ", known},
    {"Unloading plugin", known},
    {"Disabling external plugins", known},
    {"Failed to initialize NET", remark},
    {"Failed to initialize any NET", remark},
    {"Failed to open libibverbs", remark},
    {"GPU Direct RDMA", gdr_decision},
    {"dlvsym failed on mlx5dv", remark},
    // Why a transport was taken
    {"P2P not supported", remark},
    {"Could not enable P2P", remark},
    {"P2P is disabled", remark},
    {"Check P2P Type", remark},
    {"Could not find a path for pattern", remark},
    {"KV Convert to int", remark},
    {"Could not open XML topology", remark},
    {"Loading topology file", remark},
    {"cuMem host allocations", remark},
    {"NVLS ", nvls_line},
    {"Connected NVLS", known},
    // NCCL's picture of the machine
    {"=== System", graph_line},
    {"=====", graph_line},
    {"+ ", graph_line},
    {"CPU/", graph_line},
    {"GPU/", graph_line},
    {"PCI/", graph_line},
    {"NIC/", graph_line},
    {"NVS/", graph_line},
    {"GIN/", graph_line},
    {"Pattern ", pattern_line},
    {"Paths from", known},
    {"Search ", known},
    // Known, and nothing to keep
    {"Algorithm", known},
    {"Protocol", known},
    {"Max NThreads", known},
    {"Latency/AlgBw", known},
    {"Broadcast |", known},
    {"Reduce |", known},
    {"AllGather |", known},
    {"ReduceScatter |", known},
    {"AllReduce |", known},
    {"Allocated", known},
    {"Attribute ", known},
    {"Adding ", known},
    {"AllToAll", known},
    {"Assuming", known},
    {"Async", known},
    {"ARSMI", known},
    {"Binding", known},
    {"Buffer ", known},
    {"CC ", known},
    {"CPUs with", known},
    {"CTAPolicy", known},
    {"CUDA ", known},
    {"CUMEM", known},
    {"Call to", connection_retry},
    {"Capping", known},
    {"CONFIG_", known},
    {"Cleanup", known},
    {"Clique", known},
    {"CollNet", known},
    {"Collnet", known},
    {"Comm", known},
    {"Compute Capability", known},
    {"Configuring", known},
    {"Continuing", known},
    {"Could not", known},
    {"Count not", known},
    {"Created", known},
    {"Cross-clique", known},
    {"Cuda ", known},
    {"Current version", known},
    {"DEBUG file", known},
    {"DL", known},
    {"DMA-BUF", known},
    {"DMA_BUF", known},
    {"Data Direct", known},
    {"Destroyed", known},
    {"Detected", known},
    {"Device ", known},
    {"Did not", known},
    {"Direct", known},
    {"Disabling", known},
    {"Dmabuf", known},
    {"Duplicating", known},
    {"ENV", known},
    {"Enabl", known},
    {"Failed to", known},
    {"Found", known},
    {"GDR", known},
    {"GIN", known},
    {"GPU ", known},
    {"Got ", known},
    {"HINT", known},
    {"Host enqueue", known},
    {"IPC", known},
    {"Ib Alloc", known},
    {"Ignoring", known},
    {"Imported", known},
    {"Initialized", known},
    {"Inserted", known},
    {"Inspector", known},
    {"Intrusive", known},
    {"Invalid", known},
    {"Kernel version", known},
    {"LL128", known},
    {"LSA", known},
    {"Last reference", known},
    {"Launch mode", known},
    {"Legacy IPC", known},
    {"Limiting", known},
    {"Loaded", known},
    {"Loading", known},
    {"Local ", known},
    {"MMAP", known},
    {"MNNVL", known},
    {"MSCCL", known},
    {"Made ", known},
    {"Marking", known},
    {"Max ", known},
    {"Mem ", known},
    {"MemManager", known},
    {"Message Queue", known},
    {"Min Comp", known},
    {"Multi", known},
    {"NCCL Inspector", known},
    {"NCCL did", known},
    {"NIC ", known},
    {"NVLink", known},
    {"NVLS", known},
    {"No ", known},
    {"Not ", known},
    {"Number of", known},
    {"P2P", known},
    {"PARAM", known},
    {"PXN", known},
    {"Parsed", known},
    {"Peer ", known},
    {"Profiler", known},
    {"Proxy", known},
    {"Queing", known},
    {"Queuing", known},
    {"RAS ", known},
    {"RCCL", known},
    {"RMA", known},
    {"ROC", known},
    {"ROCr", known},
    {"Rank ", known},
    {"Received and", known},
    {"Recv ", known},
    {"ReduceScatter_", known},
    {"Register", known},
    {"Retrieving", known},
    {"SHM", known},
    {"Send ", known},
    {"Set ", known},
    {"Setting", plugin_setting},
    {"Skipping", known},
    {"Socket", known},
    {"Stack size", known},
    {"SymCheck", known},
    {"Symmetric", known},
    {"TOPO/", known},
    {"Thread", known},
    {"Topology", known},
    {"Tuning", known},
    {"UDS", known},
    {"Unable", known},
    {"Unexpected", known},
    {"Unknown", known},
    {"Unlinking", known},
    {"Use ", known},
    {"User asked", known},
    {"Using", known},
    {"WSA", known},
    {"Warning", known},
    {"Widening", known},
    {"XML", known},
    {"[Proxy", known},
    {"[Service", known},
    {"[rocprofiler", known},
    {"[node_id", known},
    {"[WARN]", known},
    {"[RCCL", known},
    {"[Async", known},
    {"algo ", known},
    {"collnetEnable", known},
    {"cuMem", known},
    {"devCommCreate", known},
    {"dlsym", known},
    {"dlvsym", known},
    {"failed to", known},
    {"fallocate", known},
    {"gin", known},
    {"hip", known},
    {"hsa_", known},
    {"initialized", known},
    {"latencyinter", known},
    {"maxCTAs", known},
    {"minCTAs", known},
    {"mkstemp", known},
    {"mscclpp", known},
    {"msccl", known},
    {"ncclOsSocket", connection_retry},
    {"nccl", known},
    {"nranks ", known},
    {"nvlsCTAs", known},
    {"nvml", known},
    {"peer query", known},
    {"proxy", known},
    {"rank ", known},
    {"recv", known},
    {"register", known},
    {"resp.opId", known},
    {"rocm_smi", known},
    {"rsmi", known},
    {"scheduleRma", known},
    {"send", known},
    {"socket", connection_retry},
    {"splitShare", known},
    {"stream is", known},
    {"threadThresholds", known},
    {"timings", known},
    {"tuner", known},
    {"unlink", known},
    {"opCount", known},
    {"CE ", known},
    {"Symm", known},
    {"Net", known},
    {"NET", known},
    {"SYS", known},
    {"Rail", known},
    {"Sharp", known},
    {"SHARP", known},
    {"UCX", known},
    {"P2p", known},
    {"IB ", known},
    {"Mlx5", known},
    {"mlx5", known},
    {"Graph", known},
    {"graph", known},
    {"Mapped", known},
    {"Reg", known},
    {"TREES", known},
    {"Env", known},
    {"Revoke", known},
    {"Abort", known},
    {"CollTrace", known},
    {"CTRAN", known},
    {"CommDump", known},
    {"ncclx", known},
    {"Trees", known},
    {"Dropping", known},
    {"- ", known}};

// The table's entries that may fit a message, by its first eight characters: found once for each of them.
class HeadIndex {
 public:
  HeadIndex() : kept_(kSlots) {
    for (const auto& head : kHeads) by_first_[static_cast<unsigned char>(head.word.front())].push_back(&head);
  }

  // The first entry of the table that `text` begins with; null: none.
  const Words* find(std::string_view text) {
    const auto& all = by_first_[static_cast<unsigned char>(text.front())];
    if (text.size() < kKey) return first_of(all, text);
    std::uint64_t key;
    std::memcpy(&key, text.data(), kKey);
    auto& slot = kept_[mix(key) % kSlots];
    if (slot.key != key) {  // another text may have been here: the last one stays
      slot.key = key;
      slot.heads.clear();
      for (const auto* head : all)
        if (text.substr(0, kKey).starts_with(head->word.substr(0, kKey))) slot.heads.push_back(head);
    }
    return first_of(slot.heads, text);
  }

 private:
  static constexpr std::size_t kKey = 8, kSlots = 1024;
  struct Slot {
    std::uint64_t key = 0;
    std::vector<const Words*> heads;
  };

  static const Words* first_of(const std::vector<const Words*>& heads, std::string_view text) {
    const auto found =
        std::ranges::find_if(heads, [&](const Words* head) { return text.starts_with(head->word); });
    return found == heads.end() ? nullptr : *found;
  }

  std::array<std::vector<const Words*>, 256> by_first_;
  std::vector<Slot> kept_;
};

// An error that was returned although no warning tells of it: some calls print none, and excerpts lose it.
int problem_without_warning(State& state, int code) {
  static constexpr const char* kNames[] = {"success",        "unhandled CUDA error", "system error",
                                           "internal error", "invalid argument",     "invalid usage",
                                           "remote error"};
  if (code < 1 || code >= static_cast<int>(std::size(kNames))) return -1;  // 7: in progress
  LogRecord record;
  const auto text = fmt::format("returned {} ({}) without a warning", code, kNames[code]);
  record.message = text;
  record.time = state.time;
  const auto known = state.problem_ids.find(text);
  if (known == state.problem_ids.end() || state.here() != nullptr) add_problem(state, record);
  const auto found = state.problem_ids.find(text);
  return found == state.problem_ids.end() ? -1 : found->second;
}

// "transport/net.cc:1302 -> 6 [Progress Thread]": an error on its way out.
bool unwinding(State& state, std::string_view text) {
  const auto place = text.substr(0, text.find(' '));
  Cursor in(text.substr(place.size()));
  if (place.size() > 200 || !in.take(" -> ")) return false;
  const auto colon = place.rfind(':');
  if (colon == std::string_view::npos || !parse_int<int>(place.substr(colon + 1))) return false;
  if (place.find('.') == std::string_view::npos) return false;
  const auto* site = state.here();
  const int known = site == nullptr ? -1 : site->problem;
  const int index = known >= 0 ? known : problem_without_warning(state, in.number<int>().value_or(0));
  if (index < 0) return true;
  auto& unwound = state.log.problems[static_cast<std::size_t>(index)].unwound;
  if (unwound.size() < 16 && std::ranges::find(unwound, text) == unwound.end())
    unwound.emplace_back(text.substr(0, 300));
  return true;
}

// "init.cc:2353 Cuda Host Alloc Size 4 pointer 0x…": allocation remarks with their place.
bool with_place(std::string_view text) {
  const auto word = text.substr(0, text.find(' '));
  const auto colon = word.rfind(':');
  return colon != std::string_view::npos && word.find('.') != std::string_view::npos &&
         parse_int<int>(word.substr(colon + 1)).has_value();
}

// Lines of numbers: search results " 0 : GPU/0 GPU/1", matrices of 2.2-2.4, "24 coll channels", "64 Bytes ->
// Algo".
bool number_line(State& state, std::string_view text) {
  if (text.find(" coll channels") != std::string_view::npos) return channel_counts(state, text);
  if (text.find(" Bytes -> ") != std::string_view::npos) return tuning_line(state, text);
  if (text.find("ring(s) set by environment") != std::string_view::npos) return true;
  const auto rest = text.find_first_not_of("0123456789 ");
  if (rest == std::string_view::npos) return true;
  return text.substr(rest).starts_with(": GPU/") || text.substr(rest).starts_with(": NET/") ||
         text.find("->") != std::string_view::npos;
}

// A row of the model's table: "AllReduce |  8.8/ 9.7 | …".
bool table_row(std::string_view text) {
  const auto bar = text.find('|');
  return bar != std::string_view::npos && bar < 24 && text.find('|', bar + 1) != std::string_view::npos;
}

}  // namespace

bool understand(State& state, const LogRecord& record) {
  const auto message = record.message;
  if (collective_line(state, message)) return true;
  const auto start = message.find_first_not_of(" \t");
  if (start == std::string_view::npos) return true;  // an empty statement
  const auto text = message.substr(start);
  if (is_digit(text.front())) return number_line(state, text) || with_place(text);
  if (start > 0 && text.starts_with("+ ")) return graph_indented(state, message);
  if (unwinding(state, text)) return true;
  thread_local HeadIndex index;
  const auto* head = index.find(text);
  if (head != nullptr && head->understand(state, text)) return true;
  const bool fits = head != nullptr;
  if (fits && text.front() != '[' && !text.starts_with("nccl") && !text.starts_with("Setting")) return false;
  return tuning_line(state, text) || with_place(text) || table_row(text) ||
         text.find(" set by environment to ") != std::string_view::npos || fits;
}

void add_problem(State& state, const LogRecord& record) {
  const auto text = trim(record.message).substr(0, 4096);
  if (text.empty()) return;
  const auto found = state.problem_ids.find(text);
  int index = found == state.problem_ids.end() ? -1 : found->second;
  auto* site = state.here();
  if (index >= 0) {
    ++state.log.problems[static_cast<std::size_t>(index)].count;
  } else if (state.log.problems.size() >= kMaxProblems) {
    ++state.log.problems_left_out;
    return;
  } else {
    model::LogProblem made;
    made.at = state.at;
    made.text = std::string(text);
    made.source = std::string(record.source.substr(0, 256));
    made.time = std::string(record.time.substr(0, 64));
    if (site != nullptr) made.host = state.hosts[site->host];
    if (const auto* instance = state.current_instance(); instance != nullptr && instance->rank >= 0)
      made.rank = instance->rank;
    index = static_cast<int>(state.log.problems.size());
    state.log.problems.push_back(std::move(made));
    state.problem_ids.emplace(text, index);
  }
  if (site != nullptr) site->problem = index;
}

}  // namespace topotune::parse::log
