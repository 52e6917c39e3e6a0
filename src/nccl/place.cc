#include "nccl/place.h"

#include "coll/share.h"

namespace topotune::nccl {

Result<Place> place_among(peers::Peers& peers, std::size_t gpus, double limit_seconds) {
  const auto counts =
      coll::share(peers, std::vector<double>{static_cast<double>(gpus)}, "number of GPUs", limit_seconds);
  if (!counts) return tl::unexpected(counts.error());
  Place place;
  for (int r = 0; r < peers.size(); ++r) {
    const int n = static_cast<int>((*counts)[static_cast<std::size_t>(r)][0]);
    if (r < peers.rank()) place.first_rank += n;
    place.ranks += n;
  }
  return place;
}

}  // namespace topotune::nccl
