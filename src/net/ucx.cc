#include "net/ucx.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "host/modules.h"

namespace topotune::net {

namespace {

constexpr std::array<const char*, 4> kNames{"tag", "am", "put", "get"};

using Text = std::array<char, 512>;

Error with_hint(tl::unexpected<Error> failure, std::string hint) {
  failure.value().hint = std::move(hint);
  return failure.value();
}

tl::unexpected<Error> failed(const Text& text) { return fail(Errc::io, "UCX: {}", text.data()); }

}  // namespace

const std::vector<Op>& all_ops() {
  static const std::vector<Op> ops{Op::tag, Op::active_message, Op::put, Op::get};
  return ops;
}

const char* name_of(Op op) { return kNames[static_cast<std::size_t>(op)]; }

std::optional<Op> op_from(const std::string& name) {
  for (const auto op : all_ops())
    if (name == name_of(op)) return op;
  return std::nullopt;
}

Result<std::unique_ptr<Ucx>> Ucx::open(const UcxOptions& options, int me) {
  // What UCX complains of belongs to people, not into the document.
  ::setenv("UCX_LOG_FILE", "stderr", 0);
  const auto library = host::open_module("libtopotune-ucx.so");
  if (!library) return tl::unexpected(library.error());
  const auto entry = reinterpret_cast<const TopotuneNet* (*)()>(library->symbol("topotune_net"));
  const auto* module = entry == nullptr ? nullptr : entry();
  if (module == nullptr || module->version != kNetModuleVersion)
    return fail(Errc::unsupported, "libtopotune-ucx.so beside the program is of another version of it");
  std::array<char, 4096> resources{};
  module->resources(resources.data(), resources.size());
  if (const auto absent = absent_transport(options.tls, resources.data())) {
    return tl::unexpected(with_hint(
        fail(Errc::unsupported, "UCX has no transport '{}' here; it has {}", printable(*absent),
             resources.data()),
        "rc, dc and ud need an InfiniBand or RoCE device and a UCX built for it; ucx_info -d lists them"));
  }
  Text error{};
  const TopotuneNetSetup setup{options.tls.c_str(), options.devices.c_str(), options.bytes, options.streams,
                               options.memory};
  if (module->open(&setup, error.data(), error.size()) != 0) {
    module->close();
    const std::string text = error.data();
    const auto code = text.find("knows no GPU memory") == std::string::npos ? Errc::io : Errc::unsupported;
    return tl::unexpected(
        with_hint(fail(code, "UCX: {}", text),
                  fmt::format("UCX has {} here; --tls and --devices choose", resources.data())));
  }
  return std::unique_ptr<Ucx>(new Ucx(*module, me, options.limit_seconds));
}

Ucx::~Ucx() { module_.close(); }

std::string Ucx::library() const {
  Text text{};
  module_.library(text.data(), text.size());
  return fmt::format("UCX {}", text.data());
}

Result<std::string> Ucx::address() const {
  const void* data = nullptr;
  std::size_t size = 0;
  Text error{};
  if (module_.address(&data, &size, error.data(), error.size()) != 0) return failed(error);
  return std::string(static_cast<const char*>(data), size);
}

Result<void> Ucx::connect(int peer, const std::string& address) {
  Text error{};
  if (module_.connect(peer, address.data(), address.size(), error.data(), error.size()) != 0)
    return failed(error);
  return {};
}

std::string Ucx::lanes(int peer) const {
  std::array<char, 16384> text{};
  module_.describe(peer, text.data(), text.size());
  return lanes_in(text.data());
}

Result<Ucx::Ping> Ucx::ping(int peer, Op op, std::size_t bytes, int rounds, double seconds, bool initiator) {
  Ping out;
  out.samples.resize(static_cast<std::size_t>(rounds));
  Text error{};
  int made = 0;
  if (module_.ping(peer, me_, static_cast<int>(op), bytes, rounds, seconds, initiator ? 1 : 0, limit_,
                   &out.mean, out.samples.data(), &made, error.data(), error.size()) != 0)
    return failed(error);
  out.samples.resize(static_cast<std::size_t>(made));
  return out;
}

Result<Ucx::Stream> Ucx::stream(int peer, Op op, std::size_t bytes, double seconds, int window, bool both,
                                bool initiator) {
  TopotuneNetStream got{};
  Text error{};
  if (module_.stream(peer, me_, static_cast<int>(op), bytes, seconds, window, both ? 1 : 0, initiator ? 1 : 0,
                     limit_, &got, error.data(), error.size()) != 0)
    return failed(error);
  if (got.seconds <= 0) return Stream{};
  const double messages = static_cast<double>(got.messages);
  return Stream{messages * static_cast<double>(bytes) / got.seconds * 1e-9, messages / got.seconds,
                got.cpu_seconds / got.seconds};
}

Result<std::uint64_t> Ucx::verify(int peer, Op op, std::size_t bytes, std::uint32_t seed, bool initiator) {
  std::uint64_t wrong = 0;
  Text error{};
  if (module_.verify(peer, me_, static_cast<int>(op), bytes, seed, initiator ? 1 : 0, limit_, &wrong,
                     error.data(), error.size()) != 0)
    return failed(error);
  return wrong;
}

namespace {

// Names that stand for several (UCX's ucp_context.c documents them in UCX_TLS).
bool answers(std::string_view name, std::string_view transport) {
  static const std::vector<std::pair<std::string_view, std::vector<std::string_view>>> aliases{
      {"shm", {"posix", "sysv", "xpmem", "cma", "knem"}},
      {"sm", {"posix", "sysv", "xpmem", "cma", "knem"}},
      {"mm", {"posix", "sysv", "xpmem"}},
      {"ib", {"rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5"}},
      {"rc", {"rc_verbs", "rc_mlx5"}},
      {"rc_v", {"rc_verbs"}},
      {"rc_x", {"rc_mlx5"}},
      {"ud", {"ud_verbs", "ud_mlx5"}},
      {"ud_v", {"ud_verbs"}},
      {"ud_x", {"ud_mlx5"}},
      {"dc", {"dc_mlx5"}},
      {"dc_x", {"dc_mlx5"}},
      {"cuda", {"cuda_copy", "cuda_ipc", "gdr_copy"}},
      {"rocm", {"rocm_copy", "rocm_ipc", "rocm_gdr"}}};
  const auto alias = std::ranges::find(aliases, name, [](const auto& a) { return a.first; });
  return name == transport ||
         (alias != aliases.end() && std::ranges::find(alias->second, transport) != alias->second.end());
}

}  // namespace

std::optional<std::string> absent_transport(const std::string& tls, const std::string& resources) {
  if (tls.starts_with('^') || resources.empty()) return std::nullopt;
  for (auto name : split(tls, ',')) {
    if (const auto colon = name.find(':'); colon != std::string_view::npos) name = name.substr(0, colon);
    if (name.starts_with('\\')) name.remove_prefix(1);
    if (name.empty() || name == "all") continue;
    const auto words = split(resources, ' ');
    const auto here = std::ranges::any_of(
        words, [&](std::string_view word) { return answers(name, word.substr(0, word.find('/'))); });
    if (!here) return std::string(name);
  }
  return std::nullopt;
}

// Lines such as "#                 lane[0]:  5:tcp/e0.0 md[2] -> md[2]/tcp/sysdev[255] am am_bw#0".
std::string lanes_in(const std::string& text) {
  std::string out;
  std::set<std::string> seen;
  for (const auto line : split(text, '\n')) {
    const auto lane = line.find("lane[");
    const auto colon = lane == std::string::npos ? lane : line.find(':', lane);
    if (colon == std::string::npos) continue;
    const auto number = line.find(':', colon + 1);
    if (number == std::string::npos) continue;
    auto name = std::string(line.substr(number + 1, line.find(' ', number + 1) - number - 1));
    if (const auto dot = name.rfind('.'); dot != std::string::npos) name.resize(dot);
    if (!seen.insert(name).second) continue;
    out += out.empty() ? name : " " + name;
  }
  return out;
}

}  // namespace topotune::net
