#include "plugins/tuner.h"

namespace topotune::plugins {

Tuner::Tuner(const Loaded& loaded, const TunerSettings& settings, const std::string& nccl,
             std::optional<std::uint64_t> comm_id, std::size_t ranks, std::size_t nodes, Logger log)
    : log_(log), filtered_(settings.filtered) {
  start(loaded, settings, nccl, comm_id, ranks, nodes);
}

// Where all ranks decide alike by the job's own hash there is nothing to agree about. Otherwise the ranks of
// one node agree, which only they can: NCCL tells neither how many ranks each of several nodes has, nor
// whether two of its nodes share their memory.
void Tuner::start(const Loaded& loaded, const TunerSettings& settings, const std::string& nccl,
                  std::optional<std::uint64_t> comm_id, std::size_t ranks, std::size_t nodes) {
  std::string off = loaded.off.empty() ? other_nccl(loaded, settings, nccl) : loaded.off;
  const bool alone = ranks <= 1 || settings.whole_job;
  if (off.empty() && nodes > 1 && !settings.whole_job)
    off = "several nodes, and TOPOTUNE_TUNER_HASH does not say which table all of them use";
  if (off.empty() && !alone && !comm_id && !settings.hash)
    off = "this NCCL does not name communicators to plugins, and TOPOTUNE_TUNER_HASH is not set";
  if (off.empty() && !alone && !comm_id && shares_a_fabric(settings.root))
    off =
        "hosts that share an NVLink fabric are one node here, and TOPOTUNE_TUNER_HASH does not say which "
        "table all of them use";
  // Ranks with a table that may not be used say so to the others, who then do without as well.
  agreement_needed_ = comm_id.has_value() && !alone && nodes == 1;
  if (agreement_needed_ && !settings.table.empty()) {
    const auto why = agreement_.enter(settings.shared, *comm_id, off.empty() ? loaded.hash : 0,
                                      static_cast<unsigned>(ranks));
    if (off.empty() && !why.empty()) off = why;
  }
  if (off.empty() && loaded.table) {
    decider_ = tune::Decider(*loaded.table, ranks, nodes);
    off_ = decider_.regions() == 0;
    said_ = decider_.regions() == 0
                ? "topotune tuner: off: the table has nothing for " + std::to_string(ranks) + " ranks on " +
                      std::to_string(nodes) + " node(s)"
                : "topotune tuner: table " + settings.table + " hash " + tune::hash_text(loaded.hash) + ", " +
                      std::to_string(decider_.regions()) + " regions for " + std::to_string(ranks) +
                      " ranks on " + std::to_string(nodes) + " node(s)";
  } else {
    said_ = "topotune tuner: off: " + off;
  }
  if (log_ != nullptr) log_(kLogInfo, kLogInit | kLogTuning, "topotune", __LINE__, "%s", said_.c_str());
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
