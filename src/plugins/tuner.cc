#include "plugins/tuner.h"

namespace topotune::plugins {

Tuner::Tuner(const Loaded& loaded, const TunerSettings& settings, const Communicator& communicator,
             Logger log)
    : log_(log), filtered_(settings.filtered) {
  start(loaded, settings, communicator);
  if (log_ != nullptr) log_(kLogInfo, kLogInit | kLogTuning, "topotune", __LINE__, "%s", said_.c_str());
}

// The ranks of one node agree, which only they can: NCCL tells neither how many ranks each of several nodes
// has, nor whether two of its nodes share their memory. For several nodes all decide alike by the job's own
// hash.
void Tuner::start(const Loaded& loaded, const TunerSettings& settings, const Communicator& c) {
  std::string off = loaded.off.empty() ? other_nccl(loaded, settings, c.nccl) : loaded.off;
  const bool alone = c.ranks <= 1;
  const bool fabric = shares_a_fabric(settings.root);
  if (off.empty() && c.nodes > 1 && !settings.whole_job)
    off = "several nodes, and TOPOTUNE_TUNER_HASH does not say which table all of them use";
  if (off.empty() && !alone && !c.id && !settings.hash)
    off = "this NCCL does not name communicators to plugins, and TOPOTUNE_TUNER_HASH is not set";
  if (off.empty() && !alone && !c.id && !settings.whole_job && fabric)
    off =
        "hosts that share an NVLink fabric are one node here, and TOPOTUNE_TUNER_HASH does not say which "
        "table all of them use";
  // All memory comes before this rank enters: the others count on it from there on.
  if (off.empty() && loaded.table) decider_ = tune::Decider(*loaded.table, c.ranks, c.nodes);
  const auto shape = std::to_string(c.ranks) + " ranks on " + std::to_string(c.nodes) + " node(s)";
  if (!off.empty())
    said_ = "topotune tuner: off: " + off;
  else if (decider_.regions() == 0)
    said_ = "topotune tuner: off: the table has nothing for " + shape;
  else
    said_ = "topotune tuner: table " + settings.table + " hash " + tune::hash_text(loaded.hash) + ", " +
            std::to_string(decider_.regions()) + " regions for " + shape;
  off_ = decider_.regions() == 0;
  // Ranks with a table that may not be used say so to the others, who then do without as well.
  agreement_needed_ = c.id && !alone && c.nodes == 1 && !(settings.whole_job && fabric);
  if (!agreement_needed_ || settings.table.empty()) return;
  const auto why =
      agreement_.enter(settings.shared, *c.id, off.empty() ? loaded.hash : 0, static_cast<unsigned>(c.ranks));
  if (why.empty() || !off.empty()) return;
  off_ = true;
  said_ = "topotune tuner: off: " + why;
}

const tune::Choice* Tuner::decide_if_agreed(int function, std::uint64_t bytes) const {
  const bool agreed = !agreement_needed_ || agreement_.holds();
  if (reported_.load(std::memory_order_relaxed) == 0 && reported_.exchange(1) == 0 && log_ != nullptr) {
    if (agreed)
      log_(kLogInfo, kLogInit | kLogTuning, "topotune", __LINE__, "topotune tuner: in use");
    else
      log_(kLogInfo, kLogInit | kLogTuning, "topotune", __LINE__, "topotune tuner: off: %s",
           agreement_.why_not().c_str());
  }
  return agreed ? decider_.choice(function, bytes) : nullptr;
}

}  // namespace topotune::plugins
