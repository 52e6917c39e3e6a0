#include "parse/sections.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "parse/line_reader.h"

namespace topotune::parse {
namespace {

// Commands whose output is read or that often stand beside them. A bare line (without prompt) counts only for
// `distinct` names, which no output begins with.
struct Command {
  std::string_view name;
  bool distinct;
};
constexpr std::array kCommands = {
    Command{"nvidia-smi", true},
    Command{"ibstat", true},
    Command{"ibstatus", true},
    Command{"ibv_devinfo", true},
    Command{"ibv_devices", true},
    Command{"ibdev2netdev", true},
    Command{"show_gids", true},
    Command{"lspci", true},
    Command{"numactl", true},
    Command{"lscpu", true},
    Command{"dmesg", true},
    Command{"journalctl", true},
    Command{"rocm-smi", true},
    Command{"amd-smi", true},
    Command{"lsmod", true},
    Command{"lstopo", true},
    Command{"ulimit", true},
    Command{"nvcc", true},
    Command{"ofed_info", true},
    Command{"nv-fabricmanager", true},
    Command{"cat", false},
    Command{"rdma", false},
    Command{"ip", false},
    Command{"uname", false},
    Command{"ls", false},
    Command{"head", false},
    Command{"tail", false},
    Command{"grep", false},
    Command{"echo", false},
    Command{"systemctl", false},
    Command{"mlxlink", false},
    Command{"mlxconfig", false},
    Command{"ethtool", false},
    Command{"hostname", false},
    Command{"sysctl", false},
    Command{"modinfo", false},
    Command{"mst", false},
    Command{"fi_info", false},
    Command{"ompi_info", false},
    Command{"ucx_info", false},
    Command{"mlnx_qos", false},
    Command{"dcb", false},
    Command{"env", false},
    Command{"printenv", false},
    Command{"df", false},
    Command{"free", false},
    Command{"ibv_rc_pingpong", false},
    Command{"modprobe", false},
    Command{"lshw", false},
    Command{"hwloc-ls", false},
    Command{"mpirun", false},
    Command{"torchrun", false},
    Command{"python", false},
    Command{"python3", false},
    Command{"docker", false},
    Command{"kubectl", false},
    Command{"prlimit", false},
    Command{"dmidecode", false},
    Command{"getconf", false},
    Command{"setpci", false},
    Command{"cpupower", false},
};

constexpr std::size_t kMaxCommandLength = 400;
constexpr std::size_t kMaxSections = 10000;  // what follows stays one section

std::string_view without_sudo(std::string_view command) {
  command = trim(command);
  if (command.starts_with("sudo ")) command = trim(command.substr(5));
  while (command.starts_with("-")) {  // options of sudo
    const auto blank = command.find(' ');
    if (blank == std::string_view::npos) return {};
    command = trim(command.substr(blank));
  }
  return command;
}

std::string_view first_word(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && !is_space(text[n])) ++n;
  return text.substr(0, n);
}

bool looks_like_word(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.' || c == '/' || c == '=';
  });
}

const Command* known_command(std::string_view command) {
  auto word = first_word(command);
  if (!looks_like_word(word.ends_with(':') ? word.substr(0, word.size() - 1) : word)) return nullptr;
  if (const auto slash = word.rfind('/'); slash != std::string_view::npos) word = word.substr(slash + 1);
  if (word.ends_with(':')) word.remove_suffix(1);
  const auto* at = std::ranges::find(kCommands, word, &Command::name);
  return at == kCommands.end() ? nullptr : at;
}

bool is_path(std::string_view text) {
  return text.starts_with("/") && text.size() > 1 && text.find(' ') == std::string_view::npos;
}

// "user@host:~/x$ cmd", "[root@host ~]# cmd", "(env) user@host:~$ cmd": what follows the prompt.
std::optional<std::string_view> after_user_prompt(std::string_view line) {
  const auto at = line.substr(0, 80).find('@');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const char first = line.front();
  if (first != '[' && first != '(' && !looks_like_word(first_word(line.substr(0, at)))) return std::nullopt;
  if (!looks_like_word(line.substr(at - 1, 1))) return std::nullopt;
  const auto end = line.substr(0, 200).find_first_of("$#%", at);
  if (end == std::string_view::npos) return std::nullopt;
  if (std::ranges::count(line.substr(0, end), ' ') > 3) return std::nullopt;
  if (end + 1 < line.size() && line[end + 1] != ' ') return std::nullopt;
  return trim(line.substr(end + 1));
}

std::string_view strip_prompt_marks(std::string_view line) {
  while (line.starts_with("$ ") || line.starts_with("% ")) line = trim(line.substr(2));
  return line;
}

// "=== cmd ===", "--- /proc/cmdline ---", "==> file <==", "# cmd", "# $ cmd", "+ cmd", "## `cmd`".
// A tag ("<free>N/A</free>", "</env>") is none.
std::optional<std::string_view> after_decoration(std::string_view line) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (line.size() > 1 && line[0] == '<' && (line[1] == '/' || is_letter(line[1]))) return std::nullopt;
  constexpr std::string_view kMarks = "=#*-+<>~ \t`:";
  const auto begin = line.find_first_not_of(kMarks);
  if (begin == 0 || begin == std::string_view::npos) return std::nullopt;
  const auto end = line.find_last_not_of(kMarks);
  const auto inner = without_sudo(strip_prompt_marks(line.substr(begin, end - begin + 1)));
  if (line[0] == '-' && line.substr(0, begin).find("--") == std::string_view::npos) return std::nullopt;
  if (known_command(inner)) return inner;
  const bool separator = begin >= 2;
  if (separator && is_path(inner)) return inner;
  return std::nullopt;
}

// "ibstat", "nvidia-smi topo -m:": a line that is nothing but a usual command.
std::optional<std::string_view> bare_command(std::string_view line) {
  auto text = without_sudo(line);
  const auto* known = known_command(text);
  if (!known || !known->distinct) return std::nullopt;
  if (text.ends_with(':')) text.remove_suffix(1);
  if (text.size() > 120 || text.find(':') != std::string_view::npos) return std::nullopt;
  const auto rest = words(text);
  if (!std::ranges::all_of(rest, [](std::string_view w) { return looks_like_word(w) || w == "|"; }))
    return std::nullopt;
  return rest.size() <= 8 ? std::optional(text) : std::nullopt;
}

// The command that a line starts, or nothing when the line belongs to the output of the one before.
std::optional<std::string_view> command_of(std::string_view line) {
  const auto text = trim(line);
  if (text.size() < 2 || text.size() > kMaxCommandLength) return std::nullopt;
  if (text.starts_with("```")) return std::string_view{};
  const auto inner = strip_prompt_marks(text);
  if (const auto command = after_user_prompt(inner)) return without_sudo(*command);
  if (inner.size() != text.size()) return without_sudo(inner);
  if (text == "$") return std::string_view{};
  if (const auto command = after_decoration(text)) return *command;
  return bare_command(text);
}

// Most lines begin with ">": a quoted mail or issue.
bool is_quoted(std::string_view text) {
  std::size_t quoted = 0, plain = 0;
  for (LineReader reader(text); reader.next();) {
    const auto line = trim(reader.line());
    if (line.empty()) continue;
    ++(line.front() == '>' ? quoted : plain);
  }
  return quoted > plain;
}

std::string without_quotes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (LineReader reader(text); reader.next();) {
    auto line = reader.line();
    while (trim(line).starts_with(">")) {
      line.remove_prefix(line.find('>') + 1);
      if (line.starts_with(" ")) line.remove_prefix(1);
    }
    out += line;
    if (reader.ended()) out += '\n';
  }
  return out;
}

void replace_no_break_blanks(std::string& text) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size(); ++from) {
    if (text[from] == '\xc2' && from + 1 < text.size() && text[from + 1] == '\xa0') {
      text[to++] = ' ';
      ++from;
    } else {
      text[to++] = text[from];
    }
  }
  text.resize(to);
}

}  // namespace

std::string plain_text(std::string_view text) {
  for (const std::string_view mark : {"\xef\xbb\xbf", "\xff\xfe"}) {
    if (text.starts_with(mark)) text.remove_prefix(mark.size());
  }
  std::string out = strip_ansi(text);
  if (out.find("\xc2\xa0") != std::string::npos) replace_no_break_blanks(out);
  if (out.find('>') != std::string::npos && is_quoted(out)) out = without_quotes(out);
  return out;
}

std::vector<Section> split_sections(std::string_view text) {
  std::vector<Section> out;
  Section current;
  std::size_t begin = 0;
  const auto close = [&](std::size_t end) {
    current.text = text.substr(begin, end - begin);
    if (!trim(current.text).empty()) out.push_back(current);
  };
  for (LineReader reader(text); reader.next();) {
    const auto command = command_of(reader.line());
    if (!command || out.size() >= kMaxSections) continue;
    const auto at = static_cast<std::size_t>(reader.line().data() - text.data());
    close(at);
    current.command = std::string(*command);
    current.first_line = reader.number() + 1;
    begin = at + reader.line().size();
    if (begin < text.size()) begin += text.substr(begin).starts_with("\r\n") ? 2 : 1;
  }
  close(text.size());
  return out;
}

}  // namespace topotune::parse
