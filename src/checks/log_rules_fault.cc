#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/log_rules.h"

// What broke: errors with their root, versions, mismatched calls, ranks that are behind.
namespace topotune::checks {
namespace {

using namespace model;
using Evidence = model::Evidence;  // not what rules of a machine look at
using Findings = std::vector<Finding>;

Outcome from_problem(const LogView& v, std::string_view rule, std::string subject, std::string expected,
                     std::string observed, std::initializer_list<std::string_view> texts) {
  const auto found = v.problems(texts);
  if (found.empty()) return Clean{};
  std::vector<Evidence> evidence;
  for (const auto* p : found)
    if (evidence.size() < 6) evidence.push_back(v.evidence(*p));
  return Findings{log_finding(v, rule, std::move(subject), std::move(expected), std::move(observed), evidence,
                              found[0]->at)};
}

// "from peer 10.0.0.2<54862>": who did not answer.
std::string peer_of(const LogProblem& p) {
  const auto at = p.text.find("from peer ");
  if (at == std::string::npos) return {};
  auto peer = p.text.substr(at + 10);
  return peer.substr(0, peer.find_first_of("< "));
}

// Status of a failed completion: ibv_wc_status (infiniband/verbs.h). 0: none is named.
int completion_status(std::string_view text) {
  for (const std::string_view word : {"status=", "error "}) {
    const auto at = text.find(word);
    if (at == std::string_view::npos) continue;
    auto rest = text.substr(at + word.size());
    if (const auto open = rest.substr(0, 40).find('(');
        rest.starts_with("IBV_WC") && open != std::string_view::npos)
      rest = rest.substr(open + 1);
    std::size_t end = 0;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    if (const auto value = parse_int<int>(rest.substr(0, end))) return *value;
  }
  return text.find("RETRY_EXC") != std::string_view::npos ? 12 : 0;
}

// AWS's plugin: "NET/OFI Request 0x.. completed with error. RC: 103. Error: 4126 (Unresponsive receiver …)".
Outcome ofi_peer_silent(const LogView& v) {
  std::vector<Evidence> evidence;
  const LogProblem* first = nullptr;
  for (const auto* p : v.problems({"Unresponsive receiver", "Unreachable remote"})) {
    if (first == nullptr) first = p;
    if (evidence.size() < 6) evidence.push_back(v.evidence(*p));
  }
  if (first == nullptr) return Clean{};
  auto f = log_finding(v, "LOG07", "a peer", "the peer acknowledges",
                       "a peer did not answer over libfabric: most likely the security group, the subnet or "
                       "placement of the instances, or a peer that ended",
                       evidence, first->at);
  f.title = "A peer did not answer (libfabric)";
  return Findings{f};
}

Outcome peer_silent(const LogView& v) {
  std::map<std::string, std::uint64_t> peers;
  std::vector<const LogProblem*> rejected, silent;
  for (const auto* p : v.problems({"Got completion"})) {
    const int status = completion_status(p->text);
    if (status == 12 || status == 13)
      silent.push_back(p);
    else if (status == 4 || status == 10 || status == 11)
      rejected.push_back(p);
  }
  const auto& found = silent.empty() ? rejected : silent;
  if (found.empty()) return ofi_peer_silent(v);
  std::vector<Evidence> evidence;
  for (const auto* p : found) {
    if (evidence.size() < 6) evidence.push_back(v.evidence(*p));
    if (const auto peer = peer_of(*p); !peer.empty()) peers[peer] += p->count;
  }
  std::string subject = "a peer";
  if (!peers.empty())
    subject = std::ranges::max_element(peers, {}, [](const auto& x) { return x.second; })->first;
  std::string observed;
  if (silent.empty())
    observed = fmt::format(
        "operations towards {} were rejected: its memory registration is gone, most likely its process ended",
        subject);
  else
    observed = fmt::format(
        "{} did not answer (transport retry exceeded{}); most likely path, PFC or link on a job that ran, "
        "the GID on a first message, or a peer that ended",
        subject, peers.size() > 1 ? fmt::format(", {} peers in all", peers.size()) : "");
  return Findings{
      log_finding(v, "LOG07", subject, "the peer acknowledges", observed, evidence, found[0]->at)};
}

Outcome shm_full(const LogView& v) {
  auto found = v.problems({"No space left on device"});
  std::erase_if(found, [](const LogProblem* p) {
    return !icontains(p->text, "fallocate") && !icontains(p->text, "shm") &&
           !icontains(p->text, "shared memory") && !icontains(p->text, "ftruncate");
  });
  // "Error: failed to extend /dev/shm/nccl-XXXXXX to N bytes[, error: ...]": up to 2.2x without the reason.
  for (const auto* p : v.problems({"failed to extend /dev/shm"}))
    if (p->text.find(", error:") == std::string::npos || icontains(p->text, "No space left"))
      found.push_back(p);
  for (const auto* p : v.problems({"Error while creating shared memory segment"})) found.push_back(p);
  if (found.empty()) return Clean{};
  std::vector<Evidence> evidence;
  for (const auto* p : found)
    if (evidence.size() < 6) evidence.push_back(v.evidence(*p));
  return Findings{log_finding(v, "LOG08", "/dev/shm", "room for NCCL's segments (about 9.6 MB each)",
                              "a shared memory segment could not be made", evidence, found[0]->at)};
}

Outcome locked_memory(const LogView& v) {
  std::vector<const LogProblem*> sure, likely;
  for (const auto* p : v.problems(
           {"ibv_create_cq", "ibv_create_qp", "ibv_reg_mr", "ibv_reg_dmabuf_mr", "ibv_reg_mr_iova2"})) {
    if (icontains(p->text, "Cannot allocate memory"))
      sure.push_back(p);
    else if (icontains(p->text, "failed") && !icontains(p->text, "error"))
      likely.push_back(p);
  }
  const auto& found = sure.empty() ? likely : sure;
  if (found.empty()) return Clean{};
  auto f = log_finding(v, "LOG09", "locked memory", "ulimit -l unlimited inside the job",
                       sure.empty() ? "the call failed and this version prints no reason: the locked-memory "
                                      "limit is the first thing to read"
                                    : "memory could not be registered: cannot allocate memory",
                       {v.evidence(*found[0])}, found[0]->at);
  if (sure.empty()) f.severity = Severity::warn;
  return Findings{f};
}

Outcome wrong_gid(const LogView& v) {
  auto found = v.problems({"ibv_modify_qp failed"});
  std::erase_if(found, [](const LogProblem* p) {
    return !icontains(p->text, "Invalid argument") && !icontains(p->text, "No such device") &&
           !icontains(p->text, "timed out") && !icontains(p->text, "unreachable") &&
           !icontains(p->text, "No data available");  // ENODATA: the table's entry is empty
  });
  if (found.empty()) return Clean{};
  std::vector<Evidence> evidence{v.evidence(*found[0])};
  if (const auto* s = v.setting("NCCL_IB_GID_INDEX")) evidence.push_back(v.evidence(*s));
  return Findings{log_finding(v, "LOG10", "queue pair", "a GID that reaches the peer", found[0]->text,
                              evidence, found[0]->at)};
}

Outcome version_mismatch(const LogView& v) {
  auto outcome = from_problem(v, "LOG11", "NCCL", "one version on all ranks", "ranks run different versions",
                              {"Mismatched NCCL version detected", "NCCL version mismatch with remote peer"});
  if (std::holds_alternative<Findings>(outcome) || !v.log.versions_differ_in_job) return outcome;
  std::vector<Evidence> evidence;
  for (const auto& seen : v.log.versions)
    if (evidence.size() < 6)
      evidence.push_back(
          {v.place(seen.at), fmt::format("{} {} on {}", seen.library, seen.version,
                                         seen.hosts.empty() ? "an unnamed host" : seen.hosts[0])});
  return Findings{log_finding(v, "LOG11", "NCCL", "one version on all ranks",
                              "ranks of one communicator print different versions", evidence,
                              v.log.versions[0].at)};
}

Outcome shared_gpu(const LogView& v) {
  if (v.set_to("NCCL_MULTI_RANK_GPU_ENABLE", "1")) return Clean{"allowed by NCCL_MULTI_RANK_GPU_ENABLE=1"};
  return from_problem(v, "LOG12", "GPU", "one rank a GPU", "two ranks use one GPU",
                      {"Duplicate GPU detected", "Multiple Ranks are using the same GPU"});
}

Outcome different_calls(const LogView& v) {
  auto outcome = from_problem(
      v, "LOG13", "collectives", "the same calls on all ranks",
      "ranks disagree about a collective or its size (order, versions or environment), not the wire",
      {"collective mismatch", "message truncated", "Mismatched collective detected"});
  if (std::holds_alternative<Findings>(outcome) || v.log.mismatches.empty()) return outcome;
  const auto& m = v.log.mismatches[0];
  const auto who = [](std::optional<int> r) {
    return r ? fmt::format("rank {}", *r) : std::string("a rank");
  };
  return Findings{log_finding(
      v, "LOG13", fmt::format("operation {}", m.number), m.first,
      fmt::format("{} calls {}, {} calls {}", who(m.first_rank), m.first, who(m.second_rank), m.second),
      {{v.place(m.at), m.second}}, m.at)};
}

Outcome no_algorithm(const LogView& v) {
  return from_problem(
      v, "LOG14", "algorithm", "an algorithm and protocol for every collective", "no algorithm is left",
      {"no algorithm/protocol available", "Unrecognized element token", "ignoring NCCL_ALGO"});
}

Outcome fine_grain(const LogView& v) {
  return from_problem(v, "LOG20", "RCCL", "HSA_FORCE_FINE_GRAIN_PCIE=1", "RCCL asks for it",
                      {"HSA_FORCE_FINE_GRAIN_PCIE"});
}

Outcome iommu_pt(const LogView& v) {
  return from_problem(v, "ACS04", "kernel command line", "iommu=pt",
                      "RCCL asks for iommu=pt on the kernel command line", {"iommu=pt", "amd_iommu=on"});
}

// RAS: ranks with the lower count are behind, whoever the report names.
Outcome ranks_behind(const LogView& v) {
  std::map<std::pair<std::string, std::string>, std::vector<const RasCount*>> by_op;
  for (const auto& c : v.log.ras)
    if (!c.op.empty()) by_op[{c.group, c.op}].push_back(&c);
  Findings found;
  for (const auto& [key, counts] : by_op) {
    if (counts.size() < 2) continue;
    const auto value = [](const RasCount* c) { return c->operation.value_or(0); };
    const auto low = *std::ranges::min_element(counts, {}, value);
    const auto high = *std::ranges::max_element(counts, {}, value);
    if (value(low) == value(high)) continue;
    std::vector<Evidence> evidence;
    for (const auto* c : counts)
      if (evidence.size() < 6)
        evidence.push_back(
            {v.place(c->at),
             fmt::format("{} ranks at {} {}{}", c->ranks, key.second, value(c),
                         c->named.empty() ? "" : fmt::format(" (ranks {})", fmt::join(c->named, ", ")))});
    found.push_back(log_finding(
        v, "LOG21", key.first, fmt::format("all ranks at {} {}", key.second, value(high)),
        fmt::format("{} ranks are at {} {} and have not started {}; {} ranks are ahead at {}{}", low->ranks,
                    key.second, value(low), value(high), high->ranks, value(high),
                    high->named.empty()
                        ? ""
                        : fmt::format(" (ranks {}: named, not behind)", fmt::join(high->named, ", "))),
        evidence, low->at));
  }
  if (found.empty()) return Clean{};
  return found;
}

// RAS: processes that did not answer, died or reported an error.
std::optional<Finding> ranks_missing(const LogView& v) {
  const auto notes = v.notes(NoteKind::ras_status);
  if (notes.empty()) return std::nullopt;
  // The statement that names a process tells most.
  const auto named =
      std::ranges::find_if(notes, [](const LogNote* n) { return icontains(n->text, "process "); });
  const auto* first = named == notes.end() ? notes[0] : *named;
  std::vector<Evidence> evidence{v.evidence(*first)};
  for (const auto* n : notes)
    if (n != first && evidence.size() < 6) evidence.push_back(v.evidence(*n));
  auto f = log_finding(v, "LOG21", first->subject.empty() ? "RAS" : first->subject,
                       "every rank answers RAS without an error", first->text, evidence, first->at);
  f.title = "RAS misses ranks of the job or reports their errors: look there first";
  f.severity = Severity::error;
  return f;
}

// PyTorch's watchdog: ranks that timed out waited; a rank that did not report one did not arrive, or its log
// is missing.
Outcome behind(const LogView& v) {
  auto outcome = ranks_behind(v);
  if (auto missing = ranks_missing(v)) {
    if (auto* found = std::get_if<Findings>(&outcome); found != nullptr)
      found->insert(found->begin(), *missing);
    else
      outcome = Findings{*missing};
  }
  if (std::holds_alternative<Findings>(outcome)) return outcome;
  const auto& waited = v.log.watchdog_ranks;
  const auto* first = v.log.find(NoteKind::watchdog);
  if (first == nullptr) return outcome;
  std::vector<int> silent;
  for (const auto& r : v.log.ranks)
    if (r.communicator == 0 && !waited.contains(r.rank) && silent.size() < 16) silent.push_back(r.rank);
  const bool some = !waited.empty() && !silent.empty();
  return Findings{log_finding(v, "LOG21",
                              some ? fmt::format("ranks {}", fmt::join(silent, ", ")) : "a collective",
                              "all ranks arrive",
                              some ? fmt::format("{} ranks waited for a collective until the watchdog; ranks "
                                                 "{} reported no timeout: look at them first",
                                                 waited.size(), fmt::join(silent, ", "))
                                   : "the watchdog ended a collective that not all ranks reached; the log "
                                     "does not tell which rank is missing",
                              {v.evidence(*first)}, first->at)};
}

Outcome port_events(const LogView& v) {
  Findings found;
  const auto judge = [&](const std::string& text, const Evidence& evidence, const LogLine& at) {
    const bool down =
        icontains(text, "port error") || icontains(text, "fatal event") || icontains(text, "device fatal");
    const bool benign = icontains(text, "port active") || icontains(text, "client reregister") ||
                        icontains(text, "GID") || icontains(text, "LID") || icontains(text, "SM change") ||
                        icontains(text, "P_Key") || icontains(text, "pkey");
    auto f = log_finding(v, "LOG22", "RDMA port", "no event on a port in use", text, {evidence}, at);
    if (!down) f.severity = benign ? Severity::info : Severity::warn;
    if (found.size() < 16) found.push_back(f);
  };
  for (const auto* p :
       v.problems({"async event", "async error event", "async fatal event", "GID table changed"}))
    judge(p->text, v.evidence(*p), p->at);
  if (found.empty())
    for (const auto* n : v.notes(NoteKind::async_event)) judge(n->text, v.evidence(*n), n->at);
  if (found.empty()) return Clean{};
  return found;
}

Outcome multicast_fails(const LogView& v) {
  if (v.set_to("NCCL_NVLS_ENABLE", "0")) return Clean{};
  std::vector<const LogProblem*> found;
  for (const auto& p : v.log.problems) {
    const bool setup = p.source.find("nvls.cc") != std::string::npos && icontains(p.text, "Cuda failure") &&
                       icontains(p.text, "invalid argument");
    if (setup || icontains(p.text, "Failed to bind NVLink SHARP")) found.push_back(&p);
  }
  if (found.empty()) return Clean{};
  auto f = log_finding(v, "NVL12", "NVLS", "NVLink multicast can be set up",
                       "NVLS setup fails; most likely the fabric manager was restarted after the driver's "
                       "last reset, or its version is not the driver's",
                       {v.evidence(*found[0])}, found[0]->at);
  f.severity = Severity::warn;  // the fabric manager's start time is not in a log
  return Findings{f};
}

Outcome no_imex(const LogView& v) {
  auto outcome = from_problem(v, "NVL10", "MNNVL", "IMEX runs and its channel is in the container",
                              "NCCL sees a multi-node NVLink domain and cannot use it",
                              {"is available but not working"});
  if (auto* found = std::get_if<Findings>(&outcome); found != nullptr && v.many_hosts())
    found->front().severity = Severity::error;
  return outcome;
}

Outcome newer_cuda(const LogView& v) {
  const auto cuda = v.log.cuda ? parse_double(*v.log.cuda) : std::nullopt;
  const auto driver = v.log.cuda_driver ? parse_double(*v.log.cuda_driver) : std::nullopt;
  if (!cuda || !driver) return NotEvaluated{"the log does not name both CUDA versions"};
  if (*cuda <= *driver) return Clean{};
  auto f = log_finding(
      v, "VER04", "CUDA", "driver for CUDA " + *v.log.cuda, "the driver offers CUDA " + *v.log.cuda_driver,
      {{v.place({0, 0}), fmt::format("NCCL version {}+cuda{}, cudaDriverVersion {}",
                                     v.log.version.value_or("?"), *v.log.cuda, *v.log.cuda_driver)}},
      std::nullopt);
  f.severity = static_cast<int>(*cuda) > static_cast<int>(*driver) ? Severity::error : Severity::info;
  return Findings{f};
}

// More NCCL "nodes" than host names: ranks of one host that do not see each other as such (own NCCL_HOSTID,
// or containers with their own boot id). Equal numbers prove nothing: containers have names of their own.
Outcome hosts_apart(const LogView& v) {
  std::set<std::string> names;
  const LogCommunicator* main = v.log.communicators.empty() ? nullptr : &v.log.communicators.front();
  for (const auto& rank : v.log.ranks)
    if (rank.communicator == 0 && rank.host) names.insert(*rank.host);
  if (main == nullptr || !main->nnodes || names.empty())
    return NotEvaluated{"number of nodes and host names of the ranks: not in the log"};
  if (*main->nnodes == 1) return Clean{};
  // The log of one node holds the other nodes' ranks too, as far ends of connections.
  const auto named =
      std::ranges::count_if(v.log.ranks, [](const LogRank& r) { return r.communicator == 0 && r.host; });
  if (!main->nranks || named != *main->nranks) return NotEvaluated{"host names of all ranks: not in the log"};
  if (static_cast<std::size_t>(*main->nnodes) <= names.size())
    return NotEvaluated{"boot ids of the hosts: not in a log; give their captures as a fleet"};
  std::vector<std::string> ids;
  for (const auto& setting : v.log.env)
    if (setting.name == "NCCL_HOSTID") ids.push_back(printable(setting.value));
  return Findings{
      log_finding(v, "CONT07", fmt::format("{}", fmt::join(names, " ")),
                  fmt::format("{} nodes for {} hosts", names.size(), names.size()),
                  fmt::format("NCCL counts {} nodes on {} host names{}{}", *main->nnodes, names.size(),
                              ids.empty() ? "" : "; NCCL_HOSTID is ", fmt::join(ids, ", ")),
                  {{v.place({0, 0}), fmt::format("nNodes {}", *main->nnodes)}}, std::nullopt)};
}

constexpr LogRule kRules[] = {
    {"LOG07", peer_silent},     {"LOG08", shm_full},         {"LOG09", locked_memory},
    {"LOG10", wrong_gid},       {"LOG11", version_mismatch}, {"LOG12", shared_gpu},
    {"LOG13", different_calls}, {"LOG14", no_algorithm},     {"LOG20", fine_grain},
    {"LOG21", behind},          {"LOG22", port_events},      {"NVL12", multicast_fails},
    {"ACS04", iommu_pt},        {"VER04", newer_cuda},       {"CONT07", hosts_apart},
    {"NVL10", no_imex}};

}  // namespace

std::span<const LogRule> log_fault_rules() { return kRules; }

}  // namespace topotune::checks
