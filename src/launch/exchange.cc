// PMIx: layouts of pmix_common.h (pmix_proc_t, pmix_value_t), of which only a string is used. PMI-1: lines of
// "cmd=NAME key=value ...\n" on the descriptor PMI_FD (MPICH's design document of the simple PMI wire
// protocol).
#include "launch/exchange.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "host/shared_library.h"

namespace topotune::launch {

namespace {

constexpr const char* kKey = "topotune-address";

std::string address_of(const peers::Listener& listener) {
  return fmt::format("{}:{}", reachable_names(), listener.port);
}

// Rank 0's address as the launcher told it.
Result<std::optional<peers::Meeting>> met(const std::string& address, const peers::Listener& listener) {
  auto m = peers::meeting_from(address);
  if (!m)
    return fail(Errc::malformed, "the launcher's exchange gave '{}' as the address of rank 0",
                printable(address));
  m->listener = listener.fd;
  return std::optional(*m);
}

// ---- PMIx

struct PmixProc {
  char nspace[256];
  std::uint32_t rank;
};
struct PmixValue {
  std::uint16_t type;
  union {
    char* string;
    char space[64];
  } data;
};
constexpr std::uint16_t kPmixString = 3;
constexpr std::uint8_t kPmixGlobal = 3;

struct Pmix {
  int (*init)(PmixProc*, void*, std::size_t) = nullptr;
  int (*put)(std::uint8_t, const char*, PmixValue*) = nullptr;
  int (*commit)() = nullptr;
  int (*get)(const PmixProc*, const char*, const void*, std::size_t, PmixValue**) = nullptr;
  int (*finalize)(const void*, std::size_t) = nullptr;
  const char* (*error_string)(int) = nullptr;
};

std::optional<Pmix> load_pmix() {
  const auto library = host::SharedLibrary::open("libpmix.so.2");
  if (!library) return std::nullopt;
  Pmix p;
  const auto find = [&](const char* name, auto& f) {
    f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(library->symbol(name));
    return f != nullptr;
  };
  if (!find("PMIx_Init", p.init) || !find("PMIx_Put", p.put) || !find("PMIx_Commit", p.commit) ||
      !find("PMIx_Get", p.get) || !find("PMIx_Finalize", p.finalize) ||
      !find("PMIx_Error_string", p.error_string))
    return std::nullopt;
  return p;
}

Result<void> pmix_ok(const Pmix& pmix, int rc, const char* what) {
  if (rc == 0) return {};
  const char* text = pmix.error_string(rc);
  return fail(Errc::io, "{}: {} ({})", what, text == nullptr ? "error" : text, rc);
}

// Rank 0's value: the server answers when rank 0 has committed it, so it is asked again until then.
Result<std::string> pmix_get(const Pmix& pmix, const PmixProc& me, double limit_seconds) {
  auto root = me;
  root.rank = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
  int rc = -1;
  while (std::chrono::steady_clock::now() < end) {
    PmixValue* value = nullptr;
    rc = pmix.get(&root, kKey, nullptr, 0, &value);
    if (rc == 0 && value != nullptr && value->type == kPmixString && value->data.string != nullptr)
      return std::string(value->data.string);
    ::usleep(20000);
  }
  auto ok = pmix_ok(pmix, rc == 0 ? -1 : rc, "PMIx_Get of rank 0's address");
  return tl::unexpected(ok.error());
}

Result<std::optional<peers::Meeting>> by_pmix(int rank, double limit_seconds) {
  const auto pmix = load_pmix();
  if (!pmix) return std::optional<peers::Meeting>();
  PmixProc me{};
  if (pmix->init(&me, nullptr, 0) != 0) return std::optional<peers::Meeting>();  // started by something else
  // A process that leaves without it counts as crashed.
  static const auto finalize = pmix->finalize;
  std::atexit([] { finalize(nullptr, 0); });
  peers::Listener listener;
  std::string address;
  Result<void> ok;
  if (rank == 0) {
    auto opened = peers::listen_anywhere();
    if (!opened) return tl::unexpected(opened.error());
    listener = *opened;
    address = address_of(listener);
    PmixValue value{};
    value.type = kPmixString;
    value.data.string = address.data();
    ok = pmix_ok(*pmix, pmix->put(kPmixGlobal, kKey, &value), "PMIx_Put");
    if (ok) ok = pmix_ok(*pmix, pmix->commit(), "PMIx_Commit");
  } else {
    auto got = pmix_get(*pmix, me, limit_seconds);
    if (got)
      address = *got;
    else
      ok = tl::unexpected(got.error());
  }
  if (!ok) return tl::unexpected(ok.error());
  return met(address, listener);
}

// ---- PMI-1

class PmiLine {
 public:
  PmiLine(int fd, double limit_seconds)
      : fd_(fd),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(limit_seconds))) {}

  // Sends a command and returns the answer's line, which begins with "cmd=ANSWER".
  Result<std::string> ask(const std::string& command, const std::string& answer) {
    const auto line = command + "\n";
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return fail(Errc::io, "PMI: {}", std::strerror(errno));
    std::string in;
    while (in.empty() || in.back() != '\n') {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
      pollfd p{fd_, POLLIN, 0};
      if (left.count() <= 0 || ::poll(&p, 1, static_cast<int>(left.count())) == 0)
        return fail(Errc::timed_out, "PMI: no answer to '{}' within the limit", command);
      char c = 0;
      if (::read(fd_, &c, 1) != 1) return fail(Errc::io, "PMI: the process manager closed the connection");
      in += c;
      if (in.size() > 65536) return fail(Errc::malformed, "PMI: an answer without an end");
    }
    in.pop_back();
    if (!in.starts_with("cmd=" + answer))
      return fail(Errc::malformed, "PMI: '{}' is no answer to '{}'", printable(in), command);
    return in;
  }

 private:
  int fd_;
  std::chrono::steady_clock::time_point end_;
};

// "cmd=x a=1 b=2", "b" -> "2".
std::string field_of(const std::string& line, const std::string& name) {
  for (const auto word : split(line, ' '))
    if (word.starts_with(name + "=")) return std::string(word.substr(name.size() + 1));
  return "";
}

Result<std::string> pmi_address(PmiLine& pmi, const std::string& mine) {
  auto ok = pmi.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
  if (ok) ok = pmi.ask("cmd=get_my_kvsname", "my_kvsname");
  if (!ok) return ok;
  const auto space = field_of(*ok, "kvsname");
  if (!mine.empty())
    ok = pmi.ask(fmt::format("cmd=put kvsname={} key={} value={}", space, kKey, mine), "put_result");
  if (ok) ok = pmi.ask("cmd=barrier_in", "barrier_out");
  if (ok) ok = pmi.ask(fmt::format("cmd=get kvsname={} key={}", space, kKey), "get_result");
  if (!ok) return ok;
  const auto address = field_of(*ok, "value");
  // Told, so that the process manager does not take the end of this process for a crash.
  if (auto ended = pmi.ask("cmd=finalize", "finalize_ack"); !ended) return ended;
  return address;
}

Result<std::optional<peers::Meeting>> by_pmi(int fd, int rank, double limit_seconds) {
  peers::Listener listener;
  std::string mine;
  if (rank == 0) {
    auto opened = peers::listen_anywhere();
    if (!opened) return tl::unexpected(opened.error());
    listener = *opened;
    mine = address_of(listener);
  }
  PmiLine pmi(fd, limit_seconds);
  const auto address = pmi_address(pmi, mine);
  if (!address) return tl::unexpected(address.error());
  return met(*address, listener);
}

}  // namespace

std::string reachable_names() {
  ifaddrs* list = nullptr;
  std::string out;
  if (::getifaddrs(&list) == 0) {
    for (const auto* i = list; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_LOOPBACK) != 0 ||
          (i->ifa_flags & IFF_UP) == 0)
        continue;
      sockaddr_in address{};
      std::memcpy(&address, i->ifa_addr, sizeof address);
      char text[INET_ADDRSTRLEN] = {};
      if (::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) == nullptr) continue;
      if (!out.empty()) out += ",";
      out += text;
    }
    ::freeifaddrs(list);
  }
  return out.empty() ? "127.0.0.1" : out;
}

Result<std::optional<peers::Meeting>> exchange_address(const Environment& environment, int rank,
                                                       double limit_seconds) {
  if (environment("PMIX_RANK")) {
    auto by = by_pmix(rank, limit_seconds);
    if (!by || *by) return by;
  }
  const auto fd = parse_int<int>(environment("PMI_FD").value_or(""));
  if (fd && *fd >= 0) return by_pmi(*fd, rank, limit_seconds);
  return std::optional<peers::Meeting>();
}

}  // namespace topotune::launch
