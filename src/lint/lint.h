#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/version.h"
#include "model/finding.h"
#include "parse/config.h"

namespace topotune::lint {

// What is known beside the texts. Versions: nothing is "unknown", and then only what holds in all versions is
// said.
struct Options {
  std::optional<Version> nccl, ucx, driver;
  // Names that the installed libnccl reads; nothing: no library, the table decides.
  std::optional<std::set<std::string, std::less<>>> library_names;
  // Of the machine that the texts are for (--env, --pid). Nothing: the texts may be for another machine.
  std::optional<std::vector<std::string>> rdma_devices, interfaces;
  std::function<bool(const std::string&)> file_exists;  // empty: files of another machine
  // What a machine and a job that are at hand decide (plan, run). Nothing: not known.
  std::optional<int> nodes;
  std::optional<bool> peers;  // GPUs reach each other by NVLink, xGMI or P2P below a switch; false: none can
  std::optional<bool> rails;  // it has active RDMA rails
  bool amd = false;           // its GPUs are AMD's: RCCL reads the variables
  std::optional<bool> needs_flush;  // a GPU before Hopper; false: all are newer and no C2C machine's
};

// A text inside a document.
struct Block {
  parse::ConfigText facts;
  std::string_view text;
  int line = 1;  // of its first line in the document
};

// One text to judge. `text` must outlive the report.
struct Input {
  std::string name;
  parse::ConfigKind kind = parse::ConfigKind::env;
  std::string_view text;
  parse::ConfigText facts;
  std::vector<Block> blocks;  // of a document: each is judged alone
  int first_line = 1;         // of `text` in the file
};

// Recognises and reads a text. Nothing: it is binary. `kind` overrides recognition.
std::optional<Input> read_input(std::string name, std::string_view text,
                                std::optional<parse::ConfigKind> kind = {});

// Replaces the bytes of `span` by `text`; spans of one input do not overlap after sorting out duplicates.
struct Edit {
  parse::Span span;
  std::string text;
};

struct Found {
  model::Finding finding;
  std::vector<Edit> edits;  // what --fix does about it; empty: it needs a person
  std::size_t input = 0;
};

struct Report {
  std::vector<Found> found;  // by input, line, column, rule
  std::vector<std::string> checked;
  std::vector<model::NotChecked> not_checked;

  model::Diagnosis diagnosis() const;
  model::Diagnosis take_diagnosis();  // moves the findings out of `found`
};

Report judge(std::span<const Input> inputs, const Options& options);

}  // namespace topotune::lint
