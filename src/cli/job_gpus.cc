#include "cli/job_gpus.h"

#include <algorithm>

namespace topotune::cli {

void count_locals(launch::JobPlace& place, const peers::Peers& peers) {
  const auto& host = peers.at(place.rank).host;
  place.local = 0;
  int size = 0;
  for (const auto& peer : peers.all()) {
    if (peer.host != host) continue;
    if (peer.rank < place.rank) ++place.local;
    ++size;
  }
  place.local_size = size;
}

Result<std::vector<const cuda::Gpu*>> gpus_of_process(const cuda::Machine& machine,
                                                      const launch::JobPlace& place,
                                                      const std::vector<int>& chosen,
                                                      std::optional<int> asked) {
  for (const int number : chosen)
    if (std::ranges::find(machine.gpus, number, &cuda::Gpu::index) == machine.gpus.end())
      return fail(Errc::not_found, "there is no GPU{} here: CUDA shows {} GPUs", number, machine.gpus.size());
  std::vector<const cuda::Gpu*> all;
  for (const auto& gpu : machine.gpus)
    if (chosen.empty() || std::ranges::find(chosen, gpu.index) != chosen.end()) all.push_back(&gpu);
  if (all.empty())
    return fail(Errc::unsupported, "no GPU can be used: {}",
                machine.absent.empty() ? std::string("none was found") : machine.absent.front().why);
  const bool alone = place.size == 1 || place.local_size == 1;
  const auto each = static_cast<std::size_t>(asked.value_or(alone ? static_cast<int>(all.size()) : 1));
  const auto first = all.size() == each ? 0 : static_cast<std::size_t>(place.local) * each;
  if (first + each > all.size())
    return fail(Errc::not_found,
                "rank {} on {} is local rank {} with {} GPU{} a process, but the host has {}", place.rank,
                peers::host_name(), place.local, each, each == 1 ? "" : "s", all.size());
  return std::vector<const cuda::Gpu*>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                       all.begin() + static_cast<std::ptrdiff_t>(first + each));
}

}  // namespace topotune::cli
