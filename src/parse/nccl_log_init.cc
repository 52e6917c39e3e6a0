#include <fmt/format.h>

#include <algorithm>

#include "base/cpuset.h"
#include "base/text.h"
#include "parse/nccl_log_lines.h"
#include "parse/nccl_log_scan.h"

namespace topotune::parse::log {

bool version_line(State& state, std::string_view text) {
  Cursor in(text);
  const bool rccl = in.take("RCCL ");
  if (!rccl) in.expect("NCCL ");
  if (in.take("git version")) {
    note(state, model::NoteKind::git_version, "", text);
    return true;
  }
  if (!in.expect("version ").ok()) return false;
  in.take(": ");
  const std::string_view library = rccl ? "RCCL" : "NCCL";
  saw_version(state, library, trim_message_end(in.rest()));
  return true;
}

namespace {

// What a "comm …" line says; -1 is "not said".
struct CommFields {
  std::optional<std::uint64_t> pointer, comm_id, bus_id, parent;
  int rank = -1, nranks = -1, nnodes = -1, gpu = -1, nvml = -1;
  bool mnnvl = false;
};

void read_field(std::string_view word, Cursor& in, CommFields& fields) {
  const auto number = [&](int& to) {
    Cursor probe = in;
    const auto value = probe.number<int>();
    if (!value || *value < 0 || *value > kMaxRank) return;
    in = probe;
    to = *value;
  };
  if (word == "rank")
    number(fields.rank);
  else if (word == "nranks" || word == "nRanks")
    number(fields.nranks);
  else if (word == "nNodes")
    number(fields.nnodes);
  else if (word == "cudaDev")
    number(fields.gpu);
  else if (word == "nvmlDev")
    number(fields.nvml);
  else if (word == "busId")
    fields.bus_id = in.pointer();
  else if (word == "commId")
    fields.comm_id = in.pointer();
  else if (word == "parent")
    fields.parent = in.pointer();
  else if (word == "MNNVL")
    fields.mnnvl = in.rest().starts_with("1");
}

// "comm 0x… rank 3 nranks 8 … busId 1a000 commId 0x…" up to " - "; what stands behind that stays in `in`.
CommFields read_fields(Cursor& in) {
  CommFields fields;
  fields.pointer = in.pointer();
  while (!in.at_end()) {
    in.blanks();
    if (in.take("- ")) break;
    const auto word = in.word();
    if (word.empty()) break;
    in.blanks();
    read_field(word, in, fields);
  }
  return fields;
}

int find_instance(const State& state, const Site& site, const CommFields& f) {
  int looked = 0;  // a rank has few communicators at a time; a program may make and destroy many
  for (auto i = site.instances.rbegin(); i != site.instances.rend() && looked < kRecentInstances;
       ++i, ++looked) {
    const auto& known = state.instances[static_cast<std::size_t>(*i)];
    const bool same_pointer =
        f.pointer ? known.pointer == f.pointer : !known.pointer && known.nranks == f.nranks;
    const bool other_id = f.comm_id && known.comm_id && *f.comm_id != *known.comm_id;
    const bool other_rank = f.rank >= 0 && known.rank >= 0 && f.rank != known.rank;
    if (same_pointer && !other_id && !other_rank) return *i;
  }
  return -1;
}

void store(Instance& to, const CommFields& f) {
  if (f.pointer) to.pointer = f.pointer;
  if (f.comm_id) to.comm_id = f.comm_id;
  if (f.parent) to.parent = f.parent;
  if (f.bus_id) to.bus_id = f.bus_id;
  if (f.rank >= 0) to.rank = f.rank;
  if (f.nranks > 0) to.nranks = f.nranks;
  if (f.nnodes > 0) to.nnodes = f.nnodes;
  if (f.gpu >= 0) to.gpu = f.gpu;
  if (f.nvml >= 0) to.nvml = f.nvml;
  to.mnnvl = to.mnnvl || f.mnnvl;
}

// Lines that waited for their communicator get it.
void bind_pending(State& state, Site& site, int index) {
  if (site.pending < 0) return;
  auto& instance = state.instances[static_cast<std::size_t>(index)];
  auto& scope = state.scopes[static_cast<std::size_t>(site.pending)];
  if (scope.me >= 0 && instance.rank >= 0 && scope.me != instance.rank) return;
  if (instance.scope < 0) {
    instance.scope = site.pending;
    scope.instance = index;
    site.pending = -1;
  }
}

}  // namespace

bool communicator_line(State& state, std::string_view text) {
  const auto at = text.find("comm ");
  if (at == std::string_view::npos || at > 96) return false;
  Cursor in(text.substr(at + 5));
  auto f = read_fields(in);
  if (in.at_end() && f.bus_id &&
      !text.ends_with("- ")) {  // every version ends such a line with what happened
    f.bus_id = f.comm_id = std::nullopt;
    ++state.log.cut;
  }
  if (f.rank < 0) return f.pointer.has_value();  // "NVLS comm 0x… headRank …" and the like
  const auto status = in.rest();
  if (state.unterminated && status.empty() && text.find("MNNVL ") == std::string_view::npos) return false;
  if (state.site < 0 && f.rank < kMaxRank) state.site = site_of_bare_rank(state, f.rank);
  auto* site = state.here();
  if (site == nullptr) return true;
  int index = find_instance(state, *site, f);
  const bool start = status.starts_with("Init START");
  if (index >= 0 && start && state.instances[static_cast<std::size_t>(index)].initialised)
    index = -1;  // pointer used again
  if (index < 0) {
    if (state.instances.size() >= kMaxInstances) return true;
    state.instances.emplace_back();
    index = static_cast<int>(state.instances.size() - 1);
    state.instances.back().site = state.site;
    site->instances.push_back(index);
  }
  ++state.epoch;  // a pointer may name another communicator from here on
  auto& instance = state.instances[static_cast<std::size_t>(index)];
  store(instance, f);
  instance.began = instance.began || start;
  const bool ends =
      status.starts_with("Destroy") || status.starts_with("Abort") || status.starts_with("Finalize");
  if (ends)
    instance.finished = true;
  else
    site->current = index;
  if (status.starts_with("Init COMPLETE")) {
    bind_pending(state, *site, index);
    state.instances[static_cast<std::size_t>(index)].initialised = true;
  }
  if (ends || status.starts_with("Abort START")) {
    if (status.starts_with("Abort")) note(state, model::NoteKind::aborted, "", text);
  }
  return true;
}

bool init_timings(State& state, std::string_view text) {
  Cursor in(text);
  if (!in.skip_past(" total ")) return false;
  const auto seconds = parse_double(in.word());
  if (auto* instance = state.current_instance(); instance != nullptr && seconds)
    instance->init_seconds = *seconds;
  return seconds.has_value();
}

bool driver_version(State& state, std::string_view text) {
  Cursor in(text);
  in.expect("cudaDriverVersion ");
  const auto v = in.need<int>();
  if (!in.ok() || v < 1000 || v > 1000000) return false;
  state.nccl_words = true;
  if (!state.log.cuda_driver) state.log.cuda_driver = fmt::format("{}.{}", v / 1000, v % 1000 / 10);
  return true;
}

// "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer"
bool channel_counts(State& state, std::string_view text) {
  Cursor in(text);
  int coll = -1;
  int collnet = -1;
  int nvls = -1;
  int p2p = -1;
  while (!in.at_end()) {
    const int n = in.need<int>();
    in.expect(" ");
    const auto kind = in.until(",");
    if (kind == "coll channels")
      coll = n;
    else if (kind == "collnet channels")
      collnet = n;
    else if (kind == "nvls channels")
      nvls = n;
    else if (kind == "p2p channels")
      p2p = n;
    in.take(", ");
    if (!in.ok()) return false;
  }
  if (coll < 0 || coll > kMaxChannel) return false;
  if (nvls == 0) note(state, model::NoteKind::no_nvls_channels, "", text);
  if (coll == 1) note(state, model::NoteKind::one_channel, "", text);
  auto* instance = state.current_instance();
  auto* site = state.here();
  // Up to 2.18.1 this line comes before the one that names the communicator.
  if (instance == nullptr || instance->initialised || (site != nullptr && site->pending >= 0)) {
    if (auto* scope = scope_here(state, true); scope != nullptr)
      scope->ring_channels = std::max(scope->ring_channels, coll);
    return true;
  }
  instance->channels = coll;
  instance->collnet_channels = collnet;
  instance->nvls_channels = nvls;
  instance->p2p_channels = p2p;
  return true;
}

bool affinity_mask(State& state, std::string_view text) {
  Cursor in(text);
  in.expect("Setting affinity for GPU ").need<int>();
  in.expect(" to ");
  if (!in.ok()) return false;
  auto* site = state.here();
  if (site == nullptr) return true;
  if (site->current >= 0 && state.instances[static_cast<std::size_t>(site->current)].initialised)
    site->current = -1;
  if (const auto mask = parse_cpu_mask(in.rest()); mask && !mask->empty()) {
    site->cpus = mask->to_list().substr(0, 1024);
    return true;
  }
  if (const auto list = parse_cpu_list(in.rest()); list && !list->empty())
    site->cpus = list->to_list().substr(0, 1024);
  return true;
}

bool affinity_list(State& state, std::string_view text) {
  Cursor in(text);
  if (!in.skip_past("Affinity for GPU ")) return false;
  in.need<int>();
  in.expect(" is ");
  if (!in.ok()) return false;
  if (in.rest().starts_with("empty")) {
    note(state, model::NoteKind::affinity_empty, "", text);
    return true;
  }
  const auto cpus = in.rest().substr(0, in.rest().find(". ("));
  auto* site = state.here();
  if (const auto list = parse_cpu_list(cpus); site != nullptr && list && !list->empty())
    site->cpus = list->to_list().substr(0, 1024);
  return true;
}

bool config_setting(State& state, std::string_view text) {
  Cursor in(text);
  in.expect("Comm config ");
  const auto name = in.word();
  if (name.size() > 80) return false;
  if (in.take(" set to ")) {
    setting(state, name, in.rest(), model::SettingBy::config);
    return true;
  }
  // "Comm config minCTAs reset to NCCL_MIN_CTAS=4": the environment wins over the program.
  if (in.take(" reset to ")) {
    const auto equals = in.rest().find('=');
    if (equals == std::string_view::npos) return false;
    setting(state, in.rest().substr(0, equals), in.rest().substr(equals + 1), model::SettingBy::environment);
    return true;
  }
  return !name.empty();
}

namespace {

bool is_variable(std::string_view name) {
  if (name.size() < 4 || name.size() > 80 || name.find('_') == std::string_view::npos) return false;
  for (const char c : name)
    if (!is_digit(c) && c != '_' && (c < 'A' || c > 'Z')) return false;
  return true;
}

}  // namespace

// "NCCL_P2P_DISABLE set by environment to 1", "NCCL_IB_HCA set to mlx5", "NCCL_P2P_LEVEL set by user to SYS".
bool environment_setting(State& state, std::string_view text) {
  Cursor in(text);
  const auto name = in.word();
  if (!is_variable(name)) return false;
  if (!in.take(" set ")) return true;  // a remark about a variable
  const auto rest = in.rest();
  const auto to = rest.starts_with("to ") ? 0 : rest.find(" to ");
  if (to == std::string_view::npos || to > 48) return true;
  const auto by = rest.substr(0, to);
  const auto value = rest.substr(to == 0 ? 3 : to + 4);
  const auto who = icontains(by, "plugin")    ? model::SettingBy::plugin
                   : icontains(by, "default") ? model::SettingBy::defaults
                   : icontains(by, "config")  ? model::SettingBy::config
                                              : model::SettingBy::environment;
  setting(state, name, value, who);
  return true;
}

// aws-ofi-nccl: "NET/OFI Running on P4d platform, Setting NCCL_TOPO_FILE environment variable to /opt/…".
bool plugin_setting(State& state, std::string_view text) {
  auto at = find_from(text, "etting ", 0);
  if (at == std::string_view::npos) return false;
  Cursor in(text.substr(at + 7));
  const auto name = in.word();
  if (!is_variable(name) || !in.take(" environment variable to ")) return false;
  setting(state, name, in.rest(), model::SettingBy::plugin);
  return true;
}

}  // namespace topotune::parse::log
