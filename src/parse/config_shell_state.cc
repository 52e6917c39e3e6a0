#include "parse/config_shell_state.h"

#include <algorithm>

#include "base/text.h"
#include "parse/config_shell.h"

namespace topotune::parse::shell {

namespace {

using sv = std::string_view;
constexpr std::size_t kMaxPending = 64;  // assignments of one name that may still be replaced
constexpr int kMaxDepth = 256;

}  // namespace

void State::diagnose(std::size_t offset, std::string what) {
  if (out.diagnostics.size() < 100) out.diagnostics.push_back({place(offset), std::move(what)});
}

void State::unbalanced(std::size_t offset, char quote) {
  saw_unbalanced = true;
  diagnose(offset, fmt::format("the quote {} is not closed", quote));
}

int State::new_block(int parent, bool is_conditional) {
  blocks.push_back({parent, is_conditional});
  return static_cast<int>(blocks.size()) - 1;
}

bool State::inside(int block, int ancestor) const {
  for (int depth = 0; block >= 0 && depth < kMaxDepth; ++depth) {
    if (block == ancestor) return true;
    block = blocks[static_cast<std::size_t>(block)].parent;
  }
  return false;
}

bool State::conditional(int block) const {
  for (int depth = 0; block >= 0 && depth < kMaxDepth; ++depth) {
    if (blocks[static_cast<std::size_t>(block)].conditional) return true;
    block = blocks[static_cast<std::size_t>(block)].parent;
  }
  return false;
}

const Variable* State::value_of(sv name, int block) const {
  const auto found = variables.find(name);
  // A value that one branch assigns says nothing outside of it.
  if (found == variables.end() || (conditional(found->second.block) && !inside(block, found->second.block)))
    return nullptr;
  return &found->second;
}

void State::remember(const std::string& name, Variable value) {
  if (value.text.size() > 4096) value.known = false;
  if (!value.known) {
    value.text.clear();
    value.array.clear();
  }
  variables.insert_or_assign(name, std::move(value));
}

void State::forget(const std::string& name) {
  Variable unknown;
  unknown.known = false;
  variables.insert_or_assign(name, std::move(unknown));
}

void State::finish() {
  std::map<sv, std::vector<const Event*>> pending;
  for (const auto& event : events) {
    if (event.kind == Event::launch) {
      pending.clear();  // what stands now was used
      continue;
    }
    auto& waiting = pending[event.name];
    std::erase_if(waiting, [&](const Event* earlier) {
      if (!inside(earlier->block, event.block)) return false;
      auto& setting = out.settings[earlier->setting];
      setting.replaced_at = event.line;
      if (event.kind == Event::set) setting.replaced_by = out.settings[event.setting].value;
      return true;
    });
    if (event.kind == Event::unset) continue;
    if (waiting.size() >= kMaxPending) waiting.erase(waiting.begin());
    waiting.push_back(&event);
  }
}

void note_reads(State& state, sv text) {
  std::size_t i = 0;
  while (i < text.size()) {
    std::size_t j = i;
    while (j < text.size() && (is_digit(text[j]) || text[j] == '_' || (text[j] >= 'A' && text[j] <= 'Z') ||
                               (text[j] >= 'a' && text[j] <= 'z')))
      ++j;
    if (j > i && is_variable_name(text.substr(i, j - i))) state.out.reads.emplace(text.substr(i, j - i));
    i = j + 1;
  }
}

}  // namespace topotune::parse::shell
