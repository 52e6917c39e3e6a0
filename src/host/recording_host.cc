#include "host/recording_host.h"

#include <algorithm>

#include "host/encoding.h"

namespace topotune::host {

Answer RecordingHost::ask(Question question, const std::function<Answer()>& inner) const {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = answers_.find(question); found != answers_.end()) return found->second;
  }
  Answer answer = inner();  // without the lock: it may take seconds
  const std::scoped_lock lock(mutex_);
  return answers_.emplace(std::move(question), std::move(answer)).first->second;
}

Result<std::string> RecordingHost::read(std::string_view path) const {
  return ask({Call::read, std::string(path)}, [&] { return inner_.read(path); });
}

Result<std::vector<std::string>> RecordingHost::list(std::string_view path) const {
  const auto names = ask({Call::list, std::string(path)}, [&] { return inner_.list(path).map(join_names); });
  return names.map([](const std::string& text) { return split_names(text); });
}

Result<std::string> RecordingHost::link(std::string_view path) const {
  return ask({Call::link, std::string(path)}, [&] { return inner_.link(path); });
}

Result<std::string> RecordingHost::run(std::span<const std::string> argv) const {
  return ask({Call::run, command_name(argv)}, [&] { return inner_.run(argv); });
}

Result<std::string> RecordingHost::probe(std::string_view name) const {
  return ask({Call::probe, std::string(name)}, [&] { return inner_.probe(name); });
}

Capture RecordingHost::capture() const {
  Capture out;
  const std::scoped_lock lock(mutex_);
  std::ranges::copy_if(answers_, std::inserter(out.answers, out.answers.end()), [](const auto& entry) {
    return entry.second || entry.second.error().code != Errc::not_captured;
  });
  return out;
}

}  // namespace topotune::host
