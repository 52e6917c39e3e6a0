#include "parse/hwloc_distances.h"

#include "base/text.h"
#include "base/words.h"

namespace topotune::parse {

namespace {

std::optional<std::size_t> side_of(const XmlElement& element) {
  const auto text = element.get("nbobjs");
  const auto side = text ? parse_int<std::size_t>(*text) : std::nullopt;
  return side && *side > 0 && *side <= kMaxDistanceSide ? side : std::nullopt;
}

// Nearly all are whole numbers, which are read faster as such.
std::optional<double> number(std::string_view word) {
  const auto whole = word.size() <= 15 ? parse_int<std::uint64_t>(word) : std::nullopt;
  return whole ? std::optional(static_cast<double>(*whole)) : parse_double(word);
}

// Version 2 and later: the numbers stand as text, in pieces.
void read_pieces(const XmlDocument& document, const XmlElement& element, HwlocDistances& out) {
  const auto most = out.side * out.side;
  for (const auto child : element.children) {
    const auto& piece = document[child];
    const bool ends = piece.name == "indexes", values = piece.name == "u64values";
    std::string_view rest = piece.text;
    for (auto word = next_word(rest); !word.empty(); word = next_word(rest)) {
      if (ends && out.ends.size() <= out.side) out.ends.emplace_back(word);
      const auto value = values ? number(word) : std::nullopt;
      if (value && out.values.size() <= most) out.values.push_back(*value);
    }
  }
}

// Version 1: <latency value="1.0"/>, to be multiplied by latency_base.
void read_latencies(const XmlDocument& document, const XmlElement& element, HwlocDistances& out) {
  const auto base_text = element.get("latency_base");
  const double base = (base_text ? parse_double(*base_text) : std::nullopt).value_or(1);
  for (const auto child : element.children) {
    const auto text = document[child].name == "latency" ? document[child].get("value") : std::nullopt;
    if (const auto value = text ? parse_double(*text) : std::nullopt) out.values.push_back(*value * base);
  }
}

}  // namespace

std::vector<HwlocDistances> read_hwloc_distances(const XmlDocument& document, int& broken) {
  std::vector<HwlocDistances> all;
  for (const auto& element : document.elements) {
    const bool old = element.name == "distances";
    if (!old && element.name != "distances2" && element.name != "distances2hetero") continue;
    HwlocDistances one;
    one.name = element.get("name").value_or("");
    one.type = element.get("type").value_or("");
    one.by_os_index = element.get("indexing").value_or("os") == "os" && element.name == "distances2";
    one.side = side_of(element).value_or(0);
    one.line = element.line;
    if (one.side > 0) old ? read_latencies(document, element, one) : read_pieces(document, element, one);
    const bool whole =
        one.side > 0 && one.values.size() == one.side * one.side && (old || one.ends.size() == one.side);
    if (whole)
      all.push_back(std::move(one));
    else
      ++broken;
  }
  return all;
}

}  // namespace topotune::parse
