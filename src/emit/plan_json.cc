#include "emit/plan_json.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace topotune::emit {

namespace {

using Json = nlohmann::ordered_json;

Json text(const std::optional<std::string>& value) { return value ? Json(printable(*value)) : Json(nullptr); }
// Unknown is null, never "".
Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(printable(value)); }

Json words(const std::vector<std::string>& command) {
  Json out = Json::array();
  for (const auto& word : command) out.push_back(printable(word));
  return out;
}

Json of(const model::Action& action) {
  return {{"id", printable(action.id)},
          {"kind", name_of(action.kind)},
          {"target", printable(action.target)},
          {"value", text(action.value)},
          {"observed", text(action.observed)},
          {"where", text(action.where)},
          {"command", words(action.command)},
          {"reason", text(action.reason)},
          {"rule", text(action.rule)},
          {"source", text(action.source)},
          {"precondition", text(action.precondition)},
          {"read_back", text(action.read_back)},
          {"undo", text(action.undo)},
          {"scope", name_of(action.scope)},
          {"risk", name_of(action.risk)},
          {"basis", name_of(action.basis)},
          {"automatic", action.automatic}};
}

Json cpus(const CpuSet& set) { return set.empty() ? Json(nullptr) : Json(set.to_list()); }

Json of(const model::Binding& binding) {
  return {{"gpu", binding.gpu},
          {"bdf", text(binding.bdf)},
          {"cpus", cpus(binding.cpus)},
          {"memory_node", binding.memory_node ? Json(*binding.memory_node) : Json(nullptr)},
          {"nics", binding.nics},
          {"nic_names", words(binding.nic_names)},
          {"share", cpus(binding.share)},
          {"workers", binding.workers},
          {"why", text(binding.why)}};
}

}  // namespace

std::string plan_json(const model::Plan& plan) {
  Json out;
  out["schema"] = "topotune.plan/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["source"] = {{"kind", name_of(plan.source.kind)}, {"name", printable(plan.source.name)}};
  out["job"] = Json::object();
  for (const auto& [key, value] : plan.job) out["job"][key] = printable(value);
  out["nccl_version"] = text(plan.nccl_version);
  out["ucx_version"] = text(plan.ucx_version);
  out["actions"] = Json::array();
  for (const auto& action : plan.actions) out["actions"].push_back(of(action));
  out["bindings"] = Json::array();
  for (const auto& binding : plan.bindings) out["bindings"].push_back(of(binding));
  out["notes"] = words(plan.notes);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topotune::emit
