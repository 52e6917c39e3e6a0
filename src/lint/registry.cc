#include "lint/registry.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "data/embedded.h"

namespace topotune::lint {

namespace {

using sv = std::string_view;

// "first tag 2.24.3; ..." -> 2.24.3
std::optional<Version> version_after(sv text, sv words) {
  const auto at = text.find(words);
  if (at == sv::npos) return std::nullopt;
  return parse_version(text.substr(at + words.size()));
}

ValueType type_of(sv name, sv fallback) {
  static constexpr std::array<sv, 8> kText{
      "NCCL_MNNVL_UUID",          "NCCL_SOCKET_MAGIC", "NCCL_NO_CACHE",   "NCCL_PARAM_DUMP_ALL",
      "NCCL_CHECKPOINT_KVS_PATH", "NCCL_SYM_KERNEL",   "NCCL_GRAPH_FILE", "NCCL_HOSTID"};
  if (name == "NCCL_P2P_LEVEL" || name == "NCCL_NET_GDR_LEVEL") return ValueType::level;
  if (std::ranges::find(kText, name) != kText.end()) return ValueType::text;
  const sv first = fallback.substr(0, fallback.find(' '));
  const sv digits = first.starts_with('-') ? first.substr(1) : first;
  if (parse_int<long long>(digits)) return ValueType::integer;
  if (fallback == "unset (ncclConfig)" || fallback == "unlimited") return ValueType::integer;
  return fallback == "removed" || fallback == "deprecated" ? ValueType::unknown : ValueType::text;
}

Variable row(sv line) {
  const auto cells = split(line, '\t');
  Variable out;
  if (cells.size() < 4) return out;
  out.name = cells[0];
  out.default_value = cells[1];
  out.meaning = cells[2];
  out.notes = cells[3];
  return out;
}

std::vector<Variable> read_table(sv text, bool nccl) {
  std::vector<Variable> out;
  for (const sv line : lines(text)) {
    Variable one = row(line);
    if (one.name.empty() || one.name == "name") continue;
    if (nccl) {
      one.type = type_of(one.name, one.default_value);
      one.first = version_after(one.notes, "first tag ");
      one.gone = version_after(one.notes, "gone in ");
      if (!one.gone) one.gone = version_after(one.notes, "REMOVED in ");
      if (!one.first && one.gone) one.first = version_after(one.notes, "REMOVED: tags ");
      one.core = one.notes.find("not core") == sv::npos && one.notes.find("external plugin") == sv::npos;
      one.phantom = one.notes.find("NOT AN NCCL VARIABLE") != sv::npos;
    }
    out.push_back(one);
  }
  std::ranges::sort(out, {}, &Variable::name);
  return out;
}

const std::vector<Variable>& nccl_table() {
  static const std::vector<Variable> table = read_table(data::nccl_env_tsv(), true);
  return table;
}

const std::vector<Variable>& ucx_table() {
  static const std::vector<Variable> table = read_table(data::ucx_env_tsv(), false);
  return table;
}

const std::vector<Variable>& topotune_table() {
  static const std::vector<Variable> table = read_table(data::topotune_env_tsv(), false);
  return table;
}

const Variable* find(const std::vector<Variable>& table, sv name) {
  const auto at = std::ranges::lower_bound(table, name, {}, &Variable::name);
  return at != table.end() && at->name == name ? &*at : nullptr;
}

constexpr Phantom kPhantoms[] = {
    {"NCCL_NVLINK_DISABLE",
     "delete it: NVLink is used without being asked for; NVLink only: NCCL_P2P_LEVEL=NVL, no peer-to-peer at "
     "all: "
     "NCCL_P2P_DISABLE=1"},
    {"NCCL_NVLINK_ENABLE",
     "delete it: NVLink is used without being asked for; NVLink only: NCCL_P2P_LEVEL=NVL"},
    {"NCCL_SOCKET_TIMEOUT",
     "delete it; connection attempts: NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC (NCCL 2.24 and "
     "newer); "
     "RDMA: NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT; how long a collective may take is the framework's "
     "timeout"},
    {"NCCL_SOCKET_TIMEOUT_MS",
     "delete it; connection attempts: NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC (NCCL 2.24 and "
     "newer)"},
    {"NCCL_CONNECT_TIMEOUT",
     "delete it; connection attempts: NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC (NCCL 2.24 and "
     "newer)"},
    {"NCCL_NET_RETRY_COUNT",
     "delete it; RDMA: NCCL_IB_RETRY_CNT; sockets: NCCL_SOCKET_RETRY_CNT (NCCL 2.24 and newer)"},
    {"NCCL_NET_GDR_FLUSH",
     "delete it: the flush is on where it is needed; NCCL_NET_FORCE_FLUSH forces it on newer GPUs"},
    {"NCCL_TIMEOUT", "the framework's timeout is meant: init_process_group(timeout=...)", false},
    {"NCCL_TIMEOUT_MS", "the framework's timeout is meant: init_process_group(timeout=...)", false},
};

const Renamed kRenamed[] = {
    {"NCCL_IB_CUDA_SUPPORT", "NCCL_NET_GDR_LEVEL", since(2, 4), false},
    {"NCCL_IB_GDR_LEVEL", "NCCL_NET_GDR_LEVEL", since(2, 4), false},
    {"NCCL_RINGS", "", since(2, 5), false},
    {"NCCL_LL_THRESHOLD", "", since(2, 5), false},
    {"NCCL_TREE_THRESHOLD", "", since(2, 5), false},
    {"NCCL_THREAD_THRESHOLD", "NCCL_THREAD_THRESHOLDS", since(2, 5), false},
    {"NCCL_GRAPH", "NCCL_GRAPH_FILE", since(2, 6), false},
    {"NCCL_SINGLE_RING_THRESHOLD", "", since(2, 3), false},
    {"NCCL_CHECKS_DISABLE", "", since(2, 3), false},  // NCCL_CHECK_POINTERS means the opposite
    {"NCCL_MNNVL", "NCCL_MNNVL_ENABLE", since(2, 21), false},
    {"NCCL_WORK_FIFO_DEPTH", "NCCL_WORK_FIFO_BYTES", since(2, 22), false},
    {"NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS", "NCCL_ALLOC_P2P_NET_LL_BUFFERS", since(2, 16, 5), false},
    {"NCCL_MAX_NRINGS", "NCCL_MAX_CTAS", since(2, 5), true},
    {"NCCL_MIN_NRINGS", "NCCL_MIN_CTAS", since(2, 5), true},
    {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", since(2, 17), true},
    {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", since(2, 17), true},
};

// Damerau-Levenshtein distance with adjacent swaps, given up above `limit`.
std::size_t distance(sv a, sv b, std::size_t limit) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit) return limit + 1;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    std::size_t best = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
      best = std::min(best, now[j]);
    }
    if (best > limit) return limit + 1;
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

}  // namespace

const Variable* find_nccl(sv name) { return find(nccl_table(), name); }
const Variable* find_ucx(sv name) { return find(ucx_table(), name); }
const Variable* find_topotune(sv name) { return find(topotune_table(), name); }
std::span<const Variable> nccl_variables() { return nccl_table(); }

const Phantom* find_phantom(sv name) {
  const auto* found = std::ranges::find(kPhantoms, name, &Phantom::name);
  return found == std::end(kPhantoms) ? nullptr : found;
}

const Renamed* find_renamed(sv name) {
  const auto* found = std::ranges::find(kRenamed, name, &Renamed::name);
  return found == std::end(kRenamed) ? nullptr : found;
}

bool is_foreign(sv name) {
  static constexpr sv kPrefixes[] = {
      "NCCL_UCX_",           "NCCL_SHARP_",   "NCCL_IBEXT_",     "NCCL_TESTS_",     "NCCL_FASTRAK_",
      "NCCL_GPUDIRECTTCPX_", "NCCL_SHIMNET_", "NCCL_INSPECTOR_", "NCCL_PROFILE_",   "NCCL_PROFILER_CE_",
      "NCCL_TUNER_CONFIG_",  "NCCL_EP_",      "NCCL_RESHARD_",   "NCCL_PLUGIN_P2P", "NCCL_BUILD",
      "NCCL_OFI_",           "NCCL_SPCX_",    "NCCL_DLCOMM_"};
  static constexpr sv kNames[] = {"NCCL_VERSION",
                                  "NCCL_ROOT",
                                  "NCCL_HOME",
                                  "NCCL_DIR",
                                  "NCCL_PATH",
                                  "NCCL_INCLUDE_DIR",
                                  "NCCL_LIB_DIR",
                                  "NCCL_LIBRARY",
                                  "NCCL_ROOT_DIR",
                                  "NCCL_INCLUDE_DIRS",
                                  "NCCL_LIBRARIES",
                                  "NCCL_INSTALL_PATH",
                                  "NCCL_HDR_PATH",
                                  "NCCL_LINK_PATH",
                                  "NCCL_MAJOR",
                                  "NCCL_MINOR",
                                  "NCCL_PATCH",
                                  "NCCL_SUFFIX",
                                  "NCCL_SO_PATH",
                                  "NCCL_TESTS_HOME",
                                  "NCCL_LIB",
                                  "NCCL_INC",
                                  "NCCL_LIB_PATH",
                                  "NCCL_VER",
                                  "NCCL_PACKAGE",
                                  "NCCL_TAG",
                                  "NCCL_COMMIT",
                                  "NCCL_SRC",
                                  "NCCL_CHECKPOINT_KVS_PATH"};
  return std::ranges::find(kNames, name) != std::end(kNames) ||
         std::ranges::any_of(kPrefixes, [&](sv prefix) { return name.starts_with(prefix); });
}

std::optional<sv> nearest_nccl(sv name, const std::optional<Version>& version) {
  std::size_t best = name.size() > 16 ? 3 : 2;
  std::optional<sv> out;
  for (const auto& one : nccl_table()) {
    if (!one.core || one.phantom || one.gone || (version && one.first && *one.first > *version)) continue;
    const std::size_t d = distance(name, one.name, best);
    if (d < best || (d == best && !out)) {
      best = d;
      out = one.name;
    }
  }
  return out;
}

std::optional<sv> nearest_topotune(sv name) {
  std::size_t best = 3;
  std::optional<sv> out;
  for (const auto& one : topotune_table())
    if (const auto d = distance(name, one.name, best); d < best) best = d, out = one.name;
  return out;
}

std::set<std::string, std::less<>> names_in_library(sv bytes) {
  std::set<std::string, std::less<>> out;
  for (auto at = bytes.find("NCCL_"); at != sv::npos; at = bytes.find("NCCL_", at + 5)) {
    std::size_t end = at;
    while (end < bytes.size() && end - at < 100 &&
           ((bytes[end] >= 'A' && bytes[end] <= 'Z') || is_digit(bytes[end]) || bytes[end] == '_'))
      ++end;
    if (end > at + 5) out.emplace(bytes.substr(at, end - at));
  }
  return out;
}

IntegerReading read_integer(sv given) {
  IntegerReading out;
  const std::string text(given.substr(0, 256));
  char* end = nullptr;
  errno = 0;
  out.value = std::strtoll(text.c_str(), &end, 0);
  out.range = errno == ERANGE;
  out.whole = end != text.c_str() && *end == '\0' && given.size() == text.size();
  const sv digits = trim(given);
  const sv bare = digits.starts_with('-') || digits.starts_with('+') ? digits.substr(1) : digits;
  out.octal =
      bare.size() > 1 && bare[0] == '0' && is_digit(bare[1]) && bare.find_first_not_of('0') != sv::npos;
  return out;
}

}  // namespace topotune::lint
