#include "host/recorded_host.h"

#include "host/encoding.h"

namespace topotune::host {

Answer RecordedHost::answer(Call call, std::string name) const {
  const auto found = capture_.answers.find({call, std::move(name)});
  if (found != capture_.answers.end()) return found->second;
  return fail(Errc::not_captured, "not captured");
}

Result<std::string> RecordedHost::read(std::string_view path) const {
  return answer(Call::read, std::string(path));
}

Result<std::vector<std::string>> RecordedHost::list(std::string_view path) const {
  return answer(Call::list, std::string(path)).map([](const std::string& text) { return split_names(text); });
}

Result<std::string> RecordedHost::link(std::string_view path) const {
  return answer(Call::link, std::string(path));
}

Result<std::string> RecordedHost::run(std::span<const std::string> argv) const {
  return answer(Call::run, command_name(argv));
}

Result<std::string> RecordedHost::probe(std::string_view name) const {
  return answer(Call::probe, std::string(name));
}

}  // namespace topotune::host
