#include "net/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "host/live_host.h"

namespace topotune::net {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("counters" + std::to_string(::getpid()))) {}
  ~Folder() { fs::remove_all(path_); }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string root() const { return path_.string(); }

 private:
  fs::path path_;
};

TEST(Counters, OfTcpInterfacesAndPorts) {
  const Folder folder;
  folder.put("proc/net/snmp",
             "Ip: Forwarding OutSegs\nIp: 1 77\nTcp: RtoAlgorithm MaxConn OutSegs RetransSegs InErrs\n"
             "Tcp: 1 -1 1000 3 0\n");
  folder.put("sys/class/net/e0/statistics/rx_dropped", "5\n");
  folder.put("sys/class/net/e0/statistics/tx_errors", "no number\n");
  folder.put("sys/class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err", "7\n");
  folder.put("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "2\n");
  folder.put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "123456\n");
  EXPECT_THAT(read_counters(host::LiveHost(folder.root())),
              ElementsAre(Pair("e0.rx_dropped", 5), Pair("mlx5_0/1.packet_seq_err", 7),
                          Pair("mlx5_0/1.symbol_error", 2), Pair("tcp.InErrs", 0), Pair("tcp.OutSegs", 1000),
                          Pair("tcp.RetransSegs", 3)));
}

TEST(Counters, NothingToReadIsNothing) {
  const Folder folder;
  EXPECT_TRUE(read_counters(host::LiveHost(folder.root())).empty());
}

TEST(Counters, AddedOnlyWhereBothKnow) {
  EXPECT_THAT(added({{"a", 1}, {"b", 2}}, {{"b", 5}, {"c", 9}}), ElementsAre(Pair("b", 3)));
}

}  // namespace
}  // namespace topotune::net
