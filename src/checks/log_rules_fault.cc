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
  const LogProblem *silent = v.problem({"Unresponsive receiver", "Unreachable remote"}), *first = silent;
  std::vector<Evidence> evidence;
  for (const auto* p : v.problems({"Unresponsive receiver", "Unreachable remote", "completed with error"})) {
    if (!icontains(p->text, "Unre") && !icontains(p->text, "OFI")) continue;
    if (first == nullptr) first = p;
    if (evidence.size() < 6) evidence.push_back(v.evidence(*p));
  }
  if (first == nullptr) return Clean{};
  auto f = log_finding(
      v, "LOG07", "a peer", "the peer acknowledges",
      silent != nullptr
          ? "a peer did not answer over libfabric: most likely the security group, the subnet or "
            "placement of the instances, or a peer that ended"
          : "an operation towards a peer failed over libfabric; its code does not tell why: on EFA "
            "look at the security group first (all traffic to itself), then for a peer that ended",
      evidence, first->at);
  f.remedy = "on EFA a security group that allows all traffic to and from itself; then the log of the peer";
  f.title = silent != nullptr ? "A peer did not answer (libfabric)"
                              : "An operation towards a peer failed (libfabric)";
  return Findings{f};
}

// Failed operations of one kind; nothing when there are none.
struct Completions {
  std::vector<const LogProblem*> of;
  int status = 0;  // of the first
  std::map<std::string, std::uint64_t> peers;

  void add(const LogProblem& p, int its_status) {
    if (of.empty()) status = its_status;
    of.push_back(&p);
    if (const auto peer = peer_of(p); !peer.empty()) peers[peer] += p.count;
  }
  std::string peer() const {
    return peers.empty() ? "a peer"
                         : std::ranges::max_element(peers, {}, [](const auto& x) { return x.second; })->first;
  }
};

void tell(const LogView& v, const Completions& c, const std::string& subject, std::string observed,
          std::string_view title, Findings& found) {
  std::vector<Evidence> evidence;
  for (const auto* p : c.of)
    if (evidence.size() < 6) evidence.push_back(v.evidence(*p));
  auto f =
      log_finding(v, "LOG07", subject, "the peer acknowledges", std::move(observed), evidence, c.of[0]->at);
  if (!title.empty()) f.title = fmt::format("{} (IB error {})", title, c.status);
  found.push_back(std::move(f));
}

// By ibv_wc_status: 12 and 13 no answer; 10 and 11 refused by the peer; 1 to 4 and 6 refused by the own NIC;
// 5 only follows another error.
Outcome peer_silent(const LogView& v) {
  Completions silent, rejected, local;
  for (const auto* p : v.problems({"Got completion"})) {
    const int status = completion_status(p->text);
    if (status == 12 || status == 13)
      silent.add(*p, status);
    else if (status == 10 || status == 11)
      rejected.add(*p, status);
    else if ((status >= 1 && status <= 4) || status == 6)
      local.add(*p, status);
  }
  Findings found;
  if (!local.of.empty()) {
    tell(v, local, local.of[0]->host.value_or("this host"),
         local.status == 4 ? "the NIC could not read or write memory of its own host: most often GPUDirect "
                             "that ACS, the IOMMU or "
                             "a virtual machine breaks; the peer has no part in it"
                           : "the NIC refused an operation of its own host; the peer has no part in it",
         "An RDMA operation failed on its own host", found);
    found.back().expected = "operations on own memory succeed";
    found.back().remedy =
        "as a test NCCL_NET_GDR_LEVEL=0: if the error goes, GPUDirect fails; then ACS, IOMMU and ATS (ACS01, "
        "GDR "
        "rules)";
  }
  if (!silent.of.empty())
    tell(v, silent, silent.peer(),
         fmt::format(
             "{} did not answer (transport retry exceeded{}); most likely path, PFC or link on a job that "
             "ran, the GID on a first message, or a peer that ended",
             silent.peer(),
             silent.peers.size() > 1 ? fmt::format(", {} peers in all", silent.peers.size()) : ""),
         silent.status == 12 ? "" : "A peer did not answer", found);
  if (silent.of.empty() && !rejected.of.empty())
    tell(v, rejected, rejected.peer(),
         fmt::format("operations towards {} were rejected: its memory registration is gone, most likely its "
                     "process ended",
                     rejected.peer()),
         "A peer rejected an operation", found);
  return found.empty() ? ofi_peer_silent(v) : Outcome(found);
}

// Why a segment could not be made: on the line itself (2.23+), else on the warning of the failed call before
// it.
std::string_view segment_reason(const LogView& v, const LogProblem& p) {
  if (const auto at = p.text.find(", error: "); at != std::string::npos)
    return std::string_view(p.text).substr(at + 9);
  std::string_view reason;
  for (const auto& call : v.log.problems) {
    if (call.at.file != p.at.file || call.at.line > p.at.line || call.host != p.host) continue;
    const auto failed = call.text.find(" failed : ");
    if (failed == std::string::npos) continue;
    const auto name = std::string_view(call.text).substr(0, failed);
    for (const std::string_view made : {"shm_open", "open", "fallocate", "ftruncate", "mmap"})
      if (name.ends_with(made)) reason = std::string_view(call.text).substr(failed + 10);
  }
  return reason;
}

// A segment that could not be made for want of room; where no reason is printed, that may be one. Another
// reason is none of this rule.
Outcome shm_full(const LogView& v) {
  const LogProblem *full = nullptr, *unknown = nullptr;
  const auto first = [](const LogProblem*& slot, const LogProblem* p) {
    if (slot == nullptr) slot = p;
  };
  for (const auto* p : v.problems({"No space left on device"}))
    if (icontains(p->text, "fallocate") || icontains(p->text, "shm") || icontains(p->text, "shared memory") ||
        icontains(p->text, "ftruncate"))
      first(full, p);
  int looked_at = 0;  // each one's reason is looked for among all warnings
  for (const auto* p :
       v.problems({"failed to extend /dev/shm", "Error while creating shared memory segment"})) {
    if (full != nullptr || ++looked_at > 64) break;
    const auto reason = segment_reason(v, *p);
    const bool extends = p->text.find("failed to extend") != std::string::npos;
    if (icontains(reason, "No space left") || (reason.empty() && extends)) first(full, p);
    if (reason.empty()) first(unknown, p);
  }
  const auto* p = full != nullptr ? full : unknown;
  if (p == nullptr) return Clean{};
  auto f = log_finding(v, "LOG08", "/dev/shm", "room for NCCL's segments (about 9.6 MB each)",
                       "a shared memory segment could not be made", {v.evidence(*p)}, p->at);
  if (full == nullptr) {
    f.title = "A shared memory segment could not be made";
    f.observed += "; the log gives no reason: the space is the first thing to read";
    f.severity = Severity::warn;
  }
  return Findings{f};
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

// A queue pair that does not become ready. Over InfiniBand no GID index decides; over RoCE an error of the
// route with GIDs of IPv4 addresses on both ends is one of the route.
Outcome wrong_gid(const LogView& v) {
  const LogProblem* found = nullptr;
  bool route = false;
  for (const auto* p : v.problems({"ibv_modify_qp failed"})) {
    const bool no_route = icontains(p->text, "timed out") || icontains(p->text, "unreachable");
    const bool refused = icontains(p->text, "Invalid argument") || icontains(p->text, "No such device") ||
                         icontains(p->text, "No data available");  // ENODATA: the table's entry is empty
    if (found == nullptr && (no_route || refused)) found = p, route = no_route;
  }
  if (found == nullptr) return Clean{};
  std::vector<Evidence> evidence{v.evidence(*found)};
  if (const auto* s = v.setting("NCCL_IB_GID_INDEX")) evidence.push_back(v.evidence(*s));
  auto f =
      log_finding(v, "LOG10", "queue pair", "a GID that reaches the peer", found->text, evidence, found->at);
  const auto& devices = v.log.net.ib_devices;
  const bool infiniband = !devices.empty() && std::ranges::all_of(devices, [](const std::string& d) {
    return d.find("/IB") != std::string::npos;
  });
  const auto gid = found->text.find("::ffff:");
  if (infiniband) {
    f.title = "The queue pair could not connect over InfiniBand";
    f.expected = "a port that reaches the peer";
    f.remedy =
        "look at port state, partition key and subnet manager (RDMA02, RDMA03): GID indices decide nothing "
        "on "
        "InfiniBand";
  } else if (route && gid != std::string::npos && found->text.find("::ffff:", gid + 1) != std::string::npos) {
    f.title = "The queue pair could not connect: the peer's address was not reached";
    f.expected = "a route from this port to the peer's address";
    f.remedy =
        "routing and ARP between both addresses; where each rail is a subnet of its own: NCCL_CROSS_NIC=0";
  } else if (route) {
    f.title = "The queue pair could not connect: wrong GID, or an address that is not reached";
    f.remedy = "look at the GID index (NCCL08, RDMA09), and at routing and ARP between the ports";
  }
  return Findings{f};
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

// Two ranks of a group that timed out at one number in different calls.
std::optional<Finding> calls_apart(const LogView& v) {
  std::map<std::pair<std::string, std::uint64_t>, const TimedOut*> first;
  for (const auto& w : v.log.timed_out) {
    if (w.op.empty()) continue;
    const auto* other = first.try_emplace({w.group, w.number}, &w).first->second;
    if (other->op == w.op && other->sizes == w.sizes) continue;
    const auto call = [](const TimedOut& t) {
      return t.sizes.empty() ? t.op : fmt::format("{} ({})", t.op, t.sizes);
    };
    auto f = log_finding(
        v, "LOG13", fmt::format("operation {}", w.number), call(*other),
        fmt::format("rank {} calls {}, rank {} calls {}", other->rank, call(*other), w.rank, call(w)),
        {{v.place(other->at), call(*other)}, {v.place(w.at), call(w)}}, w.at);
    if (w.group.empty()) {  // numbers are those of a process group
      f.severity = Severity::warn;
      f.observed += "; whether both are of one process group is not in the log";
    }
    return f;
  }
  return std::nullopt;
}

Outcome different_calls(const LogView& v) {
  auto outcome = from_problem(
      v, "LOG13", "collectives", "the same calls on all ranks",
      "ranks disagree about a collective or its size (order, versions or environment), not the wire",
      {"collective mismatch", "message truncated", "Mismatched collective detected"});
  if (std::holds_alternative<Findings>(outcome)) return outcome;
  if (auto found = calls_apart(v)) return Findings{*found};
  if (v.log.mismatches.empty()) return outcome;
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

std::string numbers(const std::set<int>& ranks) {
  std::vector<int> some;
  for (const int r : ranks)
    if (some.size() < 16) some.push_back(r);
  return fmt::format("{}{}", fmt::join(some, ", "), ranks.size() > some.size() ? " …" : "");
}

// Ranks of one process group that timed out at different numbers.
std::optional<Finding> timed_out_apart(const LogView& v) {
  std::map<std::string, std::vector<const TimedOut*>> groups;
  for (const auto& w : v.log.timed_out) groups[w.group].push_back(&w);
  for (auto& [group, works] : groups) {
    const auto [low, high] = std::ranges::minmax_element(works, {}, &TimedOut::number);
    if ((*low)->number == (*high)->number || (*low)->rank == (*high)->rank || (*low)->number == 0) continue;
    std::set<int> behind;
    for (const auto* w : works)
      if (w->number == (*low)->number) behind.insert(w->rank);
    return log_finding(
        v, "LOG21", fmt::format("ranks {}", numbers(behind)), fmt::format("all ranks at {}", (*high)->number),
        fmt::format("rank {} waited at SeqNum {}, rank {} at {}{}", (*low)->rank, (*low)->number,
                    (*high)->rank, (*high)->number,
                    group.empty() ? "; whether both are of one process group is not in the log" : ""),
        {{v.place((*low)->at), fmt::format("rank {}: SeqNum {}", (*low)->rank, (*low)->number)},
         {v.place((*high)->at), fmt::format("rank {}: SeqNum {}", (*high)->rank, (*high)->number)}},
        (*low)->at);
  }
  return std::nullopt;
}

// PyTorch's watchdog: ranks that timed out waited. Only of a rank with lines of its own it is known that it
// did not.
Outcome behind(const LogView& v) {
  auto outcome = ranks_behind(v);
  if (auto missing = ranks_missing(v)) {
    if (auto* found = std::get_if<Findings>(&outcome); found != nullptr)
      found->insert(found->begin(), *missing);
    else
      outcome = Findings{*missing};
  }
  if (std::holds_alternative<Findings>(outcome)) return outcome;
  const auto* first = v.log.find(NoteKind::watchdog);
  if (first == nullptr) return outcome;
  if (auto apart = timed_out_apart(v)) return Findings{*apart};
  std::set<int> waited, silent, absent;
  for (const auto& w : v.log.timed_out) waited.insert(w.rank);
  for (const auto& r : v.log.ranks)
    if (r.communicator == 0 && !waited.contains(r.rank)) (r.host || r.pid ? silent : absent).insert(r.rank);
  const bool all = v.log.main_ranks > 0 && static_cast<int>(waited.size()) >= v.log.main_ranks;
  auto f = log_finding(v, "LOG21", "a collective", "all ranks arrive",
                       "the watchdog ended a collective; the log does not tell whether a rank is missing",
                       {v.evidence(*first)}, first->at);
  f.title = "A collective timed out";
  if (all && !calls_apart(v)) {
    f.title = "A collective timed out although every rank reached it";
    f.expected = "the collective ends";
    f.observed = fmt::format("all {} ranks waited in the same collective: none is behind", waited.size());
    f.remedy = "look at the network, at peer access and at the GPUs of these ranks: no rank is missing";
  } else if (!waited.empty()) {
    if (!silent.empty()) f.subject = fmt::format("ranks {}", numbers(silent));
    f.observed = fmt::format("{} rank{} waited for a collective until the watchdog", waited.size(),
                             waited.size() == 1 ? "" : "s");
    if (!silent.empty())
      f.observed += fmt::format("; ranks {} reported no timeout: look at them first", numbers(silent));
    if (!absent.empty()) f.observed += fmt::format("; ranks {}: their log is not here", numbers(absent));
    if (silent.empty()) f.observed += "; the log does not tell whether a rank is missing";
  }
  return Findings{f};
}

// "mlx5_3:1" of "NET/IB : mlx5_3:1 Got async event : port error".
std::string_view port_of(std::string_view text) {
  const auto end = text.find(" Got ");
  if (end == std::string_view::npos) return {};
  const auto before = text.substr(0, end);
  return before.substr(before.rfind(' ') + 1);  // npos + 1 is 0
}

// The texts of ibv_event_type_str(). A port that is active again is a warning.
Outcome port_events(const LogView& v) {
  Findings found;
  const auto says = [](std::string_view text, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return icontains(text, word); });
  };
  std::map<std::string_view, LogLine> up;  // by port: where it was last active
  const auto judge = [&](const std::string& text, const Evidence& evidence, const LogLine& at) {
    const bool down = says(text, {"port error", "fatal event", "device fatal"});
    const bool benign = says(text, {"port active", "client reregister", "GID table", "GID change",
                                    "LID change", "SM change", "P_Key", "pkey"});
    auto f = log_finding(v, "LOG22", "RDMA port", "no event on a port in use", text, {evidence}, at);
    const auto again = up.find(port_of(text));
    if (!down) f.severity = benign ? Severity::info : Severity::warn;
    if (down && icontains(text, "port error") && again != up.end() && again->second.file == at.file &&
        again->second.line > at.line) {
      f.severity = Severity::warn;
      f.observed += "; the port was active again later";
    }
    if (found.size() < 16) found.push_back(f);
  };
  const auto events =
      v.problems({"async event", "async error event", "async fatal event", "GID table changed"});
  const auto notes = v.notes(NoteKind::async_event);
  for (const auto* p : events)
    if (icontains(p->text, "port active")) up[port_of(p->text)] = p->at;
  for (const auto* n : notes)
    if (icontains(n->text, "port active")) up[port_of(n->text)] = n->at;
  for (const auto* p : events) judge(p->text, v.evidence(*p), p->at);
  if (found.empty())
    for (const auto* n : notes) judge(n->text, v.evidence(*n), n->at);
  if (found.empty()) return Clean{};
  return found;
}

// CUDA's 802: on machines with NVSwitch its fabric manager has not set the fabric up.
Outcome multicast_fails(const LogView& v) {
  if (const auto* p = v.problem({"system not yet initialized"})) {
    auto f = log_finding(v, "NVL12", "CUDA", "the fabric manager runs and has finished", p->text,
                         {v.evidence(*p)}, p->at);
    f.title = "CUDA is not ready: the fabric manager does not run or has not finished";
    f.impact = "no GPU of the host can be used";
    f.remedy =
        "start the fabric manager of the driver's version and read its log; then the GPUs' fabric state";
    return Findings{f};
  }
  if (v.set_to("NCCL_NVLS_ENABLE", "0")) return Clean{};
  const LogProblem* found = nullptr;
  for (const auto& p : v.log.problems) {
    const bool refused = icontains(p.text, "invalid argument") || icontains(p.text, "in the present state") ||
                         icontains(p.text, "initialization error");
    const bool setup =
        p.source.find("nvls.cc") != std::string::npos && icontains(p.text, "Cuda failure") && refused;
    if (found == nullptr && (setup || icontains(p.text, "Failed to bind NVLink SHARP"))) found = &p;
  }
  if (found == nullptr) return Clean{};
  auto f = log_finding(v, "NVL12", "NVLS", "NVLink multicast can be set up",
                       "NVLS setup fails; most likely the fabric manager was restarted after the driver's "
                       "last reset, or its version is not the driver's",
                       {v.evidence(*found)}, found->at);
  f.severity = Severity::warn;  // the fabric manager's start time is not in a log
  return Findings{f};
}

// Peer access that NCCL counts on and the driver does not give.
Outcome peer_access_refused(const LogView& v) {
  const auto* nvlink = v.problem({"P2P is disabled between NVLINK connected GPUs"});
  const auto* p =
      nvlink != nullptr ? nvlink : v.problem({"peer access is not supported between these two devices"});
  if (p == nullptr) return Clean{};
  auto f = log_finding(v, "GPU02", "GPUs", "peer access between these GPUs",
                       nvlink != nullptr ? "NVLink connects the GPUs and the driver refuses P2P over it"
                                         : "NCCL chose P2P and CUDA refuses peer access for the pair",
                       {v.evidence(*p)}, p->at);
  f.severity = Severity::error;
  f.remedy =
      nvlink != nullptr
          ? "look at the NVLinks and the fabric manager (NVL rules); NCCL_IGNORE_DISABLED_P2P=1 only hides it"
          : "let every process see all GPUs (CUDA_VISIBLE_DEVICES) and, in a virtual machine, give it P2P "
            "(CONT07); "
            "until then NCCL_P2P_DISABLE=1";
  return Findings{f};
}

// "Error: network AWS Libfabric not found."
Outcome no_such_network(const LogView& v) {
  for (const auto* p : v.problems({" not found"}))
    if (icontains(p->text, "Error: network "))
      return Findings{log_finding(v, "NCCL28", "NCCL_NET", "a network that NCCL or a plugin offers", p->text,
                                  {v.evidence(*p)}, p->at)};
  return Clean{};
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
  if (const auto* p =
          v.problem({"CUDA driver version is insufficient", "not supported in the installed CUDA driver"})) {
    auto f = log_finding(v, "VER04", "CUDA", "a driver for the CUDA that NCCL was built for", p->text,
                         {v.evidence(*p)}, p->at);
    if (cuda && driver)
      f.observed +=
          fmt::format("; NCCL is for CUDA {}, the driver offers {}", *v.log.cuda, *v.log.cuda_driver);
    f.severity = Severity::error;
    return Findings{f};
  }
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
  if (!v.log.shared_names.empty()) return NotEvaluated{"several machines bear one host name"};
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

constexpr LogRule kRules[] = {{"LOG07", peer_silent},
                              {"LOG08", shm_full},
                              {"LOG09", locked_memory},
                              {"LOG10", wrong_gid},
                              {"LOG11", version_mismatch},
                              {"LOG12", shared_gpu},
                              {"LOG13", different_calls},
                              {"LOG14", no_algorithm},
                              {"LOG20", fine_grain},
                              {"LOG21", behind},
                              {"LOG22", port_events},
                              {"NVL12", multicast_fails},
                              {"ACS04", iommu_pt},
                              {"VER04", newer_cuda},
                              {"CONT07", hosts_apart},
                              {"NVL10", no_imex},
                              {"GPU02", peer_access_refused},
                              {"NCCL28", no_such_network}};

}  // namespace

std::span<const LogRule> log_fault_rules() { return kRules; }

}  // namespace topotune::checks
