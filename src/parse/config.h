#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace topotune::parse {

// The kinds of text that carry configuration. `environ` is /proc/PID/environ (NUL between entries).
enum class ConfigKind {
  env,
  environ,
  shell,
  nccl_conf,
  ucx_conf,
  yaml,
  dockerfile,
  systemd,
  python,
  document,  // prose with blocks of the others
  notebook,
  lua  // modules of Lmod
};
const char* name_of(ConfigKind kind);  // "env", "environ", "shell", "nccl-conf", ...
std::optional<ConfigKind> config_kind_from(std::string_view name);

// From the file's name where that decides (nccl.conf, *.py, Dockerfile), else from the text. Nothing: binary,
// or a language that is not read here.
std::optional<ConfigKind> recognise_config(std::string_view file_name, std::string_view text);

// From the file's name alone; nothing where the name does not tell.
std::optional<ConfigKind> config_kind_of_name(std::string_view path);

// Both count from 1; the column counts bytes.
struct Place {
  int line = 1;
  int column = 1;
  auto operator<=>(const Place&) const = default;
};

// Bytes [begin, end) of the input.
struct Span {
  std::size_t begin = 0, end = 0;
};

enum class Late { no, after_init, after_collective };

// A variable that the text gives to a program.
struct Setting {
  std::string name, value;
  Place at;
  // Where it stands in the input, if it stands there as such: "NCCL_X=1" whole, its name, its value with
  // quotes.
  std::optional<Span> whole, name_span, value_span;
  bool literal = true;       // false: the value holds an expansion that the text does not decide
  bool written = true;       // false: `NAME=` with nothing behind it, not even quotes
  bool conditional = false;  // stands in an if, case or loop
  std::string scope;         // "": the whole input; else the command, container or function it is for
  std::optional<int>
      replaced_at;  // line of the assignment or unset that takes it back before a program starts
  std::optional<std::string> replaced_by;  // the later value; nothing: it was unset
  Late late = Late::no;                    // Python: set when NCCL has read its variables already
  int late_line = 0;
};

struct Redirect {
  std::string op, target;
};

// One simple command; its words have no quotes any more. An expansion that the text does not decide stays
// "$NAME".
struct Command {
  std::vector<std::string> words;
  std::vector<bool> known;                               // words[i] holds no undecided expansion
  std::vector<std::pair<std::string, std::string>> env;  // assignments in front of it
  std::vector<Redirect> redirects;
  Place at;
  std::vector<Span> word_spans;  // as written; {0, 0} where a word comes from elsewhere
  int pipeline = 0;              // commands of one pipeline share it
  bool background = false;
  bool conditional = false;
  int loop = -1;         // index into ConfigText::loops
  std::string caller;    // Python: "os.system", "subprocess.run"
  std::string function;  // the shell or Python function around it
};

// `header` is the source from the loop's keyword to `do`, with what is piped or redirected into the loop.
struct Loop {
  std::string header, variable;
  Place at;
};

struct Comment {
  int line = 1;
  std::string text;
  bool own_line = true;
};

// Text of another kind inside this one (a here-document that becomes nccl.conf, a script in YAML).
struct Embedded {
  ConfigKind kind = ConfigKind::shell;
  std::string text;
  Place at;
  std::string scope;
  bool one_line = false;  // its line ends are escapes: all of it stands at `at`
};

// /dev/shm of a container as the text sets it.
inline constexpr int kAllGpus = 1000;
struct SharedMemory {
  std::uint64_t bytes = 0;
  std::string text;
  std::optional<int> gpus;  // nothing: not said; kAllGpus: all of the machine
  bool host_ipc = false;
  std::string scope;
  Place at;
};

// A Prometheus alert.
struct Alert {
  std::string name, expression, summary;
  Place at;  // of the expression
};

// A line of nccl.conf as NCCL's own reader (src/misc/param.cc setEnvFile) stores it.
struct ConfLine {
  std::string raw;  // without "\n"; a "\r" stays
  std::string name, value;
  bool assignment = false;
  Place at;
  Span span;
};

// Python: os.sched_setaffinity(0, {...}) and DataLoader(num_workers=...).
struct CpuMask {
  int cpus = 0;
  Place at;
};
struct Loader {
  int workers = 0;
  bool own_mask = false;  // worker_init_fn is given
  Place at;
};

// A file that this one reads: `source FILE`, EnvironmentFile=, env_file.
struct Include {
  std::string path;
  Place at;
  bool optional = false;  // guarded by a test, or marked as optional
};

// What was wrong with the text itself; the rest was read.
struct Diagnostic {
  Place at;
  std::string text;
};

struct ConfigText {
  ConfigKind kind = ConfigKind::env;
  std::vector<Setting> settings;
  std::vector<Command> commands;
  std::vector<Loop> loops;
  std::vector<Comment> comments;
  std::vector<Embedded> embedded;
  std::vector<SharedMemory> shared_memory;
  std::vector<Alert> alerts;
  std::vector<ConfLine> conf_lines;
  std::vector<CpuMask> masks;
  std::vector<Loader> loaders;
  std::vector<Include> includes;
  std::vector<Diagnostic> diagnostics;
  std::set<std::string, std::less<>> reads;      // variables that the text itself reads
  std::set<std::string, std::less<>> functions;  // defined here
  std::set<std::string, std::less<>> imports;    // Python modules
  bool replaces_itself = false;                  // Python: os.exec* is used
  // "#SBATCH --nodes=4" as ("nodes", "4"), "-N 4" too; a flag without a value has "".
  std::vector<std::pair<std::string, std::string>> directives;
};

// An input above kMaxConfig is refused (one diagnostic); nesting above kMaxNesting is read as plain text.
inline constexpr std::size_t kMaxConfig = 64u << 20;
inline constexpr int kMaxNesting = 32;

// Each reads `text` as that kind, in one pass. They never fail: what cannot be read becomes a diagnostic.
ConfigText scan_env(std::string_view text);
ConfigText scan_environ(std::string_view text);
ConfigText scan_shell(std::string_view text);
ConfigText scan_nccl_conf(std::string_view text);
ConfigText scan_ucx_conf(std::string_view text);
ConfigText scan_dockerfile(std::string_view text);
ConfigText scan_systemd(std::string_view text);
ConfigText scan_python(std::string_view text);
ConfigText scan_lua(std::string_view text);
// The blocks of a document as `embedded`, not read yet; scope "?": nothing says what the block is.
ConfigText scan_document(std::string_view text);

// Any of the above, embedded texts included; those that are YAML stay in `embedded`. YAML, notebooks and
// documents are read elsewhere (lint/scan_yaml.h, lint/lint.cc); here they give nothing.
ConfigText scan_config(ConfigKind kind, std::string_view text);

// Appends `from`, read from a text whose first byte stands at `at` of `into`'s; spans of `from` are dropped.
void append_config(ConfigText& into, ConfigText from, Place at, const std::string& scope);
// The same where `place` says which place of `into` one of `from` has.
void append_config(ConfigText& into, ConfigText from, const std::function<Place(Place)>& place,
                   const std::string& scope);

// Line numbers of offsets in one text.
class LineIndex {
 public:
  explicit LineIndex(std::string_view text);
  Place place(std::size_t offset) const;
  std::size_t begin_of(
      int line) const;  // offset of the line's first byte; the text's end for lines behind it
  int count() const { return static_cast<int>(starts_.size()); }

 private:
  std::vector<std::size_t> starts_;
  std::size_t size_;
};

bool is_variable_name(std::string_view text);  // [A-Za-z_][A-Za-z0-9_]*
// What somebody or something fills in later: "{{ x }}", "{% x %}", "<%= x %>", "<x>", "@X@", "__X__", "???",
// "%(x)s", "YOUR_X".
bool is_placeholder(std::string_view value);

// Variables of NCCL or UCX are named, whatever the line does with them.
bool mentions_library(std::string_view line);
struct Mentions {
  int lines = 0, first = 0;  // how many do, and which one first, from 1
};
Mentions mentions_of(std::string_view text);
// "64m", "1Gi", "512Mi", "8g", "8gb", "67108864" in bytes; k, m, g are powers of 1024 as Docker and the
// kernel take them.
std::optional<std::uint64_t> parse_size(std::string_view text);

}  // namespace topotune::parse
