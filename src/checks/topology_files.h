#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checks/rule.h"
#include "parse/xml_reader.h"

namespace topotune::checks {

// A topology XML file of the input, read once for all rules.
struct ParsedFile {
  std::string name;
  std::string_view text;
  bool own = false;   // it is the input itself: no other evidence of its machine is there
  bool rccl = false;  // <system version="2">: RCCL's form, which NCCL does not read
  Result<parse::XmlDocument> document = parse::XmlDocument{};
};

// The input's own text where that is topology XML, and the files that the machine names.
std::vector<ParsedFile> topology_files(const Evidence& evidence);

}  // namespace topotune::checks
