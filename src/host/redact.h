#pragma once

#include <string>
#include <vector>

#include "host/capture.h"
#include "host/pseudonym.h"

namespace topotune::host {

// What a reader of the capture itself cannot know. The salt is thrown away after use.
struct RedactOptions {
  Salt salt{};
  std::vector<std::string> host_names;  // "node7", "node7.example.org"
  std::vector<std::string> user_names;
};

// A random salt, this machine's name, the user's and the login name.
RedactOptions redact_options_here();

// The capture with stand-ins (pseudonym.h) for host and user names, serial numbers and asset tags, UUIDs and
// machine ids, GUIDs and the interface ids of GIDs, MACs, public IP addresses; in answers, errors, paths and
// command lines. Binary parts: the serial number capability of PCI configuration space is replaced, VPD is
// left out (denied), of environments only the variables of communication libraries keep their values. Kept:
// everything the rules look at, equality of two values, kinds of addresses, names below /sys/class/net (but
// "enx<MAC>"), model names, part numbers, versions.
Capture redact(const Capture& capture, const RedactOptions& options);

}  // namespace topotune::host
