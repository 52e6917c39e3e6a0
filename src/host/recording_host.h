#pragma once

#include <functional>
#include <mutex>

#include "host/capture.h"
#include "host/host.h"

namespace topotune::host {

// Passes every question on and keeps the answer. A question asked twice gets the first answer again, so that
// whoever asks during the recording sees exactly what the recording will say. Safe to use from several
// threads.
class RecordingHost final : public Host {
 public:
  explicit RecordingHost(const Host& inner) : inner_(inner) {}

  Result<std::string> read(std::string_view path) const override;
  Result<std::vector<std::string>> list(std::string_view path) const override;
  Result<std::string> link(std::string_view path) const override;
  Result<std::string> run(std::span<const std::string> argv) const override;
  Result<std::string> probe(std::string_view name) const override;

  // What was answered so far; `not_captured` of an inner recording is left out.
  Capture capture() const;

 private:
  Answer ask(Question question, const std::function<Answer()>& inner) const;

  const Host& inner_;
  mutable std::mutex mutex_;
  mutable std::map<Question, Answer> answers_;
};

}  // namespace topotune::host
