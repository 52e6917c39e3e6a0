#include "peers/tcp.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace topotune::peers {
namespace {

using testing::HasSubstr;
using Outcome = Result<std::vector<std::string>>;

// `size` processes as threads; `work` gets each one's Peers.
template <class Work>
std::vector<Outcome> job(int size, const Work& work, double limit = 10) {
  const auto listener = *listen_anywhere();
  std::vector<Outcome> out(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Meeting m;
      m.host = "127.0.0.1", m.port = listener.port, m.rank = rank, m.size = size, m.limit_seconds = limit;
      if (rank == 0) m.listener = listener.fd;
      work(m, out[static_cast<std::size_t>(rank)]);
    });
  }
  for (auto& thread : threads) thread.join();
  return out;
}

TEST(TcpPeers, EveryoneGetsWhatAllGave) {
  const auto out = job(5, [](const Meeting& m, Outcome& outcome) {
    auto peers = meet(m);
    ASSERT_TRUE(peers) << peers.error().text;
    EXPECT_EQ((*peers)->size(), 5);
    EXPECT_EQ((*peers)->at(3).pid, ::getpid());
    for (int i = 0; i < 50; ++i) {
      const std::string mine(static_cast<std::size_t>(i * 1000 * (m.rank + 1)),
                             static_cast<char>('a' + m.rank));
      outcome = (*peers)->exchange(mine, "test", 5);
      ASSERT_TRUE(outcome);
      ASSERT_EQ((*outcome)[4].size(), static_cast<std::size_t>(i) * 5000);
    }
  });
  for (const auto& o : out) {
    ASSERT_TRUE(o);
    EXPECT_EQ((*o)[2].front(), 'c');
  }
}

TEST(TcpPeers, AnyoneMayComeFirst) {
  job(3, [](Meeting m, Outcome&) {
    // Nobody listens yet: a new port, which rank 0 opens late.
    m.port = m.port > 60000 ? m.port - 3000 : m.port + 3000;
    if (m.rank == 0)
      ::close(m.listener), m.listener = -1, std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_TRUE(meet(m));
  });
}

TEST(TcpPeers, OneWhoDiesIsNamedToTheOthers) {
  const auto out = job(4, [](const Meeting& m, Outcome& outcome) {
    auto peers = meet(m);
    ASSERT_TRUE(peers);
    if (m.rank != 2) outcome = (*peers)->exchange("x", "times", 5);
  });
  for (const int rank : {0, 1, 3}) {
    ASSERT_FALSE(out[static_cast<std::size_t>(rank)]);
    EXPECT_THAT(out[static_cast<std::size_t>(rank)].error().text, HasSubstr("rank 2 on " + host_name()));
    EXPECT_THAT(out[static_cast<std::size_t>(rank)].error().text,
                HasSubstr("ended while all exchanged times"));
  }
}

TEST(TcpPeers, RankZeroDies) {
  const auto out = job(3, [](const Meeting& m, Outcome& outcome) {
    auto peers = meet(m);
    ASSERT_TRUE(peers);
    if (m.rank != 0) outcome = (*peers)->exchange("x", "times", 5);
  });
  EXPECT_THAT(out[1].error().text, HasSubstr("rank 0 on "));
  EXPECT_THAT(out[2].error().text, HasSubstr("ended"));
}

TEST(TcpPeers, OneWhoHangsIsNamedInTime) {
  const auto start = std::chrono::steady_clock::now();
  const auto out = job(3, [](const Meeting& m, Outcome& outcome) {
    auto peers = meet(m);
    ASSERT_TRUE(peers);
    if (m.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    if (m.rank != 1) outcome = (*peers)->exchange("x", "times", 0.5);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  EXPECT_THAT(out[0].error().text, HasSubstr("rank 1 on "));
  EXPECT_THAT(out[2].error().text, HasSubstr("did not send times within 0.5 s"));
}

TEST(TcpPeers, OneWhoNeverComes) {
  const auto listener = *listen_anywhere();
  Meeting m;
  m.listener = listener.fd, m.port = listener.port, m.size = 3, m.limit_seconds = 0.3;
  const auto peers = meet(m);
  ASSERT_FALSE(peers);
  EXPECT_THAT(peers.error().text, HasSubstr("rank 1, 2 did not come to"));
  EXPECT_THAT(peers.error().text, HasSubstr("(1 of 3 are here)"));
  EXPECT_THAT(peers.error().hint, HasSubstr("firewall"));
}

TEST(TcpPeers, NobodyListens) {
  Meeting m;
  m.host = "127.0.0.1", m.port = 1, m.rank = 2, m.size = 3, m.limit_seconds = 0.2;
  const auto peers = meet(m);
  ASSERT_FALSE(peers);
  EXPECT_THAT(peers.error().text,
              HasSubstr("did not reach rank 0 at 127.0.0.1:1 within 0.2 s: Connection refused"));
}

TEST(TcpPeers, AStopEndsTheMeetingAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto listener = *listen_anywhere();
  Meeting root;
  root.listener = listener.fd, root.port = listener.port, root.size = 2;
  root.stop = [&] { return seconds() > 0.2; };
  const auto alone = meet(root);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().text, "interrupted");
  Meeting guest;
  guest.host = "127.0.0.1", guest.port = 1, guest.rank = 1, guest.size = 2;
  guest.stop = [&] { return seconds() > 0.4; };
  const auto refused = meet(guest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text, "interrupted");
  EXPECT_LT(seconds(), 5);
}

TEST(TcpPeers, AHostThatIsNoneIsNotWaitedFor) {
  const auto start = std::chrono::steady_clock::now();
  Meeting m;
  m.host = "nohost.invalid", m.port = 1, m.rank = 1, m.size = 2, m.limit_seconds = 60;
  const auto peers = meet(m);
  ASSERT_FALSE(peers);
  EXPECT_THAT(peers.error().text, HasSubstr("does not find rank 0's host: nohost.invalid: "));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(TcpPeers, AnotherVersionIsRefusedInOneLine) {
  std::vector<std::string> texts(3);
  job(3, [&](Meeting m, Outcome&) {
    if (m.rank == 2) m.version = "9.9.9";
    const auto peers = meet(m);
    if (!peers) texts[static_cast<std::size_t>(m.rank)] = peers.error().text;
  });
  for (const auto rank : {0u, 2u}) {
    EXPECT_THAT(texts[rank], HasSubstr("rank 2 on "));
    EXPECT_THAT(texts[rank], HasSubstr("is topotune 9.9.9, rank 0 on "));
    EXPECT_EQ(texts[rank].find('\n'), std::string::npos);
  }
}

TEST(TcpPeers, TwoProcessesOfOneRank) {
  std::string text;
  job(3, [&](Meeting m, Outcome&) {
    if (m.rank == 2) m.rank = 1;
    const auto peers = meet(m);
    if (!peers && m.rank == 0) text = peers.error().text;
  });
  EXPECT_THAT(text, HasSubstr("two processes say that they are rank 1"));
}

TEST(TcpPeers, StrangersAreNotListenedTo) {
  const auto out = job(2, [](const Meeting& m, Outcome& outcome) {
    if (m.rank == 1) {
      for (const std::string noise : {"GET / HTTP/1.0\r\n\r\n", "\0\0\0\1hx", ""}) {
        const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in a{};
        a.sin_family = AF_INET, a.sin_port = htons(static_cast<std::uint16_t>(m.port));
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
        static_cast<void>(!::write(fd, noise.data(), noise.size()));
        ::close(fd);
      }
    }
    auto peers = meet(m);
    ASSERT_TRUE(peers) << peers.error().text;
    outcome = (*peers)->exchange("x", "test", 5);
  });
  EXPECT_TRUE(out[0]);
}

TEST(Meeting, Addresses) {
  EXPECT_EQ(meeting_from("node1:29400")->host, "node1");
  EXPECT_EQ(meeting_from("[::1]:80")->host, "::1");
  EXPECT_EQ(meeting_from("node1:29400")->port, 29400);
  for (const auto* bad : {"node1", "node1:", ":80", "a:0", "a:70000", "a:b"})
    EXPECT_FALSE(meeting_from(bad)) << bad;
}

}  // namespace
}  // namespace topotune::peers
