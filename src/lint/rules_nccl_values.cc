// Values of NCCL's own variables: algorithms, protocols, levels, switches, channels, debugging.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/context.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::ConfigKind;
using parse::Setting;
using sv = std::string_view;

// The integer that NCCL takes; nothing for text that depends on the run.
std::optional<long long> number_of(const Setting& setting) {
  if (!setting.literal || setting.value.empty()) return std::nullopt;
  const IntegerReading reading = read_integer(setting.value);
  return reading.range ? std::nullopt : std::optional(reading.value);
}

void unset_action(Found& found, const Context& context, const Setting& setting) {
  found.finding.action = "unset-" + setting.name;
  context.drop(found, setting);
}

// --- NCCL02
// ----------------------------------------------------------------------------------------------------

void p2p_off(Context& context, const Setting& setting) {
  const bool disable =
      setting.name == "NCCL_P2P_DISABLE" && number_of(setting) == 1 && read_integer(setting.value).whole;
  const bool level = setting.name == "NCCL_P2P_LEVEL" && (setting.value == "LOC" || setting.value == "0");
  if (!disable && !level) return;
  Found& found = context.add("NCCL02", setting, "unset");
  // Whether the machine has NVLink or P2P at all, the text does not tell.
  const auto& peers = context.options.peers;
  if (!peers) found.finding.severity = Severity::warn;
  if (peers == false) found.finding.severity = Severity::info;
  found.finding.title = context.rccl()
                            ? fmt::format("{}={} turns xGMI off as well", setting.name, setting.value)
                            : fmt::format("{}={} turns NVLink off as well", setting.name, setting.value);
  found.finding.remedy =
      context.rccl() ? "unset it; if it hides a hang, look for ACS and the IOMMU first (topotune check)"
                     : "unset it; NVLink only: NCCL_P2P_LEVEL=NVL; if it hides a hang, look for ACS "
                       "and the IOMMU first (topotune check)";
  unset_action(found, context, setting);
}

// --- NCCL04, 05, 06
// --------------------------------------------------------------------------------------------

struct Token {
  sv name;
  Version first, gone;  // gone: first release without it
};
constexpr Version kNever = since(1000, 0);
constexpr Token kAlgorithms[] = {
    {"Tree", since(2, 5), kNever},          {"Ring", since(2, 5), kNever},
    {"Collnet", since(2, 5), since(2, 14)}, {"CollnetDirect", since(2, 14), kNever},
    {"CollnetChain", since(2, 14), kNever}, {"NVLS", since(2, 17), kNever},
    {"NVLSTree", since(2, 18), kNever},     {"PAT", since(2, 23), kNever},
};
constexpr Token kProtocols[] = {
    {"LL", since(2, 5), kNever}, {"LL128", since(2, 5), kNever}, {"Simple", since(2, 5), kNever}};
constexpr sv kFunctions[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};

struct Section {
  sv function;  // "": all
  bool negated = false;
  std::vector<sv> tokens;
};

struct Selection {
  std::vector<Section> sections;
  bool empty_element = false;
};

Selection parse_selection(sv text) {
  Selection out;
  for (sv part : split(text, ';')) {
    Section section;
    if (const auto colon = part.find(':'); colon != sv::npos) {
      section.function = part.substr(0, colon);
      part.remove_prefix(colon + 1);
    }
    if (part.starts_with('^')) {
      section.negated = true;
      part.remove_prefix(1);
    }
    for (const sv token : split(part, ',')) {
      if (token.empty())
        out.empty_element = true;
      else
        section.tokens.push_back(token);
    }
    out.sections.push_back(std::move(section));
  }
  return out;
}

std::span<const Token> legal_tokens(sv name) {
  if (name == "NCCL_ALGO") return kAlgorithms;
  return kProtocols;
}

const Token* find_token(std::span<const Token> legal, sv word) {
  const auto found = std::ranges::find_if(legal, [&](const Token& one) { return iequals(one.name, word); });
  return found == legal.end() ? nullptr : &*found;
}

bool accepted(const Token* token, const std::optional<Version>& version) {
  if (token == nullptr) return false;
  if (!version) return true;
  return *version >= token->first && *version < token->gone;
}

std::string list_of(std::span<const Token> legal, const std::optional<Version>& version) {
  std::string out;
  for (const auto& one : legal)
    if (version ? accepted(&one, version) : one.gone == kNever)
      out += (out.empty() ? "" : ", ") + std::string(one.name);
  return out;
}

struct BadTokens {
  std::vector<sv> words;
  bool none_left = false;  // a positive list without any known word
  bool bad_sections = false;
};

BadTokens bad_tokens(const Context& context, const Selection& selection, std::span<const Token> legal) {
  BadTokens out;
  bool first = true;
  for (const auto& section : selection.sections) {
    std::size_t good = 0;
    for (const sv token : section.tokens) {
      if (iequals(token, "MSCCL") || accepted(find_token(legal, token), context.nccl))
        ++good;
      else
        out.words.push_back(token);
    }
    out.none_left = out.none_left || (good == 0 && !section.tokens.empty() && !section.negated);
    const bool known =
        std::ranges::any_of(kFunctions, [&](sv name) { return iequals(name, section.function); });
    if (!section.function.empty() && (!known || older(context.nccl, since(2, 24)))) out.bad_sections = true;
    if (section.function.empty() && !first) out.bad_sections = true;
    first = false;
  }
  return out;
}

// The list without the words that are not known; "" when none is left.
std::string cleaned(const Selection& selection, const BadTokens& bad) {
  std::string out;
  for (const auto& section : selection.sections) {
    std::string list;
    for (const sv token : section.tokens)
      if (std::ranges::find(bad.words, token) == bad.words.end())
        list += (list.empty() ? "" : ",") + std::string(token);
    if (list.empty()) continue;
    if (!out.empty()) out += ';';
    if (!section.function.empty()) out += std::string(section.function) + ":";
    out += (section.negated ? "^" : "") + list;
  }
  return out;
}

void rejected_words(Context& context, const Setting& setting, const Selection& selection) {
  const auto legal = legal_tokens(setting.name);
  const BadTokens bad = bad_tokens(context, selection, legal);
  if (bad.words.empty() && !bad.bad_sections) {
    if (!selection.empty_element) return;
    Found& found = context.add("NCCL04", setting, "no empty element");
    found.finding.severity = Severity::info;
    found.finding.title = fmt::format("{} has an empty element, which NCCL skips", setting.name);
    return;
  }
  const bool rejects = newer(context.nccl, since(2, 24));
  Found& found = context.add("NCCL04", setting, list_of(legal, context.nccl) + ", or unset (automatic)");
  const bool certain = rejects || bad.none_left;
  found.finding.severity = certain ? Severity::error : Severity::warn;
  const std::string words = bad.words.empty() ? setting.value : std::string(bad.words.front());
  found.finding.title = bad.words.empty() ? fmt::format("{}: the sections are not valid", setting.name)
                                          : fmt::format("{}: \"{}\" is none of NCCL's words", setting.name,
                                                        printable(words).substr(0, 40));
  if (rejects)
    found.finding.impact = "ncclCommInit returns ncclInvalidUsage: the job does not start";
  else if (bad.none_left)
    found.finding.impact = "no known word is left: every algorithm or protocol is switched off";
  else
    found.finding.impact = "NCCL 2.24 and newer refuses to start; older ones drop the word without a message";
  found.finding.remedy = fmt::format("unset {} (automatic choice)", setting.name);
  found.finding.action = "unset-" + setting.name;
  const std::string rest = cleaned(selection, bad);
  if (rest.empty() || bad.bad_sections)
    context.drop(found, setting);
  else
    context.set_value(found, setting, rest);
}

void forced_ll128(Context& context, const Setting& setting, const Selection& selection) {
  const bool named = std::ranges::any_of(selection.sections, [](const Section& section) {
    return !section.negated &&
           std::ranges::any_of(section.tokens, [](sv token) { return iequals(token, "LL128"); });
  });
  if (!named) return;
  const bool vendor = std::ranges::any_of(context.settings(), [](const Setting* one) {
    return one->name.starts_with("NCCL_FASTRAK_") ||
           (one->name == "NCCL_TUNER_PLUGIN" && one->value.find("google") != std::string::npos);
  });
  Found& found = context.add("NCCL05", setting, "unset");
  found.finding.severity = vendor ? Severity::info : Severity::warn;
  found.finding.remedy = "unset NCCL_PROTO: NCCL takes LL128 by itself where it is safe";
  unset_action(found, context, setting);
}

// A positive list that leaves out something NCCL would choose by itself.
std::string left_out(const Setting& setting, const Section& section, const std::optional<Version>& version,
                     bool rccl) {
  std::string out;
  const auto legal = legal_tokens(setting.name);
  for (const auto& one : legal) {
    if (!is_one_of(one.name, {"Tree", "Ring", "NVLS", "LL", "LL128", "Simple"}) || !accepted(&one, version) ||
        (rccl && one.name == "NVLS"))
      continue;
    const bool there =
        std::ranges::any_of(section.tokens, [&](sv token) { return iequals(token, one.name); });
    if (!there) out += (out.empty() ? "" : ", ") + std::string(one.name);
  }
  return out;
}

void pinned(Context& context, const Setting& setting, const Selection& selection) {
  if (context.job.benchmark || selection.sections.size() != 1 || !selection.sections[0].function.empty())
    return;
  const Section& section = selection.sections[0];
  const auto legal = legal_tokens(setting.name);
  const bool any =
      std::ranges::any_of(section.tokens, [&](sv token) { return find_token(legal, token) != nullptr; });
  const std::string without = section.negated ? std::string("what is listed")
                                              : left_out(setting, section, context.nccl, context.rccl());
  if (!any || without.empty()) return;
  Found& found = context.add("NCCL06", setting, "unset");
  const bool wanted = context.reproducible() || context.other_network() || context.has_reason(setting);
  if (section.negated || wanted || context.rccl()) found.finding.severity = Severity::info;
  found.finding.title = fmt::format("{} rules out {} for every message size", setting.name, without);
  found.finding.remedy = fmt::format("unset {}, or a tuner plugin that chooses by size", setting.name);
  unset_action(found, context, setting);
}

void selections(Context& context, const Setting& setting) {
  if ((setting.name != "NCCL_ALGO" && setting.name != "NCCL_PROTO") || !setting.literal ||
      setting.value.empty())
    return;
  const Selection selection = parse_selection(setting.value);
  rejected_words(context, setting, selection);
  if (setting.name == "NCCL_PROTO") forced_ll128(context, setting, selection);
  pinned(context, setting, selection);
}

// --- NCCL12, 13, 14
// --------------------------------------------------------------------------------------------

constexpr sv kLevels[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"};

sv word_of_level(long long number) {
  constexpr sv kOld[] = {"LOC", "PIX", "PXB", "PHB"};
  return number >= 0 && number < 4 ? kOld[number] : sv("SYS");
}

void level_number(Context& context, const Setting& setting, long long number) {
  if (setting.name == "NCCL_P2P_LEVEL" && older(context.nccl, since(2, 5))) return;
  const sv word = word_of_level(number);
  Found& found = context.add("NCCL12", setting, std::string(word));
  found.finding.title = fmt::format("{}={} means {}", setting.name, setting.value, word);
  found.finding.remedy = fmt::format(
      "write the word: {}={}, or unset it (the default is chosen by the machine)", setting.name, word);
  found.finding.action = "fix-" + setting.name;
  context.set_value(found, setting, std::string(word));
}

void level_word(Context& context, const Setting& setting) {
  const sv value = setting.value;
  const bool known = std::ranges::find(kLevels, value) != std::end(kLevels);
  const bool young = (value == "C2C" && !newer(context.nccl, since(2, 26))) ||
                     (value == "P2C" && !newer(context.nccl, since(2, 27)));
  if (known && !young) return;
  Found& found = context.add("NCCL14", setting, "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS");
  if (known && !context.nccl) found.finding.severity = Severity::info;
  found.finding.title = known ? fmt::format("{} came with NCCL {}", value, value == "C2C" ? "2.26" : "2.27")
                              : fmt::format("{}: NCCL does not know the level \"{}\"", setting.name,
                                            printable(value).substr(0, 30));
  std::string upper(value);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  const bool only_case = !known && std::ranges::find(kLevels, upper) != std::end(kLevels);
  found.finding.remedy =
      only_case ? fmt::format("{}={}", setting.name, upper) : "one of the words in upper case, or unset it";
  found.finding.action = "fix-" + setting.name;
  if (only_case)
    context.set_value(found, setting, upper);
  else if (!known)
    context.drop_idle(found, setting);
}

void levels(Context& context, const Setting& setting) {
  const bool rccl = setting.name == "RCCL_P2P_LEVEL" || setting.name == "RCCL_NET_GDR_LEVEL";
  if (!rccl && setting.name != "NCCL_P2P_LEVEL" && setting.name != "NCCL_NET_GDR_LEVEL") return;
  if (!setting.literal || setting.value.empty()) return;
  const IntegerReading reading = read_integer(setting.value);
  if (reading.whole && reading.value >= 0)
    level_number(context, setting, reading.value);
  else if (!rccl)
    level_word(context, setting);
  const bool off = setting.name == "NCCL_NET_GDR_LEVEL" &&
                   (setting.value == "LOC" || (reading.whole && reading.value == 0));
  if (!off) return;
  Found& found = context.add("NCCL13", setting, "unset");
  found.finding.title = "NCCL_NET_GDR_LEVEL=LOC turns GPUDirect RDMA off";
  unset_action(found, context, setting);
}

// --- NCCL22, 24, 27, 29, 31
// ------------------------------------------------------------------------------------

void flush_off(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_GDR_FLUSH_DISABLE" || number_of(setting) != 1 || context.rccl()) return;
  Found& found = context.add("NCCL22", setting, "unset");
  const auto& needed = context.options.needs_flush;  // which GPU it is, the text does not tell
  if (!needed) found.finding.severity = Severity::warn;
  if (needed == false) found.finding.severity = Severity::info;
  unset_action(found, context, setting);
}

struct Switch {
  sv name;
  long long value;
  sv cost;
};
constexpr Switch kSwitches[] = {
    {"NCCL_SHM_DISABLE", 1, "ranks of one node that have no P2P talk over the network"},
    {"NCCL_P2P_DIRECT_DISABLE", 1, "an extra copy inside one process"},
    {"NCCL_IGNORE_DISABLED_P2P", 1, "a broken NVLink or PCIe path is hidden"},
    {"NCCL_NVLS_ENABLE", 0, "NVLink SHARP is off: 475 becomes 365 GB/s busbw on 8 x H200"},
    {"NCCL_CUMEM_ENABLE", 0, "no buffer registration, no NVLS"},
    {"NCCL_DMABUF_ENABLE", 0, "GPUDirect RDMA needs nvidia-peermem then"},
    {"NCCL_PXN_DISABLE", 1, "no relay over NVLink to the near NIC of another GPU"},
    {"NCCL_IB_PCI_RELAXED_ORDERING", 0, "slower DMA on many platforms"},
};

void debug_switch(Context& context, const Setting& setting) {
  const auto* row = std::ranges::find(kSwitches, setting.name, &Switch::name);
  if (row == std::end(kSwitches) || context.job.benchmark) return;
  if (number_of(setting) != row->value || !read_integer(setting.value).whole) return;
  if (setting.name == "NCCL_CUMEM_ENABLE" && context.mentions({"vllm"})) return;
  // RCCL: no NVLS and no cuMem there, and no PXN is its default.
  if (context.rccl() &&
      is_one_of(setting.name, {"NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_PXN_DISABLE"}))
    return;
  Found& found = context.add("NCCL24", setting, "unset");
  const bool order = setting.name == "NCCL_NVLS_ENABLE" && context.reproducible();
  if (order || context.has_reason(setting)) found.finding.severity = Severity::info;
  found.finding.title = fmt::format("{}={} is a debugging switch", setting.name, setting.value);
  found.finding.impact = std::string(row->cost);
  unset_action(found, context, setting);
}

void channels(Context& context, const Setting& setting) {
  const bool most = is_one_of(setting.name, {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"});
  const bool least = is_one_of(setting.name, {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MIN_NRINGS"});
  if ((!most && !least) || context.job.benchmark) return;
  const auto number = number_of(setting);
  if (!number || *number <= 0 || (most && *number >= 16) || (least && *number < 32)) return;
  if (least && uses_tuning_table(context)) return;  // the table was measured so
  Found& found = context.add("NCCL27", setting, "unset");
  const bool meant = context.rccl() || context.reproducible() ||
                     context.mentions({"moe", "inference", "expert"}) || context.has_reason(setting);
  if (meant || (most && *number > 8) || (least && *number == 32)) found.finding.severity = Severity::info;
  unset_action(found, context, setting);
}

// NCCL takes the larger one for as large as the smaller (init.cc: "minCTAs … is larger than maxCTAs").
void channels_cross(Context& context) {
  const auto* least = context.last("NCCL_MIN_CTAS");
  const auto* most = context.last("NCCL_MAX_CTAS");
  if (least == nullptr || most == nullptr || !least->literal || !most->literal) return;
  const auto low = number_of(*least), high = number_of(*most);
  if (!low || !high || *low <= 0 || *high <= 0 || *low <= *high) return;
  Found& found = context.add("NCCL27", *least, fmt::format("no more than NCCL_MAX_CTAS={}", *high));
  found.finding.severity = Severity::warn;
  found.finding.title = fmt::format("NCCL_MIN_CTAS={} is larger than NCCL_MAX_CTAS={}", *low, *high);
  found.finding.impact = fmt::format("NCCL takes {} for both", *high);
  found.finding.evidence.push_back(
      {fmt::format("{}:{}", context.input.name, most->at.line), fmt::format("NCCL_MAX_CTAS={}", *high)});
}

bool binds(const parse::Command& command) {
  for (const auto& word : command.words)
    if (is_one_of(word, {"numactl", "taskset"}) || word.starts_with("--cpu-bind") ||
        word.starts_with("--numa-binding") || word.starts_with("--bind-to") ||
        word.starts_with("--cpunodebind"))
      return true;
  return false;
}

void affinity(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_IGNORE_CPU_AFFINITY" || number_of(setting).value_or(0) == 0) return;
  const auto& commands = context.input.facts.commands;
  const auto found_binding = std::ranges::find_if(commands, binds);
  if (found_binding == commands.end()) return;
  Found& found = context.add("NCCL29", setting, "unset");
  found.finding.evidence.push_back({fmt::format("{}:{}", context.input.name, found_binding->at.line),
                                    joined(*found_binding).substr(0, 200)});
  unset_action(found, context, setting);
}

void graph_file(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_GRAPH_FILE" || context.job.benchmark || setting.value.empty()) return;
  Found& found = context.add("NCCL31", setting, "unset");
  unset_action(found, context, setting);
}

void tuner_plugin(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_TUNER_PLUGIN") return;
  const bool path = setting.value.starts_with('/') && setting.literal;
  if (path && context.options.file_exists && !context.options.file_exists(setting.value)) {
    context.add("NCCL32", setting, "a file that the job can load").finding.title =
        "The tuner plugin does not exist";
    return;
  }
  if (setting.value.find("example") == std::string::npos) return;
  context.add("NCCL32", setting, "a tuner plugin of your own").finding.title =
      "The tuner plugin is NVIDIA's example";
}

// --- NCCL15, 16, 18, 20
// ----------------------------------------------------------------------------------------

void topology_file(Context& context, const Setting& setting) {
  if (setting.name != "NCCL_TOPO_FILE" || setting.value.empty() || !setting.literal) return;
  const std::string name = to_lower(setting.value);
  const bool other_form =
      name.ends_with(".json") || name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".txt");
  const bool absent = context.options.file_exists && !context.options.file_exists(setting.value);
  if (!other_form && !absent) return;
  Found& found = context.add("NCCL15", setting, "an XML file that the job can read");
  found.finding.title =
      absent ? "NCCL_TOPO_FILE does not exist" : "NCCL_TOPO_FILE: NCCL reads XML and nothing else";
  found.finding.remedy =
      absent ? "correct the path, or unset it"
             : "XML as NCCL_TOPO_DUMP_FILE or `topotune show --nccl-xml` writes it; or unset it";
  unset_action(found, context, setting);
}

// What every communicator reads anew (ncclGetEnv in init.cc, graph/tuning.cc, graph/search.cc); integers are
// read once and kept.
bool read_by_each_communicator(sv name) {
  return is_one_of(name, {"NCCL_ALGO", "NCCL_PROTO", "NCCL_COLLNET_ENABLE", "NCCL_NET", "NCCL_GRAPH_FILE",
                          "NCCL_THREAD_THRESHOLDS"});
}

// The last line that makes process groups; 0: none does.
int last_group_line(const Context& context) {
  if (context.input.kind != ConfigKind::python) return 0;
  int number = 0, last = 0;
  for (const sv text : lines(context.input.text)) {
    ++number;
    for (const sv word : {"new_group", "new_subgroups", "device_mesh", "split_group", "_groups("})
      if (text.find(word) != sv::npos) last = number;
  }
  return last;
}

void set_late(Context& context, const Setting& setting, int last_group) {
  if (setting.late == parse::Late::no || !setting.name.starts_with("NCCL_")) return;
  const bool connected = setting.late == parse::Late::after_collective;
  if (connected && read_by_each_communicator(setting.name) && last_group > setting.at.line) {
    Found& found = context.add("NCCL16", setting, "before the groups that it is meant for");
    found.finding.severity = Severity::info;
    found.finding.title =
        fmt::format("{} is set after a collective (line {}); it counts for groups made later", setting.name,
                    setting.late_line);
    return;
  }
  Found& found = context.add("NCCL16", setting, fmt::format("before line {}", setting.late_line));
  if (!connected) found.finding.severity = Severity::info;
  found.finding.title =
      connected
          ? fmt::format("{} is set after NCCL has read it (line {})", setting.name, setting.late_line)
          : fmt::format(
                "{} is set after init_process_group (line {}); it counts only until the first collective",
                setting.name, setting.late_line);
  found.finding.evidence.push_back({fmt::format("{}:{}", context.input.name, setting.late_line),
                                    std::string(trim(context.line_text(setting.late_line).substr(0, 200)))});
}

// The text says that it is there to look for a fault.
bool for_diagnosis(const Context& context, const Setting& setting) {
  if (context.job.benchmark || context.input.kind == ConfigKind::document) return true;
  std::string words = context.comments_at(setting.at.line);
  for (const auto& comment : context.input.facts.comments) {
    if (comment.line > 5) break;
    words += comment.text + "\n";
  }
  for (const sv word : {"debug", "diagnos", "troubleshoot", "measure", "benchmark", "nccl-tests",
                        "smoke test", "reproduc", "investigat"})
    if (icontains(words, word)) return true;
  return false;
}

void debug_left_on(Context& context, const Setting& setting) {
  const bool level =
      setting.name == "NCCL_DEBUG" && (iequals(setting.value, "INFO") || iequals(setting.value, "TRACE"));
  bool subsystems = false;
  if (setting.name == "NCCL_DEBUG_SUBSYS" && !setting.value.starts_with('^'))
    for (const sv word : split(setting.value, ','))
      subsystems = subsystems || iequals(word, "COLL") || iequals(word, "ALL");
  if ((!level && !subsystems) || setting.conditional || for_diagnosis(context, setting)) return;
  Found& found = context.add("NCCL18", setting, "NCCL_DEBUG=WARN");
  found.finding.title = fmt::format("{}={} is left on", setting.name, setting.value);
  found.finding.action = "fix-NCCL_DEBUG";
}

void preload(Context& context, const Setting& setting) {
  if (setting.name != "LD_PRELOAD") return;
  std::string value = setting.value;
  std::ranges::replace(value, ':', ' ');
  for (const sv library : words(value)) {
    const auto slash = library.rfind('/');
    const sv name = slash == sv::npos ? library : library.substr(slash + 1);
    if (name.starts_with("libnccl-")) continue;  // a plugin
    const bool forced = std::ranges::any_of(
        std::initializer_list<sv>{"libibverbs", "libnccl", "libmlx5", "libcuda.", "librdmacm"},
        [&](sv prefix) { return name.starts_with(prefix); });
    if (!forced) continue;
    Found& found = context.add("NCCL20", setting, "unset");
    found.finding.title = fmt::format("{} is forced by LD_PRELOAD", name);
    unset_action(found, context, setting);
    return;
  }
}

}  // namespace

void check_nccl_values(Context& context) {
  const int last_group = last_group_line(context);
  for (const auto* setting : context.settings()) {
    p2p_off(context, *setting);
    selections(context, *setting);
    levels(context, *setting);
    flush_off(context, *setting);
    debug_switch(context, *setting);
    channels(context, *setting);
    affinity(context, *setting);
    graph_file(context, *setting);
    tuner_plugin(context, *setting);
    topology_file(context, *setting);
    set_late(context, *setting, last_group);
    debug_left_on(context, *setting);
    preload(context, *setting);
  }
  channels_cross(context);
}

}  // namespace topotune::lint
