#include "emit/diff_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/text.h"

namespace topotune::emit {

namespace {

using model::Change;
using model::DiffGroup;
using model::DiffKind;

constexpr std::array kTitles{"GPUs",
                             "NICs and ports",
                             "PCI bridges and switches",
                             "NUMA nodes and packages",
                             "Paths",
                             "Peer access of GPUs",
                             "Software",
                             "Where it runs",
                             "Kernel and limits",
                             "GPUDirect"};
constexpr std::size_t kNamedSubjects = 4;
constexpr std::size_t kMaxValue = 200;

// What the words of the JSON document are called in a sentence; others are read as they are.
constexpr std::array<std::pair<std::string_view, std::string_view>, 34> kNames{{
    {"pcie_current_width", "PCIe lanes in use"},
    {"pcie_current_gts", "PCIe speed in use (GT/s)"},
    {"pcie_capable_width", "PCIe lanes possible"},
    {"pcie_capable_gts", "PCIe speed possible (GT/s)"},
    {"pci_numa", "NUMA node of the PCI function"},
    {"pci_local_cpus", "local CPUs of the PCI function"},
    {"numa", "NUMA node"},
    {"cpus", "CPUs"},
    {"bdf", "PCI address"},
    {"port_bdf", "PCI address"},
    {"sm", "compute capability"},
    {"mig", "MIG"},
    {"ats", "ATS"},
    {"acs_control", "ACS control"},
    {"iommu_type", "IOMMU group type"},
    {"nvlinks", "active NVLinks"},
    {"nvlinks_capable", "NVLinks possible"},
    {"nvlink_gbytes_per_s", "NVLink speed (GB/s)"},
    {"c2c_links", "C2C links"},
    {"vbios", "VBIOS"},
    {"gbits_per_s", "rate (Gb/s)"},
    {"pfc_priorities", "PFC priorities"},
    {"ecn", "ECN"},
    {"type", "path"},
    {"memory_gib", "memory (GiB)"},
    {"nvidia_driver", "NVIDIA driver"},
    {"nvml", "NVML"},
    {"nvml_error", "NVML error"},
    {"cuda_driver", "CUDA of the driver"},
    {"cuda_runtime", "CUDA runtime"},
    {"nccl", "NCCL"},
    {"nccl_plugins", "NCCL plugins"},
    {"ucx", "UCX"},
    {"os", "operating system"},
}};

std::string label_of(std::string_view what) {
  const auto* found = std::ranges::find(kNames, what, &std::pair<std::string_view, std::string_view>::first);
  if (found != kNames.end()) return std::string(found->second);
  std::string out(what);
  std::string_view unit;
  if (what.ends_with("_bytes")) unit = "_bytes";
  out.resize(out.size() - unit.size());
  for (const std::string_view prefix : {"parameter_", "module_"}) {
    if (what.starts_with(prefix))
      return fmt::format("{} {}", prefix.substr(0, prefix.size() - 1), what.substr(prefix.size()));
  }
  std::ranges::replace(out, '_', ' ');
  return unit.empty() ? out : out + " (bytes)";
}

// The same change of several subjects.
struct Line {
  const Change* change;
  std::vector<std::string> subjects;
};

std::vector<Line> lines_of(const std::vector<Change>& changes) {
  using Key =
      std::tuple<DiffGroup, DiffKind, std::string, std::optional<std::string>, std::optional<std::string>>;
  std::map<Key, std::size_t> known;
  std::vector<Line> out;
  for (const auto& change : changes) {
    const auto [at, fresh] =
        known.emplace(Key{change.group, change.kind, change.what, change.before, change.after}, out.size());
    if (fresh) out.push_back({&change, {}});
    out[at->second].subjects.push_back(change.subject);
  }
  return out;
}

std::string subjects_of(const Line& line, bool verbose) {
  if (line.subjects.size() == 1 && line.subjects.front() == "host") return "";
  std::string out;
  const auto shown = verbose ? line.subjects.size() : std::min(line.subjects.size(), kNamedSubjects);
  for (std::size_t i = 0; i < shown; ++i) out += (i == 0 ? "" : ", ") + printable(line.subjects[i]);
  const auto rest = line.subjects.size() - shown;
  return rest == 0 ? out : out + fmt::format(" and {} more", rest);
}

std::string value_of(const std::optional<std::string>& value) {
  if (!value) return "none";
  if (value->empty()) return "\"\"";
  auto out = printable(*value);
  std::ranges::replace(out, '\n', ' ');
  return out.size() <= kMaxValue ? out : printable(out.substr(0, kMaxValue)) + "...";
}

std::string change_of(const Change& change) {
  if (!change.what.empty()) {
    const auto note = change.note.empty() ? "" : fmt::format(" ({})", change.note);
    return fmt::format("{}: {} → {}{}", printable(label_of(change.what)), value_of(change.before),
                       value_of(change.after), note);
  }
  const bool added = change.kind == DiffKind::added;
  return fmt::format("{} ({})", added ? "added" : "removed", value_of(added ? change.after : change.before));
}

std::string mark_of(const Change& change, bool color) {
  if (change.kind == DiffKind::added) return color ? "\x1b[32m+\x1b[0m" : "+";
  if (change.kind == DiffKind::removed) return color ? "\x1b[31m-\x1b[0m" : "-";
  return color ? "\x1b[33m*\x1b[0m" : "*";
}

std::string title(DiffGroup group, bool color) {
  const auto* name = kTitles[static_cast<std::size_t>(group)];
  return color ? fmt::format("\x1b[1m{}\x1b[0m\n", name) : fmt::format("{}\n", name);
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string source_line(const char* side, const model::Source& source) {
  return fmt::format("{:<7} {} ({}{})\n", side, printable(source.name), name_of(source.kind),
                     source.complete ? "" : ", not complete");
}

std::string summary(const model::Diff& diff, bool verbose) {
  if (diff.compared == 0 && diff.identical()) return "nothing could be compared: no fact is told by both\n";
  auto out = diff.identical() ? std::string("no differences") : plural(diff.changes.size(), "difference");
  out += fmt::format(" in {} that both tell", plural(diff.compared, "fact"));
  if (diff.one_sided.empty()) return out + "\n";
  return out + fmt::format("; {} told by one side only{}\n", diff.one_sided.size(),
                           verbose ? ":" : " (-v lists them)");
}

std::string one_sided(const model::Diff& diff) {
  std::string out;
  for (const auto& fact : diff.one_sided) {
    const auto what = fact.what.empty() ? "exists" : label_of(fact.what);
    out += fmt::format("  only {}: {} {}: {}\n", fact.known_before ? "before" : "after",
                       printable(fact.subject), printable(what), value_of(fact.value));
  }
  return out;
}

}  // namespace

std::string diff_text(const model::Diff& diff, const model::Source& before, const model::Source& after,
                      const DiffTextOptions& options) {
  std::string out = source_line("before:", before) + source_line("after:", after);
  const Change* last = nullptr;
  for (const auto& line : lines_of(diff.changes)) {
    if (last == nullptr || last->group != line.change->group)
      out += "\n" + title(line.change->group, options.color);
    last = line.change;
    const auto subjects = subjects_of(line, options.verbose);
    out += fmt::format("  {} {}{}{}\n", mark_of(*last, options.color), subjects, subjects.empty() ? "" : ": ",
                       change_of(*last));
  }
  out += "\n" + summary(diff, options.verbose);
  return options.verbose ? out + one_sided(diff) : out;
}

}  // namespace topotune::emit
