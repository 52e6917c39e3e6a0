#include "modules/ucx_run.h"

#include <time.h>

#include <functional>
#include <optional>
#include <thread>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace topotune::ucx {

namespace {

double thread_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Ticks whose length the caller learns from the whole loop.
std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(now() * 1e9);
#endif
}

// One message there and back at the initiator; one way where the other side only lets its library work.
class Pinger {
 public:
  Pinger(Side& side, Pair pair, int op, std::size_t bytes)
      : side_(side), c_(side.connection(pair.peer)), pair_(pair), op_(op), bytes_(bytes) {}

  // Into memory that this processor cannot look at, a put is known to be there only by its flush.
  bool one_sided() const { return op_ == kGet || (op_ == kPut && !side_.is_host()); }

  // In portions, so that a busy machine does not make it last for minutes; the initiator ends it. Rounds
  // made.
  int loop(int rounds, double seconds, double& mean, double* samples) {
    if (op_ == kPut) side_.set(side_.in() + bytes_ - 1, 0, 1);
    if (!pair_.initiator) return serve(), 0;
    side_.hear(c_, pair_.peer, Word::ready);
    const int portion = (rounds + 15) / 16;
    double spent = 0;
    int made = 0;
    while (made < rounds && (made == 0 || spent < seconds)) {
      const int count = rounds - made < portion ? rounds - made : portion;
      side_.tell(c_, pair_.me, Word::count, static_cast<std::uint64_t>(count));
      spent += turn(made, count, samples);
      made += count;
    }
    side_.tell(c_, pair_.me, Word::count, 0);
    mean = spent / (made * ways());
    return made;
  }

 private:
  double ways() const { return one_sided() ? 1 : 2; }

  void serve() {
    side_.tell(c_, pair_.me, Word::ready);
    int round = 0;
    while (const auto count = side_.hear(c_, pair_.peer, Word::count)) {
      if (one_sided()) continue;
      if (op_ == kTag) next_ = side_.receive_tag(pair_.peer, side_.in(), bytes_);
      for (std::uint64_t i = 0; i < count; ++i) back(round++, i + 1 == count);
    }
  }

  // Rounds `first` and so on at the initiator; seconds.
  double turn(int first, int count, double* samples) {
    const double start = now();
    const auto begin = ticks();
    auto before = begin;
    for (int i = first; i < first + count; ++i) {
      there_and_back(i);
      if (samples == nullptr) continue;
      const auto at = ticks();
      samples[i] = static_cast<double>(at - before);
      before = at;
    }
    const double seconds = now() - start;
    const double per_tick = seconds / static_cast<double>(before > begin ? before - begin : 1);
    for (int i = first; samples != nullptr && i < first + count; ++i) samples[i] *= per_tick / ways();
    return seconds;
  }

  void there_and_back(int round) {
    switch (op_) {
      case kTag: {
        // The answer is awaited while the message is on its way.
        const auto out = side_.send_tag(c_, pair_.me, side_.out(), bytes_);
        const auto in = side_.receive_tag(pair_.peer, side_.in(), bytes_);
        side_.wait(in, "receive");
        return side_.wait(out, "send");
      }
      case kActive:
        send_active();
        side_.expect_active(1);
        return side_.wait_active();
      case kPut:
        put(round);
        return one_sided() ? side_.flush(c_) : wait_put(mark(round));
      default:
        return side_.wait(Side::get(c_, side_.in(), bytes_), "get");
    }
  }
  void back(int round, bool last) {
    switch (op_) {
      case kTag: {
        side_.wait(next_, "receive");
        // The next one is awaited before this one is known to have left, as programs do.
        const auto out = side_.send_tag(c_, pair_.me, side_.out(), bytes_);
        if (!last) next_ = side_.receive_tag(pair_.peer, side_.in(), bytes_);
        return side_.wait(out, "send");
      }
      case kActive:
        side_.expect_active(1);
        side_.wait_active();
        return send_active();
      default:
        wait_put(mark(round));
        return put(round);
    }
  }

  void send_active() { side_.wait(Side::send_active(c_, side_.out(), bytes_), "active message"); }
  void put(int round) {
    if (side_.is_host()) side_.out()[bytes_ - 1] = mark(round);
    side_.wait(Side::put(c_, side_.out(), bytes_), "put");
  }
  // The last byte of what the other side puts changes with each round.
  void wait_put(unsigned char value) {
    Patience patience;
    const volatile unsigned char* const at = side_.in() + bytes_ - 1;
    while (*at != value) {
      side_.progress();
      side_.look_at_the_clock(patience, "put");
    }
  }
  static unsigned char mark(int round) { return static_cast<unsigned char>(round % 255 + 1); }

  Side& side_;
  Connection& c_;
  Pair pair_;
  int op_;
  std::size_t bytes_;
  Request next_ = nullptr;  // what the other side waits for
};

// `count` messages in the directions, at most `window` under way.
class Flow {
 public:
  Flow(Side& side, Pair pair, const StreamPlan& plan)
      : side_(side),
        c_(side.connection(pair.peer)),
        pair_(pair),
        plan_(plan),
        window_(static_cast<std::size_t>(plan.window)) {}

  // Ends when the receiver has all, and both know it.
  void run(std::uint64_t count) {
    const bool sends = pair_.initiator || plan_.both, receives = !pair_.initiator || plan_.both;
    if (receives && plan_.op == kActive) side_.expect_active(count);
    move(sends ? count : 0, receives && plan_.op == kTag ? count : 0);
    if (sends && (plan_.op == kPut || plan_.op == kGet)) side_.flush(c_);
    settle();
  }

 private:
  void move(std::uint64_t to_send, std::uint64_t to_receive) {
    std::uint64_t sent = 0, received = 0, posted = 0;
    std::vector<Request> out(window_, nullptr), in(window_, nullptr);
    Patience patience;
    while (sent < to_send || received < to_receive || !side_.all_active()) {
      for (std::size_t i = 0; i < window_ && posted < to_receive; ++i) {
        if (in[i] != nullptr) continue;
        in[i] = side_.receive_tag(pair_.peer, side_.in(), plan_.bytes);
        ++posted;
        if (side_.done(in[i], "receive")) ++received;
      }
      for (std::size_t i = 0; i < window_ && sent < to_send; ++i) {
        if (!side_.done(out[i], "send")) continue;
        out[i] = one();
        ++sent;
        static_cast<void>(side_.done(out[i], "send"));
      }
      side_.progress();
      for (auto& request : in)
        if (request != nullptr && side_.done(request, "receive")) ++received;
      side_.look_at_the_clock(patience, "stream");
    }
    for (auto& request : out) side_.wait(request, "send");
  }

  void settle() {
    if (pair_.initiator) {
      side_.tell(c_, pair_.me, Word::sent);
      side_.hear(c_, pair_.peer, Word::received);
    } else {
      side_.hear(c_, pair_.peer, Word::sent);
      side_.tell(c_, pair_.me, Word::received);
    }
  }

  Request one() {
    switch (plan_.op) {
      case kTag:
        return side_.send_tag(c_, pair_.me, side_.out(), plan_.bytes);
      case kActive:
        return Side::send_active(c_, side_.out(), plan_.bytes);
      case kPut:
        return Side::put(c_, side_.out(), plan_.bytes);
      default:
        return Side::get(c_, side_.in(), plan_.bytes);
    }
  }

  Side& side_;
  Connection& c_;
  Pair pair_;
  StreamPlan plan_;
  std::size_t window_;
};

// f(side) on each side, the first one here, the others in their own threads; CPU seconds of all. The first
// failure is thrown when all have ended.
double on_each(const std::vector<std::unique_ptr<Side>>& sides, const std::function<void(Side&)>& f) {
  std::vector<std::optional<Failure>> failures(sides.size());
  std::vector<double> cpu(sides.size(), 0);
  const auto work = [&](std::size_t i) {
    const double start = thread_seconds();
    try {
      sides[i]->use();
      f(*sides[i]);
    } catch (const Failure& failure) {
      failures[i] = failure;
    }
    cpu[i] = thread_seconds() - start;
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < sides.size(); ++i) threads.emplace_back(work, i);
  work(0);
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures)
    if (failure) throw *failure;
  double sum = 0;
  for (const double s : cpu) sum += s;
  return sum;
}

TopotuneNetStream run_all(const std::vector<std::unique_ptr<Side>>& sides, Pair pair, const StreamPlan& plan,
                          std::uint64_t count) {
  const double start = now();
  const double cpu = on_each(sides, [&](Side& side) { Flow(side, pair, plan).run(count); });
  return {now() - start, count * sides.size(), cpu};
}

unsigned char byte_at(std::size_t i, std::uint32_t seed) {
  std::uint32_t x = static_cast<std::uint32_t>(i) * 0x9e3779b9u ^ seed;
  x ^= x >> 16;
  x *= 0x7feb352du;
  return static_cast<unsigned char>(x >> 24);
}

void fill(const Side& side, unsigned char* to, std::size_t bytes, std::uint32_t seed) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = byte_at(i, seed);
  side.write(to, data.data(), bytes);
}

std::uint64_t wrong_bytes(const Side& side, const unsigned char* from, std::size_t bytes,
                          std::uint32_t seed) {
  std::vector<unsigned char> data(bytes);
  side.read(data.data(), from, bytes);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += data[i] != byte_at(i, seed);
  return wrong;
}

}  // namespace

int ping(Side& side, Pair pair, const PingPlan& plan, double& mean, double* samples) {
  Pinger pinger(side, pair, plan.op, plan.bytes);
  double ignored = 0;
  pinger.loop(plan.rounds / 10 + 1, plan.seconds / 4, ignored, nullptr);
  pinger.loop(plan.rounds, plan.seconds, mean, nullptr);
  return pinger.loop(plan.rounds, plan.seconds, ignored, samples);
}

TopotuneNetStream stream(const std::vector<std::unique_ptr<Side>>& sides, Pair pair, const StreamPlan& plan) {
  auto& side = *sides.front();
  auto& c = side.connection(pair.peer);
  TopotuneNetStream result{};
  if (!pair.initiator) {
    while (const auto count = side.hear(c, pair.peer, Word::count))
      result = run_all(sides, pair, plan, count);
    return result;
  }
  std::uint64_t count = 4;
  while (true) {
    side.tell(c, pair.me, Word::count, count);
    result = run_all(sides, pair, plan, count);
    if (result.seconds >= plan.seconds * 0.7) break;
    const double factor = plan.seconds / (result.seconds > 1e-6 ? result.seconds : 1e-6);
    count = static_cast<std::uint64_t>(static_cast<double>(count) * (factor < 16 ? factor * 1.05 : 16)) + 1;
  }
  side.tell(c, pair.me, Word::count, 0);
  return result;
}

// From the initiator to the other; get: the initiator reads what the other laid into its receive half.
std::uint64_t verify(Side& side, Pair pair, int op, std::size_t bytes, std::uint32_t seed) {
  auto& c = side.connection(pair.peer);
  const bool reads = op == kGet;
  if (pair.initiator) {
    side.set(side.out(), 0x5a, bytes);
    if (!reads) fill(side, side.out(), bytes, seed);
    side.hear(c, pair.peer, Word::ready);
    side.wait(op == kTag      ? side.send_tag(c, pair.me, side.out(), bytes)
              : op == kActive ? Side::send_active(c, side.out(), bytes)
              : op == kPut    ? Side::put(c, side.out(), bytes)
                              : Side::get(c, side.out(), bytes),
              "send");
    if (op == kPut) side.flush(c);
    side.tell(c, pair.me, Word::sent);
    side.hear(c, pair.peer, Word::received);
    return reads ? wrong_bytes(side, side.out(), bytes, seed) : 0;
  }
  side.set(side.in(), 0x5a, bytes);
  if (reads) fill(side, side.in(), bytes, seed);
  if (op == kActive) side.expect_active(1);
  side.tell(c, pair.me, Word::ready);
  if (op == kTag) side.wait(side.receive_tag(pair.peer, side.in(), bytes), "receive");
  if (op == kActive) side.wait_active();
  side.hear(c, pair.peer, Word::sent);
  side.tell(c, pair.me, Word::received);
  return reads ? 0 : wrong_bytes(side, side.in(), bytes, seed);
}

}  // namespace topotune::ucx
