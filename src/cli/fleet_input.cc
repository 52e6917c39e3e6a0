#include "cli/fleet_input.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "checks/fleet.h"
#include "cli/job.h"
#include "cli/measurement_check.h"
#include "host/capture.h"
#include "model/measurement.h"
#include "parse/measurement.h"

namespace topotune::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = 256 << 10;
constexpr std::size_t kMaxFleet = 100'000;

std::string head_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head;
}

enum class NodeFile { capture, measurement, other };

NodeFile kind_of(const fs::path& path) {
  const auto head = head_of(path);
  if (host::looks_like_capture(head)) return NodeFile::capture;
  return parse::looks_like_measurement(head) ? NodeFile::measurement : NodeFile::other;
}

// "runs/node7.capture" -> "node7": how people name a node's files.
std::string stem_of(const std::string& name) {
  auto stem = fs::path(name).filename().string();
  return stem.substr(0, stem.find('.', 1));
}

Result<std::vector<model::FleetMeasurement>> measurements_in(const std::string& name, std::string_view text) {
  const auto results = parse::parse_measurement(text);
  if (!results) return tl::unexpected(results.error());
  std::vector<model::FleetMeasurement> out;
  for (const auto& one : *results) {
    if (one.status == "failed" || one.status == "waived") continue;
    out.push_back(
        {one.key, one.median, model::larger_is_better(one.unit), one.status == "noisy", one.samples, name});
  }
  return out;
}

// Variables that ranks must agree on, from the node's configuration and logs.
void add_environment(const Job& job, std::vector<model::FleetFact>& facts) {
  const auto environment = environment_of(job);
  if (!environment) return;
  const std::string source = job.configs.empty() ? job.logs.front().first : job.configs.front().name;
  for (auto& fact : checks::fleet_environment(*environment, source)) facts.push_back(std::move(fact));
}

// A file of a node's folder that is a measurement.
void add_measurements(const std::string& file, model::FleetNode& node) {
  if (!is_measurement_file(file)) return;
  const auto text = read_input(file);
  auto found = text ? measurements_in(file, *text) : tl::unexpected(text.error());
  if (found) std::ranges::move(*found, std::back_inserter(node.measurements));
}

std::optional<model::FleetNode> machine_node(const std::string& name, const Globals& globals) {
  auto input = load_input(name, globals);
  if (!input) {
    report(input.error());
    return std::nullopt;
  }
  add_versions(input->machine, globals);
  const auto job = read_job(*input);
  model::FleetNode node;
  node.name = name;
  node.kind = checks::fleet_kind(input->machine);
  node.facts = checks::fleet_facts(input->machine);
  add_environment(job, node.facts);
  node.findings = diagnose(*input, job, globals).findings;
  node.hostname = input->machine.hostname.value.value_or("");
  node.boot_id = input->machine.boot_id.value.value_or("");
  node.shm_device = input->machine.shm_device.value;
  for (const auto& file : input->unrecognised) add_measurements(name + "/" + file, node);
  return node;
}

std::optional<model::FleetNode> measurement_node(const std::string& name) {
  const auto text = read_input(name);
  auto found = text ? measurements_in(name, *text) : tl::unexpected(text.error());
  if (!found) {
    auto error = found.error();
    error.file = name;
    report(error);
    return std::nullopt;
  }
  model::FleetNode node;
  node.name = name;
  node.measurements = std::move(*found);
  if (auto judged = check_measurement(name, nullptr)) node.findings = std::move(judged->findings);
  return node;
}

// Measurements go to the machine of the same stem; the others are nodes of the kind "measured".
void join_measurements(std::vector<model::FleetNode>& nodes, std::vector<model::FleetNode> measured) {
  std::map<std::string, std::size_t> by_stem;
  for (std::size_t i = 0; i < nodes.size(); ++i) by_stem.emplace(stem_of(nodes[i].name), i);
  for (auto& one : measured) {
    const auto at = by_stem.find(stem_of(one.name));
    if (at != by_stem.end()) {
      std::ranges::move(one.measurements, std::back_inserter(nodes[at->second].measurements));
      std::ranges::move(one.findings, std::back_inserter(nodes[at->second].findings));
    } else {
      one.kind = "known by measurements only";
      nodes.push_back(std::move(one));
    }
  }
}

}  // namespace

std::vector<std::string> fleet_of_folder(const std::string& path) {
  std::vector<std::string> files;
  bool any_capture = false;
  std::error_code failed;
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
    const auto name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    std::error_code ignored;
    if (!at->is_regular_file(ignored) || files.size() > kMaxFleet) return {};
    const auto kind = kind_of(at->path());
    if (kind == NodeFile::other) return {};
    any_capture = any_capture || kind == NodeFile::capture;
    files.push_back(at->path().string());
  }
  if (failed || !any_capture) return {};
  std::ranges::sort(files);
  return files;
}

std::vector<model::FleetNode> read_fleet(const std::vector<std::string>& inputs, const Globals& globals,
                                         bool& unreadable) {
  std::vector<model::FleetNode> nodes, measured;
  for (const auto& name : inputs) {
    const bool measurement = is_measurement_file(name);
    auto node = measurement ? measurement_node(name) : machine_node(name, globals);
    if (!node)
      unreadable = true;
    else
      (measurement ? measured : nodes).push_back(std::move(*node));
  }
  join_measurements(nodes, std::move(measured));
  return nodes;
}

}  // namespace topotune::cli
