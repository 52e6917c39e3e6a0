#include "cli/record.h"

#include <sys/stat.h>

#include <array>
#include <ctime>

#include "discover/discover.h"
#include "host/live_host.h"
#include "host/recording_host.h"

namespace topotune::cli {

namespace {

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> out{};
  std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return out.data();
}

Result<bool> check_sysroot(const std::string& folder) {
  struct stat status {};
  if (folder.empty() || (::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode))) return true;
  return fail(Errc::not_found, "--sysroot {}: not a folder", folder);
}

}  // namespace

Result<host::Capture> record(const Globals& globals) {
  if (auto good = check_sysroot(globals.sysroot); !good) return tl::unexpected(good.error());
  auto options = host::live_options_from_environment(globals.sysroot);
  if (!options) return tl::unexpected(options.error());
  const host::LiveHost live(std::move(*options));
  const host::RecordingHost recording(live);
  discover::discover(recording);
  auto capture = recording.capture();
  capture.tool = std::string("topotune ") + TOPOTUNE_VERSION;
  if (globals.sysroot.empty()) capture.date = now_utc();
  return capture;
}

}  // namespace topotune::cli
