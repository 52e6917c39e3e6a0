#include "act/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "host/files.h"

namespace topotune::act {

namespace {

using Json = nlohmann::ordered_json;

// CRC-32 (IEEE 802.3) of a record's text.
std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

// Bytes of any file as text: hexadecimal where they are not plain ASCII.
Json bytes_json(const std::string& bytes) {
  const bool plain = std::ranges::all_of(bytes, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (plain) return bytes;
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return {{"hex", hex}};
}

std::optional<std::string> bytes_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object() || !json.contains("hex") || !json["hex"].is_string()) return std::nullopt;
  const auto hex = json["hex"].get<std::string>();
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto value = parse_int<unsigned>(std::string_view(hex).substr(i, 2), 16);
    if (!value) return std::nullopt;
    out += static_cast<char>(*value);
  }
  return out;
}

Json state_json(const std::optional<FileState>& state) {
  if (!state) return nullptr;
  return {
      {"bytes", bytes_json(state->bytes)}, {"mode", state->mode}, {"uid", state->uid}, {"gid", state->gid}};
}

std::string entry_json(const Entry& entry) {
  Json out = {{"what", "before"},
              {"id", entry.id},
              {"kind", name_of(entry.kind)},
              {"target", entry.target},
              {"command", entry.command}};
  out["after"] = entry.after ? bytes_json(*entry.after) : Json(nullptr);
  out["before"] = state_json(entry.before);
  out["folders"] = entry.folders;
  return out.dump(-1, ' ', true);
}

std::optional<FileState> state_of(const Json& json) {
  const auto bytes = bytes_of(json.at("bytes"));
  if (!bytes) return std::nullopt;
  return FileState{*bytes, json.at("mode").get<unsigned>(), json.at("uid").get<unsigned>(),
                   json.at("gid").get<unsigned>()};
}

std::optional<Entry> entry_of(const Json& json) {
  Entry out;
  out.id = json.at("id").get<std::string>();
  const auto kind = model::action_kind_from(json.at("kind").get<std::string>());
  if (!kind) return std::nullopt;
  out.kind = *kind;
  out.target = json.at("target").get<std::string>();
  out.command = json.at("command").get<std::vector<std::string>>();
  if (!json.at("after").is_null()) {
    out.after = bytes_of(json.at("after"));
    if (!out.after) return std::nullopt;
  }
  if (!json.at("before").is_null()) {
    out.before = state_of(json.at("before"));
    if (!out.before) return std::nullopt;
  }
  out.folders = json.at("folders").get<std::vector<std::string>>();
  return out;
}

// "abcd1234 {json}" -> json; nothing when the sum is wrong.
std::optional<Json> record_of(std::string_view line) {
  const auto sum =
      line.size() > 9 && line[8] == ' ' ? parse_int<std::uint32_t>(line.substr(0, 8), 16) : std::nullopt;
  if (!sum || *sum != crc32(line.substr(9))) return std::nullopt;
  auto json = Json::parse(line.substr(9), nullptr, false);
  if (json.is_discarded() || !json.is_object()) return std::nullopt;
  return json;
}

bool take_record(JournalText& text, const Json& json) {
  const auto what = json.at("what").get<std::string>();
  if (what == "begin")
    text.interrupted = true;
  else if (what == "end")
    text.interrupted = false;
  else if (what == "before") {
    auto entry = entry_of(json);
    if (!entry) return false;
    text.entries.push_back(std::move(*entry));
  } else {
    const auto place = json.at("entry").get<std::size_t>();
    if (place >= text.entries.size()) return false;
    auto* entry = &text.entries[place];
    if (what == "done")
      entry->done = true;
    else if (what == "undoing")
      entry->undoing = true;
    else if (what == "undone")
      entry->undone = true;
    else
      return false;
  }
  return true;
}

bool good_record(JournalText& text, std::string_view line) {
  const auto json = record_of(line);
  if (!json) return false;
  try {
    return take_record(text, *json);
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

tl::unexpected<Error> failed(const std::string& path, int number) {
  return tl::unexpected(host::error_of(number, path));
}

}  // namespace

Result<JournalText> parse_journal(std::string_view bytes) {
  JournalText out;
  int line = 0;
  while (out.good_bytes < bytes.size()) {
    ++line;
    const auto end = bytes.find('\n', out.good_bytes);
    if (end == std::string_view::npos) return out;  // cut off: never took effect
    const bool last = end + 1 == bytes.size();
    if (!good_record(out, bytes.substr(out.good_bytes, end - out.good_bytes))) {
      if (last) return out;
      auto error = fail_at(line, "a damaged record: the journal cannot be trusted");
      error.value().file = kJournal;
      return error;
    }
    out.good_bytes = end + 1;
  }
  return out;
}

Result<Journal> Journal::open(System& system) {
  Journal out(system);
  if (auto made = system.make_folders(kJournal); !made) return tl::unexpected(made.error());
  const auto lock = system.real(std::string(kJournalFolder) + "/lock");
  out.lock_ = host::Fd(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out.lock_.good()) return failed(std::string(kJournalFolder) + "/lock", errno);
  if (::flock(out.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::io, "{}: another topotune is changing this machine", kJournal);
  out.file_ = host::Fd(
      ::open(system.real(kJournal).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out.file_.good()) return failed(kJournal, errno);
  const auto bytes = system.read(kJournal);
  if (!bytes) return tl::unexpected(bytes.error());
  auto text = parse_journal(*bytes);
  if (!text) return tl::unexpected(text.error());
  if (text->good_bytes < bytes->size() &&
      ::ftruncate(out.file_.get(), static_cast<off_t>(text->good_bytes)) != 0)
    return failed(kJournal, errno);
  const host::Fd folder(::open(system.real(kJournalFolder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.good()) ::fsync(folder.get());
  out.text_ = std::move(*text);
  return out;
}

Result<bool> Journal::append(const std::string& record) {
  const auto line = fmt::format("{:08x} {}\n", crc32(record), record);
  system_->point();
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = ::write(file_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(kJournal, errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  system_->point();
  if (::fsync(file_.get()) != 0) return failed(kJournal, errno);
  system_->point();
  good_record(text_, std::string_view(line).substr(0, line.size() - 1));
  return true;
}

Result<bool> Journal::begin() {
  return append(Json{{"what", "begin"}, {"tool", std::string("topotune ") + TOPOTUNE_VERSION}}.dump());
}
Result<bool> Journal::before(const Entry& entry) { return append(entry_json(entry)); }
Result<bool> Journal::mark(const char* what, std::size_t entry) {
  return append(Json{{"what", what}, {"entry", entry}}.dump());
}
Result<bool> Journal::end() { return append(Json{{"what", "end"}}.dump()); }

Result<bool> Journal::close_undone() {
  system_->point();
  if (::rename(system_->real(kJournal).c_str(), system_->real(kLastJournal).c_str()) != 0)
    return failed(kJournal, errno);
  system_->point();
  return true;
}

}  // namespace topotune::act
