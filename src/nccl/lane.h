#pragma once

#include <memory>

#include "coll/lane.h"
#include "nccl/group.h"

namespace topotune::nccl {

// A stream of one collective on a group of its own.
std::unique_ptr<coll::Lane> make_lane(std::unique_ptr<Group> group, coll::Op op);

}  // namespace topotune::nccl
