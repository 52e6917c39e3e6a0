#pragma once

#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/topology.h"

namespace topotune::parse {

// A small forgiving XML reader for topology files: elements, attributes and text; no entities but the five of
// XML and character references, no DTD. Linear in the text; never recurses.

struct XmlAttribute {
  std::string_view name;
  std::string_view value;  // entities resolved
};

struct XmlElement {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  explicit XmlElement(std::pmr::memory_resource* memory) : attributes(memory), children(memory) {}

  std::string_view name;
  std::pmr::vector<XmlAttribute> attributes;
  std::string_view text;       // the first run of text inside, not resolved
  int line = 1;                // of its "<"
  std::size_t parent = kNone;  // place in XmlDocument::elements
  std::pmr::vector<std::size_t> children;

  // The value of an attribute as it stands, nothing when it is absent.
  std::optional<std::string_view> find(std::string_view attribute) const;
  // The value without blanks around it; nothing when it is absent or empty.
  std::optional<std::string_view> get(std::string_view attribute) const;
};

struct XmlProblem {
  std::string code;  // "truncated" or "malformed"
  std::string text;
  int line = 1;
};

struct XmlDocument {
  // Attributes, children and resolved values lie here: thousands of small pieces that go all at once.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory =
      std::make_unique<std::pmr::monotonic_buffer_resource>(std::size_t{16} << 10);
  std::vector<XmlElement> elements;  // in document order: a parent comes before its children
  std::vector<std::size_t> roots;
  std::vector<XmlProblem> problems;  // the first kMaxProblems; empty when the text is whole
  std::size_t more_problems = 0;
  bool truncated = false;

  const XmlElement& operator[](std::size_t i) const { return elements[i]; }
};

struct XmlLimits {
  std::size_t elements = 400'000;
  std::size_t depth = 256;
  std::size_t attributes = 256;  // of one element; more are a problem and left out
};

inline constexpr std::size_t kMaxProblems = 16;

// Views point into `text` and into the document's own memory. Errors: too_large when a limit is passed.
Result<XmlDocument> read_xml(std::string_view text, const XmlLimits& limits = {});

// The problems as warnings of a topology; the last one counts those that are not listed.
std::vector<model::Warning> warnings_of(const XmlDocument& document);

// The name of the first element and the text behind that name: {"system", " version=..."}. Prolog, comments,
// DOCTYPE and text before it are passed over. Looks at the first 64 KiB only.
struct XmlHead {
  std::string_view name;
  std::string_view rest;
};
std::optional<XmlHead> first_element(std::string_view text);

}  // namespace topotune::parse
