#pragma once

#include <atomic>
#include <string>

#include "host/capture.h"
#include "host/host.h"

namespace topotune::host {

// Which accesses fail, and how. Both conditions may be set; either one is enough.
struct Failure {
  std::size_t every = 0;  // the n-th, 2n-th, ... access; 0: none
  std::string matching;   // accesses whose name matches this pattern (pattern.h); "": none
  Errc code = Errc::io;
};

// A machine on which some accesses fail: whatever reads it must return the rest, and never crash.
class FailingHost final : public Host {
 public:
  FailingHost(const Host& inner, Failure failure) : inner_(inner), failure_(std::move(failure)) {}

  Result<std::string> read(std::string_view path) const override;
  Result<std::vector<std::string>> list(std::string_view path) const override;
  Result<std::string> link(std::string_view path) const override;
  Result<std::string> run(std::span<const std::string> argv) const override;
  Result<std::string> probe(std::string_view name) const override;

  std::size_t accesses() const { return accesses_; }

 private:
  std::optional<Error> failure(std::string_view name) const;

  const Host& inner_;
  Failure failure_;
  mutable std::atomic<std::size_t> accesses_ = 0;
};

}  // namespace topotune::host
