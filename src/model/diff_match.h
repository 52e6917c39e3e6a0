#pragma once

#include <map>
#include <set>
#include <string>

#include "model/machine.h"

namespace topotune::model {

// Names that both sides of a comparison share: one device, one label, whatever each side calls it.
struct Labels {
  std::map<std::string, std::string> devices;      // id of a GPU or NIC -> "GPU3 0000:5d:00.0"
  std::map<std::string, std::string> short_names;  // id -> "GPU3", as the earlier side numbers it
  std::map<std::string, std::string> ports;        // "device/port" -> "mlx5_0 port 1"
  std::set<std::string> alone;                     // ids of GPUs and NICs that the other side does not have
};

struct LabelPair {
  Labels before, after;
};

LabelPair match_devices(const Machine& before, const Machine& after);

std::string port_key(const RdmaPort& port);  // "mlx5_0/1"

}  // namespace topotune::model
