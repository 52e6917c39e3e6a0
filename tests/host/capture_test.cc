#include "host/capture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "host/encoding.h"
#include "host/failing_host.h"
#include "host/overlay_host.h"
#include "host/pattern.h"
#include "host/recorded_host.h"
#include "host/recording_host.h"

namespace topotune::host {
namespace {

const std::vector<std::string> kCommand{"uname", "-s r", ""};

Capture example() {
  Capture out;
  out.tool = "topotune 0.1.0";
  out.date = "2026-01-31T12:00:00Z";
  const auto put = [&](Call call, std::string name, Answer answer) {
    out.answers.emplace(Question{call, name}, answer);
  };
  put(Call::list, "/sys/class/net", join_names({"eth0", "odd name%", "two\nlines"}));
  put(Call::list, "/sys/class/infiniband", std::string());
  put(Call::link, "/sys/class/net/eth0", std::string("../../devices/pci0000:00/0000:00:03.0/net/eth0"));
  put(Call::read, "/sys/class/net/eth0/mtu", std::string("1500\n"));
  put(Call::read, "/sys/class/net/eth0/empty", std::string());
  put(Call::read, "/a b/%/\xc3\xa9", std::string("no end of line"));
  put(Call::read, "/odd", std::string("esc \x1b[0m\r\nbad \xff\xfe\n#|!end\n\nend\n"));
  put(Call::read, "/config",
      std::string("\xde\x10\x30\x23", 4) + std::string(60, '\0') + "tail" + std::string(5, '\0') + "x");
  put(Call::read, "/denied", fail(Errc::denied, "/denied: Permission denied"));
  auto hinted = fail(Errc::not_found, "libnvidia-ml.so.1: not found\nat all");
  hinted.value().hint = "install the driver";
  put(Call::probe, "nvml", hinted);
  put(Call::probe, "statvfs /dev/shm", std::string("{\"bytes\":1}"));
  put(Call::run, command_name(kCommand), std::string("Linux\n"));
  put(Call::probe, "slow", fail(Errc::timed_out, "slow: no answer within 30 s"));
  return out;
}

void expect_same(const Answer& a, const Answer& b) {
  ASSERT_EQ(a.has_value(), b.has_value());
  if (a) {
    EXPECT_EQ(*a, *b);
    return;
  }
  EXPECT_EQ(a.error().code, b.error().code);
  EXPECT_EQ(a.error().text, b.error().text);
  EXPECT_EQ(a.error().hint, b.error().hint);
}

void expect_same(const Capture& a, const Capture& b) {
  EXPECT_EQ(a.tool, b.tool);
  EXPECT_EQ(a.date, b.date);
  EXPECT_EQ(a.redacted, b.redacted);
  ASSERT_EQ(a.answers.size(), b.answers.size());
  for (auto x = a.answers.begin(), y = b.answers.begin(); x != a.answers.end(); ++x, ++y) {
    EXPECT_EQ(x->first.call, y->first.call);
    EXPECT_EQ(x->first.name, y->first.name);
    SCOPED_TRACE(x->first.name);
    expect_same(x->second, y->second);
  }
}

TEST(Capture, TextAndCompressedFormKeepEverything) {
  const auto text = capture_text(example());
  const auto from_text = parse_capture(text);
  ASSERT_TRUE(from_text) << from_text.error().to_string();
  expect_same(example(), *from_text);
  const auto bytes = capture_bytes(example());
  ASSERT_TRUE(bytes);
  const auto from_bytes = parse_capture(*bytes);
  ASSERT_TRUE(from_bytes);
  expect_same(example(), *from_bytes);
  EXPECT_EQ(capture_text(*from_bytes), text);
}

TEST(Capture, IsReadableText) {
  const auto text = capture_text(example());
  EXPECT_EQ(text.substr(0, text.find('\n')), "topotune-capture 1");
  EXPECT_NE(text.find("\nread /sys/class/net/eth0/mtu\n|1500\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nread /denied\n!denied /denied: Permission denied\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n*de103023\n~60\n*7461696c000000000078\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nrun uname -s%20r %\n"), std::string::npos) << text;
}

TEST(Capture, LineEndsOfOtherSystemsChangeNothing) {
  std::string text = capture_text(example()), converted;
  for (const char c : text) converted += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const auto parsed = parse_capture("\xef\xbb\xbf" + converted);
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  expect_same(example(), *parsed);
}

TEST(Capture, CutAnywhereIsAnError) {
  const auto text = capture_text(example());
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    EXPECT_FALSE(parse_capture(std::string_view(text).substr(0, size))) << size;
  }
  const auto bytes = *capture_bytes(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_capture(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(Capture, DamageIsAnError) {
  const auto bytes = *capture_bytes(example());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int bit : {0, 7}) {
      auto damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto parsed = parse_capture(damaged);
      if (parsed) {
        EXPECT_EQ(capture_text(*parsed), capture_text(example())) << i;
      }
    }
  }
  EXPECT_FALSE(parse_capture(bytes + "x"));
  EXPECT_FALSE(parse_capture(bytes + bytes));
}

std::string body(std::string_view entries) { return fmt::format("topotune-capture 1\n{}end\n", entries); }

struct Bad {
  std::string text;
  Errc code;
  std::optional<int> line;
};

TEST(Capture, RefusesWhatItDoesNotKnow) {
  const std::vector<Bad> cases{
      {"", Errc::malformed, 1},
      {"topotune-capture 2\nend\n", Errc::unsupported, {}},
      {"topotune-overlay 1\nend\n", Errc::malformed, 1},
      {body("read /a\n|1\nread /a\n|2\n"), Errc::malformed, 4},
      {body("write /a\n|1\n"), Errc::malformed, 2},
      {body("read\n"), Errc::malformed, 2},
      {body("|1\n"), Errc::malformed, 2},
      {body("read /a%zz\n"), Errc::malformed, 2},
      {body("read /a\n!no_such_error x\n"), Errc::malformed, 3},
      {body("read /a\n|1\n!denied x\n"), Errc::malformed, 4},
      {body("read /a\n!denied x\n|1\n"), Errc::malformed, 4},
      {body("read /a\n?hint\n"), Errc::malformed, 3},
      {body("read /a\n*0\n"), Errc::malformed, 3},
      {body("read /a\n*0g\n"), Errc::malformed, 3},
      {body("read /a\n~-1\n"), Errc::malformed, 3},
      {body("read /a\n~99999999999999999999\n"), Errc::malformed, 3},
      {body("read /a\n%%4\n"), Errc::malformed, 3},
  };
  for (const auto& bad : cases) {
    const auto parsed = parse_capture(bad.text);
    ASSERT_FALSE(parsed) << bad.text;
    EXPECT_EQ(parsed.error().code, bad.code) << bad.text;
    EXPECT_EQ(parsed.error().line, bad.line) << bad.text;
  }
}

TEST(Capture, CommentsBlankLinesAndUnknownHeadersAreSkipped) {
  const auto parsed =
      parse_capture("topotune-capture 1\nfuture: x\n# a machine\n\nread /a\n# between\n|1\nend\n# after\n");
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(*parsed->answers.at({Call::read, "/a"}), "1\n");
}

TEST(Capture, BombsAreRefused) {
  Capture big;
  for (int i = 0; i < 5; ++i)
    big.answers.emplace(Question{Call::read, fmt::format("/{}", i)}, std::string(14 << 20, 'a'));
  const auto bytes = capture_bytes(big);
  ASSERT_TRUE(bytes);
  EXPECT_LT(bytes->size(), std::size_t{1} << 16);
  const auto parsed = parse_capture(*bytes);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Errc::too_large);
  EXPECT_EQ(parse_capture(body("read /a\n~67108864\n~1\n")).error().code, Errc::too_large);
  std::string many;
  for (std::size_t i = 0; i <= kMaxAnswers; ++i) many += fmt::format("read /{}\n", i);
  EXPECT_EQ(parse_capture(body(many)).error().code, Errc::too_large);
}

// The examples of the documentation are read as they stand there.
std::string example_of_page(std::string_view schema) {
  std::ifstream file(std::string(TOPOTUNE_TEST_DATA) + "/../docs/formats/capture.md");
  std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto begin = page.find(fmt::format("```\n{} 1\n", schema)) + 4;
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST(Capture, TheDocumentedExampleIsOne) {
  const auto capture = parse_capture(example_of_page("topotune-capture"));
  ASSERT_TRUE(capture) << capture.error().to_string();
  EXPECT_TRUE(capture->redacted);
  const RecordedHost host(*capture);
  EXPECT_EQ(host.read("/sys/bus/pci/devices/0000:1b:00.0/config")->size(), 4096U);
  EXPECT_EQ(host.probe("nvml").error().hint, "reboot, or reload the nvidia module");
  const auto overlay = parse_overlay(example_of_page("topotune-overlay"));
  ASSERT_TRUE(overlay) << overlay.error().to_string();
  EXPECT_EQ(overlay->changes.size(), 4U);
}

// A machine of eight GPUs, eight NICs and their switches: 160 functions whose configuration space root could
// read whole.
TEST(Capture, ABigMachineFitsIntoAMail) {
  Capture capture;
  std::uint32_t state = 1;
  const auto random = [&] { return static_cast<char>((state = state * 1664525 + 1013904223) >> 24); };
  for (int device = 0; device < 160; ++device) {
    std::string config(4096, '\0');
    for (std::size_t i = 0; i < 400; ++i) config[i * 2] = i % 4 == 0 ? random() : static_cast<char>(i);
    const auto folder = fmt::format("/sys/bus/pci/devices/0000:{:02x}:00.0", device);
    capture.answers.emplace(Question{Call::read, folder + "/config"}, config);
    for (int file = 0; file < 30; ++file) {
      capture.answers.emplace(Question{Call::read, fmt::format("{}/file{}", folder, file)},
                              fmt::format("{}\n", file * device));
    }
  }
  EXPECT_LT(capture_bytes(capture)->size(), 150'000U);
}

TEST(Capture, IsRecognised) {
  const auto text = capture_text(example());
  const auto bytes = *capture_bytes(example());
  EXPECT_TRUE(looks_like_capture(text));
  EXPECT_TRUE(looks_like_capture(bytes));
  EXPECT_TRUE(looks_like_capture(std::string_view(bytes).substr(0, 10)));
  EXPECT_TRUE(looks_like_capture(std::string_view(bytes).substr(0, bytes.size() / 2)));
  EXPECT_FALSE(looks_like_capture(""));
  EXPECT_FALSE(looks_like_capture("\tGPU0\tGPU1\n"));
  EXPECT_FALSE(looks_like_capture("\x28\xb5\x2f"));
}

TEST(RecordedHost, SaysWhatWasNeverAsked) {
  const RecordedHost host(example());
  EXPECT_EQ(*host.read("/sys/class/net/eth0/mtu"), "1500\n");
  EXPECT_EQ(*host.list("/sys/class/net"), (std::vector<std::string>{"eth0", "odd name%", "two\nlines"}));
  EXPECT_TRUE(host.list("/sys/class/infiniband")->empty());
  EXPECT_EQ(*host.run(kCommand), "Linux\n");
  EXPECT_EQ(host.read("/denied").error().code, Errc::denied);
  EXPECT_EQ(host.probe("nvml").error().hint, "install the driver");
  EXPECT_EQ(host.read("/new").error().code, Errc::not_captured);
  EXPECT_EQ(host.list("/denied").error().code, Errc::not_captured);
  EXPECT_EQ(host.link("/denied").error().code, Errc::not_captured);
  EXPECT_EQ(host.probe("cuda").error().code, Errc::not_captured);
  EXPECT_EQ(host.run(std::vector<std::string>{"uname"}).error().code, Errc::not_captured);
}

void ask_everything(const Host& host) {
  for (const auto& [question, answer] : example().answers) {
    if (question.call == Call::read) host.read(question.name);
    if (question.call == Call::list) host.list(question.name);
    if (question.call == Call::link) host.link(question.name);
    if (question.call == Call::probe) host.probe(question.name);
    if (question.call == Call::run) host.run(command_words(question.name));
  }
}

TEST(RecordingHost, RecordsEveryCallAndItsResult) {
  const RecordedHost machine(example());
  const RecordingHost recording(machine);
  ask_everything(recording);
  recording.read("/never/captured");
  auto again = recording.capture();
  again.tool = "topotune 0.1.0";
  again.date = "2026-01-31T12:00:00Z";
  expect_same(example(), again);
}

class Counter final : public Host {
 public:
  Result<std::string> read(std::string_view) const override { return fmt::format("{}\n", ++count_); }
  Result<std::vector<std::string>> list(std::string_view) const override {
    return std::vector<std::string>{};
  }
  Result<std::string> link(std::string_view) const override { return std::string(); }
  Result<std::string> run(std::span<const std::string>) const override { return std::string(); }
  Result<std::string> probe(std::string_view) const override { return std::string(); }

 private:
  mutable std::atomic<int> count_ = 0;
};

TEST(RecordingHost, AQuestionAskedTwiceHasOneAnswer) {
  const Counter machine;
  const RecordingHost recording(machine);
  EXPECT_EQ(*recording.read("/counter"), "1\n");
  EXPECT_EQ(*recording.read("/counter"), "1\n");
  EXPECT_EQ(*recording.read("/other"), "2\n");
}

TEST(RecordingHost, TakesSeveralThreads) {
  const Counter machine;
  const RecordingHost recording(machine);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) recording.read(fmt::format("/{}", i % 100));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(recording.capture().answers.size(), 100U);
}

TEST(Overlay, ReplacesRemovesAndFails) {
  const auto overlay = parse_overlay(
      "topotune-overlay 1\n"
      "# a story\n"
      "read /sys/class/net/eth0/mtu\n|9000\n"
      "read /a*/*/**\n!timed_out hung\n"
      "drop /sys/class/net/odd name%25\n"
      "drop /config\n"
      "edit run uname -s%20r %\n|Linux\n|Plan9\n"
      "json probe statvfs /dev/shm\n|/bytes 2\n|/type \"tmpfs\"\n"
      "probe nvml\n+{}\n");
  ASSERT_TRUE(overlay) << overlay.error().to_string();
  const RecordedHost machine(example());
  const OverlayHost host(machine, *overlay);
  EXPECT_EQ(*host.read("/sys/class/net/eth0/mtu"), "9000\n");
  EXPECT_EQ(host.read("/a b/%/\xc3\xa9").error().code, Errc::timed_out);
  EXPECT_EQ(*host.list("/sys/class/net"), (std::vector<std::string>{"eth0", "two\nlines"}));
  EXPECT_EQ(host.read("/sys/class/net/odd name%/mtu").error().code, Errc::not_found);
  EXPECT_EQ(host.read("/config").error().code, Errc::not_found);
  EXPECT_EQ(*host.run(kCommand), "Plan9\n");
  EXPECT_EQ(*host.probe("statvfs /dev/shm"), "{\"bytes\":2,\"type\":\"tmpfs\"}");
  EXPECT_EQ(*host.probe("nvml"), "{}");
  EXPECT_EQ(*host.link("/sys/class/net/eth0"), "../../devices/pci0000:00/0000:00:03.0/net/eth0");
}

TEST(Overlay, AppliesChangesInOrder) {
  const auto overlay = parse_overlay(
      "topotune-overlay 1\nread /x\n|a b a\n"
      "edit read /x\n|a\n|c\n|b\n|\n"
      "probe j\n|{\"gpus\":[{\"id\":0},{\"id\":1}]}\njson probe j\n|/gpus/0 -\n|/gpus/0/id 7\n");
  ASSERT_TRUE(overlay) << overlay.error().to_string();
  const RecordedHost machine(example());
  const OverlayHost host(machine, *overlay);
  EXPECT_EQ(*host.read("/x"), "c  c\n");
  EXPECT_EQ(*host.probe("j"), "{\"gpus\":[{\"id\":7}]}");
}

TEST(Overlay, SaysWhenItDoesNotFitTheMachine) {
  const auto overlay = parse_overlay(
      "topotune-overlay 1\nedit read /sys/class/net/eth0/mtu\n|9999\n|1\njson probe statvfs "
      "/dev/shm\n|/no/such -\n"
      "json read /sys/class/net/eth0/empty\n|/a 1\n");
  ASSERT_TRUE(overlay) << overlay.error().to_string();
  const RecordedHost machine(example());
  const OverlayHost host(machine, *overlay);
  EXPECT_EQ(host.read("/sys/class/net/eth0/mtu").error().line, 2);
  EXPECT_EQ(host.probe("statvfs /dev/shm").error().line, 5);
  EXPECT_EQ(host.read("/sys/class/net/eth0/empty").error().line, 7);
}

TEST(Overlay, RefusesWhatItDoesNotKnow) {
  for (const std::string_view text :
       {"replace read /a\n", "edit read /a\n|only one line\n", "edit /a\n|a\n|b\n",
        "json probe nvml\n|no-blank\n", "json probe nvml\n|/a not json\n", "json probe nvml\n|a 1\n"}) {
    EXPECT_FALSE(parse_overlay(fmt::format("topotune-overlay 1\n{}", text))) << text;
  }
}

TEST(Pattern, StarsStopAtSlashes) {
  EXPECT_TRUE(matches("/a/*/c", "/a/b/c"));
  EXPECT_FALSE(matches("/a/*/c", "/a/b/b/c"));
  EXPECT_TRUE(matches("/a/**", "/a/b/b/c"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("/sys/*:1b:*/x", "/sys/0000:1b:00.0/x"));
  EXPECT_FALSE(matches(std::string(200, '*') + "b", std::string(5000, 'a')));
}

TEST(FailingHost, FailsEveryNthOrMatchingAccess) {
  const RecordedHost machine(example());
  const FailingHost third(machine, {3, "", Errc::io});
  EXPECT_TRUE(third.read("/config"));
  EXPECT_TRUE(third.list("/sys/class/net"));
  EXPECT_EQ(third.read("/config").error().code, Errc::io);
  EXPECT_TRUE(third.probe("statvfs /dev/shm"));
  EXPECT_EQ(third.accesses(), 4U);
  const FailingHost matching(machine, {0, "/sys/**", Errc::denied});
  EXPECT_EQ(matching.list("/sys/class/net").error().code, Errc::denied);
  EXPECT_EQ(matching.link("/sys/class/net/eth0").error().code, Errc::denied);
  EXPECT_TRUE(matching.read("/config"));
  EXPECT_TRUE(matching.run(kCommand));
}

}  // namespace
}  // namespace topotune::host
