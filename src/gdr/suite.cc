#include "gdr/suite.h"

#include <algorithm>
#include <map>

#include "gdr/memory.h"
#include "gdr/remedy.h"
#include "measure/node_memory.h"

namespace topotune::gdr {

namespace {

using model::Measurement;
using model::RdmaPort;

constexpr std::size_t kWord = 8;  // bytes of a latency

std::string name_of(const RdmaPort& port) { return fmt::format("{}:{}", port.device, port.port); }

std::vector<unsigned char> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<unsigned char> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    std::uint32_t x = (static_cast<std::uint32_t>(i) * 0x9e3779b9u) ^ seed;
    x ^= x >> 15;
    out[i] = static_cast<unsigned char>((x * 0x85ebca6bu) >> 24);
  }
  return out;
}

const model::Nic* nic_of(const model::Topology& topology, const RdmaPort& port) {
  const auto found = std::ranges::find(topology.nics, std::optional(port.device), &model::Nic::name);
  return found == topology.nics.end() ? nullptr : &*found;
}

// Whose memory is moved: a GPU's, or the host's.
struct Owner {
  const cuda::Gpu* gpu = nullptr;
  std::string name() const { return gpu == nullptr ? "host" : gpu->id; }
};

// Two ends that are connected, with the memory at each.
struct Link {
  std::unique_ptr<Memory> from, to;  // outlive their registration
  End a, b;
  Registration registration;
};

class Suite {
 public:
  Suite(const Bench& bench, const Verbs& verbs) : bench_(bench), verbs_(verbs) {
    half_ = (std::max(*std::ranges::max_element(bench.options.sizes), kWord) + 4095) / 4096 * 4096;
  }

  void go(const std::vector<const RdmaPort*>& ports) {
    const auto pairs = ends_of(ports, bench_.options.all_pairs);
    const auto owners = this->owners();
    bench_.session.plan(std::max<std::size_t>(pairs.size() * owners.size(), 1));
    for (const auto& owner : owners) {
      for (const auto& [a, b] : pairs) {
        if (bench_.session.stopped()) return;
        pair(*a, *b, owner);
        bench_.session.end_part();
      }
    }
    for (auto& j : judge_gpu_memory(bench_.session.collected().results))
      bench_.session.judge(j.severity, j.subject, j.text);
  }

 private:
  std::vector<Owner> owners() {
    std::vector<Owner> out;
    if (bench_.options.host) out.push_back({});
    if (!bench_.options.gpu) return out;
    if (bench_.gpus == nullptr) {
      waive({}, "memory of GPUs: " + bench_.gpus_why);
      return out;
    }
    for (const auto& gpu : bench_.gpus->gpus) {
      const auto& wanted = bench_.options.gpus;
      if (!wanted.empty() && std::ranges::find(wanted, gpu.id) == wanted.end()) continue;
      int able = 1;
      bench_.gpus->driver.f.device_attribute(&able, cuda::api::kGpuDirectRdma, gpu.device);
      if (able == 0)
        waive({{"memory", gpu.id}}, gpu.name + " does no GPUDirect RDMA (CUDA's attribute 116 is 0)");
      else
        out.push_back({&gpu});
    }
    for (const auto& id : bench_.options.gpus)
      if (std::ranges::find(bench_.gpus->gpus, id, &cuda::Gpu::id) == bench_.gpus->gpus.end())
        waive({{"memory", id}},
              fmt::format("there is no {} here: CUDA shows {} GPUs", id, bench_.gpus->gpus.size()));
    if (bench_.machine.modules.known() && !bench_.machine.modules->contains("gdrdrv") &&
        !bench_.gpus->gpus.empty())
      bench_.session.judge(
          model::Severity::info, "GDRCopy",
          "the module gdrdrv is not loaded: UCX and NCCL copy small messages to GPUs by CUDA, "
          "which takes microseconds longer");
    return out;
  }

  void waive(std::vector<model::Param> params, const std::string& why) {
    Measurement m;
    m.name = "gdr";
    m.unit = "gbytes_per_s";
    m.params = std::move(params);
    bench_.session.waive(std::move(m), why);
  }

  static std::vector<model::Param> params_of(const RdmaPort& a, const RdmaPort& b, const Owner& owner) {
    return {{"src", name_of(a)}, {"dst", name_of(b)}, {"memory", owner.name()}};
  }

  // What a fault means: a pair of ports that do not reach each other is no fault of the machine, and what may
  // not be opened was not measured.
  void broken(const RdmaPort& a, const RdmaPort& b, const Owner& owner, const Fault& fault) {
    const auto why = words_of(fault) + "; remedy: " + remedy_for(fault, owner.gpu != nullptr, bench_.machine);
    Measurement m;
    m.name = "gdr";
    m.unit = "gbytes_per_s";
    m.params = params_of(a, b, owner);
    const bool apart =
        &a != &b && (fault.step == "connect" || (fault.step == "completion" && fault.number == 12));
    if (apart || fault.step == "open")
      bench_.session.waive(std::move(m), (apart ? "the ports do not reach each other: " : "") + why);
    else
      bench_.session.fail(std::move(m), why);
  }

  void pair(const RdmaPort& a, const RdmaPort& b, const Owner& owner) {
    if (owner.gpu != nullptr && (a.software.value_or(false) || b.software.value_or(false)))
      return waive(params_of(a, b, owner), "a software RDMA device reads no GPU memory");
    bench_.session.step(fmt::format("gdr {} -> {} {}", name_of(a), name_of(b), owner.name()));
    const auto pinned = beside(a);
    const auto link = make_link(a, b, owner);
    if (!link) return broken(a, b, owner, link.error());
    for (const auto op : {Op::write, Op::read}) {
      if (!measure_op(a, b, owner, *link, op)) return;
    }
  }

  std::optional<measure::Pinned> beside(const RdmaPort& port) const {
    const auto node = node_of(port);
    const auto& numa = bench_.machine.topology.numa;
    const auto found = std::ranges::find(numa, node.value_or(-1), &model::NumaNode::id);
    if (found == numa.end() || !found->cpus || found->cpus->empty()) return std::nullopt;
    return std::optional<measure::Pinned>(std::in_place, *found->cpus);
  }
  std::optional<int> node_of(const RdmaPort& port) const {
    const auto* nic = nic_of(bench_.machine.topology, port);
    return nic == nullptr ? std::nullopt : nic->numa;
  }

  Tried<std::unique_ptr<Memory>> memory(const RdmaPort& port, const Owner& owner) const {
    auto got = owner.gpu == nullptr ? host_memory(2 * half_, node_of(port))
                                    : gpu_memory(*bench_.gpus, *owner.gpu, 2 * half_);
    if (!got)
      return tl::unexpected(Fault{owner.gpu == nullptr ? "memory" : "GPU memory", 0, got.error().text});
    return std::move(*got);
  }

  Tried<Link> make_link(const RdmaPort& a, const RdmaPort& b, const Owner& owner) const {
    auto first = verbs_.end(a.device, a.port, gid_index_of(a));
    if (!first) return tl::unexpected(first.error());
    auto second = verbs_.end(b.device, b.port, gid_index_of(b));
    if (!second) return tl::unexpected(second.error());
    auto from = memory(a, owner), to = memory(b, owner);
    if (!from) return tl::unexpected(from.error());
    if (!to) return tl::unexpected(to.error());
    auto registered = register_memory(*first, **from, 2 * half_);
    if (registered)
      if (auto other = register_memory(*second, **to, 2 * half_); !other)
        registered = tl::unexpected(other.error());
    if (!registered) return tl::unexpected(registered.error());
    if (auto ok = first->connect(*second); !ok) return tl::unexpected(ok.error());
    return Link{std::move(*from), std::move(*to), std::move(*first), std::move(*second),
                std::move(*registered)};
  }

  // False: no more is to be tried with this link.
  bool measure_op(const RdmaPort& a, const RdmaPort& b, const Owner& owner, const Link& link, Op op) {
    if (!latency(a, b, owner, link, op)) return false;
    return std::ranges::all_of(bench_.options.sizes, [&](std::size_t bytes) {
      return bench_.session.stopped() || bandwidth(a, b, owner, link, op, bytes);
    });
  }

  Measurement begun(const char* kind, const RdmaPort& a, const RdmaPort& b, const Owner& owner,
                    const Link& link, Op op, std::size_t bytes) const {
    Measurement m;
    m.name = fmt::format("gdr.{}{}", kind, gdr::name_of(op));
    m.params = params_of(a, b, owner);
    m.params.push_back({"bytes", static_cast<std::int64_t>(bytes)});
    m.extra = {{"registered_by", link.registration.method}};
    if (link.registration.dma_buf) m.extra.push_back({"no_dma_buf", words_of(*link.registration.dma_buf)});
    if (owner.gpu != nullptr) {
      for (const auto* port : {&a, &b}) {
        const auto type = class_of(bench_.machine.topology, port->device, owner.gpu->id);
        if (port == &a || &a != &b)
          m.extra.push_back(
              {port == &a ? "path_class" : "path_class_dst", type ? model::name_of(*type) : "unknown"});
      }
    }
    return m;
  }

  // One message, compared by the memory's owner. Its seconds; the reason when it arrived wrong.
  Result<double> verified(const Link& link, Op op, std::size_t bytes) const {
    auto& source = op == Op::write ? *link.from : *link.to;
    auto& target = op == Op::write ? *link.to : *link.from;
    const auto sent = pattern(bytes, static_cast<std::uint32_t>(bytes) + (op == Op::write ? 1u : 2u));
    std::vector<unsigned char> got(bytes, 0x5a);
    if (auto ok = source.write(0, sent); !ok) return tl::unexpected(ok.error());
    if (auto ok = target.write(half_, got); !ok) return tl::unexpected(ok.error());
    const auto seconds = moved(link, {op, bytes, half_, 1, 1});
    if (!seconds) return seconds;
    if (auto ok = target.read(half_, got); !ok) return tl::unexpected(ok.error());
    const auto [x, y] = std::ranges::mismatch(sent, got);
    if (x == sent.end()) return seconds;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) wrong += sent[i] != got[i];
    return fail(Errc::io, "{} of {} bytes arrived wrong, the first at {} (ACS05)", wrong, bytes,
                x - sent.begin());
  }

  Result<double> moved(const Link& link, const End::Move& move) const {
    const auto seconds = link.a.transfer(link.b, move, bench_.options.limit_seconds);
    if (seconds) return *seconds;
    return fail(Errc::io, "{}; remedy: {}", words_of(seconds.error()),
                remedy_for(seconds.error(), link.from->owner() != "host", bench_.machine));
  }

  bool latency(const RdmaPort& a, const RdmaPort& b, const Owner& owner, const Link& link, Op op) {
    auto m = begun("latency.", a, b, owner, link, op, kWord);
    m.unit = "seconds";
    m.extra.push_back({"until", op == Op::write ? "acknowledged" : "read"});
    auto policy = bench_.session.policy();
    policy.max_samples = 1000;
    return finished(std::move(m), policy, a, b, owner, link, op, kWord, [&](double) {
      return [&] { return moved(link, {op, kWord, half_, 1, 1}); };
    });
  }

  bool bandwidth(const RdmaPort& a, const RdmaPort& b, const Owner& owner, const Link& link, Op op,
                 std::size_t bytes) {
    auto m = begun("", a, b, owner, link, op, bytes);
    m.unit = "gbytes_per_s";
    const auto& policy = bench_.session.policy();
    m.expected = expected_of(bench_.machine.topology, {a, b, owner.gpu == nullptr ? "" : owner.gpu->id});
    if (bytes < (std::size_t{1} << 20)) m.expected.reset();  // its start and end count
    return finished(std::move(m), policy, a, b, owner, link, op, bytes, [&](double one) {
      const auto count =
          static_cast<std::uint64_t>(std::clamp(policy.max_seconds / 10 / std::max(one, 1e-7), 1.0, 4096.0));
      return [&, count]() -> Result<double> {
        const auto seconds = moved(link, {op, bytes, half_, count, bench_.options.window});
        if (!seconds) return seconds;
        return static_cast<double>(count * bytes) / *seconds * 1e-9;
      };
    });
  }

  // `sampler_for(seconds of one)` gives what is sampled. The content is compared before and after.
  template <class F>
  bool finished(Measurement m, const measure::Policy& policy, const RdmaPort& a, const RdmaPort& b,
                const Owner& owner, const Link& link, Op op, std::size_t bytes, const F& sampler_for) {
    const auto failed = [&](const Error& error) {
      const bool apart = &a != &b && error.text.find("status 12)") != std::string::npos;
      if (apart)
        bench_.session.waive(std::move(m), "the ports do not reach each other: " + error.text);
      else
        bench_.session.fail(std::move(m), error.text);
      return false;
    };
    bench_.session.step(fmt::format("gdr.{} {} -> {} {} {} bytes", gdr::name_of(op), name_of(a), name_of(b),
                                    owner.name(), bytes));
    const auto one = verified(link, op, bytes);
    if (!one) return failed(one.error());
    auto sampled = bench_.session.sampled(std::move(m), policy, sampler_for(*one));
    if (!sampled) return false;
    m = std::move(*sampled);
    if (m.status == model::MeasureStatus::failed) return bench_.session.add(std::move(m)), false;
    const auto again = verified(link, op, bytes);
    if (!again) return failed(again.error());
    m.verified = true;
    m.verified_how = "every byte read back by the memory's owner, before and after";
    bench_.session.add(std::move(m));
    return true;
  }

  const Bench& bench_;
  const Verbs& verbs_;
  std::size_t half_ = 0;
};

std::string why_no_port(const model::Machine& machine, const std::vector<std::string>& nics) {
  if (machine.ports.empty())
    return machine.rdma_read.known() ? "no RDMA device on this machine (/sys/class/infiniband is empty)"
                                     : "no RDMA device: /sys/class/infiniband: " + machine.rdma_read.why;
  std::string all;
  for (const auto& port : machine.ports)
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", name_of(port), port.state.value_or("unknown"));
  return fmt::format("no active RDMA port{}: {}", nics.empty() ? "" : " among those named", all);
}

}  // namespace

std::vector<const RdmaPort*> ports_of(const model::Machine& machine, const std::vector<std::string>& nics) {
  std::vector<const RdmaPort*> out;
  for (const auto& port : machine.ports) {
    const bool named = nics.empty() || std::ranges::find(nics, port.device) != nics.end() ||
                       std::ranges::find(nics, name_of(port)) != nics.end();
    if (named && port.state == "ACTIVE") out.push_back(&port);
  }
  return out;
}

std::vector<Ends> ends_of(const std::vector<const RdmaPort*>& ports, bool all_pairs) {
  std::vector<Ends> out;
  const std::size_t n = ports.size();
  for (const auto* port : ports) out.push_back({port, port});
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 1; k < n; ++k) {
      const auto *a = ports[i], *b = ports[(i + k) % n];
      const bool neighbour = k == 1 && (n > 2 || i == 0);
      if ((all_pairs || neighbour) && a->link_layer == b->link_layer) out.push_back({a, b});
    }
  }
  return out;
}

int gid_index_of(const RdmaPort& port) {
  if (port.link_layer == "InfiniBand" && port.lid.value_or(0) > 0) return -1;
  const auto rank = [](const model::Gid& gid) {
    const bool v2 = gid.type.find("v2") != std::string::npos;
    if (v2 && gid.address.starts_with("0000:0000:0000:0000:0000:ffff:")) return 0;
    if (v2 && !gid.address.starts_with("fe80:")) return 1;
    return v2 ? 2 : 3;
  };
  const auto best = std::ranges::min_element(port.gids, {}, rank);
  return best == port.gids.end() ? 0 : best->index;
}

std::vector<model::Judgement> judge_gpu_memory(const std::vector<Measurement>& results) {
  std::map<std::string, double> host;
  const auto key = [](const Measurement& m) {
    std::string out = m.name;
    for (const auto& p : m.params)
      if (p.name != "memory") out += " " + model::text_of(p.value);
    return out;
  };
  const auto memory = [](const Measurement& m) {
    const auto found = std::ranges::find(m.params, "memory", &model::Param::name);
    return found == m.params.end() ? std::string() : model::text_of(found->value);
  };
  std::vector<model::Judgement> out;
  for (const auto& m : results)
    if (m.unit == "gbytes_per_s" && m.median && memory(m) == "host") host[key(m)] = *m.median;
  for (const auto& m : results) {
    const auto found = host.find(key(m));
    if (m.unit != "gbytes_per_s" || !m.median || memory(m) == "host" || found == host.end()) continue;
    const double share = *m.median / found->second;
    if (share >= 0.7) continue;
    const auto type = std::ranges::find(m.extra, "path_class", &model::Param::name);
    const auto word = type == m.extra.end() ? "unknown" : model::text_of(type->value);
    const bool near = word == "PIX" || word == "PXB";
    out.push_back(
        {near ? model::Severity::warn : model::Severity::info, memory(m),
         fmt::format("{}: {:.2f} GB/s, {:.0f} % of what the NIC does with host memory; path {} (GDR05)",
                     key(m), *m.median, share * 100, word)});
  }
  return out;
}

void run_gdr(const Bench& bench) {
  const auto waive = [&](const std::string& why) {
    Measurement m;
    m.name = "gdr";
    m.unit = "gbytes_per_s";
    bench.session.waive(std::move(m), why);
  };
  const auto ports = ports_of(bench.machine, bench.options.nics);
  if (ports.empty()) return waive(why_no_port(bench.machine, bench.options.nics));
  for (const auto& name : bench.options.nics)
    if (ports_of(bench.machine, {name}).empty()) waive(why_no_port(bench.machine, {name}));
  const auto verbs = Verbs::open();
  if (!verbs) return waive(verbs.error().text);
  if (const auto devices = verbs->devices(); !devices || devices->empty()) {
    const Fault fault =
        devices ? Fault{"devices", 2, "libibverbs opens none of them: no provider library"} : devices.error();
    return waive(words_of(fault) + "; remedy: " + remedy_for(fault, false, bench.machine));
  }
  Suite(bench, *verbs).go(ports);
}

}  // namespace topotune::gdr
