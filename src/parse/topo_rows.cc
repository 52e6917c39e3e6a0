#include "parse/topo_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "base/cpuset.h"
#include "base/text.h"

namespace topotune::parse::topo {
namespace {

bool is_blank(const Cell& cell) { return cell.mark == Mark::other && cell.text.empty(); }

std::vector<Column> devices_of(const Header& header) {
  std::vector<Column> out;
  std::ranges::copy_if(header.columns, std::back_inserter(out),
                       [](const Column& c) { return is_device(c.kind); });
  return out;
}

// Affinity columns left (usually none) and right of the devices.
std::vector<Column> affinities_of(const Header& header, bool left) {
  const auto device = [](const Column& c) { return is_device(c.kind); };
  const auto first = std::ranges::find_if(header.columns, device);
  std::vector<Column> out;
  for (auto it = left ? header.columns.begin() : first; it != (left ? first : header.columns.end()); ++it) {
    if (!is_device(it->kind)) out.push_back(*it);
  }
  return out;
}

// Cells of a row before its first list: those between devices, and N/A of the affinity columns.
std::size_t leading(const std::vector<Cell>& cells) {
  const auto list = std::ranges::find(cells, Mark::list, &Cell::mark);
  return static_cast<std::size_t>(list - cells.begin());
}

std::optional<std::size_t> self_index(const std::vector<Cell>& cells, std::size_t within) {
  const auto end = cells.begin() + static_cast<std::ptrdiff_t>(std::min(within, cells.size()));
  const auto self = std::find_if(cells.begin(), end, [](const Cell& c) { return c.mark == Mark::self; });
  return self == end ? std::nullopt : std::optional(static_cast<std::size_t>(self - cells.begin()));
}

Kind kind_of_label(std::string_view label) { return device_at(label).kind; }

// --- devices
// -------------------------------------------------------------------------------------------------------

// Without a whole header the rows tell: the X of a row stands in its own column, NVLinks end at GPUs, and the
// NIC legend names the last columns.
class Inference {
 public:
  Inference(const Block& block, const std::vector<std::vector<Cell>>& rows) : block_(block), rows_(rows) {}

  std::vector<Device> run() {
    devices_.resize(width());
    const auto titled = devices_of(block_.header);
    for (std::size_t i = 0; i < std::min(titled.size(), devices_.size()); ++i)
      devices_[i] = {titled[i].kind, titled[i].name};
    name_rows();
    name_gpus();
    name_nics();
    return std::move(devices_);
  }

 private:
  std::size_t width() const {
    std::size_t widest = devices_of(block_.header).size();
    for (const auto& cells : rows_) {
      std::size_t n = leading(cells);
      while (n > 0 && cells[n - 1].mark == Mark::unknown) --n;
      widest = std::max(widest, std::min(n, kMaxDevices));
    }
    return widest;
  }

  void name_rows() {
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const auto self = self_index(rows_[r], devices_.size());
      if (self && devices_[*self].name.empty())
        devices_[*self] = {kind_of_label(block_.rows[r].device), block_.rows[r].device};
    }
  }

  // nvidia-smi numbers GPUs in the order of its columns; only where all known ones do are others named so.
  bool in_order() const {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const auto& device = devices_[i];
      if (!device.name.empty() && device.kind == Kind::gpu && device.name != fmt::format("GPU{}", i))
        return false;
    }
    return true;
  }

  // One past the last column that must be a GPU's.
  std::size_t gpu_end() const {
    std::size_t end = 0;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (!devices_[i].name.empty() && devices_[i].kind == Kind::gpu) end = i + 1;
    }
    for (const auto& cells : rows_) {
      for (std::size_t i = 0; i < std::min(cells.size(), devices_.size()); ++i) {
        if (cells[i].mark == Mark::nvlink) end = std::max(end, i + 1);
      }
    }
    return end;
  }

  void name_gpus() {
    if (!in_order()) return;
    for (std::size_t i = 0; i < gpu_end(); ++i) {
      if (devices_[i].name.empty()) devices_[i] = {Kind::gpu, fmt::format("GPU{}", i)};
    }
  }

  void name_nics() {
    const std::size_t nics = block_.nic_names.size();
    const bool counted = nics > 0 && block_.nic_names.rbegin()->first == static_cast<int>(nics) - 1;
    if (!counted || nics + gpu_end() > devices_.size()) return;
    const std::size_t first = devices_.size() - nics;
    for (std::size_t i = first; i < devices_.size(); ++i) {
      if (devices_[i].name.empty()) devices_[i] = {Kind::nic, fmt::format("NIC{}", i - first)};
    }
    for (std::size_t i = 0; i < first && in_order(); ++i) {
      if (devices_[i].name.empty()) devices_[i] = {Kind::gpu, fmt::format("GPU{}", i)};
    }
  }

  const Block& block_;
  const std::vector<std::vector<Cell>>& rows_;
  std::vector<Device> devices_;
};

// --- cells of one row
// ----------------------------------------------------------------------------------------------

// Puts the cells of one line under `count` devices; `own` is the row's device.
class Placing {
 public:
  Placing(std::size_t count, std::size_t own, const std::vector<Column>& titles, std::ptrdiff_t shift)
      : count_(count), own_(own), titles_(titles), shift_(shift) {}

  // `cells` holds what stands right of the label. Returns how many of them stand between devices.
  std::size_t place(const std::vector<Cell>& cells, std::vector<Cell>& out) const {
    const std::size_t between = std::min(leading(cells), count_);
    const auto self = self_index(cells, between);
    const bool cut_off = between == cells.size() && (self ? *self == own_ : between <= own_);
    if (between == count_ || cut_off)
      put(cells, 0, between, 0, out);
    else
      place_short(cells, between, out);
    return between;
  }

 private:
  static void put(const std::vector<Cell>& cells, std::size_t from, std::size_t to, std::size_t at,
                  std::vector<Cell>& out) {
    std::copy(cells.begin() + static_cast<std::ptrdiff_t>(from),
              cells.begin() + static_cast<std::ptrdiff_t>(to), out.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // Cells are missing in the middle: their places in the line tell which, else the X does. "X NV2 NV2" as the
  // row of the second of four devices is the half right of the diagonal.
  void place_short(const std::vector<Cell>& cells, std::size_t between, std::vector<Cell>& out) const {
    const auto self = self_index(cells, between);
    const bool upper_half = self && *self == 0 && between == count_ - own_;
    if (!upper_half && place_by_column(cells, between, out)) return;
    if (!self) return;
    if (*self == own_) put(cells, 0, own_ + 1, 0, out);
    if (between - *self == count_ - own_) put(cells, *self, between, own_, out);
  }

  bool place_by_column(const std::vector<Cell>& cells, std::size_t between, std::vector<Cell>& out) const {
    if (titles_.size() != count_) return false;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < between; ++i) {
      const auto place = nearest(cells[i]);
      const bool good = place && (places.empty() || places.back() < *place);
      if (!good || (cells[i].mark == Mark::self) != (*place == own_)) return false;
      places.push_back(*place);
    }
    for (std::size_t i = 0; i < between; ++i) out[places[i]] = cells[i];
    return true;
  }

  std::optional<std::size_t> nearest(const Cell& cell) const {
    const auto at = static_cast<std::ptrdiff_t>(cell.column) - shift_;
    const auto distance = [&](const Column& c) {
      return std::abs(static_cast<std::ptrdiff_t>(c.column) - at);
    };
    const auto after = std::ranges::upper_bound(
        titles_, at, {}, [](const Column& c) { return static_cast<std::ptrdiff_t>(c.column); });
    auto best = after == titles_.begin() ? after : after - 1;
    if (after != titles_.end() && distance(*after) < distance(*best)) best = after;
    if (distance(*best) > 3) return std::nullopt;
    return static_cast<std::size_t>(best - titles_.begin());
  }

  std::size_t count_, own_;
  const std::vector<Column>& titles_;
  std::ptrdiff_t shift_;
};

struct TailWord {
  std::string text;
  std::size_t column = 0;
};

// Words of the affinity columns; a list that a blank divides after its comma is one word.
std::vector<TailWord> tail_words(const std::vector<Cell>& cells, std::size_t from) {
  std::vector<TailWord> out;
  for (std::size_t i = from; i < cells.size(); ++i) {
    if (!out.empty() && out.back().text.ends_with(',') && cells[i].mark == Mark::list)
      out.back().text += cells[i].text;
    else
      out.push_back({std::string(cells[i].text), cells[i].column});
  }
  return out;
}

// What stands right of `count` devices in a row that tabs divide, empty fields included; nothing in other
// rows.
std::optional<std::vector<std::string_view>> tabbed_tail(std::string_view text, std::size_t count) {
  const auto fields = split(text, '\t');
  if (fields.size() < count + 2 || !trim(fields[0]).empty()) return std::nullopt;
  for (std::size_t i = 1; i <= count; ++i) {
    if (words(fields[i]).size() != 1) return std::nullopt;
  }
  return std::vector<std::string_view>(fields.begin() + static_cast<std::ptrdiff_t>(count) + 1, fields.end());
}

// Which field is which affinity column: nvidia-smi puts one tab or two behind a CPU list and a NUMA node, by
// its version and by whether a third column follows.
std::optional<std::vector<std::size_t>> field_places(const std::vector<std::string_view>& fields,
                                                     std::size_t columns) {
  const auto n = fields.size();
  if (columns == 3 && n == 4) return std::vector<std::size_t>{0, 1, 3};
  if (columns == 3 && n == 5) return std::vector<std::size_t>{0, 2, 4};
  if (columns == 2 && n == 3) return std::vector<std::size_t>{0, trim(fields[1]).empty() ? 2u : 1u};
  if (n != columns) return std::nullopt;
  std::vector<std::size_t> places(n);
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

// --- the whole matrix
// ----------------------------------------------------------------------------------------------

class Arranger {
 public:
  explicit Arranger(const Block& block)
      : block_(block),
        titles_(devices_of(block.header)),
        left_(affinities_of(block.header, true)),
        right_(affinities_of(block.header, false)) {}

  Table run() {
    read_lines();
    name_devices();
    for (std::size_t r = 0; r < block_.rows.size(); ++r) add_row(r);
    for (auto& row : table_.rows) finish(row);
    return std::move(table_);
  }

 private:
  // What the last word of a line is.
  enum class Last { nothing, cell, cpus, numa, gpu_numa };

  void read_lines() {
    for (const auto& row : block_.rows) lines_.push_back(read_cells(row.text, row.column, kMaxDevices + 8));
  }

  void name_devices() {
    if (titles_.empty() || !block_.header.partial.empty()) {
      table_.devices = Inference(block_, lines_).run();
    } else {
      for (const auto& title : titles_) table_.devices.push_back({title.kind, title.name});
    }
    for (std::size_t i = 0; i < table_.devices.size(); ++i) index_device(i);
  }

  void index_device(std::size_t i) {
    auto& device = table_.devices[i];
    if (!device.name.empty() && !index_.emplace(device.name, i).second) {
      table_.warnings.push_back(
          {"duplicate-column",
           fmt::format("the header names {} twice; its second column is not read", device.name),
           block_.line});
      device.name.clear();
    } else if (device.name.empty()) {
      ++table_.unnamed;
    }
  }

  void add_row(std::size_t r) {
    const auto& raw = block_.rows[r];
    const auto own = index_.find(raw.device);
    if (own == index_.end()) return;
    Row row;
    row.device = own->second;
    row.line = raw.line;
    row.cells.resize(table_.devices.size());
    if (block_.is_table)
      fill_from_table(raw, row);
    else
      fill_from_line(raw, lines_[r], row);
    table_.rows.push_back(std::move(row));
    last_.push_back(last_word_);
    open_end_.push_back(raw.text.empty() || !is_space(raw.text.back()));
  }

  void fill_from_table(const RawRow& raw, Row& row) {
    const bool unlabelled = std::ranges::any_of(block_.header.columns,
                                                [&](const Column& c) { return c.column == raw.label_cell; });
    std::size_t device = 0;
    last_word_ = Last::nothing;
    for (const auto& column : block_.header.columns) {
      const std::size_t at = column.column + (unlabelled && column.column >= raw.label_cell ? 1 : 0);
      const std::string text = at < raw.table.size() ? raw.table[at] : std::string();
      if (is_device(column.kind)) {
        if (!text.empty()) row.cells[device] = read_cell(raw.table[at]);
        ++device;
      } else if (!text.empty()) {
        set_affinity(row, column.kind, text);
      }
    }
  }

  void fill_from_line(const RawRow& raw, const std::vector<Cell>& cells, Row& row) {
    const std::size_t count = table_.devices.size();
    const auto between = Placing(count, row.device, titles_, shift()).place(cells, row.cells);
    last_word_ = between > 0 ? Last::cell : Last::nothing;
    if (!left_.empty()) fill_left(raw, row);
    auto words = tail_words(cells, between);
    const auto& columns =
        block_.header.columns.empty() || !block_.header.partial.empty() ? usual_tail() : right_;
    if (words.size() > columns.size()) words.resize(columns.size());
    if (words.size() < columns.size() && fill_from_fields(raw, count, columns, row)) return;
    const auto moved = between == count && titles_.size() == count
                           ? static_cast<std::ptrdiff_t>(cells[count - 1].column) -
                                 static_cast<std::ptrdiff_t>(titles_[count - 1].column) -
                                 (cells[count - 1].mark == Mark::self ? 1 : 0)
                           : 0;
    const auto places = tail_places(words, columns, moved);
    for (std::size_t i = 0; i < words.size(); ++i) set_affinity(row, columns[places[i]].kind, words[i].text);
    row.whole = !places.empty() && places.back() + 1 == columns.size();  // for has_whole_tail
  }

  // A row whose tabs tell which affinity columns are empty: of a cgroup without the GPU's CPUs, or of
  // Windows.
  bool fill_from_fields(const RawRow& raw, std::size_t count, const std::vector<Column>& columns, Row& row) {
    const auto fields = tabbed_tail(raw.text, count);
    const auto places = fields ? field_places(*fields, columns.size()) : std::nullopt;
    if (!places) return false;
    for (std::size_t i = 0; i < places->size(); ++i) {
      const auto text = trim((*fields)[(*places)[i]]);
      if (!text.empty()) set_affinity(row, columns[i].kind, std::string(text));
    }
    row.whole = true;  // for has_whole_tail
    return true;
  }

  // Affinity columns that stand left of the label.
  void fill_left(const RawRow& raw, Row& row) {
    const auto cells = read_cells(raw.before, 0, kMaxDevices);
    const std::size_t n = std::min(left_.size(), cells.size());
    for (std::size_t i = 0; i < n; ++i)
      set_affinity(row, left_[left_.size() - n + i].kind, std::string(cells[cells.size() - n + i].text));
  }

  // The columns of today's nvidia-smi, where the header is lost.
  static const std::vector<Column>& usual_tail() {
    static const std::vector<Column> columns{
        {Kind::cpu_affinity, "", 0}, {Kind::numa_affinity, "", 0}, {Kind::gpu_numa, "", 0}};
    return columns;
  }

  // Which column each word belongs to: in order, or where some are empty by their place in the line. An empty
  // column takes one tab stop where its title takes two: a word between two titles belongs to the later one.
  static std::vector<std::size_t> tail_places(const std::vector<TailWord>& words,
                                              const std::vector<Column>& columns, std::ptrdiff_t moved) {
    std::vector<std::size_t> in_order, by_column;
    for (std::size_t i = 0; i < words.size(); ++i) {
      in_order.push_back(i);
      const auto distance = [&](const Column& c) {
        return std::abs(static_cast<std::ptrdiff_t>(c.column) + moved -
                        static_cast<std::ptrdiff_t>(words[i].column));
      };
      std::size_t nearest = 0;
      for (std::size_t c = 1; c < columns.size(); ++c)
        if (distance(columns[c]) <= distance(columns[nearest])) nearest = c;
      by_column.push_back(nearest);
    }
    const bool rising = std::ranges::adjacent_find(by_column, std::greater_equal{}) == by_column.end();
    const bool titled = !columns.empty() && columns.back().column > 0;
    return words.size() < columns.size() && titled && rising ? by_column : in_order;
  }

  void set_affinity(Row& row, Kind kind, std::string text) {
    ++row.tail;
    last_word_ = kind == Kind::cpu_affinity    ? Last::cpus
                 : kind == Kind::numa_affinity ? Last::numa
                                               : Last::gpu_numa;
    if (kind == Kind::cpu_affinity)
      row.cpus = std::move(text);
    else if (kind == Kind::numa_affinity)
      row.numa = std::move(text);
    else
      row.gpu_numa = std::move(text);
  }

  // How far rows stand right of the header: the header may have lost its leading blanks.
  std::ptrdiff_t shift() const {
    for (const auto& cells : lines_) {
      if (titles_.empty() || leading(cells) < titles_.size()) continue;
      const auto own = cells[0].mark == Mark::self ? 1 : 0;
      return static_cast<std::ptrdiff_t>(cells[0].column) - static_cast<std::ptrdiff_t>(titles_[0].column) -
             own;
    }
    return 0;
  }

  // --- is the row whole? ---

  void finish(Row& row) {
    const auto r = static_cast<std::size_t>(&row - table_.rows.data());
    const bool cells_there = std::ranges::none_of(row.cells, is_blank);
    const bool tail_there = has_whole_tail(row);
    const bool full = cells_there && tail_there;
    const bool last = r + 1 == table_.rows.size();
    const bool rows_missing = table_.rows.size() + table_.unnamed < table_.devices.size();
    if (!full || (last && (block_.at_end || rows_missing))) check_last_word(row, r, full, rows_missing);
    drop_unreadable(row);
    row.cut = row.cut || !full;
    row.whole = full && !row.cut && row.warnings.empty();
    if (row.cut) warn_cut(row);
  }

  // NIC rows have no affinity; a GPU's must reach the last column, or as far as the other rows do.
  bool has_whole_tail(const Row& row) const {
    if (table_.devices[row.device].kind != Kind::gpu || row.whole || block_.is_table) return true;
    if (right_.empty() && !block_.header.columns.empty() && block_.header.partial.empty()) return true;
    std::size_t most = 0;
    for (const auto& other : table_.rows) {
      if (&other != &row && table_.devices[other.device].kind == Kind::gpu) most = std::max(most, other.tail);
    }
    const bool alone = table_.rows.size() == 1 || most == 0;
    return alone ? row.tail == 0 && !is_last(row) : row.tail >= most;
  }

  bool is_last(const Row& row) const { return &row == &table_.rows.back(); }

  void check_last_word(Row& row, std::size_t r, bool full, bool rows_missing) {
    if (!open_end_[r] || block_.is_table) return;
    switch (last_[r]) {
      case Last::cell:
        check_last_cell(row, full);
        break;
      case Last::cpus:
        check_last_list(row, full, rows_missing);
        break;
      case Last::numa:
        check_last_numa(row);
        break;
      case Last::gpu_numa:
        row.cut = row.cut || ends_in_cut_word(r);
        break;
      case Last::nothing:
        break;
    }
  }

  bool ends_in_cut_word(std::size_t r) const {
    return is_cut_cell(lines_[r].empty() ? "" : lines_[r].back().text);
  }

  void check_last_cell(Row& row, bool full) {
    const auto last = std::find_if_not(row.cells.rbegin(), row.cells.rend(), is_blank);
    if (last == row.cells.rend()) return;
    const bool half_word = last->mark == Mark::other && is_cut_cell(last->text);
    const bool half_number = !full && last->mark == Mark::nvlink && may_be_longer(*last);
    if (!half_word && !half_number) return;
    *last = {};
    row.cut = true;
  }

  // "NV1" at the end of a cut line, where no other cell says NV1: it may be NV18.
  bool may_be_longer(const Cell& cell) const {
    bool longer = false, any = false;
    for (const auto& row : table_.rows) {
      for (const auto& other : row.cells) {
        if (&other == &cell || other.mark != Mark::nvlink) continue;
        if (other.text == cell.text) return false;
        any = true;
        longer = longer || other.text.starts_with(cell.text);
      }
    }
    return longer || !any;
  }

  // A list at the end of a cut text is whole where another row has it, or has as many CPUs.
  void check_last_list(Row& row, bool full, bool rows_missing) {
    if (!row.cpus) return;
    const auto cpus = parse_cpu_list(*row.cpus);
    bool same = false, longer = false, as_many = false, any = false;
    for (const auto& other : table_.rows) {
      if (&other == &row || !other.cpus) continue;
      any = true;
      same = same || *other.cpus == *row.cpus;
      longer = longer || other.cpus->starts_with(*row.cpus);
      const auto set = parse_cpu_list(*other.cpus);
      as_many = as_many || (set && cpus && set->count() == cpus->count());
    }
    const bool unlike = (!full || rows_missing) && !as_many && (any || !full);
    if (same || (cpus && !longer && !unlike)) return;
    if (read_cell(*row.cpus).mark == Mark::unknown) return;
    row.cpus.reset();
    row.cut = true;
  }

  void check_last_numa(Row& row) {
    if (!row.numa) return;
    bool same = false, longer = is_cut_cell(*row.numa);
    for (const auto& other : table_.rows) {
      if (&other == &row || !other.numa) continue;
      same = same || *other.numa == *row.numa;
      longer = longer || other.numa->starts_with(*row.numa);
    }
    if (same || !longer) return;
    row.numa.reset();
    row.cut = true;
  }

  // Cells that say nothing a matrix can say: unknown, with one warning a row.
  void drop_unreadable(Row& row) {
    std::string first;
    std::size_t count = 0;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      auto& cell = row.cells[i];
      const bool strange = cell.mark == Mark::status || (cell.mark == Mark::other && !cell.text.empty()) ||
                           (cell.mark == Mark::self && i != row.device);
      if (!strange) continue;
      if (count++ == 0) first = printable(cell.text.substr(0, 24));
      cell.mark = Mark::unknown;
    }
    if (count == 0) return;
    row.warnings.push_back({"unreadable-cell",
                            fmt::format("row of {}: \"{}\"{} is not a connection type; unknown", name(row),
                                        first, count > 1 ? fmt::format(" and {} more cells", count - 1) : ""),
                            row.line});
  }

  void warn_cut(Row& row) {
    const auto there =
        row.cells.size() - static_cast<std::size_t>(std::ranges::count_if(row.cells, is_blank));
    const std::string what = there < row.cells.size()
                                 ? fmt::format("{} of {} cells are there", there, row.cells.size())
                                 : "its affinity is cut off";
    row.warnings.push_back(
        {"truncated", fmt::format("row of {} is incomplete: {}", name(row), what), row.line});
  }

  const std::string& name(const Row& row) const { return table_.devices[row.device].name; }

  const Block& block_;
  std::vector<Column> titles_, left_, right_;
  std::vector<std::vector<Cell>> lines_;
  std::map<std::string, std::size_t> index_;
  Table table_;
  std::vector<Last> last_;      // of each row
  std::vector<bool> open_end_;  // of each row: no blank follows its last word
  Last last_word_ = Last::nothing;
};

}  // namespace

Table arrange(const Block& block) { return Arranger(block).run(); }

}  // namespace topotune::parse::topo
