#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "checks/log_rules.h"

// Between hosts: which network, with or without GPUDirect, which rails.
namespace topotune::checks {
namespace {

using namespace model;
using Evidence = model::Evidence;  // not what rules of a machine look at
using Findings = std::vector<Finding>;

bool is_network(const LogEdge& e) { return e.transport.starts_with("NET/"); }

std::vector<const LogEdge*> network_edges(const LogView& v) {
  std::vector<const LogEdge*> found;
  for (const auto& e : v.log.edges)
    if (is_network(e) && v.same_host(e) != true) found.push_back(&e);
  return found;
}

std::string pair_text(const LogEdge& e) { return fmt::format("{}-{}", e.src, e.dst); }

// What the log says about the reason, first lines only.
std::vector<Evidence> gdr_reasons(const LogView& v) {
  std::vector<Evidence> found;
  for (const auto kind : {NoteKind::gdr_hca_off, NoteKind::gdr_distance_off, NoteKind::ofi_gdr_off})
    for (const auto* n : v.notes(kind))
      if (found.size() < 4 && !n->text.starts_with("NET/Socket")) found.push_back(v.evidence(*n));
  return found;
}

Severity gdr_severity(const LogView& v) { return v.omni_path() ? Severity::info : Severity::warn; }

Outcome gdr_unused(const LogView& v) {
  std::vector<const LogEdge*> edges;
  for (const auto* e : network_edges(v))
    if (e->gdr && e->transport != "NET/Socket") edges.push_back(e);
  if (v.geforce() == true) return Clean{"GeForce cards have no GPUDirect RDMA"};
  auto evidence = gdr_reasons(v);
  const auto* refused = v.problem({"GDR disabled on GDR-supported instance type"});
  if (edges.empty()) {
    if (v.hosts() == 1) return Clean{"one host: nothing goes over the network"};
    bool hca_off = false;
    for (const auto* n : v.notes(NoteKind::gdr_hca_off))
      hca_off = hca_off || !n->text.starts_with("NET/Socket");
    if (refused == nullptr && (!hca_off || v.log.net.used == "Socket"))
      return NotEvaluated{"no connection line of a network with GPUDirect"};
    if (refused != nullptr) evidence.push_back(v.evidence(*refused));
    auto f = log_finding(v, "LOG01", "network", "GPU memory is read and written by the NIC",
                         "GPU Direct RDMA is disabled for the NIC; the log does not tell whether the "
                         "peer-memory module or the distance decided",
                         evidence, std::nullopt);
    return Findings{f};
  }
  const auto on_no_side = [](const LogEdge* e) {  // one side alone is LOG02
    return !*e->gdr && !e->gdr_send.value_or(false) && !e->gdr_receive.value_or(false);
  };
  if (!std::ranges::all_of(edges, on_no_side)) return Clean{};
  for (const auto* e : edges)
    if (evidence.size() < 8) evidence.push_back(v.evidence(*e));
  const bool module =
      std::ranges::any_of(evidence, [](const Evidence& e) { return icontains(e.text, "no module"); });
  const bool distance =
      std::ranges::any_of(evidence, [](const Evidence& e) { return icontains(e.text, "distance"); });
  const bool loaded = !module && !v.notes(NoteKind::gdr_hca_on).empty();
  const bool libfabric = icontains(edges[0]->transport, "Libfabric") || icontains(edges[0]->transport, "OFI");
  const std::string why =
      v.omni_path() ? "; Omni-Path has none that NCCL's IB transport uses"
      : module      ? "; the peer-memory module is not loaded"
      : distance    ? "; NCCL says the NIC is too far from the GPU"
      : loaded      ? "; the NIC has it enabled, so the module is loaded: the distance or the GPU decided"
                    : "; the log does not tell why";
  auto f = log_finding(
      v, "LOG01", edges.size() == 1 ? pair_text(*edges[0]) : "network",
      "via " + edges[0]->transport + "/…/GDRDMA",
      (edges.size() == 1
           ? "the only network connection between ranks goes through host memory"
           : fmt::format("all {} network connections between ranks go through host memory", edges.size())) +
          why,
      evidence, edges[0]->at);
  f.severity = gdr_severity(v);
  if (libfabric)
    f.remedy =
        "EFA has GPUDirect RDMA from p4d on, with a plugin and libfabric that know it (older ones: "
        "FI_EFA_USE_DEVICE_RDMA=1); elsewhere there is none to switch on";
  else if (loaded && !distance)
    f.remedy =
        "NCCL_NET_GDR_LEVEL where the distance decided (GDR04); a GPU with unified memory has no GPUDirect "
        "RDMA: "
        "nothing to do";
  return Findings{f};
}

// One sender with GPUDirect over one NIC and without it over another: the module is loaded, the distance
// decides. "rank 0: GPUDirect over device 0, none over 1, 2"; "" when no rank has both.
std::string gdr_by_device(const std::vector<const LogEdge*>& with,
                          const std::vector<const LogEdge*>& without) {
  // By communicator and rank: with, without.
  std::map<std::pair<int, int>, std::pair<std::set<int>, std::set<int>>> devices;
  for (const auto* e : with)
    if (e->device) devices[{e->communicator.value_or(0), e->src}].first.insert(*e->device);
  for (const auto* e : without)
    if (e->device) devices[{e->communicator.value_or(0), e->src}].second.insert(*e->device);
  for (const auto& [sender, sets] : devices) {
    const auto& [on, off] = sets;
    if (on.empty() || off.empty()) continue;
    if (std::ranges::any_of(off, [&on = on](int d) { return on.contains(d); })) continue;
    return fmt::format(
        "; rank {}: GPUDirect over device {}, none over {}: the module is loaded, the distance "
        "of GPU and NIC decides",
        sender.second, fmt::join(on, ", "), fmt::join(off, ", "));
  }
  return {};
}

Outcome gdr_one_side(const LogView& v) {
  const auto edges = network_edges(v);
  std::vector<const LogEdge*> with, without, split;
  for (const auto* e : edges) {
    if (e->gdr_send && e->gdr_receive && *e->gdr_send != *e->gdr_receive)
      split.push_back(e);
    else if (e->gdr && *e->gdr)
      with.push_back(e);
    else if (e->gdr && e->transport != "NET/Socket")
      without.push_back(e);
  }
  if (split.empty() && (with.empty() || without.empty()))
    return edges.empty() ? Outcome(NotEvaluated{"no network connection"}) : Outcome(Clean{});
  std::vector<Evidence> evidence;
  for (const auto* e : split.empty() ? without : split)
    if (evidence.size() < 6) evidence.push_back(v.evidence(*e));
  std::set<std::string> hosts;
  for (const auto* e : split)
    if (const auto* r = v.rank(*e->gdr_send ? e->dst : e->src); r != nullptr && r->host)
      hosts.insert(*r->host);
  for (const auto* e : without)
    if (const auto* r = v.rank(e->gdr_send ? e->src : e->dst); r != nullptr && r->host)
      hosts.insert(*r->host);
  // Before sm80 and without NVLink NCCL reads through the host by default: only the sending side lacks it.
  const bool reads_only =
      !split.empty() && std::ranges::all_of(split, [](const LogEdge* e) { return !*e->gdr_send; });
  auto f = log_finding(v, "LOG02", hosts.empty() ? "network" : fmt::format("{}", fmt::join(hosts, ", ")),
                       "/GDRDMA on both ends of every connection",
                       split.empty() ? fmt::format("{} connections with and {} without GPUDirect{}",
                                                   with.size(), without.size(), gdr_by_device(with, without))
                                     : fmt::format("{} connections have GPUDirect on the {} side only",
                                                   split.size(), reads_only ? "receiving" : "sending"),
                       evidence, split.empty() ? without[0]->at : split[0]->at);
  if (reads_only && without.empty()) f.severity = Severity::info;
  return Findings{f};
}

Outcome no_rdma_device(const LogView& v) {
  const auto* none = v.log.find(NoteKind::no_ib_device);
  if (none == nullptr) return Clean{};
  if (v.log.net.used && *v.log.net.used != "Socket") return Clean{"another network carries the traffic"};
  if (v.set_to("NCCL_IB_DISABLE", "1")) return Clean{"NCCL_IB_DISABLE=1 (LOG06)"};
  auto f = log_finding(v, "LOG03", none->host.empty() ? "network" : none->host, "an RDMA device",
                       "NET/IB found none, sockets are used", {v.evidence(*none)}, none->at);
  const auto hardware = v.rdma_hardware();
  if (!v.many_hosts()) {
    f.severity = Severity::info;
    f.expected = "an RDMA device, where the job has several hosts (here one is seen)";
  } else if (hardware != true) {
    f.severity = Severity::warn;
    f.observed += "; whether the hosts have RDMA NICs is not known";
  }
  return Findings{f};
}

Outcome no_ibverbs(const LogView& v) {
  const auto* p = v.problem({"Failed to open libibverbs"});
  const auto* n = v.log.find(NoteKind::ibverbs_missing);
  if (p == nullptr && n == nullptr) return Clean{};
  auto f = log_finding(v, "LOG04", "libibverbs", "libibverbs.so.1 is in the image",
                       "libibverbs could not be loaded", {p != nullptr ? v.evidence(*p) : v.evidence(*n)},
                       p != nullptr ? p->at : n->at);
  const bool plugin = v.log.net.used && *v.log.net.used != "Socket" && *v.log.net.used != "IB";
  if (plugin) f.expected = "nothing: network " + *v.log.net.used + " is used, which does not need it";
  if (plugin || (v.hosts() == 1 && v.rdma_hardware() != true)) f.severity = Severity::info;
  return Findings{f};
}

// The one link layer that all network connections use; nothing when they use both or do not tell.
std::optional<std::string_view> kind_in_use(const LogView& v) {
  const auto* main = v.log.communicators.empty() ? nullptr : &v.log.communicators.front();
  if (main == nullptr || !main->nranks || main->ranks_seen != *main->nranks) return std::nullopt;
  std::set<bool> ethernet;
  const auto& devices = v.log.net.ib_devices;
  for (const auto* e : network_edges(v)) {
    if (!e->device || !e->peer_device) return std::nullopt;
    for (const int d : {*e->device, *e->peer_device}) {
      if (d < 0 || static_cast<std::size_t>(d) >= devices.size()) return std::nullopt;
      ethernet.insert(devices[static_cast<std::size_t>(d)].find("/RoCE") != std::string::npos);
    }
  }
  if (ethernet.size() != 1) return std::nullopt;
  return *ethernet.begin() ? "Ethernet" : "InfiniBand";
}

Outcome mixed_link_layers(const LogView& v) {
  if (const auto* p = v.problem({"Remote IB device is incompatible"})) {
    auto f =
        log_finding(v, "RDMA08", "network", "NCCL_IB_HCA with devices of one kind on every host",
                    "the peer's device is of another kind (InfiniBand and Ethernet, or another vendor's)",
                    {v.evidence(*p)}, p->at);
    f.severity = Severity::error;
    return Findings{f};
  }
  std::vector<std::string> ib, ethernet;
  for (const auto& d : v.log.net.ib_devices) {
    if (d.find("/RoCE") != std::string::npos)
      ethernet.push_back(d);
    else if (d.find("/IB") != std::string::npos)
      ib.push_back(d);
  }
  if (v.log.net.ib_devices.empty()) return NotEvaluated{"no \"NET/IB : Using\" line"};
  if (ib.empty() || ethernet.empty()) return Clean{};
  const auto& odd = ib.size() >= ethernet.size() ? ethernet : ib;
  const auto& rest = ib.size() >= ethernet.size() ? ib : ethernet;
  std::vector<std::string> names;
  for (const auto& d : rest) names.push_back(d.substr(0, d.find(':')));
  auto f = log_finding(
      v, "RDMA08", fmt::format("{}", fmt::join(odd, ", ")),
      fmt::format("NCCL_IB_HCA={}", fmt::join(names, ",")),
      fmt::format("{} InfiniBand and {} Ethernet ports are used together", ib.size(), ethernet.size()),
      {{v.place({0, 0}), fmt::format("NET/IB : Using {}", fmt::join(v.log.net.ib_devices, " "))}},
      std::nullopt);
  if (const auto kind = kind_in_use(v)) {
    f.severity = Severity::info;
    f.observed = fmt::format(
        "{} InfiniBand and {} Ethernet ports are listed; the connections of this log use {} "
        "ports only",
        ib.size(), ethernet.size(), *kind);
  }
  return Findings{f};
}

Outcome some_rails(const LogView& v) {
  const auto& devices = v.log.net.ib_devices;
  if (devices.size() < 2 || v.log.communicators.empty())
    return NotEvaluated{"fewer than two RDMA devices are listed"};
  const auto& main = v.log.communicators[0];
  const int n = static_cast<int>(devices.size());
  const bool whole = main.nranks && main.ranks_seen == *main.nranks && main.nnodes.value_or(0) > 1;
  if (!whole) return NotEvaluated{"the log does not hold all ranks of a job on several hosts"};
  if (main.channels.value_or(0) < n || *main.nranks < n * *main.nnodes)
    return Clean{"fewer GPUs or channels than rails"};
  std::set<int> used;
  for (const auto* e : network_edges(v)) {
    if (e->device) used.insert(*e->device);
    if (e->peer_device) used.insert(*e->peer_device);
  }
  if (used.empty() || static_cast<int>(used.size()) >= n) return Clean{};
  auto f = log_finding(
      v, "LOG19", "rails", fmt::format("all {} devices", n),
      fmt::format("connections use {} of {} devices", used.size(), n),
      {{v.place({0, 0}), fmt::format("devices {} of {}", fmt::join(used, ", "), fmt::join(devices, " "))}},
      std::nullopt);
  return Findings{f};
}

Outcome plugin_fell_back(const LogView& v) {
  const auto* provider = v.problem({"optimal provider", "no eligible providers", "No eligible providers",
                                    "no available providers", "Only EFA provider is supported",
                                    "aws-ofi-nccl initialization failed"});
  const auto* provider_note = v.log.find(NoteKind::provider_missing);
  const auto* wanted = v.setting("NCCL_NET_PLUGIN");
  const LogNote* failed = nullptr;
  for (const auto kind : {NoteKind::plugin_failed, NoteKind::plugin_missing})
    for (const auto* n : v.notes(kind))
      if (n->subject == "NET" && n->text.find(" IB") == std::string::npos &&
          n->text.find("Socket") == std::string::npos &&
          (kind == NoteKind::plugin_failed || wanted != nullptr))
        failed = n;
  const auto* any = v.problem({"Failed to initialize any NET plugin"});
  const bool internal = !v.log.net.used || *v.log.net.used == "IB" || *v.log.net.used == "Socket";
  const bool asked = wanted != nullptr && wanted->value != "none" && !wanted->value.empty();
  std::vector<Evidence> evidence;
  if (provider != nullptr) evidence.push_back(v.evidence(*provider));
  if (provider == nullptr && provider_note != nullptr) evidence.push_back(v.evidence(*provider_note));
  if (any != nullptr) evidence.push_back(v.evidence(*any));
  if (asked && failed != nullptr && internal)
    evidence.push_back(v.evidence(*failed)), evidence.push_back(v.evidence(*wanted));
  if (failed != nullptr && failed->kind == NoteKind::plugin_failed && !asked && internal)
    evidence.push_back(v.evidence(*failed));
  if (evidence.empty() || !internal) return Clean{};
  auto f = log_finding(
      v, "LOG18", "network plugin", asked ? "plugin " + wanted->value : "the plugin's network",
      v.log.net.used ? "network " + *v.log.net.used + " is used instead" : "the plugin did not start",
      evidence,
      provider != nullptr ? provider->at
      : any != nullptr    ? any->at
      : failed != nullptr ? failed->at
                          : provider_note->at);
  if (v.hosts() == 1) f.severity = Severity::info;  // nothing goes over a network
  return Findings{f};
}

bool is_unusable_interface(std::string_view name) {
  for (const std::string_view head :
       {"lo", "docker", "veth", "virbr", "tun", "br-", "cali", "flannel", "cni"})
    if (name.starts_with(head) && (head != "lo" || name.size() == 2 || name[2] == ':')) return true;
  return name.find(":fe80") != std::string_view::npos || name.find("[fe80") != std::string_view::npos;
}

bool names_no_interface(std::string_view text) {
  return icontains(text, "no socket interface found") || icontains(text, "No usable listening") ||
         icontains(text, "connecting to address  with family");  // 2.19 to 2.27: an address never filled in
}

const LogProblem* connect_error(const LogView& v) {
  for (const auto& p : v.log.problems) {
    const bool connects =
        icontains(p.text, "connect") && !icontains(p.text, "ibv_") && !icontains(p.text, "Got completion");
    const bool fails = icontains(p.text, "timed out") || icontains(p.text, "refused") ||
                       icontains(p.text, "unreachable") || icontains(p.text, "No route to host") ||
                       icontains(p.text, "Cannot assign requested address") ||
                       icontains(p.text, "caused connection abort");
    if ((connects && fails) || names_no_interface(p.text)) return &p;
  }
  return nullptr;
}

// "Connect to fe80::14ad%veth75<41303> failed": the address; "" none is named.
std::string_view address_of(std::string_view text) {
  const auto at = text.find(" to ");
  const auto end = at == std::string_view::npos ? at : text.find('<', at);
  if (end == std::string_view::npos) return {};
  const auto address = text.substr(at + 4, end - at - 4);
  return address.find(' ') == std::string_view::npos ? address : std::string_view{};
}

// Addresses that no other host reaches; "" when nothing is known against this one.
std::string unusable_address(std::string_view address) {
  const auto zone = address.find('%');
  if (zone != std::string_view::npos && is_unusable_interface(address.substr(zone + 1)))
    return fmt::format("{} is of an interface that no other host reaches", address);
  if (address.starts_with("fe80:"))
    return fmt::format(
        "{} is a link-local address, which holds on one link only (NCCL_SOCKET_FAMILY=AF_INET)", address);
  if (address.starts_with("172.17.0."))
    return "172.17.0.x is a Docker bridge's own address: the peer announced an interface that no other host "
           "reaches (there NCCL_SOCKET_IFNAME=^docker0,lo)";
  return {};
}

// Why the other host was not reached, as far as the error tells.
std::string unreachable_reason(const LogView& v, std::string_view error) {
  if (names_no_interface(error)) {
    const auto* s = v.setting("NCCL_SOCKET_IFNAME");
    return s == nullptr
               ? "NCCL found no interface that is up and has an address"
               : fmt::format("NCCL found no interface: NCCL_SOCKET_IFNAME={} matches none", s->value);
  }
  if (auto why = unusable_address(address_of(error)); !why.empty()) return why;
  if (v.log.net.bootstrap.empty() && v.log.net.sockets.empty())
    return "connecting failed; which interface was used is not in the log: a wrong interface, a firewall, "
           "routing, or the peer ended earlier";
  return "connecting failed on a usable interface: firewall, routing, or the peer ended earlier";
}

Outcome hosts_unreachable(const LogView& v) {
  const auto& used = !v.log.net.bootstrap.empty() ? v.log.net.bootstrap : v.log.net.sockets;
  const auto* error = connect_error(v);
  const auto* retry = v.log.find(NoteKind::conn_retry);
  const bool only_lo =
      !used.empty() && std::ranges::all_of(used, [](const std::string& u) { return u.starts_with("lo:"); });
  std::string_view text;
  if (error != nullptr)
    text = error->text;
  else if (retry != nullptr)
    text = retry->text;
  const bool bad_first = !used.empty() && is_unusable_interface(used[0]);
  // Connections come after the bootstrap: "hosts" that have them over lo are one machine (NCCL_HOSTID).
  const bool met = !v.log.edges.empty() || std::ranges::any_of(v.log.communicators, [](const auto& c) {
    return c.nnodes.value_or(1) > 1 && c.init_seconds.has_value();
  });
  const bool begun = met || std::ranges::any_of(v.log.communicators,
                                                [](const auto& c) { return c.init_seconds.has_value(); });
  if (begun) retry = nullptr;  // a peer that starts later is tried again too
  if (error == nullptr && retry == nullptr && !(only_lo && v.many_hosts() && !met)) return Clean{};
  std::vector<Evidence> evidence;
  if (error != nullptr) evidence.push_back(v.evidence(*error));
  if (error == nullptr && retry != nullptr) evidence.push_back(v.evidence(*retry));
  if (!used.empty())
    evidence.push_back({v.place({0, 0}), fmt::format("bootstrap uses {}", fmt::join(used, ", "))});
  auto f = log_finding(v, "LOG17", used.empty() ? "bootstrap" : used[0].substr(0, used[0].find(':')),
                       "an interface that the other hosts can reach",
                       bad_first || only_lo ? fmt::format("interface {} cannot reach another host", used[0])
                                            : unreachable_reason(v, text),
                       evidence,
                       error != nullptr   ? std::optional(error->at)
                       : retry != nullptr ? std::optional(retry->at)
                                          : std::nullopt);
  const bool of_network = error != nullptr && std::ranges::any_of(error->unwound, [](const std::string& u) {
                            return u.starts_with("transport/net_socket");
                          });
  if (error != nullptr && (!v.log.edges.empty() || of_network))
    f.title = "Hosts cannot reach each other after the bootstrap";
  if (error == nullptr && retry != nullptr) f.severity = Severity::warn;  // it may succeed yet
  return Findings{f};
}

Outcome rdma_disabled(const LogView& v) {
  const auto* s = v.setting("NCCL_IB_DISABLE");
  if (s == nullptr || s->value != "1") return Clean{};
  const bool other = v.log.net.used && *v.log.net.used != "Socket" && *v.log.net.used != "IB";
  if (other) return Clean{"another plugin carries the traffic"};
  auto f = log_finding(v, "LOG06", "NCCL_IB_DISABLE", "unset",
                       "NCCL_IB_DISABLE=1: RDMA is off, sockets are used", {v.evidence(*s)}, s->at);
  f.action = "unset-NCCL_IB_DISABLE";
  if (v.hosts() == 1)
    f.severity = Severity::info;
  else if (!v.many_hosts() || v.rdma_hardware() != true)
    f.severity = Severity::warn;
  return Findings{f};
}

// libibverbs lists the devices, so /sys has them; opening failed, so the container may not.
Outcome devices_closed(const LogView& v) {
  const auto found = v.problems({"Unable to open device"});
  if (found.empty()) return Clean{};
  std::vector<std::string> names;
  std::vector<Evidence> evidence;
  for (const auto* p : found) {
    if (names.size() < 16) names.push_back(p->text.substr(p->text.rfind(' ') + 1));
    if (evidence.size() < 4) evidence.push_back(v.evidence(*p));
  }
  std::ranges::sort(names);
  auto f = log_finding(
      v, "CONT05", fmt::format("{}", fmt::join(names, ", ")), "/dev/infiniband/uverbs* can be opened",
      fmt::format("{} RDMA devices are listed and cannot be opened", names.size()), evidence, found[0]->at);
  const bool other = v.log.net.used && *v.log.net.used != "Socket";
  if (other || v.hosts() == 1)
    f.severity = Severity::info;
  else if (v.many_hosts())
    f.severity = Severity::error;
  return Findings{f};
}

constexpr LogRule kRules[] = {{"LOG01", gdr_unused},         {"LOG02", gdr_one_side},
                              {"LOG03", no_rdma_device},     {"LOG04", no_ibverbs},
                              {"LOG06", rdma_disabled},      {"LOG17", hosts_unreachable},
                              {"LOG18", plugin_fell_back},   {"LOG19", some_rails},
                              {"RDMA08", mixed_link_layers}, {"CONT05", devices_closed}};

}  // namespace

std::span<const LogRule> log_network_rules() { return kRules; }

}  // namespace topotune::checks
