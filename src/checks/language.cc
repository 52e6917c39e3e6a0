#include "checks/language.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/text.h"
#include "data/embedded.h"

namespace topotune::checks {
namespace {

using sv = std::string_view;

constexpr sv kHole = "{}";
constexpr int kDepth = 3;  // messages inside messages

std::vector<std::vector<sv>> rows_of(sv tsv, std::size_t columns, sv header) {
  std::vector<std::vector<sv>> out;
  for (const auto line : split(tsv, '\n')) {
    auto cells = split(line, '\t');
    if (cells.size() == columns && cells[0] != header) out.push_back(std::move(cells));
  }
  return out;
}

// "a{}b{}" -> "a", "b", "".
std::vector<sv> literals_of(sv pattern) {
  std::vector<sv> out;
  for (auto at = pattern.find(kHole); at != sv::npos; at = pattern.find(kHole)) {
    out.push_back(pattern.substr(0, at));
    pattern.remove_prefix(at + kHole.size());
  }
  out.push_back(pattern);
  return out;
}

struct Message {
  std::vector<sv> literals;
  std::size_t fixed = 0;  // bytes of the literals: the more, the surer
  sv to;
};

struct Messages {
  std::vector<Message> with_holes;  // surest first
  std::unordered_map<sv, sv> whole;
};

Messages read_messages() {
  Messages out;
  for (const auto& row : message_translations()) {
    Message message{literals_of(row.from), 0, row.to};
    if (message.literals.size() == 1) {
      out.whole.emplace(row.from, row.to);
      continue;
    }
    for (const auto literal : message.literals) message.fixed += literal.size();
    out.with_holes.push_back(std::move(message));
  }
  // Texts of the catalogue, as parts of others.
  for (const auto& row : catalogue()) {
    const auto* translated = find_translation(row.id);
    if (translated == nullptr) continue;
    out.whole.emplace(row.title, translated->title);
    out.whole.emplace(row.impact, translated->impact);
    out.whole.emplace(row.remedy, translated->remedy);
  }
  std::ranges::stable_sort(out.with_holes, std::ranges::greater{}, &Message::fixed);
  return out;
}

const Messages& messages() {
  static const Messages all = read_messages();
  return all;
}

// What stands in the holes, each literal taken at its first place and the last one at the end.
std::optional<std::vector<sv>> match(sv text, const std::vector<sv>& literals) {
  if (!text.starts_with(literals.front())) return std::nullopt;
  text.remove_prefix(literals.front().size());
  std::vector<sv> holes;
  for (std::size_t i = 1; i < literals.size(); ++i) {
    const bool last = i + 1 == literals.size();
    if (last && !text.ends_with(literals[i])) return std::nullopt;
    const auto at = last ? text.size() - literals[i].size() : text.find(literals[i]);
    if (at == sv::npos) return std::nullopt;
    holes.push_back(text.substr(0, at));
    text.remove_prefix(at + literals[i].size());
  }
  return holes;
}

std::optional<std::string> message(sv text, int depth);

// A message, or a list of them ("a, b"), or the text as it is.
std::string inner(sv text, int depth) {
  if (auto whole = message(text, depth)) return *whole;
  std::string out;
  for (auto rest = text; !rest.empty();) {
    const auto comma = rest.find(", ");
    const auto part = rest.substr(0, comma);
    out += (out.empty() ? "" : ", ") + message(part, depth).value_or(std::string(part));
    rest = comma == sv::npos ? sv() : rest.substr(comma + 2);
  }
  return out;
}

// The pattern with its holes filled: "{}" takes the next one, "{1}" the one of that number from 0.
std::string filled(sv pattern, const std::vector<sv>& holes, int depth) {
  std::string out;
  std::size_t next = 0;
  while (!pattern.empty()) {
    const auto open = pattern.find('{');
    const auto close = open == sv::npos ? sv::npos : pattern.find('}', open);
    if (close == sv::npos) break;
    out += pattern.substr(0, open);
    const auto number = parse_int<std::size_t>(pattern.substr(open + 1, close - open - 1));
    const auto at = number ? *number : next++;
    if (at < holes.size()) out += inner(holes[at], depth - 1);
    pattern.remove_prefix(close + 1);
  }
  return out += pattern;
}

std::optional<std::string> message(sv text, int depth) {
  if (depth == 0) return std::nullopt;
  const auto& all = messages();
  if (const auto found = all.whole.find(text); found != all.whole.end()) return std::string(found->second);
  for (const auto& one : all.with_holes)
    if (const auto holes = match(text, one.literals)) return filled(one.to, *holes, depth);
  return std::nullopt;
}

// `own` is the catalogue's text in English, `translated` the same in the other language.
void translate_text(std::string& text, sv own, sv translated, bool may_replace) {
  if (text.empty()) return;
  if (text != own) {
    if (auto better = message(text, kDepth); better && !is_prose(*better)) {  // not half of it
      text = std::move(*better);
      return;
    }
    if (!may_replace || !is_prose(text)) return;
  }
  text = translated;
}

}  // namespace

std::span<const RuleTranslation> translations() {
  static const auto rows = [] {
    std::vector<RuleTranslation> out;
    for (const auto& c : rows_of(data::rules_zh_tsv(), 4, "id")) out.push_back({c[0], c[1], c[2], c[3]});
    return out;
  }();
  return rows;
}

const RuleTranslation* find_translation(sv id) {
  const auto rows = translations();
  const auto found = std::ranges::find(rows, id, &RuleTranslation::id);
  return found == rows.end() ? nullptr : &*found;
}

std::span<const MessageTranslation> message_translations() {
  static const auto rows = [] {
    std::vector<MessageTranslation> out;
    for (const auto& c : rows_of(data::messages_zh_tsv(), 2, "en")) out.push_back({c[0], c[1]});
    return out;
  }();
  return rows;
}

std::optional<std::string> translated_message(sv text) { return message(text, kDepth); }

bool is_prose(sv text) {
  int in_a_row = 0;
  for (auto word : words(text)) {
    const bool listed = word.ends_with(',');  // values of a list are no sentence
    while (!word.empty() && sv(",;:.?)").find(word.back()) != sv::npos) word.remove_suffix(1);
    const bool plain = word.size() > 1 && word != "topotune" &&
                       std::ranges::all_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
    in_a_row = plain ? in_a_row + 1 : 0;
    if (in_a_row == 2) return true;
    if (listed) in_a_row = 0;
  }
  return false;
}

void translate(model::Diagnosis& diagnosis, model::Language language) {
  if (language == model::Language::en) return;
  for (auto& finding : diagnosis.findings) {
    const auto* row = find_rule(finding.rule);
    const auto* translated = find_translation(finding.rule);
    if (row == nullptr || translated == nullptr) continue;
    translate_text(finding.title, row->title, translated->title, true);
    translate_text(finding.impact, row->impact, translated->impact, true);
    translate_text(finding.remedy, row->remedy, translated->remedy, false);
  }
}

namespace {

constexpr std::pair<sv, sv> kHeadings[] = {{"severity", "严重程度"},
                                           {"what it means", "含义"},
                                           {"how it is read", "读取方式"},
                                           {"why it hurts", "影响"},
                                           {"when it is not a fault", "何时不算故障"},
                                           {"remedy", "处理"},
                                           {"since", "自版本"},
                                           {"removed", "移除于"},
                                           {"source", "来源"},
                                           {"may follow from", "可能的起因"},
                                           {"default", "默认值"},
                                           {"meaning", "含义"},
                                           {"notes", "说明"},
                                           {"misuse", "常见误用"},
                                           {"cost", "代价"},
                                           {"word of", "出处"},
                                           {"action", "处理"},
                                           {"misreading", "常见误读"}};

}  // namespace

void translate(model::Page& page, model::Language language) {
  if (language == model::Language::en) return;
  const auto* row = page.kind == "rule" ? find_rule(page.name) : nullptr;
  const auto* translated = row != nullptr ? find_translation(row->id) : nullptr;
  if (translated != nullptr) page.title = translated->title;
  for (auto& section : page.sections) {
    if (translated != nullptr && section.text == row->impact) section.text = translated->impact;
    if (translated != nullptr && section.text == row->remedy) section.text = translated->remedy;
    const auto* heading = std::ranges::find(kHeadings, sv(section.heading), &std::pair<sv, sv>::first);
    if (heading != std::end(kHeadings)) section.heading = heading->second;
  }
}

}  // namespace topotune::checks
