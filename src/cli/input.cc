#include "cli/input.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "parse/recognise.h"

namespace topotune::cli {

namespace {

// The machine this process runs on, or the one below --sysroot.
Result<Input> load_live(const Globals&) {
  return fail(Errc::unsupported, "reading the live machine is not built into this program");
}

tl::unexpected<Error> about(const std::string& name, Error error) {
  if (!error.file) error.file = name;
  return tl::unexpected(std::move(error));
}

Error unrecognised(std::string_view text) {
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return Error{Errc::unrecognised,
               fmt::format("{}not recognised as {}", blank ? "empty, " : "", parse::known_formats()),
               {},
               {},
               {},
               "--kind KIND says what it is"};
}

Result<const parse::Format*> format_for(std::string_view text, const Globals& globals) {
  const auto* format = globals.kind.empty() ? parse::recognise(text) : parse::format_of(globals.kind);
  if (format != nullptr) return format;
  if (globals.kind.empty()) return tl::unexpected(unrecognised(text));
  return fail(Errc::usage, "--kind {}: no such kind of input", globals.kind);
}

Result<Input> load_text(const std::string& name, std::string text, const Globals& globals) {
  const auto format = format_for(text, globals);
  if (!format) return tl::unexpected(format.error());
  auto topology = (*format)->parse(text);
  if (!topology) return tl::unexpected(topology.error());
  Input input;
  input.machine.topology = std::move(*topology);
  input.machine.topology.source.name = name;
  input.kind = input.machine.topology.source.kind;
  input.raw_text = std::move(text);
  input.name = name;
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
  auto text = read_input(name);
  if (!text) return about(shown, text.error());
  auto input = load_text(shown, std::move(*text), globals);
  if (!input) return about(shown, input.error());
  return input;
}

}  // namespace topotune::cli
