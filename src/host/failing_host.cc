#include "host/failing_host.h"

#include "host/encoding.h"
#include "host/pattern.h"

namespace topotune::host {

std::optional<Error> FailingHost::failure(std::string_view name) const {
  const std::size_t number = ++accesses_;
  const bool nth = failure_.every != 0 && number % failure_.every == 0;
  if (!nth && (failure_.matching.empty() || !matches(failure_.matching, name))) return std::nullopt;
  return Error{failure_.code, fmt::format("{}: injected failure", name), {}, {}, {}, {}};
}

Result<std::string> FailingHost::read(std::string_view path) const {
  if (auto error = failure(path)) return tl::unexpected(std::move(*error));
  return inner_.read(path);
}

Result<std::vector<std::string>> FailingHost::list(std::string_view path) const {
  if (auto error = failure(path)) return tl::unexpected(std::move(*error));
  return inner_.list(path);
}

Result<std::string> FailingHost::link(std::string_view path) const {
  if (auto error = failure(path)) return tl::unexpected(std::move(*error));
  return inner_.link(path);
}

Result<std::string> FailingHost::run(std::span<const std::string> argv) const {
  if (auto error = failure(command_name(argv))) return tl::unexpected(std::move(*error));
  return inner_.run(argv);
}

Result<std::string> FailingHost::probe(std::string_view name) const {
  if (auto error = failure(name)) return tl::unexpected(std::move(*error));
  return inner_.probe(name);
}

}  // namespace topotune::host
