#include "checks/log_rules.h"

#include <algorithm>

#include "checks/causes.h"
#include "checks/mutation.h"

namespace topotune::checks {

namespace {

// What to do, in words, where the catalogue names other rules only.
struct Remedy {
  std::string_view rule, text;
};
constexpr Remedy kRemedies[] = {
    {"LOG01",
     "load nvidia-peermem, or use the open kernel modules with DMA-BUF; where the distance decided: "
     "NCCL_NET_GDR_LEVEL (GDR01-GDR04)"},
    {"LOG03",
     "pass /dev/infiniband into the container, libibverbs in the image, ports active (ibstat), an "
     "NCCL_IB_HCA that "
     "names existing devices (CONT05, LOG04, RDMA02, RDMA03)"},
    {"LOG05",
     "remove what took peer access away: a variable, containers that do not see each other, ACS or the IOMMU "
     "(LOG06, CONT07, GPU02, ACS01)"},
    {"LOG07",
     "on a first message over RoCE look at the GID index, on a job that ran at link, switch drops and the "
     "peer's own "
     "log (NCCL08, QOS02, CTR01, CTR04)"},
    {"LOG08",
     "docker run --shm-size=1g, or an emptyDir of medium Memory at /dev/shm; remove stale /dev/shm/nccl-* "
     "(CONT01, "
     "KERN04)"},
    {"LOG09",
     "ulimit -l unlimited inside the job: limits.conf, LimitMEMLOCK=infinity of the daemon that starts it "
     "(KERN01)"},
    {"LOG10",
     "unset NCCL_IB_GID_INDEX (2.21 and later choose), or name the RoCE v2 GID of the address in use "
     "(NCCL08, RDMA09)"},
    {"LOG15", "check the topology file and the NIC filter; see which GPUs meet only over SYS (TOPO rules)"},
    {"LOG16", "give NCCL a topology file with the real link_speed and link_width (TOPO09, TOPO10)"},
    {"LOG18", "give the plugin what it needs: EFA driver, libfabric, LD_LIBRARY_PATH (NCCL28)"},
    {"LOG19", "unset NCCL_CROSS_NIC and limits of channels; look at the paths from GPU to NIC (NCCL27)"},
    {"LOG22", "look at port and cable of that host: ibstat, error counters (RDMA02, CTR01, CTR02)"},
};

}  // namespace

model::Finding log_finding(const LogView& view, std::string_view rule, std::string subject,
                           std::string expected, std::string observed, std::vector<model::Evidence> evidence,
                           const std::optional<model::LogLine>& at) {
  auto made =
      finding(rule, std::move(subject), std::move(expected), std::move(observed), std::move(evidence));
  if (const auto* words = std::ranges::find(kRemedies, rule, &Remedy::rule); words != std::end(kRemedies))
    made.remedy = std::string(words->text);
  if (at && at->line > 0) {
    const auto place = view.place(*at);
    made.file = place.substr(0, place.rfind(':'));
    made.line = static_cast<int>(at->line);
  }
  return made;
}

model::Diagnosis diagnose_log(const model::NcclLog& log, const model::Machine* machine,
                              const std::string& name) {
  const LogView view(log, machine, name);
  model::Diagnosis diagnosis;
  for (const auto table : {log_network_rules(), log_local_rules(), log_fault_rules()}) {
    for (const auto& rule : table) {
      auto outcome = rule.evaluate(view);
      mutate(rule.id, outcome);
      if (const auto* why = std::get_if<NotEvaluated>(&outcome); why != nullptr) {
        diagnosis.not_checked.push_back({std::string(rule.id), why->why});
        continue;
      }
      if (std::ranges::find(diagnosis.checked, rule.id) == diagnosis.checked.end())
        diagnosis.checked.emplace_back(rule.id);
      if (auto* found = std::get_if<std::vector<model::Finding>>(&outcome); found != nullptr)
        for (auto& one : *found) diagnosis.findings.push_back(std::move(one));
    }
  }
  // No finding is no proof of health where something failed, or where the log describes nothing.
  diagnosis.unexplained =
      std::ranges::any_of(log.problems, [](const model::LogProblem& p) { return p.harmless.empty(); });
  if (diagnosis.findings.empty() && log.communicators.empty() && log.edges.empty())
    nothing_checked(diagnosis, "the log describes no communicator");
  join_causes(diagnosis);
  sort_findings(diagnosis.findings);
  return diagnosis;
}

}  // namespace topotune::checks
