#pragma once

#include <string_view>

#include "parse/config.h"

namespace topotune::parse {

// Reads the bytes [begin, end) of `text` as shell (POSIX, bash, csh's setenv) and adds what they say to
// `out`. `all_exported`: plain assignments count as settings (a file that is sourced under `set -a`, an env
// file).
void scan_shell_range(std::string_view text, const LineIndex& lines, Span range, bool all_exported,
                      ConfigText& out);

// `text` is a command line from elsewhere (bash -c, os.system, ExecStart); everything is placed at `at`,
// following line ends of its own. `caller` as in Command.
void scan_shell_string(std::string_view text, Place at, std::string_view caller, std::string_view function,
                       ConfigText& out);

// The program's base name behind wrappers (sudo, env, numactl, taskset, srun, time, nohup, exec ...), and
// where it stands among the words; words.size() when there is none.
std::size_t program_index(const std::vector<std::string>& words);
// Without folder: "/usr/bin/python3" is "python3".
std::string_view base_name(std::string_view path);
// Starts the program that the variables are for (torchrun, mpirun, python, ./train, *_perf).
bool is_launch(const Command& command);

}  // namespace topotune::parse
