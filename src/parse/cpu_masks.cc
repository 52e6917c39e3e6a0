#include "parse/cpu_masks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace topotune::parse {

namespace {

// Digits of each 32-bit word, least significant first.
std::vector<std::size_t> word_lengths(std::string_view mask) {
  std::vector<std::size_t> out;
  for (auto word : split(trim(mask), ',')) {
    word = trim(word);
    out.push_back(word.size() - (word.starts_with("0x") ? 2 : 0));
  }
  std::ranges::reverse(out);
  return out;
}

std::vector<std::size_t> longest_words(const std::vector<WrittenMask>& masks) {
  std::vector<std::size_t> longest;
  for (const auto& mask : masks) {
    const auto lengths = word_lengths(mask.text);
    longest.resize(std::max(longest.size(), lengths.size()));
    for (std::size_t i = 0; i < lengths.size(); ++i) longest[i] = std::max(longest[i], lengths[i]);
  }
  return longest;
}

// A word behind others has eight digits; the first word of a mask is as long as in the machine's other masks.
bool is_short(std::string_view mask, const std::vector<std::size_t>& longest) {
  const auto lengths = word_lengths(mask);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto due = i + 1 < lengths.size() ? std::size_t{8} : std::min(longest[i], std::size_t{8});
    if (lengths[i] < due) return true;
  }
  return false;
}

std::optional<model::Warning> overlap(const std::vector<WrittenMask>& masks) {
  CpuSet seen;
  const WrittenMask* first = nullptr;
  CpuSet both;
  std::string owners;
  for (const auto& mask : masks) {
    if (!mask.cpus) continue;
    if (mask.cpus->intersects(seen)) {
      if (first == nullptr) first = &mask;
      both = both | (*mask.cpus & seen);
      if (owners.size() < 200) owners += (owners.empty() ? "" : ", ") + mask.owner;
    }
    seen = seen | *mask.cpus;
  }
  if (first == nullptr) return std::nullopt;
  return model::Warning{
      "affinity-overlap",
      fmt::format("CPU sets of nodes overlap: CPUs {} are also in {}", both.to_list().substr(0, 200), owners),
      first->line};
}

}  // namespace

std::vector<model::Warning> doubts_about(const std::vector<WrittenMask>& masks) {
  std::vector<model::Warning> out;
  const auto longest = longest_words(masks);
  for (const auto& mask : masks) {
    if (out.size() >= 16) break;
    const auto shown = mask.text.substr(0, 100);
    if (!mask.cpus)
      out.push_back({"affinity-malformed", fmt::format("CPU mask {} of {} cannot be read", shown, mask.owner),
                     mask.line});
    else if (is_short(mask.text, longest))
      out.push_back(
          {"affinity-short-word",
           fmt::format("CPU mask {} of {} has words shorter than the other masks: digits are missing", shown,
                       mask.owner),
           mask.line});
  }
  if (const auto warning = overlap(masks)) out.push_back(*warning);
  return out;
}

}  // namespace topotune::parse
