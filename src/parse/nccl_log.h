#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/nccl_log.h"

namespace topotune::parse {

// Reads NCCL and RCCL debug logs (NCCL 2.2 to 2.30) piece by piece. Memory is bounded by ranks x channels and
// by the number of different settings, warnings and collectives, not by the log's length. Any bytes are
// accepted: what is not understood is counted, nothing is invented. One parser reads one job; several files
// of it may follow each other.
class NcclLogParser {
 public:
  NcclLogParser();
  ~NcclLogParser();
  NcclLogParser(NcclLogParser&&) noexcept;
  NcclLogParser& operator=(NcclLogParser&&) noexcept;

  // Lines are counted anew from here; a last line without an end is closed first.
  void begin_file(std::string name);
  void feed(std::string_view chunk);
  // What is known so far; the parser can go on reading (--follow). An unfinished last line is not counted
  // yet.
  model::NcclLog snapshot() const;
  // Closes the last line.
  model::NcclLog finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The whole of a log in memory.
model::NcclLog parse_nccl_log(std::string_view text, std::string name = {});

// True when the text holds lines of an NCCL or RCCL debug log or a RAS report (looks at the first megabyte).
bool looks_like_nccl_log(std::string_view text);

}  // namespace topotune::parse
