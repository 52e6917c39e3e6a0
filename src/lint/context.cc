#include "lint/context.h"

#include <algorithm>

#include "base/text.h"
#include "checks/rule.h"
#include "parse/config_shell.h"

namespace topotune::lint {

using parse::Command;
using parse::ConfigKind;
using parse::Place;
using parse::Setting;
using sv = std::string_view;

bool is_one_of(sv word, std::initializer_list<sv> list) {
  return std::ranges::any_of(list, [&](sv one) {  // the first letter decides most of the time
    return one.size() == word.size() && (one.empty() || one.front() == word.front()) && one == word;
  });
}
bool newer(const std::optional<Version>& version, Version limit) { return version && *version >= limit; }
bool older(const std::optional<Version>& version, Version limit) { return version && *version < limit; }

bool has_word(const Command& command, sv word) {
  return std::ranges::find(command.words, word) != command.words.end();
}

std::string joined(const Command& command) {
  std::string out;
  for (const auto& word : command.words) {
    if (out.size() > 2000) break;
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::string option_value(const Command& command, std::initializer_list<sv> names) {
  const auto& words = command.words;
  for (std::size_t n = 0; n < words.size(); ++n) {
    for (const sv name : names) {
      const sv word = words[n];
      if (word == name && n + 1 < words.size()) return words[n + 1];
      if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
        return std::string(word.substr(name.size() + 1));
    }
  }
  return "";
}

std::size_t tool_index(const Command& command, sv name) {
  const auto& words = command.words;
  // Most commands do not name the tool at all.
  const bool named = std::ranges::any_of(words, [&](sv word) {
    return word.size() >= name.size() && word.back() == name.back() && word.ends_with(name) &&
           (word.size() == name.size() || word[word.size() - name.size() - 1] == '/');
  });
  if (!named) return words.size();
  std::size_t at = parse::program_index(words);
  if (at >= words.size()) return words.size();
  if (parse::base_name(words[at]) == name) return at;
  const sv program = parse::base_name(words[at]);
  const bool carries = is_one_of(
      program, {"srun",        "mpirun",    "mpiexec", "ssh",    "pdsh",   "clush",  "docker", "podman",
                "singularity", "apptainer", "kubectl", "xargs",  "watch",  "enroot", "if",     "prun",
                "orterun",     "parallel",  "nsenter", "chroot", "strace", "ltrace", "nsys",   "ncu"});
  if (!carries) return words.size();
  for (++at; at < words.size(); ++at)
    if (parse::base_name(words[at]) == name) return at;
  return words.size();
}

namespace {

std::optional<int> whole_number(sv text) { return parse_int<int>(text); }

// Of "2:4" the larger, of "4" itself.
std::optional<int> largest(sv text) {
  const auto colon = text.find(':');
  return whole_number(colon == sv::npos ? text : text.substr(colon + 1));
}

bool launcher_flag(sv word) {
  return is_one_of(word, {"--standalone", "--no-python", "--no_python", "--use_env", "--use-env",
                          "--run-path", "--multi_gpu"});
}

// The script behind the launcher's options, and its arguments.
void find_script(const Command& command, Launcher& launcher) {
  const auto& words = command.words;
  std::size_t n = launcher.at + 1;
  for (; n < words.size(); ++n) {
    const sv word = words[n];
    if (word == "launch" && launcher.name == "accelerate") continue;
    if (word == "-m" || word == "--module") {
      ++n;
      break;
    }
    if (!word.starts_with('-')) break;
    if (!launcher_flag(word) && word.find('=') == sv::npos) ++n;
  }
  if (n >= words.size()) return;
  launcher.script = words[n];
  launcher.script_arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(n) + 1, words.end());
}

}  // namespace

std::optional<Launcher> launcher_of(const Command& command) {
  Launcher out;
  const auto& words = command.words;
  const std::size_t program = parse::program_index(words);
  if (program < words.size() && is_one_of(words[program], {"echo", "printf", "grep", "pgrep", "pkill",
                                                           "which", "ps", "pip", "pip3", "conda"}))
    return std::nullopt;
  for (std::size_t n = 0; n < words.size() && out.name.empty(); ++n) {
    const sv base = parse::base_name(words[n]);
    out.at = n;
    if (is_one_of(base, {"torchrun", "deepspeed"})) out.name = base;
    if (base == "accelerate" && n + 1 < words.size() && words[n + 1] == "launch") out.name = base;
    if (words[n] == "-m" && n + 1 < words.size() &&
        is_one_of(words[n + 1], {"torch.distributed.launch", "torch.distributed.run"})) {
      out.name = words[n + 1];
      out.at = n + 1;
    }
  }
  if (out.name.empty()) return std::nullopt;
  out.ranks = whole_number(
      option_value(command, {"--nproc_per_node", "--nproc-per-node", "--num_gpus", "--num_processes"}));
  out.nodes = largest(option_value(command, {"--nnodes", "--num_nodes", "--num_machines"}));
  out.port = option_value(command, {"--master_port", "--master-port", "--main_process_port",
                                    "--rdzv-endpoint", "--rdzv_endpoint"});
  out.standalone = has_word(command, "--standalone");
  if (out.standalone) out.nodes = 1;
  find_script(command, out);
  return out;
}

namespace {

bool is_collective_test(sv word) {
  const sv name = parse::base_name(word);
  return name.ends_with("_perf") &&
         is_one_of(name, {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf",
                          "reduce_perf", "alltoall_perf", "sendrecv_perf", "gather_perf", "scatter_perf",
                          "hypercube_perf"});
}

void take_max(std::optional<int>& into, std::optional<int> value) {
  if (value && (!into || *value > *into)) into = value;
}

void look_at_command(const Command& command, Job& job) {
  const std::size_t at = parse::program_index(command.words);
  const sv program = at < command.words.size() ? parse::base_name(command.words[at]) : sv();
  const auto launcher = launcher_of(command);
  if (launcher) {
    job.starts_training = true;
    take_max(job.nodes, launcher->nodes);
    take_max(job.ranks_per_node, launcher->ranks);
  }
  const bool mpi = program.starts_with("mpi") || is_one_of(program, {"orterun", "prun"});
  bool nccl_test = false, python = false;
  for (const auto& word : command.words) {
    const sv base = parse::base_name(word);
    nccl_test = nccl_test || is_collective_test(word);
    python = python || base.starts_with("python");
    if (base.starts_with("all_reduce_bench") ||
        (word.find("nccl-tests") != sv::npos && word.find("build/") != sv::npos))
      job.benchmark = true;
    if (base.starts_with("osu_") || base.starts_with("ucx_perftest") || base.ends_with("_bw") ||
        base.ends_with("_lat")) {
      job.benchmark = true;
      job.uses_ucx = job.uses_ucx || base.starts_with("ucx_");
    }
    if (base.starts_with("nvshmem") || base.find("ucxx") != sv::npos || base.find("dask") != sv::npos)
      job.uses_ucx = true;
    if (base.find("cuda") != sv::npos) job.gpu_application = job.gpu_application || mpi;
  }
  job.benchmark = job.benchmark || nccl_test || program.starts_with("nvbandwidth");
  if (nccl_test) job.starts_training = true;
  if (mpi && !nccl_test && !launcher && !python) job.mpi = true;
  if (program == "srun") {
    take_max(job.nodes, whole_number(option_value(command, {"-N", "--nodes"})));
    take_max(job.ranks_per_node, whole_number(option_value(command, {"--ntasks-per-node"})));
  }
  if (program == "srun" || mpi)
    if (!option_value(command, {"--gpus-per-node", "--gpus", "--gres", "--gpus-per-task"}).empty())
      job.gpu_application = true;
}

Job job_of(const Input& input) {
  Job job;
  for (const auto& [name, value] : input.facts.directives) {
    if (name == "nodes") take_max(job.nodes, largest(split(value, '-').back()));
    if (name == "ntasks-per-node" || name == "gpus-per-node")
      take_max(job.ranks_per_node, whole_number(value.substr(value.rfind(':') + 1)));
    if (name == "cpus-per-task") job.cpus_per_task = whole_number(value);
    if (name == "gpus-per-node" || name == "gpus" || name == "gres" || name == "gpus-per-task")
      job.gpu_application = true;
  }
  for (const auto& command : input.facts.commands) look_at_command(command, job);
  for (const auto& module : input.facts.imports) {
    if (module == "ucxx" || module == "ucp" || module == "dask_cuda" || module.starts_with("nvshmem"))
      job.uses_ucx = true;
    if (module.starts_with("torch.distributed") || module == "deepspeed") job.starts_training = true;
    if (module == "mpi4py") job.mpi = true;
  }
  for (const auto& setting : input.facts.settings) {
    if (setting.name == "CUDA_VISIBLE_DEVICES") job.gpu_application = true;
    if (setting.name.starts_with("NVSHMEM_")) job.uses_ucx = true;
    if (setting.name.starts_with("OMPI_MCA_") && setting.value.find("ucx") != std::string::npos)
      job.mpi = true;
  }
  return job;
}

// A line of nccl.conf that says what it means to say.
std::optional<Setting> setting_of(const parse::ConfLine& line) {
  if (!line.assignment || !parse::is_variable_name(line.name)) return std::nullopt;
  const sv bare = trim(line.value);
  if (line.value.find_first_of("\"'") != std::string::npos || line.value.ends_with('\r')) return std::nullopt;
  if (bare.size() != line.value.size() && !parse_int<long long>(bare.substr(0, bare.find(' '))))
    return std::nullopt;
  Setting out;
  out.name = line.name;
  out.value = bare.substr(0, bare.find_first_of(" \t#"));
  if (bare.find_first_of(" \t") == sv::npos) out.value = bare;
  out.at = line.at;
  out.written = !line.value.empty();
  out.literal = line.value.find('$') == std::string::npos && !parse::is_placeholder(line.value);
  if (line.span.end > line.span.begin) {
    out.whole = line.span;
    out.name_span = parse::Span{line.span.begin, line.span.begin + line.name.size()};
    out.value_span = parse::Span{line.span.begin + line.name.size() + 1, line.span.end};
  }
  return out;
}

}  // namespace

Context::Context(const Input& in, std::size_t index, const Options& o, Report& report)
    : input(in), options(o), nccl(o.nccl), job(job_of(in)), index_(index), report_(report), lines_(in.text) {
  for (const auto& line : input.facts.conf_lines)
    if (auto one = setting_of(line)) of_conf_.push_back(std::move(*one));
  for (const auto& one : input.facts.settings)
    if (!one.replaced_at) settings_.push_back(&one);
  for (const auto& one : of_conf_) settings_.push_back(&one);
  for (const auto* one : settings_) last_[one->name] = one;
  for (const auto& comment : input.facts.comments) {
    comments_[comment.line] += comment.text + " ";
    own_line_[comment.line] = comment.own_line;
  }
  if (options.nodes) job.nodes = options.nodes;
  // What serves models moves its caches over UCX.
  if (!job.uses_ucx &&
      std::ranges::any_of(settings_, [](const auto* s) { return s->name.starts_with("UCX_"); }))
    job.uses_ucx = mentions({"nixl", "--disaggregation-", "ai-dynamo", "dynamo.vllm", "dynamo.sglang",
                             "dynamo.trtllm", "dynamo_", "mooncake", "ucx_kvcache"});
  if (!nccl)
    if (const auto* version = last("NCCL_VERSION")) nccl = parse_version(version->value);
  if (nccl && (nccl->major < 1 || nccl->major > 2)) nccl = std::nullopt;  // no version of NCCL
}

const Setting* Context::last(sv name) const {
  const auto found = last_.find(name);
  return found == last_.end() ? nullptr : found->second;
}

bool Context::has(sv name, sv value) const {
  const auto* one = last(name);
  return one != nullptr && iequals(one->value, value);
}

std::string Context::source(int line) const { return fmt::format("{}:{}", input.name, line); }

sv Context::line_text(int line) const {
  const std::size_t begin = lines_.begin_of(line - input.first_line + 1);
  const std::size_t end = std::min(input.text.find_first_of("\r\n", begin), input.text.size());
  return input.text.substr(begin, end - begin);
}

Found& Context::add(std::string_view rule, Place at, std::string subject, std::string expected,
                    std::string observed) {
  Found found;
  model::Finding& out = found.finding;
  out.rule = rule;
  out.subject = std::move(subject);
  out.file = input.name;
  out.line = at.line;
  out.column = at.column;
  out.expected = std::move(expected);
  out.observed = std::move(observed);
  out.evidence.push_back({source(at.line), std::string(trim(line_text(at.line).substr(0, 300)))});
  if (input.kind == ConfigKind::environ) out.evidence.back().text = out.subject + "=" + out.observed;
  if (const auto* row = checks::find_rule(rule)) {
    out.severity = model::severity_from(row->severity).value_or(model::Severity::warn);
    out.title = row->title;
    out.impact = row->impact;
    out.remedy = row->remedy;
    out.reference = row->source;
  }
  out.action = "see-" + out.rule;
  found.input = index_;
  report_.found.push_back(std::move(found));
  return report_.found.back();
}

Found& Context::add(std::string_view rule, const Setting& setting, std::string expected) {
  return add(rule, setting.at, setting.name, std::move(expected), setting.value);
}

Found& Context::add(std::string_view rule, const Command& command, std::string expected) {
  const std::size_t at = parse::program_index(command.words);
  std::string subject(at < command.words.size() ? parse::base_name(command.words[at]) : "command");
  return add(rule, command.at, std::move(subject), std::move(expected), joined(command).substr(0, 300));
}

std::string Context::comments_at(int line) const {
  std::string out;
  int first = line;
  while (first > 1 && line - first < 12 && own_line_.count(first - 1) > 0 && own_line_.at(first - 1)) --first;
  for (int n = first; n <= line; ++n) {
    const auto found = comments_.find(n);
    if (found != comments_.end()) out += found->second + "\n";
  }
  return out;
}

bool Context::mentions(std::initializer_list<sv> words) const {
  return std::ranges::any_of(words, [&](sv word) {
    const auto found = mentioned_.find(word);
    if (found != mentioned_.end()) return found->second;
    return mentioned_[std::string(word)] = icontains(input.text, word);
  });
}

bool Context::has_reason(const Setting& setting) const {
  const std::string comment = comments_at(setting.at.line);
  for (const sv word :
       {"hang",        "bug",     "issue",   "ticket", "because",    "workaround", "crash",  "http",
        "until",       "since",   "fail",    "broken", "deadlock",   "#",          "slower", "not support",
        "unsupported", "corrupt", "regress", "JIRA",   "determinis", "memory",     "avoid",  "prevent"})
    if (icontains(comment, word)) return true;
  return false;
}

bool Context::rccl() const {
  const auto of_amd = [](const Setting* one) {
    return one->name.starts_with("RCCL_") || one->name.starts_with("HSA_") ||
           one->name == "HIP_VISIBLE_DEVICES" || one->name == "ROCR_VISIBLE_DEVICES";
  };
  if (!rccl_)
    rccl_ =
        options.amd || std::ranges::any_of(settings_, of_amd) ||
        mentions({"mi300", "mi325", "mi350", "mi355", "gfx9", "rocm/", "/opt/rocm", "librccl", "rccl-tests"});
  return *rccl_;
}

bool Context::reproducible() const {
  if (!reproducible_) {
    const std::string text = to_lower(input.text);
    reproducible_ = text.find("cublas_workspace_config") != sv::npos || text.find("bitwise") != sv::npos ||
                    text.find("reproducib") != sv::npos;
    // Not of "nondeterministic", "non-deterministic".
    for (auto at = text.find("determinis"); at != sv::npos && !*reproducible_;
         at = text.find("determinis", at + 1)) {
      const sv before = sv(text).substr(at - std::min<std::size_t>(at, 4), std::min<std::size_t>(at, 4));
      reproducible_ = before.find("non") == sv::npos;
    }
    reproducible_ = *reproducible_ || text.find("nondeterministic_algo=0") != sv::npos;
  }
  return *reproducible_;
}

bool Context::other_network() const {
  const auto* net = last("NCCL_NET");
  if (net != nullptr && !iequals(net->value, "IB")) return true;
  const auto* plugin = last("NCCL_NET_PLUGIN");
  if (plugin != nullptr && !plugin->value.empty() && !iequals(plugin->value, "none")) return true;
  return std::ranges::any_of(settings_, [](const Setting* one) {
    return one->name.starts_with("FI_") || one->name.starts_with("OFI_NCCL_") ||
           one->name.starts_with("NCCL_GPUDIRECTTCPX_") || one->name.starts_with("NCCL_FASTRAK_");
  });
}

std::vector<const Command*> Context::pipeline_of(const Command& command) const {
  std::vector<const Command*> out;
  const auto& all = input.facts.commands;
  const auto self = static_cast<std::size_t>(&command - all.data());
  std::size_t first = self;
  while (first > 0 && self - first < 16 && all[first - 1].pipeline == command.pipeline) --first;
  for (std::size_t n = first; n < all.size() && n < self + 16 && all[n].pipeline == command.pipeline; ++n)
    out.push_back(&all[n]);
  return out;
}

std::string Context::label_of(const Command& command) const {
  std::string out = comments_at(command.at.line);
  for (const auto* one : pipeline_of(command)) {
    if (one != &command) out += joined(*one) + "\n";
    for (const auto& redirect : one->redirects) out += redirect.target + "\n";
  }
  const auto& all = input.facts.commands;
  const auto self = static_cast<std::size_t>(&command - all.data());
  if (self > 0 && all[self - 1].at.line + 1 >= command.at.line && !all[self - 1].words.empty() &&
      all[self - 1].words[0] == "echo")
    out += joined(all[self - 1]) + "\n";
  return out;
}

namespace {

bool exports(sv word) { return is_one_of(word, {"export", "declare -x", "set"}); }

// The line in front of `begin` without its end and blanks behind; comments and empty lines are passed over.
sv line_above(sv text, std::size_t begin) {
  for (int lines = 0; begin > 0 && lines < 50; ++lines) {
    const auto start = begin < 2 ? sv::npos : text.rfind('\n', begin - 2);
    const std::size_t from = start == sv::npos ? 0 : start + 1;
    const sv line = trim(text.substr(from, begin - from));
    if (!line.empty() && !line.starts_with('#')) return line;
    begin = from;
  }
  return {};
}

// A body may not be empty, and a list may not end in "&&".
bool needs_a_statement(sv above) {
  return is_one_of(above.substr(above.find_last_of(" \t;") + 1), {"then", "do", "else", "{", "(", "in"}) ||
         above.ends_with("&&") || above.ends_with("||") || above.ends_with('|') || above.ends_with(')') ||
         above.ends_with('\\') || above.ends_with('{');
}

// Where the backslash at the end of the line above stands, with the blanks before it.
std::optional<std::size_t> continued_from(sv text, std::size_t begin) {
  if (begin == 0) return std::nullopt;
  std::size_t at = begin - 1;
  if (at > 0 && text[at - 1] == '\r') --at;
  if (at == 0 || text[at - 1] != '\\') return std::nullopt;
  --at;
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
  return at;
}

// The edit that takes a setting out of a script and leaves a script. `before`, `after`: what else is on its
// line.
Edit without_setting(const Input& input, const parse::LineIndex& lines, int line, parse::Span whole,
                     sv before, sv after) {
  const sv text = input.text;
  const std::size_t begin = lines.begin_of(line), next = lines.begin_of(line + 1);
  const bool shell = input.kind == ConfigKind::shell;
  const bool ends = after.empty() || after.starts_with('#') || after == ";";
  const auto continued = continued_from(text, begin);
  if (before.empty() && after == "\\") return {{begin, next}, ""};  // one line of a command of several
  if (before.empty() && ends && continued) return {{*continued, whole.end}, ""};  // the last of them
  if ((before.empty() || exports(before)) && ends) {
    if (!shell || !needs_a_statement(line_above(text, begin))) return {{begin, next}, ""};
    const auto indent = text.find_first_not_of(" \t", begin);
    return {{indent, whole.end}, ":"};
  }
  // "then export NAME=1; fi": nothing else was exported.
  for (const sv verb : {"export", "declare -x"})
    if (shell && before.ends_with(verb) && (ends || is_one_of(after.substr(0, 1), {";", "&", "|", "}"}))) {
      const auto at = text.rfind(verb, whole.begin);
      if (at != sv::npos && at >= begin) return {{at, whole.end}, ":"};
    }
  std::size_t from = whole.begin, to = whole.end;
  while (to < text.size() && (text[to] == ' ' || text[to] == '\t')) ++to;
  return {{from, to}, ""};
}

}  // namespace

void Context::drop(Found& found, const Setting& setting) const {
  if (found.finding.severity == model::Severity::error) drop_idle(found, setting);
}

bool Context::computed(const Setting& setting) const {
  return setting.value_span &&
         input.text.substr(setting.value_span->begin, setting.value_span->end - setting.value_span->begin)
                 .find('$') != sv::npos;
}

void Context::drop_idle(Found& found, const Setting& setting) const {
  if (computed(setting)) return;
  const int line = setting.at.line;
  const std::size_t begin = lines_.begin_of(line);
  if (!setting.whole) {
    const sv text = line_text(line);
    const auto indent = text.find_first_not_of(" \t");
    const bool statement = input.kind == ConfigKind::python && setting.name_span && indent != sv::npos &&
                           (text.substr(indent).starts_with("os.environ[") ||
                            text.substr(indent).starts_with("os.environ.setdefault(")) &&
                           text.find(';') == sv::npos;
    if (statement && setting.literal && setting.value_span &&
        lines_.place(setting.value_span->end - 1).line == line)
      found.edits.push_back(indent == 0 ? Edit{{begin, lines_.begin_of(line + 1)}, ""}
                                        : Edit{{begin + indent, begin + text.size()}, "pass"});
    return;
  }
  const auto whole = *setting.whole;
  if (input.kind == ConfigKind::yaml) {
    found.edits.push_back({whole, ""});
    return;
  }
  const sv line_all = line_text(line);
  const sv before = trim(input.text.substr(begin, whole.begin - begin));
  const std::size_t end_of_line = begin + line_all.size();
  const sv after =
      whole.end <= end_of_line ? trim(input.text.substr(whole.end, end_of_line - whole.end)) : sv("x");
  found.edits.push_back(without_setting(input, lines_, line, whole, before, after));
}

void Context::set_value(Found& found, const Setting& setting, std::string value) const {
  if (!setting.value_span || computed(setting)) return;
  const sv old =
      input.text.substr(setting.value_span->begin, setting.value_span->end - setting.value_span->begin);
  const char quote = !old.empty() && (old[0] == '"' || old[0] == '\'') ? old[0] : '\0';
  found.edits.push_back(
      {*setting.value_span, quote != '\0' ? fmt::format("{}{}{}", quote, value, quote) : std::move(value)});
}

void Context::rename(Found& found, const Setting& setting, std::string name) const {
  if (setting.name_span && !computed(setting)) found.edits.push_back({*setting.name_span, std::move(name)});
}

void Context::replace_word(Found& found, const Command& command, std::size_t word, std::string text) const {
  if (word >= command.word_spans.size()) return;
  const auto span = command.word_spans[word];
  if (span.end > span.begin) found.edits.push_back({span, std::move(text)});
}

}  // namespace topotune::lint
