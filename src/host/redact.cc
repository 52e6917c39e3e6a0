#include "host/redact.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>

#include "base/text.h"
#include "host/encoding.h"
#include "host/identifiers.h"
#include "host/words.h"

namespace topotune::host {

namespace {

using Where = Words::Where;

std::string_view last_part(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

template <class Range>
bool any_of_names(const Range& names, std::string_view name) {
  return std::ranges::find(names, name) != std::ranges::end(names);
}

// Names that many machines and people share: not worth hiding, and part of other words everywhere.
constexpr std::array<std::string_view, 34> kCommon{
    "localhost", "localdomain", "local", "linux",  "debian",   "ubuntu",    "centos",  "rocky",     "rhel",
    "fedora",    "kernel",      "host",  "node",   "server",   "gpu",       "cpu",     "nic",       "vm",
    "nvidia",    "root",        "admin", "user",   "users",    "none",      "unknown", "container", "pod",
    "nobody",    "home",        "data",  "shared", "ec2-user", "azureuser", "slurm"};

bool is_common(std::string_view name) {
  return name.size() < 2 || any_of_names(kCommon, to_lower(name)) ||
         std::ranges::all_of(name, [](char c) { return is_digit(c) || c == '.'; });
}

bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

std::string_view name_at(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && size < 256 && is_name_char(text[size])) ++size;
  while (size > 0 && text[size - 1] == '.') --size;
  return text.substr(0, size);
}

// The value behind a key that ends before text[i]: `"serial": "X"`, `serial: X`, `<serial>X<`, `Name="Serial"
// value="X"`, "Serial Number : X", "Hostname set to <X>". Empty where no separator and value follow in the
// line.
std::string_view value_behind(std::string_view text, std::size_t i) {
  std::string_view rest = text.substr(i, 160);
  rest = rest.substr(0, rest.find('\n'));
  while (!rest.empty() && (is_name_char(rest.front()))) rest.remove_prefix(1);
  for (const std::string_view word : {" number", " no.", " num", " tag", " set to"}) {
    if (rest.size() > word.size() && iequals(rest.substr(0, word.size()), word))
      rest.remove_prefix(word.size());
  }
  char last = 0;
  for (bool more = true; more && !rest.empty();) {
    more = std::string_view(" \t\"':=<>\\").find(rest.front()) != std::string_view::npos;
    if (more && rest.front() != ' ' && rest.front() != '\t') last = rest.front();
    if (more) rest.remove_prefix(1);
    if (rest.starts_with("value=")) rest.remove_prefix(5);
  }
  if (last == 0) return {};
  if (last == '"' || last == '\'') return trim(rest.substr(0, rest.find_first_of("\"'\\")));
  if (last == '>') return trim(rest.substr(0, rest.find('<')));
  std::size_t size = 0;
  while (size < rest.size() && (is_name_char(rest[size]) || rest[size] == ':')) ++size;
  while (size > 0 && (rest[size - 1] == '.' || rest[size - 1] == ':')) --size;
  return rest.substr(0, size);
}

// Calls `use` with the value of every key that contains `keyword` (lower case).
void each_value(std::string_view text, std::string_view lower, std::string_view keyword,
                const std::function<void(std::string_view)>& use) {
  for (auto at = lower.find(keyword); at != std::string_view::npos;
       at = lower.find(keyword, at + keyword.size())) {
    const auto value = value_behind(text, at + keyword.size());
    if (!value.empty() && value.size() <= 128) use(value);
  }
}

std::optional<std::uint64_t> guid_from(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::string digits;
  for (const char c : text) {
    if (c != ':') digits += c;
  }
  return digits.size() == 16 ? parse_int<std::uint64_t>(digits, 16) : std::nullopt;
}

// First pass: what has to be replaced although its form does not tell.
class Collector {
 public:
  explicit Collector(const Pseudonyms& names) : names_(names) {}

  void host_name(std::string_view name) {
    name = trim(name);
    const auto dot = std::min(name.find('.'), name.size());
    const auto first = name.substr(0, dot), domain = name.substr(std::min(dot + 1, name.size()));
    const bool has_domain = domain.find('.') != std::string_view::npos;
    if (has_domain) words.add(domain, names_.domain_name(domain), Where::not_in_system_paths);
    if (has_domain && is_common(first)) words.add(name, names_.host_name(name), Where::not_in_system_paths);
    if (!is_common(first)) words.add(first, names_.host_name(first), Where::not_in_system_paths);
  }

  void user_name(std::string_view name, Where where) {
    if (!is_common(name)) words.add(name, names_.user_name(name), where);
  }

  void serial(std::string_view value) {
    const bool has_digit = std::ranges::any_of(value, is_digit);
    const bool is_token = std::ranges::all_of(value, is_name_char);
    if (value.size() >= 5 && has_digit && is_token) words.add(value, names_.serial(value), Where::everywhere);
  }

  void content(const Question& question, std::string_view text) {
    const auto file = last_part(question.name);
    if (question.call == Call::read) file_content(file, trim(text));
    if (question.call == Call::run) command_output(question.name, text);
    const auto lower = to_lower(text);
    each_value(text, lower, "serial", [&](auto value) { serial(value); });
    each_value(text, lower, "asset", [&](auto value) { serial(value); });
    each_value(text, lower, "hostname", [&](auto value) { host_name(name_at(value)); });
    each_value(text, lower, "nodename", [&](auto value) { host_name(name_at(value)); });
    each_value(text, lower, "guid", [&](auto value) { guid(value); });
    homes(text);
    if (file == "mounts" || file == "mountinfo") servers(text);
  }

  // "/home/NAME", "/Users/NAME".
  void homes(std::string_view text) {
    for (const std::string_view folder : {"/home/", "/Users/", "/users/"}) {
      for (auto at = text.find(folder); at != std::string_view::npos;
           at = text.find(folder, at + folder.size())) {
        user_name(name_at(text.substr(at + folder.size())), Where::in_paths_and_logins);
      }
    }
  }

  Words words;
  std::set<std::uint64_t> guids;

 private:
  void file_content(std::string_view file, std::string_view text) {
    if (file == "hostname") host_name(text);
    if (file.ends_with("serial") || file.ends_with("asset_tag") || file == "serial_number") serial(text);
    if (file.find("guid") != std::string_view::npos) guid(text);
    if (file == "node_desc") node_description(text);
  }

  void command_output(std::string_view command, std::string_view text) {
    const auto all = words_of(text);
    if (command.starts_with("hostname") || command == "uname -n") host_name(text);
    if (command == "uname -a" && all.size() > 1) host_name(all[1]);
  }

  // The kernel and rdma-ndd set "<host name> <device>"; adapters begin with their model.
  void node_description(std::string_view text) {
    const auto all = words_of(text);
    if (all.size() == 2 && (all[1].find('_') != std::string_view::npos || icontains(all[1], "hca")))
      host_name(all[0]);
  }

  void guid(std::string_view text) {
    if (const auto value = guid_from(text)) guids.insert(*value);
  }

  // NFS and the like: "SERVER:/export".
  void servers(std::string_view text) {
    for (auto at = text.find(":/"); at != std::string_view::npos; at = text.find(":/", at + 2)) {
      std::size_t begin = at;
      while (begin > 0 && at - begin < 256 && is_name_char(text[begin - 1])) --begin;
      const bool word =
          begin == 0 || is_space(text[begin - 1]);  // else one of several folders: "lowerdir=/a:/b"
      if (word) host_name(text.substr(begin, at - begin));
    }
  }

  static std::vector<std::string_view> words_of(std::string_view text) { return topotune::words(text); }

  const Pseudonyms& names_;
};

// ---- binary parts
// -------------------------------------------------------------------------------------------------

constexpr std::size_t kExtended = 0x100;

std::uint32_t word_at(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i)
    out |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return out;
}

void put_word(std::string& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// PCI Express extended capability 0003h, Device Serial Number: an EUI-64, lower half first.
std::string redact_config(std::string bytes, const Pseudonyms& names) {
  std::size_t at = kExtended;
  for (int steps = 0; steps < 1024 && at >= kExtended && at + 12 <= bytes.size(); ++steps) {
    const auto header = word_at(bytes, at);
    if ((header & 0xffff) == 3) {
      const auto value = names.guid(std::uint64_t{word_at(bytes, at + 8)} << 32 | word_at(bytes, at + 4));
      put_word(bytes, at + 4, static_cast<std::uint32_t>(value));
      put_word(bytes, at + 8, static_cast<std::uint32_t>(value >> 32));
    }
    if (header == 0 || header == 0xffffffff) break;
    at = header >> 20 & 0xffc;
  }
  return bytes;
}

// NAME=VALUE records ended by NUL: values of other programs' variables may be secrets.
std::string redact_environment(std::string_view bytes) {
  constexpr std::array<std::string_view, 16> kKept{
      "NCCL_", "RCCL_", "UCX_",  "UCC_",  "CUDA_",   "NVIDIA_", "MELLANOX_", "FI_",
      "HSA_",  "HIP_",  "ROCR_", "GLOO_", "OMP_NUM", "KMP_",    "GOMP_",     "TOPOTUNE_"};
  std::string out;
  for (const auto entry : split(bytes, '\0')) {
    const auto name = entry.substr(0, entry.find('='));
    const bool kept =
        std::ranges::any_of(kKept, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (!out.empty() || entry.data() != bytes.data()) out += '\0';
    out += kept || name.size() == entry.size() ? std::string(entry) : std::string(name) + "=redacted";
  }
  return out;
}

// ---- second pass
// --------------------------------------------------------------------------------------------------

class Replacer {
 public:
  Replacer(const Pseudonyms& names, const Collector& found) : names_(names), found_(found) {}

  std::string text(std::string_view original) const {
    return found_.words.replace(forms(replace_ipv4(original, names_)));
  }
  // Where four numbers are a version, not an address.
  std::string version(std::string_view original) const { return found_.words.replace(forms(original)); }

  Answer answer(const Question& question, const Answer& original) const {
    if (!original) return tl::unexpected(error(original.error()));
    const auto file = last_part(question.name);
    if (question.call == Call::list || question.call == Call::link) return listing(question, *original);
    if (question.call != Call::read) return text(*original);
    if (file == "vpd") return fail(Errc::denied, "{}: left out by redaction", question.name);
    if (file == "config" && original->size() >= 64) return redact_config(*original, names_);
    if (file == "environ") return text(redact_environment(*original));
    if (file == "hostname") return host_file(*original);
    const bool versioned = file.find("version") != std::string_view::npos || file.starts_with("fw_");
    return versioned ? version(*original) : text(*original);
  }

  Error error(Error original) const {
    original.text = text(original.text);
    original.hint = text(original.hint);
    return original;
  }

 private:
  std::string forms(std::string_view original) const {
    auto out = replace_groups(replace_uuids(original, names_), names_, found_.guids);
    return replace_hex_runs(out, names_, found_.guids);
  }

  // Names in system folders are the kernel's: "node0" is no host there.
  std::string listing(const Question& question, std::string_view original) const {
    const bool system = question.name.starts_with("/sys/") || question.name.starts_with("/proc/");
    return system ? forms(original) : text(original);
  }

  // The whole content is the name, even where it is a common word.
  std::string host_file(const std::string& original) const {
    const auto name = trim(original);
    if (name.empty() || found_.words.has(name) || name.find('.') != std::string_view::npos)
      return text(original);
    return name == "localhost"
               ? original
               : names_.host_name(name) + original.substr(name.data() + name.size() - original.data());
  }

  const Pseudonyms& names_;
  const Collector& found_;
};

Collector collect(const Capture& capture, const RedactOptions& options, const Pseudonyms& names) {
  Collector out(names);
  for (const auto& name : options.host_names) out.host_name(name);
  for (const auto& name : options.user_names) out.user_name(name, Where::not_in_system_paths);
  for (const auto& [question, answer] : capture.answers) {
    out.homes(question.name);
    if (!answer) out.homes(answer.error().text);
    if (answer) out.content(question, *answer);
  }
  return out;
}

}  // namespace

Capture redact(const Capture& capture, const RedactOptions& options) {
  const Pseudonyms names(options.salt);
  const Collector found = collect(capture, options, names);
  const Replacer replacer(names, found);
  Capture out;
  out.tool = capture.tool;
  out.date = capture.date;
  out.redacted = true;
  for (const auto& [question, answer] : capture.answers) {
    out.answers.emplace(Question{question.call, replacer.text(question.name)},
                        replacer.answer(question, answer));
  }
  return out;
}

}  // namespace topotune::host
