#include "lint/lint.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "checks/mutation.h"
#include "checks/rule.h"
#include "lint/context.h"
#include "lint/scan_notebook.h"
#include "lint/scan_yaml.h"

namespace topotune::lint {

namespace {

// Rules that look at configuration only together with a machine or its files.
constexpr std::pair<std::string_view, std::string_view> kNeedMachine[] = {
    {"NCCL10", "needs the machine: which rails exist"},
    {"NCCL13", "needs the machine: the paths between GPUs and NICs"},
    {"NCCL28", "needs the machine: which network plugins are installed"},
    {"NCCL32", "needs the machine: which tuner plugins are installed"},
    {"NCCL33", "needs the machine: the GPUs and the measured bandwidth"},
};

bool needs_machine(std::string_view id) {
  return std::ranges::any_of(kNeedMachine, [&](const auto& row) { return row.first == id; });
}

void list_checked(Report& report) {
  for (const auto& row : checks::catalogue()) {
    const bool also = row.id == "BENCH01" || row.id == "BENCH02" || row.id == "VER01" || row.id == "CONT01";
    const bool found =
        std::ranges::any_of(report.found, [&](const Found& one) { return one.finding.rule == row.id; });
    if ((row.input == "config" && !needs_machine(row.id)) || also || found)
      report.checked.emplace_back(row.id);
  }
  for (const auto& [id, why] : kNeedMachine)
    if (std::ranges::find(report.checked, id) == report.checked.end())
      report.not_checked.push_back({std::string(id), std::string(why)});
}

// As checks::mutate: for the run that shows that the tests notice.
void mutate(Report& report) {
  std::erase_if(report.found, [](const Found& one) { return checks::is_suppressed(one.finding.rule); });
  for (const auto& rule : report.checked) {
    const auto found = [&](const Found& one) { return one.finding.rule == rule; };
    if (!checks::is_fired(rule) || std::ranges::any_of(report.found, found)) continue;
    report.found.push_back({checks::finding(rule, "mutant", "", "mutant", {}), {}, 0});
  }
}

// By input, line, column, rule. A finding is large: places are sorted, each finding moves once.
void sort_by_place(std::vector<Found>& found) {
  std::vector<std::size_t> order(found.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = n;
  const auto key = [&](std::size_t n) {
    const auto& one = found[n];
    return std::tie(one.input, one.finding.line, one.finding.column, one.finding.rule);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<Found> sorted;
  sorted.reserve(found.size());
  for (const std::size_t n : order) sorted.push_back(std::move(found[n]));
  found = std::move(sorted);
}

void run_rules(Context& context) {
  check_nccl_names(context);
  check_nccl_values(context);
  check_nccl_network(context);
  check_topotune(context);
  check_ucx(context);
  check_binding(context);
  check_commands(context);
  check_tools(context);
  check_kernel_files(context);
  check_packages(context);
  check_containers(context);
}

parse::ConfigText scan(parse::ConfigKind kind, std::string_view text) {
  if (kind == parse::ConfigKind::yaml) return scan_yaml(text);
  if (kind == parse::ConfigKind::notebook) return scan_notebook(text);
  parse::ConfigText out = parse::scan_config(kind, text);
  const auto embedded = std::exchange(out.embedded, {});
  for (const auto& one : embedded) {  // YAML that a script writes
    parse::ConfigText inner = scan_yaml(one.text);
    for (auto& setting : inner.settings)
      setting.literal = setting.literal && setting.value.find('$') == std::string::npos;
    parse::append_config(out, std::move(inner), one.at, one.scope);
  }
  return out;
}

// Each block is a text of its own; what it would include is not there.
std::vector<Block> blocks_of(std::string_view text) {
  std::vector<Block> out;
  const parse::LineIndex index(text);
  for (const auto& block : parse::scan_document(text).embedded) {
    if (block.kind == parse::ConfigKind::document) continue;
    parse::ConfigText inner = scan(block.kind, block.text);
    inner.includes.clear();
    if (block.scope == "?") inner.diagnostics.clear();
    for (auto& one : inner.settings) one.replaced_by.reset();  // alternatives stand below each other
    const auto count = static_cast<int>(std::ranges::count(block.text, '\n'));
    const std::size_t begin = index.begin_of(block.at.line), end = index.begin_of(block.at.line + count);
    out.push_back({{}, text.substr(begin, end - begin), block.at.line});
    parse::append_config(out.back().facts, std::move(inner), block.at,
                         fmt::format("block of line {}", block.at.line));
  }
  // What one block sets another may read.
  std::set<std::string, std::less<>> reads;
  for (const auto& block : out) reads.insert(block.facts.reads.begin(), block.facts.reads.end());
  for (auto& block : out)
    for (const auto& one : block.facts.settings)
      if (reads.contains(one.name)) block.facts.reads.insert(one.name);
  return out;
}

// Variables that only the prose of a document names: whether it sets them, and to what, is not known.
void say_prose(parse::ConfigText& facts, std::string_view text) {
  if (!facts.settings.empty() || !facts.commands.empty()) return;
  const auto named = parse::mentions_of(text);
  if (named.lines > 0)
    facts.diagnostics.push_back(
        {{named.first, 1},
         fmt::format("prose is not judged: {} of its lines name variables of NCCL or UCX", named.lines)});
}

// What a template fills in later is no value, and that it was not judged is said.
void mark_placeholders(parse::ConfigText& facts) {
  for (auto& one : facts.settings) {
    if (!parse::is_placeholder(one.value)) continue;
    one.literal = false;
    const bool concerns = one.name.starts_with("NCCL_") || one.name.starts_with("UCX_");
    if (concerns && facts.diagnostics.size() < 100)
      facts.diagnostics.push_back(
          {one.at, fmt::format("{}: the value is filled in later: not judged", one.name)});
  }
}

}  // namespace

std::optional<Input> read_input(std::string name, std::string_view text,
                                std::optional<parse::ConfigKind> kind) {
  if (!kind) kind = parse::recognise_config(name, text);
  if (!kind) return std::nullopt;
  Input out;
  out.name = std::move(name);
  out.kind = *kind;
  out.text = text;
  if (*kind == parse::ConfigKind::document) {
    out.blocks = blocks_of(text);
    out.facts.kind = *kind;
    for (auto& block : out.blocks) {
      mark_placeholders(block.facts);
      parse::append_config(out.facts, block.facts, {1, 1}, "");
    }
    say_prose(out.facts, text);
  } else {
    out.facts = scan(*kind, text);
    mark_placeholders(out.facts);
  }
  return out;
}

Report judge(std::span<const Input> inputs, const Options& options) {
  Report report;
  std::vector<Context> contexts;
  std::deque<Input> blocks;  // contexts point into it
  std::size_t count = 0;
  for (const auto& input : inputs) count += std::max<std::size_t>(input.blocks.size(), 1);
  contexts.reserve(count);
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    for (const auto& block : inputs[n].blocks) {
      blocks.push_back({inputs[n].name, inputs[n].kind, block.text, block.facts, {}, block.line});
      contexts.emplace_back(blocks.back(), n, options, report);
    }
    if (inputs[n].blocks.empty()) contexts.emplace_back(inputs[n], n, options, report);
  }
  for (auto& context : contexts) run_rules(context);
  check_places(contexts);
  check_tables(contexts);
  sort_by_place(report.found);
  // One text may stand for several containers (YAML aliases): said once.
  const auto same = [](const Found& a, const Found& b) {
    return std::tie(a.input, a.finding.line, a.finding.column, a.finding.rule, a.finding.title) ==
           std::tie(b.input, b.finding.line, b.finding.column, b.finding.rule, b.finding.title);
  };
  report.found.erase(std::unique(report.found.begin(), report.found.end(), same), report.found.end());
  if (!inputs.empty()) list_checked(report);
  mutate(report);
  return report;
}

model::Diagnosis Report::take_diagnosis() {
  model::Diagnosis out;
  out.findings.reserve(found.size());
  for (auto& one : found) out.findings.push_back(std::move(one.finding));
  out.checked = checked;
  out.not_checked = not_checked;
  return out;
}

model::Diagnosis Report::diagnosis() const {
  Report copy = *this;
  return copy.take_diagnosis();
}

}  // namespace topotune::lint
