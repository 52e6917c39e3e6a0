#include "tune/table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <tuple>

namespace topotune::tune {

namespace {

constexpr std::array<const char*, kCollectives> kCollectiveNames{
    "broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
constexpr std::array<const char*, kAlgorithms> kAlgorithmNames{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<const char*, kProtocols> kProtocolNames{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, 6> kSettings{"NCCL_MIN_CTAS",          "NCCL_MAX_CTAS",
                                                    "NCCL_MIN_NCHANNELS",     "NCCL_MAX_NCHANNELS",
                                                    "NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPairs{
    {{kSettings[0], kSettings[1]}, {kSettings[2], kSettings[3]}, {kSettings[4], kSettings[5]}}};
constexpr std::string_view kMagic = "topotune-tuning-table";
constexpr std::uint32_t kMaxRanks = 1 << 20;

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 40)) out += c >= 0x20 && c < 0x7f ? c : '?';
  return out + (text.size() > 40 ? "...'" : "'");
}

// One line as words; at most a few thousand, since a line is bounded.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < line.size();) {
    const auto start = line.find_first_not_of(" \t", i);
    if (start == std::string_view::npos) break;
    const auto end = std::min(line.find_first_of(" \t", start), line.size());
    out.push_back(line.substr(start, end - start));
    i = end;
  }
  return out;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Decimal fractions, as write_table() prints them; never infinite, and no more than any ratio or time is.
std::optional<double> real(std::string_view text) {
  const auto value = number<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0 || *value > 1e9) return std::nullopt;
  return value;
}

template <std::size_t N>
std::optional<int> index_in(const std::array<const char*, N>& names, std::string_view name) {
  const auto at = std::ranges::find(names, name, [](const char* n) { return std::string_view(n); });
  if (at == names.end()) return std::nullopt;
  return static_cast<int>(at - names.begin());
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ParsedTable read() {
    if (text_.size() > kMaxTableBytes) return refuse(0, "larger than 4 MiB", "");
    if (text_.empty()) return refuse(0, "the file is empty", "write one with: topotune tune --out FILE");
    while (good_ && position_ < text_.size()) line();
    if (good_ && line_ == 0) stop("no text", "");
    if (good_ && !ended_) stop("the table is cut off: no 'end' line", "copy the whole file");
    if (good_) finish();
    if (!good_) return {std::nullopt, error_};
    return {std::move(table_), {}};
  }

 private:
  static ParsedTable refuse(int line, std::string text, std::string hint) {
    return {std::nullopt, {line, std::move(text), std::move(hint)}};
  }
  void stop(std::string text, std::string hint = {}) {
    if (!good_) return;
    good_ = false;
    error_ = {line_, std::move(text), std::move(hint)};
  }

  void line() {
    ++line_;
    const auto end = text_.find('\n', position_);
    if (end == std::string_view::npos) return stop("the last line has no end", "copy the whole file");
    auto text = text_.substr(position_, end - position_);
    position_ = end + 1;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.size() > kMaxLine) return stop("longer than 8192 characters");
    if (!std::ranges::all_of(text, [](char c) { return c == '\t' || (c >= 0x20 && c < 0x7f); }))
      return stop("not plain ASCII text", "this is no tuning table");
    if (line_ == 1) return magic(words_of(text));
    const auto words = words_of(text);
    if (words.empty() || words[0][0] == '#') return;
    if (ended_) return stop("text behind the 'end' line");
    entry(words);
  }

  void magic(const std::vector<std::string_view>& words) {
    if (words.size() != 2 || words[0] != kMagic)
      return stop("not a tuning table: the first line is not 'topotune-tuning-table 1'");
    if (words[1] != "1")
      stop("version " + quoted(words[1]) + " of the format is not known", "use the program that wrote it");
  }

  void entry(const std::vector<std::string_view>& words) {
    if (words[0] == "machine") return text(words, table_.machine);
    if (words[0] == "nccl") return text(words, table_.nccl);
    if (words[0] == "created") return text(words, table_.created);
    if (words[0] == "tool") return text(words, table_.tool);
    if (words[0] == "set") return setting(words);
    if (words[0] == "region") return region(words);
    if (words[0] == "raw") return raw(words);
    if (words[0] == "end") return end(words);
    stop("unknown word " + quoted(words[0]));
  }

  void text(const std::vector<std::string_view>& words, std::string& into) {
    if (words.size() != 2) return stop(std::string(words[0]) + " takes one word");
    if (words[1].size() > 200) return stop(std::string(words[0]) + ": longer than 200 characters");
    if (!into.empty()) return stop(std::string(words[0]) + " stands twice");
    into = words[1];
  }

  void setting(const std::vector<std::string_view>& words) {
    if (words.size() != 3) return stop("set takes a name and a number");
    if (std::ranges::find(kSettings, words[1]) == kSettings.end())
      return stop("a table may not set " + quoted(words[1]));
    const auto value = number<int>(words[2]);
    if (!value || *value < 1 || *value > kMaxChannels) return stop(quoted(words[2]) + " is not 1 to 64");
    if (std::ranges::find(table_.settings, words[1], &Setting::name) != table_.settings.end())
      return stop(std::string(words[1]) + " is set twice");
    table_.settings.push_back({std::string(words[1]), *value});
  }

  // COLLECTIVE FROM TO RANKS NODES: words 1 to 5.
  bool place(const std::vector<std::string_view>& words, Region& r) {
    const auto collective = index_in(kCollectiveNames, words[1]);
    const auto from = number<std::uint64_t>(words[2]), to = number<std::uint64_t>(words[3]);
    const auto ranks = number<std::uint32_t>(words[4]), nodes = number<std::uint32_t>(words[5]);
    if (!collective || *collective >= kTunedCollectives)
      return stop("no collective that NCCL asks a tuner about: " + quoted(words[1])), false;
    if (!from || !to || *from > *to) return stop("the range of bytes is not FROM <= TO"), false;
    if (!ranks || *ranks < 1 || *ranks > kMaxRanks) return stop("ranks: " + quoted(words[4])), false;
    if (!nodes || *nodes < 1 || *nodes > *ranks) return stop("nodes: " + quoted(words[5])), false;
    r.collective = static_cast<Collective>(*collective);
    r.from = *from, r.to = *to, r.ranks = *ranks, r.nodes = *nodes;
    return true;
  }

  bool choice(const std::vector<std::string_view>& words, Region& r) {
    if ((words[6] == "*") != (words[7] == "*"))
      return stop("algorithm and protocol: both or none is '*'"), false;
    if (words[6] != "*") {
      const auto algorithm = index_in(kAlgorithmNames, words[6]);
      const auto protocol = index_in(kProtocolNames, words[7]);
      if (!algorithm) return stop("no algorithm of NCCL: " + quoted(words[6])), false;
      if (!protocol) return stop("no protocol of NCCL: " + quoted(words[7])), false;
      r.choice.algorithm = *algorithm, r.choice.protocol = *protocol;
    }
    if (words[8] == "*") return true;
    const auto channels = number<int>(words[8]);
    if (!channels || *channels < 1 || *channels > kMaxChannels)
      return stop("channels: " + quoted(words[8]) + " is neither '*' nor 1 to 64"), false;
    r.choice.channels = *channels;
    return true;
  }

  void region(const std::vector<std::string_view>& words) {
    if (words.size() != 12)
      return stop(
          "region takes 11 words: COLLECTIVE FROM TO RANKS NODES ALGORITHM PROTOCOL CHANNELS RATIO LOW HIGH");
    if (table_.regions.size() == kMaxRegions) return stop("more than 4096 regions");
    Region r;
    if (!place(words, r) || !choice(words, r)) return;
    const auto ratio = real(words[9]), low = real(words[10]), high = real(words[11]);
    if (!ratio || !low || !high || *low > *high)
      return stop("ratio, low and high are not positive numbers in order");
    r.ratio = *ratio, r.low = *low, r.high = *high;
    if (!table_.regions.empty() && !behind(table_.regions.back(), r))
      return stop("the region overlaps the one before it, or is out of order");
    table_.regions.push_back(r);
  }

  static bool behind(const Region& a, const Region& b) {
    const auto ka = std::tie(a.collective, a.ranks, a.nodes), kb = std::tie(b.collective, b.ranks, b.nodes);
    return ka < kb || (ka == kb && a.to < b.from);
  }

  // raw COLLECTIVE BYTES RANKS NODES default|tuned SECONDS,SECONDS,...
  void raw(const std::vector<std::string_view>& words) {
    if (words.size() != 7) return stop("raw takes 6 words");
    if (table_.raw.size() == 4 * kMaxRegions) return stop("more than 16384 raw lines");
    Raw out;
    const auto collective = index_in(kCollectiveNames, words[1]);
    const auto bytes = number<std::uint64_t>(words[2]);
    const auto ranks = number<std::uint32_t>(words[3]), nodes = number<std::uint32_t>(words[4]);
    if (!collective || !bytes || (words[5] != "default" && words[5] != "tuned"))
      return stop("raw: not COLLECTIVE BYTES RANKS NODES default|tuned SECONDS,...");
    if (!ranks || *ranks < 1 || *ranks > kMaxRanks) return stop("ranks: " + quoted(words[3]));
    if (!nodes || *nodes < 1 || *nodes > *ranks) return stop("nodes: " + quoted(words[4]));
    out.collective = static_cast<Collective>(*collective);
    out.bytes = *bytes, out.ranks = *ranks, out.nodes = *nodes, out.tuned = words[5] == "tuned";
    for (std::string_view rest = words[6];;) {
      const auto comma = rest.find(',');
      const auto value = real(rest.substr(0, comma));
      if (!value) return stop("raw: " + quoted(rest.substr(0, comma)) + " is no time");
      out.seconds.push_back(*value);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    table_.raw.push_back(std::move(out));
  }

  void end(const std::vector<std::string_view>& words) {
    if (words.size() != 2 || number<std::size_t>(words[1]) != table_.regions.size())
      return stop("'end' does not name the number of regions (" + std::to_string(table_.regions.size()) + ")",
                  "lines are missing or were added");
    ended_ = true;
  }

  void finish() {
    line_ = 0;
    if (table_.machine.empty()) stop("no 'machine' line");
    if (table_.nccl.empty()) stop("no 'nccl' line");
    for (const auto& [least, most] : kPairs) {
      const auto low = std::ranges::find(table_.settings, least, &Setting::name);
      const auto high = std::ranges::find(table_.settings, most, &Setting::name);
      if (low != table_.settings.end() && high != table_.settings.end() && low->value > high->value)
        stop(std::string(least) + " is more than " + std::string(most));
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int line_ = 0;
  bool good_ = true, ended_ = false;
  Table table_;
  TableError error_;
};

std::string decimal(double value, const char* format) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string word(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, 200)) out += c > 0x20 && c < 0x7f ? c : '_';
  return out.empty() ? "-" : out;
}

std::string channels_text(int channels) { return channels > 0 ? std::to_string(channels) : "*"; }

}  // namespace

std::span<const std::string_view> settings_allowed() { return kSettings; }

ParsedTable parse_table(std::string_view text) { return Reader(text).read(); }

std::string write_table(const Table& table) {
  std::string out = std::string(kMagic) + " 1\n";
  out += "machine " + word(table.machine) + "\nnccl " + word(table.nccl) + "\n";
  if (!table.created.empty()) out += "created " + word(table.created) + "\n";
  if (!table.tool.empty()) out += "tool " + word(table.tool) + "\n";
  for (const auto& s : table.settings) out += "set " + s.name + " " + std::to_string(s.value) + "\n";
  auto regions = table.regions;
  std::ranges::sort(regions, {},
                    [](const Region& r) { return std::tuple(r.collective, r.ranks, r.nodes, r.from); });
  out += "# region COLLECTIVE FROM TO RANKS NODES ALGORITHM PROTOCOL CHANNELS RATIO LOW HIGH\n";
  for (const auto& r : regions) {
    out += std::string("region ") + name_of(r.collective) + " " + std::to_string(r.from) + " " +
           std::to_string(r.to) + " " + std::to_string(r.ranks) + " " + std::to_string(r.nodes) + " " +
           algorithm_name(r.choice.algorithm) + " " + protocol_name(r.choice.protocol) + " " +
           channels_text(r.choice.channels);
    for (const double value : {r.ratio, r.low, r.high}) out += " " + decimal(value, "%.4f");
    out += "\n";
  }
  for (const auto& r : table.raw) {
    if (r.seconds.empty()) continue;
    out += std::string("raw ") + name_of(r.collective) + " " + std::to_string(r.bytes) + " " +
           std::to_string(r.ranks) + " " + std::to_string(r.nodes) + (r.tuned ? " tuned " : " default ");
    for (std::size_t i = 0; i < r.seconds.size() && i < 400; ++i)
      out += (i ? "," : "") + decimal(r.seconds[i], "%.6e");
    out += "\n";
  }
  return out + "end " + std::to_string(regions.size()) + "\n";
}

std::string hash_text(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

const char* name_of(Collective collective) { return kCollectiveNames[static_cast<std::size_t>(collective)]; }

std::optional<Collective> collective_from(std::string_view name) {
  const auto plain = [](std::string_view text) {
    std::string out;
    for (const char c : text.substr(0, 40))
      if (c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return out;
  };
  for (int i = 0; i < kCollectives; ++i)
    if (plain(kCollectiveNames[static_cast<std::size_t>(i)]) == plain(name))
      return static_cast<Collective>(i);
  return std::nullopt;
}

const char* algorithm_name(int algorithm) {
  return algorithm >= 0 && algorithm < kAlgorithms ? kAlgorithmNames[static_cast<std::size_t>(algorithm)]
                                                   : "*";
}

const char* protocol_name(int protocol) {
  return protocol >= 0 && protocol < kProtocols ? kProtocolNames[static_cast<std::size_t>(protocol)] : "*";
}

std::string text_of(const Choice& choice) {
  std::string out = choice.algorithm == kNcclChooses ? std::string("NCCL's choice")
                                                     : std::string(algorithm_name(choice.algorithm)) + "/" +
                                                           protocol_name(choice.protocol);
  if (choice.channels > 0) out += " " + std::to_string(choice.channels) + " channels";
  return out;
}

}  // namespace topotune::tune
