#pragma once

#include <string>

#include "model/diff.h"

namespace topotune::emit {

struct DiffTextOptions {
  bool color = false;
  bool verbose = false;  // every subject by name, and the facts that only one side tells
};

// Changes by group, "before → after"; the same change of several devices is one line. Reads well in a mail.
std::string diff_text(const model::Diff& diff, const model::Source& before, const model::Source& after,
                      const DiffTextOptions& options = {});

}  // namespace topotune::emit
