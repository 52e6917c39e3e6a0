#include "parse/fabric_manager_log.h"

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "Fabric Manager version 535.54.03 is running with …", "Fabric Manager version is : 535.54.03"
std::optional<std::string> version_of(std::string_view line) {
  const auto rest = after(line, "Fabric Manager version");
  if (!rest) return std::nullopt;
  for (auto word : words(rest->substr(0, 100))) {
    if (!word.empty() && is_digit(word.front()) && has(word, ".")) return std::string(word);
  }
  return std::nullopt;
}

// "Active: active (running) since …", "Active: failed (Result: exit-code)"; "could not be found"
std::optional<std::string> state_of(std::string_view line) {
  if (has(line, "nvidia-fabricmanager.service could not be found")) return "not installed";
  if (!line.starts_with("Active: ")) return std::nullopt;
  const auto all = words(line.substr(8));
  for (const std::string_view state : {"active", "inactive", "failed", "activating", "deactivating"}) {
    if (!all.empty() && all[0] == state) return std::string(state);
  }
  return std::nullopt;
}

std::optional<FabricManagerError> error_of(std::string_view line) {
  FabricManagerError out;
  out.sxid = has(line, "SXid") ||
             (has(line, "NVSwitch") && (has(line, "fatal error") || has(line, "non-fatal error")));
  if (!out.sxid && !has(line, "[ERROR]") && !has(line, "[CRITICAL]")) return std::nullopt;
  out.text = std::string(line.substr(0, 1000));
  for (const std::string_view name : {"fatal error ", "(SXid) ", "SXid "}) {
    const auto rest = after(line, name);
    if (!out.code && rest) out.code = parse_int<int>(leading_digits(trim(*rest)));
  }
  return out;
}

// "[Feb 25 2025 13:59:45] [INFO] [tid 1803] …"
bool is_log_line(std::string_view line) {
  return line.starts_with("[") && has(line.substr(0, 60), "] [tid ");
}

}  // namespace

bool looks_like_fabric_manager(std::string_view text) {
  return has(text, "Fabric Manager version") || has(text, "nvidia-fabricmanager.service") ||
         has(text, "NV_WARN_NOTHING_TO_DO") || has(text, "fabricmanager.cfg") || is_log_line(text);
}

Result<FabricManager> parse_fabric_manager(std::string_view text) {
  FabricManager out;
  bool any_line = false;
  bool service = false;  // below the heading of this service: systemctl prints several in a row
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    any_line |= is_log_line(line);
    if (has(line, ".service")) service = has(line, "nvidia-fabricmanager.service");
    if (auto version = version_of(line)) {
      out.version = std::move(version);
      out.version_line = reader.number();
      out.errors.clear();  // a new start of the service
      out.nothing_to_do = out.configured = false;
    }
    auto state = service ? state_of(line) : std::nullopt;
    if (state) {
      out.state = std::move(state);
      out.state_line = reader.number();
    }
    if (has(line, "Successfully configured all the available")) out.configured = true;
    if (has(line, "NV_WARN_NOTHING_TO_DO")) {
      out.nothing_to_do = true;
      out.nothing_to_do_line = reader.number();
    }
    auto error = error_of(line);
    if (!error) continue;
    if (out.errors.size() >= kMaxRecords) return too_many("errors", reader.number());
    error->line = reader.number();
    out.errors.push_back(std::move(*error));
  }
  if (!out.version && !out.state && !out.nothing_to_do && out.errors.empty() && !out.configured && !any_line)
    return not_a("a fabric manager log");
  return out;
}

}  // namespace topotune::parse
