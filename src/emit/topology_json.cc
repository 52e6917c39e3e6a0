#include "emit/topology_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/paths.h"

namespace topotune::emit {

using json = nlohmann::ordered_json;

namespace {

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}
json or_null(const std::optional<CpuSet>& cpus) { return cpus ? json(cpus->to_list()) : json(nullptr); }

// Three decimals: 18 x 20.6 is 370.8.
json rounded(double value) {
  return std::isfinite(value) ? json(std::round(value * 1000) / 1000) : json(nullptr);
}
json or_null(const std::optional<GBytesPerSec>& rate) { return rate ? rounded(rate->value) : json(nullptr); }
json or_null(const std::optional<GbitsPerSec>& rate) { return rate ? rounded(rate->value) : json(nullptr); }

json pci_id(const std::optional<std::uint16_t>& vendor, const std::optional<std::uint16_t>& device) {
  return vendor && device ? json(fmt::format("{:04x}:{:04x}", *vendor, *device)) : json(nullptr);
}

json warning_json(const model::Warning& warning) {
  return {{"code", warning.code}, {"text", warning.text}, {"line", or_null(warning.line)}};
}

json numa_json(const model::NumaNode& node) {
  json distances = json::object();
  for (const auto& [to, distance] : node.distances) distances[std::to_string(to)] = distance;
  if (node.distances.empty()) distances = nullptr;
  return {{"id", node.id},
          {"cpus", or_null(node.cpus)},
          {"memory_bytes", or_null(node.memory_bytes)},
          {"distances", distances}};
}

json c2c_json(const std::optional<model::C2cLink>& c2c) {
  if (!c2c) return nullptr;
  return {{"links", c2c->count},
          {"gbytes_per_s", c2c->per_link ? rounded(c2c->per_link->value * c2c->count) : json(nullptr)}};
}

json gpu_json(const model::Gpu& gpu) {
  return {{"id", gpu.id},
          {"index", gpu.index},
          {"bdf", or_null(gpu.bdf)},
          {"name", or_null(gpu.name)},
          {"uuid", or_null(gpu.uuid)},
          {"pci_id", pci_id(gpu.pci_vendor, gpu.pci_device)},
          {"sm", or_null(gpu.sm)},
          {"numa", or_null(gpu.numa)},
          {"cpus", or_null(gpu.cpus)},
          {"nvlinks", or_null(gpu.nvlinks)},
          {"c2c", c2c_json(gpu.c2c)},
          {"gdr", or_null(gpu.gdr)}};
}

json nic_json(const model::Nic& nic) {
  return {{"id", nic.id},
          {"index", nic.index},
          {"name", or_null(nic.name)},
          {"bdf", or_null(nic.bdf)},
          {"numa", or_null(nic.numa)},
          {"port", or_null(nic.port)},
          {"link_layer", or_null(nic.link_layer)},
          {"gbits_per_s", or_null(nic.rate)},
          {"gdr", or_null(nic.gdr)},
          {"virtual", nic.is_virtual}};
}

json path_json(const model::Path& path) {
  json out{{"a", path.a},
           {"b", path.b},
           {"type", path.type ? json(name_of(*path.type)) : json(nullptr)},
           {"nvlinks", or_null(path.nvlinks)},
           {"gbytes_per_s", or_null(path.bandwidth)}};
  if (!path.why.empty()) out["why"] = path.why;
  if (path.nccl_type) out["nccl_type"] = *path.nccl_type;
  return out;
}

template <class T, class F>
json list(const std::vector<T>& all, F one) {
  json out = json::array();
  for (const auto& element : all) out.push_back(one(element));
  return out;
}

}  // namespace

std::string topology_json(const model::Topology& topology) {
  const auto paths = model::paths_of(topology);
  const auto limit = model::paths_limit(topology);
  const auto shape = model::shape_of(topology, paths);
  auto warnings = topology.warnings;
  if (limit) warnings.push_back(*limit);
  json out{{"schema", "topotune.topology/1"}, {"tool", "topotune " TOPOTUNE_VERSION}};
  out["source"] = {{"kind", name_of(topology.source.kind)},
                   {"name", topology.source.name},
                   {"complete", topology.source.complete && !limit}};
  out["warnings"] = list(warnings, warning_json);
  out["numa"] = list(topology.numa, numa_json);
  out["packages"] = list(topology.packages, [](const model::Package& one) {
    return json{{"id", one.id}, {"cpus", one.cpus.to_list()}};
  });
  out["gpus"] = list(topology.gpus, gpu_json);
  out["nics"] = list(topology.nics, nic_json);
  out["switches"] = list(topology.switches, [](const model::PciSwitch& one) {
    return json{{"id", one.id}, {"bdf", one.bdf.empty() ? json(nullptr) : json(one.bdf)}, {"kind", one.kind}};
  });
  out["paths"] = list(paths, path_json);
  out["islands"] = model::islands_of(topology, paths);
  out["pairs"] = list(model::pairs_of(topology, paths), [](const model::GpuNics& one) {
    return json{{"gpu", one.gpu}, {"nics", one.nics}, {"type", name_of(one.type)}};
  });
  out["shape"] = {{"name", shape.name}, {"why", shape.why}};
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
