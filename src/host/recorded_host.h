#pragma once

#include "host/capture.h"
#include "host/host.h"

namespace topotune::host {

// A machine as it was when it was captured. What nobody asked then is `not_captured`.
class RecordedHost final : public Host {
 public:
  explicit RecordedHost(Capture capture) : capture_(std::move(capture)) {}

  Result<std::string> read(std::string_view path) const override;
  Result<std::vector<std::string>> list(std::string_view path) const override;
  Result<std::string> link(std::string_view path) const override;
  Result<std::string> run(std::span<const std::string> argv) const override;
  Result<std::string> probe(std::string_view name) const override;

  const Capture& capture() const { return capture_; }

 private:
  Answer answer(Call call, std::string name) const;

  Capture capture_;
};

}  // namespace topotune::host
