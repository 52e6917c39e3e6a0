#include "parse/rocm_smi.h"

#include <algorithm>
#include <map>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr int kMaxGpus = 1024;

enum class Matrix { none, weight, hops, type, access };

// "GPU[3]" or "GPU3" -> 3
std::optional<int> gpu_of(std::string_view word) {
  if (!word.starts_with("GPU")) return std::nullopt;
  word.remove_prefix(3);
  if (word.starts_with("[") && word.ends_with("]")) word = word.substr(1, word.size() - 2);
  const auto index = parse_int<int>(word);
  return index && *index >= 0 && *index < kMaxGpus ? index : std::nullopt;
}

Matrix matrix_of(std::string_view line) {
  if (line.find("between two GPUs") == std::string_view::npos) return Matrix::none;
  if (line.find("Weight") != std::string_view::npos) return Matrix::weight;
  if (line.find("Hops") != std::string_view::npos) return Matrix::hops;
  if (line.find("Link Type") != std::string_view::npos) return Matrix::type;
  if (line.find("Link accessibility") != std::string_view::npos ||
      line.find("Access") != std::string_view::npos)
    return Matrix::access;
  return Matrix::none;
}

// "LINK TYPE TABLE:" of `amd-smi topology`, whose devices are addresses.
constexpr std::pair<std::string_view, Matrix> kTables[] = {{"ACCESS TABLE:", Matrix::access},
                                                           {"WEIGHT TABLE:", Matrix::weight},
                                                           {"HOPS TABLE:", Matrix::hops},
                                                           {"LINK TYPE TABLE:", Matrix::type}};

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  RocmSmi read() {
    while (lines_.next()) {
      if (lines_.line().size() < 64 * 1024) take(trim(lines_.line()));
    }
    for (auto& [index, gpu] : gpus_) out_.gpus.push_back(std::move(gpu));
    for (auto& [key, pair] : pairs_) out_.pairs.push_back(std::move(pair));
    return std::move(out_);
  }

 private:
  void take(std::string_view line) {
    if (line.starts_with("=") || line.ends_with(" TABLE:")) {
      const auto* table = std::ranges::find(kTables, line, &std::pair<std::string_view, Matrix>::first);
      matrix_ = table == std::end(kTables) ? matrix_of(line) : table->second;
      columns_.clear();
      return;
    }
    if (matrix_ != Matrix::none && line.size() > 4 && parse_bdf(words(line)[0]))
      return matrix_line(words(line));
    const auto field = key_value(line);
    const auto index = field ? gpu_of(field->key) : std::nullopt;
    if (index) return gpu_line(*index, field->value);
    if (field && field->key == "Driver version") {
      out_.driver = std::string(field->value);
      out_.driver_line = lines_.number();
    }
    if (matrix_ != Matrix::none) matrix_line(words(line));
  }

  RocmGpu& gpu(int index) {
    auto& found = gpus_[index];
    found.index = index;
    if (found.line == 0) found.line = lines_.number();
    return found;
  }

  // "(Topology) Numa Node: 0", "PCI Bus: 0000:C1:00.0", "Card Series: AMD Instinct MI300X"
  void gpu_line(int index, std::string_view text) {
    if (text.starts_with("(Topology)")) text = trim(text.substr(10));
    const auto field = key_value(text);
    if (!field) return;
    auto& found = gpu(index);
    if (iequals(field->key, "Numa Node")) {
      const auto node = parse_int<int>(field->value);
      found.numa = node && *node >= 0 ? node : std::nullopt;
    } else if (iequals(field->key, "PCI Bus")) {
      if (const auto bdf = parse_bdf(field->value)) found.bdf = bdf->to_string();
    } else if (iequals(field->key, "Card Series") && field->value != "N/A") {
      found.name = std::string(field->value);
    } else if (iequals(field->key, "GFX Version")) {
      found.gfx = std::string(field->value);
    }
  }

  // The GPU of a label: "GPU3", or an address, which is numbered in the order of the first table.
  std::optional<int> label(std::string_view word) {
    if (const auto index = gpu_of(word)) return index;
    const auto bdf = parse_bdf(word);
    if (!bdf || by_address_.size() >= kMaxGpus) return std::nullopt;
    const auto [at, fresh] = by_address_.try_emplace(bdf->to_string(), static_cast<int>(by_address_.size()));
    if (fresh) gpu(at->second).bdf = at->first;
    return at->second;
  }

  static bool is_label(std::string_view word) { return gpu_of(word) || parse_bdf(word); }

  void matrix_line(const std::vector<std::string_view>& line) {
    if (line.empty() || line.size() > kMaxGpus + 1) return;
    if (std::ranges::all_of(line, is_label)) {
      columns_.clear();
      for (const auto word : line) {
        if (const auto index = label(word)) columns_.push_back(*index);
      }
      return;
    }
    const auto first = label(line[0]);
    if (!first || columns_.empty()) return;
    gpu(*first);
    for (std::size_t i = 1; i < line.size() && i <= columns_.size(); ++i) {
      if (columns_[i - 1] != *first) cell(*first, columns_[i - 1], line[i]);
    }
  }

  void cell(int from, int to, std::string_view text) {
    auto& pair = pairs_[{from, to}];
    pair.from = from;
    pair.to = to;
    if (pair.line == 0) pair.line = lines_.number();
    switch (matrix_) {
      case Matrix::weight:
        pair.weight = parse_int<int>(text);
        break;
      case Matrix::hops:
        pair.hops = parse_int<int>(text);
        break;
      case Matrix::type:
        pair.link = std::string(text);
        break;
      case Matrix::access:
        if (text == "True" || text == "ENABLED") pair.accessible = true;
        if (text == "False" || text == "DISABLED") pair.accessible = false;
        break;
      case Matrix::none:
        break;
    }
  }

  LineReader lines_;
  RocmSmi out_;
  std::map<int, RocmGpu> gpus_;
  std::map<std::pair<int, int>, RocmPair> pairs_;
  std::map<std::string, int> by_address_;
  Matrix matrix_ = Matrix::none;
  std::vector<int> columns_;
};

}  // namespace

// rocm-smi --json: {"card0": {"Device ID": …
static bool is_json(std::string_view text) {
  return trim(text).starts_with('{') && text.substr(0, 1000).find("\"card") != std::string_view::npos &&
         text.find("Device ID") != std::string_view::npos;
}

bool looks_like_rocm_smi(std::string_view text) {
  return is_json(text) || text.find("(Topology) Numa") != std::string_view::npos ||
         text.find("ROCm System Management Interface") != std::string_view::npos ||
         text.find("LINK TYPE TABLE:") != std::string_view::npos ||
         (text.find("between two GPUs") != std::string_view::npos &&
          text.find("GPU0") != std::string_view::npos);
}

Result<RocmSmi> parse_rocm_smi(std::string_view text) {
  if (is_json(text)) {
    auto error = fail(Errc::unsupported, "the JSON form of rocm-smi");
    error.value().hint = "rocm-smi --showtopo --showbus, without --json";
    return error;
  }
  auto out = Reader(text).read();
  if (out.gpus.empty() && out.pairs.empty() && !out.driver) return not_a("rocm-smi");
  return out;
}

}  // namespace topotune::parse
