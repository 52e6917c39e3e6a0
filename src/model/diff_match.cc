#include "model/diff_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace topotune::model {

namespace {

// A device as matching sees it. Keys are compared step by step; an empty one matches nothing.
struct Candidate {
  std::string id;
  std::array<std::string, 3> keys;  // address, name, number
  std::string label, short_name;
};

using Candidates = std::vector<Candidate>;

std::string joined(const std::string& id, const std::optional<std::string>& extra) {
  return extra && !extra->empty() ? id + " " + *extra : id;
}

Candidates gpus_of(const Topology& topology) {
  Candidates out;
  for (const auto& gpu : topology.gpus) {
    out.push_back({gpu.id, {gpu.bdf.value_or(""), gpu.id, ""}, joined(gpu.id, gpu.bdf), gpu.id});
  }
  return out;
}

Candidates nics_of(const Topology& topology) {
  Candidates out;
  for (const auto& nic : topology.nics) {
    const auto name = nic.name.value_or("");
    const auto port = nic.port ? fmt::format("/{}", *nic.port) : "";
    const auto address = nic.bdf ? *nic.bdf + port : "";
    const auto label = name.empty() ? nic.id : name + (nic.port.value_or(1) > 1 ? port : "");
    out.push_back(
        {nic.id, {address, name.empty() ? "" : name + port, nic.id}, joined(label, nic.bdf), label});
  }
  return out;
}

Candidates ports_of(const Machine& machine) {
  Candidates out;
  for (const auto& port : machine.ports) {
    const auto label = fmt::format("{} port {}", port.device, port.port);
    const auto address = port.bdf ? fmt::format("{}/{}", *port.bdf, port.port) : "";
    out.push_back({port_key(port), {address, port_key(port), ""}, label, label});
  }
  return out;
}

// Indices of `after` by one key; keys that stand there twice match nothing.
std::map<std::string, std::size_t> index_by(const Candidates& devices, std::size_t step,
                                            const std::set<std::size_t>& used) {
  std::map<std::string, std::size_t> out;
  std::set<std::string> twice;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto& key = devices[i].keys[step];
    if (used.contains(i) || key.empty()) continue;
    if (!out.emplace(key, i).second) twice.insert(key);
  }
  for (const auto& key : twice) out.erase(key);
  return out;
}

struct Side {
  std::map<std::string, std::string>& labels;
  std::map<std::string, std::string>* short_names;
  std::set<std::string>* alone;

  void name(const Candidate& device, const Candidate& as) const {
    labels[device.id] = as.label;
    if (short_names != nullptr) (*short_names)[device.id] = as.short_name;
  }
  void name_alone(const Candidate& device) const {
    name(device, device);
    if (alone != nullptr) alone->insert(device.id);
  }
};

// Which device of `after` is which of `before`, by index.
std::map<std::size_t, std::size_t> pairs_of(const Candidates& before, const Candidates& after) {
  std::map<std::size_t, std::size_t> out;
  std::set<std::size_t> done, used;
  for (std::size_t step = 0; step < 3; ++step) {
    const auto there = index_by(after, step, used), here = index_by(before, step, done);
    for (const auto& [key, i] : here) {
      const auto found = there.find(key);
      if (found == there.end()) continue;
      out[found->second] = i;
      done.insert(i);
      used.insert(found->second);
    }
  }
  return out;
}

// A new device may have the number of a device that is gone.
std::string fresh(std::string name, std::set<std::string>& taken) {
  while (taken.contains(name)) name += " (new)";
  taken.insert(name);
  return name;
}

void match(const Candidates& before, const Candidates& after, const Side& left, const Side& right) {
  const auto pairs = pairs_of(before, after);
  std::set<std::size_t> done;
  for (const auto& [there, here] : pairs) done.insert(here);
  std::set<std::string> labels, short_names;
  for (std::size_t i = 0; i < before.size(); ++i) {
    labels.insert(before[i].label);
    short_names.insert(before[i].short_name);
    done.contains(i) ? left.name(before[i], before[i]) : left.name_alone(before[i]);
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto found = pairs.find(i);
    if (found != pairs.end()) {
      right.name(after[i], before[found->second]);
      continue;
    }
    Candidate device = after[i];
    device.label = fresh(device.label, labels);
    device.short_name = fresh(device.short_name, short_names);
    right.name_alone(device);
  }
}

}  // namespace

std::string port_key(const RdmaPort& port) { return fmt::format("{}/{}", port.device, port.port); }

LabelPair match_devices(const Machine& before, const Machine& after) {
  LabelPair out;
  const Side left{out.before.devices, &out.before.short_names, &out.before.alone};
  const Side right{out.after.devices, &out.after.short_names, &out.after.alone};
  match(gpus_of(before.topology), gpus_of(after.topology), left, right);
  match(nics_of(before.topology), nics_of(after.topology), left, right);
  match(ports_of(before), ports_of(after), {out.before.ports, nullptr, nullptr},
        {out.after.ports, nullptr, nullptr});
  return out;
}

}  // namespace topotune::model
