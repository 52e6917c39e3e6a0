#pragma once

#include <string>
#include <vector>

#include "coll/suite.h"
#include "peers/peers.h"

namespace topotune::coll {

// Who took part, for the heads of the tables.
struct Cast {
  std::string library;  // "NCCL 2.28.9"
  std::string command;
  struct Member {
    int rank = 0;
    std::string host;
    int pid = 0;
    std::string device, detail;
  };
  std::vector<Member> members;  // by rank
};

// The columns of nccl-tests 2.13 and later, byte for byte: size, count, type, redop, root, and time, algbw,
// busbw and wrong elements out of place and in place. Lines that begin with # are comments there too.
std::string nccl_tests_text(const std::vector<Cell>& cells, const SuiteOptions& options, const Cast& cast);

// A table for people.
std::string table_text(const std::vector<Cell>& cells, const SuiteOptions& options, const Cast& cast);

}  // namespace topotune::coll
