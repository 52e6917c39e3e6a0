#include "parse/hwloc_xml.h"

#include "parse/xml_reader.h"

namespace topotune::parse {

bool looks_like_hwloc_xml(std::string_view text) {
  const auto head = first_element(text);
  return head && head->name == "topology";
}

Result<model::Topology> parse_hwloc_xml(std::string_view) {
  return fail(Errc::unsupported, "hwloc XML is not read yet");
}

}  // namespace topotune::parse
