#include "cli/report_file.h"

#include <sys/stat.h>

#include "cli/atomic_file.h"
#include "measure/runner.h"

namespace topotune::cli {

namespace {

// Devices, pipes and links are written into as they are.
bool can_be_replaced(const std::string& file) {
  if (file.empty()) return false;
  struct stat status {};
  return ::lstat(file.c_str(), &status) != 0 || S_ISREG(status.st_mode);
}

}  // namespace

ReportFile::ReportFile(const Globals& globals, const std::string& suffix) : globals_(globals) {
  if (!globals_.output.empty()) globals_.output += suffix;
  replaced_ = can_be_replaced(globals_.output);
}

void ReportFile::keep(const std::function<std::string()>& text) {
  const double start = measure::monotonic_seconds();
  if (!replaced_ || start < next_) return;
  static_cast<void>(replace_file(globals_.output, text()));
  const double end = measure::monotonic_seconds();
  next_ = end + 10 * (end - start);
}

int ReportFile::write(const std::string& text) {
  if (!replaced_) return write_result(globals_, text);
  const auto done = replace_file(globals_.output, text);
  if (done) return kOk;
  // A folder that takes no new file may hold one that can be written.
  return done.error().code == Errc::unsupported ? write_result(globals_, text) : report(done.error());
}

}  // namespace topotune::cli
