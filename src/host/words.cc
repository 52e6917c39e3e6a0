#include "host/words.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace topotune::host {

namespace {

bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view first_run(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && is_alnum(text[size])) ++size;
  return text.substr(0, size);
}

// The path or word that text[i] is part of, up to i.
std::string_view path_before(std::string_view text, std::size_t i) {
  const std::size_t limit = i < 256 ? 0 : i - 256;
  std::size_t begin = i;
  while (begin > limit && std::string_view(" \t\n\"'=<>(,;").find(text[begin - 1]) == std::string_view::npos)
    --begin;
  return text.substr(begin, i - begin);
}

bool in_system_path(std::string_view text, std::size_t i) {
  constexpr std::array<std::string_view, 10> kRoots{"/sys/", "/proc/", "/usr/", "/lib",  "/etc/",
                                                    "/dev/", "/bin/",  "/boot", "/sbin", "../"};
  const auto path = path_before(text, i);
  return std::ranges::any_of(kRoots, [&](std::string_view root) { return path.starts_with(root); });
}

bool is_key_char(char c) { return is_alnum(c) || c == '_' || c == '-'; }

// `"...": `, ` ...="`, `<...`: the word that text[i] to text[end] is in.
bool in_key(std::string_view text, std::size_t i, std::size_t end) {
  constexpr std::size_t kMaxKey = 64;
  for (std::size_t n = 0; n < kMaxKey && i > 0 && is_key_char(text[i - 1]); ++n) --i;
  for (std::size_t n = 0; n < kMaxKey && end < text.size() && is_key_char(text[end]); ++n) ++end;
  const char before = i == 0 ? ' ' : text[i - 1];
  const auto after = text.substr(end, 2);
  if (before == '"') return after.starts_with("\":");
  if (before == '<' || (before == '/' && i > 1 && text[i - 2] == '<')) return true;
  return before == ' ' && after == "=\"";
}

bool is_login(std::string_view text, std::size_t i, std::size_t end) {
  const char before = i == 0 ? ' ' : text[i - 1];
  if ((before == '/' || before == '~') && !in_system_path(text, i)) return true;
  if (end < text.size() && text[end] == '@') return true;
  const std::size_t from = i < 12 ? 0 : i - 12;
  return icontains(text.substr(from, i - from), "user") || icontains(text.substr(from, i - from), "login");
}

bool counts(Words::Where where, std::string_view text, std::size_t i, std::size_t size) {
  if (where == Words::Where::not_in_system_paths)
    return !in_system_path(text, i) && !in_key(text, i, i + size);
  if (where == Words::Where::in_paths_and_logins) return is_login(text, i, i + size);
  return true;
}

}  // namespace

void Words::add(std::string_view name, std::string stand_in, Where where) {
  const auto first = first_run(name);
  if (first.empty() || has(name)) return;
  auto& words = by_first_[to_lower(first)];
  words.push_back({to_lower(name), std::move(stand_in), where});
  std::ranges::stable_sort(words, std::ranges::greater{}, [](const Word& word) { return word.name.size(); });
}

bool Words::has(std::string_view name) const {
  const auto lower = to_lower(name);
  const auto found = by_first_.find(first_run(lower));
  return found != by_first_.end() &&
         std::ranges::find(found->second, lower, &Word::name) != found->second.end();
}

// The longest name that stands at text[i], where a run of letters and digits begins.
const Words::Word* Words::word_at(std::string_view text, std::string_view lower, std::size_t i) const {
  const auto found = by_first_.find(first_run(lower.substr(i)));
  if (found == by_first_.end()) return nullptr;
  for (const auto& word : found->second) {
    const std::size_t end = i + word.name.size();
    if (lower.compare(i, word.name.size(), word.name) != 0 || (end < text.size() && is_alnum(text[end])))
      continue;
    if (counts(word.where, text, i, word.name.size())) return &word;
  }
  return nullptr;
}

std::string Words::replace(std::string_view text) const {
  if (by_first_.empty()) return std::string(text);
  const auto lower = to_lower(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (!is_alnum(text[i])) {
      out += text[i++];
      continue;
    }
    const Word* word = word_at(text, lower, i);
    const auto run = word != nullptr ? word->name.size() : first_run(text.substr(i)).size();
    out += word != nullptr ? std::string_view(word->stand_in) : text.substr(i, run);
    i += run;
  }
  return out;
}

}  // namespace topotune::host
