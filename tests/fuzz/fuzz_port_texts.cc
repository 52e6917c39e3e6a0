#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parse/measurement.h"
#include "parse/port_counters.h"
#include "parse/port_qos.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)topotune::parse::looks_like_port_qos(text);
  (void)topotune::parse::parse_port_qos(text, "dcb pfc show dev eth0");
  (void)topotune::parse::looks_like_port_counters(text);
  (void)topotune::parse::parse_port_counters(text);
  if (topotune::parse::looks_like_measurement(text)) (void)topotune::parse::parse_measurement(text);
  return 0;
}
