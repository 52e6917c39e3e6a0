#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "parse/nccl_log_lines.h"
#include "parse/nccl_log_scan.h"

// What topotune's plugins print (src/plugins/tuner.cc, env_plugin.cc):
//   topotune tuner: table PATH hash HASH, 12 regions for 8 ranks on 1 node(s)   when a communicator is made
//   topotune tuner: off: the table has nothing for 1 ranks on 1 node(s)         likewise
//   topotune tuner: off: WHY                                                    likewise, or at a collective
//   topotune tuner: in use                                                      at a communicator's first one
//   topotune env: off: WHY
// Only lines with NCCL's prefix count: a script's echo of such a line proves nothing.
namespace topotune::parse::log {

namespace {

using Kind = model::TunerAnswer::Kind;

// The log holds all that this rank printed while it was made.
bool whole(const Instance& instance) { return instance.began && instance.initialised; }

constexpr std::string_view kTuner = "topotune tuner: ";
constexpr std::string_view kEnvOff = "topotune env: off: ";
constexpr std::string_view kNothing = "off: the table has nothing for ";
constexpr std::string_view kInUse = "in use";
constexpr std::size_t kLongest = 1024;

// "8 ranks on 1 node(s)"
bool read_size(Cursor in, model::TunerAnswer& to) {
  to.nranks = in.need<int>();
  in.expect(" ranks on ");
  to.nnodes = in.need<int>();
  in.expect(" node(s)");
  return in.ok() && to.nranks > 0 && to.nnodes > 0;
}

bool is_hash(std::string_view text) {
  return !text.empty() && text.size() <= 16 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "table PATH hash HASH, 12 regions for 8 ranks on 1 node(s)"
bool read_table(std::string_view text, model::TunerAnswer& to) {
  const auto at = text.rfind(" hash ");
  if (!text.starts_with("table ") || at == std::string_view::npos) return false;
  Cursor in(text.substr(at + 6));
  const auto hash = in.until(",");
  in.expect(", ").need<int>();
  in.expect(" regions for ");
  if (!in.ok() || !is_hash(hash) || !read_size(in, to)) return false;
  to.hash = std::string(hash);
  return true;
}

model::TunerAnswer answer(const State& state, const TunerLine& line) {
  model::TunerAnswer out;
  const auto& site = state.sites[static_cast<std::size_t>(line.site)];
  out.text = line.text;
  out.at = line.at;
  out.host = state.hosts[site.host];
  if (site.pid >= 0) out.pid = site.pid;
  if (read_table(line.text, out))
    out.kind = Kind::table;
  else if (line.text.starts_with(kNothing) &&
           read_size(Cursor(std::string_view(line.text).substr(kNothing.size())), out))
    out.kind = Kind::nothing;
  else
    out.kind = line.text.starts_with("off: ") && !line.cut ? Kind::off : Kind::cut;
  return out;
}

class Answers {
 public:
  Answers(const State& state, const std::vector<int>& communicator)
      : s_(state), communicator_(communicator) {}

  model::LogTuner run() {
    for (const auto& site : s_.sites) asked(site);
    by_instance_.assign(s_.instances.size(), -1);
    for (const auto& line : s_.tuner_lines) place(line);
    for (const int one : loose_) settle(one);
    if (!out_.answers.empty()) silent();
    return std::move(out_);
  }

 private:
  const Instance& instance(std::size_t i) const { return s_.instances[i]; }

  // By process: the thread that starts a collective may not print the device of its communicator.
  void asked(const Site& site) {
    if (site.tuner_in_use == 0 && site.tuner_off.empty()) return;
    const auto [at, fresh] = asked_.try_emplace({site.host, site.pid}, out_.asked.size());
    if (fresh) {
      out_.asked.emplace_back();
      out_.asked.back().host = s_.hosts[site.host];
      if (site.pid >= 0) out_.asked.back().pid = site.pid;
    }
    auto& to = out_.asked[at->second];
    to.in_use += site.tuner_in_use;
    if (to.off.empty()) to.off = site.tuner_off, to.at = site.tuner_at;
  }

  void place(const TunerLine& line) {
    const int index = static_cast<int>(out_.answers.size());
    out_.answers.push_back(answer(s_, line));
    site_of_.push_back(line.site);
    if (line.instance >= 0 && fits(index, static_cast<std::size_t>(line.instance)))
      bind(index, static_cast<std::size_t>(line.instance));
    else
      loose_.push_back(index);
  }

  // Has no answer yet, and is not of another size.
  bool fits(int index, std::size_t i) const {
    const auto& a = out_.answers[static_cast<std::size_t>(index)];
    return by_instance_[i] < 0 &&
           (a.nranks == 0 || instance(i).nranks <= 0 || instance(i).nranks == a.nranks);
  }

  void bind(int index, std::size_t i) {
    by_instance_[i] = index;
    identify(out_.answers[static_cast<std::size_t>(index)], i);
  }

  void identify(model::TunerAnswer& to, std::size_t i) const {
    if (communicator_[i] >= 0) to.communicator = communicator_[i];
    if (instance(i).rank >= 0) to.rank = instance(i).rank;
    to.made = whole(instance(i));
  }

  // A line whose communicator nobody had named yet, or that several threads printed at a time: it is of a
  // communicator of its size that has none.
  void settle(int index) {
    const int site = site_of_[static_cast<std::size_t>(index)];
    for (const int i : s_.sites[static_cast<std::size_t>(site)].instances)
      if (fits(index, static_cast<std::size_t>(i))) return bind(index, static_cast<std::size_t>(i));
    unclear_.insert(site);
  }

  // Ranks to which the plugin never spoke.
  void silent() {
    for (std::size_t i = 0; i < s_.instances.size(); ++i) {
      const auto& in = instance(i);
      if (by_instance_[i] >= 0 || in.rank < 0 || in.site < 0) continue;
      model::TunerAnswer none;
      const auto& site = s_.sites[static_cast<std::size_t>(in.site)];
      none.host = s_.hosts[site.host];
      if (site.pid >= 0) none.pid = site.pid;
      identify(none, i);
      none.made = none.made && !unclear_.contains(in.site);
      out_.answers.push_back(std::move(none));
    }
  }

  const State& s_;
  const std::vector<int>& communicator_;
  model::LogTuner out_;
  std::vector<int> by_instance_, site_of_, loose_;
  std::set<int> unclear_;  // sites with lines of no communicator that is in the log
  std::map<std::pair<int, int>, std::size_t> asked_;  // by host and process
};

}  // namespace

namespace {

void tuner_line(State& state, Site& site, std::string_view text) {
  const bool off = text.starts_with("off: ") && !text.starts_with(kNothing);
  auto* instance = state.current_instance();
  if (text == kInUse) {
    ++site.tuner_in_use;
  } else if (off && instance != nullptr && instance->tuner_answered) {
    if (site.tuner_off.empty()) site.tuner_off = std::string(text), site.tuner_at = state.at;
  } else if (state.tuner_lines.size() < kMaxInstances) {
    if (state.unterminated && !text.empty() && kInUse.starts_with(text)) return;
    const bool open = instance != nullptr && !instance->initialised;
    if (open) instance->tuner_answered = true;
    state.tuner_lines.push_back(
        {state.site, open ? site.current : -1, state.unterminated, std::string(text), state.at});
  }
}

}  // namespace

bool topotune_line(State& state, std::string_view text) {
  auto* site = state.here();
  if (text.starts_with(kEnvOff)) {
    if (!state.log.tuner.env_off && site != nullptr) {
      state.log.tuner.env_off = std::string(text.substr(kEnvOff.size(), kLongest));
      state.log.tuner.env_at = state.at;
    }
  } else if (const auto head = trim(kTuner); site != nullptr && text.starts_with(head)) {
    tuner_line(state, *site, trim(text.substr(head.size(), kLongest)));
  }
  return true;
}

model::LogTuner tuner_of(const State& state, const std::vector<int>& communicator_of_instance) {
  auto out = Answers(state, communicator_of_instance).run();
  out.env_off = state.log.tuner.env_off;
  out.env_at = state.log.tuner.env_at;
  out.loaded.assign(state.tuners.begin(), state.tuners.end());
  out.missing = std::ranges::any_of(state.log.notes, [](const model::LogNote& n) {
    return n.kind == model::NoteKind::plugin_missing && n.subject == "TUNER";
  });
  out.made = std::ranges::any_of(state.instances, whole);
  return out;
}

}  // namespace topotune::parse::log
