// Captures and overlays: what is read is written back to the same text, and redaction keeps it a capture.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "host/capture.h"
#include "host/overlay_host.h"
#include "host/recorded_host.h"
#include "host/redact.h"

using namespace topotune::host;

static void expect_stable(const Capture& capture) {
  const auto text = capture_text(capture);
  const auto again = parse_capture(text);
  if (!again || capture_text(*again) != text) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool recognised = looks_like_capture(bytes);
  const auto capture = parse_capture(bytes);
  if (capture) {
    if (!recognised) std::abort();
    expect_stable(*capture);
    expect_stable(redact(*capture, {{1, 2}, {"node7.example.org"}, {"alice"}}));
  }
  const RecordedHost machine(capture.value_or(Capture{}));
  if (const auto overlay = parse_overlay(bytes)) {
    const OverlayHost host(machine, *overlay);
    for (const auto& change : overlay->changes) host.probe(change.question.name);
    host.read("/sys/class/net/eth0/mtu");
    host.list("/sys/class/net");
  }
  return 0;
}
