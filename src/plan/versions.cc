#include "plan/versions.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "checks/facts_of.h"
#include "data/embedded.h"

namespace topotune::plan {

namespace {

using checks::version_at_least;

struct Known {
  const model::Machine& machine;
  std::string nccl, ucx, driver;

  std::optional<std::string> version(std::string_view of) const {
    const auto say = [](const std::string& given, const model::Fact<std::string>& fact) {
      return given.empty() ? fact.value : std::optional(given);
    };
    if (of == "nccl") return say(nccl, machine.nccl);
    if (of == "ucx") return say(ucx, machine.ucx);
    if (of == "driver") return say(driver, machine.nvidia_driver);
    if (of == "cuda-runtime") return machine.cuda_runtime.value;
    if (of == "kernel") return machine.kernel.value;
    if (of == "ofed") return machine.ofed.value;
    if (of == "nvidia-peermem") return machine.peermem.value;
    if (of == "dma-buf" && machine.dmabuf && *machine.dmabuf) return "in use";
    return std::nullopt;
  }
};

bool is_version(std::string_view text) { return !text.empty() && is_digit(text.front()); }

// Whether the row is about the version that is here.
bool concerns(const VersionRow& row) {
  if (!is_version(*row.here)) return true;  // "in use", or a module without a version
  const bool from = row.from == "0" || version_at_least(*row.here, row.from);
  return from && (row.to == "-" || !version_at_least(*row.here, row.to));
}

Fit fit_of(const VersionRow& row) {
  if (!row.here) return Fit::unknown;
  if (!concerns(row)) return Fit::not_here;
  if (!is_version(row.minimum)) return Fit::fits;  // a statement, no floor
  if (!row.needed_here || !is_version(*row.needed_here)) return Fit::unknown;
  return version_at_least(*row.needed_here, row.minimum) ? Fit::fits : Fit::violated;
}

}  // namespace

const char* name_of(Fit fit) {
  switch (fit) {
    case Fit::fits:
      return "fits";
    case Fit::violated:
      return "violated";
    case Fit::not_here:
      return "not here";
    case Fit::unknown:
      return "unknown";
  }
  return "unknown";
}

std::vector<VersionRow> version_matrix(const model::Machine& machine, const std::string& nccl,
                                       const std::string& ucx, const std::string& driver) {
  const Known known{machine, nccl, ucx, driver};
  std::vector<VersionRow> out;
  const auto rows = lines(data::versions_tsv());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto cells = split(rows[i], '\t');
    if (cells.size() != 8) continue;
    VersionRow row;
    std::string* const to[] = {&row.have,    &row.from, &row.to,     &row.needs,
                               &row.minimum, &row.why,  &row.source, &row.date};
    for (std::size_t cell = 0; cell < cells.size(); ++cell) *to[cell] = std::string(cells[cell]);
    row.here = known.version(row.have);
    row.needed_here = known.version(row.needs);
    row.fit = fit_of(row);
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace topotune::plan
