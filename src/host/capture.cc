#include "host/capture.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/text.h"
#include "host/encoding.h"
#include "host/records.h"

namespace topotune::host {

namespace {

constexpr std::string_view kSchema = "topotune-capture";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr int kLevel = 19;
constexpr std::array kCalls{"probe", "run", "list", "link", "read"};

using Decoder = std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)>;

Decoder make_decoder() {
  Decoder decoder(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  if (decoder) ZSTD_DCtx_setParameter(decoder.get(), ZSTD_d_windowLogMax, 26);
  return decoder;
}

Error damaged(std::string_view why) {
  return {Errc::malformed,
          fmt::format("not a whole capture: {}", why),
          {},
          {},
          {},
          "copy the file again, or capture again"};
}

// The text of a compressed capture; one frame, no more than kMaxCaptureText bytes of it.
Result<std::string> decompress(std::string_view bytes) {
  const auto decoder = make_decoder();
  if (!decoder) return fail(Errc::io, "zstd: out of memory");
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::string text;
  std::string chunk(ZSTD_DStreamOutSize(), '\0');
  for (;;) {
    ZSTD_outBuffer out{chunk.data(), chunk.size(), 0};
    const std::size_t left = ZSTD_decompressStream(decoder.get(), &out, &in);
    if (ZSTD_isError(left) != 0) return tl::unexpected(damaged(ZSTD_getErrorName(left)));
    text.append(chunk, 0, out.pos);
    if (text.size() > kMaxCaptureText)
      return fail(Errc::too_large, "more than {} bytes of text", kMaxCaptureText);
    if (left == 0) break;
    if (in.pos == in.size && out.pos < out.size) return tl::unexpected(damaged("cut off"));
  }
  if (in.pos != in.size) return tl::unexpected(damaged("bytes after its end"));
  return text;
}

Result<Capture> capture_of(Records&& records) {
  if (!records.ended) {
    auto error = fail_at(records.lines, "cut off: no 'end' line");
    error.value().hint = "copy the file again, or capture again";
    return error;
  }
  Capture out;
  out.tool = records.header["tool"];
  out.redacted = records.header["redacted"] == "yes";
  if (const auto date = records.header["date"]; !date.empty()) out.date = date;
  for (auto& record : records.records) {
    const auto call = call_from(record.verb);
    if (!call)
      return fail_at(record.line, "'{}' is no entry of a capture", printable(record.verb).substr(0, 60));
    auto answer =
        record.error ? Answer(tl::unexpected(std::move(*record.error))) : Answer(std::move(record.payload));
    const auto [at, fresh] = out.answers.emplace(question_from(*call, record.name), std::move(answer));
    if (!fresh)
      return fail_at(record.line, "{} {} stands here twice", record.verb, printable(at->first.name));
  }
  return out;
}

}  // namespace

const char* name_of(Call call) { return kCalls[static_cast<std::size_t>(call)]; }

std::optional<Call> call_from(std::string_view name) {
  const auto* found = std::ranges::find(kCalls, name);
  if (found == kCalls.end()) return std::nullopt;
  return static_cast<Call>(found - kCalls.begin());
}

std::string written_name(const Question& question) {
  if (question.call == Call::run) return question.name;
  return question.name.empty() ? "%" : escape(question.name);
}

Question question_from(Call call, std::string_view written) {
  if (call == Call::run) return {call, std::string(written)};
  return {call, unescape(written).value_or(std::string(written))};
}

std::string capture_text(const Capture& capture) {
  std::string out = fmt::format("{} 1\n", kSchema);
  if (!capture.tool.empty()) out += fmt::format("tool: {}\n", capture.tool);
  if (capture.date) out += fmt::format("date: {}\n", *capture.date);
  out += fmt::format("redacted: {}\n", capture.redacted ? "yes" : "no");
  for (const auto& [question, answer] : capture.answers)
    write_record(out, name_of(question.call), written_name(question), answer);
  return out + "end\n";
}

Result<std::string> capture_bytes(const Capture& capture) {
  const std::string text = capture_text(capture);
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> encoder(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (!encoder) return fail(Errc::io, "zstd: out of memory");
  ZSTD_CCtx_setParameter(encoder.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(encoder.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ZSTD_compress2(encoder.get(), out.data(), out.size(), text.data(), text.size());
  if (ZSTD_isError(size) != 0) return fail(Errc::io, "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

Result<Capture> parse_capture(std::string_view bytes) {
  std::string text;
  if (bytes.starts_with(kZstdMagic)) {
    auto plain = decompress(bytes);
    if (!plain) return tl::unexpected(plain.error());
    text = std::move(*plain);
    bytes = text;
  }
  if (bytes.size() > kMaxCaptureText)
    return fail(Errc::too_large, "more than {} bytes of text", kMaxCaptureText);
  auto records = parse_records(bytes, kSchema);
  if (!records) return tl::unexpected(records.error());
  return capture_of(std::move(*records));
}

bool looks_like_capture(std::string_view bytes) {
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);
  if (!bytes.starts_with(kZstdMagic)) return bytes.starts_with(kSchema);
  const auto decoder = make_decoder();
  std::array<char, kSchema.size()> head{};
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  ZSTD_outBuffer out{head.data(), head.size(), 0};
  // A file cut or damaged in its first block tells nothing but that it is zstd; no other input of the program
  // is.
  if (!decoder || ZSTD_isError(ZSTD_decompressStream(decoder.get(), &out, &in)) != 0) return true;
  return std::string_view(head.data(), out.pos) == kSchema.substr(0, out.pos);
}

}  // namespace topotune::host
