#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parse/config.h"

namespace topotune::parse::shell {

// A word as the scanner reads it.
struct Word {
  std::string text;
  std::vector<std::string> fields;  // an unquoted variable or an array: the words it becomes
  Span span;
  std::size_t assignment = 0;   // length of "NAME=" (or "NAME+=") in `text`; 0: no assignment
  std::size_t value_begin = 0;  // offset of the value in the source
  bool known = true, quoted = false, is_array = false, by_default = false;
};

struct Variable {
  std::string text;
  std::vector<std::string> array;
  bool known = true;
  int block = 0;
};

// What happens to variables, in the order of the text.
struct Event {
  enum Kind { set, unset, launch } kind;
  std::size_t setting = 0;  // set: index into settings
  std::string name;
  int block = 0;
  int line = 0;
};

// One simple command before it is taken apart.
struct Simple {
  std::vector<Word> words;
  std::vector<Redirect> redirects;
  std::size_t begin = 0;
  bool in_pipeline = false, background = false;
  int block = 0;
  int loop = -1;
  std::string function;
};

// Shared by all levels of one text.
struct State {
  State(std::string_view t, const LineIndex& l, ConfigText& o) : text(t), lines(l), out(o) {}

  Place place(std::size_t offset) const { return lines.place(offset); }
  void diagnose(std::size_t offset, std::string what);
  void unbalanced(std::size_t offset, char quote);

  int new_block(int parent, bool conditional);
  bool inside(int block, int ancestor) const;
  bool conditional(int block) const;

  const Variable* value_of(std::string_view name, int block) const;
  void remember(const std::string& name, Variable value);
  void forget(const std::string& name);
  void finish();  // finds what is replaced before a program starts

  std::string_view text;
  const LineIndex& lines;
  ConfigText& out;
  bool all_exported = false;  // plain assignments reach programs
  bool line_limited = false;  // quotes end with their line: second reading of a text with an odd quote
  bool saw_unbalanced = false;
  int open_documents = 0;  // here-documents without an end so far
  int pipeline = 0;
  int string_depth = 0;  // bash -c inside bash -c
  std::size_t string_bytes = 0;

  struct Block {
    int parent;
    bool conditional;
  };
  std::vector<Block> blocks;
  std::vector<Event> events;
  std::map<std::string, Variable, std::less<>> variables;
  std::map<std::string, Setting, std::less<>>
      unexported;                                    // assignments that a later `export NAME` may publish
  std::map<std::string, int, std::less<>> exported;  // names that are exported already
};

void scan(State& state, std::size_t begin, std::size_t end, int depth);

// "--nodes=4", "-N 4": the text behind #SBATCH.
void directive(State& state, std::string_view text, Place at);
// "-l select=2:ngpus=4", "-v NAME=VALUE": the text behind #PBS.
void pbs_directive(State& state, std::string_view text, Place at);
// Variables that an arithmetic expression reads.
void note_reads(State& state, std::string_view text);
// Takes a simple command apart into settings, events and a Command. Returns the command's index, or -1.
int add_command(State& state, Simple simple, int depth);
// What becomes of a here-document that feeds the command at `index`: a script, a configuration file, or
// nothing. `own`: a text of its own, that shares nothing with this one.
struct Use {
  ConfigKind kind;
  bool own = false;
};
std::optional<Use> use_of_here_document(const std::vector<Command>& commands, std::size_t index);

}  // namespace topotune::parse::shell
