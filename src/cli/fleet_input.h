#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "model/fleet.h"

namespace topotune::cli {

// The files of a folder that consists of captures and measurements only, sorted: each is a node, and the folder a
// fleet. Empty: it is something else (one machine).
std::vector<std::string> fleet_of_folder(const std::string& path);

// The nodes of the inputs. A measurement (`topotune.measurement/1`) belongs to the node of the same name without its
// ending, or is a node of its own. An input that cannot be read is reported and sets `unreadable`.
std::vector<model::FleetNode> read_fleet(const std::vector<std::string>& inputs, const Globals& globals,
                                         bool& unreadable);

}  // namespace topotune::cli
