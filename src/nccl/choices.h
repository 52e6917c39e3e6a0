#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coll/suite.h"

namespace topotune::nccl {

// Runs `work` in a child process in which NCCL writes what it chooses into a file, and returns that file's
// text. Call it before CUDA is initialised: NCCL reads its debug settings once, and lines of the log cost
// time that must not be measured. Errors: the child failed, died, or took longer than the limit.
Result<std::string> log_of(const std::function<Result<void>()>& work, double limit_seconds);

// What NCCL's own log says it chose for a question; nothing where it does not say it, or says two things.
std::optional<coll::Choice> choice_in(const std::string& log, const coll::Question& question, int ranks);

// The same for many questions, reading the log once.
std::vector<std::optional<coll::Choice>> choices_in(const std::string& log,
                                                    const std::vector<coll::Question>& questions, int ranks);

}  // namespace topotune::nccl
