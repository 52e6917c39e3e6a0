#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lint/lint.h"
#include "lint/registry.h"

namespace topotune::lint {

// torchrun, python -m torch.distributed.launch, accelerate, deepspeed in one command.
struct Launcher {
  std::size_t at = 0;        // index of the launcher's word
  std::string name;          // "torchrun", "torch.distributed.launch", ...
  std::optional<int> ranks;  // processes of one node
  std::optional<int> nodes;
  std::string port, script;
  std::vector<std::string> script_arguments;
  bool standalone = false;
};
std::optional<Launcher> launcher_of(const parse::Command& command);

// What a text tells about the job that it starts.
struct Job {
  std::optional<int> nodes, ranks_per_node, cpus_per_task;
  bool starts_training = false;  // a launcher, or Python that makes a process group
  bool mpi = false;              // mpirun and its relatives start something that is no NCCL launcher
  bool uses_ucx = false;         // NVSHMEM, UCXX, Dask, ucx_perftest
  bool benchmark = false;        // nccl-tests and other measurements
  bool gpu_application = false;
};

// One input with what several rules need of it.
class Context {
 public:
  Context(const Input& in, std::size_t index, const Options& o, Report& report);

  // Settings in force, those of nccl.conf among them; `last` is the one that holds, or null.
  const std::vector<const parse::Setting*>& settings() const { return settings_; }
  const parse::Setting* last(std::string_view name) const;
  bool has(std::string_view name, std::string_view value) const;

  // A finding at a place of the input. Severity, title, impact, remedy and reference come from the catalogue.
  Found& add(std::string_view rule, parse::Place at, std::string subject, std::string expected,
             std::string observed);
  Found& add(std::string_view rule, const parse::Setting& setting, std::string expected);
  Found& add(std::string_view rule, const parse::Command& command, std::string expected);

  // The comment on the line and the block of comments right above it.
  std::string comments_at(int line) const;
  std::string_view line_text(int line) const;  // without its end
  // The whole text names one of the words (in any case).
  bool mentions(std::initializer_list<std::string_view> words) const;
  // Everything that says what a command's output is meant to be: comments above, the pipeline, targets of
  // redirects.
  std::string label_of(const parse::Command& command) const;
  // A comment beside it names a reason: more than a word, or a ticket.
  bool has_reason(const parse::Setting& setting) const;
  // AMD's library reads the variables: the same names, other defaults.
  bool rccl() const;
  // The run has to give the same bits each time: an algorithm that is fixed for that is no fault.
  bool reproducible() const;
  // The texts choose another network than NCCL's own RDMA (EFA, TCPX, FasTrak, another plugin).
  bool other_network() const;
  std::vector<const parse::Command*> pipeline_of(const parse::Command& command) const;

  // Edits for --fix; nothing is added where the place is not plain text of the input.
  // drop: of a finding that is an error; what may be there for a reason is reported and stays.
  void drop(Found& found, const parse::Setting& setting) const;
  void drop_idle(Found& found, const parse::Setting& setting) const;  // the line is proven to do nothing
  void set_value(Found& found, const parse::Setting& setting, std::string value) const;
  void rename(Found& found, const parse::Setting& setting, std::string name) const;
  void replace_word(Found& found, const parse::Command& command, std::size_t word, std::string text) const;

  const Input& input;
  const Options& options;
  std::optional<Version> nccl;  // from the options, else from NCCL_VERSION in the text
  Job job;
  int suggestions =
      200;  // near names are looked for so many times: a dump of thousands of unknown names stays fast

 private:
  std::string source(int line) const;
  // The value stands in the text as an expansion: an edit would take away what a user may set.
  bool computed(const parse::Setting& setting) const;

  std::size_t index_;
  Report& report_;
  parse::LineIndex lines_;
  std::vector<parse::Setting> of_conf_;
  std::vector<const parse::Setting*> settings_;
  mutable std::optional<bool> reproducible_, rccl_;
  std::map<std::string, const parse::Setting*, std::less<>> last_;
  std::map<int, std::string> comments_;  // by line
  std::map<int, bool> own_line_;
  mutable std::map<std::string, bool, std::less<>> mentioned_;
};

bool newer(const std::optional<Version>& version, Version limit);  // known and at least `limit`
bool older(const std::optional<Version>& version, Version limit);  // known and below `limit`

// The word at `index` that is a program of that name and is run, directly or by srun, ssh, docker ...;
// words.size() if there is none. `echo name` and `which name` run nothing.
std::size_t tool_index(const parse::Command& command, std::string_view name);
// "--option=value", "--option value"; "" when it is not there.
std::string option_value(const parse::Command& command, std::initializer_list<std::string_view> names);
bool has_word(const parse::Command& command, std::string_view word);
bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list);
std::string joined(const parse::Command& command);

// topotune's tuner plugin is named, by itself or through topotune's environment plugin, with a table.
bool uses_tuning_table(const Context& context);

// The rules, a file a family.
void check_nccl_names(Context& context);
void check_nccl_values(Context& context);
void check_nccl_network(Context& context);
void check_topotune(Context& context);
void check_ucx(Context& context);
void check_binding(Context& context);
void check_commands(Context& context);
void check_tools(Context& context);
void check_kernel_files(Context& context);
void check_packages(Context& context);
void check_containers(Context& context);
// A variable in two inputs of one run.
void check_places(std::vector<Context>& contexts);
// topotune's plugin in one input, its table in none.
void check_tables(std::vector<Context>& contexts);

}  // namespace topotune::lint
