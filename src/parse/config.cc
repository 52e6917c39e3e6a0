#include "parse/config.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/config_shell.h"

namespace topotune::parse {

namespace {

constexpr std::array<std::pair<ConfigKind, const char*>, 12> kKinds{{{ConfigKind::env, "env"},
                                                                     {ConfigKind::environ, "environ"},
                                                                     {ConfigKind::shell, "shell"},
                                                                     {ConfigKind::nccl_conf, "nccl-conf"},
                                                                     {ConfigKind::ucx_conf, "ucx-conf"},
                                                                     {ConfigKind::yaml, "yaml"},
                                                                     {ConfigKind::dockerfile, "dockerfile"},
                                                                     {ConfigKind::systemd, "systemd"},
                                                                     {ConfigKind::python, "python"},
                                                                     {ConfigKind::document, "document"},
                                                                     {ConfigKind::notebook, "notebook"},
                                                                     {ConfigKind::lua, "lua"}}};

bool ends(std::string_view text, std::initializer_list<std::string_view> tails) {
  return std::ranges::any_of(tails, [&](auto tail) { return text.ends_with(tail); });
}

std::optional<ConfigKind> kind_of_name(std::string_view path) {
  const std::string name = to_lower(base_name(path));
  if (name == "nccl.conf" || name == ".nccl.conf" || name.ends_with("nccl.conf"))
    return ConfigKind::nccl_conf;
  if (name == "ucx.conf" || name.ends_with("ucx.conf")) return ConfigKind::ucx_conf;
  if (name.starts_with("dockerfile") || name.starts_with("containerfile") || name.ends_with(".dockerfile"))
    return ConfigKind::dockerfile;
  if (ends(name, {".md", ".mdx", ".markdown", ".rst", ".qmd", ".rmd", ".adoc", ".asciidoc"}))
    return ConfigKind::document;
  if (name.ends_with(".ipynb")) return ConfigKind::notebook;
  if (name.ends_with(".lua")) return ConfigKind::lua;
  if (ends(name, {".py", ".pyw"})) return ConfigKind::python;
  if (ends(name, {".yaml", ".yml", ".json"})) return ConfigKind::yaml;
  if (ends(name, {".service", ".socket", ".timer", ".slice"})) return ConfigKind::systemd;
  if (ends(name, {".sh", ".bash", ".zsh", ".ksh", ".csh", ".fish", ".ps1", ".sbatch", ".slurm", ".sub",
                  ".job", ".pbs", ".lsf"}))
    return ConfigKind::shell;
  if (name == "environ") return ConfigKind::environ;
  return std::nullopt;
}

// Languages that set variables in ways that nothing here reads, and what programs print.
bool is_foreign(std::string_view path) {
  const std::string name = to_lower(base_name(path));
  const auto dot = name.rfind('.');
  static constexpr auto kEnds = std::to_array<std::string_view>(
      {"tf",  "tfvars",   "hcl",    "mk",    "mak",   "am",  "ac",    "m4",  "cmake", "c",    "cc",    "cpp",
       "cxx", "h",        "hh",     "hpp",   "cu",    "cuh", "hip",   "go",  "rs",    "java", "js",    "mjs",
       "ts",  "tsx",      "rb",     "pl",    "pm",    "jl",  "r",     "nix", "toml",  "xml",  "html",  "htm",
       "css", "groovy",   "gradle", "scala", "kt",    "cs",  "swift", "php", "sql",   "diff", "patch", "csv",
       "tsv", "makefile", "tex",    "svg",   "proto", "bat", "doxy",  "log", "out",   "err"});
  return name == "makefile" || name == "gnumakefile" || name == "cmakelists.txt" || name == "jenkinsfile" ||
         (dot != std::string::npos &&
          std::ranges::find(kEnds, std::string_view(name).substr(dot + 1)) != kEnds.end());
}

bool is_assignment(std::string_view line) {
  for (const std::string_view word : {"export ", "declare -x ", "setenv "})
    if (line.starts_with(word)) line = trim(line.substr(word.size()));
  const auto at = line.find('=');
  return at != std::string_view::npos && is_variable_name(trim(line.substr(0, at)));
}

// A plain assignment whose value has no blank outside quotes: "A=b c" starts the program c in a shell.
bool has_command(std::string_view line) {
  return !is_assignment(line) || line.find(" && ") != std::string_view::npos ||
         line.find("$(") != std::string_view::npos;
}

struct Looks {
  int assignments = 0, others = 0, systemd = 0, docker = 0, yaml = 0, python = 0, ucx = 0, sections = 0,
      fences = 0;
};

void look(std::string_view line, Looks& looks) {
  using sv = std::string_view;
  for (const sv word : {"FROM ", "RUN ", "COPY ", "ENTRYPOINT ", "WORKDIR "})
    looks.docker += line.starts_with(word);
  for (const sv word : {"[Unit]", "[Service]", "[Install]", "ExecStart=", "Environment="})
    looks.systemd += line.starts_with(word);
  for (const sv word :
       {"apiVersion:", "kind:", "services:", "spec:", "metadata:", "groups:", "- alert:", "- name:"})
    looks.yaml += line.starts_with(word);
  for (const sv word : {"import ", "from ", "def ", "os.environ", "class "})
    looks.python += line.starts_with(word);
  looks.sections += line.starts_with('[') && line.ends_with(']') && line.find(' ') == sv::npos;
  looks.ucx += line.starts_with("UCX_");
  looks.fences += line.starts_with("```");
  ++(has_command(line) ? looks.others : looks.assignments);
}

// `plain`: a text file, which is more often a result or prose than a script.
std::optional<ConfigKind> kind_of_text(std::string_view text, bool plain) {
  Looks looks;
  int seen = 0;
  std::string_view rest = text.substr(0, 1 << 16);
  for (const std::string_view raw : lines(rest)) {
    const std::string_view line = trim(raw);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    look(line, looks);
    if (++seen == 400) break;
  }
  if (looks.fences >= 2) return ConfigKind::document;
  if (looks.systemd >= 2) return ConfigKind::systemd;
  if (looks.docker >= 2 && looks.docker >= looks.python) return ConfigKind::dockerfile;
  if (looks.yaml >= 2) return ConfigKind::yaml;
  if (looks.python >= 2 && looks.python > looks.docker) return ConfigKind::python;
  if (looks.sections > 0 && looks.ucx > 0 && looks.ucx + looks.sections >= looks.others)
    return ConfigKind::ucx_conf;
  if (text.starts_with('{')) return ConfigKind::yaml;
  if (looks.others == 0) return ConfigKind::env;
  return plain && looks.assignments * 4 < looks.others ? std::nullopt : std::optional(ConfigKind::shell);
}

bool is_binary(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  const auto bad = std::ranges::count_if(head, [](char c) {
    return c == '\0' || (static_cast<unsigned char>(c) < 32 && !is_space(c) && c != '\x1b');
  });
  return bad * 20 > static_cast<std::ptrdiff_t>(head.size());
}

bool is_environ(std::string_view text) {
  const auto end = text.find('\0');
  const auto equals = text.find('=');
  return end != std::string_view::npos && equals < end && is_variable_name(text.substr(0, equals)) &&
         std::ranges::count(text.substr(0, 4096), '\n') * 4 <= std::ranges::count(text.substr(0, 4096), '\0');
}

}  // namespace

const char* name_of(ConfigKind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<ConfigKind, const char*>::first)->second;
}

std::optional<ConfigKind> config_kind_from(std::string_view name) {
  const auto* found = std::ranges::find_if(kKinds, [&](const auto& entry) { return name == entry.second; });
  if (found != kKinds.end()) return found->first;
  if (name == "kubernetes" || name == "compose" || name == "prometheus") return ConfigKind::yaml;
  if (name == "slurm" || name == "bash") return ConfigKind::shell;
  return std::nullopt;
}

std::optional<ConfigKind> config_kind_of_name(std::string_view path) { return kind_of_name(path); }

std::optional<ConfigKind> recognise_config(std::string_view file_name, std::string_view text) {
  if (is_environ(text)) return ConfigKind::environ;
  if (is_binary(text)) return std::nullopt;
  if (const auto kind = kind_of_name(file_name)) return kind;
  const std::string_view first = text.substr(0, text.find('\n'));
  if (first.starts_with("#!")) return icontains(first, "python") ? ConfigKind::python : ConfigKind::shell;
  if (is_foreign(file_name)) return std::nullopt;
  const std::string name = to_lower(base_name(file_name));
  if (name.ends_with(".env") || name.starts_with(".env") || name.starts_with("env.") ||
      name == ".deepspeed_env")
    return ConfigKind::env;
  return kind_of_text(text, name.ends_with(".txt"));
}

LineIndex::LineIndex(std::string_view text) : starts_{0}, size_(text.size()) {
  const bool returns = text.find('\r') != std::string_view::npos;
  const auto next_end = [&](std::size_t from) {
    return returns ? text.find_first_of("\r\n", from) : text.find('\n', from);
  };
  for (std::size_t i = next_end(0); i != std::string_view::npos && i + 1 < text.size(); i = next_end(i + 1))
    if (text[i] == '\n' || text[i + 1] != '\n') starts_.push_back(i + 1);
}

Place LineIndex::place(std::size_t offset) const {
  const auto after = std::ranges::upper_bound(starts_, offset);
  const auto line = static_cast<int>(after - starts_.begin());
  return {line, static_cast<int>(offset - *(after - 1)) + 1};
}

std::size_t LineIndex::begin_of(int line) const {
  if (line < 1) return 0;
  return line <= count() ? starts_[static_cast<std::size_t>(line - 1)] : size_;
}

bool is_variable_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || is_digit(c); });
}

bool mentions_library(std::string_view line) {
  return line.find("NCCL_") != std::string_view::npos || line.find("UCX_") != std::string_view::npos;
}

Mentions mentions_of(std::string_view text) {
  Mentions out;
  int at = 0;
  for (const auto line : lines(text)) {
    ++at;
    if (mentions_library(line) && out.lines++ == 0) out.first = at;
  }
  return out;
}

bool is_placeholder(std::string_view value) {
  value = trim(value);
  for (const std::string_view mark : {"{{", "{%", "<%"})
    if (value.find(mark) != std::string_view::npos) return true;
  const auto between = [&](std::string_view open, std::string_view close) {
    return value.size() > open.size() + close.size() && value.starts_with(open) && value.ends_with(close);
  };
  return value == "???" || between("<", ">") || between("@", "@") || between("__", "__") ||
         between("%(", ")s") || value.starts_with("YOUR_") || value.starts_with("your_") ||
         value.starts_with("your-");
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  text = trim(text);
  std::size_t digits = 0;
  while (digits < text.size() && (is_digit(text[digits]) || text[digits] == '.')) ++digits;
  const auto number = parse_double(text.substr(0, digits));
  if (!number || *number < 0) return std::nullopt;
  std::string unit = to_lower(trim(text.substr(digits)));
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.ends_with('i')) unit.pop_back();
  constexpr std::string_view kUnits = "kmgtp";
  double factor = 1;
  if (!unit.empty()) {
    const auto at = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
    if (at == std::string_view::npos) return std::nullopt;
    for (std::size_t i = 0; i <= at; ++i) factor *= 1024;
  }
  const double bytes = *number * factor;
  if (bytes > 1e18) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

namespace {

template <class T>
void take(std::vector<T>& into, std::vector<T>& from) {
  into.insert(into.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void move_places(ConfigText& text, const std::function<Place(Place)>& place) {
  for (auto& one : text.settings) {
    one.at = place(one.at);
    one.whole = one.name_span = one.value_span = std::nullopt;
    if (one.replaced_at) one.replaced_at = place({*one.replaced_at, 1}).line;
    if (one.late != Late::no) one.late_line = place({one.late_line, 1}).line;
  }
  for (auto& one : text.commands) {
    one.at = place(one.at);
    std::ranges::fill(one.word_spans, Span{});
  }
  for (auto& one : text.loops) one.at = place(one.at);
  for (auto& one : text.comments) one.line = place({one.line, 1}).line;
  for (auto& one : text.embedded) one.at = place(one.at);
  for (auto& one : text.shared_memory) one.at = place(one.at);
  for (auto& one : text.alerts) one.at = place(one.at);
  for (auto& one : text.conf_lines) one.at = place(one.at);
  for (auto& one : text.masks) one.at = place(one.at);
  for (auto& one : text.loaders) one.at = place(one.at);
  for (auto& one : text.includes) one.at = place(one.at);
  for (auto& one : text.diagnostics) one.at = place(one.at);
}

}  // namespace

void append_config(ConfigText& into, ConfigText from, Place at, const std::string& scope) {
  const auto place = [at](Place inner) -> Place {
    return {at.line + inner.line - 1, inner.line == 1 ? at.column + inner.column - 1 : inner.column};
  };
  append_config(into, std::move(from), place, scope);
}

void append_config(ConfigText& into, ConfigText from, const std::function<Place(Place)>& place,
                   const std::string& scope) {
  move_places(from, place);
  const int loops = static_cast<int>(into.loops.size());
  const int pipelines = into.commands.empty() ? 0 : into.commands.back().pipeline + 1;
  for (auto& one : from.commands) {
    if (one.loop >= 0) one.loop += loops;
    one.pipeline += pipelines;
  }
  for (auto& one : from.settings)
    if (one.scope.empty()) one.scope = scope;
  for (auto& one : from.conf_lines) one.span = {};
  take(into.settings, from.settings);
  take(into.commands, from.commands);
  take(into.loops, from.loops);
  take(into.comments, from.comments);
  take(into.embedded, from.embedded);
  take(into.shared_memory, from.shared_memory);
  take(into.alerts, from.alerts);
  take(into.conf_lines, from.conf_lines);
  take(into.masks, from.masks);
  take(into.loaders, from.loaders);
  take(into.includes, from.includes);
  take(into.diagnostics, from.diagnostics);
  take(into.directives, from.directives);
  into.reads.merge(from.reads);
  into.functions.merge(from.functions);
  into.imports.merge(from.imports);
  into.replaces_itself = into.replaces_itself || from.replaces_itself;
}

namespace {

ConfigText scan_one(ConfigKind kind, std::string_view text) {
  switch (kind) {
    case ConfigKind::env:
      return scan_env(text);
    case ConfigKind::environ:
      return scan_environ(text);
    case ConfigKind::shell:
      return scan_shell(text);
    case ConfigKind::nccl_conf:
      return scan_nccl_conf(text);
    case ConfigKind::ucx_conf:
      return scan_ucx_conf(text);
    case ConfigKind::dockerfile:
      return scan_dockerfile(text);
    case ConfigKind::systemd:
      return scan_systemd(text);
    case ConfigKind::python:
      return scan_python(text);
    case ConfigKind::lua:
      return scan_lua(text);
    case ConfigKind::yaml:
    case ConfigKind::document:
    case ConfigKind::notebook:
      break;
  }
  return {};
}

void open_embedded(ConfigText& out, int depth) {
  std::vector<Embedded> inner;
  inner.swap(out.embedded);
  for (auto& one : inner) {
    if (one.kind == ConfigKind::yaml) {  // read elsewhere
      out.embedded.push_back(std::move(one));
      continue;
    }
    ConfigText text = scan_one(one.kind, one.text);
    if (depth < 4) open_embedded(text, depth + 1);
    if (one.one_line)
      append_config(
          out, std::move(text), [&](Place) { return one.at; }, one.scope);
    else
      append_config(out, std::move(text), one.at, one.scope);
  }
}

}  // namespace

ConfigText scan_config(ConfigKind kind, std::string_view text) {
  ConfigText out;
  out.kind = kind;
  if (text.size() > kMaxConfig) {
    out.diagnostics.push_back(
        {{1, 1}, fmt::format("text of {} bytes is too large to be configuration", text.size())});
    return out;
  }
  out = scan_one(kind, text);
  out.kind = kind;
  open_embedded(out, 0);
  return out;
}

}  // namespace topotune::parse
