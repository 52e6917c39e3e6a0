#include "mpi/backend.h"

#include <algorithm>
#include <array>
#include <climits>

#include "base/text.h"
#include "coll/check.h"
#include "host/modules.h"
#include "measure/runner.h"
#include "mpi/module_api.h"

namespace topotune::mpi {

namespace {

using coll::Mode;
using coll::Op;
using coll::Question;

constexpr std::uint32_t kSeed = 0x7070u;

// Half and quarter precision have no MPI type: they can be moved, not reduced.
bool has_mpi_type(coll::Type type) {
  switch (type) {
    case coll::Type::float16:
    case coll::Type::bfloat16:
    case coll::Type::float8e4m3:
    case coll::Type::float8e5m2:
      return false;
    default:
      return true;
  }
}

// Fills the buffers, lets `once` run the operation and compares what arrived.
template <class Once>
Result<coll::Checked> compared(const Question& q, const TopotuneMpi& module, std::vector<std::byte>& send,
                               std::vector<std::byte>& recv, const Once& once) {
  const int ranks = module.size(), me = module.rank();
  const auto counts = coll::counts_of(q, ranks);
  const auto element = coll::size_of(q.type), rank = static_cast<std::size_t>(me);
  std::fill(recv.begin(), recv.begin() + static_cast<std::ptrdiff_t>(coll::shown_bytes(q, ranks)),
            std::byte{0xde});
  coll::fill_on_host(q.in_place ? recv.data() + rank * counts.send_step * element : send.data(),
                     coll::sent_by(q, ranks, me, kSeed));
  if (auto ok = once(); !ok) return tl::unexpected(ok.error());
  const auto* const base = recv.data() + (q.in_place ? rank * counts.recv_step * element : 0);
  coll::Checked checked;
  for (const auto& arrival : coll::arrivals_at(q, ranks, me, kSeed)) {
    const auto found = coll::check_on_host(base + arrival.offset * element, arrival.slice);
    checked.checked += arrival.slice.count;
    checked.wrong += found.wrong;
    if (found.wrong > 0 && checked.first.empty())
      checked.first = coll::wrong_text(me, arrival, counts.recv, found.first, found.have);
  }
  return checked;
}

class Backend : public coll::Backend {
 public:
  Backend(const TopotuneMpi& module, std::size_t buffer_bytes)
      : module_(module), send_(buffer_bytes + 256), recv_(buffer_bytes + 256) {
    std::array<char, 512> text{};
    module_.library(text.data(), text.size());
    name_ = text.data();
    local_.push_back({module_.rank(), "host memory", ""});
  }
  ~Backend() override { module_.finish(); }

  int ranks() const override { return module_.size(); }
  const std::vector<coll::LocalRank>& local() const override { return local_; }
  std::string name() const override { return name_; }

  std::optional<std::string> cannot(const Question& q, Mode mode) const override {
    if (mode == Mode::graph) return std::string("MPI has no CUDA graphs");
    if (coll::shown_bytes(q, ranks()) == 0)
      return fmt::format("{} bytes are less than 16 for each of {} ranks", q.bytes, ranks());
    if (coll::counts_of(q, ranks()).argument > INT_MAX)
      return std::string("MPI counts up to 2^31 - 1 elements");
    if (!coll::reduces(q.op)) return std::nullopt;
    if (q.reduction == coll::Reduction::avg) return std::string("MPI has no average");
    if (!has_mpi_type(q.type)) return fmt::format("MPI has no {}", coll::name_of(q.type));
    return std::nullopt;
  }

  Result<coll::Timed> run(const Question& q, int iterations, Mode mode, int /*launches*/ = 0) override {
    if (const auto why = cannot(q, mode)) return fail(Errc::unsupported, "{}", *why);
    coll::Timed timed;
    std::vector<double> each;
    const double start = measure::monotonic_seconds();
    double before = start;
    for (int i = 0; i < iterations; ++i) {
      if (auto ok = once(q, i); !ok) return tl::unexpected(ok.error());
      if (mode == Mode::back_to_back) continue;
      const double now = measure::monotonic_seconds();
      each.push_back(now - before);
      before = now;
    }
    timed.seconds = (measure::monotonic_seconds() - start) / iterations;
    timed.launch_seconds = timed.seconds;  // calls return when they are done
    if (mode != Mode::back_to_back) timed.each.push_back(std::move(each));
    return timed;
  }

  Result<coll::Checked> verify(const Question& q, Mode mode) override {
    if (const auto why = cannot(q, mode)) return fail(Errc::unsupported, "{}", *why);
    if (q.in_place && q.op == Op::send_recv)
      return fail(Errc::unsupported, "sendrecv in place has no defined result");
    return compared(q, module_, send_, recv_, [&] { return once(q, 0); });
  }

 private:
  Result<void> once(const Question& q, int iteration) {
    const auto counts = coll::counts_of(q, ranks());
    const auto shown = coll::shown_bytes(q, ranks());
    const auto places = std::max<std::size_t>((recv_.size() - 256) / std::max<std::size_t>(shown, 1), 1);
    const auto shift = shown * (static_cast<std::size_t>(iteration) % places);
    std::array<char, 512> error{};
    const int rc =
        module_.run(static_cast<int>(q.op), static_cast<int>(q.type), static_cast<int>(q.reduction), q.root,
                    send_.data() + shift, recv_.data() + shift, counts.argument, q.in_place ? 1 : 0,
                    error.data(), error.size());
    if (rc == 0) return {};
    return fail(Errc::io, "{} of {} bytes on rank {}: {}", coll::nccl_name_of(q.op), q.bytes, module_.rank(),
                error.data());
  }

  const TopotuneMpi& module_;
  std::vector<std::byte> send_, recv_;
  std::string name_;
  std::vector<coll::LocalRank> local_;
};

// A collective of one stream, by MPI's calls that do not wait.
class MpiLane : public coll::Lane {
 public:
  MpiLane(const TopotuneMpi& module, int stream, const LaneRequest& request)
      : module_(module), stream_(stream), op_(request.op), recv_(request.bytes + 256) {
    if (op_ != Op::broadcast) send_.resize(request.bytes + 256);
  }

  Result<void> start(std::size_t bytes) override {
    const auto q = question(bytes);
    const auto counts = coll::counts_of(q, module_.size());
    std::array<char, 512> error{};
    const int rc = module_.begin(stream_, static_cast<int>(q.op), static_cast<int>(q.type),
                                 static_cast<int>(q.reduction), q.root, send_.data(), recv_.data(),
                                 counts.argument, error.data(), error.size());
    return rc == 0 ? Result<void>() : said(error.data());
  }
  Result<bool> ended() override {
    std::array<char, 512> error{};
    int done = 0;
    if (module_.test(stream_, &done, error.data(), error.size()) != 0) return said(error.data());
    return done != 0;
  }
  Result<coll::Checked> verify(std::size_t bytes) override {
    return compared(question(bytes), module_, send_, recv_, [&]() -> Result<void> {
      auto ok = start(bytes);
      while (ok) {
        const auto done = ended();
        if (!done) return tl::unexpected(done.error());
        if (*done) break;
      }
      return ok;
    });
  }

 private:
  Question question(std::size_t bytes) const {
    Question q;
    q.op = op_, q.bytes = bytes, q.in_place = op_ == Op::broadcast;
    return q;
  }
  tl::unexpected<Error> said(const char* text) const {
    return fail(Errc::io, "{} on rank {}: {}", coll::nccl_name_of(op_), module_.rank(), text);
  }

  const TopotuneMpi& module_;
  int stream_;
  Op op_;
  std::vector<std::byte> send_, recv_;
};

class MpiPeers : public peers::Peers {
 public:
  explicit MpiPeers(const TopotuneMpi& module) : module_(module) {}
  int rank() const override { return module_.rank(); }
  const std::vector<peers::Peer>& all() const override { return all_; }
  std::string how() const override { return "MPI"; }

  Result<std::vector<std::string>> exchange(const std::string& mine, const std::string& what,
                                            double) override {
    std::vector<std::size_t> sizes(static_cast<std::size_t>(module_.size()));
    std::array<char, 512> error{};
    char* all = nullptr;
    if (module_.gather(mine.data(), mine.size(), &all, sizes.data(), error.data(), error.size()) != 0)
      return fail(Errc::io, "while all exchanged {}: {}", what, error.data());
    std::vector<std::string> out;
    const char* at = all;
    for (const auto size : sizes) {
      out.emplace_back(at, size);
      at += size;
    }
    module_.release(all);
    return out;
  }
  // MPI has no word for it: all processes are ended by the launcher when this one ends with an error.
  void fail_all(const Error&) override {}
  std::optional<Error> news() override { return std::nullopt; }

  Result<void> introduce() {
    const auto mine = fmt::format("{} {} {}", TOPOTUNE_VERSION, ::getpid(), peers::host_name());
    const auto names = exchange(mine, "names of hosts", 0);
    if (!names) return tl::unexpected(names.error());
    std::vector<std::string> versions;
    for (const auto& name : *names) {
      const auto parts = words(name);
      if (parts.size() != 3)
        return fail(Errc::unsupported, "a rank of this job is no topotune of this version");
      versions.emplace_back(parts[0]);
      all_.push_back(
          {static_cast<int>(all_.size()), printable(parts[2]), parse_int<int>(parts[1]).value_or(0)});
    }
    for (std::size_t r = 1; r < versions.size(); ++r) {
      if (versions[r] == versions[0]) continue;
      return tl::unexpected(
          Error{Errc::unsupported,
                fmt::format("{} is topotune {}, {} is topotune {}", all_[r].to_string(),
                            printable(versions[r]), all_[0].to_string(), printable(versions[0])),
                {},
                {},
                {},
                "install one version on all hosts"});
    }
    return {};
  }

 private:
  const TopotuneMpi& module_;
  std::vector<peers::Peer> all_;
};

Result<const TopotuneMpi*> load(Flavour flavour) {
  const auto open = [](const char* file) { return host::open_module(file); };
  auto library = open(flavour == Flavour::mpich ? "libtopotune-mpich.so" : "libtopotune-mpi.so");
  if (!library && flavour == Flavour::any) {
    auto other = open("libtopotune-mpich.so");
    if (other) library = other;
  }
  if (!library) return tl::unexpected(library.error());
  const auto entry = reinterpret_cast<const TopotuneMpi* (*)()>(library->symbol("topotune_mpi"));
  const auto* module = entry == nullptr ? nullptr : entry();
  if (module == nullptr || module->version != kMpiModuleVersion)
    return fail(Errc::unsupported, "the MPI module beside the program is of another version of it");
  return module;
}

}  // namespace

Result<Job> start(Flavour flavour, std::size_t buffer_bytes) {
  const auto module = load(flavour);
  if (!module) return tl::unexpected(module.error());
  std::array<char, 512> error{};
  if ((*module)->start(error.data(), error.size()) != 0) return fail(Errc::io, "MPI_Init: {}", error.data());
  Job job;
  job.module = *module;
  auto peers = std::make_unique<MpiPeers>(**module);
  job.backend = std::make_unique<Backend>(**module, buffer_bytes);
  if (auto ok = peers->introduce(); !ok) return tl::unexpected(ok.error());
  job.peers = std::move(peers);
  return job;
}

Result<std::vector<std::unique_ptr<coll::Lane>>> Job::make_lanes(
    const std::vector<LaneRequest>& requests) const {
  std::array<char, 512> error{};
  if (module->streams(static_cast<int>(requests.size()), error.data(), error.size()) != 0)
    return fail(Errc::io, "MPI_Comm_dup: {}", error.data());
  std::vector<std::unique_ptr<coll::Lane>> out;
  for (const auto& request : requests)
    out.push_back(std::make_unique<MpiLane>(*module, static_cast<int>(out.size()), request));
  return out;
}

}  // namespace topotune::mpi
