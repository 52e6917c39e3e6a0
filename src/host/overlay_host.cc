#include "host/overlay_host.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "host/encoding.h"
#include "host/pattern.h"
#include "host/records.h"

namespace topotune::host {

namespace {

using Apply = std::function<Answer(const Answer&)>;
using Json = nlohmann::ordered_json;

Answer stale(int line, std::string_view what) {
  return fail_at(line, "overlay: the machine's answer has no {}", printable(what).substr(0, 80));
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (auto at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

// "edit": payload lines in pairs, old text and new text.
Result<Apply> edit_of(const Record& record) {
  std::vector<std::string> texts;
  for (const auto line : lines(record.payload)) texts.emplace_back(line);
  if (texts.empty() || texts.size() % 2 != 0 || texts[0].empty()) {
    return fail_at(record.line, "edit takes pairs of lines: old text, new text");
  }
  return [texts, line = record.line](const Answer& before) -> Answer {
    if (!before) return before;
    std::string text = *before;
    for (std::size_t i = 0; i < texts.size(); i += 2) {
      if (text.find(texts[i]) == std::string::npos) return stale(line, texts[i]);
      text = replace_all(text, texts[i], texts[i + 1]);
    }
    return text;
  };
}

struct JsonEdit {
  Json::json_pointer at;
  Json value;  // discarded: remove
};

Result<JsonEdit> json_edit(std::string_view line, int number) {
  const auto blank = line.find(' ');
  if (blank == std::string_view::npos) return fail_at(number, "json takes lines 'POINTER VALUE'");
  const auto value = trim(line.substr(blank + 1));
  JsonEdit out;
  try {
    out.at = Json::json_pointer(std::string(line.substr(0, blank)));
  } catch (const nlohmann::json::exception& e) {
    return fail_at(number, "{}", e.what());
  }
  out.value = Json::parse(value, nullptr, false);
  if (out.value.is_discarded() && value != "-")
    return fail_at(number, "'{}' is no JSON value", printable(value));
  return out;
}

// One step of a "json" record; false where the pointer leads nowhere.
bool apply_edit(Json& document, const JsonEdit& edit) {
  try {
    if (!edit.value.is_discarded()) {
      document[edit.at] = edit.value;
      return true;
    }
    if (!document.contains(edit.at) || edit.at.empty()) return false;
    auto& parent = document.at(edit.at.parent_pointer());
    if (parent.is_array()) parent.erase(parse_int<std::size_t>(edit.at.back()).value_or(parent.size()));
    if (parent.is_object()) parent.erase(edit.at.back());
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

// "json": payload lines "POINTER VALUE"; the value "-" removes.
Result<Apply> json_of(const Record& record) {
  std::vector<JsonEdit> edits;
  int number = record.line;
  for (const auto line : lines(record.payload)) {
    auto edit = json_edit(line, ++number);
    if (!edit) return tl::unexpected(edit.error());
    edits.push_back(std::move(*edit));
  }
  return [edits, line = record.line](const Answer& before) -> Answer {
    if (!before) return before;
    auto document = Json::parse(*before, nullptr, false);
    if (document.is_discarded()) return stale(line, "JSON document");
    for (const auto& edit : edits) {
      if (!apply_edit(document, edit)) return stale(line, edit.at.to_string());
    }
    return document.dump();
  };
}

Result<Overlay::Change> set_of(const Record& record, Call call) {
  auto answer = record.error ? Answer(tl::unexpected(*record.error)) : Answer(record.payload);
  return Overlay::Change{question_from(call, record.name), [answer](const Answer&) { return answer; }};
}

// "edit CALL NAME" and "json CALL NAME".
Result<Overlay::Change> derived(const Record& record) {
  const auto blank = std::min(record.name.find(' '), record.name.size());
  const auto call = call_from(record.name.substr(0, blank));
  if (!call || blank + 1 >= record.name.size())
    return fail_at(record.line, "{} takes CALL NAME", record.verb);
  auto apply = record.verb == "edit" ? edit_of(record) : json_of(record);
  if (!apply) return tl::unexpected(apply.error());
  return Overlay::Change{question_from(*call, record.name.substr(blank + 1)), std::move(*apply)};
}

Result<Overlay::Change> change_of(const Record& record) {
  if (const auto call = call_from(record.verb)) return set_of(record, *call);
  if (record.verb == "edit" || record.verb == "json") return derived(record);
  return fail_at(record.line, "'{}' is no entry of an overlay", printable(record.verb).substr(0, 60));
}

std::string join(std::string_view folder, std::string_view name) {
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

}  // namespace

Result<Overlay> parse_overlay(std::string_view text) {
  const auto records = parse_records(text, "topotune-overlay");
  if (!records) return tl::unexpected(records.error());
  Overlay out;
  for (const auto& record : records->records) {
    if (record.verb == "drop") {
      out.dropped.push_back(unescape(record.name).value_or(""));
      continue;
    }
    auto change = change_of(record);
    if (!change) return tl::unexpected(change.error());
    out.changes.push_back(std::move(*change));
  }
  return out;
}

// The path itself or a folder above it is dropped.
bool OverlayHost::gone(std::string_view path) const {
  return std::ranges::any_of(overlay_.dropped, [&](const std::string& pattern) {
    return matches(pattern, path) || matches(pattern + "/**", path);
  });
}

Answer OverlayHost::answer(Call call, std::string_view name, const std::function<Answer()>& inner) const {
  Answer out = inner();
  for (const auto& change : overlay_.changes) {
    if (change.question.call == call && matches(change.question.name, name)) out = change.apply(out);
  }
  return out;
}

Answer OverlayHost::file_answer(Call call, std::string_view path,
                                const std::function<Answer()>& inner) const {
  if (gone(path)) return fail(Errc::not_found, "{}: not found", path);
  return answer(call, path, inner);
}

Result<std::string> OverlayHost::read(std::string_view path) const {
  return file_answer(Call::read, path, [&] { return inner_.read(path); });
}

Result<std::vector<std::string>> OverlayHost::list(std::string_view path) const {
  const auto text = file_answer(Call::list, path, [&] { return inner_.list(path).map(join_names); });
  if (!text) return tl::unexpected(text.error());
  auto names = split_names(*text);
  std::erase_if(names, [&](const std::string& name) { return gone(join(path, name)); });
  return names;
}

Result<std::string> OverlayHost::link(std::string_view path) const {
  return file_answer(Call::link, path, [&] { return inner_.link(path); });
}

Result<std::string> OverlayHost::run(std::span<const std::string> argv) const {
  const auto name = command_name(argv);
  return answer(Call::run, name, [&] { return inner_.run(argv); });
}

Result<std::string> OverlayHost::probe(std::string_view name) const {
  return answer(Call::probe, name, [&] { return inner_.probe(name); });
}

}  // namespace topotune::host
