#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"
#include "base/text.h"
#include "model/fact.h"

// How probes' JSON texts are read: a refusal, a missing key and a value of the wrong kind are facts without a
// value. For .cc files of this folder.
namespace topotune::parse {

using ProbeJson = nlohmann::ordered_json;

// The text as one JSON object; malformed where it is none, too_large above 64 MiB.
inline Result<ProbeJson> parse_probe_object(std::string_view text, std::string_view probe) {
  if (text.size() > 64u << 20) return fail(Errc::too_large, "{}: {} bytes of text", probe, text.size());
  auto json = ProbeJson::parse(text, nullptr, false);
  if (!json.is_object()) return fail(Errc::malformed, "{}: not a JSON object", probe);
  return json;
}

inline const ProbeJson* member(const ProbeJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// The text of {"error": text}; "" for anything else.
inline std::string refusal_in(const ProbeJson& value) {
  const auto* const error = member(value, "error");
  if (error == nullptr || !error->is_string()) return {};
  return printable(std::string_view(error->get_ref<const std::string&>()).substr(0, 512));
}

namespace detail {

template <class T>
std::optional<T> convert(const ProbeJson& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return value.get<bool>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    constexpr std::size_t kMaxText = 4096;
    if (value.is_string() && value.get_ref<const std::string&>().size() <= kMaxText)
      return printable(value.get_ref<const std::string&>());
  } else if constexpr (std::is_same_v<T, double>) {
    if (value.is_number()) return value.get<double>();
  } else {  // whole numbers; a driver's field values come as doubles
    constexpr auto kMax = static_cast<double>(std::is_same_v<T, int> ? 1ll << 31 : 1ll << 62);
    if (std::is_same_v<T, std::uint64_t> && value.is_number_unsigned()) return value.get<T>();
    if (value.is_number() && value.get<double>() >= 0 && value.get<double>() < kMax)
      return static_cast<T>(value.get<double>());
  }
  return std::nullopt;
}

}  // namespace detail

// object[key] as a fact; `source` says where it was read.
template <class T>
model::Fact<T> fact_in(const ProbeJson& object, const char* key, const char* source) {
  const auto* const value = member(object, key);
  if (value == nullptr) return model::Fact<T>::missing("not asked", source);
  if (auto converted = detail::convert<T>(*value)) return model::Fact<T>::of(std::move(*converted), source);
  auto refused = refusal_in(*value);
  return model::Fact<T>::missing(refused.empty() ? std::string("unexpected value of ") + key : refused,
                                 source);
}

// object[outer][key]; a refusal of the whole of `outer` is the fact's reason.
template <class T>
model::Fact<T> fact_in(const ProbeJson& object, const char* outer, const char* key, const char* source) {
  const auto* const inner = member(object, outer);
  if (inner == nullptr) return model::Fact<T>::missing("not asked", source);
  if (auto refused = refusal_in(*inner); !refused.empty())
    return model::Fact<T>::missing(std::move(refused), source);
  return fact_in<T>(*inner, key, source);
}

}  // namespace topotune::parse
