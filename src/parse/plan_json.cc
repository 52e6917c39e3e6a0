#include "parse/plan_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "parse/document.h"

namespace topotune::parse {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPlan = std::size_t{64} << 20;
constexpr std::size_t kMaxActions = 100'000;
constexpr int kMaxDepth = 32;

// Reads the fields of one object; the first thing that is wrong is kept.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  std::optional<std::string> text(const char* name, bool needed = true) {
    const auto at = json_.find(name);
    if (at == json_.end()) {
      if (needed) wrong(name, "missing");
      return std::nullopt;
    }
    if (at->is_null()) return std::nullopt;
    if (at->is_string()) return at->get<std::string>();
    wrong(name, "not a text");
    return std::nullopt;
  }
  std::string word(const char* name) {
    const auto out = text(name);
    if (!out && error_.empty()) wrong(name, "not a text");
    return out.value_or("");
  }
  std::vector<std::string> list(const char* name) {
    std::vector<std::string> out;
    const auto at = json_.find(name);
    if (at == json_.end() || at->is_null()) return out;
    if (!at->is_array())
      wrong(name, "not a list");
    else
      for (const auto& one : *at) {
        if (one.is_string())
          out.push_back(one.get<std::string>());
        else
          wrong(name, "not a list of texts");
      }
    return out;
  }
  std::optional<CpuSet> cpus(const char* name) {
    const auto said = text(name, false);
    if (!said) return std::nullopt;
    auto out = parse_cpu_list(*said);
    if (!out) wrong(name, "not a CPU list");
    return out;
  }
  template <class T>
  T known(const char* name, std::optional<T> (*from)(std::string_view)) {
    const auto said = word(name);
    const auto out = from(said);
    if (!out && error_.empty()) wrong(name, "not one of its words");
    return out.value_or(T{});
  }
  std::optional<int> number(const char* name) {
    const auto at = json_.find(name);
    if (at == json_.end() || at->is_null()) return std::nullopt;
    if (at->is_number_integer() && at->get<long long>() >= 0 && at->get<long long>() < 1'000'000)
      return at->get<int>();
    wrong(name, "not a number from 0");
    return std::nullopt;
  }
  bool flag(const char* name) {
    const auto at = json_.find(name);
    if (at != json_.end() && at->is_boolean()) return at->get<bool>();
    wrong(name, "not true or false");
    return false;
  }
  const std::string& error() const { return error_; }

 private:
  void wrong(const char* name, const char* what) {
    if (error_.empty()) error_ = fmt::format("{}{}: {}", where_, name, what);
  }

  const Json& json_;
  std::string where_, error_;
};

Result<model::Action> action_of(const Json& json, const std::string& where) {
  if (!json.is_object()) return fail(Errc::malformed, "{}: not an object", where);
  Fields fields(json, where + ".");
  model::Action out;
  out.id = fields.word("id");
  out.kind = fields.known("kind", model::action_kind_from);
  out.target = fields.word("target");
  out.value = fields.text("value");
  out.observed = fields.text("observed", false);
  out.where = fields.text("where", false);
  out.command = fields.list("command");
  out.reason = fields.text("reason").value_or("");
  out.rule = fields.text("rule").value_or("");
  out.source = fields.text("source", false).value_or("");
  out.precondition = fields.text("precondition").value_or("");
  out.read_back = fields.text("read_back").value_or("");
  out.undo = fields.text("undo").value_or("");
  out.scope = fields.known("scope", model::action_scope_from);
  out.risk = fields.known("risk", model::action_risk_from);
  out.basis = fields.known("basis", model::action_basis_from);
  out.automatic = fields.flag("automatic");
  if (!fields.error().empty()) return fail(Errc::malformed, "{}", fields.error());
  return out;
}

Result<model::Binding> binding_of(const Json& json, const std::string& where) {
  if (!json.is_object()) return fail(Errc::malformed, "{}: not an object", where);
  Fields fields(json, where + ".");
  model::Binding out;
  out.gpu = fields.word("gpu");
  out.bdf = fields.text("bdf", false);
  out.cpus = fields.cpus("cpus").value_or(CpuSet{});
  out.memory_node = fields.number("memory_node");
  out.nics = fields.list("nics");
  out.nic_names = fields.list("nic_names");
  out.share = fields.cpus("share").value_or(CpuSet{});
  out.workers = fields.number("workers").value_or(0);
  out.why = fields.text("why", false).value_or("");
  if (!fields.error().empty()) return fail(Errc::malformed, "{}", fields.error());
  return out;
}

template <class T>
Result<bool> read_list(const Json& json, const char* name, std::vector<T>& to,
                       Result<T> (*read)(const Json&, const std::string&)) {
  const auto at = json.find(name);
  if (at == json.end() || !at->is_array()) return fail(Errc::malformed, "{}: not a list", name);
  if (at->size() > kMaxActions) return fail(Errc::too_large, "{}: more than {}", name, kMaxActions);
  for (std::size_t i = 0; i < at->size(); ++i) {
    auto one = read((*at)[i], fmt::format("{}[{}]", name, i));
    if (!one) return tl::unexpected(one.error());
    to.push_back(std::move(*one));
  }
  return true;
}

Result<model::SourceKind> kind_of(const std::string& word) {
  for (int i = 0; i <= static_cast<int>(model::SourceKind::text); ++i)
    if (word == name_of(static_cast<model::SourceKind>(i))) return static_cast<model::SourceKind>(i);
  return fail(Errc::malformed, "source.kind: not one of its words");
}

Result<Json> parse(std::string_view text) {
  if (text.size() > kMaxPlan) return fail(Errc::too_large, "larger than {} MiB", kMaxPlan >> 20);
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  auto json = Json::parse(text, shallow, false);
  if (json.is_discarded()) return fail(Errc::malformed, "not JSON");
  if (!json.is_object() || json.value("schema", Json()) != Json("topotune.plan/1"))
    return fail(Errc::unrecognised, "not a topotune.plan/1 document");
  return json;
}

}  // namespace

bool looks_like_plan_json(std::string_view text) {
  return looks_like_document(text, "\"topotune.plan/");
}

Result<model::Plan> parse_plan_json(std::string_view text) {
  const auto json = parse(text);
  if (!json) return tl::unexpected(json.error());
  model::Plan out;
  const auto source = json->find("source");
  if (source == json->end() || !source->is_object()) return fail(Errc::malformed, "source: missing");
  Fields fields(*source, "source.");
  const auto kind = kind_of(fields.word("kind"));
  if (!kind) return tl::unexpected(kind.error());
  out.source = {*kind, fields.word("name"), true};
  if (!fields.error().empty()) return fail(Errc::malformed, "{}", fields.error());
  Fields top(*json, "");
  out.nccl_version = top.text("nccl_version", false).value_or("");
  out.ucx_version = top.text("ucx_version", false).value_or("");
  out.notes = top.list("notes");
  if (const auto job = json->find("job"); job != json->end() && job->is_object())
    for (const auto& [key, value] : job->items())
      if (value.is_string()) out.job.emplace_back(key, value.get<std::string>());
  if (auto read = read_list(*json, "actions", out.actions, action_of); !read)
    return tl::unexpected(read.error());
  if (auto read = read_list(*json, "bindings", out.bindings, binding_of); !read)
    return tl::unexpected(read.error());
  if (!top.error().empty()) return fail(Errc::malformed, "{}", top.error());
  return out;
}

}  // namespace topotune::parse
