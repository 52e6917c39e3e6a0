#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topotune::emit {

// Writes the objects of a list as nlohmann's dump(1, ' ') would inside a document, without building them
// first.
class ListWriter {
 public:
  void begin_object() {
    text_ += first_ ? "\n  {" : ",\n  {";
    first_ = false;
    first_field_ = true;
  }
  void end_object() { text_ += "\n  }"; }
  // `json`: the value as JSON text.
  void field(std::string_view name, std::string_view json) {
    key(name);
    text_ += json;
  }
  void field(std::string_view name, int value) {
    field(name, static_cast<unsigned long long>(value), value < 0);
  }
  void field(std::string_view name, std::size_t value) { field(name, value, false); }
  template <class T>
  void field(std::string_view name, const std::optional<T>& value) {
    if (!value)
      field(name, std::string_view("null"));
    else if constexpr (std::is_same_v<T, bool>)
      field(name, std::string_view(*value ? "true" : "false"));
    else
      field(name, *value);
  }
  void numbers(std::string_view name, const std::vector<int>& list);

  // The whole list: "[]", or one object after the other.
  std::string take() {
    std::string out = first_ ? "[]" : "[" + text_ + "\n ]";
    text_.clear();
    first_ = true;
    return out;
  }

 private:
  void key(std::string_view name) {
    text_ += first_field_ ? "\n   \"" : ",\n   \"";
    first_field_ = false;
    text_ += name;
    text_ += "\": ";
  }
  void field(std::string_view name, unsigned long long value, bool negative) {
    key(name);
    if (negative) {
      text_ += '-';
      value = 0 - value;
    }
    const fmt::format_int digits(value);
    text_.append(digits.data(), digits.size());
  }

  std::string text_;
  bool first_ = true, first_field_ = true;
};

inline void ListWriter::numbers(std::string_view name, const std::vector<int>& list) {
  key(name);
  if (list.empty()) {
    text_ += "[]";
    return;
  }
  text_ += '[';
  for (std::size_t n = 0; n < list.size(); ++n)
    text_ += fmt::format("{}\n    {}", n == 0 ? "" : ",", list[n]);
  text_ += "\n   ]";
}

// Lists that are text already, and the places that hold them in the document meanwhile. The mark is a control
// character: no text of a document has one.
class Splices {
 public:
  explicit Splices(bool one_line) : one_line_(one_line) {}
  std::string put(std::string list) {
    if (one_line_) join_lines(list);
    lists_.push_back(std::move(list));
    return fmt::format("\x01{}", lists_.size() - 1);
  }
  // `document`: dumped, the marks in the order in which they were put.
  std::string fill(const std::string& document) const {
    std::string out;
    std::size_t room = document.size();
    for (const auto& list : lists_) room += list.size();
    out.reserve(room);
    std::size_t from = 0;
    for (std::size_t n = 0; n < lists_.size(); ++n) {
      const auto mark = fmt::format("\"\\u0001{}\"", n);
      const auto at = document.find(mark, from);
      if (at == std::string::npos) break;
      out.append(document, from, at - from);
      out += lists_[n];
      from = at + mark.size();
    }
    return out.append(document, from);
  }

 private:
  // Line ends stand between tokens alone: within a text they are escaped.
  static void join_lines(std::string& text) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < text.size(); ++from) {
      if (text[from] != '\n') {
        text[to++] = text[from];
        continue;
      }
      while (from + 1 < text.size() && text[from + 1] == ' ') ++from;
    }
    text.resize(to);
    text.shrink_to_fit();
  }

  bool one_line_;
  std::vector<std::string> lists_;
};

}  // namespace topotune::emit
