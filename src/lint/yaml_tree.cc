#include "lint/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace topotune::lint {

namespace {

struct TooLarge {};

class Builder : public YAML::EventHandler {
 public:
  Builder(YamlTree& tree, std::size_t limit) : tree_(tree), limit_(limit) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    tree_.broken_from = mark.line + 1;
    stack_.clear();
    anchors_.clear();
  }
  void OnDocumentEnd() override {
    if (root_ != nullptr) tree_.documents.push_back(root_);
    root_ = nullptr;
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(YamlNode::null, mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found != anchors_.end())
      attach(found->second);
    else
      add(YamlNode::null, mark, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode* node = add(YamlNode::scalar, mark, anchor);
    node->text = value;
    node->quoted = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(add(YamlNode::sequence, mark, anchor), style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(add(YamlNode::map, mark, anchor), style);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlNode* node;
    const YamlNode* key = nullptr;
  };

  YamlNode* add(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (tree_.nodes.size() >= limit_) throw TooLarge{};
    auto owned = std::make_unique<YamlNode>();
    YamlNode* node = owned.get();
    tree_.nodes.push_back(std::move(owned));
    node->kind = kind;
    node->at = {mark.line + 1, mark.column + 1};
    if (anchor != 0) anchors_[anchor] = node;
    attach(node);
    return node;
  }

  void attach(const YamlNode* node) {
    if (stack_.empty()) {
      root_ = node;
      return;
    }
    Level& level = stack_.back();
    if (level.node->kind == YamlNode::sequence) {
      level.node->items.push_back(node);
    } else if (level.key == nullptr) {
      level.key = node;
    } else {
      level.node->entries.emplace_back(level.key, node);
      level.key = nullptr;
    }
  }

  void open(YamlNode* node, YAML::EmitterStyle::value style) {
    node->flow = style == YAML::EmitterStyle::Flow;
    stack_.push_back({node, nullptr});
  }
  void close() {
    if (!stack_.empty()) stack_.pop_back();
  }

  YamlTree& tree_;
  std::size_t limit_;
  std::vector<Level> stack_;
  std::map<YAML::anchor_t, const YamlNode*> anchors_;
  const YamlNode* root_ = nullptr;
};

bool is_action(std::string_view two) { return two == "{{" || two == "{%"; }

// Nothing but blanks between the action and both ends of its line: "{{- if .x }}", "{% for x in y %}".
bool alone_on_line(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kFar = 400;  // bytes that are looked at
  const auto blank = [](std::string_view part) {
    return part.find_first_not_of(" \t\r") == std::string_view::npos;
  };
  const auto floor = begin - std::min(begin, kFar);
  const auto before = text.substr(floor, begin - floor), after = text.substr(end, kFar);
  const auto line_begin = before.rfind('\n'), line_end = after.find('\n');
  if (line_begin == std::string_view::npos && floor > 0) return false;
  if (line_end == std::string_view::npos && after.size() == kFar) return false;
  return blank(before.substr(line_begin == std::string_view::npos ? 0 : line_begin + 1)) &&
         blank(after.substr(0, line_end));
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name->kind == scalar && name->text == key) return value;
  return nullptr;
}

std::string_view YamlNode::text_of(std::string_view key) const {
  const YamlNode* node = find(key);
  return node != nullptr && node->kind == scalar ? std::string_view(node->text) : std::string_view();
}

std::optional<std::string> without_template_actions(std::string_view text) {
  std::string out(text);
  std::size_t from = 0;
  bool any = false;
  while (true) {
    auto begin = text.find_first_of('{', from);
    while (begin != std::string_view::npos && !is_action(text.substr(begin, 2)))
      begin = text.find('{', begin + 1);
    if (begin == std::string_view::npos) break;
    const auto close = text.find(text[begin + 1] == '{' ? "}}" : "%}", begin + 2);
    if (close == std::string_view::npos) break;
    const auto end = close + 2;
    any = true;
    const bool inside = text.substr(begin, end - begin).find('\n') == std::string_view::npos;
    const bool scalar = inside && text[begin + 1] == '{' && !alone_on_line(text, begin, end);
    for (auto at = begin; at < end; ++at)
      if (out[at] != '\n' && out[at] != '\r') out[at] = scalar ? '_' : ' ';
    if (scalar) out[begin] = '$', out[begin + 1] = '(', out[end - 1] = ')';
    from = end;
  }
  return any ? std::optional(std::move(out)) : std::nullopt;
}

YamlTree parse_yaml(std::string_view text) {
  YamlTree tree;
  if (text.size() > kMaxYaml) {
    tree.error = parse::Diagnostic{
        {1, 1}, fmt::format("YAML of {} bytes is too large to be read as YAML", text.size())};
    return tree;
  }
  std::istringstream stream{std::string(text)};
  // Broken text can make yaml-cpp report empty nodes without end; two a byte is more than any text has ("a:"
  // is three).
  const std::size_t limit = std::min(kMaxYamlNodes, 2 * text.size() + 16);
  Builder builder(tree, limit);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& e) {
    const int line = e.mark.is_null() ? 1 : e.mark.line + 1;
    tree.error = parse::Diagnostic{{line, e.mark.is_null() ? 1 : e.mark.column + 1}, "YAML: " + e.msg};
  } catch (const TooLarge&) {
    tree.error =
        parse::Diagnostic{tree.nodes.back()->at,
                          fmt::format("YAML of more than {} nodes: the rest was not read as YAML", limit)};
  } catch (const std::exception& e) {
    tree.error = parse::Diagnostic{{1, 1}, fmt::format("YAML: {}", e.what())};
  }
  return tree;
}

}  // namespace topotune::lint
