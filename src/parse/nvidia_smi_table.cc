#include "parse/nvidia_smi_table.h"

#include <algorithm>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr std::string_view kErrors[] = {"Failed to initialize NVML", "NVIDIA-SMI has failed because",
                                        "No devices were found", "Unable to determine the device handle"};

bool is_error(std::string_view line) {
  return std::ranges::any_of(kErrors,
                             [&](std::string_view e) { return line.find(e) != std::string_view::npos; });
}

// "| NVIDIA-SMI 580.1   Driver Version: 580.1   CUDA Version: 13.0 |"
void read_header(std::string_view line, int number, NvidiaSmi& out) {
  if (const auto driver = after(line, "Driver Version:")) {
    const auto found = words(*driver);
    if (!found.empty()) out.driver = std::string(found.front());
    out.driver_line = number;
  }
  if (const auto cuda = after(line, "CUDA Version:")) {
    const auto found = words(*cuda);
    if (!found.empty()) out.cuda = smi::value_of(found.front());
  }
}

bool is_cells(std::string_view line) { return line.starts_with("|") && line.ends_with("|"); }

// "|   0  NVIDIA H200       On  |   00000000:00:06.0 Off |   0 |": index, name and address.
std::optional<SmiGpu> first_row(const std::vector<std::string_view>& cells) {
  if (cells.size() < 5) return std::nullopt;
  const auto left = words(cells[1]);
  const auto middle = words(cells[2]);
  if (left.size() < 2 || middle.empty()) return std::nullopt;
  const auto index = parse_int<int>(left[0]);
  const auto bdf = parse_bdf(middle[0]);
  if (!index || *index < 0 || !bdf) return std::nullopt;
  SmiGpu gpu;
  gpu.index = index;
  gpu.bdf = bdf->to_string();
  auto name = trim(trim(cells[1]).substr(left[0].size()));
  const auto mode = left.back();
  const bool windows = mode == "WDDM" || mode == "TCC" || mode == "MCDM";  // the driver model stands there
  if (mode == "On" || mode == "Off") gpu.state.persistence = mode == "On" ? "Enabled" : "Disabled";
  if (mode == "On" || mode == "Off" || windows) name = trim(name.substr(0, name.size() - mode.size()));
  if (name == "ERR!")
    gpu.state.other["Name"] = "ERR!";
  else if (!name.empty() && !name.ends_with("..."))
    gpu.name = std::string(name);
  return gpu;
}

// "| N/A   27C    P0     104W /  700W |   0MiB / 143771MiB |   0%   Default |"
void second_row(const std::vector<std::string_view>& cells, SmiGpu& gpu) {
  for (const auto word : words(cells[1])) {
    if (word.ends_with('C') && leading_digits(word).size() + 1 == word.size())
      gpu.state.temperature_c = leading_number(word);
  }
  if (const auto total = after(cells[2], "/")) {
    const auto digits = leading_digits(trim(*total));
    if (const auto mib = parse_int<std::uint64_t>(digits); mib && *mib < (1ull << 40))
      gpu.state.memory_bytes = *mib << 20;
  }
  const auto right = words(cells[3]);
  if (right.empty()) return;
  if (right[0].ends_with('%')) gpu.state.utilisation = parse_int<int>(leading_digits(right[0]));
  if (right.size() > 1) gpu.state.compute_mode = std::string(right.back());
}

void third_row(const std::vector<std::string_view>& cells, SmiGpu& gpu) {
  const auto mode = trim(cells[3]);
  if (mode == "Enabled" || mode == "Enabled*") gpu.mig = true;
  if (mode == "Disabled" || mode == "Disabled*") gpu.mig = false;
}

}  // namespace

bool looks_like_nvidia_smi_table(std::string_view text) {
  if (is_error(text)) return true;
  return text.find("| NVIDIA-SMI ") != std::string_view::npos ||
         (text.find("Bus-Id") != std::string_view::npos &&
          text.find("Volatile Uncorr. ECC") != std::string_view::npos);
}

Result<NvidiaSmi> parse_nvidia_smi_table(std::string_view text) {
  NvidiaSmi out;
  int row = 0;  // 1: first line of a GPU was just read, 2: second
  bool table_ended = false;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.find("NVIDIA-SMI ") != std::string_view::npos) read_header(line, reader.number(), out);
    if (!out.error && is_error(line)) {
      out.error = std::string(line);
      out.error_line = reader.number();
    }
    if (const auto version = after(line, "NVML library version:")) out.nvml = smi::value_of(*version);
    if (line.find("Processes:") != std::string_view::npos ||
        line.find("MIG devices:") != std::string_view::npos)
      table_ended = true;
    if (!is_cells(line)) {
      row = 0;
      continue;
    }
    const auto cells = split(line, '|');
    if (table_ended || cells.size() < 5) continue;
    if (auto gpu = first_row(cells)) {
      if (out.gpus.size() >= kMaxRecords) return too_many("GPUs", reader.number());
      gpu->line = reader.number();
      out.gpus.push_back(std::move(*gpu));
      row = 1;
    } else if (row == 1) {
      second_row(cells, out.gpus.back());
      row = 2;
    } else if (row == 2) {
      third_row(cells, out.gpus.back());
      row = 0;
    }
  }
  if (out.gpus.empty() && !out.driver && !out.error) return not_a("nvidia-smi");
  if (table_ended) out.attached = static_cast<int>(out.gpus.size());
  return out;
}

}  // namespace topotune::parse
