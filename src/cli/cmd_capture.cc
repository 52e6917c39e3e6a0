#include <unistd.h>

#include <map>
#include <memory>

#include "cli/atomic_file.h"
#include "cli/cli.h"
#include "cli/record.h"
#include "host/redact.h"

namespace topotune::cli {

namespace {

struct Options {
  bool no_redact = false;
  bool text = false;
};

// "412 answers, 31 errors (12 denied, 19 not_found)".
std::string summary(const host::Capture& capture) {
  std::map<std::string, int> errors;
  int failed = 0;
  for (const auto& [question, answer] : capture.answers) {
    if (answer) continue;
    ++failed;
    ++errors[name_of(answer.error().code)];
  }
  std::string kinds;
  for (const auto& [kind, count] : errors)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  const auto tail = failed == 0 ? std::string() : fmt::format(", {} of them errors ({})", failed, kinds);
  return fmt::format("{} entries{}", capture.answers.size(), tail);
}

void tell(const host::Capture& capture, const std::string& name, std::size_t bytes, bool verbose) {
  fmt::print(
      stderr, "topotune: wrote {}: {}, {:.1f} KB, {}\n", name, summary(capture),
      static_cast<double>(bytes) / 1000,
      capture.redacted ? "redacted" : "NOT redacted: it names hosts, users, serial numbers and addresses");
  for (const auto& [question, answer] : capture.answers) {
    const bool denied = !answer && answer.error().code == Errc::denied;
    if (verbose && denied) fmt::print(stderr, "denied: {} {}\n", host::name_of(question.call), question.name);
  }
}

Result<bool> write(const Globals& globals, const std::string& bytes) {
  if (globals.output != "-") return write_whole_file(globals.output, bytes);
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0)
    return true;
  return fail(Errc::io, "cannot write to standard output");
}

Result<bool> capture_to_file(const Globals& globals, const Options& options) {
  if (globals.output.empty()) {
    auto error = fail(Errc::usage, "capture: -o FILE is missing");
    error.value().hint = "topotune capture -o node.capture (or -o - for standard output)";
    return error;
  }
  if (globals.output == "-" && !options.text && ::isatty(STDOUT_FILENO) == 1) {
    return fail(Errc::usage, "capture: a compressed capture is not for a terminal; add --text");
  }
  auto capture = record(globals);
  if (!capture) return tl::unexpected(capture.error());
  if (!options.no_redact) *capture = host::redact(*capture, host::redact_options_here());
  const auto bytes = options.text ? host::capture_text(*capture) : host::capture_bytes(*capture);
  if (!bytes) return tl::unexpected(bytes.error());
  if (auto done = write(globals, *bytes); !done) return done;
  if (!globals.quiet) tell(*capture, globals.output, bytes->size(), globals.verbose);
  return true;
}

}  // namespace

void add_capture(CLI::App& app, Globals& globals, int& status) {
  auto* verb = app.add_subcommand("capture",
                                  "record everything the tool reads on this machine into one file (-o FILE)");
  const auto options = std::make_shared<Options>();
  verb->add_flag("--no-redact", options->no_redact,
                 "keep host and user names, serial numbers, UUIDs, GUIDs, MACs and addresses");
  verb->add_flag("--text", options->text, "write readable text instead of compressed text");
  verb->footer(
      "Every other verb takes the file as its INPUT and sees what it would have seen on the machine.\n"
      "Look at it before you send it: zstd -dc node.capture | less\n\n"
      "TOPOTUNE_EXCLUDE=0000:1b:00.0,...   PCI devices that must not be touched\n"
      "TOPOTUNE_PROBE_TIMEOUT=30           seconds after which a driver or program counts as hung\n\n"
      "Try: topotune capture -o node.capture\n"
      "     sudo topotune capture -o node.capture        (PCI capabilities, kernel log)\n"
      "     topotune check node.capture");
  verb->callback([&globals, &status, options] {
    const auto done = capture_to_file(globals, *options);
    status = done ? static_cast<int>(kOk) : report(done.error());
  });
}

}  // namespace topotune::cli
