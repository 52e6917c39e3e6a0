// What one simple command of a shell script says about variables, containers and other texts.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/config_shell.h"
#include "parse/config_shell_state.h"

namespace topotune::parse::shell {

namespace {

using sv = std::string_view;

bool is_one_of(sv word, std::initializer_list<sv> list) {
  return std::ranges::any_of(list, [&](sv one) {  // the first letter decides most of the time
    return one.size() == word.size() && (one.empty() || one.front() == word.front()) && one == word;
  });
}

// NAME=VALUE at `from` of a word; the spans are known when the word stands in the source as it is.
struct Assigned {
  std::string name, value;
  bool known = true, written = true;
  Place at;
  std::optional<Span> whole, name_span, value_span;
};

std::optional<Assigned> assigned(const State& state, const Word& word) {
  const auto at = word.text.find('=');
  if (at == sv::npos) return std::nullopt;
  sv name = sv(word.text).substr(0, at);
  if (name.ends_with('+')) name.remove_suffix(1);
  if (!is_variable_name(name)) return std::nullopt;
  Assigned out;
  out.name = name;
  out.value = word.text.substr(at + 1);
  out.known = word.known;
  out.at = state.place(word.span.begin);
  const sv raw = state.text.substr(word.span.begin, word.span.end - word.span.begin);
  if (raw.size() > name.size() && raw.starts_with(name) && raw[name.size()] == '=') {
    out.whole = word.span;
    out.name_span = Span{word.span.begin, word.span.begin + name.size()};
    out.value_span = Span{word.span.begin + name.size() + 1, word.span.end};
    out.written = out.value_span->end > out.value_span->begin;
  }
  return out;
}

Setting setting_of(const State& state, Assigned one, int block, std::string scope) {
  Setting out;
  out.name = std::move(one.name);
  for (const sv prefix : {"APPTAINERENV_", "SINGULARITYENV_"})  // the container gets it without
    if (out.name.size() > prefix.size() && out.name.starts_with(prefix)) {
      out.name.erase(0, prefix.size());
      if (one.name_span) one.name_span->begin += prefix.size();
    }
  out.value = std::move(one.value);
  out.at = one.at;
  out.whole = one.whole;
  out.name_span = one.name_span;
  out.value_span = one.value_span;
  out.literal = one.known;
  out.written = one.written;
  out.conditional = state.conditional(block);
  out.scope = std::move(scope);
  return out;
}

void publish(State& state, Setting setting, int block) {
  state.exported.insert_or_assign(setting.name, 1);
  state.events.push_back({Event::set, state.out.settings.size(), setting.name, block, setting.at.line});
  state.out.settings.push_back(std::move(setting));
}

void set_variable(State& state, const Word& word, Assigned one, int block, bool exported) {
  Variable value;
  value.known = word.known;
  value.block = block;
  if (value.known) {  // of others nothing is remembered
    value.text = one.value;
    value.array = word.fields;
    if (value.array.empty())
      for (const sv field : words(one.value)) value.array.emplace_back(field);
  }
  state.remember(one.name, std::move(value));
  if (word.is_array) return;
  const bool reaches = exported || state.all_exported || state.exported.count(one.name) > 0;
  Setting setting = setting_of(state, std::move(one), block, "");
  if (reaches)
    publish(state, std::move(setting), block);
  else
    state.unexported.insert_or_assign(setting.name, setting);
}

void unset(State& state, const std::vector<Word>& list, int block) {
  for (std::size_t n = 1; n < list.size(); ++n) {
    if (list[n].text.starts_with('-')) continue;
    state.events.push_back({Event::unset, 0, list[n].text, block, state.place(list[n].span.begin).line});
    state.exported.erase(list[n].text);
    state.unexported.erase(list[n].text);
    state.forget(list[n].text);
  }
}

// export, declare -x, typeset -x, local, readonly.
void declare(State& state, const std::vector<Word>& list, int block) {
  const sv verb = list[0].text;
  bool exported = verb == "export";
  for (std::size_t n = 1; n < list.size(); ++n) {
    const Word& word = list[n];
    if (word.text.starts_with('-')) {
      if (verb == "export" && word.text.find('n') != sv::npos) return unset(state, list, block);
      exported = exported || word.text.find('x') != sv::npos;
      continue;
    }
    if (auto one = assigned(state, word)) {
      set_variable(state, word, std::move(*one), block, exported);
    } else if (exported && is_variable_name(word.text)) {
      const auto found = state.unexported.find(word.text);
      if (found != state.unexported.end()) {
        Setting setting = found->second;
        state.unexported.erase(found);
        publish(state, std::move(setting), block);
      }
      state.exported[word.text] = 1;
    }
  }
}

// csh and Tcl module files: setenv NAME VALUE.
void setenv_csh(State& state, const std::vector<Word>& list, int block) {
  if (list.size() < 2 || !is_variable_name(list[1].text)) return;
  Assigned one;
  one.name = list[1].text;
  one.at = state.place(list[1].span.begin);
  one.name_span = list[1].span;
  if (list.size() > 2) {
    one.value = list[2].text;
    one.known = list[2].known;
    one.value_span = list[2].span;
  }
  one.written = list.size() > 2;
  publish(state, setting_of(state, one, block, ""), block);
}

// PowerShell: $env:NAME = "value", with or without blanks.
void setenv_powershell(State& state, const std::vector<Word>& list, int block) {
  const sv first = sv(list[0].text).substr(5);
  const auto equals = first.find('=');
  const bool apart = equals == sv::npos && list.size() > 2 && list[1].text == "=";
  const std::string name(first.substr(0, equals));
  if (!is_variable_name(name) || (equals == sv::npos && !apart)) return;
  Assigned one;
  one.name = name;
  one.value = apart ? list[2].text : std::string(first.substr(equals + 1));
  one.known = one.value.find('$') == sv::npos;
  one.at = state.place(list[0].span.begin);
  if (apart) one.value_span = list[2].span;
  publish(state, setting_of(state, one, block, ""), block);
}

// fish: set -gx NAME VALUE. In other shells `set -x` takes no name.
bool is_fish_export(sv option) {
  if (option == "--export") return true;
  return option.size() > 1 && option[0] == '-' && option[1] != '-' && option.find('x') != sv::npos &&
         option.find_first_not_of("xgUlf", 1) == sv::npos;
}

// Takes the command if it is about variables of the shell itself.
bool shell_builtin(State& state, const std::vector<Word>& list, int block) {
  const sv verb = list[0].text;
  if (is_one_of(verb, {"export", "declare", "typeset", "local", "readonly"})) {
    declare(state, list, block);
    return true;
  }
  if (verb == "unset" || verb == "unsetenv") {
    unset(state, list, block);
    return true;
  }
  if (verb == "setenv" || verb == "pushenv") {
    setenv_csh(state, list, block);
    return true;
  }
  if (verb == "set" && list.size() > 2 && is_fish_export(list[1].text) && is_variable_name(list[2].text)) {
    setenv_csh(state, {list.begin() + 1, list.end()}, block);
    return true;
  }
  if (verb.starts_with("$env:")) {
    setenv_powershell(state, list, block);
    return true;
  }
  if (verb == "set" && list.size() > 1) {
    const bool all =
        list[1].text == "-a" || (list.size() > 2 && list[1].text == "-o" && list[2].text == "allexport");
    const bool none =
        list[1].text == "+a" || (list.size() > 2 && list[1].text == "+o" && list[2].text == "allexport");
    if (all || none) state.all_exported = all;
    return false;
  }
  if ((verb == "source" || verb == ".") && list.size() > 1) {
    const bool known = list[1].known && !list[1].text.empty();
    if (known)
      state.out.includes.push_back({list[1].text, state.place(list[1].span.begin), state.conditional(block)});
    return true;
  }
  if (is_one_of(verb, {"read", "mapfile", "readarray"}))
    for (const auto& word : list) state.forget(word.text);
  return false;
}

// A "NAME=VALUE" that some option carries: a setting for that program. `option`: the word before it, which
// goes where the setting goes; "--env=" is in the word itself (`skip` bytes). keeps_nothing: what is left
// without the setting would be another command.
enum class Without { is_whole, keeps_nothing };
void add_option_setting(State& state, const Word& word, std::size_t skip, const std::string& scope, int block,
                        const Word* option = nullptr, Without without = Without::is_whole) {
  Word part = word;
  part.text = word.text.substr(skip);
  const sv raw = state.text.substr(word.span.begin, word.span.end - word.span.begin);
  const sv head = sv(word.text).substr(0, skip);
  if (raw.starts_with(head))
    part.span.begin += skip;
  else if (skip > 0)
    part.span = {word.span.begin, word.span.begin};
  auto one = assigned(state, part);
  if (!one) return;
  if (one->whole && skip > 0) one->whole->begin -= skip;
  if (one->whole && option != nullptr && option->span.begin < one->whole->begin)
    one->whole->begin = option->span.begin;
  if (without == Without::keeps_nothing) one->whole = std::nullopt;
  state.out.settings.push_back(setting_of(state, *one, block, scope));
}

// ALL,NCCL_DEBUG=INFO, as Slurm and others take it. A comma inside a value cannot be told from a separator:
// such a piece is left out.
void add_export_list(State& state, sv list, char separator, Place at, int block, const std::string& scope) {
  for (const sv piece : split(list, separator)) {
    const auto equals = piece.find('=');
    if (equals == sv::npos || !is_variable_name(piece.substr(0, equals))) continue;
    Setting one;
    one.name = piece.substr(0, equals);
    one.value = piece.substr(equals + 1);
    one.at = at;
    one.literal = piece.find('$') == sv::npos;
    one.written = equals + 1 < piece.size();
    one.conditional = state.conditional(block);
    one.scope = scope;
    state.out.settings.push_back(std::move(one));
  }
}

bool is_mpi(sv name) { return name.starts_with("mpi") || is_one_of(name, {"orterun", "prun", "horovodrun"}); }

// How a launcher's option carries variables.
enum class Form {
  word,       // NAME=VALUE
  words,      // NAME VALUE, or NAME=VALUE
  commas,     // NAME=VALUE,NAME=VALUE
  semicolons  // NAME=VALUE;NAME=VALUE
};
struct Carrier {
  sv programs;  // separated by blanks
  sv option;
  Form form;
};
constexpr Carrier kCarriers[] = {
    {"mpi", "-x", Form::word},
    {"mpi", "--x", Form::word},
    {"mpi", "-env", Form::words},
    {"mpi", "--env", Form::words},
    {"mpi", "-genv", Form::words},
    {"mpi", "--genv", Form::words},
    {"mpi", "mca_base_env_list", Form::semicolons},
    {"srun sbatch salloc", "--export", Form::commas},
    {"docker podman nerdctl enroot flux", "-e", Form::word},
    {"docker podman nerdctl enroot flux kubectl oc accelerate sky", "--env", Form::word},
    {"singularity apptainer", "--env", Form::commas},
    {"jsrun", "-E", Form::word},
    {"jsrun", "--env", Form::word},
    {"aprun", "-e", Form::word},
    {"qsub", "-v", Form::commas},
    {"bsub", "-env", Form::commas},
};

bool starts(const Carrier& row, sv program) {
  if (row.programs == "mpi") return is_mpi(program);
  const auto at = row.programs.find(program);
  const auto end = at + program.size();
  return at != sv::npos && (at == 0 || row.programs[at - 1] == ' ') &&
         (end == row.programs.size() || row.programs[end] == ' ');
}

// The option at list[n], with its value in the same word or in the next.
void carried(State& state, const std::vector<Word>& list, std::size_t n, const Carrier& row,
             const std::string& program, int block) {
  const sv word = list[n].text;
  if (!word.starts_with(row.option)) return;
  const bool apart = word.size() == row.option.size();
  const bool short_option = row.option.size() == 2;
  std::size_t skip = row.option.size();
  if (!apart && word[skip] == '=')
    ++skip;
  else if (!apart && !short_option)
    return;
  const std::size_t at = apart ? n + 1 : n;
  if (at >= list.size()) return;
  const std::size_t from = apart ? 0 : skip;
  const bool list_form = row.form == Form::commas || row.form == Form::semicolons;
  if (list_form) {
    add_export_list(state, sv(list[at].text).substr(from), row.form == Form::commas ? ',' : ';',
                    state.place(list[at].span.begin), block, program);
  } else if (row.form == Form::words && apart && list[at].text.find('=') == sv::npos) {
    if (at + 1 >= list.size() || !is_variable_name(list[at].text)) return;
    Assigned one;
    one.name = list[at].text;
    one.value = list[at + 1].text;
    one.known = list[at + 1].known;
    one.at = state.place(list[at].span.begin);
    one.value_span = list[at + 1].span;
    state.out.settings.push_back(setting_of(state, one, block, program));
  } else {
    add_option_setting(state, list[at], from, program, block, apart ? &list[n] : nullptr);
  }
}

void option_settings(State& state, const std::vector<Word>& list, const std::vector<std::string>& plain,
                     int block) {
  const std::size_t at = program_index(plain);
  for (std::size_t n = 0; n < std::min(at, list.size()); ++n)  // env A=1 B=2 cmd; sudo A=1 cmd
    if (!list[n].text.starts_with('-'))
      add_option_setting(state, list[n], 0, std::string(base_name(at < plain.size() ? plain[at] : plain[0])),
                         block);
  if (at >= plain.size()) return;
  const std::string program(base_name(plain[at]));
  if (is_one_of(program, {"kubectl", "conda", "mamba", "oc", "ssh", "pdsh", "clush"}))
    for (std::size_t n = at + 1; n < list.size(); ++n)
      if (!list[n].text.starts_with('-'))
        add_option_setting(state, list[n], 0, program, block, nullptr, Without::keeps_nothing);
  std::vector<const Carrier*> rows;
  for (const auto& row : kCarriers)
    if (starts(row, program)) rows.push_back(&row);
  for (std::size_t n = at + 1; n < list.size() && !rows.empty(); ++n)
    for (const auto* row : rows) carried(state, list, n, *row, program, block);
}

std::string option_value(const std::vector<std::string>& list, sv option) {
  for (std::size_t n = 0; n < list.size(); ++n) {
    const sv word = list[n];
    if (word == option && n + 1 < list.size()) return list[n + 1];
    if (word.size() > option.size() && word.starts_with(option) && word[option.size()] == '=')
      return std::string(word.substr(option.size() + 1));
  }
  return "";
}

void container_facts(State& state, const Command& command) {
  const std::size_t at = program_index(command.words);
  if (at >= command.words.size() || !is_one_of(base_name(command.words[at]), {"docker", "podman", "nerdctl"}))
    return;
  const std::string size = option_value(command.words, "--shm-size");
  const auto bytes = parse_size(size);
  if (!bytes) return;
  SharedMemory shm;
  shm.bytes = *bytes;
  shm.text = size;
  shm.at = command.at;
  shm.host_ipc = option_value(command.words, "--ipc") == "host";
  const std::string gpus = option_value(command.words, "--gpus");
  if (gpus.find("all") != sv::npos) shm.gpus = kAllGpus;
  if (const auto count = parse_int<int>(gpus)) shm.gpus = *count;
  if (gpus.find("device=") != sv::npos) shm.gpus = static_cast<int>(std::ranges::count(gpus, ',')) + 1;
  if (option_value(command.words, "--runtime") == "nvidia" && gpus.empty()) shm.gpus = kAllGpus;
  state.out.shared_memory.push_back(std::move(shm));
}

// A string that is a script of its own, which the command at `index` runs.
void run_string(State& state, sv text, Place place, std::size_t index, int depth) {
  state.string_bytes += text.size();
  if (text.empty() || depth >= 8 || state.string_bytes > 2 * state.text.size() + 65536) return;
  const std::string caller = state.out.commands[index].caller, function = state.out.commands[index].function;
  scan_shell_string(text, place, caller, function, state.out);
}

// bash -c '...', ssh host '...', eval "...": the string is a script of its own.
// `at`: the program among the words of the command at `index`, which the script may move.
void nested_script(State& state, const std::vector<Word>& list, std::size_t index, std::size_t at,
                   int depth) {
  if (at >= list.size() || depth >= kMaxNesting || state.string_depth > 4) return;
  const sv program = base_name(list[at].text);
  std::size_t script = list.size();
  for (std::size_t n = at; n + 1 < list.size(); ++n) {
    const bool shell = is_one_of(base_name(list[n].text), {"bash", "sh", "zsh", "dash", "ksh"});
    if (!shell) continue;
    std::size_t m = n + 1;
    while (m < list.size() && list[m].text.starts_with('-') &&
           !(list[m].text.size() > 1 && list[m].text[1] != '-' && list[m].text.ends_with('c')))
      ++m;
    if (m + 1 < list.size() && list[m].text.starts_with('-')) script = m + 1;
    break;
  }
  if (script == list.size() &&
      is_one_of(program, {"ssh", "pdsh", "clush", "eval", "su", "tmux", "screen", "xpanes"}))
    for (std::size_t n = list.size(); n-- > at + 1 && script == list.size();)
      if (list[n].text.find(' ') != sv::npos) script = n;
  if (program == "eval" && (list.size() > at + 2 || script == list.size())) {  // its words are one script
    std::string text;
    for (std::size_t n = at + 1; n < list.size() && text.size() < 65536; ++n) text += list[n].text + " ";
    return run_string(state, text, state.place(list[at].span.begin), index, depth);
  }
  for (std::size_t n = at + 1; n < list.size(); ++n) {
    const sv word = list[n].text;
    const Place place = state.place(list[n].span.begin);
    if (program == "sbatch" && word.starts_with("--wrap"))
      run_string(state,
                 word.size() > 6       ? word.substr(7)
                 : n + 1 < list.size() ? sv(list[n + 1].text)
                                       : sv(),
                 place, index, depth);
    if (program == "deepspeed" &&
        (word.starts_with("--launcher_args") || word.starts_with("--launcher-args")))
      run_string(state,
                 "mpirun " + std::string(word.size() > 15      ? word.substr(16)
                                         : n + 1 < list.size() ? sv(list[n + 1].text)
                                                               : sv()),
                 place, index, depth);
  }
  if (script >= list.size() || list[script].text.size() > 65536) return;
  state.string_bytes += list[script].text.size();
  if (state.string_bytes > 2 * state.text.size() + 65536) return;
  const Span span = list[script].span;
  const bool single = span.end > span.begin + 1 && state.text[span.begin] == '\'' &&
                      state.text[span.end - 1] == '\'' &&
                      span.end - span.begin == list[script].text.size() + 2;
  if (single) {
    ++state.string_depth;
    scan(state, span.begin + 1, span.end - 1, depth + 1);
    --state.string_depth;
    return;
  }
  Place place = state.place(span.begin);
  place.column += 1;
  state.string_bytes -= list[script].text.size();
  run_string(state, list[script].text, place, index, depth);
}

// echo NAME=VALUE >> /etc/nccl.conf
std::optional<ConfigKind> kind_of_target(sv path) {
  const sv name = base_name(path);
  if (name.ends_with("nccl.conf")) return ConfigKind::nccl_conf;
  if (name.ends_with("ucx.conf")) return ConfigKind::ucx_conf;
  if (name == "environment" || name.ends_with(".env") || name == ".deepspeed_env") return ConfigKind::env;
  if (is_one_of(name, {".bashrc", ".bash_profile", ".profile", "bash.bashrc"}) ||
      path.starts_with("/etc/profile.d/"))
    return ConfigKind::shell;
  const auto kind = config_kind_of_name(path);  // a script that is run later
  return kind == ConfigKind::document ? std::nullopt : kind;
}

std::optional<ConfigKind> kind_written(const Command& command) {
  for (const auto& redirect : command.redirects)
    if (redirect.op.find('>') != sv::npos)
      if (const auto kind = kind_of_target(redirect.target)) return kind;
  const std::size_t at = program_index(command.words);
  if (at < command.words.size() && base_name(command.words[at]) == "tee")
    for (std::size_t n = at + 1; n < command.words.size(); ++n)
      if (const auto kind = kind_of_target(command.words[n])) return kind;
  return std::nullopt;
}

void written_text(State& state, std::size_t index) {
  const auto& commands = state.out.commands;
  const Command& command = commands[index];
  const bool echo = !command.words.empty() && is_one_of(command.words[0], {"echo", "printf"});
  auto kind = echo ? kind_written(command) : std::nullopt;
  const Command* source = &command;
  if (!kind && index >= 1 && commands[index - 1].pipeline == command.pipeline) {
    source = &commands[index - 1];
    if (!source->words.empty() && is_one_of(source->words[0], {"echo", "printf"}))
      kind = kind_written(command);
  }
  if (!kind) return;
  std::string text;
  for (std::size_t n = 1; n < source->words.size(); ++n) {
    if (n == 1 && source->words[n].starts_with('-')) continue;
    text += (text.empty() ? "" : " ") + source->words[n];
  }
  for (auto at = text.find("\\n"); at != sv::npos; at = text.find("\\n", at + 1)) text.replace(at, 2, "\n");
  state.out.embedded.push_back({*kind, text + "\n", source->at, "", true});
}

Command to_command(State& state, Simple& simple, std::size_t first) {
  Command out;
  out.words.reserve(simple.words.size() - first);
  out.known.reserve(simple.words.size() - first);
  out.word_spans.reserve(simple.words.size() - first);
  for (std::size_t n = first; n < simple.words.size(); ++n) {
    const Word& word = simple.words[n];
    if (!word.fields.empty() && !word.is_array) {
      for (const auto& field : word.fields) {
        out.words.push_back(field);
        out.known.push_back(true);
        out.word_spans.push_back({});
      }
      continue;
    }
    out.words.push_back(word.text);
    out.known.push_back(word.known);
    out.word_spans.push_back(word.span);
  }
  out.redirects = std::move(simple.redirects);
  out.at = state.place(simple.begin);
  if (!simple.in_pipeline) ++state.pipeline;
  out.pipeline = state.pipeline;
  out.background = simple.background;
  out.conditional = state.conditional(simple.block);
  out.loop = simple.loop;
  out.function = simple.function;
  return out;
}

// The words of the command, those of variables in the place of the variables.
std::vector<Word> spread(const Simple& simple, std::size_t first) {
  std::vector<Word> out;
  for (std::size_t n = first; n < simple.words.size(); ++n) {
    const Word& word = simple.words[n];
    if (word.fields.empty() || word.is_array) {
      out.push_back(word);
      continue;
    }
    for (const auto& field : word.fields) {
      Word one;
      one.text = field;
      one.span = {word.span.begin, word.span.begin};
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace

int add_command(State& state, Simple simple, int depth) {
  std::size_t first = 0;
  while (first < simple.words.size() && simple.words[first].assignment > 0) ++first;
  if (first == simple.words.size()) {
    for (const auto& word : simple.words)
      if (auto one = assigned(state, word)) set_variable(state, word, std::move(*one), simple.block, false);
    if (simple.redirects.empty()) return -1;
  }
  // Most commands have no variable that becomes several words: then the words stand as they were written.
  const bool as_written = first == 0 && std::ranges::none_of(simple.words, [](const Word& word) {
                            return !word.fields.empty() && !word.is_array;
                          });
  const std::vector<Word> other = as_written ? std::vector<Word>{} : spread(simple, first);
  const std::vector<Word>& list = as_written ? simple.words : other;
  if (!list.empty() && shell_builtin(state, list, simple.block)) return -1;
  Command command = to_command(state, simple, first);
  for (std::size_t n = 0; n < first; ++n)
    if (const auto one = assigned(state, simple.words[n])) command.env.emplace_back(one->name, one->value);
  const std::size_t at = program_index(command.words);
  const std::string program(at < command.words.size() ? base_name(command.words[at]) : "");
  if (first < simple.words.size())
    for (std::size_t n = 0; n < first; ++n)
      if (const auto one = assigned(state, simple.words[n]))
        state.out.settings.push_back(
            setting_of(state, *one, simple.block, program.empty() ? "command" : program));
  option_settings(state, list, command.words, simple.block);
  container_facts(state, command);
  if (is_launch(command)) state.events.push_back({Event::launch, 0, "", simple.block, command.at.line});
  const std::size_t index = state.out.commands.size();
  state.out.commands.push_back(std::move(command));
  nested_script(state, list, index, at, depth);
  written_text(state, index);
  return static_cast<int>(index);
}

void directive(State& state, sv text, Place at) {
  const auto comment = text.find(" #");
  const std::vector<sv> list = words(text.substr(0, comment));
  static constexpr std::array<std::pair<sv, sv>, 6> kShort{{{"-N", "nodes"},
                                                            {"-n", "ntasks"},
                                                            {"-c", "cpus-per-task"},
                                                            {"-G", "gpus"},
                                                            {"-J", "job-name"},
                                                            {"-w", "nodelist"}}};
  for (std::size_t n = 0; n < list.size(); ++n) {
    sv word = list[n];
    std::string name, value;
    if (word.starts_with("--")) {
      const auto equals = word.find('=');
      name = word.substr(2, equals == sv::npos ? sv::npos : equals - 2);
      if (equals != sv::npos)
        value = word.substr(equals + 1);
      else if (n + 1 < list.size() && !list[n + 1].starts_with('-'))
        value = list[++n];
    } else if (word.starts_with('-') && word.size() >= 2) {
      const auto* found = std::ranges::find(kShort, word.substr(0, 2), &std::pair<sv, sv>::first);
      name = found == kShort.end() ? std::string(word.substr(1)) : std::string(found->second);
      if (word.size() > 2)
        value = word.substr(2);
      else if (n + 1 < list.size())
        value = list[++n];
    } else {
      continue;
    }
    if (name == "export") add_export_list(state, value, ',', at, 0, "");
    state.out.directives.emplace_back(name, value);
  }
}

void pbs_directive(State& state, sv text, Place at) {
  const std::vector<sv> list = words(text);
  for (std::size_t n = 0; n + 1 < list.size(); ++n) {
    if (list[n] == "-v") add_export_list(state, list[n + 1], ',', at, 0, "");
    if (list[n] == "-l" && list[n + 1].starts_with("select=")) {
      const sv count = list[n + 1].substr(7);
      state.out.directives.emplace_back("nodes", std::string(count.substr(0, count.find(':'))));
    }
  }
}

std::optional<Use> use_of_here_document(const std::vector<Command>& commands, std::size_t index) {
  const int pipeline = commands[index].pipeline;
  for (std::size_t n = index; n < commands.size() && commands[n].pipeline == pipeline; ++n)
    if (const auto kind = kind_written(commands[n])) return Use{*kind, true};
  for (std::size_t n = index; n < commands.size() && commands[n].pipeline == pipeline; ++n) {
    const auto& words = commands[n].words;
    const std::size_t at = program_index(words);
    const sv program = at < words.size() ? base_name(words[at]) : sv();
    if (is_one_of(program, {"bash", "sh", "zsh", "ssh", "sbatch", "qsub", "bsub", "dash", "ksh"}))
      return Use{ConfigKind::shell, n > index};
    if (program.starts_with("python")) return Use{ConfigKind::python, true};
    if (is_one_of(program, {"kubectl", "oc"})) return Use{ConfigKind::yaml, true};
  }
  return std::nullopt;
}

}  // namespace topotune::parse::shell
