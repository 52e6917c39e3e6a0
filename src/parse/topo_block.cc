#include "parse/topo_block.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "base/text.h"

namespace topotune::parse::topo {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024;  // 1024 devices need less than 16 KiB
constexpr int kMaxContinuations = 16;
constexpr int kMaxIdle = 512;  // lines after which no row and no legend is expected any more
constexpr std::size_t kMaxPrefixWords = 64;

// What nvidia-smi, a shell or NVML says instead of a matrix.
constexpr std::array<std::string_view, 12> kRefusals{"must be used in conjunction",
                                                     "NVIDIA-SMI has failed",
                                                     "Failed to initialize NVML",
                                                     "No devices were found",
                                                     "Invalid combination of",
                                                     "nvidia-smi: command not found",
                                                     "nvidia-smi: not found",
                                                     "Insufficient Permissions",
                                                     "Unable to determine the device handle",
                                                     "is not recognized as an internal",
                                                     "Option \"-m\" is not",
                                                     "topology matrix"};

bool has_word(std::string_view line) {
  return std::ranges::any_of(
      line, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c); });
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

std::size_t device_count(const Header& header) {
  return static_cast<std::size_t>(
      std::ranges::count_if(header.columns, [](const Column& c) { return is_device(c.kind); }));
}

bool names_device(const Header& header, std::string_view name) {
  return std::ranges::any_of(header.columns,
                             [&](const Column& c) { return is_device(c.kind) && c.name == name; });
}

// Most words right of a label are cells.
bool are_cells(const std::vector<Cell>& cells) {
  const auto good = std::ranges::count_if(
      cells, [](const Cell& c) { return c.mark != Mark::other || is_cut_cell(c.text); });
  return !cells.empty() && cells.front().mark != Mark::list && 2 * good > std::ssize(cells) &&
         std::ranges::any_of(cells,
                             [](const Cell& c) { return is_matrix_cell(c) && c.mark != Mark::unknown; });
}

std::string without_bars(std::string line) {
  std::ranges::replace(line, '|', ' ');
  return line;
}

// A Markdown header: every cell one title, at most one other (the heading of the label column).
std::optional<Header> read_table_header(std::string_view line) {
  if (std::ranges::count(line, '|') < 2) return std::nullopt;
  Header header;
  int others = 0;
  const auto cells = split(line, '|');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (trim(cells[i]).empty()) continue;
    auto title = read_title(cells[i]);
    if (!title && ++others > 1) return std::nullopt;
    if (!title) continue;
    title->column = i;
    header.columns.push_back(std::move(*title));
  }
  const bool gpu = std::ranges::any_of(header.columns, [](const Column& c) { return c.kind == Kind::gpu; });
  return gpu && header.columns.size() > 1 ? std::optional(header) : std::nullopt;
}

// The label of a row and what stands around it.
std::optional<RawRow> read_table_row(const Header& header, std::string_view line) {
  RawRow row;
  for (const auto cell : split(line, '|')) row.table.emplace_back(trim(cell));
  const auto label = std::ranges::find_if(row.table, [&](const auto& c) { return names_device(header, c); });
  if (label == row.table.end()) return std::nullopt;
  row.device = *label;
  row.label_cell = static_cast<std::size_t>(label - row.table.begin());
  return row;
}

// The row that begins at `at`, where a device's name may stand.
template <class Accept>
std::optional<RawRow> row_at(std::string_view line, std::size_t at, Accept accept) {
  const DeviceName name = device_at(line.substr(at));
  if (name.length == 0) return std::nullopt;
  RawRow row;
  row.device = line.substr(at, name.length);
  row.before = line.substr(0, at);
  row.column = at + name.length;
  if (row.column < line.size() && line[row.column] == ':') ++row.column;
  row.text = line.substr(row.column);
  if (!accept(row, name.kind)) return std::nullopt;
  return row;
}

// The first row that `accept` takes: its label stands after blanks, a prompt or a log's prefix.
template <class Accept>
std::optional<RawRow> read_row(std::string_view line, Accept accept) {
  std::size_t words = 0;
  for (std::size_t i = 0; i < line.size() && words < kMaxPrefixWords; ++i) {
    const bool starts = is_name_char(line[i]) && (i == 0 || !is_name_char(line[i - 1]));
    if (!starts) continue;
    ++words;
    if (auto row = row_at(line, i, accept)) return row;
  }
  return std::nullopt;
}

// A row without a header begins with a GPU's name and a cell. Cheap: most lines of a log do not.
bool may_begin_matrix(std::string_view line) {
  if (line.find_first_of("Xx") == std::string_view::npos) return false;
  for (std::size_t at = line.find("GPU"); at != std::string_view::npos; at = line.find("GPU", at + 3)) {
    const auto after = line.find_first_not_of("0123456789: |", at + 3);
    if (after == std::string_view::npos || after == at + 3) continue;
    const auto word = line.substr(after, std::min(line.find(' ', after), line.size()) - after);
    const auto cells = read_cells(word, 0, 1);
    if (!cells.empty() && is_matrix_cell(cells.front())) return true;
  }
  return false;
}

class Finder {
 public:
  void add(std::string_view raw) {
    ++number_;
    if (!block_ && found_.matrix && found_.second_line) return;
    if (!block_ && raw.size() <= kMaxLine && !found_.refusal_line) look_for_refusal(raw);
    if (raw.size() > kMaxLine || (!block_ && raw.find("GPU") == std::string_view::npos)) return other(raw);
    const std::string line = clean_line(raw);
    if (!take_header(line) && !take_row(line) && !take_continuation(line)) {
      take_legend(line);
      other(line);
    }
  }

  Found finish() {
    close_block();
    if (!found_.matrix) found_.matrix = std::move(header_only_);
    return std::move(found_);
  }

 private:
  void look_for_refusal(std::string_view line) {
    const auto says = [&](std::string_view what) { return line.find(what) != std::string_view::npos; };
    if (std::ranges::none_of(kRefusals, says)) return;
    found_.refusal_line = number_;
    found_.refusal = trim(printable(strip_ansi(line.substr(0, 300))));
  }

  void other(std::string_view line) {
    adjacent_ = false;
    if (block_ && has_word(line)) block_->at_end = false;
    if (++idle_ > kMaxIdle) close_block();
  }

  // Cheap: a title ends the line, and begins with a letter.
  static bool may_be_header(std::string_view line) {
    line = trim(line);
    if (line.empty() || !(is_name_char(line.back()) || line.back() == '|')) return false;
    const auto word = line.substr(line.find_last_of(" |", line.size() - 2) + 1);
    return !is_digit(word.front());
  }

  bool take_header(const std::string& line) {
    const bool continues = block_ && block_->rows.empty() && adjacent_;
    if (!continues && !may_be_header(line)) return false;
    auto table = read_table_header(line);
    auto header = table ? table : read_header(without_bars(line));
    if (!table && continues && continue_header(line)) return true;
    if (!header) return false;
    const std::size_t devices = device_count(*header);
    if (devices > kMaxDevices) {
      found_.too_many = std::max(found_.too_many.value_or(0), devices);
      return false;
    }
    close_block();
    block_.emplace();
    block_->line = number_;
    block_->header = std::move(*header);
    block_->is_table = table.has_value();
    header_line_ = line;
    adjacent_ = true;
    idle_ = 0;
    return true;
  }

  // A header that was wrapped: the line makes more titles of it, none of them twice.
  bool continue_header(const std::string& line) {
    if (block_->is_table || line.size() + header_line_.size() > kMaxLine) return false;
    const std::string text(trim(line));
    for (const auto* glue : {"", " "}) {
      auto joined = read_header(without_bars(header_line_ + glue + text));
      if (!joined || !extends(*joined, block_->header)) continue;
      header_line_ += glue + text;
      block_->header = std::move(*joined);
      return true;
    }
    return false;
  }

  static bool extends(const Header& longer, const Header& header) {
    if (longer.columns.size() <= header.columns.size() || device_count(longer) > kMaxDevices) return false;
    std::set<std::string> names;
    for (const auto& column : longer.columns) {
      if (!names.insert(column.name).second) return false;
    }
    return std::ranges::equal(
        header.columns,
        std::vector(longer.columns.begin(), longer.columns.begin() + std::ssize(header.columns)), {},
        &Column::kind, &Column::kind);
  }

  bool take_row(const std::string& line) {
    if (!block_ && !may_begin_matrix(line)) return false;
    auto row =
        block_ && block_->is_table
            ? read_table_row(block_->header, line)
            : read_row(without_bars(line), [&](const RawRow& r, Kind kind) { return accepts(r, kind); });
    if (!row) return false;
    if (!block_) {
      block_.emplace();
      block_->line = number_;
    }
    if (closed_ || !seen_.insert(row->device).second || seen_.size() > kMaxDevices) {
      closed_ = true;  // a second matrix whose header is lost
      if (!found_.second_line) found_.second_line = number_;
      other(line);
      return true;
    }
    row->line = number_;
    block_->rows.push_back(std::move(*row));
    block_->at_end = true;
    adjacent_ = true;
    continuations_ = idle_ = 0;
    return true;
  }

  bool accepts(const RawRow& row, Kind kind) const {
    const auto cells = read_cells(row.text, 0, 32);
    const bool header_known = block_ && !block_->header.columns.empty();
    if (header_known && block_->header.partial.empty()) {
      if (!names_device(block_->header, row.device)) return false;
      return are_cells(cells) || (cells.empty() && !has_word(row.before));
    }
    if (!are_cells(cells)) return false;
    if (header_known && names_device(block_->header, row.device)) return true;
    return block_ || (cells.size() > 1 && kind == Kind::gpu && has_self(row.text));
  }

  static bool has_self(std::string_view text) {
    return std::ranges::any_of(read_cells(text, 0, kMaxDevices),
                               [](const Cell& c) { return c.mark == Mark::self; });
  }

  // The rest of a row that was wrapped: cells only, and the row lacks some.
  bool take_continuation(const std::string& line) {
    if (!block_ || block_->is_table || block_->rows.empty() || !adjacent_ || closed_) return false;
    auto& row = block_->rows.back();
    if (++continuations_ > kMaxContinuations || row.text.size() + line.size() > kMaxLine || !lacks_cells(row))
      return false;
    const std::string text(trim(without_bars(line)));
    for (const auto* glue : {"", " "}) {
      if (text.empty() || !joins(row.text, glue, text)) continue;
      row.text += glue + text;
      return true;
    }
    return false;
  }

  bool lacks_cells(const RawRow& row) const {
    const auto& columns = block_->header.columns;
    if (columns.empty()) return true;
    const bool gpu = row.device.starts_with("GPU");
    const std::size_t wanted = gpu ? columns.size() : device_count(block_->header);
    return read_cells(row.text, 0, wanted).size() < wanted;
  }

  // Without a blank only where that makes a cell of two halves ("NO" "DE", "0-63,128-" "191").
  static bool joins(const std::string& row, std::string_view glue, const std::string& more) {
    const auto cells = read_cells(more, 0, kMaxDevices + 8);
    const auto rest = std::span(cells).subspan(glue.empty() ? 1 : 0);
    if (std::ranges::any_of(rest, [](const Cell& c) { return c.mark == Mark::other; })) return false;
    if (!glue.empty()) return true;
    const auto old = words(row);
    if (old.empty() || is_space(row.back())) return false;
    const std::string_view last = old.back();
    const auto whole = read_cell(std::string(last) + std::string(words(more).front()));
    const bool open_list = read_cell(last).mark == Mark::list && (last.back() == '-' || last.back() == ',');
    return whole.mark != Mark::other && (is_cut_cell(last) || open_list);
  }

  void take_legend(const std::string& line) {
    if (!block_ || closed_ || block_->nic_names.size() > kMaxDevices) return;
    for (std::size_t at = line.find("NIC"); at != std::string::npos; at = line.find("NIC", at + 3)) {
      const std::string_view rest = std::string_view(line).substr(at + 3, 80);
      const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
      const auto index = parse_int<int>(rest.substr(0, digits));
      const auto after = trim(rest.substr(digits));
      if (!index || !after.starts_with(':') || words(after.substr(1)).empty()) continue;
      idle_ = 0;
      block_->nic_names.emplace(*index, words(after.substr(1)).front());
    }
  }

  void close_block() {
    if (block_) judge(std::move(*block_));
    block_.reset();
    seen_.clear();
    closed_ = adjacent_ = false;
  }

  void judge(Block block) {
    int paths = 0, statuses = 0, selfs = 0;
    for (const auto& row : block.rows) count(row, paths, statuses, selfs);
    const bool affinity = device_count(block.header) < block.header.columns.size();
    if (paths > 0 || (statuses == 0 && selfs > 0)) {
      if (!found_.matrix)
        found_.matrix = std::move(block);
      else if (!found_.second_line)
        found_.second_line = block.line;
    } else if (statuses > 0) {
      if (!found_.p2p_line) found_.p2p_line = block.line;
    } else if (affinity && !header_only_) {
      header_only_ = std::move(block);
    }
  }

  static void count(const RawRow& row, int& paths, int& statuses, int& selfs) {
    const auto add = [&](const Cell& cell) {
      paths += cell.mark == Mark::path || cell.mark == Mark::nvlink;
      statuses += cell.mark == Mark::status;
      selfs += cell.mark == Mark::self;
    };
    std::ranges::for_each(read_cells(row.text, 0, kMaxDevices), add);
    for (const auto& cell : row.table) add(read_cell(cell));
  }

  Found found_;
  std::optional<Block> block_, header_only_;
  std::set<std::string> seen_;  // rows of block_
  std::string header_line_;
  bool closed_ = false;    // its rows are over
  bool adjacent_ = false;  // the line before belongs to it
  int continuations_ = 0;
  int idle_ = 0;  // lines since the last one of the block
  int number_ = 0;
};

}  // namespace

Found find_matrix(std::string_view text) {
  std::string without_nul;
  if (text.find('\0') != std::string_view::npos) {  // UTF-16 from a Windows shell
    without_nul.reserve(text.size());
    std::ranges::copy_if(text, std::back_inserter(without_nul), [](char c) { return c != '\0'; });
    text = without_nul;
  }
  const char end_of_line = text.find('\n') != std::string_view::npos ? '\n' : '\r';
  Finder finder;
  while (!text.empty()) {
    const auto at = std::min(text.find(end_of_line), text.size());
    auto line = text.substr(0, at);
    while (line.ends_with('\r')) line.remove_suffix(1);
    finder.add(line);
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return finder.finish();
}

}  // namespace topotune::parse::topo
