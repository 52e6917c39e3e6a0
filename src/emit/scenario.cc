#include "emit/scenario.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace topotune::emit {

namespace {

struct Cell {
  const char *advice, *reason;
};
struct Row {
  const char* scenario;
  Cell numa, algorithm, protocol, network, remarks;
};

// Sources: NCCL src/graph/tuning.cc (choice by size), paths.cc (levels), env guide; PyTorch elastic NUMA
// binding.
constexpr std::array<Row, 5> kRows{{
    {"up to 4 GPUs, one node, a model below 1e9 parameters, data parallel",
     {"each rank on the CPUs of its GPU's node",
      "host copies and proxy threads stay on one socket; all ranks on node 0 would drive half of the GPUs "
      "remotely"},
     {"NCCL_ALGO unset",
      "two to four ranks: ring and tree differ by microseconds, and NCCL models both for each size"},
     {"NCCL_PROTO unset",
      "gradients of a small model are small messages: NCCL takes LL and LL128 by itself below some 100 KiB; "
      "naming LL128 switches off the test that keeps it safe"},
     {"no variable",
      "nothing leaves the node; NCCL_IB_DISABLE=1 stays in files and hurts the first job on two nodes"},
     {"loader workers inside the rank's CPUs",
      "decoding images is CPU work: more workers than cores slow the proxy threads down"}},
    {"8 GPUs, one node, 7e9 parameters, sharded data parallel",
     {"each rank on its own node; never one mask for both sockets",
      "a mask of both nodes lets threads wander and takes back what binding gave"},
     {"NCCL_ALGO unset",
      "with NVSwitch the choice is NVLS for large all-reduces (475 instead of 365 GB/s on 8 H200): naming "
      "Tree or Ring loses it"},
     {"NCCL_PROTO unset",
      "the protocol follows from the message size, not from the model's: buckets of 25 MiB and more take "
      "Simple"},
     {"no variable", "one node"},
     {"check that P2P is not disabled", "NCCL_P2P_DISABLE=1 switches NVLink off as well"}},
    {"32 GPUs, 4 nodes, 70e9 parameters, tensor parallel inside the node",
     {"per node as above; a tensor parallel group inside one node",
      "its all-reduces come with every layer: NVLink is ten times the network"},
     {"NCCL_ALGO unset",
      "between nodes NCCL takes trees for small and rings or NVLSTree for large messages; \"Coll\" is no "
      "algorithm and ends the start since 2.24"},
     {"NCCL_PROTO unset", "LL everywhere costs half of the bandwidth"},
     {"InfiniBand or RoCE by verbs, rails of one number joined; NCCL_IB_HCA only where other ports exist",
      "NCCL needs no UCX; PXN and rails do the rest"},
     {"GPUDirect: /GDRDMA in the log",
      "without it every byte crosses host memory: a third to half of the bandwidth"}},
    {"64 GPUs, 8 nodes, mixture of experts",
     {"as above; the expert parallel group over as few nodes as hold it",
      "all-to-all between nodes is bounded by the NIC of each GPU"},
     {"NCCL_ALGO does nothing", "all-to-all is sends and receives, which have no algorithm"},
     {"NCCL_PROTO does nothing",
      "send and receive take LL below NCCL_P2P_LL_THRESHOLD (16 KiB) by themselves"},
     {"one lossless class: DSCP, PFC and ECN on NIC and switch",
      "many senders to one receiver: incast needs ECN thresholds from rate and cable, not a larger buffer by "
      "guess"},
     {"measure `topotune bench moe`",
      "volume follows from the routing of tokens, which changes with every step"}},
    {"GPUs behind PCIe only (no NVLink), any number",
     {"each rank on its own node",
      "all traffic crosses PCIe and perhaps the CPUs: remote binding costs twice"},
     {"NCCL_ALGO unset", "NCCL orders the ring by PCIe switches by itself"},
     {"NCCL_PROTO unset", "LL128 is not safe on every PCIe path: NCCL tests that unless it is named"},
     {"as above", "by number of nodes"},
     {"ACS off on the bridges between the GPUs, iommu=pt",
      "redirected peer traffic goes through the root complex: half the bandwidth, on some platforms hangs"}},
}};

constexpr std::array kColumns{"NUMA", "algorithm", "protocol", "network", "remarks"};

std::array<Cell, 5> cells(const Row& row) {
  return {row.numa, row.algorithm, row.protocol, row.network, row.remarks};
}

}  // namespace

std::string scenario_text() {
  std::string out =
      "Which settings for which job. The plan of a machine (topotune plan) works the same out from what is "
      "there.\n";
  for (const auto& row : kRows) {
    out += fmt::format("\n{}\n", row.scenario);
    const auto all = cells(row);
    for (std::size_t i = 0; i < all.size(); ++i)
      out += fmt::format("  {:<10} {}\n             because {}\n", kColumns[i], all[i].advice, all[i].reason);
  }
  return out;
}

std::string scenario_json() {
  nlohmann::ordered_json out;
  out["schema"] = "topotune.scenario/1";
  out["tool"] = std::string("topotune ") + TOPOTUNE_VERSION;
  out["rows"] = nlohmann::ordered_json::array();
  for (const auto& row : kRows) {
    nlohmann::ordered_json one{{"scenario", row.scenario}};
    const auto all = cells(row);
    for (std::size_t i = 0; i < all.size(); ++i)
      one[kColumns[i]] = {{"advice", all[i].advice}, {"reason", all[i].reason}};
    out["rows"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace topotune::emit
