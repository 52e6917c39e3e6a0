#include "nccl/group.h"

#include <algorithm>
#include <array>

#include "coll/check.h"
#include "measure/runner.h"

namespace topotune::nccl {

namespace {

constexpr std::uint32_t kSeed = 0x7070u;

void* at(cuda::api::DevicePtr p) { return reinterpret_cast<void*>(p); }

}  // namespace

// A GPU with its communicator.
struct Group::Member {
  const cuda::Gpu* gpu = nullptr;
  int rank = 0;
  api::Comm comm = nullptr;
  cuda::Lane lane;
  cuda::Buffer send, recv;  // none where those of another group are used
  cuda::api::DevicePtr send_at = 0, recv_at = 0;
  cuda::Buffer result;  // of a check
  void *send_handle = nullptr, *recv_handle = nullptr;
  api::Stream stream() const { return lane.stream(); }
};

Group::Group(const Library& library, const cuda::Machine& machine, const Place& place,
             const GroupOptions& options)
    : library_(library), machine_(machine), place_(place), options_(options) {}

Result<std::unique_ptr<Group>> Group::make(const Library& library, const cuda::Machine& machine,
                                           const std::vector<const cuda::Gpu*>& gpus, const Place& place,
                                           const GroupOptions& options) {
  if (gpus.empty()) return fail(Errc::usage, "a group needs a GPU");
  std::unique_ptr<Group> group(new Group(library, machine, place, options));
  Result<void> ok;
  for (const auto* gpu : gpus)
    if (ok) ok = group->add(*gpu);
  if (options.ready) ok = options.ready(ok);
  if (ok) ok = group->connect();
  if (!ok) return tl::unexpected(ok.error());
  return group;
}

Result<std::unique_ptr<Group>> Group::make(const Library& library, const cuda::Machine& machine,
                                           const std::vector<const cuda::Gpu*>& gpus,
                                           const GroupOptions& options) {
  const auto id = library.unique_id();
  if (!id) return tl::unexpected(id.error());
  return make(library, machine, gpus, Place{0, static_cast<int>(gpus.size()), *id}, options);
}

Result<void> Group::add(const cuda::Gpu& gpu) {
  auto member = std::make_unique<Member>();
  member->gpu = &gpu;
  member->rank = place_.first_rank + static_cast<int>(members_.size());
  auto lane = cuda::Lane::make(machine_, gpu);
  if (!lane) return tl::unexpected(lane.error());
  member->lane = std::move(*lane);
  if (auto ok = make_buffers(*member); !ok) return ok;
  auto result = cuda::Buffer::make(machine_, gpu, 16);
  if (!result) return tl::unexpected(result.error());
  member->result = std::move(*result);
  local_.push_back({member->rank, gpu.id, gpu.name + " " + gpu.bdf});
  members_.push_back(std::move(member));
  return {};
}

Result<void> Group::make_buffers(Member& member) {
  if (const auto* other = options_.buffers_of; other != nullptr) {
    const auto index = members_.size();
    if (index >= other->members_.size() || other->members_[index]->gpu != member.gpu ||
        other->options_.buffer_bytes < options_.buffer_bytes)
      return fail(Errc::usage, "the other group's buffers are of other GPUs or too small");
    member.send_at = other->members_[index]->send_at, member.recv_at = other->members_[index]->recv_at;
    return {};
  }
  // A little more than asked: parts are cut to 16 bytes, and nothing may be empty.
  const auto bytes = options_.buffer_bytes + 256;
  const auto& driver = machine_.driver;
  for (auto* buffer : {&member.send, &member.recv}) {
    auto made = cuda::Buffer::make(machine_, *member.gpu, bytes);
    if (!made) return tl::unexpected(made.error());
    *buffer = std::move(*made);
    auto ok = driver.check(driver.f.set_d32_async(buffer->get(), 0, bytes / 4, member.lane.stream()),
                           member.gpu->id);
    if (!ok) return ok;
  }
  member.send_at = member.send.get(), member.recv_at = member.recv.get();
  return {};
}

Result<void> Group::connect() {
  const auto& f = library_.f;
  const double start = measure::monotonic_seconds();
  api::Config config;
  if (options_.min_ctas) config.min_ctas = *options_.min_ctas;
  if (options_.max_ctas) config.max_ctas = *options_.max_ctas;
  const bool configured = options_.min_ctas || options_.max_ctas;
  if (configured && f.comm_init_rank_config == nullptr)
    return fail(Errc::unsupported, "NCCL {} cannot limit the thread blocks of a communicator (2.17 or later)",
                library_.version_text());
  auto ok = library_.check(f.group_start(), "ncclGroupStart");
  for (auto& member : members_) {
    if (ok) ok = machine_.use(*member->gpu);
    if (!ok) break;
    const auto what = fmt::format("communicator of rank {} on {}", member->rank, member->gpu->id);
    ok = library_.check(
        configured ? f.comm_init_rank_config(&member->comm, place_.ranks, place_.id, member->rank, &config)
                   : f.comm_init_rank(&member->comm, place_.ranks, place_.id, member->rank),
        what);
  }
  const auto ended = library_.check(f.group_end(), fmt::format("communicators of {} ranks", place_.ranks));
  if (ok) ok = ended;
  for (auto& member : members_) {
    if (!ok || !options_.registered || f.comm_register == nullptr) break;
    ok = library_.check(
        f.comm_register(member->comm, at(member->send_at), options_.buffer_bytes + 256, &member->send_handle),
        "ncclCommRegister");
    if (ok)
      ok = library_.check(f.comm_register(member->comm, at(member->recv_at), options_.buffer_bytes + 256,
                                          &member->recv_handle),
                          "ncclCommRegister");
  }
  if (ok) ok = wait();
  init_seconds_ = measure::monotonic_seconds() - start;
  return ok;
}

Group::~Group() {
  const auto& f = library_.f;
  for (auto& member : members_) {
    if (member->comm == nullptr) continue;
    machine_.driver.f.set_current(member->gpu->context);
    if (broken_) {
      f.comm_abort(member->comm);
      continue;
    }
    if (member->send_handle != nullptr) f.comm_deregister(member->comm, member->send_handle);
    if (member->recv_handle != nullptr) f.comm_deregister(member->comm, member->recv_handle);
  }
  if (broken_ || members_.empty()) return;
  f.group_start();
  for (auto& member : members_)
    if (member->comm != nullptr) f.comm_destroy(member->comm);
  f.group_end();
}

std::optional<std::string> Group::cannot(const coll::Question& question, coll::Mode mode) const {
  if (coll::shown_bytes(question, place_.ranks) == 0)
    return fmt::format("{} bytes are less than 16 for each of {} ranks", question.bytes, place_.ranks);
  if (coll::shown_bytes(question, place_.ranks) > options_.buffer_bytes)
    return fmt::format("{} bytes do not fit into buffers of {}", question.bytes, options_.buffer_bytes);
  const auto type = static_cast<int>(question.type);
  if (type >= 10 && library_.version < 22400)
    return fmt::format("NCCL {} has no {} (2.24 or later)", library_.version_text(),
                       coll::name_of(question.type));
  if (type >= 10 && coll::reduces(question.op) && members_.front()->gpu->sm < 90)
    return fmt::format("NCCL reduces {} on sm_90 and later only", coll::name_of(question.type));
  if (mode == coll::Mode::graph && machine_.driver.f.graph_instantiate == nullptr)
    return std::string("this driver has no cuGraphInstantiateWithFlags (CUDA 11.4 or later)");
  return std::nullopt;
}

// The work of one iteration on all local ranks.
Result<void> Group::enqueue(const coll::Question& question, const coll::Counts& counts, int iteration) {
  const auto shown = std::max(counts.send, counts.recv) * coll::size_of(question.type);
  const auto places = shown == 0 ? 1 : std::max<std::size_t>(options_.buffer_bytes / shown, 1);
  const auto shift = shown * (static_cast<std::size_t>(iteration) % places);
  const auto& f = library_.f;
  const bool grouped = members_.size() > 1;
  if (grouped) {
    if (const auto rc = f.group_start(); rc != api::kSuccess) return library_.check(rc, "ncclGroupStart");
  }
  for (auto& member : members_) {
    if (auto ok = enqueue_one(*member, question, counts, shift); !ok) return ok;
  }
  if (!grouped) return {};
  const auto rc = f.group_end();
  return rc == api::kSuccess ? Result<void>() : library_.check(rc, coll::nccl_name_of(question.op));
}

namespace {

// One rank's part of a gather or scatter made of sends and receives, for NCCL before 2.28.
struct Pieces {
  const Library::Functions& f;
  char* send;
  char* recv;
  std::size_t count, bytes;
  int type, rank, ranks;
  api::Comm comm;
  api::Stream stream;

  api::Rc send_to(int peer, std::size_t place) const {
    return f.send(send + place * bytes, count, type, peer, comm, stream);
  }
  api::Rc recv_from(int peer, std::size_t place) const {
    return f.recv(recv + place * bytes, count, type, peer, comm, stream);
  }
};

api::Rc first_bad(std::initializer_list<api::Rc> rcs) {
  for (const auto rc : rcs)
    if (rc != api::kSuccess) return rc;
  return api::kSuccess;
}

api::Rc all_to_all(const Pieces& p) {
  api::Rc rc = p.f.group_start();
  for (int r = 0; r < p.ranks && rc == api::kSuccess; ++r) {
    const auto place = static_cast<std::size_t>(r);
    rc = first_bad({p.send_to(r, place), p.recv_from(r, place)});
  }
  return first_bad({rc, p.f.group_end()});
}

api::Rc gather(const Pieces& p, int root) {
  api::Rc rc = first_bad({p.f.group_start(), p.send_to(root, 0)});
  for (int r = 0; p.rank == root && r < p.ranks && rc == api::kSuccess; ++r)
    rc = p.recv_from(r, static_cast<std::size_t>(r));
  return first_bad({rc, p.f.group_end()});
}

api::Rc scatter(const Pieces& p, int root) {
  api::Rc rc = first_bad({p.f.group_start(), p.recv_from(root, 0)});
  for (int r = 0; p.rank == root && r < p.ranks && rc == api::kSuccess; ++r)
    rc = p.send_to(r, static_cast<std::size_t>(r));
  return first_bad({rc, p.f.group_end()});
}

api::Rc send_recv(const Pieces& p) {
  const int next = (p.rank + 1) % p.ranks, before = (p.rank + p.ranks - 1) % p.ranks;
  return first_bad({p.f.group_start(), p.send_to(next, 0), p.recv_from(before, 0), p.f.group_end()});
}

}  // namespace

Result<void> Group::enqueue_one(Member& member, const coll::Question& q, const coll::Counts& counts,
                                std::size_t shift) {
  const auto& f = library_.f;
  const auto element = coll::size_of(q.type);
  const auto rank = static_cast<std::size_t>(member.rank);
  auto* const recv_base = static_cast<char*>(at(member.recv_at)) + shift;
  char* const recv = recv_base + (q.in_place ? rank * counts.recv_step * element : 0);
  char* const send = q.in_place ? recv_base + rank * counts.send_step * element
                                : static_cast<char*>(at(member.send_at)) + shift;
  const auto count = counts.argument;
  const int type = static_cast<int>(q.type), op = static_cast<int>(q.reduction);
  const auto stream = member.stream();
  const auto comm = member.comm;
  const Pieces pieces{f, send, recv, count, count * element, type, member.rank, place_.ranks, comm, stream};
  api::Rc rc = api::kSuccess;
  switch (q.op) {
    case coll::Op::all_reduce:
      rc = f.all_reduce(send, recv, count, type, op, comm, stream);
      break;
    case coll::Op::all_gather:
      rc = f.all_gather(send, recv, count, type, comm, stream);
      break;
    case coll::Op::reduce_scatter:
      rc = f.reduce_scatter(send, recv, count, type, op, comm, stream);
      break;
    case coll::Op::broadcast:
      rc = f.broadcast(send, recv, count, type, q.root, comm, stream);
      break;
    case coll::Op::reduce:
      rc = f.reduce(send, recv, count, type, op, q.root, comm, stream);
      break;
    case coll::Op::all_to_all:
      rc = f.all_to_all != nullptr ? f.all_to_all(send, recv, count, type, comm, stream) : all_to_all(pieces);
      break;
    case coll::Op::gather:
      rc = f.gather != nullptr ? f.gather(send, recv, count, type, q.root, comm, stream)
                               : gather(pieces, q.root);
      break;
    case coll::Op::scatter:
      rc = f.scatter != nullptr ? f.scatter(send, recv, count, type, q.root, comm, stream)
                                : scatter(pieces, q.root);
      break;
    case coll::Op::send_recv:
      rc = send_recv(pieces);
      break;
  }
  if (rc == api::kSuccess) return {};
  return library_.check(rc, fmt::format("{} of {} bytes on rank {} ({})", coll::nccl_name_of(q.op), q.bytes,
                                        member.rank, member.gpu->id));
}

// Until the streams of all local ranks are empty; an error of NCCL, also of another rank, ends it.
Result<void> Group::wait() {
  const auto& driver = machine_.driver;
  double next_look = measure::monotonic_seconds() + 0.01;
  for (auto& member : members_) {
    if (auto ok = machine_.use(*member->gpu); !ok) return ok;
    while (driver.f.stream_query != nullptr) {
      const auto rc = driver.f.stream_query(member->lane.stream());
      if (rc == cuda::api::kSuccess) break;
      if (rc != cuda::api::kNotReady) {
        broken_ = true;
        return driver.check(rc, fmt::format("rank {} ({})", member->rank, member->gpu->id));
      }
      if (measure::monotonic_seconds() < next_look) continue;
      next_look += 0.01;
      if (auto ok = look_for_errors(); !ok) return ok;
    }
    if (driver.f.stream_query == nullptr) {
      auto ok = driver.check(driver.f.stream_synchronize(member->lane.stream()), member->gpu->id);
      if (!ok) return ok;
    }
  }
  return {};
}

Result<void> Group::look_for_errors() {
  for (auto& member : members_) {
    api::Rc state = api::kSuccess;
    if (member->comm == nullptr || library_.f.get_async_error(member->comm, &state) != api::kSuccess)
      continue;
    if (state == api::kSuccess || state == api::kInProgress) continue;
    broken_ = true;
    return library_.check(state, fmt::format("rank {} ({})", member->rank, member->gpu->id));
  }
  const auto news = options_.news ? options_.news() : std::nullopt;
  if (!news) return {};
  broken_ = true;
  return tl::unexpected(*news);
}

Result<void> Group::start(const coll::Question& question, int iteration) {
  auto ok = enqueue(question, coll::counts_of(question, place_.ranks), iteration);
  if (!ok) broken_ = true;
  return ok;
}

Result<bool> Group::ended() {
  const auto& driver = machine_.driver;
  for (auto& member : members_) {
    if (auto ok = machine_.use(*member->gpu); !ok) return tl::unexpected(ok.error());
    const auto rc = driver.f.stream_query != nullptr ? driver.f.stream_query(member->lane.stream())
                                                     : driver.f.stream_synchronize(member->lane.stream());
    if (rc == cuda::api::kSuccess) continue;
    if (rc != cuda::api::kNotReady) {
      broken_ = true;
      return tl::unexpected(
          driver.check(rc, fmt::format("rank {} ({})", member->rank, member->gpu->id)).error());
    }
    if (measure::monotonic_seconds() < next_look_) return false;
    next_look_ = measure::monotonic_seconds() + 0.01;
    const auto fine = look_for_errors();
    return fine ? Result<bool>(false) : tl::unexpected(fine.error());
  }
  return true;
}

Result<coll::Timed> Group::run(const coll::Question& question, int iterations, coll::Mode mode,
                               int launches) {
  if (const auto why = cannot(question, mode)) return fail(Errc::unsupported, "{}", *why);
  if (iterations < 1) return fail(Errc::usage, "no iteration was asked for");
  auto timed = mode == coll::Mode::events     ? run_events(question, iterations)
               : mode == coll::Mode::blocking ? run_blocking(question, iterations)
               : mode == coll::Mode::graph    ? run_graph(question, iterations, launches)
                                              : run_host(question, iterations);
  if (!timed) broken_ = true;
  return timed;
}

Result<coll::Timed> Group::run_host(const coll::Question& question, int iterations) {
  const auto counts = coll::counts_of(question, place_.ranks);
  const double start = measure::monotonic_seconds();
  for (int i = 0; i < iterations; ++i) {
    if (auto ok = enqueue(question, counts, i); !ok) return tl::unexpected(ok.error());
  }
  const double launched = measure::monotonic_seconds();
  if (auto ok = wait(); !ok) return tl::unexpected(ok.error());
  const double end = measure::monotonic_seconds();
  return coll::Timed{(end - start) / iterations, (launched - start) / iterations, {}};
}

Result<coll::Timed> Group::run_blocking(const coll::Question& question, int iterations) {
  const auto counts = coll::counts_of(question, place_.ranks);
  coll::Timed timed;
  std::vector<double> each;
  for (int i = 0; i < iterations; ++i) {
    const double start = measure::monotonic_seconds();
    if (auto ok = enqueue(question, counts, i); !ok) return tl::unexpected(ok.error());
    timed.launch_seconds += (measure::monotonic_seconds() - start) / iterations;
    if (auto ok = wait(); !ok) return tl::unexpected(ok.error());
    each.push_back(measure::monotonic_seconds() - start);
    timed.seconds += each.back() / iterations;
  }
  timed.each.assign(members_.size(), each);
  return timed;
}

namespace {

// Two events an iteration on one GPU.
class Marks {
 public:
  static Result<Marks> make(const cuda::Machine& machine, const cuda::Gpu& gpu, int iterations) {
    if (auto ok = machine.use(gpu); !ok) return tl::unexpected(ok.error());
    Marks marks;
    marks.machine_ = &machine;
    marks.gpu_ = &gpu;
    for (int i = 0; i < 2 * iterations; ++i) {
      cuda::api::Event event = nullptr;
      auto ok = machine.driver.check(machine.driver.f.event_create(&event, cuda::api::kEventDefault), gpu.id);
      if (!ok) return tl::unexpected(ok.error());
      marks.events_.push_back(event);
    }
    return marks;
  }
  Marks() = default;
  Marks(Marks&& other) noexcept {
    std::swap(machine_, other.machine_), std::swap(gpu_, other.gpu_), events_.swap(other.events_);
  }
  Marks& operator=(Marks&&) = delete;
  ~Marks() {
    if (machine_ == nullptr) return;
    machine_->driver.f.set_current(gpu_->context);
    for (auto* event : events_) machine_->driver.f.event_destroy(event);
  }
  Result<void> record(int i, cuda::api::Stream stream) const {
    if (auto ok = machine_->use(*gpu_); !ok) return ok;
    return machine_->driver.check(
        machine_->driver.f.event_record(events_[static_cast<std::size_t>(i)], stream), gpu_->id + ": event");
  }
  Result<std::vector<double>> seconds() const {
    if (auto ok = machine_->use(*gpu_); !ok) return tl::unexpected(ok.error());
    std::vector<double> out;
    for (std::size_t i = 0; i + 1 < events_.size(); i += 2) {
      float ms = 0;
      auto ok =
          machine_->driver.check(machine_->driver.f.event_elapsed(&ms, events_[i], events_[i + 1]), gpu_->id);
      if (!ok) return tl::unexpected(ok.error());
      out.push_back(static_cast<double>(ms) * 1e-3);
    }
    return out;
  }

 private:
  const cuda::Machine* machine_ = nullptr;
  const cuda::Gpu* gpu_ = nullptr;
  std::vector<cuda::api::Event> events_;
};

}  // namespace

Result<coll::Timed> Group::run_events(const coll::Question& question, int iterations) {
  const auto counts = coll::counts_of(question, place_.ranks);
  std::vector<Marks> marks;
  for (auto& member : members_) {
    auto made = Marks::make(machine_, *member->gpu, iterations);
    if (!made) return tl::unexpected(made.error());
    marks.push_back(std::move(*made));
  }
  const auto mark = [&](int i) -> Result<void> {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (auto ok = marks[m].record(i, members_[m]->lane.stream()); !ok) return ok;
    return {};
  };
  const double start = measure::monotonic_seconds();
  for (int i = 0; i < iterations; ++i) {
    auto ok = mark(2 * i);
    if (ok) ok = enqueue(question, counts, i);
    if (ok) ok = mark(2 * i + 1);
    if (!ok) return tl::unexpected(ok.error());
  }
  coll::Timed timed;
  timed.launch_seconds = (measure::monotonic_seconds() - start) / iterations;
  if (auto ok = wait(); !ok) return tl::unexpected(ok.error());
  timed.seconds = (measure::monotonic_seconds() - start) / iterations;
  for (const auto& member_marks : marks) {
    auto seconds = member_marks.seconds();
    if (!seconds) return tl::unexpected(seconds.error());
    timed.each.push_back(std::move(*seconds));
  }
  return timed;
}

// The captured graphs of the local ranks.
class Group::Graphs {
 public:
  explicit Graphs(Group& group) : group_(group) {}
  ~Graphs() {
    const auto& f = group_.machine_.driver.f;
    for (auto* exec : execs_) f.graph_exec_destroy(exec);
    for (auto* graph : graphs_) f.graph_destroy(graph);
  }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  Result<void> capture(const coll::Question& question, int iterations) {
    const auto& driver = group_.machine_.driver;
    const auto counts = coll::counts_of(question, group_.place_.ranks);
    auto ok = each([&](Member& m) {
      return driver.check(driver.f.begin_capture(m.lane.stream(), cuda::api::kCaptureThreadLocal), "capture");
    });
    for (int i = 0; i < iterations && ok; ++i) ok = group_.enqueue(question, counts, i);
    const auto ended = each([&](Member& m) {
      cuda::api::Graph graph = nullptr;
      auto end = driver.check(driver.f.end_capture(m.lane.stream(), &graph), "end of the capture");
      if (end) graphs_.push_back(graph);
      return end;
    });
    if (ok) ok = ended;
    if (!ok) return ok;
    std::size_t i = 0;
    return each([&](Member&) {
      cuda::api::GraphExec exec = nullptr;
      auto made = driver.check(driver.f.graph_instantiate(&exec, graphs_[i++], 0), "CUDA graph");
      if (made) execs_.push_back(exec);
      return made;
    });
  }

  Result<void> launch() {
    const auto& driver = group_.machine_.driver;
    std::size_t i = 0;
    return each([&](Member& m) {
      return driver.check(driver.f.graph_launch(execs_[i++], m.lane.stream()), "launch of a CUDA graph");
    });
  }

 private:
  template <class F>
  Result<void> each(const F& f) {
    for (auto& member : group_.members_) {
      auto ok = group_.machine_.use(*member->gpu);
      if (ok) ok = f(*member);
      if (!ok) {
        ok.error().text = fmt::format("rank {} ({}): {}", member->rank, member->gpu->id, ok.error().text);
        return ok;
      }
    }
    return {};
  }
  Group& group_;
  std::vector<cuda::api::Graph> graphs_;
  std::vector<cuda::api::GraphExec> execs_;
};

Result<coll::Timed> Group::run_graph(const coll::Question& question, int iterations, int launches) {
  Graphs graphs(*this);
  auto ok = graphs.capture(question, iterations);
  if (ok && launches == 0) {  // the first launch uploads
    ok = graphs.launch();
    launches = 1;
  }
  if (ok) ok = wait();
  const double start = measure::monotonic_seconds();
  for (int i = 0; i < launches && ok; ++i) ok = graphs.launch();
  const double launched = measure::monotonic_seconds();
  if (ok) ok = wait();
  if (!ok) return tl::unexpected(ok.error());
  const double end = measure::monotonic_seconds(), count = static_cast<double>(iterations) * launches;
  return coll::Timed{(end - start) / count, (launched - start) / count, {}};
}

Result<void> Group::fill(const coll::Question& question) {
  const auto& driver = machine_.driver;
  const auto counts = coll::counts_of(question, place_.ranks);
  const auto element = coll::size_of(question.type);
  for (auto& member : members_) {
    if (auto ok = machine_.use(*member->gpu); !ok) return ok;
    const auto stream = member->lane.stream();
    const auto words = (coll::shown_bytes(question, place_.ranks) + 3) / 4;
    auto ok = driver.check(driver.f.set_d32_async(member->recv_at, 0xdeadbeef, words, stream), "clear");
    auto slice = coll::sent_by(question, place_.ranks, member->rank, kSeed);
    auto data = question.in_place
                    ? member->recv_at + static_cast<std::size_t>(member->rank) * counts.send_step * element
                    : member->send_at;
    void* parameters[] = {&data, &slice};
    if (ok)
      ok = cuda::launch(machine_, *member->gpu, "tt_coll_fill", member->gpu->multiprocessors * 2, 512, 0,
                        stream, parameters);
    if (!ok) return ok;
  }
  return wait();
}

Result<void> Group::compare(const coll::Question& question, Member& member, coll::Checked& checked) {
  const auto& driver = machine_.driver;
  const auto counts = coll::counts_of(question, place_.ranks);
  const auto element = coll::size_of(question.type);
  const auto base =
      member.recv_at +
      (question.in_place ? static_cast<std::size_t>(member.rank) * counts.recv_step * element : 0);
  for (const auto& arrival : coll::arrivals_at(question, place_.ranks, member.rank, kSeed)) {
    std::array<unsigned long long, 2> words{0, ~0ull};
    auto ok = machine_.use(*member.gpu);
    if (ok)
      ok = driver.check(driver.f.copy_to_device(member.result.get(), words.data(), sizeof words), "check");
    auto data = base + arrival.offset * element;
    auto slice = arrival.slice;
    auto out = member.result.get();
    void* parameters[] = {&data, &slice, &out};
    if (ok)
      ok = cuda::launch(machine_, *member.gpu, "tt_coll_check", member.gpu->multiprocessors * 2, 512, 0,
                        member.lane.stream(), parameters);
    if (ok) ok = driver.check(driver.f.stream_synchronize(member.lane.stream()), member.gpu->id + ": check");
    if (ok)
      ok = driver.check(driver.f.copy_to_host(words.data(), member.result.get(), sizeof words), "check");
    if (!ok) return ok;
    checked.checked += slice.count;
    checked.wrong += words[0];
    if (words[0] == 0 || !checked.first.empty()) continue;
    std::uint64_t have = 0;
    ok = driver.check(driver.f.copy_to_host(&have, data + words[1] * element, element), "check");
    if (!ok) return ok;
    checked.first = coll::wrong_text(member.rank, arrival, counts.recv, words[1], have);
  }
  return {};
}

Result<coll::Checked> Group::verify(const coll::Question& question, coll::Mode mode) {
  if (const auto why = cannot(question, mode)) return fail(Errc::unsupported, "{}", *why);
  if (question.in_place && !coll::works_in_place(question.op))
    return fail(Errc::unsupported, "{} in place has no defined result", coll::name_of(question.op));
  for (const auto& member : members_)
    if (member->gpu->module == nullptr) return fail(Errc::unsupported, "{}", member->gpu->kernels_why);
  auto ok = fill(question);
  if (ok && mode == coll::Mode::graph) {
    Graphs graphs(*this);
    ok = graphs.capture(question, 1);
    if (ok) ok = graphs.launch();
    if (ok) ok = wait();
  } else if (ok) {
    ok = enqueue(question, coll::counts_of(question, place_.ranks), 0);
    if (ok) ok = wait();
  }
  coll::Checked checked;
  for (auto& member : members_)
    if (ok) ok = compare(question, *member, checked);
  if (!ok) {
    broken_ = true;
    return tl::unexpected(ok.error());
  }
  return checked;
}

}  // namespace topotune::nccl
