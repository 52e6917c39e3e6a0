#include "host/records.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "host/capture.h"
#include "host/encoding.h"

namespace topotune::host {

std::optional<Errc> errc_from(std::string_view name) {
  constexpr std::array kAll{Errc::not_found, Errc::denied,      Errc::unsupported, Errc::not_captured,
                            Errc::malformed, Errc::timed_out,   Errc::too_large,   Errc::io,
                            Errc::usage,     Errc::unrecognised};
  const auto* found = std::ranges::find_if(kAll, [&](Errc code) { return name == name_of(code); });
  if (found == kAll.end()) return std::nullopt;
  return *found;
}

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr std::size_t kHexBytesPerLine = 32;
constexpr std::size_t kMinZeroRun = 16;

// ---- writing
// ------------------------------------------------------------------------------------------------------

std::size_t zero_run(std::string_view bytes) { return std::min(bytes.find_first_not_of('\0'), bytes.size()); }

// Bytes up to the next long run of zeros, at most one line's.
std::size_t hex_run(std::string_view bytes) {
  const auto end = std::min(bytes.size(), kHexBytesPerLine);
  for (std::size_t i = 0; i < end; ++i) {
    if (bytes[i] == '\0' && zero_run(bytes.substr(i, kMinZeroRun)) == kMinZeroRun) return i;
  }
  return end;
}

void write_binary(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto zeros = zero_run(bytes);
    if (zeros >= kMinZeroRun) {
      out += fmt::format("~{}\n", zeros);
      bytes.remove_prefix(zeros);
      continue;
    }
    const auto count = hex_run(bytes);
    out += '*';
    for (const char c : bytes.substr(0, count)) {
      const auto byte = static_cast<unsigned char>(c);
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
    out += '\n';
    bytes.remove_prefix(count);
  }
}

void write_text(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    const bool ended = end != std::string_view::npos;
    if (is_plain_text(line)) {
      out += fmt::format("{}{}\n", ended ? '|' : '+', line);
    } else {
      out += fmt::format("%{}{}\n", escape(line), ended ? "%0a" : "");
    }
    if (!ended) return;
    text.remove_prefix(end + 1);
  }
}

void write_error(std::string& out, const Error& error) {
  out += fmt::format("!{} {}\n", name_of(error.code), escape(error.text));
  if (!error.hint.empty()) out += fmt::format("?{}\n", escape(error.hint));
}

// ---- reading
// ------------------------------------------------------------------------------------------------------

class Reader {
 public:
  Reader(std::string_view text, std::string_view schema) : rest_(text), schema_(schema) {}

  Result<Records> read() {
    if (auto good = first_line(); !good) return tl::unexpected(good.error());
    while (!rest_.empty() && !out_.ended) {
      if (auto good = line(next()); !good) return tl::unexpected(good.error());
    }
    out_.lines = line_;
    return std::move(out_);
  }

 private:
  using Done = Result<bool>;  // always true

  std::string_view next() {
    ++line_;
    const auto end = rest_.find('\n');
    auto line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r'))
      line.remove_suffix(1);  // a checkout that converts line ends; a true \r is escaped
    return line;
  }

  Done first_line() {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    const auto line = next();
    const auto fields = words(line);
    if (fields.size() < 2 || fields[0] != schema_ || !line.starts_with(schema_))
      return fail_at(1, "the first line is not '{} 1'", schema_);
    if (fields[1] == "1") return true;
    auto error = fail(Errc::unsupported, "{} of version {}, this program reads version 1", schema_,
                      printable(fields[1]));
    error.value().hint = "use a newer topotune";
    return error;
  }

  Done line(std::string_view text) {
    if (text.empty() || text.front() == '#') return true;
    constexpr std::string_view kMarks = "|+%*~!?";
    if (kMarks.find(text.front()) != std::string_view::npos) return payload(text.front(), text.substr(1));
    if (text == "end") return out_.ended = true;
    if (out_.records.empty() && is_header(text)) return header(text);
    return verb(text);
  }

  static bool is_header(std::string_view text) {
    const auto word = text.substr(0, text.find(' '));
    return word.size() > 1 && word.ends_with(':');
  }

  Done header(std::string_view text) {
    const auto colon = text.find(':');
    out_.header[std::string(text.substr(0, colon))] = std::string(trim(text.substr(colon + 1)));
    return true;
  }

  Done verb(std::string_view text) {
    if (out_.records.size() >= kMaxAnswers) {
      return fail(Errc::too_large, "more than {} entries", kMaxAnswers);
    }
    const auto blank = text.find(' ');
    if (blank == std::string_view::npos) return fail_at(line_, "'{}' without a name", clip(text));
    const auto name = text.substr(blank + 1);
    const auto parts = split(name, ' ');
    const bool good =
        std::ranges::all_of(parts, [](std::string_view part) { return unescape(part).has_value(); });
    if (!good || name.empty()) return fail_at(line_, "'{}': bad name", clip(text));
    out_.records.push_back({line_, std::string(text.substr(0, blank)), std::string(name), {}, {}});
    return true;
  }

  Done payload(char mark, std::string_view text) {
    if (out_.records.empty()) return fail_at(line_, "text before the first entry");
    auto& record = out_.records.back();
    if (mark == '!') return set_error(record, text);
    if (mark == '?') return set_hint(record, text);
    if (record.error) return fail_at(line_, "an answer after an error");
    const std::size_t before = record.payload.size();
    if (auto good = append(record.payload, mark, text); !good) return good;
    total_ += record.payload.size() - before;
    if (total_ > kMaxCaptureText)
      return fail(Errc::too_large, "answers of more than {} bytes", kMaxCaptureText);
    return true;
  }

  Done append(std::string& out, char mark, std::string_view text) {
    if (mark == '|') out.append(text).append(1, '\n');
    if (mark == '+') out.append(text);
    if (mark == '%') return append_escaped(out, text);
    if (mark == '*') return append_hex(out, text);
    if (mark == '~') return append_zeros(out, text);
    return true;
  }

  Done append_escaped(std::string& out, std::string_view text) const {
    const auto plain = unescape(text);
    if (!plain) return fail_at(line_, "bad escape in '{}'", clip(text));
    out += *plain;
    return true;
  }

  Done append_hex(std::string& out, std::string_view text) const {
    if (text.size() % 2 != 0) return fail_at(line_, "an odd number of hexadecimal digits");
    for (std::size_t i = 0; i < text.size(); i += 2) {
      const auto byte = parse_int<unsigned char>(text.substr(i, 2), 16);
      if (!byte) return fail_at(line_, "'{}' is no byte", clip(text.substr(i, 2)));
      out += static_cast<char>(*byte);
    }
    return true;
  }

  Done append_zeros(std::string& out, std::string_view text) const {
    const auto count = parse_int<std::size_t>(text);
    if (!count || *count > kMaxCaptureText)
      return fail_at(line_, "'~{}' is no count of zero bytes", clip(text));
    if (total_ + *count > kMaxCaptureText)
      return fail(Errc::too_large, "answers of more than {} bytes", kMaxCaptureText);
    out.append(*count, '\0');
    return true;
  }

  Done set_error(Record& record, std::string_view text) const {
    const auto blank = std::min(text.find(' '), text.size());
    const auto code = errc_from(text.substr(0, blank));
    const auto why = unescape(text.substr(std::min(blank + 1, text.size())));
    if (!code || !why) return fail_at(line_, "'!{}' is no known error", clip(text));
    if (record.error || !record.payload.empty()) return fail_at(line_, "an error after an answer");
    record.error = Error{*code, *why, {}, {}, {}, {}};
    return true;
  }

  Done set_hint(Record& record, std::string_view text) const {
    const auto hint = unescape(text);
    if (!record.error || !hint) return fail_at(line_, "a hint without an error");
    record.error->hint = *hint;
    return true;
  }

  static std::string clip(std::string_view text) { return printable(text.substr(0, 60)); }

  std::string_view rest_, schema_;
  Records out_;
  int line_ = 0;
  std::size_t total_ = 0;
};

}  // namespace

Result<Records> parse_records(std::string_view text, std::string_view schema) {
  return Reader(text, schema).read();
}

void write_record(std::string& out, std::string_view verb, std::string_view name,
                  const Result<std::string>& answer) {
  out += fmt::format("{} {}\n", verb, name);
  if (!answer) return write_error(out, answer.error());
  if (answer->find('\0') != std::string::npos) return write_binary(out, *answer);
  write_text(out, *answer);
}

}  // namespace topotune::host
