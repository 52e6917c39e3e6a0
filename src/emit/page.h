#pragma once

#include <string>

#include "model/page.h"

namespace topotune::emit {

// A page for a terminal, wrapped at 100 columns.
std::string page_text(const model::Page& page, bool color);
// `topotune.explain/1`: {"schema","tool","name","kind","title","sections":[{"heading","text"}],"see":[…]}.
std::string page_json(const model::Page& page);

}  // namespace topotune::emit
