#include "checks/topology_files.h"

#include <algorithm>

namespace topotune::checks {
namespace {

bool is_rccl(const ParsedFile& file) {
  if (!file.document || file.document->roots.empty()) return false;
  return (*file.document)[file.document->roots.front()].get("version") == "2";
}

ParsedFile parsed(std::string name, std::string_view text, bool own) {
  ParsedFile file{std::move(name), text, own, false, parse::read_xml(text)};
  file.rccl = is_rccl(file);
  return file;
}

}  // namespace

std::vector<ParsedFile> topology_files(const Evidence& evidence) {
  std::vector<ParsedFile> files;
  const auto& machine = *evidence.machine;
  const auto kind = machine.topology.source.kind;
  if (kind == model::SourceKind::nccl_topo_xml || kind == model::SourceKind::rccl_topo_xml)
    files.push_back(parsed(machine.topology.source.name, evidence.raw_text, true));
  for (const auto& file : machine.topology_files) files.push_back(parsed(file.name, file.text, false));
  return files;
}

}  // namespace topotune::checks
