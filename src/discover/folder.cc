#include "discover/folder.h"

#include <algorithm>
#include <deque>
#include <set>

#include "base/text.h"
#include "discover/text_kinds.h"
#include "parse/nccl_log_blank.h"
#include "parse/nvidia_smi_q.h"
#include "parse/nvidia_smi_x.h"
#include "parse/recognise.h"
#include "parse/sections.h"

namespace topotune::discover {
namespace {

constexpr std::size_t kMaxText = std::size_t{256} << 20;

// What is known of one text while all are being read.
struct Read {
  const NamedText* given = nullptr;
  std::string other;  // `given` with the lines of an NCCL log left empty
  std::string plain;  // that, without escapes and quotes
  std::vector<Piece> pieces;
  std::deque<std::string> commands;
  bool topology = false;    // a topology kind: matrix, NCCL or hwloc XML
  bool recognised = false;  // of any use
};

// The command of a piece; a text that is one piece may be named after a file of the kernel
// ("numa_balancing").
void split_pieces(Read& read) {
  for (auto& section : parse::split_sections(read.plain)) {
    read.commands.push_back(std::move(section.command));
    read.pieces.push_back({read.given->name, section.first_line, read.commands.back(), section.text});
  }
}

// ---- the base topology

struct Base {
  model::Topology topology;
  const Read* read = nullptr;
  model::SourceKind kind = model::SourceKind::text;
};

int preference(model::SourceKind kind) {
  switch (kind) {
    case model::SourceKind::nvidia_smi_topo:
      return 0;
    case model::SourceKind::hwloc_xml:
      return 1;
    default:
      return 2;
  }
}

void note(Merger& merger, const Base& base) {
  for (auto warning : base.topology.warnings) {
    warning.text = fmt::format("{}: {}", base.read->given->name, warning.text);
    merger.machine.diagnostics.push_back(std::move(warning));
  }
}

// Addresses of the GPUs that the driver lists, empty when no text tells them.
std::set<std::string> driver_gpus(const std::vector<Read>& reads) {
  std::set<std::string> out;
  for (const auto& read : reads) {
    for (const auto& piece : read.pieces) {
      const bool xml = parse::looks_like_nvidia_smi_x(piece.text);
      if (!xml && !parse::looks_like_nvidia_smi_q(piece.text)) continue;
      const auto smi = xml ? parse::parse_nvidia_smi_x(piece.text) : parse::parse_nvidia_smi_q(piece.text);
      if (!smi) continue;
      for (const auto& gpu : smi->gpus) {
        if (gpu.bdf) out.insert(*gpu.bdf);
      }
    }
  }
  return out;
}

// An NCCL topology file may be of another machine: it is the base only when nothing else tells of GPUs, or
// when it has every GPU that the driver has.
bool may_be_base(const Base& base, const std::vector<Read>& reads) {
  if (base.kind == model::SourceKind::nvidia_smi_topo || base.kind == model::SourceKind::hwloc_xml)
    return true;
  const auto driver = driver_gpus(reads);
  if (!driver.empty()) {
    std::set<std::string> in_file;
    for (const auto& gpu : base.topology.gpus) {
      if (gpu.bdf) in_file.insert(*gpu.bdf);
    }
    return std::ranges::includes(in_file, driver);
  }
  for (const auto& read : reads) {
    for (const auto& piece : read.pieces) {
      for (const auto& kind : text_kinds()) {
        const bool tells_gpus =
            kind.name.starts_with("nvidia-smi") || kind.name == "rocm-smi" || kind.name.starts_with("lspci");
        if (tells_gpus && kind.looks_like(piece)) return false;
      }
    }
  }
  return true;
}

void keep_topology_file(Merger& merger, const Read& read, model::SourceKind kind) {
  if (kind == model::SourceKind::nccl_topo_xml || kind == model::SourceKind::rccl_topo_xml)
    merger.machine.topology_files.push_back({read.given->name, read.given->text});
}

std::vector<Base> read_topologies(Merger& merger, std::vector<Read>& reads) {
  std::vector<Base> out;
  for (auto& read : reads) {
    const auto* format = parse::recognise(read.other);
    if (format == nullptr) continue;
    auto topology = format->parse(read.given->text);
    if (!topology) {
      merger.warn("unreadable", fmt::format("{}: {}", read.given->name, topology.error().text));
      keep_topology_file(merger, read, format->kind);
      read.recognised |= format->kind != model::SourceKind::nvidia_smi_topo;
      continue;
    }
    read.topology = read.recognised = true;
    const auto kind = topology->source.kind;
    merger.machine.inputs.push_back(fmt::format("{}: {}", read.given->name, name_of(kind)));
    keep_topology_file(merger, read, kind);
    out.push_back({std::move(*topology), &read, kind});
  }
  std::ranges::stable_sort(out, {}, [](const Base& base) { return preference(base.kind); });
  return out;
}

// The tree and nodes of a second topology (hwloc beside a matrix); GPUs get its addresses in order where it
// has as many.
void take_tree(model::Topology& to, const model::Topology& from) {
  if (to.tree_known || !from.tree_known || from.nccl_classes) return;
  to.pci = from.pci;
  to.tree_known = true;
  to.switches = from.switches;
  if (to.packages.empty()) to.packages = from.packages;
  if (!from.numa.empty()) to.numa = from.numa;
  if (!to.cpu) to.cpu = from.cpu;
  if (to.gpus.size() != from.gpus.size()) return;
  for (std::size_t i = 0; i < to.gpus.size(); ++i) {
    if (!to.gpus[i].bdf) to.gpus[i].bdf = from.gpus[i].bdf;
    if (!to.gpus[i].numa) to.gpus[i].numa = from.gpus[i].numa;
  }
}

void compare_counts(Merger& merger, const Base& base, const Base& other) {
  if (base.topology.gpus.size() == other.topology.gpus.size() || other.topology.gpus.empty()) return;
  merger.warn("contradiction",
              fmt::format("{} has {} GPUs, {} has {}", base.read->given->name, base.topology.gpus.size(),
                          other.read->given->name, other.topology.gpus.size()));
}

void choose_base(Merger& merger, std::vector<Read>& reads) {
  auto bases = read_topologies(merger, reads);
  std::erase_if(bases, [&](const Base& base) { return !may_be_base(base, reads); });
  if (bases.empty()) return;
  auto chosen = std::move(bases.front());
  for (std::size_t i = 1; i < bases.size(); ++i) {
    compare_counts(merger, chosen, bases[i]);
    take_tree(chosen.topology, bases[i].topology);
  }
  note(merger, chosen);
  chosen.topology.warnings.clear();
  merger.start_from(std::move(chosen.topology));
}

// ---- the other texts

struct Found {
  std::size_t kind;  // place in the table
  Read* read;
  const Piece* piece;
};

std::vector<Found> recognise_pieces(std::vector<Read>& reads) {
  std::vector<Found> out;
  const auto kinds = text_kinds();
  for (auto& read : reads) {
    for (const auto& piece : read.pieces) {
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i].looks_like(piece)) out.push_back({i, &read, &piece});
      }
    }
  }
  std::ranges::stable_sort(out, {}, &Found::kind);
  return out;
}

// Returns the first text that was known and refused, with what to give instead.
std::optional<Error> merge_all(Merger& merger, const std::vector<Found>& found) {
  std::optional<Error> refused;
  for (const auto& one : found) {
    const auto& kind = text_kinds()[one.kind];
    const auto done = kind.merge(merger, *one.piece);
    if (done) {
      one.read->recognised = true;
      auto line = fmt::format("{}: {}", one.piece->name, kind.name);
      auto& inputs = merger.machine.inputs;
      if (std::ranges::find(inputs, line) == inputs.end()) inputs.push_back(std::move(line));
    } else if (done.error().code != Errc::unrecognised) {
      const auto where = done.error().line ? one.piece->at(*done.error().line) : std::string(one.piece->name);
      const auto& hint = done.error().hint;
      merger.warn("unreadable", fmt::format("{}: cannot be read as {}: {}{}{}", where, kind.name,
                                            done.error().text, hint.empty() ? "" : "; give: ", hint));
      if (!refused && done.error().code == Errc::unsupported) refused = done.error();
    }
  }
  return refused;
}

void compare_gpu_counts(Merger& merger) {
  const auto& machine = merger.machine;
  const auto& count = machine.nvml_gpu_count;
  const auto stated = machine.topology.stated.empty() ? 0 : machine.topology.gpus.size();
  if (!count.known() || stated == 0 || *count < 0) return;
  if (static_cast<std::size_t>(*count) != stated)
    merger.warn("contradiction",
                fmt::format("{}: {} GPUs are attached, the matrix and the other texts have {}", count.source,
                            *count, stated));
}

void set_source(Merger& merger, std::span<const NamedText> texts) {
  auto& source = merger.machine.topology.source;
  const bool base = !merger.machine.topology.stated.empty() || merger.machine.topology.tree_known;
  source.complete = base && source.complete;
  source.kind = texts.size() == 1 ? model::SourceKind::text : model::SourceKind::folder;
  source.name = texts.size() == 1 ? texts[0].name : "";
}

// The parts of a transcript that set variables, each at its own lines of the whole.
void add_settings(FolderInput& out, const Read& read) {
  constexpr std::size_t kMaxParts = 64;
  constexpr int kMaxLine = 100000;
  const auto before = out.configs.size();
  for (const auto& piece : read.pieces) {
    if (out.configs.size() >= before + kMaxParts || piece.first_line > kMaxLine) return;
    const auto known = [&](const TextKind& kind) { return kind.looks_like(piece); };
    if (!sets_variables(piece.text) || std::ranges::any_of(text_kinds(), known)) continue;
    std::string text(static_cast<std::size_t>(piece.first_line - 1), '\n');
    out.configs.push_back({read.given->name, text.append(piece.text)});
  }
}

void add_configuration(FolderInput& out, const Read& read) {
  const bool by_name = is_configuration_name(read.given->name);
  // limits.conf is one by its name only.
  if (by_name && read.recognised && !sets_variables(read.plain)) return;
  if (by_name || (read.pieces.size() <= 1 && sets_variables(read.plain))) {
    out.configs.push_back(*read.given);
  } else if (read.pieces.size() > 1) {
    add_settings(out, read);
  }
}

// Logs and configurations stay texts; what is of no use is named.
void sort_out(FolderInput& out, const std::vector<Read>& reads) {
  for (const auto& read : reads) {
    const auto configs = out.configs.size();
    const bool log = is_communication_log(read.given->text) || is_communication_log(read.plain);
    if (log) out.logs.push_back(*read.given);
    if (!log && !read.topology) add_configuration(out, read);
    if (log || out.configs.size() > configs || read.recognised || trim(read.plain).empty()) continue;
    out.unrecognised.push_back(read.given->name);
    out.machine.diagnostics.push_back({"not-recognised", "not recognised: " + read.given->name, {}});
  }
}

tl::unexpected<Error> nothing_known(std::span<const NamedText> texts) {
  auto error = fail(Errc::unrecognised, "{}", texts.empty() ? "no texts" : "nothing in it is recognised");
  error.value().hint = "known are " + known_commands();
  return error;
}

}  // namespace

Result<FolderInput> read_texts(std::span<const NamedText> texts) {
  std::vector<Read> reads(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].text.size() > kMaxText) {
      auto error = fail(Errc::too_large, "larger than {} MiB", kMaxText >> 20);
      error.value().file = texts[i].name;
      return error;
    }
    reads[i].given = &texts[i];
    reads[i].other = parse::without_nccl_lines(texts[i].text);
    reads[i].plain = parse::plain_text(reads[i].other);
    split_pieces(reads[i]);
  }
  Merger merger;
  choose_base(merger, reads);
  auto refused = merge_all(merger, recognise_pieces(reads));
  merger.finish();
  compare_gpu_counts(merger);
  set_source(merger, texts);
  FolderInput out;
  out.machine = std::move(merger.machine);
  sort_out(out, reads);
  const bool any = std::ranges::any_of(reads, &Read::recognised);
  if (!any && out.logs.empty() && out.configs.empty())
    return refused ? tl::unexpected(std::move(*refused)) : nothing_known(texts);
  return out;
}

Result<model::Machine> machine_from_texts(std::span<const NamedText> texts) {
  auto input = read_texts(texts);
  if (!input) return tl::unexpected(input.error());
  return std::move(input->machine);
}

bool is_command_text(std::string_view text) {
  const NamedText one{"text", std::string(text)};
  const auto input = read_texts(std::span(&one, 1));
  return input && !input->machine.inputs.empty();
}

std::string known_commands() {
  std::string out;
  for (const auto& kind : text_kinds()) out += fmt::format("{}{}", out.empty() ? "" : ", ", kind.name);
  return out;
}

}  // namespace topotune::discover
