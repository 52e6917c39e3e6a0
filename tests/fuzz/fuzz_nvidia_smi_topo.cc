#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "parse/nvidia_smi_topo.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto topology = topotune::parse::parse_nvidia_smi_topo(text);
  if (!topology) return 0;
  // What is read is recognised, and every pair is listed once.
  if (!topotune::parse::looks_like_nvidia_smi_topo(text)) std::abort();
  const std::size_t devices = topology->gpus.size() + topology->nics.size();
  if (topology->stated.size() != devices * (devices - 1) / 2) std::abort();
  return 0;
}
