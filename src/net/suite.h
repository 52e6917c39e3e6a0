#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/host.h"
#include "measure/session.h"
#include "net/schedule.h"
#include "net/ucx.h"
#include "peers/peers.h"

namespace topotune::net {

enum class Plan { pair, all_pairs, screen };

struct SuiteOptions {
  Plan plan = Plan::pair;
  std::vector<Op> ops{Op::tag};
  std::vector<std::size_t> sizes{8, 64, 512, 4096, 32768, 262144, 1u << 20, 4u << 20};
  std::size_t pair_bytes = 1u << 20;  // of all_pairs and screen
  double seconds = 0.2;               // of one number
  int window = 32;                    // messages under way in each stream
  int streams = 1;                    // connections at the same time
  std::string tls, devices;
  std::string memory = "host";                    // or the GPU of this process: "GPU0"
  const TopotuneNetMemory* gpu_memory = nullptr;  // then not null; outlives the suite
  double limit_seconds = 60;
  std::function<void()> on_cell = [] {};  // the outcome has one more
};

// What was measured between two members.
struct Cell {
  int a = 0, b = 0;  // ranks; a begins
  Op op = Op::tag;
  std::size_t bytes = 0;
  double mean = 0;              // seconds of one way
  std::vector<double> samples;  // single ones
  Ucx::Stream one, both;        // one direction, both at once; between many hosts: a to b, b to a
  double one_receiver = 0, both_receiver = 0;  // CPUs of the receiving side, between many hosts
  std::optional<std::uint64_t> wrong;
  std::string lanes;
};

// A host of the job: the lowest rank on it stands for it.
struct Member {
  int rank = 0;
  std::string host;
  int machine = 0;  // equal for hosts that are namespaces of one machine
};

struct Outcome {
  std::vector<Member> members;
  std::vector<Cell> cells;
  std::vector<Cell> confirmed;  // links of suspects and those they were compared with, each turn
  std::vector<model::Judgement> judgements;
  std::string library;
};

// All processes of the job call it with the same options. What was measured so far is in `outcome` also after
// an error (another process is lost, UCX failed).
Result<void> run_suite(peers::Peers& peers, const SuiteOptions& options, const measure::Session& session,
                       const host::Host& host, Outcome& outcome);

std::vector<model::Measurement> measurements_of(const Outcome& outcome, const SuiteOptions& options);
std::vector<model::SizeModel> models_of(const Outcome& outcome);

// For people: the table of a pair, or the matrix of hosts.
std::string table_text(const Outcome& outcome, const SuiteOptions& options);

}  // namespace topotune::net
