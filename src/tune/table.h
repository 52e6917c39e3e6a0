#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tune/hash.h"

// The tuning table (docs/formats/tuning-table.md). Standard library alone: the tuner plugin, which is loaded
// into other people's processes, is made of these files.
namespace topotune::tune {

// The first five have the numbers that NCCL gives them (ncclFunc_t); the others never reach a tuner plugin.
enum class Collective : std::uint8_t {
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all
};
inline constexpr int kTunedCollectives = 5;
inline constexpr int kCollectives = 6;

inline constexpr int kNcclChooses = -1;  // NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF
inline constexpr int kAlgorithms =
    7;  // Tree Ring CollNetDirect CollNetChain NVLS NVLSTree PAT, in NCCL's order
inline constexpr int kProtocols = 3;     // LL LL128 Simple
inline constexpr int kMaxChannels = 64;  // NCCL's MAXCHANNELS

struct Choice {
  int algorithm = kNcclChooses, protocol = kNcclChooses;  // both or none
  int channels = 0;                                       // 0: NCCL's number
  bool operator==(const Choice&) const = default;
};

// What is done with messages of from..to bytes (both included; NCCL's size: the larger of the send and the
// receive buffer) of communicators with exactly this many ranks and nodes.
struct Region {
  Collective collective = Collective::all_reduce;
  std::uint64_t from = 0, to = 0;
  std::uint32_t ranks = 0, nodes = 0;
  Choice choice;
  double ratio = 1, low = 1, high = 1;  // time of the default over time of the choice, with its 95 % interval
};

// A variable for the whole communicator: only the few names that settings_allowed() lists, numbers as values.
struct Setting {
  std::string name;
  int value = 0;
};
std::span<const std::string_view> settings_allowed();

// Samples that the decision of a size was made from, seconds each: kept so that anybody can judge it again.
struct Raw {
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;
  std::uint32_t ranks = 0, nodes = 0;
  bool tuned = false;  // false: the default's
  std::vector<double> seconds;
};

struct Table {
  std::string machine;  // fingerprint: "2x10de:2335", see machine.h
  std::string nccl;     // "2.28.9"
  std::string created;  // UTC
  std::string tool;
  std::vector<Setting> settings;
  std::vector<Region> regions;  // by collective, ranks, nodes, from; never overlapping
  std::vector<Raw> raw;
};

struct TableError {
  int line = 0;  // from 1; 0: of the whole file
  std::string text;
  std::string hint;
};

inline constexpr std::size_t kMaxTableBytes = 4 << 20;
inline constexpr std::size_t kMaxRegions = 4096;
inline constexpr std::size_t kMaxLine = 8192;

// Strict: an unknown word, a line too many, an overlap or a missing end refuses the whole text. Exactly one
// of the two is set.
struct ParsedTable {
  std::optional<Table> table;
  TableError error;
};
ParsedTable parse_table(std::string_view text);

// The text of a table; parse_table() reads the same back. Regions are sorted.
std::string write_table(const Table& table);

std::string hash_text(std::uint64_t hash);  // 16 hexadecimal digits

// In front of a hash in TOPOTUNE_TUNER_HASH: this node read it from its own file, which says nothing of
// others.
inline constexpr std::string_view kHashOfNode = "node:";
// Whether TOPOTUNE_TUNER_ACCEPT says that another "machine" or "nccl" than the table's is fine.
inline bool accepts(std::string_view list, std::string_view what) {
  return list.find(what) != std::string_view::npos;
}

const char* name_of(Collective collective);  // "all_reduce"
std::optional<Collective> collective_from(
    std::string_view name);                 // also "AllReduce", "allreduce", "all-reduce"
const char* algorithm_name(int algorithm);  // "Ring"; "*" for kNcclChooses
const char* protocol_name(int protocol);    // "LL128"
std::string text_of(const Choice& choice);  // "Ring/LL128 24 channels"

}  // namespace topotune::tune
