#include <algorithm>

#include "base/text.h"
#include "parse/nccl_log_lines.h"
#include "parse/nccl_log_scan.h"

namespace topotune::parse::log {
namespace {

void add_once(std::vector<std::string>& list, std::string_view item) {
  if (item.empty() || item.size() > 256 || list.size() >= 256) return;
  for (const auto& known : list)
    if (known == item) return;
  list.emplace_back(item);
}

// "{[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}": ports that 2.21 to 2.23 fuse into one device, joined by '+'.
std::string fused_device(std::string_view braces) {
  std::string joined;
  for (const auto word : words(braces)) {
    if (word.find('[') != std::string_view::npos) continue;
    const auto name = word.substr(0, word.find_first_of(",}"));
    if (!name.empty()) joined += (joined.empty() ? "" : "+") + std::string(name);
  }
  return joined;
}

// " [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.2<0>": what stands behind each number.
std::vector<std::string> numbered_devices(std::string_view text) {
  std::vector<std::string> found;
  text = text.substr(0, text.find(';'));
  for (auto at = text.find('['); at != std::string_view::npos && found.size() < 256;
       at = text.find('[', at + 1)) {
    const auto length = text.substr(at, 12).find(']');
    if (length == std::string_view::npos) continue;
    const auto close = at + length;
    if (!parse_int<int>(text.substr(at + 1, close - at - 1))) continue;
    if (text.substr(close + 1).starts_with("={")) {
      const auto end = std::min(text.find('}', close), text.size());
      if (auto name = fused_device(text.substr(close + 3, end - close - 3)); !name.empty())
        found.push_back(name);
      at = end - 1;
      continue;
    }
    const auto end = text.find_first_of(" \t", close + 1);
    const auto name = text.substr(close + 1, end == std::string_view::npos ? end : end - close - 1);
    if (!name.empty()) found.emplace_back(name);
  }
  return found;
}

// "Bootstrap : Using eth0:10.0.0.2<0>" (one, 2.8+) or numbered (earlier).
std::vector<std::string> interfaces(std::string_view text) {
  if (text.find('[') != std::string_view::npos) {
    auto found = numbered_devices(text);
    if (!found.empty()) return found;
  }
  text = trim(text);
  if (text.starts_with("interface ")) text = text.substr(10);  // 2.2
  text = text.substr(0, text.find(' '));
  if (text.find(':') == std::string_view::npos) return {};
  return {std::string(text)};
}

// "eth0:10.0.0.2<0>": an address of the machine that prints it.
void own_address(State& state, std::string_view one) {
  constexpr std::size_t kMost = 8;
  auto* site = state.here();
  one = one.substr(0, one.find('<'));
  const auto colon = one.find(':');
  if (site == nullptr || colon == std::string_view::npos || one.size() > 80 ||
      site->addresses.size() >= kMost)
    return;
  if (one.find_first_not_of("0123456789.", colon + 1) == std::string_view::npos)
    add_once(site->addresses, one);
}

}  // namespace

bool bootstrap_line(State& state, std::string_view text) {
  const auto at = text.find("Using");
  if (at == std::string_view::npos) return true;
  for (const auto& one : interfaces(text.substr(at + 5))) {
    add_once(state.log.net.bootstrap, one);
    own_address(state, one);
  }
  return true;
}

bool using_network(State& state, std::string_view text) {
  Cursor in(text);
  if (!in.take("Using network ") && !in.take("Using internal Network ") &&
      !in.take("Using external Network "))
    return false;
  const auto name = trim(in.rest());
  if (name.empty() || name.size() > 64) return false;
  if (state.networks.size() < 64 || state.networks.contains(name)) ++state.networks[std::string(name)];
  return true;
}

namespace {

bool network_using(State& state, std::string_view name, std::string_view rest) {
  if (rest.starts_with(" interface ")) {  // 2.2: "NET/IB : Using interface enp3s0 for sideband communication"
    return true;
  }
  auto list = numbered_devices(rest);
  if (const auto at = rest.find("; OOB "); at != std::string_view::npos)
    own_address(state, trim(rest.substr(at + 6)));
  if (name == "Socket")
    for (const auto& one : list) own_address(state, one);
  if (name.size() > 64 || (state.devices.size() >= 64 && !state.devices.contains(name))) return true;
  auto& known = state.devices[std::string(name)];
  for (const auto& one : list) add_once(known, one);
  return true;
}

// "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)"; NVIDIA's RDMA plugin says "GPU Direct
// RDMA (nvidia-peermem) enabled for HCA 0 'mlx5_0" (sic). A line cut before the word tells neither.
bool gdr_of_hca(State& state, std::string_view text) {
  const bool on = icontains(text, "enabled");
  if (!on && !icontains(text, "disabled")) return true;
  const auto open = text.find('\'');
  if (open == std::string_view::npos) {
    note(state, on ? model::NoteKind::gdr_hca_on : model::NoteKind::gdr_hca_off, "", text);
    return true;
  }
  const auto close = std::min(text.find('\'', open + 1), text.size());
  const auto name = text.substr(open + 1, std::min<std::size_t>(close - open - 1, 64));
  if (state.hca_gdr.size() < 1024)
    state.hca_gdr.try_emplace(std::string(text.substr(0, text.find(' '))) + "/" + std::string(name), on);
  note(state, on ? model::NoteKind::gdr_hca_on : model::NoteKind::gdr_hca_off, name, text);
  return true;
}

bool is_async_event(std::string_view text) {
  return text.find("async event") != std::string_view::npos ||
         text.find("async error event") != std::string_view::npos ||
         text.find("async fatal event") != std::string_view::npos ||
         text.find("GID table changed") != std::string_view::npos;
}

bool ofi_line(State& state, std::string_view text) {
  if (plugin_setting(state, text)) return true;
  if (icontains(text, "no eligible providers") || icontains(text, "could not find any optimal provider") ||
      icontains(text, "no available providers"))
    note(state, model::NoteKind::provider_missing, "OFI", text);
  if (icontains(text, "gdr") && icontains(text, "disabl"))
    note(state, model::NoteKind::ofi_gdr_off, "OFI", text);
  return true;
}

}  // namespace

// "NET/IB : …", "NET/Socket : …", "NET/Plugin: …", "NET/OFI …", "NET/0-0 :GPU/…".
bool network_line(State& state, std::string_view text) {
  if (text.find(" :GPU/") != std::string_view::npos && text.size() > 5 && is_digit(text[4]))
    return graph_line(state, text);
  Cursor in(text);
  in.take("NET/");
  const auto name = in.until(" :");
  if (name == "Plugin") return plugin_line(state, text);
  if (name == "OFI") return ofi_line(state, text);
  in.blanks();
  in.take(":");
  in.blanks();
  if (in.take("Using")) return network_using(state, name, in.rest());
  if (in.rest().starts_with("GPU Direct RDMA")) return gdr_of_hca(state, text);
  if (in.rest().starts_with("No device found")) note(state, model::NoteKind::no_ib_device, name, text);
  if (is_async_event(text)) note(state, model::NoteKind::async_event, name, text);
  if (text.find("mlx5dv symbols") != std::string_view::npos)
    note(state, model::NoteKind::mlx5_symbols, "", text);
  return !name.empty();
}

namespace {

// The kinds of plugins that are no network's: "TUNER/Plugin: …", "Successfully loaded external tuner plugin
// …".
bool of_kind(std::string_view text, std::string_view upper, std::string_view lower) {
  return text.starts_with(upper) || text.find(lower) != std::string_view::npos;
}
bool tuner_plugin(std::string_view text) { return of_kind(text, "TUNER/", "tuner plugin "); }
bool network_plugin(std::string_view text) {
  return !tuner_plugin(text) && !of_kind(text, "PROFILER/", "profiler plugin ") &&
         !of_kind(text, "ENV/", "env plugin ");
}

}  // namespace

// "TUNER/Plugin: Could not find: libnccl-tuner.so", "NET/Plugin: Loaded net plugin IBext_v8 (v8)".
bool plugin_line(State& state, std::string_view text) {
  const auto kind = text.substr(0, text.find('/'));
  state.nccl_words = state.nccl_words || text.find("libnccl") != std::string_view::npos;
  state.rccl_words = state.rccl_words || text.find("librccl") != std::string_view::npos;
  const auto say = [&](model::NoteKind what) { note(state, what, kind, text); };
  for (const std::string_view word :
       {"Could not find", "No plugin found", "Plugin load", "plugin load", "Failed to find", "failed to find",
        "no plugin found", "Most recent plugin load"})
    if (text.find(word) != std::string_view::npos) return say(model::NoteKind::plugin_missing), true;
  if (text.find("Failed to initialize") != std::string_view::npos)
    return say(model::NoteKind::plugin_failed), true;
  for (const std::string_view word :
       {"Loaded net plugin ", "Using tuner plugin ", "Loaded coll plugin ", "Using network plugin ",
        "Successfully loaded external ", "loaded external plugin ", "Plugin: Using "}) {
    const auto at = text.find(word);
    if (at == std::string_view::npos || text.find("internal") != std::string_view::npos) continue;
    say(model::NoteKind::plugin_loaded);
    auto name = text.substr(at + word.size());
    if (word.starts_with("Successfully"))
      name = name.substr(name.rfind(' ') == std::string_view::npos ? 0 : name.rfind(' ') + 1);
    name = trim(name.substr(0, name.find(" (v")));
    if (tuner_plugin(text) && state.tuners.size() < 64 && name.size() < 512) state.tuners.emplace(name);
    if (network_plugin(text) && state.plugins.size() < 64 && name.size() < 128 && name != "IB" &&
        name != "Socket")
      state.plugins.emplace(name);
    return true;
  }
  return true;
}

// "GPU Direct RDMA Disabled for GPU 3 / HCA 1 (distance 8 > 5)", "GPU Direct RDMA Enabled for GPU c000[0] /
// HCA 0 (…)".
bool gdr_decision(State& state, std::string_view text) {
  const bool on = text.starts_with("GPU Direct RDMA Enabled");
  note(state, on ? model::NoteKind::gdr_distance_on : model::NoteKind::gdr_distance_off, "", text);
  return true;
}

bool nvls_line(State& state, std::string_view text) {
  if (text.starts_with("NVLS multicast support is not available"))
    note(state, model::NoteKind::nvls_unavailable, "", text);
  if (text.starts_with("NVLS multicast support is available"))
    note(state, model::NoteKind::nvls_available, "", text);
  return true;
}

// Printed as a remark although the last try's failure is the job's.
bool connection_retry(State& state, std::string_view text) {
  const auto at = text.find(" returned ");
  const auto retry = text.find("retrying");
  if (at == std::string_view::npos || retry == std::string_view::npos || retry < at ||
      text.substr(0, at).find("onnect") == std::string_view::npos)
    return true;
  Cursor in(text.substr(retry));
  if (in.take("retrying (")) {
    const auto tried = in.number<int>();
    if (in.take("/") && tried && tried == in.number<int>()) {
      LogRecord last;
      last.message = text;
      last.time = state.time;
      add_problem(state, last);
      return true;
    }
  }
  note(state, model::NoteKind::conn_retry, "", text.substr(0, retry + std::string_view("retrying").size()));
  return true;
}

namespace {

struct Remark {
  std::string_view head;
  model::NoteKind kind;
};
constexpr Remark kRemarks[] = {
    {"P2P not supported between", model::NoteKind::p2p_refused},
    {"Could not enable P2P between", model::NoteKind::p2p_refused},
    {"P2P is disabled between", model::NoteKind::p2p_refused},
    {"Check P2P Type", model::NoteKind::p2p_all_cuda},
    {"Could not find a path for pattern", model::NoteKind::simple_order},
    {"KV Convert to int", model::NoteKind::link_speed_unknown},
    {"Could not open XML topology file", model::NoteKind::topo_file_missing},
    {"Loading topology file", model::NoteKind::topo_file_loaded},
    {"Failed to open libibverbs", model::NoteKind::ibverbs_missing},
    {"dlvsym failed on mlx5dv", model::NoteKind::mlx5_symbols},
    {"cuMem host allocations do not appear", model::NoteKind::shm_fallback},
    {"Failed to initialize NET plugin", model::NoteKind::plugin_failed},
    {"Failed to initialize any NET plugin", model::NoteKind::plugin_failed},
};

}  // namespace

bool remark(State& state, std::string_view text) {
  for (const auto& r : kRemarks) {
    if (!text.starts_with(r.head)) continue;
    note(state, r.kind, text.starts_with("Failed to initialize NET") ? "NET" : "", text);
    return true;
  }
  return false;
}

}  // namespace topotune::parse::log
