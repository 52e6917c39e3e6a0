#pragma once

#include <chrono>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::host {

// How LiveHost behaves. The only environment variables that this folder reads are those named here.
struct LiveOptions {
  std::string root;  // "": this machine; else the folder that stands for "/"
  // PCI functions that must not be touched, canonical: nothing at or below them is opened.
  std::set<std::string> excluded;
  // A probe or a program that takes longer is ended (timed_out). NVML takes up to 3 s for each GPU of a
  // machine without persistence mode, one after the other.
  std::chrono::milliseconds probe_limit{30'000};
  // The same for one file, folder or link. Firmware commands behind sysfs files of NICs take up to about 1 s.
  std::chrono::milliseconds read_limit{5'000};
};

// TOPOTUNE_EXCLUDE        PCI addresses between commas: "0000:1b:00.0,0000:43:00.0"; domain 0000 may be left
// out TOPOTUNE_PROBE_TIMEOUT  probe_limit in seconds, "2.5"; 0.1 to 3600 Another text is an error: an
// exclusion that was not understood must not be ignored.
Result<LiveOptions> live_options_from_environment(std::string root = "");

// The value of TOPOTUNE_EXCLUDE. Probes ask it through excluded_devices(), which is empty where the text is
// no list.
Result<std::set<std::string>> parse_excluded(std::string_view text);
std::set<std::string> excluded_devices();

}  // namespace topotune::host
