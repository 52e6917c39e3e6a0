#include "checks/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "checks/causes.h"
#include "data/embedded.h"

namespace topotune::checks {
namespace {

using model::Page;
using Row = std::vector<std::string_view>;

struct Table {
  std::string_view (*text)();
  std::string_view kind;
  std::size_t columns;
  std::size_t title;  // column
  Page (*page)(const Row&);
};

bool word_character(char c) {
  return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool names_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !word_character(text[at - 1])) && (end == text.size() || !word_character(text[end])))
      return true;
  }
  return false;
}

// Rules whose texts name the word: how it is misused.
std::vector<std::string> rules_about(std::string_view word) {
  std::vector<std::string> out;
  for (const auto& row : catalogue())
    if (names_word(row.title, word) || names_word(row.condition, word) || names_word(row.remedy, word))
      out.emplace_back(row.id);
  return out;
}

void add(Page& page, std::string heading, std::string_view text) {
  if (!text.empty()) page.sections.push_back({std::move(heading), std::string(text)});
}

void add_misuse(Page& page) {
  std::string text;
  for (const auto& id : rules_about(page.name)) {
    page.see.push_back(id);
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", id, find_rule(id)->title);
  }
  add(page, "misuse", text);
}

// "first tag 2.5.6; …" and "REMOVED: tags 2.10.3..2.12.12, gone in 2.13.4".
std::string_view since_in(std::string_view notes) {
  for (const std::string_view key : {"first tag ", "since<=", "tags "}) {
    const auto at = notes.find(key);
    if (at == std::string_view::npos) continue;
    const auto rest = notes.substr(at + key.size());
    const auto end = rest.find_first_not_of("0123456789.");
    auto version = rest.substr(0, end);
    if (const auto dots = version.find(".."); dots != std::string_view::npos)
      version = version.substr(0, dots);
    return version;
  }
  return {};
}

std::string_view removed_in(std::string_view notes) {
  constexpr std::string_view kKey = "gone in ";
  const auto at = notes.find(kKey);
  if (at == std::string_view::npos) return {};
  const auto rest = notes.substr(at + kKey.size());
  return rest.substr(0, rest.find_first_not_of("0123456789."));
}

Page variable_page(const Row& row, std::string_view kind) {
  Page page{std::string(row[0]), std::string(kind), std::string(row[2]), {}, {}};
  add(page, "default", row[1]);
  add(page, "meaning", row[2]);
  add(page, "since", since_in(row[3]));
  add(page, "removed", removed_in(row[3]));
  add(page, "notes", row[3]);
  add_misuse(page);
  return page;
}

Page nccl_page(const Row& row) { return variable_page(row, "nccl-variable"); }
Page ucx_page(const Row& row) { return variable_page(row, "ucx-variable"); }
Page topotune_page(const Row& row) { return variable_page(row, "topotune-variable"); }

Page path_page(const Row& row) {
  Page page{std::string(row[0]), "path", std::string(row[2]), {}, {}};
  add(page, "meaning", row[3]);
  add(page, "cost", row[4]);
  add(page, "word of", row[1]);
  add(page, "since", row[5]);
  add(page, "source", row[6]);
  page.see = rules_named_in(row[3]);
  return page;
}

Page xid_page(const Row& row) {
  Page page{fmt::format("Xid {}", row[0]), "xid", std::string(row[1]), {}, {"GPU03"}};
  add(page, "severity", row[2]);
  add(page, "meaning", row[3]);
  add(page, "action", row[4]);
  add(page, "source", "NVIDIA Xid catalogue");
  return page;
}

Page counter_page(const Row& row) {
  Page page{std::string(row[0]), "counter", std::string(row[1]), {}, rules_named_in(row[3])};
  add(page, "meaning", row[1]);
  add(page, "misreading", row[2]);
  add(page, "source", row[4]);
  return page;
}

constexpr Table kTables[] = {
    {data::path_types_tsv, "path", 7, 2, path_page},
    {data::nccl_env_tsv, "nccl-variable", 4, 2, nccl_page},
    {data::ucx_env_tsv, "ucx-variable", 4, 2, ucx_page},
    {data::topotune_env_tsv, "topotune-variable", 4, 2, topotune_page},
    {data::xids_tsv, "xid", 5, 1, xid_page},
    {data::counters_tsv, "counter", 5, 0, counter_page},
};

template <class F>
void each_row(const Table& table, F call) {
  bool header = true;
  for (const auto line : split(table.text(), '\n')) {
    const auto row = split(line, '\t');
    if (!header && row.size() == table.columns) call(row);
    header = false;
  }
}

std::string without_xid(std::string_view name) {
  const auto lower = to_lower(name);
  return lower.starts_with("xid ") ? std::string(trim(name.substr(4))) : std::string(name);
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> rules_named_in(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto end =
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), word_character) -
        text.begin();
    const auto word = text.substr(at, static_cast<std::size_t>(end) - at);
    const bool fresh = find_rule(word) != nullptr && std::ranges::find(out, word) == out.end();
    if (fresh) out.emplace_back(word);
    at = static_cast<std::size_t>(end) + 1;
  }
  return out;
}

Page rule_page(const RuleText& row) {
  Page page{std::string(row.id), "rule", std::string(row.title), {}, {}};
  add(page, "severity", row.severity);
  add(page, "what it means", row.condition);
  add(page, "how it is read", fmt::format("{} (input: {})", row.evidence_needed, row.input));
  add(page, "why it hurts", row.impact);
  add(page, "when it is not a fault", row.not_when);
  add(page, "remedy", row.remedy);
  add(page, "since", row.since);
  add(page, "source", row.source);
  for (const auto text : {row.condition, row.not_when, row.remedy})
    for (auto& id : rules_named_in(text))
      if (id != row.id && std::ranges::find(page.see, id) == page.see.end())
        page.see.push_back(std::move(id));
  std::size_t count = 0;
  const auto* links = cause_table(count);
  for (std::size_t i = 0; i < count; ++i)
    if (row.id == links[i].effect)
      add(page, "may follow from", fmt::format("{}: {}", links[i].cause, links[i].why));
  return page;
}

std::optional<Page> page_of(std::string_view name) {
  const auto wanted = without_xid(trim(name));
  for (const auto& row : catalogue())
    if (iequals(row.id, wanted)) return rule_page(row);
  std::optional<Page> page;
  for (const auto& table : kTables)
    each_row(table, [&](const Row& row) {
      if (!page && iequals(row[0], wanted)) page = table.page(row);
    });
  return page;
}

std::vector<Named> all_names() {
  std::vector<Named> out;
  for (const auto& row : catalogue()) out.push_back({std::string(row.id), "rule", std::string(row.title)});
  for (const auto& table : kTables)
    each_row(table, [&](const Row& row) {
      const auto prefix = table.kind == "xid" ? "Xid " : "";
      out.push_back({prefix + std::string(row[0]), std::string(table.kind), std::string(row[table.title])});
    });
  return out;
}

std::vector<std::string> nearest_names(std::string_view name) {
  constexpr std::size_t kLongest = 64, kMost = 3;
  const auto wanted = to_lower(name.substr(0, kLongest));
  const auto limit = std::max<std::size_t>(1, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const auto& one : all_names()) {
    const auto away = distance(wanted, to_lower(one.name));
    if (away <= limit) near.emplace_back(away, one.name);
  }
  std::ranges::sort(near);
  std::vector<std::string> out;
  for (const auto& [away, found] : near)
    if (out.size() < kMost && std::ranges::find(out, found) == out.end()) out.push_back(found);
  return out;
}

std::string_view family_of(std::string_view id) { return id.substr(0, id.find_first_of("0123456789")); }

std::vector<std::string_view> families() {
  std::vector<std::string_view> out;
  for (const auto& row : catalogue())
    if (std::ranges::find(out, family_of(row.id)) == out.end()) out.push_back(family_of(row.id));
  return out;
}

std::string family_markdown(std::string_view family) {
  std::string out =
      fmt::format("# {} rules\n\nMade from `data/rules.tsv` by `scripts/make_rule_docs.sh`.\n", family);
  for (const auto& row : catalogue()) {
    if (family_of(row.id) != family) continue;
    const auto page = rule_page(row);
    out += fmt::format("\n## {}: {}\n\n", page.name, page.title);
    for (const auto& section : page.sections)
      out += fmt::format("- **{}**: {}\n", section.heading, section.text);
    if (!page.see.empty()) out += fmt::format("- **see also**: {}\n", fmt::join(page.see, ", "));
  }
  return out;
}

}  // namespace topotune::checks
