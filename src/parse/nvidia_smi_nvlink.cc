#include "parse/nvidia_smi_nvlink.h"

#include <algorithm>
#include <unordered_map>

#include "base/bdf.h"
#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

constexpr int kMaxLinks = 256;

struct Heading {
  int index;
  std::string_view name, uuid;
  bool with_uuid = true;
};

// "GPU 0: NVIDIA H200 (UUID: GPU-…)"; the closing bracket may be cut off. Some take the UUID out: then the
// line is one of this command only where links follow below it.
std::optional<Heading> heading_of(std::string_view line) {
  if (!line.starts_with("GPU ")) return std::nullopt;
  const auto field = key_value(line.substr(4));
  if (!field) return std::nullopt;
  const auto index = parse_int<int>(field->key);
  if (!index || *index < 0) return std::nullopt;
  const auto at = field->value.find("(UUID:");
  if (at == std::string_view::npos) return Heading{*index, field->value, {}, false};
  auto uuid = trim(field->value.substr(at + 6));
  uuid = trim(uuid.substr(0, uuid.find(')')));
  return Heading{*index, trim(field->value.substr(0, at)), uuid};
}

struct LinkText {
  int number;
  std::string_view rest;  // after "Link N:" or "Link N,"
};

std::optional<LinkText> link_of(std::string_view line) {
  if (!line.starts_with("Link ")) return std::nullopt;
  line.remove_prefix(5);
  const auto digits = leading_digits(line);
  const auto number = parse_int<int>(digits);
  if (!number || *number >= kMaxLinks || digits.size() >= line.size()) return std::nullopt;
  const char separator = line[digits.size()];
  if (separator != ':' && separator != ',') return std::nullopt;
  return LinkText{*number, trim(line.substr(digits.size() + 1))};
}

enum class LinkFact { none, status, remote, other };

// "26.562 GB/s", "<inactive>", "inactive"
bool read_status(std::string_view text, NvLinkLine& link) {
  if (icontains(text, "inactive")) {
    link.active = false;
    return true;
  }
  const auto speed = leading_number(text);
  if (!speed || text.find("GB/s") == std::string_view::npos) return false;
  link.active = true;
  if (*speed > 0 && *speed < 10000) link.speed = GBytesPerSec{*speed};
  return true;
}

// "Remote Device 00000000:07:00.0: Link 46"
bool read_remote(std::string_view text, NvLinkLine& link) {
  const auto device = after(text, "Remote Device ");
  if (!device) return false;
  const auto at = device->find(": Link ");
  const auto bdf = to_lower(trim(device->substr(0, at)));
  if (bdf.starts_with("ffffffff:") || bdf.starts_with("fffffff:")) {
    link.remote_hidden = true;
    return true;
  }
  const auto parsed = parse_bdf(bdf);
  if (!parsed) return false;
  link.remote_bdf = parsed->to_string();
  if (at != std::string_view::npos) link.remote_link = parse_int<int>(leading_digits(device->substr(at + 7)));
  return true;
}

LinkFact read_link(std::string_view text, NvLinkLine& link) {
  if (read_remote(text, link)) return LinkFact::remote;
  const auto field = key_value(text);
  if (field && (field->value == "true" || field->value == "false")) {
    link.capabilities[std::string(field->key)] = std::string(field->value);
    return LinkFact::other;
  }
  if (field && field->key.ends_with("Errors")) {
    if (const auto count = parse_int<std::uint64_t>(field->value))
      link.errors[std::string(field->key)] = *count;
    return LinkFact::other;
  }
  if (field) return LinkFact::other;  // throughput and other counters
  return read_status(text, link) ? LinkFact::status : LinkFact::none;
}

// A line that only this command prints below a heading.
bool is_below_heading(std::string_view line) {
  return link_of(line).has_value() || line.starts_with("NVML: ");
}

// "MIG 1g.12gb     Device  0: (UUID: MIG-…)", as `nvidia-smi -L` lists an instance.
bool is_mig_instance(std::string_view line) {
  return line.starts_with("MIG ") && line.find("(UUID: MIG-") != std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  Result<NvidiaSmiNvlink> read() {
    while (lines_.next()) {
      const auto line = trim(lines_.line());
      if (const auto heading = heading_of(line)) {
        if (out_.gpus.size() >= kMaxRecords) return too_many("GPUs", lines_.number());
        take_heading(*heading);
        continue;
      }
      if (waiting_ && is_below_heading(line)) open(*waiting_);
      if (!line.empty()) waiting_.reset();
      if (current_) take(line);
    }
    mark_cut();
    return std::move(out_);
  }

 private:
  NvLinkGpu& gpu() { return out_.gpus[*current_]; }

  void take_heading(const Heading& heading) {
    waiting_.reset();
    if (heading.with_uuid) return open(heading);
    current_.reset();
    waiting_ = heading;
  }

  void open(const Heading& heading) {
    const auto [at, fresh] = by_index_.try_emplace(heading.index, out_.gpus.size());
    if (fresh) {
      NvLinkGpu added;
      added.line = lines_.number();
      added.index = heading.index;
      added.name = std::string(heading.name);
      if (!heading.uuid.empty()) added.uuid = std::string(heading.uuid);
      out_.gpus.push_back(std::move(added));
    }
    current_ = at->second;
  }

  void take(std::string_view line) {
    if (const auto text = link_of(line)) {
      auto& link = gpu().links[text->number];
      if (link.line == 0) link.line = lines_.number();
      const auto fact = read_link(text->rest, link);
      gpu().has_status |= fact == LinkFact::status;
      gpu().has_remote |= fact == LinkFact::remote;
      last_link_incomplete_ = fact == LinkFact::none && lines_.last();
      if (fact == LinkFact::none && !lines_.last()) gpu().links.erase(text->number);
    } else if (icontains(line, "does not have or support nvlink") ||
               icontains(line, "nvlink is not supported")) {
      gpu().unsupported = true;
    } else if (icontains(line, "all links are inactive")) {
      gpu().has_status = gpu().all_inactive = true;
    } else if (is_mig_instance(line)) {
      gpu().mig = true;
    }
  }

  // A text that stops in the middle shows its last GPU with fewer links than its equals, or half a line.
  void mark_cut() {
    if (!current_) return;
    auto& last = gpu();
    std::size_t most = 0;
    for (const auto& other : out_.gpus) {
      if (other.name == last.name) most = std::max(most, other.links.size());
    }
    last.cut = last.links.size() < most || (last_link_incomplete_ && !last.links.empty());
    if (last.cut && last_link_incomplete_) last.links.erase(std::prev(last.links.end()));
  }

  LineReader lines_;
  NvidiaSmiNvlink out_;
  std::unordered_map<int, std::size_t> by_index_;
  std::optional<std::size_t> current_;
  std::optional<Heading> waiting_;  // a heading without UUID
  bool last_link_incomplete_ = false;
};

}  // namespace

bool looks_like_nvidia_smi_nvlink(std::string_view text) {
  bool heading_above = false;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (heading_above && is_below_heading(line)) return true;
    const auto heading = heading_of(line);
    if (heading && heading->with_uuid) return true;
    if (!line.empty()) heading_above = heading.has_value();
  }
  return false;
}

Result<NvidiaSmiNvlink> parse_nvidia_smi_nvlink(std::string_view text) {
  auto out = Reader(text).read();
  if (out && out->gpus.empty()) return not_a("nvidia-smi nvlink");
  return out;
}

}  // namespace topotune::parse
