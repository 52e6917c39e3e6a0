// Texts for people that hold texts for programs: fenced blocks of Markdown, code directives of
// reStructuredText, source blocks of AsciiDoc. What stands around them is prose and says nothing.
#include <algorithm>

#include "base/text.h"
#include "parse/config.h"

namespace topotune::parse {

namespace {

using sv = std::string_view;

bool is_one_of(sv word, std::initializer_list<sv> list) {
  return std::ranges::find(list, word) != list.end();
}

struct Line {
  sv text;
  std::size_t indent = 0;
};

// "bash", "{.bash}", "{python}", "bash title=x"; nothing: a language that is not read.
std::optional<ConfigKind> kind_of_tag(sv info, sv body) {
  const auto from = info.find_first_not_of(" \t{.=");
  info = from == sv::npos ? sv() : info.substr(from);
  const std::string tag = to_lower(info.substr(0, info.find_first_of(" \t,:{}")));
  if (tag.empty()) return recognise_config("", body);
  if (is_one_of(tag, {"bash", "sh", "shell", "zsh", "console", "shell-session", "shellsession", "terminal",
                      "slurm", "csh", "tcsh", "fish", "powershell"}))
    return ConfigKind::shell;
  if (is_one_of(tag, {"yaml", "yml", "json"})) return ConfigKind::yaml;
  if (is_one_of(tag, {"dockerfile", "docker"})) return ConfigKind::dockerfile;
  if (is_one_of(tag, {"python", "py", "python3", "pycon"})) return ConfigKind::python;
  if (is_one_of(tag, {"env", "dotenv"})) return ConfigKind::env;
  return std::nullopt;
}

// Of a dialogue with a shell only what stands behind its prompts; columns stay.
std::string without_prompts(sv body) {
  std::string out;
  const auto prompt = [](sv line) { return line.starts_with("$ ") || line == "$"; };
  const auto all = lines(body);
  const bool dialogue = std::ranges::any_of(all, [&](sv line) { return prompt(trim(line)); });
  bool goes_on = false;
  for (const sv line : all) {
    std::string one(line);
    if (dialogue && prompt(trim(line)))
      one[line.find('$')] = ' ';
    else if (dialogue && !goes_on)
      one.clear();
    goes_on = trim(one).ends_with('\\');
    out += one + "\n";
  }
  return out;
}

class Reader {
 public:
  explicit Reader(sv text) {
    for (const sv line : lines(text)) {
      const auto first = line.find_first_not_of(" \t");
      lines_.push_back({line, first == sv::npos ? line.size() : first});
    }
  }

  std::vector<Embedded> blocks() {
    for (std::size_t n = 0; n < lines_.size(); ++n) {
      const sv line = trim(lines_[n].text);
      if (line.starts_with("```") || line.starts_with("~~~"))
        n = fenced(n);
      else if (line.starts_with(".. code") || line.starts_with(".. sourcecode::"))
        n = directive(n);
      else if (line.starts_with("[source") && n + 1 < lines_.size() &&
               trim(lines_[n + 1].text).starts_with("----"))
        n = source(n);
      else if (is_code(n) && (n == 0 || trim(lines_[n - 1].text).empty()))
        n = indented(n);
    }
    return std::move(out_);
  }

 private:
  // Lines [begin, end) as a text of its own.
  void add(sv info, std::size_t begin, std::size_t end) {
    std::string body;
    for (std::size_t n = begin; n < end; ++n) body += std::string(lines_[n].text) + "\n";
    const auto kind = kind_of_tag(info, body);
    if (!kind || body.empty()) return;
    if (*kind == ConfigKind::shell) body = without_prompts(body);
    out_.push_back({*kind, std::move(body), {static_cast<int>(begin) + 1, 1}, trim(info).empty() ? "?" : ""});
  }

  // Returns the closing line.
  std::size_t fenced(std::size_t n) {
    const sv open = trim(lines_[n].text);
    const std::size_t size = std::min(open.find_first_not_of(open[0]), open.size());
    const sv info = open.substr(size);
    if (open[0] == '`' && info.find('`') != sv::npos) return n;  // code inside a line
    std::size_t end = n + 1;
    for (; end < lines_.size(); ++end) {
      const sv line = trim(lines_[end].text);
      if (line.size() >= size && line.find_first_not_of(open[0]) == sv::npos) break;
    }
    add(info, n + 1, end);
    return end;
  }

  std::size_t directive(std::size_t n) {
    const sv line = trim(lines_[n].text);
    const auto mark = line.find("::");
    if (mark == sv::npos) return n;
    const std::size_t indent = lines_[n].indent;
    std::size_t begin = n + 1;
    while (begin < lines_.size() && trim(lines_[begin].text).starts_with(':')) ++begin;  // options
    std::size_t end = begin;
    while (end < lines_.size() && (trim(lines_[end].text).empty() || lines_[end].indent > indent)) ++end;
    add(line.substr(mark + 2), begin, end);
    return end - 1;
  }

  bool is_code(std::size_t n) const {
    const sv line = lines_[n].text;
    return (line.starts_with("    ") || line.starts_with('\t')) && !trim(line).empty();
  }

  // Markdown's indented code, and what follows "::". A list's paragraphs are indented, too: only a block that
  // sets something counts.
  std::size_t indented(std::size_t n) {
    std::size_t end = n, last = n;
    bool sets = false;
    for (; end < lines_.size() && (is_code(end) || trim(lines_[end].text).empty()); ++end) {
      if (!is_code(end)) continue;
      last = end;
      sv line = trim(lines_[end].text);
      if (line.starts_with("$ ")) line = trim(line.substr(2));
      const auto name = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
      sets = sets || line.starts_with("export ") || line.starts_with("setenv ") ||
             (name != sv::npos && name > 1 && line[name] == '=');
    }
    if (sets) add("bash", n, last + 1);
    return last;
  }

  std::size_t source(std::size_t n) {
    const sv head = trim(lines_[n].text);
    const auto comma = head.find(',');
    std::size_t end = n + 2;
    while (end < lines_.size() && !trim(lines_[end].text).starts_with("----")) ++end;
    const sv info = comma == sv::npos ? sv() : head.substr(comma + 1);
    add(info.substr(0, info.find(']')), n + 2, end);
    return end;
  }

  std::vector<Line> lines_;
  std::vector<Embedded> out_;
};

}  // namespace

ConfigText scan_document(sv text) {
  ConfigText out;
  out.kind = ConfigKind::document;
  out.embedded = Reader(text).blocks();
  return out;
}

// Lmod: setenv("NAME", "value") and pushenv, read as csh's; everything else is left out. Offsets stay.
ConfigText scan_lua(sv text) {
  std::string plain(text.size(), ' ');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const sv line = text.substr(at, end - at);
    const std::size_t from = at + std::min(line.find_first_not_of(" \t"), line.size());
    const sv call = text.substr(from, end - from);
    if (call.starts_with("setenv(") || call.starts_with("pushenv(")) {
      bool quoted = false;
      for (std::size_t n = from; n < end; ++n) {
        if (text[n] == '"') quoted = !quoted;
        if (!quoted && sv("(),;").find(text[n]) != sv::npos) continue;
        if (!quoted && text.substr(n, 2) == "--") break;
        plain[n] = text[n];
      }
    } else if (call.starts_with("--")) {
      plain.replace(from, end - from, call);
      plain[from] = '#';
    }
    if (end < text.size()) plain[end] = '\n';
    at = end + 1;
  }
  ConfigText out = scan_shell(plain);
  for (auto& one : out.settings) {  // what is no string is computed
    const auto span = one.value_span;
    one.literal = one.literal && span && (text[span->begin] == '"' || text[span->begin] == '\'');
  }
  out.kind = ConfigKind::lua;
  return out;
}

}  // namespace topotune::parse
