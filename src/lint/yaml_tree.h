#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parse/config.h"

namespace topotune::lint {

// A YAML document as a tree with places. An alias shares its anchor's node, so the tree may even hold itself:
// whoever walks it counts its steps.
struct YamlNode {
  enum Kind { null, scalar, sequence, map } kind = null;
  std::string text;
  parse::Place at;
  bool flow = false, quoted = false;
  std::vector<const YamlNode*> items;                                // sequence
  std::vector<std::pair<const YamlNode*, const YamlNode*>> entries;  // map

  const YamlNode* find(std::string_view key) const;  // null: no such key, or no map
  std::string_view text_of(std::string_view key) const;
};

struct YamlTree {
  std::vector<std::unique_ptr<YamlNode>> nodes;
  std::vector<const YamlNode*> documents;
  std::optional<parse::Diagnostic> error;  // where reading stopped
  int broken_from = 1;                     // first line of the document that breaks off
};

inline constexpr std::size_t kMaxYaml = 16u << 20;  // bytes
inline constexpr std::size_t kMaxYamlNodes = 400000;

// A chart's template (Go, Helm, Jinja) as YAML: actions "{{ ... }}" that stand alone on their lines become
// blanks, others a scalar "$(___)". Every byte keeps its place. Nothing when the text holds no action.
std::optional<std::string> without_template_actions(std::string_view text);

// Never throws. Aliases are not copied: what expands to a billion nodes stays as small as it is written.
YamlTree parse_yaml(std::string_view text);

}  // namespace topotune::lint
