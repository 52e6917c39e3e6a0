#pragma once

#include <optional>
#include <string>
#include <utility>

namespace topotune::model {

// A value that was read, or the reason why it was not. Unknown is a value: a rule that meets one says
// "not evaluated: <why>", never "fine".
template <class T>
struct Fact {
  std::optional<T> value;
  std::string source;  // where it was read: a path, "nvml", "ibstat.txt:12"
  std::string text;    // what was read, word for word, where that helps as evidence
  std::string why = "not captured";  // without a value: "denied", "not found", ...

  bool known() const { return value.has_value(); }
  explicit operator bool() const { return known(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
  bool operator==(const Fact& other) const { return value == other.value; }

  static Fact of(T v, std::string from, std::string said = {}) {
    Fact f;
    f.value = std::move(v);
    f.source = std::move(from);
    f.text = std::move(said);
    return f;
  }
  static Fact missing(std::string reason, std::string from = {}) {
    Fact f;
    f.why = std::move(reason);
    f.source = std::move(from);
    return f;
  }
};

}  // namespace topotune::model
