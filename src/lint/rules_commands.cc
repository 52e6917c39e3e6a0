// Launchers, RDMA tools, profilers, benchmarks.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "lint/context.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using parse::Command;
using sv = std::string_view;

bool any_icontains(sv text, std::initializer_list<sv> words) {
  return std::ranges::any_of(words, [&](sv word) { return icontains(text, word); });
}

std::size_t find_tool(const Command& command, std::initializer_list<sv> names) {
  for (const sv name : names)
    if (const std::size_t at = tool_index(command, name); at < command.words.size()) return at;
  return command.words.size();
}

// --- CMD04
// -----------------------------------------------------------------------------------------------------

void old_launcher(Context& context, const Command& command) {
  const auto launcher = launcher_of(command);
  if (!launcher || launcher->name != "torch.distributed.launch") return;
  Found& found = context.add("CMD04", command, "torchrun");
  found.finding.subject = "torch.distributed.launch";
}

// --- CMD05
// -----------------------------------------------------------------------------------------------------

bool is_ip_address(sv word) {
  const auto parts = split(word, '.');
  if (parts.size() == 4)
    return std::ranges::all_of(parts, [](sv part) { return parse_int<int>(part).value_or(256) < 256; });
  return std::ranges::count(word, ':') >= 3 && word.find_first_not_of("0123456789abcdefABCDEF:") == sv::npos;
}

void wrong_rdma_tool(Context& context, const Command& command) {
  const auto& words = command.words;
  const std::size_t at = find_tool(
      command, {"iblinkinfo", "ibping", "ibstat", "ibswitches", "ibdiagnet", "perfquery", "ibqueryerrors"});
  if (at >= words.size()) return;
  const sv tool = parse::base_name(words[at]);
  const std::string label = context.label_of(command);
  const bool ethernet =
      context.mentions({"roce"}) && !context.mentions({"infiniband fabric", "link layer infiniband"});
  std::string title, remedy;
  if (tool == "ibping" &&
      std::ranges::any_of(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end(),
                          [](const auto& word) { return is_ip_address(word); })) {
    title = "ibping takes a LID or a port GUID, no IP address";
    remedy = "RoCE: rping -c -a ADDRESS; InfiniBand: ibping -S on the peer, ibping -G PORT_GUID here";
  } else if (tool == "ibstat" &&
             any_icontains(label, {"gid", "mtu", "xmit", "rcv", "counter", "data", "error"}) &&
             context.pipeline_of(command).size() > 1) {
    title = "ibstat prints no GID, no MTU and no counters";
    remedy =
        "GID: show_gids; MTU: ibv_devinfo; counters: perfquery -x, rdma statistic, "
        "/sys/class/infiniband/*/ports/*/counters";
  } else if (tool == "ibstat" && has_word(command, "-v")) {
    title = "ibstat has no option -v and prints no GID";
    remedy = "GID: show_gids, or ibv_devinfo -v";
  } else if (tool == "ibswitches" && any_icontains(label, {"buffer"})) {
    title = "ibswitches lists switches, not buffers";
    remedy = "lack of credit shows as port_xmit_wait: perfquery -x";
  } else if (tool == "iblinkinfo" && has_word(command, "-p") &&
             (ethernet || any_icontains(label, {"error", "symbol", "down"}))) {
    title = "iblinkinfo -p prints port settings, no errors";
    remedy = "errors: perfquery -x, ibqueryerrors; RoCE: rdma statistic, ethtool -S";
  } else if (ethernet && is_one_of(tool, {"iblinkinfo", "ibdiagnet", "perfquery", "ibping", "ibswitches",
                                          "ibqueryerrors"})) {
    title = fmt::format("{} needs InfiniBand: Ethernet carries no management datagrams", tool);
    remedy = "RoCE: rdma statistic, ethtool -S, rping";
  } else {
    return;
  }
  Found& found = context.add("CMD05", command, "a tool that can answer");
  found.finding.subject = tool;
  found.finding.title = title;
  found.finding.remedy = remedy;
}

// --- CMD06
// -----------------------------------------------------------------------------------------------------

bool is_trace_domain(sv word) {
  return is_one_of(word, {"cuda",
                          "nvtx",
                          "osrt",
                          "cublas",
                          "cublas-verbose",
                          "cusparse",
                          "cusparse-verbose",
                          "cudnn",
                          "cusolver",
                          "cusolver-verbose",
                          "opengl",
                          "opengl-annotations",
                          "vulkan",
                          "vulkan-annotations",
                          "mpi",
                          "ucx",
                          "openacc",
                          "openmp",
                          "none",
                          "cudla",
                          "cudla-verbose",
                          "nvvideo",
                          "nvmedia",
                          "oshmem",
                          "syscall",
                          "python-gil",
                          "gds",
                          "openxr",
                          "openxr-annotations",
                          "cuda-hw",
                          "cuda-sw",
                          "dx11",
                          "dx12",
                          "wddm",
                          "tegra-accelerators",
                          "dx11-annotations",
                          "dx12-annotations",
                          "hip",
                          "nccl"});
}

void profiler(Context& context, const Command& command) {
  const std::size_t at = tool_index(command, "nsys");
  if (at >= command.words.size()) return;
  std::string what, right;
  std::size_t word = 0;
  std::string fixed;
  for (std::size_t n = at + 1; n < command.words.size(); ++n) {
    sv name = command.words[n], value;
    std::size_t value_word = n;
    if (const auto equals = name.find('='); equals != sv::npos && name.starts_with("--")) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    } else if (n + 1 < command.words.size()) {
      value = command.words[n + 1];
      value_word = n + 1;
    }
    if (!command.words[n].starts_with('-')) {
      if (!is_one_of(name, {"profile", "start", "launch", "stats"}) && !command.words[n - 1].starts_with('-'))
        break;
      continue;
    }
    const bool own = value_word == n;
    if (is_one_of(name, {"-c", "--capture-range"}) && command.known[value_word] &&
        !is_one_of(value, {"none", "cudaProfilerApi", "hotkey", "nvtx"})) {
      what = fmt::format("{}{}--capture-range={}", what, what.empty() ? "" : ", ", value);
      right = "--capture-range=cudaProfilerApi";
      word = value_word;
      fixed = own ? right : "cudaProfilerApi";
    }
    if (is_one_of(name, {"-t", "--trace"}) && command.known[value_word])
      for (const sv domain : split(value, ','))
        if (!is_trace_domain(domain)) {
          what = fmt::format("{}{}trace domain {}", what, what.empty() ? "" : ", ", domain);
          if (right.empty()) right = "-t cuda,nvtx,osrt";
        }
    if (is_one_of(name, {"-d", "--duration"}) && !value.empty() && is_digit(value[0]) &&
        !parse_double(value)) {
      what = fmt::format("{}{}--duration={}", what, what.empty() ? "" : ", ", value);
      if (right.empty()) right = "--duration as a plain number of seconds";
    }
  }
  if (what.empty()) return;
  Found& found = context.add("CMD06", command, right);
  found.finding.title = fmt::format("nsys does not know: {}", printable(what).substr(0, 120));
  found.finding.remedy = right;
  if (word > 0) context.replace_word(found, command, word, fixed);
}

// --- BENCH01, BENCH02
// ------------------------------------------------------------------------------------------

constexpr sv kCollectiveTests[] = {
    "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "reduce_perf",
    "alltoall_perf",   "sendrecv_perf",   "gather_perf",         "scatter_perf",   "hypercube_perf"};

bool is_collective_test(sv name) {
  return name.ends_with("_perf") && std::ranges::find(kCollectiveTests, name) != std::end(kCollectiveTests);
}

std::optional<int> count_of(const Command& command, std::initializer_list<sv> names) {
  const std::string value = option_value(command, names);
  if (value.empty()) return 1;
  return parse_int<int>(value);
}

// Tests inside the strings that launchers start: srun ... bash -c "all_reduce_perf ...". How many run, the
// launcher's own words tell.
std::set<sv> launched_tests(const Context& context) {
  std::set<sv> out;
  for (const auto& command : context.input.facts.commands) {
    const std::size_t at = parse::program_index(command.words);
    if (at >= command.words.size()) continue;
    const sv program = parse::base_name(command.words[at]);
    if (!program.starts_with("mpi") &&
        !is_one_of(program, {"srun", "prun", "orterun", "ssh", "pdsh", "clush", "docker", "podman", "kubectl",
                             "singularity", "apptainer", "enroot"}))
      continue;
    for (const auto& word : command.words)
      if (word.find_first_of(" \n") != std::string::npos && word.find("_perf") != std::string::npos)
        for (const sv test : kCollectiveTests)
          if (word.find(test) != std::string::npos) out.insert(test);
  }
  return out;
}

void one_rank(Context& context, const Command& command, const std::set<sv>& launched) {
  std::size_t at = parse::program_index(command.words);
  if (at >= command.words.size()) return;
  for (std::size_t n = 0; n < at; ++n)  // if command -v all_reduce_perf
    if (is_one_of(command.words[n], {"command", "type", "hash", "which"})) return;
  const sv program = parse::base_name(command.words[at]);
  if (is_one_of(program, {"echo", "printf", "grep", "which", "type", "hash",  "command", "ls",
                          "cp",   "mv",     "rm",   "ln",    "scp",  "rsync", "tar",     "stat",
                          "file", "make",   "find", "test",  "[",    "[[",    "chmod"}))
    return;
  while (at < command.words.size() && !is_collective_test(parse::base_name(command.words[at]))) ++at;
  if (at >= command.words.size()) return;
  if (has_word(command, "--help") || has_word(command, "-h") || has_word(command, "--version")) return;
  Command own = command;
  own.words.erase(own.words.begin(), own.words.begin() + static_cast<std::ptrdiff_t>(at));
  const auto gpus = count_of(own, {"-g", "--ngpus"}), threads = count_of(own, {"-t", "--nthreads"});
  std::optional<int> processes = 1;
  if (is_collective_test(program) && launched.count(program) > 0) return;
  if (program == "srun" || program.starts_with("mpi") || program == "prun") {
    const std::string value = option_value(command, {"-n", "-np", "--np", "--ntasks"});
    processes = parse_int<int>(value);
    if (value.empty() && program == "srun" && context.job.ranks_per_node &&
        *context.job.ranks_per_node * context.job.nodes.value_or(1) > 1)
      return;
  } else if (program != parse::base_name(command.words[at])) {
    processes = std::nullopt;  // some other starter: how many, the text does not tell
  }
  if (!gpus || !threads || !processes || *gpus * *threads * *processes != 1) return;
  Found& found = context.add("BENCH01", command, "-g with the number of GPUs, or one process a GPU");
  found.finding.subject = parse::base_name(command.words[at]);
}

bool one_size_measured(const Context& context) {
  for (const auto& command : context.input.facts.commands) {
    const bool test = std::ranges::any_of(
        command.words, [](const auto& word) { return is_collective_test(parse::base_name(word)); });
    if (!test) continue;
    const std::string first = option_value(command, {"-b", "--minbytes"}),
                      last = option_value(command, {"-e", "--maxbytes"});
    if (first.empty() || first != last) return false;
    return true;
  }
  return false;
}

void average_as_peak(Context& context, const Command& command) {
  const std::size_t at = parse::program_index(command.words);
  if (at >= command.words.size() ||
      !is_one_of(parse::base_name(command.words[at]), {"grep", "egrep", "awk", "gawk", "sed", "rg"}))
    return;
  const bool average = std::ranges::any_of(
      command.words, [](const auto& word) { return icontains(word, "Avg bus bandwidth"); });
  if (!average || one_size_measured(context)) return;
  Found& found = context.add("BENCH02", command, "busbw of the largest size");
  found.finding.subject = "Avg bus bandwidth";
}

}  // namespace

void check_commands(Context& context) {
  const std::set<sv> launched = launched_tests(context);
  for (const auto& command : context.input.facts.commands) {
    if (command.words.empty()) continue;
    old_launcher(context, command);
    wrong_rdma_tool(context, command);
    profiler(context, command);
    one_rank(context, command, launched);
    average_as_peak(context, command);
  }
}

}  // namespace topotune::lint
