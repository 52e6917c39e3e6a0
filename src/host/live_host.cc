#include "host/live_host.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.h"
#include "host/child.h"
#include "host/command.h"
#include "host/encoding.h"
#include "host/files.h"
#include "host/probes.h"

namespace topotune::host {

namespace {

// Programs that open every GPU, NIC or configuration space they find.
constexpr std::array kAsksAllDevices{"nvidia-smi", "rocm-smi",    "amd-smi",      "lspci",   "ibstat",
                                     "ibstatus",   "ibv_devinfo", "ibdev2netdev", "mlxlink", "ethtool"};

std::string root_of(std::string root) {
  while (root.ends_with('/')) root.pop_back();
  return root;
}

bool names_excluded(std::string_view path, const std::set<std::string>& excluded) {
  return std::ranges::any_of(split(path, '/'),
                             [&](std::string_view part) { return excluded.contains(to_lower(part)); });
}

Error excluded_error(std::string_view path) {
  return {Errc::denied, fmt::format("{}: excluded (TOPOTUNE_EXCLUDE)", path), {}, {}, {}, {}};
}

std::string join(const std::set<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

}  // namespace

LiveHost::LiveHost(std::string root) : LiveHost(LiveOptions{}) {
  auto options = live_options_from_environment(root_of(std::move(root)));
  if (options) {
    options_ = std::move(*options);
  } else {
    misconfigured_ = options.error();
  }
}

LiveHost::LiveHost(LiveOptions options) : options_(std::move(options)), reader_(options_.read_limit) {
  options_.root = root_of(std::move(options_.root));
}

// Why `path` is not asked at all.
std::optional<Error> LiveHost::refusal(std::string_view path) const {
  if (misconfigured_) return misconfigured_;
  if (!path.starts_with('/'))
    return Error{Errc::usage, fmt::format("{}: not an absolute path", path), {}, {}, {}, {}};
  if (path.find('\0') != std::string_view::npos)
    return Error{Errc::usage, "a path with a NUL byte", {}, {}, {}, {}};
  if (names_excluded(path, options_.excluded)) return excluded_error(path);
  return std::nullopt;
}

Answer LiveHost::file(Call call, std::string_view path) const {
  if (auto error = refusal(path)) return tl::unexpected(std::move(*error));
  std::string target(path);
  if (!options_.root.empty() || !options_.excluded.empty()) {
    const auto resolved = resolve(options_.root, path, call == Call::link);
    if (!resolved) return resolved;
    if (names_excluded(resolved->substr(options_.root.size()), options_.excluded))
      return tl::unexpected(excluded_error(path));
    target = *resolved;
  }
  const bool safe = !options_.root.empty() || path.starts_with("/proc/self/");
  return safe ? answer_here(call, target, path) : reader_.ask(call, target);
}

Result<std::string> LiveHost::read(std::string_view path) const { return file(Call::read, path); }

Result<std::vector<std::string>> LiveHost::list(std::string_view path) const {
  return file(Call::list, path).map([](const std::string& text) { return split_names(text); });
}

Result<std::string> LiveHost::link(std::string_view path) const { return file(Call::link, path); }

Result<std::string> LiveHost::run(std::span<const std::string> argv) const {
  if (misconfigured_) return tl::unexpected(*misconfigured_);
  if (argv.empty()) return fail(Errc::usage, "no program named");
  if (!options_.root.empty())
    return fail(Errc::unsupported, "{}: a recorded machine runs no programs", argv.front());
  const auto program = argv.front().substr(argv.front().find_last_of('/') + 1);
  if (!options_.excluded.empty() && std::ranges::find(kAsksAllDevices, program) != kAsksAllDevices.end()) {
    return tl::unexpected(excluded_error(argv.front()));
  }
  return run_command(argv, options_.probe_limit);
}

Result<std::string> LiveHost::probe(std::string_view name) const {
  if (misconfigured_) return tl::unexpected(*misconfigured_);
  const auto ask = [&] {
    if (!options_.excluded.empty()) ::setenv("TOPOTUNE_EXCLUDE", join(options_.excluded).c_str(), 1);
    return run_probe(name, options_.root);
  };
  return in_child(ask, options_.probe_limit, name);
}

}  // namespace topotune::host
