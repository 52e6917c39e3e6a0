#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace topotune::host {

// The line format below captures and overlays: a first line "SCHEMA 1", header lines "key: value", then
// records of a verb, a name and lines that begin with a mark (docs/formats/capture.md).
struct Record {
  int line = 0;  // of the verb, from 1
  std::string verb;
  std::string name;  // as it stands there, escaped; every escape in it is good
  std::string payload;
  std::optional<Error> error;
};

struct Records {
  std::map<std::string, std::string> header;
  std::vector<Record> records;
  bool ended = false;  // the line "end" was there
  int lines = 0;
};

Result<Records> parse_records(std::string_view text, std::string_view schema);

// Appends one record; `name` as it is to stand there.
void write_record(std::string& out, std::string_view verb, std::string_view name,
                  const Result<std::string>& answer);

// The error whose name_of is `name`.
std::optional<Errc> errc_from(std::string_view name);

}  // namespace topotune::host
