#include "cli/input.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>

#include "base/text.h"
#include "cli/folder_input.h"
#include "discover/discover.h"
#include "host/live_host.h"
#include "host/recorded_host.h"
#include "parse/nccl_log_blank.h"
#include "parse/recognise.h"
#include "parse/sysfs_proc.h"

namespace topotune::cli {

namespace {

// A machine as topology input, named as the user named it.
Input input_of(model::Machine machine, model::SourceKind kind, const std::string& name) {
  Input input;
  input.machine = std::move(machine);
  input.machine.topology.source.kind = kind;
  input.machine.topology.source.name = name;
  input.kind = kind;
  input.name = name;
  return input;
}

// The machine this process runs on, or the one below --sysroot.
Result<Input> load_live(const Globals& globals) {
  if (!globals.sysroot.empty() && !is_folder(globals.sysroot))
    return fail(Errc::not_found, "--sysroot {}: not a folder", globals.sysroot);
  auto options = host::live_options_from_environment(globals.sysroot);
  if (!options) return tl::unexpected(options.error());
  const host::LiveHost host(std::move(*options));
  auto machine = discover::discover(host);
  if (globals.sysroot.empty()) machine.read_at = std::time(nullptr);
  return input_of(std::move(machine), model::SourceKind::live,
                  globals.sysroot.empty() ? "live" : globals.sysroot);
}

Result<Input> load_capture(const std::string& name, std::string_view bytes) {
  auto capture = host::parse_capture(bytes);
  if (!capture) return tl::unexpected(capture.error());
  const auto date = capture->date;
  const bool redacted = capture->redacted;
  auto machine = discover::discover(host::RecordedHost(std::move(*capture)));
  if (date) machine.read_at = parse::parse_utc(*date);
  // Its stand-in is of this capture only: equal boots would look different.
  if (redacted)
    machine.boot_id = model::Fact<std::string>::missing("redacted", "/proc/sys/kernel/random/boot_id");
  return input_of(std::move(machine), model::SourceKind::capture, name);
}

Error unrecognised(std::string_view text) {
  if (text.substr(0, 4096).find("<graphs version=") != std::string_view::npos)
    return Error{Errc::unrecognised,
                 "a graph file of NCCL (NCCL_GRAPH_DUMP_FILE), not a topology",
                 {},
                 {},
                 {},
                 "NCCL_TOPO_DUMP_FILE=FILE makes NCCL write the topology"};
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return Error{Errc::unrecognised,
               fmt::format("{}not recognised as {}, nor as the text of a usual command",
                           blank ? "empty, " : "", parse::known_formats()),
               {},
               {},
               {},
               "--kind KIND says what it is"};
}

Result<const parse::Format*> format_for(std::string_view text, const Globals& globals) {
  const auto* format = globals.kind.empty() ? parse::recognise(parse::without_nccl_lines(text))
                                            : parse::format_of(globals.kind);
  if (format != nullptr) return format;
  if (globals.kind.empty()) return tl::unexpected(unrecognised(text));
  return fail(Errc::usage, "--kind {}: no such kind of input", globals.kind);
}

bool is_text_kind(std::string_view kind) {
  return kind == name_of(model::SourceKind::text) || kind == name_of(model::SourceKind::folder);
}

// What one or more usual commands printed, or a log or configuration.
Result<Input> load_commands(const std::string& name, std::string text) {
  FolderTexts one;
  one.texts.push_back({name, std::move(text)});
  auto input = input_of_texts(name, one);
  if (input) input->raw_text = std::move(one.texts.front().text);
  return input;
}

Result<Input> load_text(const std::string& name, std::string text, const Globals& globals) {
  if (is_text_kind(globals.kind)) return load_commands(name, std::move(text));
  const bool capture = globals.kind.empty() ? host::looks_like_capture(text)
                                            : globals.kind == name_of(model::SourceKind::capture);
  if (capture) return load_capture(name, text);
  const auto format = format_for(text, globals);
  if (!format && format.error().code == Errc::unrecognised) {
    auto input = load_commands(name, std::move(text));
    return input || input.error().code != Errc::unrecognised ? std::move(input)
                                                             : tl::unexpected(format.error());
  }
  if (!format) return tl::unexpected(format.error());
  auto topology = (*format)->parse(text);
  if (!topology) return tl::unexpected(topology.error());
  Input input;
  input.machine.topology = std::move(*topology);
  input.machine.topology.source.name = name;
  input.kind = input.machine.topology.source.kind;
  input.raw_text = std::move(text);
  input.name = name;
  // An XML document is nothing else; a matrix may be one of several texts in a paste.
  if (!trim(input.raw_text).starts_with('<')) add_other_commands(input);
  return input;
}

tl::unexpected<Error> io_error(int code) {
  const auto kind = code == ENOENT ? Errc::not_found : code == EACCES ? Errc::denied : Errc::io;
  return fail(kind, "cannot read: {}", std::strerror(code));
}

Result<std::string> drain(std::FILE* file) {
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  for (;;) {
    const auto n = std::fread(block.data(), 1, block.size(), file);
    if (text.size() + n > kMaxInput) return fail(Errc::too_large, "larger than {} MiB", kMaxInput >> 20);
    text.append(block, 0, n);
    if (n < block.size()) break;
  }
  if (std::ferror(file) != 0) return io_error(errno);
  return text;
}

}  // namespace

tl::unexpected<Error> about(const std::string& name, Error error) {
  if (!error.file) error.file = name;
  return tl::unexpected(std::move(error));
}

Result<std::string> read_input(const std::string& name) {
  if (name == "-") return drain(stdin);
  struct stat about_file {};
  if (::stat(name.c_str(), &about_file) != 0) return io_error(errno);
  if (S_ISDIR(about_file.st_mode)) return fail(Errc::unsupported, "is a folder, not a file");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "rb"), std::fclose);
  if (!file) return io_error(errno);
  return drain(file.get());
}

Result<Input> load_input(const std::string& name, const Globals& globals) {
  if (name == "live") return load_live(globals);
  const std::string shown = name == "-" ? "stdin" : name;
  if (is_folder(name)) {
    const auto texts = read_folder(name);
    auto input = texts ? input_of_texts(name, *texts) : tl::unexpected(texts.error());
    if (!input) return about(shown, input.error());
    return input;
  }
  auto text = read_input(name);
  if (!text) return about(shown, text.error());
  auto input = load_text(shown, std::move(*text), globals);
  if (!input) return about(shown, input.error());
  return input;
}

void say_diagnostics(const Globals& globals, const Input& input) {
  constexpr std::size_t kMost = 20;
  if (globals.quiet) return;
  const auto& all = input.machine.diagnostics;
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) {
    std::string_view text = all[i].text;  // of a single text it begins with its name
    if (text.starts_with(input.name + ": ")) text.remove_prefix(input.name.size() + 2);
    fmt::print(stderr, "topotune: {}: warning: {}\n", printable(input.name), printable(text));
  }
  if (all.size() > kMost)
    fmt::print(stderr, "topotune: {}: warning: and {} more\n", printable(input.name), all.size() - kMost);
}

}  // namespace topotune::cli
