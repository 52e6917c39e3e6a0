#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace topotune::parse {

// Reads a message from left to right. A step that does not fit leaves the position and makes `ok()` false for
// good.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  // Takes `word` when it comes next.
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  Cursor& expect(std::string_view word) {
    ok_ = take(word) && ok_;
    return *this;
  }
  Cursor& blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
    return *this;
  }
  // Behind the next `word`; false when there is none.
  bool skip_past(std::string_view word) {
    const auto at = rest_.find(word);
    if (at == std::string_view::npos) {
      ok_ = false;
      return false;
    }
    rest_.remove_prefix(at + word.size());
    return true;
  }
  // Everything up to one of `ends` (which stays), or to the end.
  std::string_view until(std::string_view ends) {
    const auto at = rest_.find_first_of(ends);
    const auto word = rest_.substr(0, at);
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string_view word() { return until(" \t"); }

  template <class T>
  std::optional<T> number(int base = 10) {
    T value{};
    const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (ec != std::errc{}) {
      ok_ = false;
      return std::nullopt;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  // A number that must be there; 0 and !ok() when it is not.
  template <class T>
  T need(int base = 10) {
    return number<T>(base).value_or(T{});
  }
  // "0x1f" or "1f"; nothing for "0x..." and "(nil)".
  std::optional<std::uint64_t> pointer() {
    take("0x");
    std::uint64_t value{};
    const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, 16);
    if (ec != std::errc{}) {
      word();
      return std::nullopt;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// Position of `needle` at or after `from`, or npos. glibc's memmem scans several bytes at once.
inline std::size_t find_from(std::string_view text, std::string_view needle, std::size_t from) {
  if (from >= text.size()) return std::string_view::npos;
  const void* at = ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

}  // namespace topotune::parse
