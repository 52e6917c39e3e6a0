#include "model/diff.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "model/diff_facts.h"
#include "model/diff_match.h"

namespace topotune::model {

namespace {

using Key = std::tuple<DiffGroup, std::string, std::string>;
using Subject = std::pair<DiffGroup, std::string>;

// One side, with what is needed to find a fact in it. The first of two facts with one key counts.
struct Side {
  explicit Side(DiffFacts&& from) : all(std::move(from)) {
    for (const auto& fact : all.facts) {
      by_key.emplace(Key{fact.group, fact.subject, fact.what}, &fact);
      if (fact.what.empty()) subjects.insert({fact.group, fact.subject});
    }
  }

  const DiffFact* find(const DiffFact& like) const {
    const auto found = by_key.find({like.group, like.subject, like.what});
    return found == by_key.end() ? nullptr : found->second;
  }

  DiffFacts all;
  std::map<Key, const DiffFact*> by_key;
  std::set<Subject> subjects;  // devices
};

// Facts of a device that the other side does not have at all: its coming or going says it.
bool told_by_device(const DiffFact& fact, const Side& here, const Side& there) {
  const Subject subject{fact.group, fact.subject};
  return !fact.what.empty() && here.subjects.contains(subject) && !there.subjects.contains(subject);
}

void only_here(const DiffFact& fact, const Side& here, const Side& there, bool before, Diff& out) {
  if (told_by_device(fact, here, there)) return;
  if (!there.all.domains.contains(fact.domain)) {
    out.one_sided.push_back({fact.group, fact.subject, fact.what, fact.value, before});
    return;
  }
  Change change{
      before ? DiffKind::removed : DiffKind::added, fact.group, fact.subject, fact.what, {}, {}, {}};
  (before ? change.before : change.after) = fact.value;
  out.changes.push_back(std::move(change));
}

void compare(const DiffFact& fact, const DiffFact& other, Diff& out) {
  ++out.compared;
  if (fact.what.empty() || fact.value == other.value) return;
  out.changes.push_back(
      {DiffKind::changed, fact.group, fact.subject, fact.what, fact.value, other.value, fact.note});
}

}  // namespace

const char* name_of(DiffGroup group) {
  constexpr std::array kNames{"gpu",  "nic",      "pci",   "numa",   "path",
                              "peer", "software", "place", "kernel", "gpudirect"};
  return kNames[static_cast<std::size_t>(group)];
}

const char* name_of(DiffKind kind) {
  return std::array{"added", "removed", "changed"}[static_cast<std::size_t>(kind)];
}

Diff diff(const Machine& before, const Machine& after) {
  const auto labels = match_devices(before, after);
  const Side left(diff_facts(before, labels.before)), right(diff_facts(after, labels.after));
  Diff out;
  for (const auto& fact : left.all.facts) {
    const auto* other = right.find(fact);
    if (other != nullptr) compare(fact, *other, out);
    if (other == nullptr) only_here(fact, left, right, true, out);
  }
  for (const auto& fact : right.all.facts) {
    if (left.find(fact) == nullptr) only_here(fact, right, left, false, out);
  }
  std::ranges::stable_sort(out.changes, {}, &Change::group);
  return out;
}

}  // namespace topotune::model
