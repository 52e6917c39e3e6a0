// What the profiler plugin costs a job on this machine's GPUs: its events are switched off and on between
// short blocks of one job, off-on-on-off, so that what drifts in the machine does so for both. One process a
// GPU, as training has it. Parts:
//   calls: all-reduces of 1 KiB back to back, 512 a block: nothing but launches, the worst case;
//   step: a training step: 5 ms of computation in 30 parts, behind each an all-reduce of 25 MB on another
//     stream; a block is a step. The computation is a kernel of one thread that follows pointers: it takes
//     the same time each time, whatever else the GPU does;
//   calls-null, step-null: the same with the events off in both: what the method itself sees.
//
// usage: profiler_overhead PLUGIN PART:SECONDS... [--json FILE] [--ranks N] [--calls N] [--bytes N]
//          [--buckets N] [--bucket BYTES] [--compute MS] [--group N]
// A group is N times four blocks; its difference is one sample. Prints the median of the samples with its
// 95 % interval, of the whole time and of the host's until all of a block is enqueued.
// NCCL's library: TOPOTUNE_NCCL_LIBRARY, or libnccl.so.2. Status 0; 1: it could not be measured, or events
// were not recorded as they were switched; 2: usage.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "cuda/device.h"
#include "host/shared_library.h"
#include "measure/runner.h"
#include "measure/statistics.h"
#include "nccl/library.h"
#include "plugins/profile_format.h"
#include "plugins/profiler_control.h"

namespace {

using namespace topotune;

struct Part {
  std::string name;  // "calls" or "step"
  bool null = false;
  double seconds = 0;
};

struct Options {
  std::string plugin, json;
  std::vector<Part> parts;
  int ranks = 2, calls = 512, buckets = 30, group = 0;  // group 0: as the part wants it
  std::size_t bytes = 1024, bucket = 25'000'000;
  double compute_ms = 5;
};
constexpr int kWindow = 512;  // kernels are timed at each such event

// Seconds until all is enqueued, and until it has ended.
struct Block {
  double host = 0, whole = 0;
};

struct Place {
  int rank;
  int id_in, id_out;  // a pipe on which rank 0 hands out NCCL's identification
};

// One rank with everything it needs.
class Rank {
 public:
  static Result<std::unique_ptr<Rank>> make(const Options& options, const Place& place);
  ~Rank() {
    if (comm_ != nullptr) library_.f.comm_destroy(comm_);
  }

  Result<Block> calls();
  Result<Block> step();
  Result<void> expect_recorded(std::uint64_t events) const;
  void pause(bool off) const { pause_(off ? 1 : 0); }
  int calls_of(const Part& part) const { return part.name == "step" ? o_.buckets : o_.calls; }
  std::string title() const { return fmt::format("NCCL {}, {}", library_.version_text(), gpu_->name); }

 private:
  Rank(const Options& options, int rank, nccl::Library library)
      : o_(options), rank_(rank), library_(library) {}
  Result<void> open_gpu();
  Result<void> connect(const Place& place);
  Result<void> find_switch();
  Result<void> calibrate();
  Result<void> compute(const cuda::Lane& lane, std::uint64_t loads);
  Result<void> all_reduce(std::size_t place, std::size_t bytes);
  Result<void> in_order(const cuda::Lane& first, const cuda::Lane& then);
  Result<Block> block_since(double start, const Result<void>& enqueued);
  Result<void> wait();
  Result<void> cuda_ok(int rc, const char* what) const { return machine_->driver.check(rc, what); }

  const Options& o_;
  int rank_;
  nccl::Library library_;
  std::unique_ptr<cuda::Machine> machine_;
  const cuda::Gpu* gpu_ = nullptr;
  cuda::Lane computing_, sending_;
  cuda::Buffer data_, cell_;
  nccl::api::Comm comm_ = nullptr;
  cuda::api::Event event_ = nullptr;
  int (*wait_event_)(cuda::api::Stream, cuda::api::Event, unsigned) = nullptr;
  plugins::ProfilerPause pause_ = nullptr;
  std::uint64_t loads_ = 0;  // of one part of a step's computation
};

Result<std::unique_ptr<Rank>> Rank::make(const Options& options, const Place& place) {
  auto library = nccl::Library::load();
  if (!library) return tl::unexpected(library.error());
  std::unique_ptr<Rank> r(new Rank(options, place.rank, *library));
  auto ok = r->open_gpu();
  if (ok) ok = r->connect(place);
  if (ok) ok = r->find_switch();
  if (ok) ok = r->calibrate();
  if (!ok) return tl::unexpected(ok.error());
  return r;
}

Result<void> Rank::open_gpu() {
  auto machine = cuda::open_machine([](const std::string&) { return std::string(); });
  if (!machine) return tl::unexpected(machine.error());
  machine_ = std::move(*machine);
  if (machine_->gpus.size() <= static_cast<std::size_t>(rank_))
    return fail(Errc::unsupported, "{} GPU(s), but {} ranks", machine_->gpus.size(), o_.ranks);
  gpu_ = &machine_->gpus[static_cast<std::size_t>(rank_)];
  for (auto* lane : {&computing_, &sending_}) {
    auto made = cuda::Lane::make(*machine_, *gpu_);
    if (!made) return tl::unexpected(made.error());
    *lane = std::move(*made);
  }
  const auto all = std::max(o_.bucket * static_cast<std::size_t>(o_.buckets), o_.bytes);
  auto data = cuda::Buffer::make(*machine_, *gpu_, all);
  auto cell = cuda::Buffer::make(*machine_, *gpu_, 256);
  if (!data || !cell) return tl::unexpected((data ? cell : data).error());
  data_ = std::move(*data), cell_ = std::move(*cell);
  const std::uint64_t self = cell_.get();  // a pointer to itself
  const auto& f = machine_->driver.f;
  auto ok = cuda_ok(f.set_d32_async(data_.get(), 0, all / 4, sending_.stream()), "memory");
  if (ok) ok = cuda_ok(f.copy_to_device(cell_.get(), &self, sizeof self), "memory");
  if (ok) ok = cuda_ok(f.event_create(&event_, cuda::api::kEventDefault), "event");
  if (!ok) return ok;
  const auto driver = host::SharedLibrary::open("libcuda.so.1");
  if (!driver) return tl::unexpected(driver.error());
  wait_event_ = reinterpret_cast<decltype(wait_event_)>(driver->symbol("cuStreamWaitEvent"));
  return wait_event_ != nullptr ? Result<void>() : fail(Errc::unsupported, "no cuStreamWaitEvent");
}

Result<void> Rank::connect(const Place& place) {
  nccl::api::UniqueId id{};
  if (rank_ == 0) {
    const auto made = library_.unique_id();
    if (!made) return tl::unexpected(made.error());
    id = *made;
    for (int r = 1; r < o_.ranks; ++r)
      if (::write(place.id_out, &id, sizeof id) != ssize_t{sizeof id}) return fail(Errc::io, "pipe: write");
  } else if (::read(place.id_in, &id, sizeof id) != ssize_t{sizeof id}) {
    return fail(Errc::io, "rank 0 has ended");
  }
  if (auto ok = machine_->use(*gpu_); !ok) return ok;
  return library_.check(library_.f.comm_init_rank(&comm_, o_.ranks, id, rank_), "ncclCommInitRank");
}

Result<void> Rank::find_switch() {
  void* loaded = ::dlopen(o_.plugin.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr)
    return fail(Errc::unsupported, "NCCL did not load {} (NCCL_DEBUG=INFO says why)", o_.plugin);
  pause_ = reinterpret_cast<plugins::ProfilerPause>(::dlsym(loaded, "topotune_profiler_pause"));
  return pause_ != nullptr ? Result<void>() : fail(Errc::unsupported, "{} cannot be switched", o_.plugin);
}

Result<void> Rank::compute(const cuda::Lane& lane, std::uint64_t loads) {
  std::uint64_t start = cell_.get(), end = cell_.get() + 128;
  std::uint32_t which = 0, kind = 0;
  void* parameters[] = {&start, &loads, &end, &which, &kind};
  return cuda::launch(*machine_, *gpu_, "tt_chase", 1, 1, 0, lane.stream(), parameters);
}

Result<void> Rank::calibrate() {
  constexpr std::uint64_t kLoads = 20000;
  double least = 1;
  for (int i = 0; i < 5; ++i) {
    auto ok = computing_.start();
    if (ok) ok = compute(computing_, kLoads);
    if (ok) ok = computing_.stop();
    const auto seconds = ok ? computing_.seconds() : tl::unexpected(ok.error());
    if (!seconds) return tl::unexpected(seconds.error());
    least = std::min(least, *seconds / kLoads);
  }
  loads_ = static_cast<std::uint64_t>(o_.compute_ms * 1e-3 / o_.buckets / least) + 1;
  return {};
}

Result<void> Rank::all_reduce(std::size_t place, std::size_t bytes) {
  constexpr int kBfloat16 = 9, kSum = 0;
  void* const at = reinterpret_cast<void*>(data_.get() + place);
  const auto rc = library_.f.all_reduce(at, at, bytes / 2, kBfloat16, kSum, comm_, sending_.stream());
  return rc == nccl::api::kSuccess ? Result<void>() : library_.check(rc, "ncclAllReduce");
}

Result<void> Rank::in_order(const cuda::Lane& first, const cuda::Lane& then) {
  auto ok = cuda_ok(machine_->driver.f.event_record(event_, first.stream()), "event");
  return ok ? cuda_ok(wait_event_(then.stream(), event_, 0), "event") : ok;
}

// Looks all the time, as waiting itself must not wake late.
Result<void> Rank::wait() {
  const auto& f = machine_->driver.f;
  for (const auto* lane : {&computing_, &sending_}) {
    int rc = cuda::api::kNotReady;
    while (rc == cuda::api::kNotReady)
      rc = f.stream_query != nullptr ? f.stream_query(lane->stream()) : f.stream_synchronize(lane->stream());
    if (auto ok = cuda_ok(rc, "waiting"); !ok) return ok;
  }
  return {};
}

Result<Block> Rank::block_since(double start, const Result<void>& enqueued) {
  const double host = measure::monotonic_seconds() - start;
  const auto ok = enqueued ? wait() : enqueued;
  if (!ok) return tl::unexpected(ok.error());
  return Block{host, measure::monotonic_seconds() - start};
}

Result<Block> Rank::calls() {
  const double start = measure::monotonic_seconds();
  Result<void> ok;
  for (int i = 0; ok && i < o_.calls; ++i) ok = all_reduce(0, o_.bytes);
  return block_since(start, ok);
}

Result<Block> Rank::step() {
  const double start = measure::monotonic_seconds();
  Result<void> ok;
  for (int i = 0; ok && i < o_.buckets; ++i) {
    ok = compute(computing_, loads_);
    if (ok) ok = in_order(computing_, sending_);
    if (ok) ok = all_reduce(static_cast<std::size_t>(i) * o_.bucket, o_.bucket);
  }
  return block_since(start, ok);
}

// The number of events in this process's file of the plugin.
Result<std::uint64_t> recorded() {
  const char* named = std::getenv("TOPOTUNE_PROFILER_DIR");
  const std::string folder = named == nullptr || *named == '\0' ? "/dev/shm" : named;
  const auto mine = fmt::format("topotune-profile-{}-{}-", ::geteuid(), ::getpid());
  DIR* dir = ::opendir(folder.c_str());
  std::uint64_t next = 0;
  bool found = false;
  while (const dirent* entry = dir == nullptr ? nullptr : ::readdir(dir)) {
    if (std::string(entry->d_name).rfind(mine, 0) != 0) continue;
    const int fd = ::open((folder + "/" + entry->d_name).c_str(), O_RDONLY | O_CLOEXEC);
    found = ::pread(fd, &next, sizeof next, offsetof(plugins::ProfileHeader, next)) == ssize_t{sizeof next};
    ::close(fd);
  }
  if (dir != nullptr) ::closedir(dir);
  return found ? Result<std::uint64_t>(next) : fail(Errc::io, "{}: the plugin made no file here", folder);
}

// Blocks of one part, and what a group of them says: on less off, of a block.
struct Measured {
  std::vector<Block> off, on;
  std::vector<double> seconds, shares, host;
};

void add_group(Measured& m, std::size_t first) {
  Block off, on;
  for (std::size_t i = first; i < m.off.size(); ++i) {
    off.host += m.off[i].host, off.whole += m.off[i].whole;
    on.host += m.on[i].host, on.whole += m.on[i].whole;
  }
  const auto blocks = static_cast<double>(m.off.size() - first);
  m.seconds.push_back((on.whole - off.whole) / blocks);
  m.shares.push_back((on.whole - off.whole) / off.whole);
  m.host.push_back((on.host - off.host) / blocks);
}

// All ranks must run the same blocks: how many follows from how long rank 0's took.
Result<int> groups_of(const Place& place, const Options& o, double wanted) {
  int groups = std::max(3, static_cast<int>(wanted));
  if (place.rank == 0) {
    for (int r = 1; r < o.ranks; ++r)
      if (::write(place.id_out, &groups, sizeof groups) != ssize_t{sizeof groups})
        return fail(Errc::io, "pipe: write");
  } else if (::read(place.id_in, &groups, sizeof groups) != ssize_t{sizeof groups}) {
    return fail(Errc::io, "rank 0 has ended");
  }
  return groups;
}

Result<Block> block(Rank& rank, const Part& part, bool on) {
  rank.pause(!on);
  return part.name == "step" ? rank.step() : rank.calls();
}

Result<Measured> measure_part(Rank& rank, const Part& part, const Options& o, const Place& place) {
  // As many blocks as kernels are timed once in: every 512th event.
  const int quads = o.group > 0 ? o.group : part.name == "step" ? (kWindow / o.buckets + 1) / 2 : 1;
  const int warm = 4 * quads + 4;
  double seconds = 0;
  for (int i = 0; i < warm; ++i) {
    const auto took = block(rank, part, i % 2 == 0);
    if (!took) return tl::unexpected(took.error());
    seconds = took->whole;
  }
  const auto groups = groups_of(place, o, part.seconds / (seconds * 4 * quads));
  const auto before = groups ? recorded() : tl::unexpected(groups.error());
  if (!before) return tl::unexpected(before.error());
  Measured m;
  for (int g = 0; g < *groups; ++g) {
    const auto first = m.off.size();
    for (int i = 0; i < 4 * quads; ++i) {
      const bool on = i % 4 == 1 || i % 4 == 2;
      const auto took = block(rank, part, on && !part.null);
      if (!took) return tl::unexpected(took.error());
      (on ? m.on : m.off).push_back(*took);
    }
    add_group(m, first);
  }
  const auto after = recorded();
  if (!after) return tl::unexpected(after.error());
  const auto expected = part.null ? 0 : m.on.size() * static_cast<std::size_t>(rank.calls_of(part));
  if (*after - *before != expected)
    return fail(Errc::io, "{} events were recorded, not {}", *after - *before, expected);
  return m;
}

std::vector<double> values_of(const std::vector<Block>& blocks, double Block::*member) {
  std::vector<double> out;
  for (const auto& b : blocks) out.push_back(b.*member);
  return out;
}

std::string numbers(const std::vector<double>& values) {
  std::string out;
  for (const double v : values) out += fmt::format("{}{:.7g}", out.empty() ? "" : ",", v);
  return "[" + out + "]";
}

std::string with_interval(const std::vector<double>& values, double scale, const char* form) {
  const auto ci = measure::median_ci95(values);
  const double low = ci ? ci->low : 0, high = ci ? ci->high : 0;
  const auto one = [&](double v) { return fmt::format(fmt::runtime(form), v * scale); };
  return fmt::format("{} (95 %: {} to {})", one(*measure::median_of(values)), one(low), one(high));
}

std::string line_of(const Part& part, const Measured& m, int calls) {
  const bool step = part.name == "step";
  const auto off = *measure::median_of(values_of(m.off, &Block::whole));
  return fmt::format(
      "{}{}: {:.3f} us a {}; events cost {} ns a call and rank, {} % of the time; the host {} ns; {} "
      "groups\n",
      part.name, part.null ? "-null" : "", off * 1e6 / (step ? 1 : calls), step ? "step" : "call",
      with_interval(m.seconds, 1e9 / calls, "{:.0f}"), with_interval(m.shares, 100, "{:.3f}"),
      with_interval(m.host, 1e9 / calls, "{:.0f}"), m.shares.size());
}

std::string json_of(const Part& part, const Measured& m, int calls) {
  return fmt::format(R"({{"part":"{}","null":{},"calls_a_block":{},"off_seconds":{},"on_seconds":{},)"
                     R"("off_host_seconds":{},"on_host_seconds":{},"group_shares":{}}})",
                     part.name, part.null, calls, numbers(values_of(m.off, &Block::whole)),
                     numbers(values_of(m.on, &Block::whole)), numbers(values_of(m.off, &Block::host)),
                     numbers(values_of(m.on, &Block::host)), numbers(m.shares));
}

Result<void> run(const Options& o, const Place& place) {
  auto rank = Rank::make(o, place);
  if (!rank) return tl::unexpected(rank.error());
  std::string json;
  for (const auto& part : o.parts) {
    const auto measured = measure_part(**rank, part, o, place);
    if (!measured) return tl::unexpected(measured.error());
    if (place.rank != 0) continue;
    const int calls = (*rank)->calls_of(part);
    fmt::print("{}", line_of(part, *measured, calls));
    std::fflush(stdout);
    json += (json.empty() ? "" : ",\n") + json_of(part, *measured, calls);
  }
  if (place.rank != 0 || o.json.empty()) return {};
  std::FILE* file = std::fopen(o.json.c_str(), "w");
  if (file == nullptr) return fail(Errc::io, "{}: {}", o.json, std::strerror(errno));
  fmt::print(file, "{{\"title\":\"{}\",\"ranks\":{},\"parts\":[\n{}\n]}}\n", (*rank)->title(), o.ranks, json);
  return std::fclose(file) == 0 ? Result<void>() : fail(Errc::io, "{}: not written", o.json);
}

std::optional<Part> part_from(const std::string& text) {
  const auto colon = text.find(':');
  Part part{text.substr(0, colon), false, 0};
  if (const auto null = part.name.find("-null"); null != std::string::npos)
    part.name.resize(null), part.null = true;
  if (colon == std::string::npos || (part.name != "calls" && part.name != "step")) return std::nullopt;
  part.seconds = std::strtod(text.c_str() + colon + 1, nullptr);
  return part.seconds > 0 ? std::optional(part) : std::nullopt;
}

// False: no such option, or no such value.
bool set(Options& o, const std::string& name, const char* text) {
  if (name == "--json") return o.json = text, true;
  const double value = std::strtod(text, nullptr);
  const auto whole = static_cast<int>(value);
  if (value <= 0 || value > 1e9) return false;
  if (name == "--ranks") return o.ranks = whole, true;
  if (name == "--calls") return o.calls = whole, true;
  if (name == "--buckets") return o.buckets = whole, true;
  if (name == "--group") return o.group = whole, true;
  if (name == "--bytes") return o.bytes = static_cast<std::size_t>(whole), true;
  if (name == "--bucket") return o.bucket = static_cast<std::size_t>(whole), true;
  if (name == "--compute") return o.compute_ms = value, true;
  return false;
}

std::optional<Options> options_from(int count, char** arguments) {
  Options o;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word.rfind("--", 0) == 0) {
      if (++i == count || !set(o, word, arguments[i])) return std::nullopt;
    } else if (o.plugin.empty()) {
      char* whole = ::realpath(word.c_str(), nullptr);
      o.plugin = whole == nullptr ? word : whole;
      std::free(whole);
    } else if (const auto part = part_from(word)) {
      o.parts.push_back(*part);
    } else {
      return std::nullopt;
    }
  }
  return o.parts.empty() ? std::nullopt : std::optional(o);
}

// One that fails takes the others with it: they would wait for it for ever.
int wait_for(std::vector<pid_t>& children) {
  int worst = 0;
  for (std::size_t ended = 0; ended < children.size(); ++ended) {
    int status = 0;
    const pid_t child = ::wait(&status);
    for (auto& c : children)
      if (c == child) c = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    worst = 1;
    for (const auto c : children)
      if (c > 0) ::kill(c, SIGKILL);
  }
  return worst;
}

}  // namespace

int main(int count, char** arguments) {
  const auto options = options_from(count, arguments);
  if (!options)
    return fmt::print(stderr, "usage: profiler_overhead PLUGIN PART:SECONDS... (calls, step)\n"), 2;
  ::setenv("NCCL_PROFILER_PLUGIN", options->plugin.c_str(), 1);
  int id[2];
  if (::pipe2(id, O_CLOEXEC) != 0) return fmt::print(stderr, "profiler_overhead: pipe\n"), 1;
  std::vector<pid_t> children;
  for (int rank = 0; rank < options->ranks; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto ok = run(*options, {rank, id[0], id[1]});
    if (!ok) fmt::print(stderr, "profiler_overhead: rank {}: {}\n", rank, ok.error().text);
    std::fflush(nullptr);
    ::_exit(ok ? 0 : 1);
  }
  return wait_for(children);
}
