#include "lint/scan_yaml.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "lint/yaml_tree.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using parse::ConfigKind;
using parse::ConfigText;
using parse::LineIndex;
using parse::Place;
using parse::Setting;
using parse::Span;
using sv = std::string_view;

constexpr int kMaxSteps = 2'000'000;
constexpr int kMaxDepth = 64;

bool concerns(sv name) {
  if (name.size() < 6 || sv("NUOT").find(name[0]) == sv::npos) return false;
  return std::ranges::any_of(
             std::initializer_list<sv>{"NCCL_", "UCX_", "OMPI_MCA_", "TORCH_NCCL_"},
             [&](sv prefix) { return name.size() > prefix.size() && name.starts_with(prefix); }) &&
         parse::is_variable_name(name);
}

class Walker {
 public:
  Walker(sv text, ConfigText& out) : text_(text), lines_(text), out_(out) {}

  void walk(const YamlNode& node, const std::string& scope, int depth) {
    if (depth > kMaxDepth || ++steps_ > kMaxSteps) return;
    if (node.kind == YamlNode::sequence)
      for (const auto* item : node.items) {
        if (item->kind == YamlNode::scalar && concerns(sv(item->text).substr(0, item->text.find('='))) &&
            !added_.contains(item))
          listed(*item, scope);
        if (concerns(item->text)) handed_on_.insert(item->text);
        walk(*item, scope, depth + 1);
      }
    if (node.kind != YamlNode::map) return;
    const std::string inner = scope_of(node, scope);
    alert(node);
    compose_memory(node, inner);
    pod_memory(node);
    commands(node);
    written_file(node);
    pair(node, inner);
    for (const auto& [key, value] : node.entries) entry(*key, *value, inner, depth);
  }

 private:
  static std::string scope_of(const YamlNode& node, const std::string& scope) {
    const sv name = node.text_of("name");
    return node.find("image") != nullptr && !name.empty() ? std::string(name) : scope;
  }

  void entry(const YamlNode& key, const YamlNode& value, const std::string& scope, int depth) {
    const sv name = key.text;
    if (is_environment(name)) environment(value, scope, depth);
    if (name == "data" && value.kind == YamlNode::map) config_map(value);
    if (name == "env_file") includes(value);
    if (value.kind == YamlNode::null && concerns(name)) handed_on_.insert(name);
    if (value.kind == YamlNode::scalar && concerns(name) && !added_.contains(&key))
      add(key, value, scope, std::nullopt);
    if (name == "<<") return merged(value, scope, depth);
    // The name of a service or job is the scope of what is below it.
    walk(value,
         value.kind == YamlNode::map && value.find("image") != nullptr && value.find("name") == nullptr
             ? std::string(name)
             : scope,
         depth + 1);
  }

  void merged(const YamlNode& value, const std::string& scope, int depth) { walk(value, scope, depth + 1); }

  static bool is_environment(sv name) {
    return icontains(name, "env") && !icontains(name, "file") && !icontains(name, "from");
  }

  void environment(const YamlNode& node, const std::string& scope, int depth) {
    if (depth > kMaxDepth || ++steps_ > kMaxSteps) return;
    if (node.kind == YamlNode::sequence)
      for (const auto* item : node.items) listed(*item, scope);
    if (node.kind != YamlNode::map) return;
    for (const auto& [key, value] : node.entries) {
      if (key->text == "<<")
        environment(*value, scope, depth + 1);
      else if (value->kind == YamlNode::scalar)  // null: not set, or taken from the host
        add(*key, *value, scope, std::nullopt);
    }
  }

  // Keys are written in any case: Name, EntryPoint, userData.
  static const YamlNode* find(const YamlNode& node, sv key) {
    for (const auto& [name, value] : node.entries)
      if (name->kind == YamlNode::scalar && iequals(name->text, key)) return value;
    return nullptr;
  }

  // {name: NCCL_X, value: V} wherever it stands.
  void pair(const YamlNode& node, const std::string& scope) {
    const YamlNode* name = find(node, "name");
    const YamlNode* value = find(node, "value");
    if (name == nullptr || value == nullptr || name->kind != YamlNode::scalar ||
        value->kind != YamlNode::scalar)
      return;
    if (concerns(name->text) && !added_.contains(name)) add(*name, *value, scope, std::nullopt);
  }

  // {path: FILE, content: TEXT} of cloud-init, Ansible and their kin.
  void written_file(const YamlNode& node) {
    const YamlNode *path = nullptr, *content = nullptr;
    for (const sv key : {"path", "dest", "destination"})
      if (path == nullptr) path = node.find(key);
    for (const sv key : {"content", "line", "block"})
      if (content == nullptr) content = node.find(key);
    if (path == nullptr || content == nullptr || content->kind != YamlNode::scalar || ++steps_ > kMaxSteps)
      return;
    auto kind = parse::config_kind_of_name(path->text);
    if (!kind && parse::recognise_config(path->text, content->text) == ConfigKind::env)
      kind = ConfigKind::env;
    if (kind && *kind != ConfigKind::yaml) embed(*kind, *content);
  }

  // - name: N            - "N=value"
  //   value: V
  void listed(const YamlNode& item, const std::string& scope) {
    if (++steps_ > kMaxSteps) return;
    if (item.kind == YamlNode::map) {
      const YamlNode* name = find(item, "name");
      const YamlNode* value = find(item, "value");
      if (name != nullptr && value != nullptr && name->kind == YamlNode::scalar &&
          value->kind != YamlNode::null)
        add(*name, *value, scope, item_lines(item, *value));
      return;
    }
    if (item.kind != YamlNode::scalar) return;
    const auto equals = item.text.find('=');
    if (equals == std::string::npos || !parse::is_variable_name(sv(item.text).substr(0, equals))) return;
    added_.insert(&item);
    Setting one;
    one.name = item.text.substr(0, equals);
    one.value = item.text.substr(equals + 1);
    one.at = item.at;
    one.literal = one.value.find('$') == std::string::npos;
    one.written = equals + 1 < item.text.size();
    one.scope = scope;
    one.whole = item_lines(item, item);
    const std::size_t begin = offset(item.at) + (item.quoted ? 1 : 0);
    if (text_.substr(begin, item.text.size()) == item.text) {
      one.name_span = Span{begin, begin + equals};
      one.value_span = Span{begin + equals + 1, begin + item.text.size()};
    }
    out_.settings.push_back(std::move(one));
  }

  void add(const YamlNode& name, const YamlNode& value, const std::string& scope, std::optional<Span> whole) {
    if (!parse::is_variable_name(name.text)) return;
    added_.insert(&name);
    Setting one;
    one.name = name.text;
    one.value = value.text;
    one.at = name.at;
    one.literal = one.value.find("$(") == std::string::npos && one.value.find("${") == std::string::npos;
    one.written = value.kind == YamlNode::scalar;
    one.scope = scope;
    one.whole = whole;
    const std::size_t at = offset(name.at) + (name.quoted ? 1 : 0);
    if (text_.substr(at, name.text.size()) == name.text) one.name_span = Span{at, at + name.text.size()};
    const std::size_t begin = offset(value.at), quote = value.quoted ? 1 : 0;
    if (value.kind == YamlNode::scalar && text_.substr(begin + quote, value.text.size()) == value.text)
      one.value_span = Span{begin, begin + value.text.size() + 2 * quote};
    out_.settings.push_back(std::move(one));
  }

  std::size_t offset(Place at) const {
    return lines_.begin_of(at.line) + static_cast<std::size_t>(at.column - 1);
  }

  // The lines of a list item that stands alone on them.
  std::optional<Span> item_lines(const YamlNode& item, const YamlNode& last) const {
    const int end = std::max(item.at.line, last.at.line);
    const std::size_t begin = lines_.begin_of(item.at.line);
    if (!trim(text_.substr(begin, offset(item.at) - begin)).starts_with('-')) return std::nullopt;
    return Span{begin, lines_.begin_of(end + 1)};
  }

  // --- files and scripts inside
  // --------------------------------------------------------------------------------

  void config_map(const YamlNode& node) {
    for (const auto& [key, value] : node.entries) {
      if (value->kind != YamlNode::scalar || ++steps_ > kMaxSteps) continue;
      if (concerns(key->text)) add(*key, *value, "", std::nullopt);
      const bool file = key->text.find('.') != std::string::npos;
      const auto kind = file ? parse::recognise_config(key->text, value->text) : std::nullopt;
      if (kind && *kind != ConfigKind::yaml) embed(*kind, *value);
    }
  }

  void embed(ConfigKind kind, const YamlNode& node) {
    bytes_ += node.text.size();
    if (bytes_ > 4 * text_.size() + 65536) return;  // aliases may name one text again and again
    const std::size_t settings = out_.settings.size(), commands = out_.commands.size();
    const std::size_t at = offset(node.at);
    const char style = at < text_.size() ? text_[at] : '\0';
    read_.emplace_back(node.at.line,
                       node.at.line + static_cast<int>(std::ranges::count(node.text, '\n')) + 1);
    if (style == '|') {
      parse::append_config(out_, parse::scan_config(kind, node.text), {node.at.line + 1, 1}, "");
      return;
    }
    // Lines were folded, or line ends written as escapes: each thing is looked for behind the node's
    // beginning.
    const Place begin{node.at.line, node.at.column + (node.quoted ? 1 : 0)};
    parse::append_config(
        out_, parse::scan_config(kind, node.text), [begin](Place) { return begin; }, "");
    std::size_t setting_cursor = at, command_cursor = at;
    for (std::size_t n = settings; n < out_.settings.size(); ++n)
      locate(out_.settings[n].at, out_.settings[n].name, setting_cursor);
    for (std::size_t n = commands; n < out_.commands.size(); ++n)
      if (!out_.commands[n].words.empty())
        locate(out_.commands[n].at, out_.commands[n].words[0], command_cursor);
  }

  // The next place of the word at or behind the cursor, near it.
  void locate(Place& place, const std::string& word, std::size_t& cursor) {
    constexpr std::size_t kNear = 4096;
    const auto found = text_.substr(cursor, kNear).find(word);
    if (word.empty() || found == sv::npos) return;
    place = lines_.place(cursor + found);
    cursor += found + 1;
    read_.back().second = std::max(read_.back().second, place.line);
  }

 public:
  // Names of variables that stand where nothing of the above looks.
  void say_unread() {
    std::set<sv> known(out_.reads.begin(), out_.reads.end());
    known.insert(handed_on_.begin(), handed_on_.end());
    for (const auto& one : out_.settings) known.insert(one.name);
    std::set<std::string> said;
    std::map<int, int> inside;  // by line: scripts that begin, less those that ended on the line before
    for (const auto& [first, last] : read_) ++inside[first], --inside[last + 1];
    int number = 0, depth = 0;
    for (const sv line : lines(text_)) {
      ++number;
      if (const auto change = inside.find(number); change != inside.end()) depth += change->second;
      if (depth > 0 || trim(line).starts_with('#')) continue;
      for (const sv prefix : {"NCCL_", "UCX_"}) {
        const auto at = line.find(prefix);
        if (at == sv::npos || (at > 0 && is_name_char(line[at - 1]))) continue;
        std::size_t end = at;
        while (end < line.size() && is_name_char(line[end])) ++end;
        const std::string name(line.substr(at, end - at));
        if (name.size() == prefix.size() || known.contains(name) || said.size() > 20 ||
            !said.insert(name).second)
          continue;
        out_.diagnostics.push_back({{number, static_cast<int>(at) + 1},
                                    fmt::format("{} stands in a place that is not read: not judged", name)});
      }
    }
  }

 private:
  static bool is_name_char(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

  void includes(const YamlNode& node) {
    if (node.kind == YamlNode::scalar) out_.includes.push_back({node.text, node.at, false});
    for (const auto* item : node.items) {
      if (item->kind == YamlNode::scalar) out_.includes.push_back({item->text, item->at, false});
      const sv path = item->text_of("path");
      if (!path.empty())
        out_.includes.push_back({std::string(path), item->at, item->text_of("required") == "false"});
    }
  }

  // Keys whose text a shell gets: run, runcmd, script, ansible.builtin.shell, user_data, ...
  static bool holds_script(sv key) {
    const std::string name = to_lower(key);
    return std::ranges::any_of(
        std::initializer_list<sv>{"run", "runcmd", "bootcmd", "script", "scripts", "shell", "cmd",
                                  "user-data", "user_data", "userdata", "inline"},
        [&](sv end) {
          return name.ends_with(end) &&
                 (name.size() == end.size() || !is_letter(name[name.size() - end.size() - 1]));
        });
  }
  static bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

  // command and args of a container, run and script of a pipeline.
  void commands(const YamlNode& node) {
    std::vector<const YamlNode*> words;
    for (const sv key : {"entrypoint", "command", "args"}) {
      const YamlNode* value = find(node, key);
      if (value == nullptr) continue;
      if (value->kind == YamlNode::scalar && key != "args") script(*value);
      if (value->kind == YamlNode::scalar && key == "args") words.push_back(value);
      for (const auto* item : value->items)
        if (item->kind == YamlNode::scalar && ++steps_ < kMaxSteps) words.push_back(item);
    }
    if (!words.empty()) command(words);
    for (const auto& [key, value] : node.entries) {
      if (value->kind == YamlNode::scalar && value->text.find_first_of(" \n") == std::string::npos) continue;
      if (!holds_script(key->text)) continue;
      const YamlNode* text =
          value->kind == YamlNode::map ? find(*value, "text") : value;  // script: {text: ...}
      if (text == nullptr) continue;
      if (text->kind == YamlNode::scalar) script(*text);
      for (const auto* item : text->items)
        if (item->kind == YamlNode::scalar && ++steps_ < kMaxSteps) script(*item);
    }
  }

  void script(const YamlNode& node) {
    if (node.text.find_first_of(" \n") == std::string::npos) return;
    const bool python = parse::recognise_config("", node.text) == ConfigKind::python;
    embed(python ? ConfigKind::python : ConfigKind::shell, node);
  }

  void command(const std::vector<const YamlNode*>& words) {
    for (const auto* word : words) {
      const bool shell_text = word->text.find('\n') != std::string::npos;
      const bool behind_c = word != words.front() && (words[0]->text.ends_with("sh")) &&
                            word->text.find(' ') != std::string::npos;
      if (shell_text || behind_c) return script(*word);
    }
    parse::Command out;
    for (const auto* word : words) {
      out.words.push_back(word->text);
      out.known.push_back(word->text.find("$(") == std::string::npos &&
                          word->text.find("${") == std::string::npos);
      out.word_spans.push_back({});
    }
    out.at = words.front()->at;
    out.pipeline = out_.commands.empty() ? 0 : out_.commands.back().pipeline + 1;
    out_.commands.push_back(std::move(out));
  }

  // --- alarms and shared memory
  // --------------------------------------------------------------------------------

  void alert(const YamlNode& node) {
    const YamlNode* expression = node.find("expr");
    const YamlNode* name = node.find("alert");
    if (expression == nullptr || name == nullptr || expression->kind != YamlNode::scalar) return;
    parse::Alert one;
    one.name = name->text;
    one.expression = expression->text;
    one.at = expression->at;
    if (const YamlNode* notes = node.find("annotations"))
      for (const auto& [key, value] : notes->entries) one.summary += value->text.substr(0, 500) + " ";
    out_.alerts.push_back(std::move(one));
  }

  static std::optional<int> gpus_of_service(const YamlNode& service) {
    const YamlNode* at = &service;
    for (const sv key : {"deploy", "resources", "reservations", "devices"}) {
      at = at->find(key);
      if (at == nullptr) break;
    }
    const auto count_of = [](sv text) -> std::optional<int> {
      if (text == "all") return parse::kAllGpus;
      return parse_int<int>(text);
    };
    if (at != nullptr)
      for (const auto* device : at->items) {
        if (const YamlNode* ids = device->find("device_ids")) return static_cast<int>(ids->items.size());
        if (device->find("count") != nullptr) return count_of(device->text_of("count"));
        return parse::kAllGpus;  // no count: all of them
      }
    if (const YamlNode* gpus = service.find("gpus"))
      return gpus->kind == YamlNode::scalar ? count_of(gpus->text) : std::optional(parse::kAllGpus);
    if (service.text_of("runtime") == "nvidia") return parse::kAllGpus;
    return std::nullopt;
  }

  void compose_memory(const YamlNode& service, const std::string& scope) {
    const YamlNode* size = service.find("shm_size");
    const auto bytes = size == nullptr ? std::nullopt : parse::parse_size(size->text);
    if (!bytes) return;
    const auto pair =
        std::ranges::find_if(service.entries, [](const auto& one) { return one.first->text == "shm_size"; });
    parse::SharedMemory shm;
    shm.bytes = *bytes;
    shm.text = size->text;
    shm.at = pair->first->at;
    shm.host_ipc = service.text_of("ipc") == "host" || service.text_of("ipc") == "shareable_host";
    shm.gpus = gpus_of_service(service);
    shm.scope = scope;
    out_.shared_memory.push_back(std::move(shm));
  }

  // A pod: its volumes, and the containers that mount one of them at /dev/shm.
  void pod_memory(const YamlNode& pod) {
    const YamlNode* containers = pod.find("containers");
    const YamlNode* volumes = pod.find("volumes");
    if (containers == nullptr || volumes == nullptr) return;
    for (const auto* container : containers->items) {
      const YamlNode* mounts = container->find("volumeMounts");
      if (mounts == nullptr) continue;
      for (const auto* mount : mounts->items)
        if (mount->text_of("mountPath") == "/dev/shm" && ++steps_ < kMaxSteps)
          pod_volume(pod, *container, *volumes, mount->text_of("name"));
    }
  }

  void pod_volume(const YamlNode& pod, const YamlNode& container, const YamlNode& volumes, sv name) {
    for (const auto* volume : volumes.items) {
      if (volume->text_of("name") != name) continue;
      const YamlNode* directory = volume->find("emptyDir");
      const YamlNode* limit = directory == nullptr ? nullptr : directory->find("sizeLimit");
      const auto bytes = limit == nullptr ? std::nullopt : parse::parse_size(limit->text);
      if (!bytes) return;
      parse::SharedMemory shm;
      shm.bytes = *bytes;
      shm.text = limit->text;
      shm.at = limit->at;
      shm.host_ipc = pod.text_of("hostIPC") == "true";
      shm.scope = container.text_of("name");
      const YamlNode* resources = container.find("resources");
      for (const sv key : {"limits", "requests"}) {
        const YamlNode* table = resources == nullptr ? nullptr : resources->find(key);
        if (table == nullptr || shm.gpus) continue;
        if (const auto count = parse_int<int>(table->text_of("nvidia.com/gpu"))) shm.gpus = *count;
      }
      out_.shared_memory.push_back(std::move(shm));
      return;
    }
  }

  sv text_;
  LineIndex lines_;
  ConfigText& out_;
  int steps_ = 0;
  std::size_t bytes_ = 0;
  std::set<sv> handed_on_;                 // named without a value: taken from outside, or not set
  std::set<const YamlNode*> added_;        // names and items that are settings already
  std::vector<std::pair<int, int>> read_;  // lines of scripts and files inside
};

// --- line by line
// ----------------------------------------------------------------------------------------------

sv unquoted(sv text) {
  text = trim(text);
  while (text.ends_with('}') || text.ends_with(',')) text = trim(text.substr(0, text.size() - 1));
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'')) {
    const auto close = text.find(text[0], 1);
    if (close != sv::npos) return text.substr(1, close - 1);
  }
  return trim(text.substr(0, text.find(" #")));
}

sv behind(sv line, sv key) {
  const auto at = line.find(key);
  return at == sv::npos ? sv() : trim(line.substr(at + key.size()));
}

void add_line(ConfigText& out, sv name, sv value, int line, int column) {
  Setting one;
  one.name = name;
  one.value = unquoted(value);
  one.at = {line, column};
  one.literal = value.find_first_of("${") == sv::npos;
  one.scope = "yaml";
  out.settings.push_back(std::move(one));
}

// Of a text that is no YAML (templates, broken files): name/value pairs, NAME: value and NAME=value of one
// line.
void read_lines(sv text, int from, ConfigText& out) {
  std::string name;
  int number = 0, name_line = 0;
  for (const sv raw : lines(text)) {
    ++number;
    const int column =
        static_cast<int>(raw.find_first_not_of(" \t-{\"'") == sv::npos ? 0
                                                                       : raw.find_first_not_of(" \t-{\"'")) +
        1;
    sv line = trim(raw);
    if (number < from || line.starts_with('#')) continue;
    while (line.starts_with('-') || line.starts_with('{') || line.starts_with('"') || line.starts_with('\''))
      line = trim(line.substr(1));
    if (line.starts_with("name:")) {
      sv value = behind(line, "name:");
      name = unquoted(value.substr(0, value.find(',')));
      name_line = number;
    }
    const sv value =
        line.starts_with("value:") || line.find(", value:") != sv::npos ? behind(line, "value:") : sv();
    if (!value.empty() && concerns(name) && number - name_line <= 2) {
      add_line(out, name, value, name_line, column);
      name.clear();
      continue;
    }
    const auto mark = line.find_first_of(":=");
    if (mark != sv::npos && concerns(unquoted(line.substr(0, mark))))
      add_line(out, unquoted(line.substr(0, mark)), line.substr(mark + 1), number, column);
  }
}

void read_comments(sv text, ConfigText& out) {
  int number = 0;
  for (const sv raw : lines(text)) {
    ++number;
    const sv line = trim(raw);
    if (line.starts_with('#')) {
      out.comments.push_back({number, std::string(trim(line.substr(1))), true});
    } else if (const auto at = raw.find(" #"); at != sv::npos && raw.find_first_of("\"'") == sv::npos) {
      out.comments.push_back({number, std::string(trim(raw.substr(at + 2))), false});
    }
  }
}

}  // namespace

namespace {

// JSON as editors write it: "// ...", "/* ... */" and commas in front of a closing bracket become blanks.
// Another text stays as it is.
std::string without_json_comments(sv text) {
  std::string out(text);
  const sv head = trim(text.substr(0, 4096));
  if (!head.starts_with('{') && !head.starts_with('[') && !head.starts_with("//") && !head.starts_with("/*"))
    return out;
  std::size_t comma = sv::npos;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const sv two = text.substr(n, 2);
    if (text[n] == '"') {
      for (++n; n < text.size() && text[n] != '"'; ++n)
        if (text[n] == '\\') ++n;
      comma = sv::npos;
    } else if (two == "//" || two == "/*") {
      const auto close = two == "//" ? text.find('\n', n) : text.find("*/", n + 2);
      const std::size_t end = close == sv::npos ? text.size() : close + (two == "//" ? 0 : 2);
      for (; n < end; ++n)
        if (out[n] != '\n' && out[n] != '\r') out[n] = ' ';
      --n;
    } else if (text[n] == ',') {
      comma = n;
    } else if (!is_space(text[n])) {
      if ((text[n] == '}' || text[n] == ']') && comma != sv::npos) out[comma] = ' ';
      comma = sv::npos;
    }
  }
  return out;
}

// Reads a template by what stands around its actions, into `tree`. Nothing: it is none, or still no YAML.
std::optional<parse::Diagnostic> text_of_template(sv text, YamlTree& tree) {
  const auto plain = without_template_actions(text);
  if (!plain) return std::nullopt;
  YamlTree again = parse_yaml(*plain);
  if (again.error) return std::nullopt;
  tree = std::move(again);
  const auto action = std::min(text.find("{{"), text.find("{%"));
  const auto line =
      static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(action), '\n')) +
      1;
  return parse::Diagnostic{{line, 1}, "a template: what its actions insert is not known"};
}

}  // namespace

ConfigText scan_yaml(sv text) {
  ConfigText out;
  out.kind = ConfigKind::yaml;
  if (text.size() > parse::kMaxConfig) {
    out.diagnostics.push_back(
        {{1, 1}, fmt::format("text of {} bytes is too large to be configuration", text.size())});
    return out;
  }
  YamlTree tree = parse_yaml(text);
  if (tree.error)
    if (const auto bare = without_json_comments(text); bare != text)
      if (YamlTree plain = parse_yaml(bare); !plain.error) tree = std::move(plain);
  if (tree.error)
    if (auto filled = text_of_template(text, tree)) out.diagnostics.push_back(*filled);
  Walker walker(text, out);
  for (const auto* document : tree.documents) walker.walk(*document, "", 0);
  if (!tree.error) walker.say_unread();
  read_comments(text, out);
  if (tree.error) {
    out.diagnostics.push_back(*tree.error);
    read_lines(text, tree.broken_from, out);
  }
  return out;
}

}  // namespace topotune::lint
