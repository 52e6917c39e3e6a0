#include "base/result.h"

namespace topotune {

const char* name_of(Errc code) {
  switch (code) {
    case Errc::not_found: return "not_found";
    case Errc::denied: return "denied";
    case Errc::unsupported: return "unsupported";
    case Errc::not_captured: return "not_captured";
    case Errc::malformed: return "malformed";
    case Errc::timed_out: return "timed_out";
    case Errc::too_large: return "too_large";
    case Errc::io: return "io";
    case Errc::usage: return "usage";
    case Errc::unrecognised: return "unrecognised";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string where;
  if (file) where += *file + ":";
  if (line) where += fmt::format("{}:", *line);
  if (column) where += fmt::format("{}:", *column);
  return where.empty() ? text : where + " " + text;
}

}  // namespace topotune
