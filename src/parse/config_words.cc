#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/config_shell.h"

namespace topotune::parse {

namespace {

using sv = std::string_view;

// Options of a wrapper that take their value as the next word.
bool takes_value(sv program, sv option) {
  struct Row {
    sv program;
    std::initializer_list<sv> options;
  };
  static const Row kRows[] = {
      {"sudo", {"-u", "-g", "-h", "-p", "-C", "-D", "-r", "-t"}},
      {"env", {"-u", "-C", "-S"}},
      {"numactl",
       {"-N", "-m", "-C", "-i", "-p", "-P", "-w", "--cpunodebind", "--membind", "--physcpubind",
        "--interleave", "--preferred", "--preferred-many", "--weighted-interleave"}},
      {"nice", {"-n"}},
      {"ionice", {"-c", "-n"}},
      {"timeout", {"-s", "-k"}},
      {"stdbuf", {"-i", "-o", "-e"}},
      {"chrt", {"-p"}},
      {"time", {"-f", "-o"}},
      {"exec", {"-a"}},
  };
  for (const auto& row : kRows)
    if (row.program == program) return std::ranges::find(row.options, option) != row.options.end();
  return false;
}

bool is_wrapper(sv program) {
  static constexpr std::array<sv, 15> kWrappers{"sudo",    "env",    "numactl", "taskset", "time",
                                                "nohup",   "exec",   "command", "nice",    "ionice",
                                                "timeout", "stdbuf", "setsid",  "builtin", "chrt"};
  if (program.size() < 3 || program.size() > 7) return false;
  return std::ranges::any_of(kWrappers,
                             [&](sv one) { return one.front() == program.front() && one == program; });
}

bool is_assignment_word(sv word) {
  const auto at = word.find('=');
  return at != sv::npos && is_variable_name(word.substr(0, at));
}

// taskset takes a mask as its first word unless a list was given by option; "-p" works on a pid and wraps
// nothing.
std::size_t behind_taskset(const std::vector<std::string>& words, std::size_t i) {
  bool list = false;
  for (++i; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    const sv word = words[i];
    if (word.starts_with("--cpu-list=")) list = true;
    if (word.starts_with("--")) {
      if (word == "--cpu-list") {
        list = true;
        ++i;
      }
      continue;
    }
    if (word.find('p') != sv::npos) return words.size();
    if (word.ends_with('c')) {
      list = true;
      ++i;
    }
  }
  return list ? i : i + 1;
}

// The first word behind the wrapper at `i`, its options and its own arguments.
std::size_t behind_wrapper(const std::vector<std::string>& words, std::size_t i) {
  const sv program = base_name(words[i]);
  if (program == "taskset") return behind_taskset(words, i);
  for (++i; i < words.size(); ++i) {
    const sv word = words[i];
    if (word == "--") return i + 1;
    if (is_assignment_word(word) && (program == "env" || program == "sudo")) continue;
    if (word.size() < 2 || word[0] != '-') break;
    if (takes_value(program, word)) ++i;
  }
  if (program == "timeout") ++i;  // the duration
  if (program == "chrt" && i < words.size() && std::ranges::all_of(words[i], is_digit)) ++i;
  return i;
}

}  // namespace

sv base_name(sv path) {
  const auto at = path.find_last_of('/');
  return at == sv::npos ? path : path.substr(at + 1);
}

std::size_t program_index(const std::vector<std::string>& words) {
  std::size_t i = 0;
  while (i < words.size() && is_wrapper(base_name(words[i]))) i = behind_wrapper(words, i);
  return std::min(i, words.size());
}

bool is_launch(const Command& command) {
  static constexpr std::array<sv, 26> kLaunchers{
      "torchrun",    "python",     "python3",    "mpirun", "mpiexec", "mpiexec.hydra", "srun",
      "deepspeed",   "accelerate", "horovodrun", "prun",   "orterun", "docker",        "podman",
      "singularity", "apptainer",  "enroot",     "nsys",   "ncu",     "ray",           "kubectl",
      "sbatch",      "flux",       "jsrun",      "aprun",  "vllm"};
  const std::size_t i = program_index(command.words);
  if (i >= command.words.size()) return false;
  const sv word = command.words[i];
  const sv name = base_name(word);
  if (name == "bash" || name == "sh" || name.ends_with("_perf") || word.find('/') != sv::npos) return true;
  if (!command.known[i]) return true;  // exec "$@"
  const auto same = [&](sv one) { return one.size() == name.size() && one == name; };
  return std::ranges::any_of(kLaunchers, same) || name.starts_with("python");
}

}  // namespace topotune::parse
