#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/bench_coll.h"
#include "cli/bench_frame.h"
#include "cli/job_gpus.h"
#include "cli/report_file.h"
#include "coll/table.h"
#include "launch/meeting.h"
#include "measure/session.h"
#include "mpi/backend.h"
#include "nccl/group.h"

namespace topotune::cli {

// A suite in the processes of one job, over NCCL or MPI: how they meet, what each holds, and how a run ends
// when one of them is lost, hangs or is interrupted. Every wait has a limit; what was measured is kept.
class JobRun {
 protected:
  JobRun(std::string suite, const BenchOptions& options, const JobFlags& job, const Globals& globals);
  virtual ~JobRun();
  JobRun(const JobRun&) = delete;
  JobRun& operator=(const JobRun&) = delete;

  // What was measured so far, and the text that is written of it. Called with mutex_ held.
  virtual model::MeasurementRun whole() const { return run_; }
  virtual std::string document(const model::MeasurementRun& run) const = 0;

  // Keeps what was measured so far in the report's file, marked as interrupted.
  void keep_partial();

  // Which process of how many this is.
  Result<void> find_place();
  // Over TCP, with the NCCL library.
  Result<void> meet_for_nccl();
  // By MPI; where the processes reach each other over TCP, that is used beside it: it tells who is lost.
  Result<mpi::Job> meet_by_mpi(std::size_t buffer_bytes);

  // This process's GPUs: all or the chosen ones of the only process of a node, else the local rank's.
  Result<std::vector<const cuda::Gpu*>> open_gpus(const std::vector<int>& chosen, std::optional<int> each);
  // Ranks follow each other by process. The first process makes the id that all need.
  Result<std::unique_ptr<nccl::Group>> make_group(peers::Peers& peers,
                                                  const std::vector<const cuda::Gpu*>& gpus,
                                                  nccl::GroupOptions options);

  // Who takes part, by rank, from what each process's ranks are; and the machine, of rank 0.
  Result<void> introduce(const std::string& library, const std::vector<coll::LocalRank>& local);
  void describe_machine(const std::string& library_file);
  std::string place_text(int rank) const;

  void start_session();
  // NCCL's communicators are let go before the report is written, with the limit of a step: NCCL can hang
  // there, and what was measured must not be lost.
  void close_communicators(const std::function<void()>& close);
  bool speaks() const { return place_.rank == 0 || (lost_ && lost_root_); }
  // What cannot be had here is waived, with the reason; all processes then end alike.
  int give_up(const Error& error);
  // Another process is lost, or the run cannot go on.
  void lose(const Error& error);
  void add_failure(const std::string& text);
  // The status; the speaker writes.
  int finish();
  // Writes what there is and ends the process: for a run that cannot be left in order.
  [[noreturn]] void end_now(int status);
  void end_session();

  const BenchOptions& options_;
  const Globals& globals_;
  Progress progress_;
  double start_;
  launch::Environment environment_ = launch::process_environment();
  launch::JobOptions job_;
  launch::JobPlace place_;
  std::unique_ptr<measure::Watchdog> watchdog_;
  std::unique_ptr<measure::Session> session_;
  std::unique_ptr<peers::Peers> peers_;
  nccl::Library library_;
  std::unique_ptr<cuda::Machine> cuda_;
  coll::Cast cast_;
  std::mutex mutex_;  // of what document() reads
  model::MeasurementRun run_;
  bool lost_ = false, lost_root_ = false;

 private:
  int written();
  int write(const model::MeasurementRun& run);
  model::MeasurementRun so_far() const;
  void guard();
  void hang(const std::string& step, double limit);
  bool names_root(const Error& error) const;

  ReportFile file_;
  bool beside_mpi_ = false;  // peers_ may be asked for news from another thread
  std::atomic<bool> done_ = false;
  std::thread guard_;
};

}  // namespace topotune::cli
