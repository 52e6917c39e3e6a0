#include <algorithm>
#include <map>

#include "base/text.h"
#include "parse/config.h"
#include "parse/config_python_tokens.h"
#include "parse/config_shell.h"

namespace topotune::parse {

namespace {

using python::Kind;
using python::Token;
using sv = std::string_view;

bool is_one_of(sv word, std::initializer_list<sv> list) {
  return std::ranges::find(list, word) != list.end();
}

// What matters for the question whether NCCL has read its variables already, in the order of one function's
// text.
struct Event {
  enum Kind { set, init, connect, call } kind;
  int line = 0;
  std::size_t setting = 0;
  std::string callee;
};

struct Value {
  std::string text;
  bool literal = false;
  std::optional<Span> span;
};

class Reader {
 public:
  Reader(sv text, ConfigText& out)
      : text_(text), lines_(text), out_(out), tokens_(python::tokens_of(text, lines_, out)) {
    pair_brackets();
  }

  void run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const Token& token = tokens_[at_];
      if (token.indent >= 0) begin_line(token);
      if (token.kind == Kind::name) name(token);
      if (is("[", at_)) subscript();
      if (is("{", at_)) braces();
    }
    mark_late();
    mark_replaced();
  }

 private:
  bool is(sv op, std::size_t n) const {
    return n < tokens_.size() && tokens_[n].kind == Kind::op && tokens_[n].text == op;
  }
  bool is_name(sv word, std::size_t n) const {
    return n < tokens_.size() && tokens_[n].kind == Kind::name && tokens_[n].text == word;
  }
  bool is_string(std::size_t n) const { return n < tokens_.size() && tokens_[n].kind == Kind::string; }
  int line_of(std::size_t n) const { return lines_.place(tokens_[n].span.begin).line; }
  // tokens_[n] in front of the current one, or none.
  sv before(std::size_t back) const { return at_ >= back ? sv(tokens_[at_ - back].text) : sv(); }

  // closing_[n]: the bracket that closes the one at n.
  void pair_brackets() {
    closing_.assign(tokens_.size(), tokens_.size());
    std::vector<std::size_t> open;
    for (std::size_t n = 0; n < tokens_.size(); ++n) {
      if (tokens_[n].kind == Kind::newline) open.clear();
      if (tokens_[n].kind != Kind::op) continue;
      const sv op = tokens_[n].text;
      if (is_one_of(op, {"(", "[", "{"})) open.push_back(n);
      if (is_one_of(op, {")", "]", "}"}) && !open.empty()) {
        closing_[open.back()] = n;
        open.pop_back();
      }
    }
  }

  void begin_line(const Token& token) {
    while (!blocks_.empty() && blocks_.back().indent >= token.indent) blocks_.pop_back();
    if (token.kind != Kind::name) return;
    if (blocks_.size() > 256) blocks_.pop_back();
    if (token.text == "def" || (token.text == "async" && is_name("def", at_ + 1))) {
      const std::size_t n = at_ + (token.text == "def" ? 1 : 2);
      if (n < tokens_.size()) {
        out_.functions.insert(tokens_[n].text);
        blocks_.push_back({token.indent, false, tokens_[n].text});
      }
    } else if (is_one_of(token.text, {"if", "elif", "else", "for", "while", "except"})) {
      const bool main = is_name("__name__", at_ + 1);
      blocks_.push_back({token.indent, !main, function()});
    } else if (token.text == "del" && is_name("environ", at_ + 3) && is("[", at_ + 4) && is_string(at_ + 5)) {
      remove(at_ + 5);
    } else if (is_one_of(token.text, {"import", "from"})) {
      import(token.text == "from");
    } else if (is("=", at_ + 1) && is_string(at_ + 2) && tokens_[at_ + 2].text.size() < 65536) {
      strings_[token.text] = at_ + 2;
    }
  }

  void import(bool from) {
    std::string module;
    std::size_t n = at_ + 1;
    for (; n < tokens_.size() && (tokens_[n].kind == Kind::name || is(".", n)); ++n) {
      if (is_one_of(tokens_[n].text, {"import", "as"})) break;
      module += tokens_[n].text;
    }
    out_.imports.insert(module);
    for (; n < tokens_.size() && tokens_[n].kind != Kind::newline; ++n) {
      if (tokens_[n].kind != Kind::name || is_one_of(tokens_[n].text, {"import", "as"})) continue;
      if (from)
        imported_[tokens_[n].text] = module;
      else
        out_.imports.insert(tokens_[n].text);
    }
    at_ = n > 0 ? n - 1 : n;
  }

  std::string function() const { return blocks_.empty() ? "" : blocks_.back().function; }
  bool conditional() const {
    return std::ranges::any_of(blocks_, [](const Block& one) { return one.conditional; });
  }

  // The value that begins at n and ends in front of a comma, a closing bracket or the line's end.
  Value value_at(std::size_t n) const {
    Value out;
    const bool call = is_name("str", n) && is("(", n + 1) && closing_[n + 1] == n + 3;
    const bool bracket = is("(", n) && closing_[n] == n + 2;  // ("value")
    const std::size_t one = call ? n + 2 : bracket ? n + 1 : n;
    const std::size_t end = call ? n + 4 : bracket ? n + 3 : n + 1;
    if (one >= tokens_.size()) return out;
    const Token& token = tokens_[one];
    const bool alone =
        end >= tokens_.size() || tokens_[end].kind == Kind::newline ||
        (tokens_[end].kind == Kind::op && is_one_of(tokens_[end].text, {",", ")", "}", "]", ";"}));
    out.text = token.text;
    out.literal = alone && !token.dynamic && (token.kind == Kind::string || token.kind == Kind::number);
    if (out.literal && token.kind == Kind::string && token.inner.end > 0) out.span = token.span;
    if (token.kind == Kind::name && is_one_of(token.text, {"True", "False"}) && alone) out.literal = true;
    return out;
  }

  // os.environ.get("NAME", "default"), os.getenv("NAME", "default") of the name itself: the default.
  Value value_or_default(std::size_t name, std::size_t n) const {
    Value out = value_at(n);
    std::size_t call = n;
    while (call < n + 5 && call < tokens_.size() && !is("(", call)) ++call;
    const bool get = call > n && (is_name("get", call - 1) || is_name("getenv", call - 1));
    if (out.literal || !get || !is("(", call) || closing_[call] != call + 4 || !is(",", call + 2)) return out;
    if (!is_string(call + 1) || tokens_[call + 1].text != tokens_[name].text || !is_string(call + 3) ||
        tokens_[call + 3].text.empty())
      return out;
    out.text = tokens_[call + 3].text;
    out.literal = !tokens_[call + 3].dynamic;
    return out;
  }

  std::size_t add(std::size_t name, const Value& value, std::string scope) {
    Setting one;
    one.name = tokens_[name].text;
    if (!is_variable_name(one.name)) return out_.settings.size();
    one.value = value.text;
    one.literal = value.literal;
    one.at = lines_.place(tokens_[name].span.begin);
    if (tokens_[name].kind == Kind::string && tokens_[name].inner.end > 0)
      one.name_span = tokens_[name].inner;
    if (tokens_[name].kind == Kind::name) one.name_span = tokens_[name].span;
    one.value_span = value.span;
    one.conditional = conditional();
    one.scope = std::move(scope);
    out_.settings.push_back(std::move(one));
    return out_.settings.size() - 1;
  }

  // os.environ[...] = ...: the finding stands at the statement.
  void set(std::size_t name, const Value& value, bool environ) {
    const std::size_t before_count = out_.settings.size();
    const std::size_t index = add(name, value, environ ? "" : "env");
    if (out_.settings.size() == before_count) return;
    if (environ) events_[function()].push_back({Event::set, line_of(name), index, ""});
  }

  void remove(std::size_t name) { removed_.emplace_back(tokens_[name].text, line_of(name)); }

  static bool names_environment(sv name) { return icontains(name, "env"); }

  // X["NAME"] = value, where X is os.environ or some env.
  void subscript() {
    if (!is_string(at_ + 1) || closing_[at_] != at_ + 2 || at_ == 0 || tokens_[at_ - 1].kind != Kind::name)
      return;
    const sv base = before(1);
    if (!names_environment(base)) return;
    if (is("=", at_ + 3))
      set(at_ + 1, value_or_default(at_ + 1, at_ + 4), base == "environ");
    else
      out_.reads.insert(tokens_[at_ + 1].text);
  }

  // A dict that is an environment: env={...}, os.environ.update({...}), "env_vars": {...}.
  void braces() {
    if (at_ < 2) return;
    const sv front = before(1), name = before(2);
    const bool update = front == "(" && name == "update" && at_ >= 4 && before(4) == "environ";
    const bool merged = front == "|=" && name == "environ";
    const bool assigned = (front == "=" || front == ":") && names_environment(name);
    if (update || merged || assigned) entries(at_ + 1, closing_[at_], update || merged);
  }

  void entries(std::size_t n, std::size_t end, bool environ) {
    for (; n < end && n < tokens_.size(); ++n) {
      if (is_string(n) && is(":", n + 1)) {
        set(n, value_at(n + 2), environ);
      } else if (tokens_[n].kind == Kind::op && closing_[n] < tokens_.size() && closing_[n] > n) {
        n = closing_[n];
      }
    }
  }

  void name(const Token& token) {
    const sv word = token.text;
    const bool call = is("(", at_ + 1);
    if (!call) {
      keyword_setting(word);
      return;
    }
    if (is_one_of(word, {"setdefault", "putenv"}) && is_string(at_ + 2) && is(",", at_ + 3)) {
      if (word == "putenv" || before(2) == "environ") set(at_ + 2, value_at(at_ + 4), true);
    } else if (is_one_of(word, {"pop", "unsetenv"}) && is_string(at_ + 2)) {
      if (word == "unsetenv" || before(2) == "environ") remove(at_ + 2);
    } else if (is_one_of(word, {"get", "getenv"}) && is_string(at_ + 2)) {
      out_.reads.insert(tokens_[at_ + 2].text);
    } else if (word.starts_with("exec") && before(1) == "." && before(2) == "os") {
      out_.replaces_itself = true;
    } else if (word == "sched_setaffinity") {
      affinity();
    } else if (word == "DataLoader") {
      loader();
    } else {
      communication(word);
      program(word);
    }
  }

  // dict(os.environ, NCCL_DEBUG="WARN") and os.environ.update(NCCL_DEBUG="WARN").
  void keyword_setting(sv word) {
    if ((word.starts_with("NCCL_") || word.starts_with("UCX_")) && is("=", at_ + 1) && at_ > 0 &&
        is_one_of(before(1), {"(", ","}))
      set(at_, value_at(at_ + 2), false);
  }

  void communication(sv word) {
    const bool dotted = before(1) == ".";
    const bool dist = dotted && is_one_of(before(2), {"dist", "distributed", "c10d"});
    const auto found = imported_.find(word);
    const bool imported =
        !dotted && found != imported_.end() && found->second.find("distributed") != std::string::npos;
    if (word == "init_process_group") {
      const Call facts = arguments(at_ + 1);
      if (facts.first == "gloo" || facts.first == "mpi") other_backend_ = true;
      events_[function()].push_back({facts.device_id ? Event::connect : Event::init, line_of(at_), 0, ""});
      return;
    }
    static constexpr sv kCollectives[] = {"barrier", "reduce", "gather", "scatter",          "send",
                                          "recv",    "isend",  "irecv",  "batch_isend_irecv"};
    const bool collective = std::ranges::find(kCollectives, word) != std::end(kCollectives) ||
                            word.starts_with("all_reduce") || word.starts_with("all_gather") ||
                            word.starts_with("broadcast") || word.starts_with("reduce_scatter") ||
                            word.starts_with("all_to_all");
    const bool wrapper =
        is_one_of(word, {"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP"});
    if (((dist || imported) && collective) || (wrapper && !is_name("class", at_ - 1)))
      events_[function()].push_back({Event::connect, line_of(at_), 0, ""});
    else if (!dotted || before(2) == "self")
      events_[function()].push_back({Event::call, line_of(at_), 0, std::string(word)});
  }

  struct Call {
    std::string first;
    bool device_id = false;
    std::optional<int> workers;
    bool worker_init = false;
  };

  Call arguments(std::size_t open) const {
    Call out;
    const std::size_t end = std::min(closing_[open], tokens_.size());
    if (is_string(open + 1)) out.first = tokens_[open + 1].text;
    for (std::size_t n = open + 1; n < end; ++n) {
      if (tokens_[n].kind != Kind::name || !is("=", n + 1)) {
        if (tokens_[n].kind == Kind::op && n != open && closing_[n] < end && closing_[n] > n) n = closing_[n];
        continue;
      }
      if (tokens_[n].text == "backend" && is_string(n + 2)) out.first = tokens_[n + 2].text;
      if (tokens_[n].text == "device_id" && !is_name("None", n + 2)) out.device_id = true;
      if (tokens_[n].text == "worker_init_fn" && !is_name("None", n + 2)) out.worker_init = true;
      if (tokens_[n].text == "num_workers" && n + 2 < end && tokens_[n + 2].kind == Kind::number &&
          (n + 3 >= end || is(",", n + 3) || is(")", n + 3)))
        out.workers = parse_int<int>(tokens_[n + 2].text);
    }
    return out;
  }

  void loader() {
    const Call facts = arguments(at_ + 1);
    if (facts.workers)
      out_.loaders.push_back({*facts.workers, facts.worker_init, lines_.place(tokens_[at_].span.begin)});
  }

  std::optional<int> number(std::size_t n) const {
    return n < tokens_.size() && tokens_[n].kind == Kind::number ? parse_int<int>(tokens_[n].text)
                                                                 : std::nullopt;
  }

  // os.sched_setaffinity(0, {0, 1}), (0, [0, 1]), (0, range(4)), (0, set(range(0, 4))).
  void affinity() {
    if (!is(",", at_ + 3) || number(at_ + 2) != 0) return;
    std::size_t n = at_ + 4;
    const Place at = lines_.place(tokens_[at_].span.begin);
    while (is_one_of(n < tokens_.size() ? sv(tokens_[n].text) : sv(), {"set", "list", "frozenset"}) &&
           is("(", n + 1))
      n += 2;
    if (is("{", n) || is("[", n)) {
      int count = 0;
      for (std::size_t m = n + 1; m < closing_[n] && m < tokens_.size(); ++m) {
        if (tokens_[m].kind == Kind::number)
          ++count;
        else if (!is(",", m))
          return;
      }
      out_.masks.push_back({count, at});
    } else if (is_name("range", n) && is("(", n + 1)) {
      const auto first = number(n + 2);
      const auto second = is(",", n + 3) ? number(n + 4) : std::nullopt;
      if (first && second && closing_[n + 1] == n + 5) out_.masks.push_back({*second - *first, at});
      if (first && closing_[n + 1] == n + 3) out_.masks.push_back({*first, at});
    }
  }

  // os.system("..."), subprocess.run([...]) and their relatives.
  void program(sv word) {
    const bool os = before(1) == "." && before(2) == "os" && (word == "system" || iequals(word, "Popen"));
    const bool known = is_one_of(
        word, {"run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput"});
    const auto found = imported_.find(word);
    const bool sub =
        known && ((before(1) == "." && before(2) == "subprocess") ||
                  (before(1) != "." && found != imported_.end() && found->second == "subprocess"));
    const bool bare_os =
        before(1) != "." && word == "system" && found != imported_.end() && found->second == "os";
    if (!os && !sub && !bare_os) return;
    const std::string caller = (os || bare_os ? "os." : "subprocess.") + std::string(word);
    std::size_t n = at_ + 2;
    if (n < tokens_.size() && tokens_[n].kind == Kind::name) {  // a string assigned before
      const auto string = strings_.find(tokens_[n].text);
      const bool alone = is(",", n + 1) || is(")", n + 1);
      if (string != strings_.end() && alone) {
        command_string(string->second, caller);
        return;
      }
    }
    if (is_string(n)) command_string(n, caller);
    if (is("[", n)) command_list(n, caller);
  }

  void command_string(std::size_t n, const std::string& caller) {
    const Token& token = tokens_[n];
    std::string script = token.text;
    const bool formatted = (is(".", n + 1) && is_name("format", n + 2)) || is("%", n + 1);
    if (formatted) placeholders(script);
    Place at = lines_.place(tokens_[at_].span.begin);
    at.column = std::max(1, at.column - 3);  // "os.system", not "system"
    scan_shell_string(script, at, caller, function(), out_);
  }

  // "{}", "{0}", "%d" become "$_": undecided.
  static void placeholders(std::string& script) {
    std::string out;
    for (std::size_t i = 0; i < script.size(); ++i) {
      const auto close = script[i] == '{' ? script.find('}', i) : std::string::npos;
      if (close != std::string::npos && close - i < 32) {
        out += "$_";
        i = close;
      } else if (script[i] == '%' && i + 1 < script.size() &&
                 is_one_of(sv(script).substr(i + 1, 1), {"d", "s", "i", "r"})) {
        out += "$_";
        ++i;
      } else {
        out += script[i];
      }
    }
    script = std::move(out);
  }

  void command_list(std::size_t open, const std::string& caller) {
    Command out;
    out.caller = caller;
    out.function = function();
    out.conditional = conditional();
    out.at = lines_.place(tokens_[at_].span.begin);
    out.pipeline = out_.commands.empty() ? 0 : out_.commands.back().pipeline + 1;
    const std::size_t end = std::min(closing_[open], tokens_.size());
    for (std::size_t n = open + 1; n < end; ++n) {
      const bool alone = is(",", n + 1) || n + 1 == end;
      if (is_string(n) && alone) {
        out.words.push_back(tokens_[n].text);
        out.known.push_back(!tokens_[n].dynamic);
      } else {
        std::size_t m = n;
        while (m < end && !is(",", m)) m = closing_[m] < end && closing_[m] > m ? closing_[m] + 1 : m + 1;
        out.words.push_back(is_name("executable", n + 2) ? "python" : "$_");
        out.known.push_back(is_name("executable", n + 2));
        n = m - 1;
      }
      out.word_spans.push_back({});
      if (is(",", n + 1)) ++n;
    }
    if (!out.words.empty()) out_.commands.push_back(std::move(out));
  }

  struct Walk {
    int init = 0, connect = 0;
  };

  // Follows the program from the module's first line through the functions that it calls, each once.
  void walk(const std::string& function, Walk& state, std::map<std::string, bool>& seen, int depth) {
    if (depth > 64 || seen[function]) return;
    seen[function] = true;
    const auto found = events_.find(function);
    if (found == events_.end()) return;
    for (const auto& event : found->second) {
      if (event.kind == Event::init && state.init == 0) state.init = event.line;
      if (event.kind == Event::connect && state.connect == 0) state.connect = event.line;
      if (event.kind == Event::call && out_.functions.count(event.callee) > 0)
        walk(event.callee, state, seen, depth + 1);
      if (event.kind != Event::set) continue;
      auto& setting = out_.settings[event.setting];
      setting.late = state.connect > 0 ? Late::after_collective
                     : state.init > 0  ? Late::after_init
                                       : Late::no;
      setting.late_line = state.connect > 0 ? state.connect : state.init;
    }
  }

  void mark_late() {
    if (other_backend_) return;
    std::map<std::string, bool> seen;
    Walk state;
    walk("", state, seen, 0);
    for (const auto& [function, events] : events_) {
      if (seen[function]) continue;
      Walk fresh;
      walk(function, fresh, seen, 0);
    }
  }

  // A later assignment or removal in the same function, before anything is started.
  void mark_replaced() {
    std::map<std::string, std::size_t> last;
    for (std::size_t n = 0; n < out_.settings.size(); ++n) {
      auto& one = out_.settings[n];
      if (!one.scope.empty() || one.conditional) continue;
      const auto found = last.find(one.name);
      const bool both_early =
          found != last.end() && one.late == Late::no && out_.settings[found->second].late == Late::no;
      if (both_early) {
        out_.settings[found->second].replaced_at = one.at.line;
        out_.settings[found->second].replaced_by = one.value;
      }
      last[one.name] = n;
    }
    for (const auto& [name, line] : removed_) {
      const auto found = last.find(name);
      if (found != last.end() && out_.settings[found->second].at.line < line) {
        out_.settings[found->second].replaced_at = line;
        out_.settings[found->second].replaced_by = std::nullopt;
      }
    }
  }

  struct Block {
    int indent;
    bool conditional;
    std::string function;
  };

  sv text_;
  LineIndex lines_;
  ConfigText& out_;
  std::vector<Token> tokens_;
  std::vector<std::size_t> closing_;
  std::size_t at_ = 0;
  std::vector<Block> blocks_;
  std::map<std::string, std::vector<Event>, std::less<>> events_;
  std::map<std::string, std::string, std::less<>> imported_;  // name -> module
  std::map<std::string, std::size_t, std::less<>> strings_;   // variable -> token of its string
  std::vector<std::pair<std::string, int>> removed_;
  bool other_backend_ = false;
};

}  // namespace

ConfigText scan_python(sv text) {
  ConfigText out;
  out.kind = ConfigKind::python;
  Reader(text, out).run();
  return out;
}

}  // namespace topotune::parse
