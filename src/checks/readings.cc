#include "checks/readings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace topotune::checks {

namespace {

// When the machine was started, in seconds since 1970.
std::optional<double> boot_time(const model::Machine& machine) {
  if (!machine.read_at || !machine.uptime_seconds) return std::nullopt;
  return static_cast<double>(*machine.read_at) - *machine.uptime_seconds;
}

// Boot ids of redacted captures have stand-ins of their own, so the time of the start decides where it is
// known. Texts that tell neither are taken as of one boot: a counter that fell is seen.
bool same_boot(const model::Machine& before, const model::Machine& now) {
  constexpr double kSlack = 60;  // a capture is dated when it is written
  if (before.boot_id && now.boot_id && *before.boot_id == *now.boot_id) return true;
  const auto then = boot_time(before), later = boot_time(now);
  if (then && later) return std::abs(*later - *then) < kSlack;
  return !before.boot_id || !now.boot_id;
}

}  // namespace

std::optional<NotEvaluated> no_earlier_reading(const Evidence& evidence) {
  if (evidence.before == nullptr)
    return NotEvaluated{
        "needs two readings: --interval SECONDS, or --since an earlier capture of this machine"};
  if (!same_boot(*evidence.before, *evidence.machine))
    return NotEvaluated{"the machine was started between the readings: the counters began again"};
  return std::nullopt;
}

std::optional<std::uint64_t> rise(std::optional<std::uint64_t> before, std::optional<std::uint64_t> now,
                                  std::uint64_t saturated) {
  if (!before || !now || *now < *before) return std::nullopt;
  if (saturated != 0 && *before == saturated) return std::nullopt;
  return *now - *before;
}

std::optional<std::uint64_t> value_of(const std::map<std::string, std::uint64_t>& counters,
                                      const std::string& name) {
  const auto at = counters.find(name);
  return at == counters.end() ? std::nullopt : std::optional(at->second);
}

std::optional<double> per_second(const Evidence& evidence, std::uint64_t events) {
  if (!evidence.seconds || *evidence.seconds <= 0) return std::nullopt;
  return static_cast<double>(events) / *evidence.seconds;
}

std::string interval_text(const Evidence& evidence) {
  return evidence.seconds ? fmt::format("in {:.0f} s", *evidence.seconds)
                          : std::string("between the readings");
}

const model::RdmaPort* earlier_port(const Evidence& evidence, const model::RdmaPort& port) {
  const auto& ports = evidence.before->ports;
  const auto at = std::ranges::find_if(
      ports, [&](const auto& one) { return one.device == port.device && one.port == port.port; });
  return at == ports.end() ? nullptr : &*at;
}

}  // namespace topotune::checks
