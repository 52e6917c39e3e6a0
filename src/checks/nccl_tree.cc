#include "checks/nccl_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace topotune::checks {

model::Evidence quote(const ParsedFile& file, const Element& element, std::string text) {
  return {fmt::format("{}:{}", file.name, element.line), std::move(text)};
}

std::string busid_of(const Element& pci) { return to_lower(pci.get("busid").value_or("")); }

bool has_child(const parse::XmlDocument& xml, const Element& element, std::string_view name) {
  return std::ranges::any_of(element.children, [&](std::size_t i) { return xml[i].name == name; });
}

bool is_gpu(const parse::XmlDocument& xml, const Element& pci) {
  return pci.name == "pci" &&
         (has_child(xml, pci, "gpu") || pci.get("class").value_or("").starts_with("0x03"));
}

bool is_nic(const parse::XmlDocument& xml, const Element& pci) {
  return pci.name == "pci" &&
         (has_child(xml, pci, "nic") || pci.get("class").value_or("").starts_with("0x02"));
}

const Element* parent_of(const parse::XmlDocument& xml, const Element& element) {
  return element.parent == Element::kNone ? nullptr : &xml[element.parent];
}

std::vector<const Element*> elements_named(const parse::XmlDocument& xml, std::string_view name) {
  std::vector<const Element*> out;
  for (const auto& element : xml.elements)
    if (element.name == name) out.push_back(&element);
  return out;
}

std::vector<bool> on_device_paths(const parse::XmlDocument& xml) {
  std::vector<bool> on(xml.elements.size(), false);
  for (std::size_t i = 0; i < xml.elements.size(); ++i) {
    if (!is_gpu(xml, xml[i]) && !is_nic(xml, xml[i])) continue;
    for (auto at = i; at != Element::kNone && !on[at]; at = xml[at].parent) on[at] = true;
  }
  return on;
}

// src/graph/topo.cc, kvDictPciGen: NCCL takes the first word that the attribute starts with.
std::optional<int> speed_code(std::string_view link_speed, bool old_dictionary) {
  struct Word {
    std::string_view text;
    int code;
  };
  constexpr std::array kShort{Word{"2.5 GT/s", 15}, Word{"5 GT/s", 30}, Word{"8 GT/s", 60},
                              Word{"16 GT/s", 120}};
  constexpr std::array kLong{Word{"32 GT/s", 240},        Word{"2.5 GT/s PCIe", 15},
                             Word{"5.0 GT/s PCIe", 30},   Word{"8.0 GT/s PCIe", 60},
                             Word{"16.0 GT/s PCIe", 120}, Word{"32.0 GT/s PCIe", 240},
                             Word{"64.0 GT/s PCIe", 480}};
  for (const auto& word : kShort)
    if (link_speed.starts_with(word.text)) return word.code;
  if (old_dictionary) return std::nullopt;
  for (const auto& word : kLong)
    if (link_speed.starts_with(word.text)) return word.code;
  return std::nullopt;
}

std::optional<double> gts_in(std::string_view link_speed) {
  const auto parts = words(link_speed);
  return parts.size() >= 2 && parts[1].starts_with("GT/s") ? parse_double(parts[0]) : std::nullopt;
}

std::optional<double> gbytes_of(const Element& pci) {
  const auto speed = pci.get("link_speed");
  const auto width = pci.get("link_width");
  if (!speed || !width) return std::nullopt;
  const auto lanes = parse_int<int>(*width);
  if (!lanes || *lanes < 0 || *lanes > 32) return std::nullopt;
  return (*lanes == 0 ? 16 : *lanes) * speed_code(*speed, false).value_or(60) / 80.0;
}

}  // namespace topotune::checks
