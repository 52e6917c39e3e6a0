#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "checks/log_rules.h"

namespace topotune::checks {

using namespace model;

LogView::LogView(const NcclLog& nccl_log, const Machine* known, std::string name)
    : log(nccl_log), machine(known), name_(std::move(name)) {
  if (machine != nullptr) paths_ = paths_of(machine->topology);
  for (const auto& path : paths_) {
    path_of_.try_emplace({path.a, path.b}, &path);
    path_of_.try_emplace({path.b, path.a}, &path);
  }
  for (const auto& r : log.ranks)
    if (r.communicator == 0) ranks_.try_emplace(r.rank, &r);
  count_nodes();
  for (const auto& l : log.graph.links) {
    if (l.rank && l.to.starts_with("GPU/")) node_of_rank_.try_emplace(*l.rank, l.to);
    if (l.type != "NVL") continue;
    if (l.to.starts_with("NVS"))
      on_nvswitch_.insert(l.from);
    else
      nvlinked_.insert({l.from, l.to});
  }
}

// NCCL's own number of nodes; containers on several of them may have one name.
void LogView::count_nodes() {
  if (log.communicators.empty()) return;
  const auto& main = log.communicators.front();
  if (!main.nnodes || main.nnodes_by_names) return;
  std::set<std::string> names;
  for (const auto& [number, r] : ranks_)
    if (r->host) names.insert(*r->host);
  names_say_too_few_ =
      static_cast<int>(ranks_.size()) == main.nranks && static_cast<int>(names.size()) < *main.nnodes;
  one_rank_a_node_ = main.nranks == main.nnodes;
}

std::string LogView::place(const LogLine& at) const {
  const auto index = static_cast<std::size_t>(at.file);
  const auto& file = log.files.size() > 1 && index < log.files.size() ? log.files[index] : name_;
  return at.line == 0 ? file : fmt::format("{}:{}", file, at.line);
}

model::Evidence LogView::evidence(const LogProblem& p) const {
  return {place(p.at), p.count > 1 ? fmt::format("{} ({} times)", p.text, p.count) : p.text};
}
model::Evidence LogView::evidence(const LogNote& n) const { return {place(n.at), n.text}; }
model::Evidence LogView::evidence(const LogSetting& s) const {
  return {place(s.at), fmt::format("{} set to {}", s.name, s.value)};
}
model::Evidence LogView::evidence(const LogEdge& e) const {
  return {place(e.at),
          fmt::format("{} -> {} via {}{}, {} channel{}", e.src, e.dst, e.transport,
                      e.gdr.value_or(false) ? "/GDRDMA" : "", e.channels, e.channels == 1 ? "" : "s")};
}

const LogProblem* LogView::problem(std::initializer_list<std::string_view> texts) const {
  for (const auto& p : log.problems)
    for (const auto text : texts)
      if (icontains(p.text, text)) return &p;
  return nullptr;
}

std::vector<const LogProblem*> LogView::problems(std::initializer_list<std::string_view> texts) const {
  std::vector<const LogProblem*> found;
  for (const auto& p : log.problems)
    if (std::ranges::any_of(texts, [&](std::string_view text) { return icontains(p.text, text); }))
      found.push_back(&p);
  return found;
}

std::vector<const LogNote*> LogView::notes(NoteKind kind) const {
  std::vector<const LogNote*> found;
  for (const auto& n : log.notes)
    if (n.kind == kind) found.push_back(&n);
  return found;
}

const LogSetting* LogView::setting(std::string_view name) const {
  const auto found = std::ranges::find(log.env, name, &LogSetting::name);
  return found == log.env.end() ? nullptr : &*found;
}

bool LogView::set_to(std::string_view name, std::string_view value) const {
  return std::ranges::any_of(log.env,
                             [&](const LogSetting& s) { return s.name == name && s.value == value; });
}

const LogRank* LogView::rank(int number) const {
  const auto found = ranks_.find(number);
  return found == ranks_.end() ? nullptr : found->second;
}

std::optional<bool> LogView::same_host(const LogEdge& edge) const {
  if (edge.communicator) return std::nullopt;
  const auto* a = rank(edge.src);
  const auto* b = rank(edge.dst);
  if (a == nullptr || b == nullptr || !a->host || !b->host) return std::nullopt;
  if (*a->host == *b->host && edge.transport.starts_with("NET/")) {
    if (log.shared_names.contains(*a->host)) return std::nullopt;
    if (names_say_too_few_) return one_rank_a_node_ ? std::optional(false) : std::nullopt;
  }
  return *a->host == *b->host;
}

std::optional<int> LogView::hosts() const {
  int most = 0;
  for (const auto& c : log.communicators) most = std::max(most, c.nnodes.value_or(0));
  if (most > 0) return most;
  const int names = static_cast<int>(log.hosts.size());
  const bool local_off = set_to("NCCL_P2P_DISABLE", "1") || set_to("NCCL_SHM_DISABLE", "1");
  // A network to ranks that the log does not hold leads to other hosts, unless nothing else was allowed.
  const auto leaves = [&](const LogEdge& e) {
    if (!e.transport.starts_with("NET/") || e.communicator) return false;
    const auto* a = rank(e.src);
    const auto* b = rank(e.dst);
    const bool outside = a == nullptr || b == nullptr || !a->host || !b->host;
    return same_host(e) == false || (outside && !local_off);
  };
  if (std::ranges::any_of(log.shared_names, [](const auto& name) { return name.second; }) ||
      std::ranges::any_of(log.edges, leaves))
    return std::max(2, names);
  if (!log.shared_names.empty()) return std::nullopt;
  std::set<std::string> of_ranks;
  int named = 0;
  for (const auto& r : log.ranks)
    if (r.communicator == 0 && r.host) of_ranks.insert(*r.host), ++named;
  // Without a communicator the ranks are those of nccl-tests' header, which names every one.
  const bool whole = log.main_ranks > 0 ? named == log.main_ranks : log.communicators.empty() && named > 1;
  if (names > 0 && (names > 1 || log.main_ranks == 1 || (whole && of_ranks.size() == 1))) return names;
  return std::nullopt;
}

const Gpu* LogView::gpu_of(int number) const {
  const auto* r = rank(number);
  if (machine == nullptr || r == nullptr) return nullptr;
  for (const auto& gpu : machine->topology.gpus)
    if (r->bdf && gpu.bdf && *gpu.bdf == *r->bdf) return &gpu;
  if (r->bdf && std::ranges::any_of(machine->topology.gpus, [](const Gpu& g) { return g.bdf.has_value(); }))
    return nullptr;
  const auto index = r->nvml ? r->nvml : r->gpu;
  for (const auto& gpu : machine->topology.gpus)
    if (index && gpu.index == *index) return &gpu;
  return nullptr;
}

std::optional<LogView::Link> LogView::machine_link(int a, int b) const {
  const auto* ga = gpu_of(a);
  const auto* gb = gpu_of(b);
  if (ga == nullptr || gb == nullptr) return std::nullopt;
  const auto found = path_of_.find({ga->id, gb->id});
  if (found == path_of_.end() || !found->second->type) return std::nullopt;
  return Link{found->second->type, found->second->nvlinks,
              fmt::format("{} and {} of the topology", ga->id, gb->id)};
}

std::optional<LogView::Link> LogView::graph_link(int a, int b) const {
  const auto from = node_of_rank_.find(a);
  const auto to = node_of_rank_.find(b);
  if (from == node_of_rank_.end() || to == node_of_rank_.end()) return std::nullopt;
  const bool switched = on_nvswitch_.contains(from->second) && on_nvswitch_.contains(to->second);
  if (switched || nvlinked_.contains({from->second, to->second}))
    return Link{PathType::nvl, std::nullopt, "NVL links in NCCL's own graph"};
  for (const auto& path : log.graph.paths)
    if (path.from == from->second && path.to == to->second)
      return Link{path_type_from(path.type == "NVB" ? "NVL" : path.type), std::nullopt,
                  "paths in NCCL's own graph"};
  return std::nullopt;
}

std::optional<LogView::Link> LogView::link(int a, int b) const {
  if (auto found = machine_link(a, b)) return found;
  return graph_link(a, b);
}

bool LogView::any_nvlink() const {
  if (!on_nvswitch_.empty() || !nvlinked_.empty()) return true;
  if (machine == nullptr) return false;
  return std::ranges::any_of(
      paths_, [](const Path& p) { return p.type == PathType::nvl || p.type == PathType::xgmi; });
}

namespace {

std::vector<std::string> gpu_names(const LogView& view) {
  auto names = view.log.gpu_names;
  if (view.machine != nullptr)
    for (const auto& gpu : view.machine->topology.gpus)
      if (gpu.name) names.push_back(*gpu.name);
  return names;
}

bool names_one_of(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return icontains(name, word); });
}

}  // namespace

std::optional<bool> LogView::geforce() const {
  const auto names = gpu_names(*this);
  if (names.empty()) return std::nullopt;
  return std::ranges::all_of(names, [](const std::string& n) {
    return names_one_of(n, {"GeForce", "TITAN"});
  });
}

std::optional<bool> LogView::hopper_or_newer() const {
  if (machine != nullptr)
    for (const auto& gpu : machine->topology.gpus)
      if (gpu.sm) return *gpu.sm >= 90 && *gpu.sm < 120;
  const auto names = gpu_names(*this);
  if (names.empty()) return std::nullopt;
  return std::ranges::all_of(names, [](const std::string& n) {
    return names_one_of(n,
                        {"H100", "H200", "H800", "H20", "GH200", "B100", "B200", "B300", "GB200", "GB300"});
  });
}

std::optional<bool> LogView::rdma_hardware() const {
  if (machine != nullptr) {
    if (!machine->ports.empty()) return true;
    if (std::ranges::any_of(machine->topology.nics,
                            [](const Nic& n) { return n.rdma || n.link_layer == "InfiniBand"; }))
      return true;
  }
  if (!log.net.ib_devices.empty()) return true;
  // IP over InfiniBand interfaces tell of cards: "ib0", "ibp70s0".
  for (const auto* list : {&log.net.sockets, &log.net.bootstrap})
    for (const auto& name : *list)
      if (name.size() > 2 && name.starts_with("ib") &&
          (name[2] == 'p' || name[2] == 's' || is_digit(name[2])))
        return true;
  return std::nullopt;
}

bool LogView::omni_path() const {
  return !log.net.ib_devices.empty() &&
         std::ranges::all_of(log.net.ib_devices, [](const std::string& d) { return d.starts_with("hfi1"); });
}

}  // namespace topotune::checks
