#include "model/nccl_log.h"

#include <array>
#include <utility>

namespace topotune::model {

const char* name_of(SettingBy by) {
  return std::array{"environment", "config", "plugin", "default"}[static_cast<std::size_t>(by)];
}

namespace {

// ncclDataType_t in its order (nccl.h).
constexpr std::array<std::pair<std::string_view, std::uint64_t>, 12> kDatatypes{{{"int8", 1},
                                                                                 {"uint8", 1},
                                                                                 {"int32", 4},
                                                                                 {"uint32", 4},
                                                                                 {"int64", 8},
                                                                                 {"uint64", 8},
                                                                                 {"float16", 2},
                                                                                 {"float32", 4},
                                                                                 {"float64", 8},
                                                                                 {"bfloat16", 2},
                                                                                 {"float8e4m3", 1},
                                                                                 {"float8e5m2", 1}}};

bool is_per_rank(std::string_view op) {
  for (const std::string_view name :
       {"AllGather", "ReduceScatter", "AlltoAll", "AllToAll", "Gather", "Scatter"})
    if (op == name) return true;
  return false;
}

}  // namespace

std::string_view datatype_name(unsigned number) {
  return number < kDatatypes.size() ? kDatatypes[number].first : std::string_view{"unknown"};
}

std::optional<std::uint64_t> datatype_bytes(std::string_view name) {
  for (const auto& [known, bytes] : kDatatypes)
    if (known == name) return bytes;
  return std::nullopt;
}

std::optional<std::uint64_t> call_bytes(std::string_view op, std::string_view datatype, std::uint64_t count,
                                        std::optional<int> nranks) {
  const auto element = datatype_bytes(datatype);
  if (!element || count > (std::uint64_t{1} << 50U)) return std::nullopt;
  if (!is_per_rank(op)) return count * *element;
  if (!nranks || *nranks < 1 || *nranks > (1 << 20)) return std::nullopt;
  const auto one = count * *element;
  const auto ranks = static_cast<std::uint64_t>(*nranks);
  if (one > ~std::uint64_t{0} / ranks) return std::nullopt;
  return one * ranks;
}

}  // namespace topotune::model
