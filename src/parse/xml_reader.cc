#include "parse/xml_reader.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace topotune::parse {

namespace {

constexpr std::size_t kHead = std::size_t{64} << 10;
constexpr auto npos = std::string_view::npos;

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}
bool is_name(char c) { return is_name_start(c) || is_digit(c) || c == '-' || c == '.'; }

std::size_t name_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_name(text[at])) ++at;
  return at;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// Appends what "&name;" stands for; an unknown entity stays as it is.
void append_entity(std::string& out, std::string_view name) {
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  const auto known = std::ranges::find(kNamed, name, &std::pair<std::string_view, char>::first);
  if (known != std::end(kNamed)) {
    out += known->second;
    return;
  }
  const bool hex = name.starts_with("#x");
  const auto code = name.starts_with("#") ? parse_int<std::uint32_t>(name.substr(hex ? 2 : 1), hex ? 16 : 10)
                                          : std::nullopt;
  if (code && *code > 0 && *code < 0x110000 && (*code < 0xd800 || *code > 0xdfff))
    append_utf8(out, *code);
  else
    out.append("&").append(name).append(";");
}

bool ends_bare_value(char c) { return c == '>' || c == '/' || c == '<' || is_space(c); }

std::string resolve(std::string_view raw) {
  std::string out;
  for (auto at = raw.find('&'); at != npos; at = raw.find('&')) {
    out += raw.substr(0, at);
    raw.remove_prefix(at + 1);
    const auto end = raw.substr(0, 12).find(';');
    if (end == npos) {
      out += '&';
      continue;
    }
    append_entity(out, raw.substr(0, end));
    raw.remove_prefix(end + 1);
  }
  return out += raw;
}

// Enough of a name for a message.
std::string_view brief(std::string_view name) { return name.substr(0, 60); }

class Reader {
 public:
  Reader(std::string_view text, const XmlLimits& limits) : text_(text), limits_(limits) {}

  Result<XmlDocument> read() {
    document_.elements.reserve(text_.size() / 256);
    while (at_ < text_.size()) {
      const auto open = text_.find('<', at_);
      take_text(open);
      at_ = open == npos ? text_.size() : open;
      if (at_ == text_.size()) break;
      if (auto good = markup(); !good) return tl::unexpected(good.error());
    }
    if (!open_.empty()) {
      const auto& inner = document_.elements[open_.back()];
      truncated("the file ends inside <{}> of line {}", brief(inner.name), inner.line);
    }
    return std::move(document_);
  }

 private:
  // `at_` is at a '<'.
  Result<void> markup() {
    const auto rest = text_.substr(at_);
    if (rest.starts_with("<!--")) return skip_past("-->", 4, "a comment");
    if (rest.starts_with("<![CDATA[")) return skip_past("]]>", 9, "a CDATA section");
    if (rest.starts_with("<?")) return skip_past("?>", 2, "a processing instruction");
    if (rest.starts_with("<!")) return skip_declaration();
    if (rest.starts_with("</")) return close_tag();
    if (rest.size() > 1 && is_name_start(rest[1])) return open_tag();
    if (rest.size() == 1) {
      truncated("the file ends in a tag");
    } else {
      malformed("a < that begins no tag");
    }
    move_to(at_ + 1);
    return {};
  }

  Result<void> skip_past(std::string_view end, std::size_t skip, std::string_view what) {
    const auto found = text_.find(end, at_ + skip);
    if (found == npos) truncated("the file ends inside {}", what);
    move_to(found == npos ? text_.size() : found + end.size());
    return {};
  }

  // <!DOCTYPE ... [ ... ]>
  Result<void> skip_declaration() {
    auto end = text_.find_first_of("[>", at_);
    if (end != npos && text_[end] == '[') {
      end = text_.find(']', end);
      if (end != npos) end = text_.find('>', end);
    }
    if (end == npos) truncated("the file ends inside a declaration");
    move_to(end == npos ? text_.size() : end + 1);
    return {};
  }

  Result<void> close_tag() {
    const auto begin = at_ + 2, end = name_end(text_, begin);
    const auto name = text_.substr(begin, end - begin);
    const auto stop = text_.find_first_of("<>", end);
    if (stop == npos) {
      truncated("the file ends in a closing tag");
      move_to(text_.size());
      return {};
    }
    close(name);
    move_to(text_[stop] == '>' ? stop + 1 : stop);
    return {};
  }

  void close(std::string_view name) {
    const auto same = std::find_if(open_.rbegin(), open_.rend(),
                                   [&](std::size_t i) { return document_.elements[i].name == name; });
    if (same == open_.rend()) return malformed("</{}> closes nothing", brief(name));
    if (same != open_.rbegin())
      malformed("</{}> while <{}> is not closed", brief(name), brief(document_.elements[open_.back()].name));
    open_.erase(same.base() - 1, open_.end());
  }

  Result<void> open_tag() {
    XmlElement element(document_.memory.get());
    const auto begin = at_ + 1, end = name_end(text_, begin);
    element.name = text_.substr(begin, end - begin);
    element.line = line();
    attributes_.clear();
    move_to(end);
    bool empty = false;
    if (!attributes(element, empty)) return {};
    element.attributes.assign(attributes_.begin(), attributes_.end());
    return add(std::move(element), empty);
  }

  // Reads up to and with the '>'. False when the tag is cut off or broken: it is left out.
  bool attributes(XmlElement& element, bool& empty) {
    for (;;) {
      while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '/')) {
        empty = text_[at_] == '/';
        move_to(at_ + 1);
      }
      if (at_ >= text_.size()) return cut(element);
      if (text_[at_] == '>') {
        move_to(at_ + 1);
        return true;
      }
      if (text_[at_] == '<') {
        malformed("<{}> is not ended by >", brief(element.name));
        return false;
      }
      empty = false;
      if (!attribute(element)) return false;
    }
  }

  bool cut(const XmlElement& element) {
    truncated("the file ends in the tag <{}>", brief(element.name));
    move_to(text_.size());
    return false;
  }

  bool attribute(XmlElement& element) {
    const auto begin = at_;
    auto end = name_end(text_, begin);
    if (end == begin) {
      malformed("a stray character in <{}>", brief(element.name));
      move_to(begin + 1);
      return true;
    }
    const auto name = text_.substr(begin, end - begin);
    while (end < text_.size() && is_space(text_[end])) ++end;
    if (end < text_.size() && text_[end] != '=') {
      malformed("attribute {} of <{}> has no value", brief(name), brief(element.name));
      move_to(end);
      return true;
    }
    while (++end < text_.size() && is_space(text_[end])) {
    }
    if (end >= text_.size()) return cut(element);
    move_to(end);
    return value(element, name);
  }

  // `at_` is at the first character of the value.
  bool value(XmlElement& element, std::string_view name) {
    const char quote = text_[at_];
    const bool quoted = quote == '"' || quote == '\'';
    const auto begin = at_ + (quoted ? 1 : 0);
    std::size_t end = begin;
    if (quoted) {
      while (end < text_.size() && text_[end] != quote && text_[end] != '<') ++end;
    } else {
      while (end < text_.size() && !ends_bare_value(text_[end])) ++end;
    }
    if (end >= text_.size()) return cut(element);
    if (quoted && text_[end] == '<') {
      malformed("the value of {} of <{}> has no end", brief(name), brief(element.name));
      move_to(end);
      return false;
    }
    if (!quoted) malformed("the value of {} of <{}> stands without quotes", brief(name), brief(element.name));
    store(element, name, text_.substr(begin, end - begin));
    move_to(end + (quoted ? 1 : 0));
    return true;
  }

  void store(XmlElement& element, std::string_view name, std::string_view raw) {
    if (std::ranges::find(attributes_, name, &XmlAttribute::name) != attributes_.end())
      return malformed("attribute {} of <{}> stands twice", brief(name), brief(element.name));
    if (attributes_.size() >= limits_.attributes)
      return malformed("<{}> has more than {} attributes", brief(element.name), limits_.attributes);
    attributes_.push_back({name, raw.find('&') == npos ? raw : kept(resolve(raw))});
  }

  // The text, in the document's memory.
  std::string_view kept(const std::string& text) {
    if (text.empty()) return {};
    auto* place = static_cast<char*>(document_.memory->allocate(text.size(), 1));
    std::ranges::copy(text, place);
    return {place, text.size()};
  }

  Result<void> add(XmlElement element, bool empty) {
    auto& elements = document_.elements;
    if (elements.size() >= limits_.elements)
      return fail(Errc::too_large, "more than {} XML elements", limits_.elements);
    if (open_.size() >= limits_.depth)
      return fail(Errc::too_large, "XML nested deeper than {}", limits_.depth);
    element.parent = open_.empty() ? XmlElement::kNone : open_.back();
    const auto place = elements.size();
    if (open_.empty())
      document_.roots.push_back(place);
    else
      elements[open_.back()].children.push_back(place);
    elements.push_back(std::move(element));
    if (!empty) open_.push_back(place);
    return {};
  }

  void take_text(std::size_t end) {
    const auto run = trim(text_.substr(at_, end == npos ? npos : end - at_));
    if (!run.empty() && !open_.empty() && document_.elements[open_.back()].text.empty())
      document_.elements[open_.back()].text = run;
  }

  void move_to(std::size_t to) { at_ = to; }

  // The line of `at_`, counted when it is asked for.
  int line() {
    if (at_ <= counted_) return line_;
    line_ += static_cast<int>(std::ranges::count(text_.substr(counted_, at_ - counted_), '\n'));
    counted_ = at_;
    return line_;
  }

  template <class... Args>
  void truncated(fmt::format_string<Args...> text, Args&&... args) {
    if (!document_.truncated)
      document_.problems.push_back(
          {"truncated", fmt::format(text, std::forward<Args>(args)...) + ": it is cut off", line()});
    document_.truncated = true;
  }

  // Only the first ones are put into words: a hostile text has millions.
  template <class... Args>
  void malformed(fmt::format_string<Args...> text, Args&&... args) {
    if (document_.problems.size() < kMaxProblems)
      document_.problems.push_back({"malformed", fmt::format(text, std::forward<Args>(args)...), line()});
    else
      ++document_.more_problems;
  }

  std::string_view text_;
  XmlLimits limits_;
  XmlDocument document_;
  std::vector<std::size_t> open_;
  std::vector<XmlAttribute> attributes_;  // of the tag that is being read
  std::size_t at_ = 0, counted_ = 0;
  int line_ = 1;
};

}  // namespace

std::optional<std::string_view> XmlElement::find(std::string_view attribute) const {
  const auto at = std::ranges::find(attributes, attribute, &XmlAttribute::name);
  return at == attributes.end() ? std::nullopt : std::optional<std::string_view>(at->value);
}

std::optional<std::string_view> XmlElement::get(std::string_view attribute) const {
  const auto value = find(attribute);
  const auto trimmed = value ? trim(*value) : std::string_view();
  return trimmed.empty() ? std::nullopt : std::optional(trimmed);
}

Result<XmlDocument> read_xml(std::string_view text, const XmlLimits& limits) {
  return Reader(text, limits).read();
}

std::vector<model::Warning> warnings_of(const XmlDocument& document) {
  std::vector<model::Warning> out;
  for (const auto& problem : document.problems) out.push_back({problem.code, problem.text, problem.line});
  if (document.more_problems > 0)
    out.push_back({"malformed", fmt::format("and {} faults more", document.more_problems), std::nullopt});
  return out;
}

std::optional<XmlHead> first_element(std::string_view text) {
  text = text.substr(0, kHead);
  while (!text.empty()) {
    const auto at = text.find('<');
    if (at == npos) return std::nullopt;
    text.remove_prefix(at);
    const bool comment = text.starts_with("<!--");
    if (comment || text.starts_with("<?") || text.starts_with("<!")) {
      const auto end = text.find(comment ? "-->" : ">", comment ? 4 : 1);
      if (end == npos) return std::nullopt;
      text.remove_prefix(end + 1);
    } else if (text.size() > 1 && is_name_start(text[1])) {
      const auto end = name_end(text, 1);
      return XmlHead{text.substr(1, end - 1), text.substr(end)};
    } else {
      text.remove_prefix(1);
    }
  }
  return std::nullopt;
}

}  // namespace topotune::parse
