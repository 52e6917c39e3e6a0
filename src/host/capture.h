#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace topotune::host {

// The five methods of Host, in the order in which a capture lists them.
enum class Call { probe, run, list, link, read };
const char* name_of(Call call);
std::optional<Call> call_from(std::string_view name);

struct Question {
  Call call = Call::read;
  std::string name;  // path, probe, or command line (encoding.h: command_name)
  auto operator<=>(const Question&) const = default;
};

// A question's name as it stands in a file, and back: command lines keep their escapes, others are escaped as
// a whole.
std::string written_name(const Question& question);
Question question_from(Call call, std::string_view written);

// What was answered, word for word. The text of a list is encoding.h's join_names.
using Answer = Result<std::string>;

// Everything that was asked of one machine, with the answers, errors included (docs/formats/capture.md).
struct Capture {
  std::string tool;                 // "topotune 0.1.0"; "" unknown
  std::optional<std::string> date;  // UTC, "2026-01-31T12:00:00Z"
  bool redacted = false;
  std::map<Question, Answer> answers;
};

// The readable form, and the same compressed by zstd with a checksum. Same capture, same bytes.
std::string capture_text(const Capture& capture);
Result<std::string> capture_bytes(const Capture& capture);

// Either form. Malformed (with a line where it is text) when cut off, damaged or unknown; too_large beyond
// kMaxCaptureText bytes of text or of answers, or kMaxAnswers entries.
Result<Capture> parse_capture(std::string_view bytes);
constexpr std::size_t kMaxCaptureText = 64 << 20;
constexpr std::size_t kMaxAnswers = 200'000;

// Whether parse_capture is the reader for these bytes: a capture that is cut off or damaged later on is still
// one.
bool looks_like_capture(std::string_view bytes);

}  // namespace topotune::host
