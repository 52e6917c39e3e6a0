#include "checks/log_tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace topotune::checks {

namespace {

using model::TunerAnswer;
using Kind = TunerAnswer::Kind;
using State = TableUse::State;
using Answer = const TunerAnswer*;
using Process = std::pair<std::string, int>;  // host and pid

Process process_of(Answer a) { return {a->host, a->pid.value_or(-1)}; }

const model::LogSetting* names_topotune(const model::NcclLog& log, std::string_view variable) {
  const auto at = std::ranges::find_if(log.env, [&](const model::LogSetting& s) {
    return s.name == variable && s.value.find("topotune") != std::string::npos;
  });
  return at == log.env.end() ? nullptr : &*at;
}

std::string name_of_rank(Answer a) {
  const auto where = fmt::format("{}{}", a->host, a->pid ? fmt::format(", process {}", *a->pid) : "");
  return a->rank ? fmt::format("rank {} ({})", *a->rank, where) : where;
}

std::string names_of(const std::vector<Answer>& ranks) {
  constexpr std::size_t kMost = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i)
    out += (i == 0 ? "" : ", ") + name_of_rank(ranks[i]);
  return ranks.size() > kMost ? out + fmt::format(" and {} more", ranks.size() - kMost) : out;
}

// The lines of one communicator.
struct Group {
  std::string label;  // "communicator 0x…: ", where there are several
  int nranks = 0;     // 0: not known
  std::vector<Answer> answers;

  std::vector<Answer> of(Kind kind) const {
    std::vector<Answer> out;
    std::ranges::copy_if(answers, std::back_inserter(out), [&](Answer a) { return a->kind == kind; });
    return out;
  }
};

class Judge {
 public:
  Judge(const model::NcclLog& log, std::string_view hash) : log_(log), hash_(hash) {
    for (const auto& one : log.tuner.asked) {
      const Process process{one.host, one.pid.value_or(-1)};
      left_[process] += one.in_use;
      if (!one.off.empty()) off_.try_emplace(process, &one);
    }
  }

  std::vector<TableUse> run() {
    const auto all = groups();
    for (const auto& group : all) judge(group);
    for (const auto* group : waiting_) judge_partly_asked(*group);
    return merged();
  }

 private:
  std::vector<Group> groups() const;
  void judge(const Group& group);
  bool judge_off(const Group& group);
  bool judge_hashes(const Group& group);
  bool judge_missing(const Group& group);
  void judge_asked(const Group& group);
  void judge_partly_asked(const Group& group);
  std::vector<TableUse> merged() const;

  std::map<Process, int> ranks_in(const Group& group) const {
    std::map<Process, int> out;
    for (const auto* a : group.of(Kind::table)) ++out[process_of(a)];
    return out;
  }
  void say(State state, const Group& group, const model::LogLine& at, const std::string& text,
           bool differs = false) {
    const bool fault = state == State::unused || state == State::unknown;
    found_.push_back({state, (fault ? group.label : "") + text, at, differs});
  }
  void say(State state, const Group& group, Answer at, const std::string& text, bool differs = false) {
    say(state, group, at->at, text, differs);
  }

  const model::NcclLog& log_;
  std::string_view hash_;
  std::map<Process, int> left_;                      // "in use" lines that no communicator has taken yet
  std::map<Process, const model::TunerAsked*> off_;  // said so to a collective
  std::vector<const Group*> waiting_;
  std::vector<TableUse> found_;
};

// By communicator; lines that name none are one communicator where they speak of the same size.
std::vector<Group> Judge::groups() const {
  std::map<int, Group> known;
  std::map<std::pair<int, int>, Group> by_size;
  for (const auto& a : log_.tuner.answers)
    (a.communicator ? known[*a.communicator] : by_size[{a.nranks, a.nnodes}]).answers.push_back(&a);
  std::vector<Group> out;
  for (auto& [index, group] : known) {
    const auto at = static_cast<std::size_t>(index);
    if (at < log_.communicators.size()) {
      const auto& c = log_.communicators[at];
      group.nranks = c.nranks.value_or(0);
      if (known.size() > 1)
        group.label = fmt::format("communicator {}: ", c.id.value_or("of " + std::to_string(group.nranks)));
    }
    out.push_back(std::move(group));
  }
  for (auto& [size, group] : by_size) {
    group.nranks = size.first;
    out.push_back(std::move(group));
  }
  for (auto& group : out)
    std::ranges::stable_sort(group.answers, {}, [](Answer a) { return a->rank.value_or(-1); });
  return out;
}

void Judge::judge(const Group& group) {
  if (group.nranks == 1 && group.of(Kind::none).size() == group.answers.size()) return;
  if (judge_off(group) || judge_hashes(group) || judge_missing(group)) return;
  if (const auto other = group.of(Kind::nothing); !other.empty())
    return say(State::other_size, group, other.front(), other.front()->text);
  if (!group.of(Kind::table).empty()) judge_asked(group);
}

// A rank whose plugin is off or was never loaded, or a late "off".
bool Judge::judge_off(const Group& group) {
  const auto tables = group.of(Kind::table);
  const auto off = group.of(Kind::off);
  auto none = group.of(Kind::none);
  std::erase_if(none, [](Answer a) { return !a->made; });
  struct Off {
    std::vector<Answer> ranks;
    model::LogLine at;
  };
  std::map<std::string, Off> by_reason;
  const auto add = [&](const std::string& reason, Answer rank, const model::LogLine& at) {
    by_reason.try_emplace(reason, Off{{}, at}).first->second.ranks.push_back(rank);
  };
  for (const auto* a : off) add(a->text, a, a->at);
  for (const auto* a : tables)
    if (const auto late = off_.find(process_of(a)); late != off_.end())
      add(late->second->off, a, late->second->at);
  for (const auto& [reason, found] : by_reason) {
    const bool all = found.ranks.size() == group.answers.size();
    const bool whole = all && static_cast<int>(found.ranks.size()) == group.nranks;
    say(State::unused, group, found.at, (whole ? "" : names_of(found.ranks) + ": ") + reason, !all);
  }
  if (!none.empty())
    say(State::unused, group, none.front(), fmt::format("the plugin was not loaded by {}", names_of(none)),
        none.size() < group.answers.size());
  const auto nothing = group.of(Kind::nothing);
  if (!nothing.empty() && !tables.empty())
    say(State::unused, group, nothing.front(),
        fmt::format("{} has another table: {}", names_of(nothing), nothing.front()->text), true);
  return !by_reason.empty() || !none.empty() || (!nothing.empty() && !tables.empty());
}

bool Judge::judge_hashes(const Group& group) {
  std::map<std::string, std::vector<Answer>> by_hash;
  for (const auto* a : group.of(Kind::table)) by_hash[a->hash].push_back(a);
  if (by_hash.size() > 1) {
    std::string text = "the ranks have different tables:";
    for (const auto& [hash, ranks] : by_hash) text += fmt::format(" {} at {};", hash, names_of(ranks));
    text.pop_back();
    say(State::unused, group, by_hash.rbegin()->second.front(), text, true);
    return true;
  }
  if (by_hash.empty() || hash_.empty() || by_hash.begin()->first == hash_) return false;
  const auto* first = by_hash.begin()->second.front();
  say(State::unused, group, first, first->text + ": another table");
  return true;
}

// What the log does not hold.
bool Judge::judge_missing(const Group& group) {
  if (const auto cut = group.of(Kind::cut); !cut.empty())
    return say(State::unknown, group, cut.front(),
               fmt::format("the plugin's line is cut at {}", names_of(cut))),
           true;
  if (const auto open = group.of(Kind::none); !open.empty())  // those of complete communicators were judged
    return say(State::unknown, group, open.front(),
               fmt::format("the log ends before the plugin speaks to {}", names_of(open))),
           true;
  std::set<int> there;
  int unnamed = 0;
  for (const auto* a : group.answers) a->rank ? there.insert(*a->rank), 0 : ++unnamed;
  const int seen = static_cast<int>(there.size()) + unnamed;
  const bool whole = unnamed > 0 ? group.nranks > 0 && seen % group.nranks == 0 : seen >= group.nranks;
  const auto others = group.of(Kind::nothing);
  if (whole || others.size() == group.answers.size()) return false;
  std::string text = fmt::format("{} of {} ranks are in the log", seen, group.nranks);
  if (unnamed == 0) {
    int first = 0;
    while (there.contains(first)) ++first;
    text += fmt::format("; rank {} is not", first);
  }
  say(State::unknown, group, group.answers.front(), fmt::format("{}: {}", group.answers.front()->text, text));
  return true;
}

// Each communicator asks once for each of its ranks. The lines do not name it: a process that has said "in
// use" often enough has said it for this one, too.
void Judge::judge_asked(const Group& group) {
  const auto ranks = ranks_in(group);
  if (std::ranges::any_of(ranks, [&](const auto& p) { return left_[p.first] < p.second; })) {
    waiting_.push_back(&group);
    return;
  }
  for (const auto& [process, count] : ranks) left_[process] -= count;
  const auto* first = group.of(Kind::table).front();
  say(State::used, group, first, first->text + ", in use");
}

void Judge::judge_partly_asked(const Group& group) {
  std::vector<Answer> open;
  bool any = false;
  for (const auto* a : group.of(Kind::table)) {
    auto& left = left_[process_of(a)];
    if (left > 0)
      any = true, --left;
    else
      open.push_back(a);
  }
  const auto* first = group.of(Kind::table).front();
  if (any)
    say(State::unknown, group, open.empty() ? first : open.front(),
        fmt::format("{}, in use, but no collective has asked for it at {}", first->text, names_of(open)));
  else
    say(State::idle, group, first, first->text + "; no collective has asked for it yet");
}

std::vector<TableUse> Judge::merged() const {
  std::vector<TableUse> out;
  std::map<std::pair<State, std::string>, std::size_t> at;
  std::vector<int> count;
  for (const auto& one : found_) {
    const auto [place, fresh] = at.try_emplace({one.state, one.text}, out.size());
    if (fresh) out.push_back(one), count.push_back(0);
    ++count[place->second];
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (count[i] > 1) out[i].text += fmt::format(" ({} communicators)", count[i]);
  return out;
}

// No plugin of topotune spoke to any rank.
TableUse never_spoken(const model::NcclLog& log) {
  const auto& tuner = log.tuner;
  TableUse out;
  const auto said = [&](State state, const std::string& text) {
    out.state = state, out.text = text;
    return out;
  };
  if (tuner.env_off) {
    out.at = tuner.env_at;
    return said(State::unused, "the environment plugin is off: " + *tuner.env_off);
  }
  if (!tuner.loaded.empty()) {
    const auto& name = tuner.loaded.back();
    if (name.find("topotune") != std::string::npos)
      return said(State::unknown,
                  fmt::format("NCCL loaded {}, and nothing that it says is in the log", name));
    return said(State::unused, fmt::format("NCCL loaded {}, which is not topotune's", name));
  }
  const auto named = std::ranges::find(log.env, "NCCL_TUNER_PLUGIN", &model::LogSetting::name);
  if (!tuner.made && !tuner.missing)
    return said(State::unknown,
                "the log shows no communicator that is complete (NCCL_DEBUG=INFO prints them)");
  if (named == log.env.end()) return said(State::unused, "NCCL loaded no tuner plugin, none was named");
  out.at = named->at;
  return said(
      State::unused,
      fmt::format("NCCL did not load {}{}", named->value,
                  named->value.find("topotune") == std::string::npos ? ", which is not topotune's" : ""));
}

}  // namespace

bool wants_table(const model::NcclLog& log) {
  return !log.tuner.answers.empty() || log.tuner.env_off ||
         names_topotune(log, "NCCL_TUNER_PLUGIN") != nullptr ||
         names_topotune(log, "NCCL_ENV_PLUGIN") != nullptr;
}

std::vector<TableUse> table_uses(const model::NcclLog& log, std::string_view hash) {
  if (log.tuner.answers.empty()) return {never_spoken(log)};
  auto out = Judge(log, hash).run();
  if (out.empty())
    out.push_back({State::unknown, "the log tells of no communicator of several ranks", {}, false});
  return out;
}

}  // namespace topotune::checks
