#pragma once

#include <optional>

#include "host/host.h"
#include "host/options.h"
#include "host/reader.h"

namespace topotune::host {

// This machine, or a folder that stands for "/" of one (a recorded sysfs tree): there, symbolic links lead
// nowhere outside the folder and `run` is unsupported. Safe to use from several threads.
//
// - Files of this machine are read through a child process with LiveOptions::read_limit, except those of this
// process
//   ("/proc/self/..."); probes run in a child process each. A driver that hangs or a library that crashes
//   gives an error for that entry.
// - Nothing at or below an excluded device is opened: denied. Programs that ask every device are then denied
// too, and
//   probes see the exclusions through excluded_devices().
class LiveHost final : public Host {
 public:
  // With the options of the environment; where those are not understood, every answer is that error.
  explicit LiveHost(std::string root = "");
  explicit LiveHost(LiveOptions options);

  Result<std::string> read(std::string_view path) const override;
  Result<std::vector<std::string>> list(std::string_view path) const override;
  Result<std::string> link(std::string_view path) const override;
  Result<std::string> run(std::span<const std::string> argv) const override;
  Result<std::string> probe(std::string_view name) const override;

 private:
  Answer file(Call call, std::string_view path) const;
  std::optional<Error> refusal(std::string_view path) const;

  std::optional<Error> misconfigured_;
  LiveOptions options_;
  mutable Reader reader_;
};

}  // namespace topotune::host
