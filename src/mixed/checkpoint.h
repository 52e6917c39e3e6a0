#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coll/lane.h"

namespace topotune::mixed {

// Saves memory: each source is read piece by piece by a thread of its own and, where a folder is given,
// written to a file there and flushed to the disk (fdatasync). The files have no name: nothing is left
// behind, however the process ends. Errors of a source or file come back from ended().
Result<std::unique_ptr<coll::Lane>> make_checkpoint(std::vector<std::unique_ptr<coll::ByteSource>> sources,
                                                    const std::string& folder);

// Whether `bytes` fit into the folder's free space; the error says how much there is.
Result<void> has_room(const std::string& folder, std::size_t bytes);

}  // namespace topotune::mixed
