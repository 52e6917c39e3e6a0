#include "parse/recognise.h"

#include <algorithm>

#include "parse/hwloc_xml.h"
#include "parse/nccl_topo_xml.h"
#include "parse/nvidia_smi_topo.h"

namespace topotune::parse {

using model::SourceKind;

constexpr Format kFormats[] = {
    {SourceKind::nccl_topo_xml, looks_like_nccl_topo_xml, parse_nccl_topo_xml},
    {SourceKind::rccl_topo_xml, looks_like_nccl_topo_xml, parse_nccl_topo_xml},
    {SourceKind::hwloc_xml, looks_like_hwloc_xml, parse_hwloc_xml},
    {SourceKind::nvidia_smi_topo, looks_like_nvidia_smi_topo, parse_nvidia_smi_topo},
};

std::span<const Format> formats() { return kFormats; }

const Format* recognise(std::string_view text) {
  const auto found = std::ranges::find_if(kFormats, [&](const Format& one) { return one.looks_like(text); });
  return found == std::end(kFormats) ? nullptr : found;
}

const Format* format_of(std::string_view kind) {
  const auto found =
      std::ranges::find_if(kFormats, [&](const Format& one) { return name_of(one.kind) == kind; });
  return found == std::end(kFormats) ? nullptr : found;
}

std::string_view known_formats() {
  return "a topotune capture, nvidia-smi topo -m text, NCCL or RCCL topology XML or hwloc XML";
}

}  // namespace topotune::parse
