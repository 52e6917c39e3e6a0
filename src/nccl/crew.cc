#include "nccl/crew.h"

#include <algorithm>

#include "base/text.h"
#include "coll/share.h"

namespace topotune::nccl {

// An order is a line of numbers and what is said with it. It travels between processes of one version of this
// program, which the meeting made sure of.
struct Crew::Order {
  enum class What { make, run, verify, drop, end };
  What what = What::end;
  int group = 0;
  coll::Question question;
  int iterations = 0, launches = 0;
  coll::Mode mode = coll::Mode::back_to_back;
  std::size_t buffer_bytes = 0;
  int min_ctas = 0, max_ctas = 0;  // 0: not said
  std::string said;                // the setting; of `make` the communicators' id

  std::string text() const {
    return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}\n{}", static_cast<int>(what), group,
                       static_cast<int>(question.op), static_cast<int>(question.type),
                       static_cast<int>(question.reduction), question.bytes, question.root,
                       int{question.in_place}, iterations, launches, static_cast<int>(mode), buffer_bytes,
                       min_ctas, max_ctas, said);
  }
  static std::optional<Order> from(const std::string& text) {
    const auto end = text.find('\n');
    std::vector<std::size_t> numbers;
    for (const auto word : words(std::string_view(text).substr(0, end)))
      if (const auto n = parse_int<std::size_t>(word)) numbers.push_back(*n);
    if (end == std::string::npos || numbers.size() != 14 ||
        numbers[0] > static_cast<std::size_t>(What::end) || numbers[2] >= coll::all_ops().size() ||
        numbers[10] > static_cast<int>(coll::Mode::graph))
      return std::nullopt;
    const auto number = [&](std::size_t i) { return static_cast<int>(numbers[i]); };
    Order o;
    o.what = static_cast<What>(numbers[0]), o.group = number(1);
    o.question = {static_cast<coll::Op>(number(2)),
                  static_cast<coll::Type>(number(3)),
                  static_cast<coll::Reduction>(number(4)),
                  numbers[5],
                  number(6),
                  numbers[7] != 0};
    o.iterations = number(8), o.launches = number(9), o.mode = static_cast<coll::Mode>(numbers[10]);
    o.buffer_bytes = numbers[11], o.min_ctas = number(12), o.max_ctas = number(13);
    o.said = text.substr(end + 1);
    return o;
  }
  std::string name() const {
    switch (what) {
      case What::make:
        return "making communicators";
      case What::run:
        return fmt::format("{} of {} bytes", coll::name_of(question.op), question.bytes);
      case What::verify:
        return fmt::format("checking {} of {} bytes", coll::name_of(question.op), question.bytes);
      case What::drop:
        return "closing communicators";
      case What::end:
        return "the end";
    }
    return {};
  }
};

struct Crew::Report {
  coll::Timed timed;
  coll::Checked checked;
};

// A group that all processes hold, in the leader's hands.
class Crew::Led : public coll::Backend {
 public:
  Led(Crew& crew, int id) : crew_(crew), id_(id), own_(*crew.groups_.at(id)) {}
  ~Led() override {
    Order o;
    o.what = Order::What::drop, o.group = id_;
    if (!crew_.lost_) static_cast<void>(crew_.command(o));
    crew_.groups_.erase(id_);  // where the order did not come so far
  }
  Led(const Led&) = delete;
  Led& operator=(const Led&) = delete;

  int ranks() const override { return own_.ranks(); }
  const std::vector<coll::LocalRank>& local() const override { return own_.local(); }
  std::string name() const override { return own_.name(); }
  std::optional<std::string> cannot(const coll::Question& question, coll::Mode mode) const override {
    return own_.cannot(question, mode);
  }
  Result<coll::Timed> run(const coll::Question& question, int iterations, coll::Mode mode,
                          int launches) override {
    auto report = order(Order::What::run, question, iterations, mode, launches);
    if (!report) return tl::unexpected(report.error());
    return std::move(report->timed);
  }
  Result<coll::Checked> verify(const coll::Question& question, coll::Mode mode) override {
    auto report = order(Order::What::verify, question, 1, mode, 0);
    if (!report) return tl::unexpected(report.error());
    return std::move(report->checked);
  }

 private:
  Result<Report> order(Order::What what, const coll::Question& question, int iterations, coll::Mode mode,
                       int launches) {
    if (const auto why = own_.cannot(question, mode)) return fail(Errc::unsupported, "{}", *why);
    Order o;
    o.what = what, o.group = id_, o.question = question;
    o.iterations = iterations, o.mode = mode, o.launches = launches, o.said = crew_.setting_;
    return crew_.command(o);
  }
  Crew& crew_;
  int id_;
  Group& own_;
};

Crew::Crew(Hands hands, const Place& place) : hands_(std::move(hands)), place_(place) {}

Result<std::unique_ptr<Crew>> Crew::gather(Hands hands) {
  const auto place = place_among(hands.peers, hands.gpus.size(), hands.limit_seconds);
  if (!place) return tl::unexpected(place.error());
  return std::unique_ptr<Crew>(new Crew(std::move(hands), *place));
}

Crew::~Crew() {
  if (leads() && !lost_) static_cast<void>(command(Order()));
}

void Crew::lose(const Error& error) {
  lost_ = error;
  for (const auto& [id, group] : groups_) group->abandon();
}

// Communicators that not all have.
void Crew::forget(int id) {
  const auto at = groups_.find(id);
  if (at == groups_.end()) return;
  at->second->abandon();
  groups_.erase(at);
}

// The leader's side: says it, and does it.
Result<Crew::Report> Crew::command(const Order& order) {
  if (lost_) return tl::unexpected(*lost_);
  if (hands_.alive) hands_.alive();
  const auto told = hands_.peers.exchange(order.text(), "what to do next", hands_.limit_seconds);
  if (!told) return lose(told.error()), tl::unexpected(told.error());
  return order.what == Order::What::end ? Result<Report>() : carry_out(order);
}

Result<void> Crew::follow(const std::function<Result<void>(const std::string&)>& hear,
                          const std::function<void(const std::string&)>& step) {
  std::string heard;
  for (;;) {
    step("");
    // The leader counts and writes in between.
    const auto told = hands_.peers.exchange("", "what to do next", 10 * hands_.limit_seconds);
    if (!told) return lose(told.error()), tl::unexpected(told.error());
    const auto order = Order::from(told->front());
    if (!order) return fail(Errc::malformed, "rank 0 sent something that is no order");
    if (order->what == Order::What::end) return {};
    step(order->name());
    const bool works = order->what == Order::What::run || order->what == Order::What::verify;
    if (works && order->said != heard) {
      heard = order->said;
      if (const auto ok = hear(heard); !ok) {
        hands_.peers.fail_all(ok.error());
        return ok;
      }
    }
    if (const auto report = carry_out(*order); !report && lost_) return tl::unexpected(report.error());
  }
}

// Both sides: works, and tells how it went. What this NCCL or driver cannot do at all no process began; any
// other error ends the crew, as others may be waiting inside of the operation.
Result<Crew::Report> Crew::carry_out(const Order& order) {
  auto report = work(order);
  const bool cannot =
      !report && (report.error().code == Errc::unsupported || order.what == Order::What::make);
  Result<std::vector<double>> mine = std::vector<double>(6);
  if (report)
    mine = std::vector<double>{0,
                               report->timed.seconds,
                               report->timed.launch_seconds,
                               static_cast<double>(report->checked.wrong),
                               static_cast<double>(report->checked.checked),
                               hands_.stop && hands_.stop() ? 1.0 : 0.0};
  else if (cannot)
    (*mine)[0] = 1;
  else
    mine = tl::unexpected(report.error());
  const auto all = coll::share(hands_.peers, mine, order.name(), hands_.limit_seconds);
  if (!all) {
    if (hands_.peers.size() > 1) lose(all.error());
    return tl::unexpected(all.error());
  }
  const bool failed =
      std::ranges::any_of(*all, [](const auto& theirs) { return theirs.size() != 6 || theirs[0] != 0; });
  if (failed && order.what == Order::What::make) forget(order.group);
  const bool symmetric = !coll::has_root(order.question.op);
  for (int r = 0; r < hands_.peers.size(); ++r) {
    const auto& theirs = (*all)[static_cast<std::size_t>(r)];
    if (theirs.size() != 6) return fail(Errc::malformed, "{} sent no report", hands_.peers.at(r).to_string());
    stopped_ = stopped_ || theirs[5] != 0;
    if (!report || r == hands_.peers.rank()) continue;
    if (theirs[0] != 0)
      return fail(Errc::unsupported, "{} cannot do {}", hands_.peers.at(r).to_string(), order.name());
    // See work(): who comes last waits for nobody.
    const bool least = symmetric && order.iterations == 1 && order.mode == coll::Mode::back_to_back;
    auto& own = report->timed;
    own.seconds = least ? std::min(own.seconds, theirs[1]) : std::max(own.seconds, theirs[1]);
    own.launch_seconds = std::max(own.launch_seconds, theirs[2]);
    report->checked.wrong += static_cast<std::uint64_t>(theirs[3]);
    report->checked.checked += static_cast<std::uint64_t>(theirs[4]);
    if (theirs[3] > 0 && report->checked.first.empty())
      report->checked.first = fmt::format("{}: {} elements", hands_.peers.at(r).to_string(), theirs[3]);
  }
  return report;
}

Result<Crew::Report> Crew::work(const Order& order) {
  Report report;
  if (order.what == Order::What::make) {
    if (auto ok = make_here(order); !ok) return tl::unexpected(ok.error());
    return report;
  }
  const auto at = groups_.find(order.group);
  if (at == groups_.end()) return fail(Errc::malformed, "there are no communicators {}", order.group);
  auto& group = *at->second;
  const bool several = hands_.peers.size() > 1;
  switch (order.what) {
    case Order::What::run: {
      // The order reaches the processes some time apart, which the first operation would count as its own.
      // In a graph's first launch they meet anyway.
      if (several && order.iterations > 1 && order.mode != coll::Mode::graph) {
        if (const auto met = group.run(order.question, 1, coll::Mode::back_to_back); !met)
          return tl::unexpected(met.error());
      }
      auto timed = group.run(order.question, order.iterations, order.mode, order.launches);
      if (!timed) return tl::unexpected(timed.error());
      report.timed = std::move(*timed);
      return report;
    }
    case Order::What::verify: {
      auto checked = group.verify(order.question, order.mode);
      if (!checked) return tl::unexpected(checked.error());
      report.checked = std::move(*checked);
      return report;
    }
    case Order::What::drop:
      groups_.erase(at);
      return report;
    default:
      return report;
  }
}

Result<void> Crew::all_ready(const Result<void>& mine) {
  const auto all = coll::share(hands_.peers, std::vector<double>{mine ? 0.0 : 1.0},
                               "whether buffers are there", hands_.limit_seconds);
  if (!all) return lose(all.error()), tl::unexpected(all.error());
  for (int r = 0; mine && r < hands_.peers.size(); ++r)
    if ((*all)[static_cast<std::size_t>(r)][0] != 0)
      return fail(Errc::unsupported, "{} could not make its buffers", hands_.peers.at(r).to_string());
  return mine;
}

Result<void> Crew::make_here(const Order& order) {
  auto place = place_;
  if (order.said.size() != sizeof place.id.internal) return fail(Errc::malformed, "rank 0 sent no NCCL id");
  std::ranges::copy(order.said, place.id.internal);
  GroupOptions options;
  options.buffer_bytes = order.buffer_bytes;
  if (order.min_ctas > 0) options.min_ctas = order.min_ctas;
  if (order.max_ctas > 0) options.max_ctas = order.max_ctas;
  if (!groups_.empty()) options.buffers_of = groups_.begin()->second.get();
  if (hands_.peers.size() > 1) {
    options.news = [this] { return hands_.peers.news(); };
    options.ready = [this](const Result<void>& mine) { return all_ready(mine); };
  }
  auto group = Group::make(hands_.library, hands_.machine, hands_.gpus, place, options);
  if (!group) return tl::unexpected(group.error());
  groups_[order.group] = std::move(*group);
  return {};
}

Result<std::unique_ptr<coll::Backend>> Crew::make(const GroupOptions& options) {
  if (hands_.stop && hands_.stop()) return fail(Errc::io, "interrupted");
  const auto id = hands_.library.unique_id();
  if (!id) return tl::unexpected(id.error());
  Order o;
  o.what = Order::What::make, o.group = made_++;
  o.buffer_bytes = options.buffer_bytes;
  o.min_ctas = options.min_ctas.value_or(0), o.max_ctas = options.max_ctas.value_or(0);
  o.said.assign(id->internal, sizeof id->internal);
  if (const auto made = command(o); !made) {
    forget(o.group);
    return tl::unexpected(made.error());
  }
  return std::unique_ptr<coll::Backend>(new Led(*this, o.group));
}

}  // namespace topotune::nccl
