#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/nccl_log.h"

namespace topotune::parse::log {

// Reads the text that NCCL's RAS client prints (`ncclras`, NCCL 2.24+; src/ras/client_support.cc): job
// summary, table of communicator groups, errors and warnings with the counts of operations by rank.
class RasReader {
 public:
  // True when the line belongs to a report.
  bool line(std::string_view text, model::LogLine at);
  bool any() const { return any_; }
  void store(model::NcclLog& log) const;

 private:
  bool table_row(std::string_view text, model::LogLine at);
  void say_status(std::string text, model::LogLine at);
  bool rank_line(std::string_view text, model::LogLine at);
  bool count_line(std::string_view text, model::LogLine at);

  bool any_ = false, in_groups_ = false, who_ = false;
  std::string group_, op_, cuda_driver_;
  std::vector<model::LogCommunicator> communicators_;
  std::vector<std::pair<int, std::vector<std::size_t>>> groups_;  // group number -> its communicators
  std::vector<model::LogRank> ranks_;
  std::vector<model::RasCount> counts_;
  std::vector<model::LogNote> notes_;
};

// The same report as JSON (`SET FORMAT json`, 2.28.7+). False: not such a document.
bool read_ras_json(std::string_view text, model::NcclLog& log);

}  // namespace topotune::parse::log
