#include "parse/topo_cells.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace topotune::parse::topo {
namespace {

using model::PathType;

constexpr int kMaxLinks = 64;  // absurd above; the most that any GPU has is 36

// SOC and PSB are words of old drivers.
constexpr std::array<std::pair<std::string_view, PathType>, 8> kPathWords{{{"NODE", PathType::node},
                                                                           {"SYS", PathType::sys},
                                                                           {"SOC", PathType::sys},
                                                                           {"PHB", PathType::phb},
                                                                           {"PXB", PathType::pxb},
                                                                           {"PIX", PathType::pix},
                                                                           {"PSB", PathType::pix},
                                                                           {"C2C", PathType::c2c}}};
constexpr std::array<std::string_view, 7> kStatusWords{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
constexpr std::array<std::string_view, 7> kUnknownWords{"N/A", "n/a",          "-",           "--",
                                                        "?",   "\xe2\x80\x93", "\xe2\x80\x94"};

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name_char(char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '.'; }
bool is_list_char(char c) { return is_digit(c) || c == '-' || c == ','; }

std::size_t count_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

Cell cell_of(Mark mark, std::string_view text) {
  Cell cell;
  cell.mark = mark;
  cell.text = text;
  return cell;
}

bool is_list(std::string_view word) {
  if (word.empty() || !std::ranges::all_of(word, is_list_char)) return false;
  return is_digit(word.front()) || (word.front() == '-' && word.size() > 1 && is_digit(word[1]));
}

// NV<n> at the beginning of a word. In "NV180-31" the number ends where no GPU has so many links.
std::optional<Cell> nvlink_prefix(std::string_view word) {
  if (!word.starts_with("NV")) return std::nullopt;
  std::size_t digits = count_digits(word.substr(2));
  const auto rest = word.substr(2 + digits);
  if (digits > 1 && rest.size() > 1 && is_list_char(rest[0]) && is_digit(rest[1])) {
    const bool two = digits > 2 && parse_int<int>(word.substr(2, 2)).value_or(99) <= 18;
    digits = two ? 2 : 1;
  }
  const auto links = digits > 2 ? std::nullopt : parse_int<int>(word.substr(2, digits));
  if (!links || *links < 1 || *links > kMaxLinks) return std::nullopt;
  Cell cell = cell_of(Mark::nvlink, word.substr(0, 2 + digits));
  cell.links = *links;
  return cell;
}

// The cell at the beginning of a word of glued cells.
std::optional<Cell> glued_prefix(std::string_view word) {
  for (const auto& [name, type] : kPathWords) {
    if (!word.starts_with(name)) continue;
    Cell cell = cell_of(Mark::path, word.substr(0, name.size()));
    cell.type = type;
    return cell;
  }
  if (auto nvlink = nvlink_prefix(word)) return nvlink;
  if (word.front() == 'X') return cell_of(Mark::self, word.substr(0, 1));
  if (word.starts_with("N/A")) return cell_of(Mark::unknown, word.substr(0, 3));
  if (is_digit(word.front())) {
    const auto end = std::ranges::find_if_not(word, is_list_char) - word.begin();
    return cell_of(Mark::list, word.substr(0, static_cast<std::size_t>(end)));
  }
  return std::nullopt;
}

// Appends the cells of a word; a word that is not made of cells is one cell of its own.
void append_word(std::vector<Cell>& out, std::string_view word, std::size_t column) {
  const std::size_t before = out.size();
  std::string_view rest = word;
  Cell whole = read_cell(word);
  while (whole.mark == Mark::other && !rest.empty()) {
    auto cell = glued_prefix(rest);
    if (!cell) break;
    cell->column = column + word.size() - rest.size();
    rest.remove_prefix(cell->text.size());
    out.push_back(*cell);
  }
  if (whole.mark == Mark::other && rest.empty()) return;
  out.resize(before);
  whole.column = column;
  out.push_back(whole);
}

// Length of `phrase` at the beginning of text, where a blank of the phrase stands for blanks, '_' or nothing.
std::size_t phrase_length(std::string_view text, std::string_view phrase) {
  std::size_t i = 0;
  for (const char c : phrase) {
    if (c == ' ') {
      while (i < text.size() && (text[i] == ' ' || text[i] == '_')) ++i;
    } else if (i < text.size() && text[i] == c) {
      ++i;
    } else {
      return 0;
    }
  }
  return i;
}

struct Title {
  Kind kind;
  std::string_view name;
};
constexpr std::array kPhrases{Title{Kind::gpu_numa, "GPU NUMA ID"}, Title{Kind::cpu_affinity, "CPU Affinity"},
                              Title{Kind::numa_affinity, "NUMA Affinity"}};
constexpr std::array kNumbered{Title{Kind::gpu, "GPU"}, Title{Kind::nic, "NIC"},
                               Title{Kind::nvswitch, "NVSwitch"}, Title{Kind::nvswitch, "NVSWITCH"}};

// Length of an RDMA device's name ("mlx5_0", "rdmap16s27", "hfi1_0") at the beginning of text, or 0. It ends
// before a glued "CPU Affinity" and before a glued name of the same family.
std::size_t nic_name_length(std::string_view text) {
  if (text.empty() || !is_alpha(text.front())) return 0;
  auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_name_char) - text.begin());
  end = std::min({end, text.find("CPU"), text.find("NUMA"), std::size_t{64}});
  const auto family = text.substr(0, 3);
  if (end > 6) end = std::min(end, text.substr(0, end).find(family, 3));
  const auto name = text.substr(0, end);
  if (std::ranges::none_of(name, is_digit)) return 0;
  return read_cell(name).mark == Mark::other ? end : 0;
}

struct Match {
  std::size_t length = 0;  // 0: no title here
  Kind kind = Kind::gpu;
};

Match title_at(std::string_view text) {
  for (const auto& phrase : kPhrases) {
    if (const auto length = phrase_length(text, phrase.name); length > 0) return {length, phrase.kind};
  }
  for (const auto& device : kNumbered) {
    if (!text.starts_with(device.name)) continue;
    const auto digits = count_digits(text.substr(device.name.size()));
    if (digits > 0 && digits < 7) return {device.name.size() + digits, device.kind};
  }
  return {nic_name_length(text), Kind::nic};
}

// The end of a line that cuts a title in its middle.
bool is_cut_title(std::string_view rest) {
  const auto begins = [&](std::string_view title) {
    return rest.size() < title.size() && title.starts_with(rest);
  };
  return std::ranges::any_of(kPhrases, [&](const Title& t) { return begins(t.name); }) || begins("NIC");
}

// Reads titles from left to right; a word that is none starts the run anew.
class HeaderScan {
 public:
  explicit HeaderScan(std::string_view line) : line_(line) {}

  Header run() {
    while (skip_blanks(), at_ < line_.size()) step();
    return std::move(header_);
  }

 private:
  void skip_blanks() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }

  void step() {
    const auto rest = line_.substr(at_);
    if (!header_.columns.empty() && rest.size() < 16 && is_cut_title(trim(rest))) {
      header_.partial = trim(rest);
      at_ = line_.size();
      return;
    }
    const Match match = glued_to_prefix() ? Match{} : title_at(rest.substr(0, 128));
    if (match.length > 0) {
      header_.columns.push_back({match.kind, std::string(rest.substr(0, match.length)), at_});
      at_ += match.length;
      in_word_ = at_;
    } else {
      header_ = {};
      skip_word();
    }
  }

  // True in the middle of a name that is no title: "MYGPU0".
  bool glued_to_prefix() const {
    return at_ > 0 && at_ != in_word_ && (is_alpha(line_[at_ - 1]) || is_digit(line_[at_ - 1]));
  }

  // To the next place where a title can begin: after a blank, or after a mark such as ':' or '>'.
  void skip_word() {
    while (at_ < line_.size() && is_name_char(line_[at_])) ++at_;
    while (at_ < line_.size() && !is_space(line_[at_]) && !is_alpha(line_[at_])) ++at_;
  }

  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t in_word_ = std::string_view::npos;  // end of the last title: glued ones go on here
  Header header_;
};

// Length of a rest of an escape at the beginning of text: "[4m", "^[[0m", "\x1b[1m" written out; else 0.
std::size_t visible_escape_length(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kEscapes{"^[",      "\\x1b",        "\\033", "\\e",
                                                            "\\u001b", "\xe2\x90\x9b", ""};
  const auto introducer =
      *std::ranges::find_if(kEscapes, [&](std::string_view e) { return text.starts_with(e); });
  const auto rest = text.substr(introducer.size());
  if (!rest.starts_with('[')) return 0;
  const auto end = rest.find_first_not_of("0123456789;", 1);
  if (end == std::string_view::npos || rest[end] != 'm' || (end == 1 && introducer.empty())) return 0;
  return introducer.size() + end + 1;
}

struct Replacement {
  std::string_view what;
  char by;
};
constexpr std::array kReplacements{Replacement{"\xc2\xa0", ' '},
                                   Replacement{"&nbsp;", ' '},
                                   Replacement{"&gt;", '>'},
                                   Replacement{"\xef\xbb\xbf", ' '},
                                   Replacement{"\xe2\x80\x8b", ' '},
                                   Replacement{"\xe2\x94\x82", '|'},
                                   Replacement{"\xe2\x94\x83", '|'},
                                   Replacement{"\xe2\x95\x91", '|'},
                                   Replacement{"*", ' '},
                                   Replacement{"`", ' '}};

// Appends what the special text at the beginning of `rest` stands for; returns its length.
std::size_t append_special(std::string& out, std::string_view rest) {
  if (rest.front() == '\t') {
    out.append(8 - out.size() % 8, ' ');
    return 1;
  }
  if (const auto escape = visible_escape_length(rest); escape > 0) return escape;
  const auto found =
      std::ranges::find_if(kReplacements, [&](const Replacement& r) { return rest.starts_with(r.what); });
  out += found == kReplacements.end() ? rest.front() : found->by;
  return found == kReplacements.end() ? 1 : found->what.size();
}

void blank_quote_marks(std::string& line) {
  for (char& c : line) {
    if (c == '>') c = ' ';
    if (!is_space(c)) return;
  }
}

}  // namespace

bool is_device(Kind kind) { return kind == Kind::gpu || kind == Kind::nic || kind == Kind::nvswitch; }

bool is_matrix_cell(const Cell& cell) { return cell.mark != Mark::other && cell.mark != Mark::list; }

Cell read_cell(std::string_view word) {
  if (word == "X" || word == "x") return cell_of(Mark::self, word);
  for (const auto& [name, type] : kPathWords) {
    if (word != name) continue;
    Cell cell = cell_of(Mark::path, word);
    cell.type = type;
    return cell;
  }
  if (std::ranges::find(kStatusWords, word) != kStatusWords.end()) return cell_of(Mark::status, word);
  if (std::ranges::find(kUnknownWords, word) != kUnknownWords.end()) return cell_of(Mark::unknown, word);
  if (is_list(word)) return cell_of(Mark::list, word);
  if (auto nvlink = nvlink_prefix(word); nvlink && nvlink->text.size() == word.size()) return *nvlink;
  return cell_of(Mark::other, word);
}

std::vector<Cell> read_cells(std::string_view text, std::size_t column, std::size_t limit) {
  std::vector<Cell> out;
  std::size_t i = 0;
  while (i < text.size() && out.size() < limit) {
    while (i < text.size() && is_space(text[i])) ++i;
    const std::size_t begin = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    if (i > begin) append_word(out, text.substr(begin, i - begin), column + begin);
  }
  return out;
}

std::optional<Header> read_header(std::string_view line) {
  Header header = HeaderScan(line).run();
  const auto is_gpu = [](const Column& c) { return c.kind == Kind::gpu; };
  const auto gpu = std::ranges::find_if(header.columns, is_gpu);
  if (gpu == header.columns.end()) return std::nullopt;
  // NICs stand right of the GPUs: a name left of them is a host's or a log's prefix.
  header.columns.erase(
      std::remove_if(header.columns.begin(), gpu, [](const Column& c) { return is_device(c.kind); }), gpu);
  if (header.columns.size() < 2) return std::nullopt;
  return header;
}

DeviceName device_at(std::string_view text) {
  text = text.substr(0, 128);
  const Match match = title_at(text);
  if (!is_device(match.kind)) return {};
  // A glued cell: "mlx5_0PIX".
  if (const auto at = text.substr(0, match.length).rfind('_');
      match.kind == Kind::nic && at != std::string_view::npos) {
    const auto digits = count_digits(text.substr(at + 1));
    if (digits > 0) return {at + 1 + digits, match.kind};
  }
  return {match.length, match.kind};
}

bool is_cut_cell(std::string_view word) {
  if (word.empty()) return false;
  const auto begins = [&](std::string_view name) {
    return word.size() < name.size() && name.starts_with(word);
  };
  return std::ranges::any_of(kPathWords, [&](const auto& p) { return begins(p.first); }) || word == "NV" ||
         begins("N/A");
}

std::optional<Column> read_title(std::string_view cell) {
  cell = trim(cell);
  const Match match = title_at(cell.substr(0, 128));
  if (match.length == 0 || match.length != cell.size()) return std::nullopt;
  return Column{match.kind, std::string(cell), 0};
}

std::string clean_line(std::string_view line) {
  const std::string plain = strip_ansi(line);
  std::string out;
  for (std::string_view rest = plain; !rest.empty();) {
    const auto usual = std::min(rest.find_first_of("\t[^\\&*`\xc2\xe2\xef"), rest.size());
    out += rest.substr(0, usual);
    rest.remove_prefix(usual);
    if (!rest.empty()) rest.remove_prefix(append_special(out, rest));
  }
  blank_quote_marks(out);
  return out;
}

}  // namespace topotune::parse::topo
