// Messages are a length (4 bytes, network order), a kind (1 byte) and text. A process says hello
// ("topotune-peers 1\nVERSION\nRANK\nSIZE\nHOST\nPID") and gets `all` or `no`; then every exchange is one
// `mine` to rank 0 and one `all` or `no` back.
#include "peers/tcp.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/text.h"
#include "host/fd.h"

namespace topotune::peers {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kMine = 'm', kAll = 'a', kNo = 'n', kHello = 'h';
constexpr std::string_view kMagic = "topotune-peers 1";
constexpr std::size_t kMostBytes = 256u << 20;

// Over early where `stop` says so; then waits are short, so that it is asked.
struct Deadline {
  explicit Deadline(double seconds, std::function<bool()> stopped = nullptr)
      : end(Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6))),
        stop(std::move(stopped)) {}
  int left_ms() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return left < 0 ? 0 : static_cast<int>(std::min<std::int64_t>(left, stop ? 100 : 1'000'000));
  }
  bool over() const { return Clock::now() >= end || (stop && stop()); }
  double left_seconds() const { return std::chrono::duration<double>(end - Clock::now()).count(); }
  Clock::time_point end;
  std::function<bool()> stop;
};

// One end of a connection; what arrived of the next message is kept between calls.
struct Line {
  host::Fd fd;
  std::string in;
};

struct Message {
  char kind = 0;
  std::string text;
};

std::string framed(char kind, std::string_view text) {
  const auto length = ::htonl(static_cast<std::uint32_t>(text.size()));
  std::string out(reinterpret_cast<const char*>(&length), 4);
  out += kind;
  out += text;
  return out;
}

Result<void> send_all(int fd, std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return fail(Errc::io, "{}", std::strerror(errno));
    if (deadline.over()) return fail(Errc::timed_out, "takes nothing");
    pollfd p{fd, POLLOUT, 0};
    ::poll(&p, 1, deadline.left_ms());
  }
  return {};
}

// A whole message that is in `line.in`; nothing: not yet.
Result<std::optional<Message>> message_in(Line& line) {
  if (line.in.size() < 5) return std::optional<Message>();
  std::uint32_t length = 0;
  std::memcpy(&length, line.in.data(), 4);
  length = ::ntohl(length);
  if (length > kMostBytes) return fail(Errc::malformed, "it does not speak this program's language");
  if (line.in.size() < 5 + std::size_t{length}) return std::optional<Message>();
  Message m{line.in[4], line.in.substr(5, length)};
  line.in.erase(0, 5 + std::size_t{length});
  return std::optional<Message>(std::move(m));
}

// Reads what is there. io: the other end is closed.
Result<void> read_some(Line& line) {
  char block[65536];
  const auto got = ::recv(line.fd.get(), block, sizeof block, MSG_DONTWAIT);
  if (got > 0) return line.in.append(block, static_cast<std::size_t>(got)), Result<void>();
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  return fail(Errc::io, "ended");
}

Result<Message> receive(Line& line, const Deadline& deadline) {
  while (true) {
    auto m = message_in(line);
    if (!m) return tl::unexpected(m.error());
    if (*m) return std::move(**m);
    if (deadline.over()) return fail(Errc::timed_out, "said nothing");
    pollfd p{line.fd.get(), POLLIN, 0};
    ::poll(&p, 1, deadline.left_ms());
    if (auto ok = read_some(line); !ok) {
      auto rest = message_in(line);
      if (rest && *rest) return std::move(**rest);
      return tl::unexpected(ok.error());
    }
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += framed(kMine, part);
  return out;
}

Result<std::vector<std::string>> split_parts(std::string text, std::size_t expected) {
  Line line;
  line.in = std::move(text);
  std::vector<std::string> out;
  while (out.size() < expected) {
    auto m = message_in(line);
    if (!m || !*m) return fail(Errc::malformed, "rank 0 sent something that is no answer");
    out.push_back(std::move((*m)->text));
  }
  return out;
}

void quick(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
}

Error said_no(const std::string& text) {
  Error error{Errc::io, text, {}, {}, {}, {}};
  if (const auto newline = text.find('\n'); newline != std::string::npos) {
    error.hint = text.substr(newline + 1);
    error.text = text.substr(0, newline);
  }
  return error;
}

class Tcp : public Peers {
 public:
  int rank() const override { return rank_; }
  const std::vector<Peer>& all() const override { return all_; }
  std::string how() const override { return how_; }

  Result<std::vector<std::string>> exchange(const std::string& mine, const std::string& what,
                                            double limit_seconds) override {
    if (broken_) return tl::unexpected(*broken_);
    auto out = rank_ == 0 ? gather(mine, what, limit_seconds) : ask(mine, what, limit_seconds);
    if (!out) broken_ = out.error();
    return out;
  }

  void fail_all(const Error& error) override {
    if (broken_) return;
    broken_ = error;
    const auto mine = Error{
        error.code, fmt::format("{}: {}", all_[at_rank()].to_string(), error.text), {}, {}, {}, error.hint};
    static_cast<void>(refuse(mine, Deadline(2)));
  }

  std::optional<Error> news() override {
    if (broken_) return broken_;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      auto& line = lines_[i];
      if (!line.fd.good()) continue;
      const bool alive = read_some(line).has_value();
      const bool whole = line.in.size() >= 5;
      if (whole && line.in[4] == kNo) {
        auto m = message_in(line);
        if (m && *m) broken_ = said_no((*m)->text);
      } else if (!alive && !whole) {
        broken_ = Error{
            Errc::io, fmt::format("{} ended", all_[i].to_string()), {}, {}, {}, "its own output says why"};
      }
      if (!broken_) continue;
      if (rank_ == 0) static_cast<void>(refuse(*broken_, Deadline(1)));
      return broken_;
    }
    return std::nullopt;
  }

  // Rank 0: until all spoke. The first that is missing is told to all others.
  Result<std::vector<std::string>> gather(const std::string& mine, const std::string& what, double limit) {
    const Deadline deadline(limit);
    std::vector<std::string> out(all_.size());
    std::vector<bool> there(all_.size());
    out[0] = mine, there[0] = true;
    std::size_t missing = all_.size() - 1;
    while (missing > 0) {
      std::vector<pollfd> polls;
      for (std::size_t r = 1; r < all_.size(); ++r)
        if (!there[r]) polls.push_back({lines_[r].fd.get(), POLLIN, static_cast<short>(0)});
      bool progress = false;
      for (std::size_t r = 1; r < all_.size(); ++r) {
        if (there[r]) continue;
        const auto alive = read_some(lines_[r]);
        auto m = message_in(lines_[r]);
        if (m && *m && (*m)->kind == kMine) {
          out[r] = std::move((*m)->text);
          there[r] = progress = true;
          --missing;
        } else if (m && *m && (*m)->kind == kNo) {
          return refuse(said_no((*m)->text), deadline);
        } else if (!m || !alive) {
          return refuse(Error{Errc::io,
                              fmt::format("{} ended while all exchanged {}", all_[r].to_string(), what),
                              {},
                              {},
                              {},
                              "its own output says why"},
                        deadline);
        }
      }
      if (missing == 0 || progress) continue;
      if (deadline.over()) return refuse(late(there, what, limit), Deadline(1));
      ::poll(polls.data(), polls.size(), deadline.left_ms());
    }
    const auto answer = framed(kAll, joined(out));
    for (std::size_t r = 1; r < all_.size(); ++r) {
      if (auto ok = send_all(lines_[r].fd.get(), answer, deadline); !ok)
        return refuse(
            Error{Errc::io, fmt::format("{}: {}", all_[r].to_string(), ok.error().text), {}, {}, {}, {}},
            deadline);
    }
    return out;
  }

  Error late(const std::vector<bool>& there, const std::string& what, double limit) const {
    std::vector<std::string> names;
    for (std::size_t r = 0; r < all_.size(); ++r)
      if (!there[r]) names.push_back(all_[r].to_string());
    const auto more = names.size() > 3 ? fmt::format(" and {} more", names.size() - 3) : std::string();
    names.resize(std::min<std::size_t>(names.size(), 3));
    return {Errc::timed_out,
            fmt::format("{}{} did not send {} within {:g} s", fmt::join(names, ", "), more, what, limit),
            {},
            {},
            {},
            "it hangs, or its host is not reached; --limit SECONDS waits longer"};
  }

  tl::unexpected<Error> refuse(const Error& error, const Deadline& deadline) {
    const auto message = framed(kNo, error.hint.empty() ? error.text : error.text + "\n" + error.hint);
    for (auto& line : lines_)
      if (line.fd.good()) static_cast<void>(send_all(line.fd.get(), message, deadline));
    return tl::unexpected(error);
  }

  Result<std::vector<std::string>> ask(const std::string& mine, const std::string& what, double limit) {
    const Deadline deadline(limit + 2);  // rank 0 says first who is late
    auto& line = lines_[0];
    const auto sent = send_all(line.fd.get(), framed(kMine, mine), deadline);
    auto answer = sent ? receive(line, deadline) : Result<Message>(tl::unexpected(sent.error()));
    if (!answer) {
      const auto code = answer.error().code;
      return fail(code, "{} {} while all exchanged {}", all_[0].to_string(),
                  code == Errc::timed_out ? fmt::format("did not answer within {:g} s", limit) : "ended",
                  what);
    }
    if (answer->kind == kNo) return tl::unexpected(said_no(answer->text));
    return split_parts(std::move(answer->text), all_.size());
  }

  std::size_t at_rank() const { return static_cast<std::size_t>(rank_); }

  int rank_ = 0;
  std::vector<Peer> all_;
  std::vector<Line> lines_;  // rank 0: by rank; others: [0] to rank 0
  std::string how_;
  std::optional<Error> broken_;
};

std::string version_of(const Meeting& meeting) {
  return meeting.version.empty() ? TOPOTUNE_VERSION : meeting.version;
}

std::string hello_of(const Meeting& meeting) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", kMagic, version_of(meeting), meeting.rank, meeting.size,
                     host_name(), ::getpid());
}

struct Hello {
  std::string version;
  int size = 0;
  Peer peer;
};

std::optional<Hello> hello_from(const std::string& text) {
  const auto lines = split(text, '\n');
  if (lines.size() != 6 || lines[0] != kMagic) return std::nullopt;
  const auto rank = parse_int<int>(lines[2]), size = parse_int<int>(lines[3]), pid = parse_int<int>(lines[5]);
  if (!rank || !size || !pid) return std::nullopt;
  return Hello{std::string(lines[1]), *size, {*rank, printable(std::string(lines[4])), *pid}};
}

// Why the process cannot take part; "": it can.
std::string objection(const Hello& hello, const Meeting& meeting, const std::vector<Line>& lines) {
  const auto who = hello.peer.to_string();
  if (hello.version != version_of(meeting))
    return fmt::format("{} is topotune {}, rank 0 on {} is topotune {}\ninstall one version on all hosts",
                       who, printable(hello.version), host_name(), version_of(meeting));
  if (hello.size != meeting.size)
    return fmt::format("{} says that there are {} ranks, rank 0 on {} says {}", who, hello.size, host_name(),
                       meeting.size);
  if (hello.peer.rank < 1 || hello.peer.rank >= meeting.size)
    return fmt::format("{} is none of the ranks 1 to {}", who, meeting.size - 1);
  if (lines[static_cast<std::size_t>(hello.peer.rank)].fd.get() >= 0)
    return fmt::format("two processes say that they are rank {}; the second is {}", hello.peer.rank, who);
  return "";
}

std::string peers_text(const std::vector<Peer>& all) {
  std::string out;
  for (const auto& p : all) out += fmt::format("{}\n{}\n{}\n", p.rank, p.host, p.pid);
  return out;
}

std::optional<std::vector<Peer>> peers_from(const std::string& text) {
  const auto lines = split(text, '\n');
  std::vector<Peer> out;
  for (std::size_t i = 0; i + 2 < lines.size(); i += 3) {
    const auto rank = parse_int<int>(lines[i]), pid = parse_int<int>(lines[i + 2]);
    if (!rank || !pid || *rank != static_cast<int>(out.size())) return std::nullopt;
    out.push_back({*rank, std::string(lines[i + 1]), *pid});
  }
  return out;
}

std::string address_text(const Meeting& m) {
  return fmt::format("{}:{}", m.host.empty() ? host_name() : m.host, m.port);
}

Result<int> listening_socket(const std::string& host, int port) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_UNSPEC, hints.ai_socktype = SOCK_STREAM, hints.ai_flags = AI_PASSIVE;
  const int rc =
      ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0) return fail(Errc::not_found, "{}: {}", host, ::gai_strerror(rc));
  int fd = -1, error = EADDRNOTAVAIL;
  for (const auto* a = list; a != nullptr && fd < 0; a = a->ai_next) {
    fd = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    const int one = 1;
    if (fd >= 0) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd >= 0 && ::bind(fd, a->ai_addr, a->ai_addrlen) == 0 && ::listen(fd, 1024) == 0) break;
    error = errno;
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  ::freeaddrinfo(list);
  if (fd < 0) return fail(Errc::io, "rank 0 cannot listen on {}:{}: {}", host, port, std::strerror(error));
  return fd;
}

// A name that is not this host's own address: listen on all addresses.
Result<int> listen_at(const Meeting& m) {
  auto fd = listening_socket(m.host, m.port);
  if (fd) return fd;
  auto any = listening_socket("", m.port);
  return any ? any : fd;
}

Result<std::unique_ptr<Peers>> meet_as_root(const Meeting& m) {
  auto fd = m.listener >= 0 ? Result<int>(m.listener) : listen_at(m);
  if (!fd) return tl::unexpected(fd.error());
  const host::Fd listener(*fd);
  auto tcp = std::make_unique<Tcp>();
  tcp->how_ = "TCP " + address_text(m);
  tcp->all_.resize(static_cast<std::size_t>(m.size));
  tcp->lines_.resize(static_cast<std::size_t>(m.size));
  tcp->all_[0] = {0, host_name(), static_cast<int>(::getpid())};
  const Deadline deadline(m.limit_seconds, m.stop);
  std::vector<Line> strangers;  // connected, hello not yet whole
  int missing = m.size - 1;
  while (missing > 0) {
    std::vector<pollfd> polls{{listener.get(), POLLIN, 0}};
    for (const auto& line : strangers) polls.push_back({line.fd.get(), POLLIN, 0});
    if (deadline.over()) break;
    ::poll(polls.data(), polls.size(), deadline.left_ms());
    if ((polls[0].revents & POLLIN) != 0) {
      const int peer = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (peer >= 0) quick(peer), strangers.push_back({host::Fd(peer), {}});
    }
    for (std::size_t i = 0; i < strangers.size();) {
      const auto alive = read_some(strangers[i]);
      auto message = message_in(strangers[i]);
      const bool whole = message && *message;
      if (!whole && alive && message) {
        ++i;
        continue;
      }
      const auto hello = whole ? hello_from((*message)->text) : std::nullopt;
      Line line = std::move(strangers[i]);
      strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i));
      if (!hello) continue;  // something that looks for open ports
      if (const auto why = objection(*hello, m, tcp->lines_); !why.empty()) {
        static_cast<void>(send_all(line.fd.get(), framed(kNo, why), Deadline(1)));
        return tcp->refuse(said_no(why), Deadline(1));
      }
      const auto rank = static_cast<std::size_t>(hello->peer.rank);
      tcp->all_[rank] = hello->peer;
      tcp->lines_[rank] = std::move(line);
      --missing;
    }
  }
  if (missing > 0) {
    std::vector<std::string> ranks;
    for (int r = 1; r < m.size; ++r)
      if (tcp->lines_[static_cast<std::size_t>(r)].fd.get() < 0) ranks.push_back(std::to_string(r));
    const auto all = fmt::format(
        "{}{}",
        fmt::join(ranks.begin(), ranks.begin() + std::min<std::ptrdiff_t>(8, std::ssize(ranks)), ", "),
        ranks.size() > 8 ? fmt::format(" and {} more", ranks.size() - 8) : "");
    return tcp->refuse(
        Error{Errc::timed_out,
              fmt::format("rank {} did not come to {} on {} within {:g} s ({} of {} are here)", all,
                          address_text(m), host_name(), m.limit_seconds, m.size - missing, m.size),
              {},
              {},
              {},
              "is it started, does it have this address, and does a firewall let TCP through? --limit waits "
              "longer"},
        Deadline(1));
  }
  const auto everybody = framed(kAll, peers_text(tcp->all_));
  for (std::size_t r = 1; r < tcp->lines_.size(); ++r) {
    if (auto ok = send_all(tcp->lines_[r].fd.get(), everybody, Deadline(5)); !ok)
      return tcp->refuse(Error{Errc::io, tcp->all_[r].to_string() + " ended at once", {}, {}, {}, {}},
                         Deadline(1));
  }
  return std::unique_ptr<Peers>(std::move(tcp));
}

// One attempt on one name.
Result<host::Fd> try_connect(const std::string& name, int port, const Deadline& deadline) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_family = AF_UNSPEC, hints.ai_socktype = SOCK_STREAM;
  const int rc = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (rc != 0) return fail(Errc::not_found, "{}: {}", printable(name), ::gai_strerror(rc));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  int error = 0;
  for (const auto* a = list; a != nullptr; a = a->ai_next) {
    host::Fd fd(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol));
    error = ::connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd p{fd.get(), POLLOUT, 0};
      socklen_t size = sizeof error;
      error = ETIMEDOUT;
      const Deadline attempt(std::min(deadline.left_seconds(), 3.0), deadline.stop);
      int ready = 0;
      while (ready <= 0 && !attempt.over()) ready = ::poll(&p, 1, attempt.left_ms());
      if (ready == 1) ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) continue;
    quick(fd.get());
    return fd;
  }
  return fail(Errc::io, "{}", std::strerror(error));
}

// A connection, tried until the deadline: rank 0 may start later.
Result<host::Fd> connect_to(const Meeting& m, const Deadline& deadline) {
  constexpr double kNameSeconds = 5;  // that a name server may need to know a host that just started
  const Deadline names(kNameSeconds);
  std::string why;
  do {
    bool known = false;
    for (const auto name : split(m.host, ',')) {
      auto fd = try_connect(std::string(name), m.port, deadline);
      if (fd) return fd;
      why = fd.error().text;
      known = known || fd.error().code != Errc::not_found;
      if (deadline.over()) break;
    }
    if (!known && names.over())
      return tl::unexpected(
          Error{Errc::not_found,
                fmt::format("rank {} on {} does not find rank 0's host: {}", m.rank, host_name(), why),
                {},
                {},
                {},
                "give a name or an address that this host knows"});
    std::this_thread::sleep_for(std::chrono::milliseconds(known ? 50 : 500));
  } while (!deadline.over());
  return tl::unexpected(Error{
      Errc::timed_out,
      fmt::format("rank {} on {} did not reach rank 0 at {} within {:g} s: {}", m.rank, host_name(),
                  address_text(m), m.limit_seconds, why),
      {},
      {},
      {},
      "is rank 0 started, is this its address, and does a firewall let TCP through? --limit waits longer"});
}

Result<std::unique_ptr<Peers>> meet_as_guest(const Meeting& m) {
  const Deadline deadline(m.limit_seconds, m.stop);
  auto fd = connect_to(m, deadline);
  if (!fd) return tl::unexpected(fd.error());
  auto tcp = std::make_unique<Tcp>();
  tcp->rank_ = m.rank;
  tcp->how_ = "TCP " + address_text(m);
  tcp->lines_.push_back({std::move(*fd), {}});
  const auto said = send_all(tcp->lines_[0].fd.get(), framed(kHello, hello_of(m)), deadline);
  auto answer = said ? receive(tcp->lines_[0], Deadline(deadline.left_seconds() + 2, m.stop))
                     : Result<Message>(tl::unexpected(said.error()));
  if (!answer)
    return fail(answer.error().code, "rank {} on {}: rank 0 at {} {}", m.rank, host_name(), address_text(m),
                answer.error().code == Errc::timed_out
                    ? fmt::format("did not gather all {} ranks within {:g} s", m.size, m.limit_seconds)
                : answer.error().code == Errc::malformed ? "does not speak this program's language"
                                                         : "ended");
  if (answer->kind == kNo) return tl::unexpected(said_no(answer->text));
  auto all = peers_from(answer->text);
  if (!all || static_cast<int>(all->size()) != m.size)
    return fail(Errc::malformed, "rank 0 at {} does not speak this program's language", address_text(m));
  tcp->all_ = std::move(*all);
  return std::unique_ptr<Peers>(std::move(tcp));
}

}  // namespace

Result<Meeting> meeting_from(const std::string& address) {
  const auto colon = address.rfind(':');
  Meeting m;
  const auto port = colon == std::string::npos ? std::nullopt : parse_int<int>(address.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 || colon == 0)
    return tl::unexpected(Error{Errc::usage,
                                fmt::format("'{}' is no HOST:PORT", printable(address)),
                                {},
                                {},
                                {},
                                "the address of rank 0, such as node1:29400"});
  m.host = address.substr(0, colon);
  if (m.host.size() > 2 && m.host.front() == '[' && m.host.back() == ']')
    m.host = m.host.substr(1, m.host.size() - 2);
  m.port = *port;
  return m;
}

Result<Listener> listen_anywhere() {
  auto fd = listening_socket("", 0);
  if (!fd) return tl::unexpected(fd.error());
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(*fd, reinterpret_cast<sockaddr*>(&address), &size);
  const auto port = address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                                  : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return Listener{*fd, ::ntohs(port)};
}

Result<std::unique_ptr<Peers>> meet(const Meeting& meeting) {
  if (meeting.size < 1 || meeting.rank < 0 || meeting.rank >= meeting.size)
    return fail(Errc::usage, "rank {} of {} is none", meeting.rank, meeting.size);
  auto met = meeting.rank == 0 ? meet_as_root(meeting) : meet_as_guest(meeting);
  if (!met && meeting.stop && meeting.stop()) return fail(Errc::io, "interrupted");
  return met;
}

}  // namespace topotune::peers
