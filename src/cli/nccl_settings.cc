#include "cli/nccl_settings.h"

#include <fstream>
#include <map>
#include <memory>

#include "base/result.h"

namespace topotune::cli {

namespace {

using Settings = std::map<std::string, NcclSetting>;

// As NCCL reads it: nothing is trimmed, the first line of a name holds.
void read_conf(const std::string& file, Settings& out) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    out.try_emplace(line.substr(0, equals), NcclSetting{line.substr(equals + 1), file});
  }
}

}  // namespace

std::string NcclSetting::text(const std::string& name) const {
  return fmt::format("{}={}{}", name, value, file.empty() ? "" : " (" + file + ")");
}

std::function<std::optional<NcclSetting>(const std::string& name)> nccl_settings(
    launch::Environment environment) {
  const auto conf = std::make_shared<Settings>();
  const auto own = environment("NCCL_CONF_FILE").value_or(""), home = environment("HOME").value_or("");
  if (const auto user = own.empty() ? home + "/.nccl.conf" : own; user != "/.nccl.conf")
    read_conf(user, *conf);
  read_conf("/etc/nccl.conf", *conf);
  return [conf, environment = std::move(environment)](const std::string& name) -> std::optional<NcclSetting> {
    std::optional<NcclSetting> out;
    if (const auto value = environment(name))
      out = NcclSetting{*value, ""};
    else if (const auto at = conf->find(name); at != conf->end())
      out = at->second;
    return out && !out->value.empty() ? out : std::nullopt;
  };
}

}  // namespace topotune::cli
