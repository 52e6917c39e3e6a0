#include "plan/job.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::plan {

namespace {

constexpr std::size_t kMaxJobFile = std::size_t{1} << 20;
constexpr int kMaxCount = 1'000'000;

constexpr std::array<std::pair<const char*, std::optional<int> Job::*>, 10> kCounts{{
    {"gpus", &Job::gpus},
    {"nodes", &Job::nodes},
    {"gpus_per_node", &Job::gpus_per_node},
    {"tensor_parallel", &Job::tensor_parallel},
    {"pipeline_parallel", &Job::pipeline_parallel},
    {"data_parallel", &Job::data_parallel},
    {"expert_parallel", &Job::expert_parallel},
    {"dscp", &Job::dscp},
    {"mtu", &Job::mtu},
    {"workers", &Job::workers},
}};

constexpr std::array<std::string_view, 7> kLaunchers{"mpirun", "srun",      "torchrun", "kubernetes",
                                                     "docker", "deepspeed", "none"};

std::pair<int, int> limits_of(std::string_view key) {
  if (key == "dscp") return {0, 63};
  if (key == "mtu") return {576, 65535};
  if (key == "workers") return {0, 4096};
  return {1, kMaxCount};
}

// "7B", "70e9", "405000000000", "350M".
std::optional<double> parse_amount(std::string_view text) {
  double factor = 1;
  if (!text.empty()) {
    switch (text.back()) {
      case 'K':
      case 'k':
        factor = 1e3;
        break;
      case 'M':
      case 'm':
        factor = 1e6;
        break;
      case 'B':
      case 'b':
      case 'G':
      case 'g':
        factor = 1e9;
        break;
      case 'T':
      case 't':
        factor = 1e12;
        break;
      default:
        break;
    }
  }
  if (factor > 1) text.remove_suffix(1);
  const auto value = parse_double(text);
  if (!value || *value <= 0 || *value * factor > 1e18) return std::nullopt;
  return *value * factor;
}

// "8", "64K", "1G": powers of 1024.
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t shift = 0;
  if (!text.empty()) {
    const auto at =
        std::string_view("KMGT").find(text.back() >= 'a' ? static_cast<char>(text.back() - 32) : text.back());
    if (at != std::string_view::npos) {
      shift = 10 * (at + 1);
      text.remove_suffix(1);
    }
  }
  const auto value = parse_int<std::uint64_t>(text);
  if (!value || *value > (std::uint64_t{1} << 50) >> shift) return std::nullopt;
  return *value << shift;
}

Result<bool> set_messages(Job& job, std::string_view value) {
  const auto dash = value.find('-');
  const auto low = parse_bytes(trim(value.substr(0, dash)));
  const auto high = dash == std::string_view::npos ? low : parse_bytes(trim(value.substr(dash + 1)));
  if (!low || !high)
    return fail(Errc::malformed, "message_bytes: {} is not a size or a range such as 64K-1G", value);
  if (*low > *high) return fail(Errc::malformed, "message_bytes: {} is larger than {}", *low, *high);
  job.message_min = low;
  job.message_max = high;
  return true;
}

Result<bool> set_number(std::optional<double>& to, std::string_view key, std::string_view value,
                        double limit) {
  const auto number = parse_double(value);
  if (!number || *number <= 0 || *number > limit)
    return fail(Errc::malformed, "{}: {} is not a number above 0 and up to {}", key, value, limit);
  to = number;
  return true;
}

Result<bool> set_count(Job& job, std::optional<int> Job::*member, std::string_view key,
                       std::string_view value) {
  const auto [low, high] = limits_of(key);
  const auto number = parse_int<int>(value);
  if (!number || *number < low || *number > high)
    return fail(Errc::malformed, "{}: {} is not a number from {} to {}", key, value, low, high);
  job.*member = number;
  return true;
}

template <class Value, std::size_t N>
Result<bool> set_word(Value& to, std::string_view key, std::string_view value,
                      const std::array<std::pair<std::string_view, Value>, N>& words) {
  std::string list;
  for (const auto& [word, meaning] : words) {
    if (word == value) {
      to = meaning;
      return true;
    }
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  return fail(Errc::malformed, "{}: {} is none of {}", key, value, list);
}

bool is_plain_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_' ||
           c == '.';
  });
}

Result<bool> set_text(std::optional<std::string>& to, std::string_view key, std::string_view value) {
  if (!is_plain_word(value))
    return fail(Errc::malformed, "{}: {} is not one word of letters, digits, - _ and .", key, value);
  to = std::string(value);
  return true;
}

Result<bool> set_launcher(Job& job, std::string_view value) {
  if (std::ranges::find(kLaunchers, value) == kLaunchers.end())
    return fail(Errc::malformed, "launcher: {} is none of {}", value, fmt::join(kLaunchers, ", "));
  job.launcher = std::string(value);
  return true;
}

Result<bool> set_value(Job& job, std::string_view key, std::string_view value) {
  for (const auto& [name, member] : kCounts)
    if (key == name) return set_count(job, member, key, value);
  if (key == "framework") return set_text(job.framework, key, value);
  if (key == "interface") return set_text(job.interface, key, value);
  if (key == "launcher") return set_launcher(job, value);
  if (key == "message_bytes") return set_messages(job, value);
  if (key == "port_gbits") return set_number(job.port_gbits, key, value, 10'000);
  if (key == "cable_m") return set_number(job.cable_m, key, value, 100'000);
  if (key == "rate_limit_gbits") return set_number(job.rate_limit_gbits, key, value, 10'000);
  if (key == "binding")
    return set_word(job.binding, key, value,
                    std::array{std::pair<std::string_view, BindingPolicy>{"node", BindingPolicy::node},
                               std::pair<std::string_view, BindingPolicy>{"share", BindingPolicy::share}});
  if (key == "transport")
    return set_word(job.transport, key, value,
                    std::array{std::pair<std::string_view, Transport>{"nccl", Transport::nccl},
                               std::pair<std::string_view, Transport>{"ucx", Transport::ucx},
                               std::pair<std::string_view, Transport>{"nccl-ucx", Transport::nccl_over_ucx}});
  if (key == "irq")
    return set_word(job.irq_spread, key, value,
                    std::array{std::pair<std::string_view, bool>{"spread", true},
                               std::pair<std::string_view, bool>{"keep", false}});
  if (key == "model_parameters") {
    job.parameters = parse_amount(value);
    if (!job.parameters)
      return fail(Errc::malformed, "model_parameters: {} is not a number such as 7e9 or 70B", value);
    return true;
  }
  auto error = fail(Errc::malformed, "{}: no such key", key);
  error.value().hint = "docs/plan.md lists the keys of a job";
  return error;
}

Result<bool> take_line(Job& job, std::string_view line) {
  line = trim(line.substr(0, line.find('#')));
  if (line.empty()) return true;
  const auto mark = line.find_first_of("=:");
  if (mark == std::string_view::npos) return fail(Errc::malformed, "not a line \"key = value\"");
  return set_job(job, trim(line.substr(0, mark)), trim(line.substr(mark + 1)));
}

Result<Job> parse_lines(std::string_view text) {
  Job job;
  int number = 0;
  for (const auto line : lines(text)) {
    ++number;
    auto taken = take_line(job, line);
    if (!taken) {
      taken.error().line = number;
      return tl::unexpected(taken.error());
    }
  }
  return job;
}

int line_of(std::string_view text, std::size_t byte) {
  return 1 + static_cast<int>(std::ranges::count(text.substr(0, std::min(byte, text.size())), '\n'));
}

Result<Job> parse_object(std::string_view text) {
  nlohmann::ordered_json json;
  try {
    json = nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return fail_at(line_of(text, error.byte), "not JSON");
  }
  Job job;
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string() && !value.is_number())
      return fail(Errc::malformed, "{}: not a text or a number", printable(key));
    const auto taken = set_job(job, key, value.is_string() ? value.get<std::string>() : value.dump());
    if (!taken) return tl::unexpected(taken.error());
  }
  return job;
}

std::optional<Error> product_error(const Job& job) {
  if (job.gpus && job.nodes && job.gpus_per_node &&
      *job.gpus != static_cast<long long>(*job.nodes) * *job.gpus_per_node)
    return fail(Errc::malformed, "gpus = {}, but nodes x gpus_per_node = {} x {} = {}", *job.gpus, *job.nodes,
                *job.gpus_per_node, static_cast<long long>(*job.nodes) * *job.gpus_per_node)
        .value();
  if (job.gpus && job.nodes && *job.gpus < *job.nodes)
    return fail(Errc::malformed, "gpus = {} on nodes = {}: some nodes would have none", *job.gpus, *job.nodes)
        .value();
  if (job.gpus && job.nodes && !job.gpus_per_node && *job.gpus % *job.nodes != 0)
    return fail(Errc::malformed, "gpus = {} cannot be spread evenly over nodes = {}", *job.gpus, *job.nodes)
        .value();
  return std::nullopt;
}

std::optional<int> total_gpus(const Job& job) {
  if (job.gpus) return job.gpus;
  if (job.gpus_per_node) {
    const long long all = static_cast<long long>(job.nodes.value_or(1)) * *job.gpus_per_node;
    if (all <= kMaxCount) return static_cast<int>(all);
  }
  return std::nullopt;
}

std::optional<Error> parallelism_error(const Job& job) {
  const auto gpus = total_gpus(job);
  if (!gpus) return std::nullopt;
  const long long model =
      static_cast<long long>(job.tensor_parallel.value_or(1)) * job.pipeline_parallel.value_or(1);
  if (*gpus % model != 0)
    return fail(Errc::malformed,
                "tensor_parallel x pipeline_parallel = {} x {} = {} does not divide gpus = {}",
                job.tensor_parallel.value_or(1), job.pipeline_parallel.value_or(1), model, *gpus)
        .value();
  if (job.data_parallel && model * *job.data_parallel != *gpus)
    return fail(Errc::malformed, "tensor x pipeline x data parallel = {} x {} x {} = {}, but gpus = {}",
                job.tensor_parallel.value_or(1), job.pipeline_parallel.value_or(1), *job.data_parallel,
                model * *job.data_parallel, *gpus)
        .value();
  if (job.expert_parallel && *gpus % *job.expert_parallel != 0)
    return fail(Errc::malformed, "expert_parallel = {} does not divide gpus = {}", *job.expert_parallel,
                *gpus)
        .value();
  return std::nullopt;
}

}  // namespace

Result<bool> set_job(Job& job, std::string_view key, std::string_view value) {
  const std::string name = printable(key);
  if (std::ranges::any_of(job.said, [&](const auto& one) { return one.first == name; }))
    return fail(Errc::malformed, "{}: given twice", name);
  auto set = set_value(job, name, printable(value));
  if (set) job.said.emplace_back(name, printable(value));
  return set;
}

Result<Job> parse_job(std::string_view text) {
  if (text.size() > kMaxJobFile) return fail(Errc::too_large, "larger than {} KiB", kMaxJobFile >> 10);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return fail(Errc::malformed, "an empty job file");
  return text[first] == '{' ? parse_object(text) : parse_lines(text);
}

Result<bool> validate_job(const Job& job, std::optional<int> machine_gpus) {
  if (const auto error = product_error(job)) return tl::unexpected(*error);
  if (const auto error = parallelism_error(job)) return tl::unexpected(*error);
  const auto ranks = ranks_per_node(job);
  if (ranks && machine_gpus && *ranks > *machine_gpus)
    return fail(Errc::malformed, "{} ranks on a node that has {} GPU{}", *ranks, *machine_gpus,
                *machine_gpus == 1 ? "" : "s");
  return true;
}

std::optional<int> ranks_per_node(const Job& job) {
  if (job.gpus_per_node) return job.gpus_per_node;
  if (job.gpus) return *job.gpus / job.nodes.value_or(1);
  return std::nullopt;
}

bool multi_node(const Job& job) { return job.nodes.value_or(1) > 1; }

}  // namespace topotune::plan
