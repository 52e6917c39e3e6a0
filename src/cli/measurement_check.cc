#include "cli/measurement_check.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "checks/bench.h"
#include "cli/bench_run.h"
#include "cli/input.h"
#include "discover/discover.h"
#include "host/capture.h"
#include "host/recorded_host.h"
#include "measure/expected.h"
#include "parse/measurement.h"

namespace topotune::cli {

namespace {

std::string text_param(const model::Measurement& m, std::string_view name) {
  const auto at = std::ranges::find(m.params, name, &model::Param::name);
  return at == m.params.end() ? std::string() : model::text_of(at->value);
}

std::size_t bytes_of(const model::Measurement& m) {
  return parse_int<std::size_t>(text_param(m, "bytes")).value_or(0);
}

// "p2p.write.ce" and "p2p.both.read.sm": one direction between two GPUs.
std::optional<checks::LinkLimit> p2p_limit(const measure::ExpectedValues& values,
                                           const model::Measurement& m) {
  const auto words = split(m.name, '.');
  if (words.size() < 3 || words[0] != "p2p") return std::nullopt;
  const auto src = text_param(m, "src"), dst = text_param(m, "dst");
  const auto links = values.nvlinks_between(src, dst);
  if (!links) return std::nullopt;
  const auto engine = words.back();
  const auto op = std::string_view(m.name).substr(4, m.name.size() - 5 - engine.size());
  checks::LinkLimit out;
  out.expected = values.p2p(op, engine, src, dst, bytes_of(m));
  out.link_rate = links->links * links->per_link;
  out.why = fmt::format("{} links x {:.3f} GB/s", links->links, links->per_link);
  return out;
}

// "host.h2d": one direction over PCIe; of "host.both.*" each direction by itself.
std::optional<checks::LinkLimit> host_limit(const measure::ExpectedValues& values,
                                            const model::Measurement& m) {
  const auto words = split(m.name, '.');
  if (words.size() < 2 || words[0] != "host" ||
      (words[1] != "h2d" && words[1] != "d2h" && words[1] != "both"))
    return std::nullopt;
  const auto gpu = text_param(m, "gpu");
  const auto link = values.pcie_of(gpu);
  if (!link) return std::nullopt;
  return checks::LinkLimit{values.host(words[1], gpu), link->gbytes_per_s, link->why};
}

Result<model::Topology> topology_of_capture(const std::string& text) {
  auto capture = host::parse_capture(text);
  if (!capture) return tl::unexpected(capture.error());
  return discover::discover(host::RecordedHost(std::move(*capture))).topology;
}

}  // namespace

bool is_measurement_file(const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(name, ignored)) return false;
  std::ifstream file(name, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return parse::looks_like_measurement(head);
}

Result<model::Diagnosis> check_measurement(const std::string& name, const model::Topology* topology) {
  const auto run = load_measurement(name);
  if (!run) return tl::unexpected(run.error());
  std::optional<model::Topology> own;
  if (topology == nullptr && !run->capture.empty()) {
    auto read = topology_of_capture(run->capture);
    if (!read) return about(name, read.error());
    own = std::move(*read);
    topology = &*own;
  }
  if (topology == nullptr) return checks::judge_measurement(*run, name);
  const measure::ExpectedValues values(*topology);
  return checks::judge_measurement(*run, name, [&](const model::Measurement& m) {
    const auto limit = p2p_limit(values, m);
    return limit ? limit : host_limit(values, m);
  });
}

}  // namespace topotune::cli
