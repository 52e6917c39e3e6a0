// Texts of one setting a line: env files, environment dumps, nccl.conf, ucx.conf, systemd units, Dockerfiles.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "parse/config.h"
#include "parse/config_shell.h"

namespace topotune::parse {

namespace {

using sv = std::string_view;

struct Line {
  std::size_t begin = 0;
  sv text;  // without its end
  int number = 1;
};

std::vector<Line> lines_with_offsets(sv text) {
  std::vector<Line> out;
  for (const sv line : lines(text))
    out.push_back(
        {static_cast<std::size_t>(line.data() - text.data()), line, static_cast<int>(out.size()) + 1});
  return out;
}

std::size_t first_of(sv line) {
  std::size_t i = 0;
  while (i < line.size() && is_space(line[i])) ++i;
  return i;
}

void diagnose(ConfigText& out, const Line& line, std::size_t column, std::string what) {
  if (out.diagnostics.size() < 100)
    out.diagnostics.push_back({{line.number, static_cast<int>(column) + 1}, std::move(what)});
}

// One assignment of an env file at `i` of the line; `stops` when a blank ends an unquoted value (export A=1
// B=2).
struct EnvReader {
  ConfigText& out;
  const Line& line;

  // Returns the offset behind the value, or npos when there is no assignment.
  std::size_t assignment(std::size_t i, bool stops) {
    const sv text = line.text;
    std::size_t equals = i;
    while (equals < text.size() && text[equals] != '=' && !is_space(text[equals])) ++equals;
    if (equals >= text.size() || text[equals] != '=' || !is_variable_name(text.substr(i, equals - i)))
      return sv::npos;
    Setting one;
    one.name = text.substr(i, equals - i);
    one.at = {line.number, static_cast<int>(i) + 1};
    std::size_t j = equals + 1;
    one.written = j < text.size() && !is_space(text[j]);
    const std::size_t end = value(one, j, stops);
    one.name_span = Span{line.begin + i, line.begin + equals};
    one.value_span = Span{line.begin + equals + 1, line.begin + end};
    one.whole = Span{line.begin + i, line.begin + end};
    replace_earlier(one);
    out.settings.push_back(std::move(one));
    return end;
  }

  std::size_t value(Setting& one, std::size_t j, bool stops) {
    const sv text = line.text;
    const char quote = j < text.size() && (text[j] == '"' || text[j] == '\'') ? text[j] : '\0';
    if (quote != '\0') {
      const auto close = text.find(quote, j + 1);
      if (close != sv::npos) {
        one.value = text.substr(j + 1, close - j - 1);
        one.literal = quote == '\'' || one.value.find('$') == sv::npos;
        return close + 1;
      }
      diagnose(out, line, j, fmt::format("the quote {} is not closed", quote));
      one.value = trim(text.substr(j + 1));
      return text.size();
    }
    std::size_t end = j;
    while (end < text.size() && !(stops && is_space(text[end])) &&
           !(text[end] == '#' && end > j && is_space(text[end - 1])))
      ++end;
    if (end < text.size() && text[end] == '#') comment(end);
    while (end > j && is_space(text[end - 1])) --end;
    one.value = text.substr(j, end - j);
    one.literal = one.value.find('$') == sv::npos && one.value.find('`') == sv::npos;
    return end;
  }

  void comment(std::size_t at) {
    out.comments.push_back({line.number, std::string(trim(line.text.substr(at + 1))), false});
  }

  // In one file the last assignment wins.
  void replace_earlier(const Setting& one) {
    const auto found = last.find(one.name);
    if (found != last.end()) {
      out.settings[found->second].replaced_at = one.at.line;
      out.settings[found->second].replaced_by = one.value;
    }
    last[one.name] = out.settings.size();
  }
  std::map<std::string, std::size_t>& last;
};

void read_env_line(ConfigText& out, const Line& line, std::map<std::string, std::size_t>& last) {
  std::size_t i = first_of(line.text);
  sv rest = line.text.substr(i);
  if (rest.empty()) return;
  if (rest[0] == '#' || rest[0] == ';') {
    out.comments.push_back({line.number, std::string(trim(rest.substr(1))), true});
    return;
  }
  bool many = false;
  for (const sv word : {"export ", "declare -x ", "set "}) {
    if (!rest.starts_with(word)) continue;
    many = true;
    i += word.size();
    i += first_of(line.text.substr(i));
    break;
  }
  EnvReader reader{out, line, last};
  std::size_t end = reader.assignment(i, many);
  if (end == sv::npos && mentions_library(rest) && !many)
    diagnose(out, line, i, "neither NAME=value nor a comment: the line is ignored");
  while (many && end != sv::npos && end < line.text.size()) {
    while (end < line.text.size() && is_space(line.text[end])) ++end;
    if (end < line.text.size() && line.text[end] == '#') {
      reader.comment(end);
      break;
    }
    end = reader.assignment(end, true);
  }
}

}  // namespace

ConfigText scan_env(sv text) {
  ConfigText out;
  out.kind = ConfigKind::env;
  std::map<std::string, std::size_t> last;
  for (const Line& line : lines_with_offsets(text)) read_env_line(out, line, last);
  return out;
}

// /proc/PID/environ, or `env -0`. Places count entries as lines.
ConfigText scan_environ(sv text) {
  ConfigText out;
  out.kind = ConfigKind::environ;
  int number = 0;
  while (!text.empty()) {
    const auto end = text.find('\0');
    const sv entry = text.substr(0, end);
    text.remove_prefix(end == sv::npos ? text.size() : end + 1);
    ++number;
    const auto equals = entry.find('=');
    if (equals == sv::npos || !is_variable_name(entry.substr(0, equals))) continue;
    Setting one;
    one.name = entry.substr(0, equals);
    one.value = entry.substr(equals + 1);
    one.at = {number, 1};
    out.settings.push_back(std::move(one));
  }
  return out;
}

// NCCL reads NAME up to the first "=" and takes the rest of the line as it is; "#" in column 0 is a comment.
ConfigText scan_nccl_conf(sv text) {
  ConfigText out;
  out.kind = ConfigKind::nccl_conf;
  std::size_t begin = 0;
  int number = 0;
  while (begin < text.size()) {
    const std::size_t stop = std::min(text.find('\n', begin), text.size());
    const sv line = text.substr(begin, stop - begin);
    ++number;
    if (line.starts_with('#')) {
      out.comments.push_back({number, std::string(trim(line.substr(1))), true});
    } else if (!trim(line).empty()) {
      ConfLine one;
      one.raw = line.substr(0, 4096);
      one.at = {number, 1};
      one.span = {begin, stop};
      const auto equals = line.find('=');
      one.assignment = equals != sv::npos;
      if (one.assignment) {
        one.name = line.substr(0, std::min<std::size_t>(equals, 1023));
        one.value = line.substr(equals + 1, 1023);
      }
      out.conf_lines.push_back(std::move(one));
    }
    begin = stop + 1;
  }
  return out;
}

// ini: [section], NAME=value, comments with # or ;.
ConfigText scan_ucx_conf(sv text) {
  ConfigText out;
  std::map<std::string, std::size_t> last;
  for (const Line& line : lines_with_offsets(text)) {
    const sv bare = trim(line.text);
    if (bare.starts_with('[')) {
      if (!bare.ends_with(']')) diagnose(out, line, 0, "a section's ] is missing");
      last.clear();  // sections are chosen by machine: they do not replace each other
      continue;
    }
    read_env_line(out, line, last);
  }
  out.kind = ConfigKind::ucx_conf;
  return out;
}

namespace {

struct Logical {
  std::size_t begin, end;
  int number;
};

// Lines joined over a backslash at their end; `docker`: comment lines inside are skipped over.
std::vector<Logical> logical_lines(sv text, bool docker) {
  std::vector<Logical> out;
  const auto all = lines_with_offsets(text);
  for (std::size_t n = 0; n < all.size(); ++n) {
    Logical one{all[n].begin, all[n].begin + all[n].text.size(), all[n].number};
    std::size_t last = n;
    sv line = trim(all[n].text);
    const bool comment = line.starts_with('#');
    while (!comment && last + 1 < all.size() && line.ends_with('\\')) {
      ++last;
      line = trim(all[last].text);
      while (docker && last + 1 < all.size() && (line.starts_with('#') || line.empty()))
        line = trim(all[++last].text);
      one.end = all[last].begin + all[last].text.size();
    }
    n = last;
    out.push_back(one);
  }
  return out;
}

// Blank-separated assignments with quotes, as systemd's Environment= and Docker's ENV take them.
void assignments(sv text, const LineIndex& index, Span range, const std::string& scope, ConfigText& out) {
  std::size_t i = range.begin;
  while (i < range.end) {
    while (i < range.end && (is_space(text[i]) || text[i] == '\\')) ++i;
    const std::size_t begin = i;
    std::string word;
    std::size_t equals = sv::npos, value_at = 0;
    char quote = '\0';
    for (; i < range.end && (quote != '\0' || !is_space(text[i])); ++i) {
      const char c = text[i];
      if (c == '\\' && i + 1 < range.end) {
        if (text[i + 1] == '\n' || text[i + 1] == '\r') break;
        word += text[++i];
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote && quote != '\0') {
        quote = '\0';
      } else {
        if (c == '=' && equals == sv::npos) {
          equals = word.size();
          value_at = i + 1;
        }
        word += c;
      }
    }
    if (quote != '\0')
      out.diagnostics.push_back({index.place(begin), fmt::format("the quote {} is not closed", quote)});
    if (equals == sv::npos || !is_variable_name(sv(word).substr(0, equals))) continue;
    Setting one;
    one.name = word.substr(0, equals);
    one.value = word.substr(equals + 1);
    one.at = index.place(begin);
    one.literal = one.value.find('$') == std::string::npos;
    one.written = i > value_at;
    one.scope = scope;
    const bool plain = text.substr(begin, one.name.size()) == one.name;  // no quote in front of the name
    if (plain) {
      one.name_span = Span{begin, begin + one.name.size()};
      one.value_span = Span{value_at, i};
    }
    out.settings.push_back(std::move(one));
  }
}

void last_wins(ConfigText& out) {
  std::map<std::string, std::size_t> last;
  for (std::size_t n = 0; n < out.settings.size(); ++n) {
    if (!out.settings[n].scope.empty()) continue;
    const auto found = last.find(out.settings[n].name);
    if (found != last.end()) {
      out.settings[found->second].replaced_at = out.settings[n].at.line;
      out.settings[found->second].replaced_by = out.settings[n].value;
    }
    last[out.settings[n].name] = n;
  }
}

}  // namespace

ConfigText scan_systemd(sv text) {
  ConfigText out;
  out.kind = ConfigKind::systemd;
  const LineIndex index(text);
  for (const Logical& line : logical_lines(text, false)) {
    const std::size_t begin = line.begin + first_of(text.substr(line.begin, line.end - line.begin));
    const sv all = text.substr(begin, line.end - begin);
    if (all.starts_with('#') || all.starts_with(';')) {
      out.comments.push_back({line.number, std::string(trim(all.substr(1))), true});
      continue;
    }
    const auto equals = all.find('=');
    if (equals == sv::npos) continue;
    const sv key = trim(all.substr(0, equals));
    Span value{begin + equals + 1, line.end};
    if (key == "Environment" || key == "DefaultEnvironment") {
      assignments(text, index, value, "", out);
    } else if (key == "EnvironmentFile") {
      std::string path(trim(all.substr(equals + 1)));
      const bool optional = path.starts_with('-');
      if (!path.empty())
        out.includes.push_back({path.substr(optional ? 1 : 0), index.place(value.begin), optional});
    } else if (key.starts_with("Exec")) {
      while (value.begin < value.end &&
             (is_space(text[value.begin]) || sv("-@:+!|").find(text[value.begin]) != sv::npos))
        ++value.begin;
      scan_shell_range(text, index, value, false, out);
    } else {
      out.directives.emplace_back(std::string(key), std::string(trim(all.substr(equals + 1))));
    }
  }
  last_wins(out);
  return out;
}

namespace {

// RUN with a here-document: the body lies behind the instruction's line.
std::size_t here_document_end(sv text, const Logical& line) {
  const sv instruction = text.substr(line.begin, line.end - line.begin);
  const auto at = instruction.find("<<");
  if (at == sv::npos) return line.end;
  std::size_t i = at + 2;
  while (i < instruction.size() && (instruction[i] == '-' || instruction[i] == '"' || instruction[i] == '\''))
    ++i;
  std::size_t j = i;
  while (j < instruction.size() && (is_variable_name(instruction.substr(i, j + 1 - i)))) ++j;
  if (j == i) return line.end;
  const std::string delimiter = "\n" + std::string(instruction.substr(i, j - i));
  for (auto found = text.find(delimiter, line.end); found != sv::npos;
       found = text.find(delimiter, found + 1)) {
    const std::size_t end = found + delimiter.size();
    if (end >= text.size() || text[end] == '\n' || text[end] == '\r') return end;
  }
  return line.end;
}

// RUN ["a", "b"]: a JSON array of words.
std::string words_of_json(sv text) {
  std::string out;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      inside = !inside;
      out += inside ? (out.empty() ? "'" : " '") : "'";
    } else if (inside) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      if (text[i] == '\'')
        out += "'\\''";
      else
        out += text[i];
    }
  }
  return out;
}

}  // namespace

ConfigText scan_dockerfile(sv text) {
  ConfigText out;
  out.kind = ConfigKind::dockerfile;
  const LineIndex index(text);
  std::size_t behind = 0;
  for (const Logical& line : logical_lines(text, true)) {
    if (line.begin < behind) continue;
    const std::size_t begin = line.begin + first_of(text.substr(line.begin, line.end - line.begin));
    const sv all = text.substr(begin, line.end - begin);
    if (all.empty()) continue;
    if (all.starts_with('#')) {
      out.comments.push_back({line.number, std::string(trim(all.substr(1))), true});
      continue;
    }
    std::size_t n = 0;
    while (n < all.size() && !is_space(all[n])) ++n;
    const std::string verb = to_lower(all.substr(0, n));
    while (n < all.size() && is_space(all[n])) ++n;
    Span rest{begin + n, line.end};
    if (verb == "env" || verb == "arg") {
      const sv value = text.substr(rest.begin, rest.end - rest.begin);
      const auto blank = value.find_first_of(" \t");
      const auto equals = value.find('=');
      if (verb == "env" && blank != sv::npos && (equals == sv::npos || blank < equals)) {  // ENV NAME value
        Setting one;
        one.name = value.substr(0, blank);
        one.value = trim(value.substr(blank));
        one.at = index.place(rest.begin);
        one.literal = one.value.find('$') == std::string::npos;
        one.name_span = Span{rest.begin, rest.begin + blank};
        if (is_variable_name(one.name)) out.settings.push_back(std::move(one));
      } else if (verb == "env") {
        assignments(text, index, rest, "", out);
      }
    } else if (verb == "run" || verb == "cmd" || verb == "entrypoint") {
      rest.end = behind = here_document_end(text, line);
      if (text.substr(rest.begin, 2) == "<<" && rest.end > line.end) {  // the body is the script
        rest = {line.end, text.rfind('\n', rest.end - 1)};
        scan_shell_range(text, index, rest, false, out);
        continue;
      }
      if (verb == "run")
        while (text.substr(rest.begin, 2) == "--") {  // --mount=...
          while (rest.begin < rest.end && !is_space(text[rest.begin])) ++rest.begin;
          while (rest.begin < rest.end && is_space(text[rest.begin])) ++rest.begin;
        }
      if (rest.begin < rest.end && text[rest.begin] == '[')
        scan_shell_string(words_of_json(text.substr(rest.begin, rest.end - rest.begin)),
                          index.place(rest.begin), "", "", out);
      else
        scan_shell_range(text, index, rest, false, out);
    } else if (verb == "from" || verb == "add" || verb == "copy") {
      Command command;
      for (const sv word : words(all)) {
        command.words.emplace_back(word);
        command.known.push_back(true);
        command.word_spans.push_back({});
      }
      command.at = index.place(begin);
      command.pipeline = out.commands.empty() ? 0 : out.commands.back().pipeline + 1;
      out.commands.push_back(std::move(command));
    }
  }
  last_wins(out);
  return out;
}

}  // namespace topotune::parse
