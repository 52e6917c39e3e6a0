#pragma once

#include <string>

#include "cli/tune_setup.h"
#include "model/measurement.h"
#include "tune/compare.h"
#include "tune/prove.h"
#include "tune/search.h"

namespace topotune::cli {

struct TuneOutcome {
  tune::SearchResult search;
  std::vector<tune::LevelScore> scores;
  std::size_t level = 0;  // the one that is taken
  tune::Proved proved;
  tune::Table table;
};

// Results of a search and of its proof: both columns of each cell, its ratio and choice.
void add_results(model::MeasurementRun& run, const TuneOutcome& outcome, const TuneMachine& machine);
void add_results(model::MeasurementRun& run, const std::vector<tune::Column>& columns,
                 const std::string& name, int ranks, const std::string& mode);

// time = alpha + bytes / bandwidth through both columns of each collective; how well it foretells the sizes
// that were held back is one result of each.
void add_models(model::MeasurementRun& run, const std::vector<tune::Column>& columns);

// `seconds`: of the whole run.
std::string tune_text(const TuneOutcome& outcome, const TuneMachine& machine, double seconds);
// "no time for: all_reduce 1K 2K; broadcast 4M"
std::string left_text(const std::vector<tune::Cell>& left);
std::string size_text(std::uint64_t bytes);
std::string summary_text(const tune::Summary& summary);
std::string columns_text(const std::vector<tune::Column>& columns, const std::string& left,
                         const std::string& right);

}  // namespace topotune::cli
