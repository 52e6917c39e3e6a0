#include "lint/fix.h"

#include <algorithm>

namespace topotune::lint {

namespace {

using sv = std::string_view;

// Lines with their ends.
std::vector<sv> whole_lines(sv text) {
  std::vector<sv> out;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::size_t size = end == sv::npos ? text.size() : end + 1;
    out.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

struct Change {
  std::size_t before, before_end, after, after_end;  // line numbers from 0, half open
};

// Edits change a few lines here and there: equal lines are matched greedily, looking at most kWindow lines
// ahead.
constexpr std::size_t kWindow = 400;

std::vector<Change> changes_between(const std::vector<sv>& a, const std::vector<sv>& b) {
  std::vector<Change> out;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i;
      ++j;
      continue;
    }
    // The nearest pair of equal lines behind the difference.
    std::size_t di = a.size() - i, dj = b.size() - j;
    const std::size_t limit = std::min(kWindow, di + dj);
    for (std::size_t sum = 1; sum <= limit; ++sum) {
      bool found = false;
      for (std::size_t x = 0; x <= sum && !found; ++x) {
        const std::size_t y = sum - x;
        if (i + x < a.size() && j + y < b.size() && a[i + x] == b[j + y]) {
          di = x;
          dj = y;
          found = true;
        }
      }
      if (found) break;
    }
    out.push_back({i, i + di, j, j + dj});
    i += di;
    j += dj;
  }
  return out;
}

void append_line(std::string& out, char mark, sv line) {
  out += mark;
  out += line;
  if (!line.ends_with('\n')) out += "\n\\ No newline at end of file\n";
}

std::string range(std::size_t first, std::size_t count) {
  if (count == 1) return fmt::format("{}", first + 1);
  return fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

constexpr std::size_t kContext = 3;

void append_hunk(std::string& out, const std::vector<sv>& a, const std::vector<sv>& b,
                 std::span<const Change> changes) {
  const std::size_t lead = std::min(kContext, changes.front().before);
  const std::size_t tail = std::min(kContext, a.size() - changes.back().before_end);
  const std::size_t a0 = changes.front().before - lead, a1 = changes.back().before_end + tail;
  const std::size_t b0 = changes.front().after - lead, b1 = changes.back().after_end + tail;
  out += fmt::format("@@ -{} +{} @@\n", range(a0, a1 - a0), range(b0, b1 - b0));
  std::size_t at = a0;
  for (const auto& change : changes) {
    for (; at < change.before; ++at) append_line(out, ' ', a[at]);
    for (; at < change.before_end; ++at) append_line(out, '-', a[at]);
    for (std::size_t n = change.after; n < change.after_end; ++n) append_line(out, '+', b[n]);
  }
  for (; at < a1; ++at) append_line(out, ' ', a[at]);
}

}  // namespace

std::string fixed_text(sv text, std::span<const Found> found, std::size_t index) {
  std::vector<const Edit*> edits;
  for (const auto& one : found)
    if (one.input == index)
      for (const auto& edit : one.edits)
        if (edit.span.begin <= edit.span.end && edit.span.end <= text.size()) edits.push_back(&edit);
  // A removal of the whole line goes before changes inside of it.
  std::ranges::stable_sort(edits, [](const Edit* a, const Edit* b) {
    if (a->span.begin != b->span.begin) return a->span.begin < b->span.begin;
    return a->span.end > b->span.end;
  });
  std::string out;
  std::size_t at = 0;
  for (const auto* edit : edits) {
    if (edit->span.begin < at) continue;
    out += text.substr(at, edit->span.begin - at);
    out += edit->text;
    at = edit->span.end;
  }
  out += text.substr(at);
  return out;
}

std::string unified_diff(sv name, sv before, sv after) {
  const auto a = whole_lines(before), b = whole_lines(after);
  const auto changes = changes_between(a, b);
  if (changes.empty()) return "";
  while (name.starts_with('/')) name.remove_prefix(1);
  std::string out = fmt::format("--- a/{}\n+++ b/{}\n", name, name);
  for (std::size_t n = 0; n < changes.size();) {
    std::size_t end = n + 1;
    while (end < changes.size() && changes[end].before - changes[end - 1].before_end <= 2 * kContext) ++end;
    append_hunk(out, a, b, std::span(changes).subspan(n, end - n));
    n = end;
  }
  return out;
}

}  // namespace topotune::lint
