#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checks/topology_files.h"

// What the rules about NCCL's topology XML ask of its elements.
namespace topotune::checks {

using Element = parse::XmlElement;

// An element's place, as evidence: "topo.xml:12".
model::Evidence quote(const ParsedFile& file, const Element& element, std::string text);
std::string busid_of(const Element& pci);  // lower case, as NCCL compares
bool is_gpu(const parse::XmlDocument& xml, const Element& pci);
bool is_nic(const parse::XmlDocument& xml, const Element& pci);
bool has_child(const parse::XmlDocument& xml, const Element& element, std::string_view name);
const Element* parent_of(const parse::XmlDocument& xml, const Element& element);
std::vector<const Element*> elements_named(const parse::XmlDocument& xml, std::string_view name);
// True for a pci element that is a GPU or NIC or has one somewhere below; by place in xml.elements.
std::vector<bool> on_device_paths(const parse::XmlDocument& xml);

// NCCL's code for a link_speed (100 Mb/s per lane), or nothing where its dictionary has no word that the text
// starts with. Since 2.12; `old` is the dictionary of 2.11 and before.
std::optional<int> speed_code(std::string_view link_speed, bool old_dictionary);
// The number that a person reads in the text: "16.0 GT/s" is 16.
std::optional<double> gts_in(std::string_view link_speed);

// GB/s that NCCL counts for a pci element: width x code / 80. Nothing without both attributes' information.
std::optional<double> gbytes_of(const Element& pci);

}  // namespace topotune::checks
