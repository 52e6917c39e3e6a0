#include "parse/nccl_log_state.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "base/text.h"
#include "parse/nccl_log_scan.h"

namespace topotune::parse::log {

int Names::id(std::string_view name) {
  const auto found = ids_.find(name);
  if (found != ids_.end()) return found->second;
  if (names_.size() >= 60000) return 0;
  names_.emplace_back(name);
  ids_.emplace(names_.back(), static_cast<int>(names_.size() - 1));
  return static_cast<int>(names_.size() - 1);
}

void ChannelSet::add(int channel) {
  const auto word = static_cast<std::size_t>(channel) / 64;
  const auto bit = std::uint64_t{1} << (static_cast<unsigned>(channel) % 64U);
  if (word < low_.size()) {
    low_[word] |= bit;
    return;
  }
  if (high_.size() < word - 1) high_.resize(word - 1);
  high_[word - 2] |= bit;
}

void ChannelSet::add(const ChannelSet& other) {
  for (std::size_t i = 0; i < low_.size(); ++i) low_[i] |= other.low_[i];
  if (high_.size() < other.high_.size()) high_.resize(other.high_.size());
  for (std::size_t i = 0; i < other.high_.size(); ++i) high_[i] |= other.high_[i];
}

int ChannelSet::count() const {
  int n = 0;
  for (const auto word : low_) n += std::popcount(word);
  for (const auto word : high_) n += std::popcount(word);
  return n;
}

bool ChannelSet::contains(int channel) const {
  const auto word = static_cast<std::size_t>(channel) / 64;
  const auto bit = std::uint64_t{1} << (static_cast<unsigned>(channel) % 64U);
  if (word < low_.size()) return (low_[word] & bit) != 0;
  return word - 2 < high_.size() && (high_[word - 2] & bit) != 0;
}

void State::catch_up() {
  auto& to = sites[static_cast<std::size_t>(site)];
  auto& head = heads.at(std::exchange(to.last_head, -1));
  head.dirty = false;
  to.current = head.instance;
  const auto& shape = shapes[static_cast<std::size_t>(head.shape)];
  to.last_op = static_cast<int>(shape.op);
  to.last_bytes = shape.count * model::datatype_bytes(ops[static_cast<int>(shape.datatype)]).value_or(0);
}

int site_of(State& state, const LogRecord& record) {
  if (record.host.empty()) return -1;
  std::array<char, 300> buffer;  // host, pid and device in one key
  auto* out = buffer.data();
  std::memcpy(out, record.host.data(), record.host.size());
  out += record.host.size();
  *out++ = '\0';
  out = std::to_chars(out, out + 12, record.pid.value_or(-1)).ptr;
  *out++ = '\0';
  out = std::to_chars(out, out + 12, record.dev.value_or(-1)).ptr;
  const std::string_view key(buffer.data(), static_cast<std::size_t>(out - buffer.data()));
  const auto found = state.site_ids.find(key);
  if (found != state.site_ids.end()) return found->second;
  if (state.sites.size() >= kMaxSites) return -1;
  Site site;
  site.host = state.hosts.id(record.host);
  site.pid = record.pid.value_or(-1);
  site.dev = record.dev.value_or(-1);
  state.known_hosts.add(record.host);
  state.sites.push_back(std::move(site));
  state.site_ids.emplace(key, static_cast<int>(state.sites.size() - 1));
  return static_cast<int>(state.sites.size() - 1);
}

int site_of_bare_rank(State& state, int rank) {
  const auto key = fmt::format("?{}", rank);
  const auto found = state.site_ids.find(key);
  if (found != state.site_ids.end()) return found->second;
  if (state.sites.size() >= kMaxSites) return -1;
  state.sites.emplace_back();
  state.site_ids.emplace(key, static_cast<int>(state.sites.size() - 1));
  return static_cast<int>(state.sites.size() - 1);
}

int new_scope(State& state, int site) {
  state.scopes.emplace_back();
  state.scopes.back().site = site;
  return static_cast<int>(state.scopes.size() - 1);
}

// A communicator that announced its start takes the lines that follow. Older versions name the communicator
// only when it is complete: until then the lines wait in a scope of their own.
Scope* scope_here(State& state, bool init) {
  auto* site = state.here();
  if (site == nullptr) {  // a line without host and process: all of them together
    for (auto& scope : state.scopes)
      if (scope.site < 0) return &scope;
    if (state.scopes.size() >= kMaxInstances) return nullptr;
    return &state.scopes[static_cast<std::size_t>(new_scope(state, -1))];
  }
  if (site->pending >= 0) return &state.scopes[static_cast<std::size_t>(site->pending)];
  auto* instance = state.current_instance();
  const bool complete = instance != nullptr && instance->initialised;
  if (instance != nullptr && !(init && complete) && instance->scope >= 0)
    return &state.scopes[static_cast<std::size_t>(instance->scope)];
  if (state.scopes.size() >= kMaxInstances) return nullptr;
  const int made = new_scope(state, state.site);
  if (instance != nullptr && !(init && complete)) {
    instance->scope = made;
    state.scopes[static_cast<std::size_t>(made)].instance = site->current;
  } else {
    site->pending = made;
  }
  return &state.scopes[static_cast<std::size_t>(made)];
}

void note(State& state, model::NoteKind kind, std::string_view subject, std::string_view text) {
  text = text.substr(0, 600);
  auto& ids = state.note_ids[static_cast<std::size_t>(kind)];
  const auto found = ids.find(text);
  if (found != ids.end()) {
    ++state.log.notes[static_cast<std::size_t>(found->second)].count;
    return;
  }
  if (ids.size() >= kMaxTexts) {
    ++state.log.notes[static_cast<std::size_t>(ids.begin()->second)].count;
    return;
  }
  model::LogNote made;
  made.kind = kind;
  made.subject = std::string(subject);
  made.text = std::string(text);
  made.count = 1;
  made.at = state.at;
  if (const auto* site = state.here(); site != nullptr) {
    made.host = state.hosts[site->host];
    if (site->dev >= 0) made.gpu = site->dev;
  }
  if (const auto* instance = state.current_instance(); instance != nullptr && instance->rank >= 0)
    made.rank = instance->rank;
  state.log.notes.push_back(std::move(made));
  ids.emplace(text, static_cast<int>(state.log.notes.size() - 1));
}

namespace {

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return parse_int<unsigned long long>(text).has_value();
}

}  // namespace

void setting(State& state, std::string_view name, std::string_view value, model::SettingBy by) {
  value = trim(value);
  if (value.ends_with('.') && is_integer(value.substr(0, value.size() - 1))) value.remove_suffix(1);
  value = value.substr(0, 4096);
  const auto key = fmt::format("{}\n{}\n{}", name, value, static_cast<int>(by));
  const auto found = state.setting_ids.find(key);
  if (found != state.setting_ids.end()) {
    ++state.log.env[static_cast<std::size_t>(found->second)].count;
    return;
  }
  if (state.log.env.size() >= kMaxProblems) return;
  const auto* site = state.here();
  state.log.env.push_back({std::string(name), std::string(value), by, 1, state.at,
                           site == nullptr ? std::string{} : state.hosts[site->host]});
  state.setting_ids.emplace(key, static_cast<int>(state.log.env.size() - 1));
}

// busId drops punctuation and leading zeros: domain << 20 | bus << 12 | device << 4 | function (NCCL
// src/misc/utils.cc).
std::string bdf_of_bus_id(std::uint64_t id) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id >> 20U, (id >> 12U) & 0xffU, (id >> 4U) & 0xffU,
                     id & 0xfU);
}

namespace {

// Brackets behind ranks: a device index up to 2.4 and from 2.18.3 on, a bus id between; RCCL changed at other
// times.
std::optional<int> brackets_hold_bus_ids(std::string_view library, std::string_view version) {
  const auto parts = split(version, '.');
  const auto major = parts.empty() ? std::nullopt : parse_int<int>(parts[0]);
  const auto minor = parts.size() < 2 ? std::nullopt : parse_int<int>(parts[1]);
  const auto patch = parts.size() < 3 ? std::nullopt : parse_int<int>(parts[2]);
  if (!major || !minor || *major != 2 || library == "RCCL") return std::nullopt;
  if (*minor < 5) return 0;
  return *minor < 18 || (*minor == 18 && patch.value_or(0) < 3) ? 1 : 0;
}

}  // namespace

// `text`: "2.28.9+cuda13.0", "2.18.6+hip6.0 HEAD:…", "2.22.3-HEAD:271856d", "2.26.2 compiled with CUDA 12.6".
void saw_version(State& state, std::string_view library, std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
  const auto version = text.substr(0, end);
  const auto numbers = split(version, '.');
  if (numbers.size() < 2 || version.size() > 20) return;
  for (const auto number : numbers)
    if (!parse_int<int>(number)) return;
  const auto rest = text.substr(end);
  Cursor in(rest);
  const auto suffix = in.until("+ ");
  std::string cuda;
  bool hip = false;
  if (in.take("+cuda") || in.take(" compiled with CUDA "))
    cuda = std::string(in.until(" \t,)"));
  else if (in.take("+hip"))
    hip = true, cuda = std::string(in.until(" \t,)"));
  if (!cuda.empty() && !parse_double(cuda)) cuda.clear();  // an unexpanded template
  if (hip) library = "RCCL";
  int index = -1;
  for (std::size_t i = 0; i < state.versions.size(); ++i) {
    const auto& seen = state.versions[i].seen;
    if (seen.library == library && seen.version == version && seen.cuda == cuda) index = static_cast<int>(i);
  }
  if (index < 0) {
    if (state.versions.size() >= 64) return;
    state.versions.push_back(
        {{std::string(library), std::string(version), cuda, 0, state.at, {}}, std::string(suffix), {}});
    index = static_cast<int>(state.versions.size() - 1);
    if (hip && !cuda.empty()) state.log.hip = cuda;
  }
  auto& seen = state.versions[static_cast<std::size_t>(index)];
  ++seen.seen.count;
  if (auto* site = state.here(); site != nullptr) {
    site->version = index;
    if (seen.hosts.size() < 10000) seen.hosts.insert(site->host);
  }
  if (!state.bracket_bus_ids) state.bracket_bus_ids = brackets_hold_bus_ids(library, version);
}

}  // namespace topotune::parse::log
