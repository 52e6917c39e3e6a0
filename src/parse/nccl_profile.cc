#include "parse/nccl_profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "model/nccl_traffic.h"

namespace topotune::parse {

namespace {

constexpr std::uint64_t kMagic = 0x3146'4f52'5054'5454;
constexpr std::size_t kTotals = 240, kFunctions = 12, kSizes = 48, kSent = kTotals + kFunctions * kSizes * 16;
constexpr std::size_t kRecord = 72;
constexpr std::uint32_t kMostRanks = 65536, kMostRecords = 1 << 20;
constexpr std::array<std::string_view, kFunctions> kOps{"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                                        "AllReduce", "SendRecv", "Send",      "Recv",
                                                        "AlltoAll",  "Scatter",  "Gather",    "AllGatherV"};
constexpr std::array<std::string_view, 7> kAlgorithms{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);  // the caller knows that it is there
  return value;
}

std::string text_at(std::string_view bytes, std::size_t offset) {
  const auto field = bytes.substr(offset, 64);
  auto text = printable(field.substr(0, std::min(field.find('\0'), field.size())));
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\t'; }, '?');  // it is one name in a line
  return text;
}

template <std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, unsigned index) {
  return index < N ? names[index] : "";
}

// Seconds between two moments in nanoseconds; nothing where one is missing or they are out of order.
std::optional<double> between(std::uint64_t start, std::uint64_t stop) {
  if (start == 0 || stop < start) return std::nullopt;
  return static_cast<double>(stop - start) * 1e-9;
}

std::optional<ProfileEvent> event_at(std::string_view bytes, std::size_t offset, std::uint64_t events) {
  ProfileEvent e;
  e.number = at<std::uint64_t>(bytes, offset);
  if (e.number == 0 || e.number > events) return std::nullopt;
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(at<std::uint8_t>(bytes, offset + 56 + i));
  };
  e.op = name_in(kOps, byte(1));
  e.algorithm = name_in(kAlgorithms, byte(2)), e.protocol = name_in(kProtocols, byte(3));
  if (byte(4) < 12) e.datatype = model::datatype_name(byte(4));
  e.channels = static_cast<int>(byte(5));
  e.bytes = at<std::uint64_t>(bytes, offset + 40);
  if (const auto size = model::datatype_bytes(e.datatype)) e.count = e.bytes / *size;
  if (const auto peer = at<std::int32_t>(bytes, offset + 64); peer >= 0) e.peer = peer;
  e.start_ns = at<std::uint64_t>(bytes, offset + 8);
  e.host_seconds = between(e.start_ns, at<std::uint64_t>(bytes, offset + 16));
  // Once all kernels have ended; plugins that did not count them left 0.
  const auto stopped = byte(7);
  if (stopped == 0 || stopped == (at<std::uint32_t>(bytes, offset + 68) & 0xff))
    e.gpu_seconds = between(at<std::uint64_t>(bytes, offset + 24), at<std::uint64_t>(bytes, offset + 32));
  return e;
}

void read_totals(std::string_view bytes, NcclProfile& out) {
  for (std::size_t f = 0; f < kFunctions; ++f) {
    for (std::size_t s = 0; s < kSizes; ++s) {
      const auto offset = kTotals + (f * kSizes + s) * 16;
      const auto calls = at<std::uint64_t>(bytes, offset);
      if (calls > 0)
        out.totals.push_back({kOps[f], static_cast<int>(s), calls, at<std::uint64_t>(bytes, offset + 8)});
    }
  }
}

using Traffic = model::LogTraffic;

bool between_two(std::string_view op) { return op == "Send" || op == "Recv"; }

int class_of(std::uint64_t bytes) {
  return bytes == 0 ? 0 : std::min(static_cast<int>(std::bit_width(bytes)) - 1, static_cast<int>(kSizes) - 1);
}

// `whole` x `part` / `all`, where part <= all.
std::uint64_t share(std::uint64_t whole, std::uint64_t part, std::uint64_t all) {
  return static_cast<std::uint64_t>(static_cast<long double>(whole) * static_cast<long double>(part) /
                                    static_cast<long double>(all));
}

// Equal calls of one rank.
struct Calls {
  std::string_view op;
  const ProfileEvent* like = nullptr;  // null: no event of the class is left
  std::uint64_t bytes = 0, calls = 0;  // bytes of each
  bool estimated = false;
};

std::vector<Calls> calls_of(const NcclProfile& p) {
  std::map<std::pair<std::string_view, int>, std::vector<Calls>> classes;
  for (const auto* e : in_groups(p)) {
    if (e->op.empty()) continue;
    auto& known = classes[{e->op, class_of(e->bytes)}];
    const bool same = !known.empty() && same_group(*known.back().like, *e) &&
                      (known.back().like->peer == e->peer || !between_two(e->op));
    if (!same) known.push_back({e->op, e, e->bytes, 0, false});
    ++known.back().calls;
  }
  for (const auto& total : p.totals) {
    auto& known = classes[{total.op, total.log2_bytes}];
    std::uint64_t left = 0, so_far = 0, given = 0;
    for (const auto& c : known) left += c.calls;
    if (left == 0) known.push_back({total.op, nullptr, total.bytes / total.calls, total.calls, true});
    for (auto& c : known) {
      if (left == 0 || left >= total.calls) break;
      so_far += c.calls;
      const auto until = share(total.calls, so_far, left);
      c.calls = until - given, c.estimated = true, given = until;
    }
  }
  std::vector<Calls> out;
  for (const auto& [key, known] : classes) out.insert(out.end(), known.begin(), known.end());
  return out;
}

// Collectives are those of the communicator's first rank: each counts once.
void add_calls(const NcclProfile& p, int communicator, bool first, model::NcclLog& log) {
  using Key = std::tuple<std::string_view, std::string_view, std::uint64_t, std::uint64_t, int>;
  std::map<Key, model::LogCollective> collectives;
  std::map<std::tuple<std::string_view, std::uint64_t, std::string_view, std::string_view, int>,
           std::uint64_t>
      tuning;
  for (const auto& calls : calls_of(p)) {
    if (!first && !between_two(calls.op)) continue;
    const auto* e = calls.like;
    const auto datatype = e != nullptr ? e->datatype : "";
    const auto count = e != nullptr ? e->count : 0;
    const int peer = e != nullptr && between_two(calls.op) ? e->peer.value_or(-1) : -1;
    auto& c = collectives[{calls.op, datatype, count, e == nullptr ? calls.bytes : 0, peer}];
    c.op = calls.op, c.datatype = datatype.empty() ? "unknown" : datatype, c.count = count;
    c.calls += calls.calls, c.communicator = communicator, c.estimated = c.estimated || calls.estimated;
    if (peer >= 0) c.root = peer;
    c.bytes = e != nullptr ? model::call_bytes(calls.op, datatype, count, p.ranks)
                           : model::call_bytes(calls.op, "int8", calls.bytes, p.ranks);
    if (e != nullptr && !e->algorithm.empty() && !e->protocol.empty())
      tuning[{calls.op, c.bytes.value_or(e->bytes), e->algorithm, e->protocol, e->channels}] += calls.calls;
  }
  for (auto& [key, c] : collectives) log.collectives.push_back(std::move(c));
  for (const auto& [key, count] : tuning) {
    model::LogTuning t;
    t.op = std::get<0>(key), t.bytes = std::get<1>(key);
    t.algorithm = std::get<2>(key), t.protocol = std::get<3>(key), t.count = count;
    if (std::get<4>(key) > 0) t.first_channel = 0, t.last_channel = std::get<4>(key) - 1;
    log.tuning.push_back(std::move(t));
  }
}

using Files = std::vector<const NcclProfile*>;  // of one communicator

bool any_sent(const NcclProfile& p) {
  return std::ranges::any_of(p.sent, [](std::uint64_t bytes) { return bytes > 0; });
}

// Nothing that was sent is a 0 where it would have been seen: between nodes, and not by way of another
// process.
void measure(const Files& files, Traffic& out) {
  out.basis = "measured", out.partial = true;
  std::map<int, const NcclProfile*> known;
  for (const auto* p : files)
    if (p->rank) known[*p->rank] = p;
  for (const auto& [rank, p] : known) {
    for (std::size_t i = 0; p->steps && i < p->sent.size(); ++i) {
      const auto peer = static_cast<int>(i);
      const auto there = known.find(peer);
      const bool apart = p->nodes == p->ranks || (there != known.end() && there->second->host != p->host);
      const bool nothing = p->sent.size() <= model::kDenseMatrix && apart && out.foreign == 0 && peer != rank;
      if (p->sent[i] > 0 || nothing) out.bytes.push_back({{rank, peer}, p->sent[i]});
    }
  }
}

// Bytes of this rank's sends or receives to or from the other one of two. What was overwritten went to the
// rank itself in the share of what is left of its size.
std::uint64_t with_other(const NcclProfile& p, std::string_view op) {
  std::map<int, std::pair<std::uint64_t, std::uint64_t>> left;  // by class: bytes in all, to the rank itself
  for (const auto& e : p.kept) {
    if (e.op != op) continue;
    auto& [all, own] = left[class_of(e.bytes)];
    all += e.bytes, own += e.peer == p.rank ? e.bytes : 0;
  }
  std::uint64_t out = 0;
  for (const auto& total : p.totals) {
    if (total.op != op) continue;
    const auto [all, own] = left[total.log2_bytes];
    out += all == 0 ? total.bytes : share(std::max(all, total.bytes), all - std::min(own, all), all);
  }
  return out;
}

// Two ranks of one node: each one sends to the other, whatever the algorithm. From the totals, which are
// never lost; bytes are what counts in all formulas, so that calls of one size class may be one call.
void model_pair(const Files& files, Traffic& out) {
  model::NcclLog pair;
  pair.main_ranks = 2;
  pair.communicators.resize(1);
  pair.communicators[0].nranks = 2, pair.communicators[0].nnodes = 1;
  pair.rings = {{{0, 1}, {0}, 0}};
  for (const auto& total : files.front()->totals) {
    model::LogCollective c;
    c.op = total.op, c.datatype = "int8", c.count = total.bytes, c.calls = 1;
    c.bytes = model::call_bytes(c.op, c.datatype, c.count, 2);
    if (!between_two(c.op)) pair.collectives.push_back(std::move(c));
  }
  std::vector<model::PeerBytes> peers;
  std::set<int> known;
  for (const auto* p : files)
    if (p->rank) known.insert(*p->rank);
  for (const auto* p : files) {
    if (!p->rank || *p->rank > 1) continue;
    const int other = 1 - *p->rank;
    peers.push_back({*p->rank, other, with_other(*p, "Send")});
    if (!known.contains(other)) peers.push_back({other, *p->rank, with_other(*p, "Recv")});
  }
  model::model_traffic(pair, peers);
  out.bytes = std::move(pair.traffic), out.basis = "modelled";
}

Traffic traffic_of(const Files& files, int communicator) {
  Traffic out;
  out.communicator = communicator;
  const auto& p = *files.front();
  bool steps = false, sent = false, whole = true;
  for (const auto* file : files) {
    steps = steps || file->steps, sent = sent || any_sent(*file), out.foreign += file->foreign;
    whole = whole && file->rank;
  }
  if (steps && whole && (p.nodes != 1 || sent))
    measure(files, out);
  else if (p.ranks == 2 && p.nodes == 1 && whole)
    model_pair(files, out);
  else if (!p.nodes)
    out.why = "NCCL's interface before v4 does not tell how many nodes there are";
  else if (p.nodes == 1)
    out.why = "within a node NCCL tells of no network steps";
  else
    out.why = "no network steps were recorded";
  return out;
}

// The one to show where there is room for one: the largest, of equal ones that which sent most.
void show_traffic(model::NcclLog& log) {
  const auto weight = [&](const Traffic& t) {
    std::uint64_t sum = 0;
    for (const auto& [pair, bytes] : t.bytes) sum += bytes;
    const auto ranks = log.communicators[static_cast<std::size_t>(t.communicator)].nranks;
    return std::tuple(t.basis.has_value(), ranks.value_or(0), sum);
  };
  const auto most = std::ranges::max_element(log.traffics, {}, weight);
  if (most == log.traffics.end()) return;
  const auto ranks = log.communicators[static_cast<std::size_t>(most->communicator)].nranks;
  log.main_ranks = ranks.value_or(0);
  if (!most->basis) return;
  log.traffic = most->bytes, log.traffic_basis = most->basis;
  log.traffic_shown = static_cast<std::size_t>(most - log.traffics.begin());
}

}  // namespace

std::vector<const ProfileEvent*> in_groups(const NcclProfile& profile) {
  std::vector<const ProfileEvent*> out;
  for (const auto& e : profile.kept) out.push_back(&e);
  const auto key = [](const ProfileEvent* e) {
    return std::tuple(e->op, e->bytes, e->datatype, e->algorithm, e->protocol, e->channels, e->peer);
  };
  std::ranges::sort(out, {}, key);
  return out;
}

bool same_group(const ProfileEvent& a, const ProfileEvent& b) {
  const auto key = [](const ProfileEvent& e) {
    return std::tie(e.op, e.bytes, e.datatype, e.algorithm, e.protocol, e.channels);
  };
  return key(a) == key(b);
}

bool is_nccl_profile(std::string_view bytes) {
  return bytes.size() >= 8 && at<std::uint64_t>(bytes, 0) == kMagic;
}

Result<NcclProfile> parse_nccl_profile(std::string_view bytes) {
  if (bytes.size() < kSent)
    return fail(Errc::malformed, "a profiler file of {} bytes is cut off", bytes.size());
  if (!is_nccl_profile(bytes)) return fail(Errc::unrecognised, "not a profiler file");
  if (const auto version = at<std::uint32_t>(bytes, 8); version != 1)
    return fail(Errc::unsupported, "version {} of the profiler's file is not known", version);
  const auto header = at<std::uint32_t>(bytes, 12), record = at<std::uint32_t>(bytes, 16),
             records = at<std::uint32_t>(bytes, 20), ranks = at<std::uint32_t>(bytes, 24);
  if (record != kRecord || records == 0 || records > kMostRecords || (records & (records - 1)) != 0)
    return fail(Errc::malformed, "a profiler file with {} records of {} bytes", records, record);
  if (ranks > kMostRanks || header < kSent + std::size_t{8} * ranks)
    return fail(Errc::malformed, "a profiler file with a header of {} bytes for {} ranks", header, ranks);
  if (bytes.size() < header + std::size_t{records} * kRecord)
    return fail(Errc::malformed, "a profiler file of {} bytes is cut off", bytes.size());
  NcclProfile out;
  const auto rank = at<std::uint32_t>(bytes, 32), nodes = at<std::uint32_t>(bytes, 28);
  if (ranks > 0) out.ranks = static_cast<int>(ranks);
  if (nodes > 0 && nodes <= ranks) out.nodes = static_cast<int>(nodes);
  if (rank < kMostRanks) out.rank = static_cast<int>(rank);
  if (const auto id = at<std::uint64_t>(bytes, 40); id != 0) out.communicator = id;
  out.pid = at<std::uint64_t>(bytes, 48);
  out.began_ns = at<std::uint64_t>(bytes, 56), out.began_unix_ns = at<std::uint64_t>(bytes, 64);
  out.host = text_at(bytes, 72), out.name = text_at(bytes, 136);
  out.events = at<std::uint64_t>(bytes, kProfileNextOffset);
  out.records = records;
  out.closed = at<std::uint64_t>(bytes, 208) != 0;
  out.foreign = at<std::uint64_t>(bytes, 216);
  out.steps = (at<std::uint32_t>(bytes, 232) & 16) != 0;
  read_totals(bytes, out);
  for (std::size_t i = 0; i < ranks; ++i) out.sent.push_back(at<std::uint64_t>(bytes, kSent + 8 * i));
  for (std::size_t i = 0; i < records; ++i)
    if (auto e = event_at(bytes, header + i * kRecord, out.events)) out.kept.push_back(std::move(*e));
  std::ranges::sort(out.kept, {}, &ProfileEvent::number);
  return out;
}

void drop_overwritten(NcclProfile& profile, std::uint64_t next) {
  std::erase_if(profile.kept, [&](const ProfileEvent& e) { return e.number + profile.records <= next; });
}

NcclProfile since(const NcclProfile& before, NcclProfile after) {
  const auto less = [](std::uint64_t now, std::uint64_t then) { return now - std::min(now, then); };
  std::erase_if(after.kept, [&](const ProfileEvent& e) { return e.number <= before.events; });
  for (auto& total : after.totals) {
    const auto old = std::ranges::find_if(before.totals, [&](const ProfileTotal& t) {
      return t.op == total.op && t.log2_bytes == total.log2_bytes;
    });
    if (old == before.totals.end()) continue;
    total.calls = less(total.calls, old->calls), total.bytes = less(total.bytes, old->bytes);
  }
  std::erase_if(after.totals, [](const ProfileTotal& t) { return t.calls == 0; });
  for (std::size_t i = 0; i < std::min(after.sent.size(), before.sent.size()); ++i)
    after.sent[i] = less(after.sent[i], before.sent[i]);
  after.events = less(after.events, before.events), after.foreign = less(after.foreign, before.foreign);
  return after;
}

model::NcclLog log_of(std::span<const NcclProfile> profiles) {
  model::NcclLog log;
  log.kind = "nccl-profile";
  log.library = "NCCL";
  std::map<std::pair<std::uint64_t, int>, int> known;
  std::vector<Files> files;
  std::set<std::string> hosts;
  for (const auto& p : profiles) {
    const auto next = static_cast<int>(log.communicators.size());
    // Without an id each file stands for itself.
    const auto key = std::pair(p.communicator.value_or(0), p.communicator ? p.ranks.value_or(0) : -1 - next);
    const auto [place, fresh] = known.try_emplace(key, next);
    if (fresh) {
      model::LogCommunicator c;
      if (p.communicator) c.id = fmt::format("0x{:x}", *p.communicator);
      c.nranks = p.ranks, c.nnodes = p.nodes;
      log.communicators.push_back(std::move(c));
      files.emplace_back();
    }
    add_calls(p, place->second, fresh, log);
    auto& communicator = log.communicators[static_cast<std::size_t>(place->second)];
    files[static_cast<std::size_t>(place->second)].push_back(&p);
    ++communicator.ranks_seen;
    communicator.finished = communicator.finished || p.closed;
    if (!p.host.empty()) hosts.insert(p.host);
    if (p.rank) {
      model::LogRank r;
      r.rank = *p.rank, r.communicator = place->second;
      if (!p.host.empty()) r.host = p.host;
      if (p.pid > 0 && p.pid < 1u << 30) r.pid = static_cast<int>(p.pid);
      log.ranks.push_back(std::move(r));
    }
  }
  log.hosts.assign(hosts.begin(), hosts.end());
  std::ranges::stable_sort(log.ranks, {},
                           [](const model::LogRank& r) { return std::pair(r.communicator, r.rank); });
  for (std::size_t i = 0; i < files.size(); ++i)
    log.traffics.push_back(traffic_of(files[i], static_cast<int>(i)));
  show_traffic(log);
  return log;
}

}  // namespace topotune::parse
