#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "checks/rule.h"

// Two readings of the same machine: what counters did between them.
namespace topotune::checks {

// Why the readings cannot be compared: one reading, or a boot between them. Nothing: they can.
std::optional<NotEvaluated> no_earlier_reading(const Evidence& evidence);

// By how much a counter rose. Nothing: missing in one of the readings, lower than before (reset), or at its
// end
// (`saturated`, 0 for none), where it no longer counts.
std::optional<std::uint64_t> rise(std::optional<std::uint64_t> before, std::optional<std::uint64_t> now,
                                  std::uint64_t saturated = 0);

std::optional<std::uint64_t> value_of(const std::map<std::string, std::uint64_t>& counters,
                                      const std::string& name);

// Events per second; nothing when the time between the readings is not known.
std::optional<double> per_second(const Evidence& evidence, std::uint64_t events);

// "in 60 s", "between the readings".
std::string interval_text(const Evidence& evidence);

// The same port in the earlier reading; null when it was not there.
const model::RdmaPort* earlier_port(const Evidence& evidence, const model::RdmaPort& port);

}  // namespace topotune::checks
