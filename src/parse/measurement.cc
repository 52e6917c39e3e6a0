#include "parse/measurement.h"

#include <algorithm>

#include "base/text.h"
#include "parse/document.h"
#include "parse/line_reader.h"
#include "parse/measurement_run.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kSchema = "topotune.measurement/";

std::optional<double> median_of(const model::Measurement& m) {
  if (m.median || m.samples.empty()) return m.median;
  auto samples = m.samples;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return *middle;
}

// model::key_of, whatever the order of the parameters; a stranger's text is made printable.
std::string comparable_key(model::Measurement m) {
  std::ranges::sort(m.params, {}, &model::Param::name);
  return printable(model::key_of(m)).substr(0, 300) + " (" + printable(m.unit) + ")";
}

std::optional<MeasuredResult> result_of(const model::Measurement& m) {
  const auto median = median_of(m);
  if (!median || m.name.empty()) return std::nullopt;
  return MeasuredResult{comparable_key(m), m.unit, *median, std::max<std::size_t>(m.samples.size(), 1),
                        model::name_of(m.status)};
}

}  // namespace

bool looks_like_measurement(std::string_view text) {
  return looks_like_document(text, kSchema);
}

Result<std::vector<MeasuredResult>> parse_measurement(std::string_view text) {
  const auto run = parse_measurement_run(text);
  if (!run) return tl::unexpected(run.error());
  if (run->results.size() > kMaxRecords) return too_many("results", 1);
  std::vector<MeasuredResult> out;
  for (const auto& one : run->results)
    if (auto result = result_of(one)) out.push_back(std::move(*result));
  return out;
}

}  // namespace topotune::parse
