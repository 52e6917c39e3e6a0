#include "lint/scan_notebook.h"

#include "base/text.h"
#include "lint/yaml_tree.h"

namespace topotune::lint {

namespace {

using sv = std::string_view;

// A program made of lines that stand somewhere in the notebook.
struct Program {
  std::string text;
  std::vector<int> lines;  // of the notebook, by line of the program

  void add(sv line, int at) {
    text += line;
    text += '\n';
    lines.push_back(at);
  }
};

// "%env NAME=value", "%env NAME value"; "" for another magic.
std::string export_of(sv magic) {
  for (const sv verb : {"%env ", "%set_env "}) {
    if (!magic.starts_with(verb)) continue;
    const sv rest = trim(magic.substr(verb.size()));
    const auto end = rest.find_first_of("= ");
    if (end == sv::npos) return "";
    return fmt::format("export {}={}", rest.substr(0, end), trim(rest.substr(end + 1)));
  }
  return "";
}

void add_cell(const YamlNode& source, Program& python, Program& shell) {
  bool all_shell = false, first = true;
  const auto add = [&](sv line, int at) {
    const sv bare = trim(line);
    if (first && (bare.starts_with("%%bash") || bare.starts_with("%%sh"))) {
      all_shell = true;
      line = "";
    }
    if (!bare.empty()) first = false;
    std::string command(line);
    if (!all_shell) command = bare.starts_with('!') ? std::string(bare.substr(1)) : export_of(bare);
    const bool magic = all_shell || bare.starts_with('!') || bare.starts_with('%');
    if (magic)
      shell.add(command, at);
    else
      python.add(line, at);
  };
  const auto add_text = [&](const YamlNode& node) {
    for (const sv line : lines(node.text)) add(line, node.at.line);
  };
  if (source.kind == YamlNode::scalar) add_text(source);
  for (const auto* item : source.items) add_text(*item);
}

void append(parse::ConfigText& out, const Program& program, parse::ConfigKind kind) {
  if (program.lines.empty()) return;
  parse::append_config(
      out, parse::scan_config(kind, program.text),
      [&](parse::Place inner) {
        const auto last = static_cast<int>(program.lines.size());
        return parse::Place{program.lines[static_cast<std::size_t>(std::clamp(inner.line, 1, last) - 1)], 1};
      },
      "");
}

}  // namespace

parse::ConfigText scan_notebook(sv text) {
  parse::ConfigText out;
  out.kind = parse::ConfigKind::notebook;
  const YamlTree tree = parse_yaml(text);
  if (tree.error) out.diagnostics.push_back(*tree.error);
  Program python, shell;
  for (const auto* document : tree.documents) {
    const YamlNode* cells = document->find("cells");
    if (cells == nullptr) continue;
    for (const auto* cell : cells->items) {
      const YamlNode* source = cell->find("source");
      if (source != nullptr && cell->text_of("cell_type") == "code") add_cell(*source, python, shell);
    }
  }
  append(out, python, parse::ConfigKind::python);
  append(out, shell, parse::ConfigKind::shell);
  return out;
}

}  // namespace topotune::lint
