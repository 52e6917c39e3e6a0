#include "parse/nccl_profile.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <tuple>

#include "base/text.h"
#include "model/nccl_traffic.h"

namespace topotune::parse {

namespace {

constexpr std::uint64_t kMagic = 0x3146'4f52'5054'5454;
constexpr std::size_t kTotals = 240, kFunctions = 12, kSizes = 48, kSent = kTotals + kFunctions * kSizes * 16;
constexpr std::size_t kRecord = 72;
constexpr std::uint32_t kMostRanks = 65536, kMostRecords = 1 << 20;
constexpr std::array<const char*, kFunctions> kOps{"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                                   "AllReduce", "SendRecv", "Send",      "Recv",
                                                   "AlltoAll",  "Scatter",  "Gather",    "AllGatherV"};
constexpr std::array<const char*, 7> kAlgorithms{"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                 "NVLSTree", "PAT"};
constexpr std::array<const char*, 3> kProtocols{"LL", "LL128", "Simple"};

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);  // the caller knows that it is there
  return value;
}

std::string text_at(std::string_view bytes, std::size_t offset) {
  const auto field = bytes.substr(offset, 64);
  return printable(std::string(field.substr(0, std::min(field.find('\0'), field.size()))));
}

template <std::size_t N>
std::optional<std::string> name_in(const std::array<const char*, N>& names, unsigned index) {
  return index < N ? std::optional<std::string>(names[index]) : std::nullopt;
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
  e.op = name_in(kOps, byte(1)).value_or("");
  e.algorithm = name_in(kAlgorithms, byte(2)), e.protocol = name_in(kProtocols, byte(3));
  if (byte(4) < 12) e.datatype = model::datatype_name(byte(4));
  e.channels = static_cast<int>(byte(5));
  e.bytes = at<std::uint64_t>(bytes, offset + 40);
  if (const auto size = model::datatype_bytes(e.datatype)) e.count = e.bytes / *size;
  if (const auto peer = at<std::int32_t>(bytes, offset + 64); peer >= 0) e.peer = peer;
  e.start_ns = at<std::uint64_t>(bytes, offset + 8);
  e.host_seconds = between(e.start_ns, at<std::uint64_t>(bytes, offset + 16));
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

using CallKey = std::tuple<std::string, std::string, std::uint64_t, int>;

// The collectives of the communicator's first rank: each counts once.
void add_calls(const NcclProfile& p, int communicator, model::NcclLog& log) {
  std::map<CallKey, std::uint64_t> calls;
  std::map<std::tuple<std::string, std::uint64_t, std::string, std::string, int>, std::uint64_t> tuning;
  for (const auto& e : p.kept) {
    if (e.op.empty()) continue;
    ++calls[{e.op, e.datatype, e.count, e.op == "Send" || e.op == "Recv" ? e.peer.value_or(-1) : -1}];
    if (e.algorithm && e.protocol) {
      const auto bytes = model::call_bytes(e.op, e.datatype, e.count, p.ranks).value_or(e.bytes);
      ++tuning[{e.op, bytes, *e.algorithm, *e.protocol, e.channels}];
    }
  }
  for (const auto& [key, count] : calls) {
    model::LogCollective c;
    c.op = std::get<0>(key), c.datatype = std::get<1>(key).empty() ? "unknown" : std::get<1>(key);
    c.count = std::get<2>(key), c.calls = count, c.communicator = communicator;
    if (std::get<3>(key) >= 0) c.root = std::get<3>(key);
    c.bytes = model::call_bytes(c.op, c.datatype, c.count, p.ranks);
    log.collectives.push_back(std::move(c));
  }
  for (const auto& [key, count] : tuning) {
    model::LogTuning t;
    t.op = std::get<0>(key), t.bytes = std::get<1>(key);
    t.algorithm = std::get<2>(key), t.protocol = std::get<3>(key), t.count = count;
    if (std::get<4>(key) > 0) t.first_channel = 0, t.last_channel = std::get<4>(key) - 1;
    log.tuning.push_back(std::move(t));
  }
}

// Measured bytes of the largest communicator whose ranks all recorded network steps.
void add_matrix(std::span<const NcclProfile> profiles, model::NcclLog& log) {
  std::map<std::pair<int, int>, std::uint64_t> sum;
  for (const auto& p : profiles) {
    if (!p.steps || !p.rank || p.ranks != log.main_ranks) continue;
    for (std::size_t peer = 0; peer < p.sent.size(); ++peer)
      if (p.sent[peer] > 0) sum[{*p.rank, static_cast<int>(peer)}] += p.sent[peer];
  }
  if (sum.empty()) return;
  log.traffic.assign(sum.begin(), sum.end());
  log.traffic_basis = "measured";
}

// Two ranks of one node: each one sends to the other, whatever the algorithm. From the totals, which are
// never lost; bytes are what counts in all formulas, so that calls of one size class may be one call.
void model_pair(const NcclProfile& first, std::span<const NcclProfile> profiles, model::NcclLog& log) {
  model::NcclLog pair;
  pair.main_ranks = 2;
  pair.communicators = {log.communicators[0]};
  pair.ranks = log.ranks;
  pair.rings = {{{0, 1}, {0}, 0}};
  for (const auto& total : first.totals) {
    model::LogCollective c;
    c.op = total.op, c.datatype = "int8", c.count = total.bytes, c.calls = 1;
    c.bytes = model::call_bytes(c.op, c.datatype, c.count, 2);
    if (c.op != "Send" && c.op != "Recv") pair.collectives.push_back(std::move(c));
  }
  std::vector<model::PeerBytes> peers;
  for (const auto& p : profiles)
    for (const auto& e : p.kept)
      if (e.op == "Send" && p.rank && e.peer && p.events == p.kept.size())
        peers.push_back({*p.rank, *e.peer, e.bytes});
  model::model_traffic(pair, peers);
  log.traffic = std::move(pair.traffic), log.traffic_basis = std::move(pair.traffic_basis);
}

}  // namespace

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
      add_calls(p, place->second, log);
    }
    auto& communicator = log.communicators[static_cast<std::size_t>(place->second)];
    ++communicator.ranks_seen;
    communicator.finished = communicator.finished || p.closed;
    if (p.rank) {
      model::LogRank r;
      r.rank = *p.rank, r.communicator = place->second;
      if (!p.host.empty()) r.host = p.host;
      if (p.pid > 0 && p.pid < 1u << 30) r.pid = static_cast<int>(p.pid);
      log.ranks.push_back(std::move(r));
    }
    log.main_ranks = std::max(log.main_ranks, p.ranks.value_or(0));
  }
  std::ranges::stable_sort(log.ranks, {},
                           [](const model::LogRank& r) { return std::pair(r.communicator, r.rank); });
  add_matrix(profiles, log);
  const bool pair = log.communicators.size() == 1 && log.main_ranks == 2 && log.communicators[0].nnodes == 1;
  if (!log.traffic_basis && pair) model_pair(profiles.front(), profiles, log);
  return log;
}

}  // namespace topotune::parse
