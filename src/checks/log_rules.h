#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checks/rule.h"
#include "model/machine.h"
#include "model/nccl_log.h"
#include "model/paths.h"

// Conclusions from an NCCL or RCCL log, with or without knowledge of the machine it ran on.
namespace topotune::checks {

// A log as the rules ask it.
class LogView {
 public:
  LogView(const model::NcclLog& nccl_log, const model::Machine* machine, std::string name);

  const model::NcclLog& log;
  const model::Machine* machine;  // null: not known

  std::string place(const model::LogLine& at) const;  // "job.log:17"
  model::Evidence evidence(const model::LogProblem& problem) const;
  model::Evidence evidence(const model::LogNote& note) const;
  model::Evidence evidence(const model::LogSetting& setting) const;
  model::Evidence evidence(const model::LogEdge& edge) const;

  // The first warning that holds one of the texts; null when none does.
  const model::LogProblem* problem(std::initializer_list<std::string_view> texts) const;
  std::vector<const model::LogProblem*> problems(std::initializer_list<std::string_view> texts) const;
  std::vector<const model::LogNote*> notes(model::NoteKind kind) const;
  const model::LogSetting* setting(std::string_view name) const;
  bool set_to(std::string_view name, std::string_view value) const;

  const model::LogRank* rank(int number) const;                     // of the main communicator
  std::optional<bool> same_host(const model::LogEdge& edge) const;  // nothing: not known
  // Hosts of the job: of the communicator, else those that appear.
  std::optional<int> hosts() const;
  bool many_hosts() const { return hosts().value_or(1) > 1; }

  // What the machine or NCCL's own graph tells about two ranks' GPUs.
  struct Link {
    std::optional<model::PathType> type;
    std::optional<int> nvlinks;
    std::string why;  // where it is from
  };
  std::optional<Link> link(int rank_a, int rank_b) const;
  std::optional<Link> machine_link(int a, int b) const;  // of the machine alone
  std::optional<Link> graph_link(int a, int b) const;    // of the graph alone
  const model::Gpu* gpu_of(int rank) const;              // of the machine; null: not known
  bool any_nvlink() const;
  // GeForce and other cards without peer access; nothing when no name is known.
  std::optional<bool> geforce() const;
  std::optional<bool> hopper_or_newer() const;
  std::optional<bool> rdma_hardware() const;
  bool omni_path() const;

 private:
  void count_nodes();

  std::string name_;
  bool names_say_too_few_ = false;  // NCCL counts more nodes than the ranks' hosts have names
  bool one_rank_a_node_ = false;
  std::vector<model::Path> paths_;
  std::map<std::pair<std::string_view, std::string_view>, const model::Path*> path_of_;  // both ways
  std::unordered_map<int, const model::LogRank*> ranks_;    // of the main communicator
  std::unordered_map<int, std::string> node_of_rank_;       // in NCCL's graph
  std::set<std::string> on_nvswitch_;                       // nodes with NVLinks to one
  std::set<std::pair<std::string, std::string>> nvlinked_;  // nodes with direct NVLinks
};

struct LogRule {
  std::string_view id;
  Outcome (*evaluate)(const LogView&);
};

// Each file's part of the table.
std::span<const LogRule> log_network_rules();
std::span<const LogRule> log_local_rules();
std::span<const LogRule> log_fault_rules();

// Every rule about a log, in the order of the table. `machine`: what the log is checked against, or null.
// `name` is the log's name, as evidence quotes it.
model::Diagnosis diagnose_log(const model::NcclLog& log, const model::Machine* machine,
                              const std::string& name);

// A finding at a line of the log.
model::Finding log_finding(const LogView& view, std::string_view rule, std::string subject,
                           std::string expected, std::string observed, std::vector<model::Evidence> evidence,
                           const std::optional<model::LogLine>& at);

}  // namespace topotune::checks
