#include "host/live_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/child.h"
#include "host/command.h"
#include "host/files.h"

namespace topotune::host {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::HasSubstr;

class Folder {
 public:
  Folder() {
    std::string name = "/tmp/topotune-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }
  void write(std::string_view name, std::string_view text) const {
    const fs::path file = *this / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }

 private:
  std::string path_;
};

LiveOptions quick(std::string root = "") {
  LiveOptions out;
  out.root = std::move(root);
  out.probe_limit = Milliseconds(300);
  out.read_limit = Milliseconds(300);
  return out;
}

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

TEST(LiveHost, ReadsThisMachine) {
  const LiveHost host(quick());
  EXPECT_THAT(*host.read("/proc/version"), HasSubstr("Linux"));
  EXPECT_THAT(*host.list("/proc/self"), testing::Contains("status"));
  EXPECT_THAT(*host.list("/"), testing::Contains("proc"));
  EXPECT_THAT(*host.link("/proc/self"), testing::MatchesRegex("[0-9]+"));
}

TEST(LiveHost, MapsErrors) {
  const Folder folder;
  folder.write("file", "x");
  folder.write("big", std::string(Host::kMaxRead + 1, 'a'));
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const LiveHost host(quick());
  const auto start = steady_clock::now();
  EXPECT_EQ(host.read(folder / "none").error().code, Errc::not_found);
  EXPECT_EQ(host.read(folder / "file/below").error().code, Errc::not_found);
  EXPECT_EQ(host.read(folder.path()).error().code, Errc::unsupported);
  EXPECT_EQ(host.read(folder / "fifo").error().code, Errc::unsupported);
  EXPECT_EQ(host.read("/dev/zero").error().code, Errc::unsupported);
  EXPECT_EQ(host.read(folder / "big").error().code, Errc::too_large);
  EXPECT_EQ(host.list(folder / "none").error().code, Errc::not_found);
  EXPECT_EQ(host.list(folder / "file").error().code, Errc::not_found);
  EXPECT_EQ(host.link(folder / "file").error().code, Errc::unsupported);
  EXPECT_EQ(host.read("relative").error().code, Errc::usage);
  EXPECT_LT(seconds_since(start), 5);
  EXPECT_EQ(error_of(EACCES, "/x").code, Errc::denied);
  EXPECT_EQ(error_of(EPERM, "/x").code, Errc::denied);
  EXPECT_EQ(error_of(EINVAL, "/x").code, Errc::unsupported);
  EXPECT_EQ(error_of(ENODEV, "/x").code, Errc::unsupported);
  EXPECT_EQ(error_of(EOPNOTSUPP, "/x").code, Errc::unsupported);
  EXPECT_EQ(error_of(EIO, "/x").code, Errc::io);
  EXPECT_EQ(error_of(ENOENT, "/x").text, "/x: No such file or directory");
}

TEST(LiveHost, LinksStayInsideTheRoot) {
  const Folder outside, folder;
  outside.write("secret", "outside");
  folder.write("sys/devices/a/value", "inside\n");
  folder.write("secret", "the root's own");
  const auto link = [&](std::string_view target, std::string_view name) {
    fs::create_symlink(target, folder / name);
  };
  fs::create_directories(folder / "sys/class");
  link("../devices/a", "sys/class/relative");
  link("/sys/devices/a", "sys/class/absolute");
  link("../../../../../../../../secret", "sys/class/up");
  link(outside / "secret", "sys/class/escape");
  link("loop2", "sys/class/loop1");
  link("loop1", "sys/class/loop2");
  const LiveHost host(folder.path() + "/");
  EXPECT_EQ(*host.read("/sys/class/relative/value"), "inside\n");
  EXPECT_EQ(*host.read("/sys/class/absolute/value"), "inside\n");
  EXPECT_EQ(*host.read("/sys/class/up"), "the root's own");
  EXPECT_EQ(*host.read("/../../secret"), "the root's own");
  EXPECT_EQ(host.read("/sys/class/escape").error().code, Errc::not_found);
  EXPECT_EQ(host.read("/sys/class/loop1").error().code, Errc::io);
  EXPECT_EQ(*host.link("/sys/class/absolute"), "/sys/devices/a");
  EXPECT_EQ(*host.list("/sys/class/absolute"), std::vector<std::string>{"value"});
  EXPECT_THAT(host.read("/sys/none").error().text, testing::StartsWith("/sys/none: "));
  EXPECT_EQ(host.run(std::vector<std::string>{"true"}).error().code, Errc::unsupported);
}

TEST(LiveHost, ExcludedDevicesAreNotTouched) {
  const Folder folder;
  folder.write("sys/devices/pci0000:00/0000:00:01.0/0000:1b:00.0/vendor", "0x10de\n");
  folder.write("sys/devices/pci0000:00/0000:00:01.0/vendor", "0x8086\n");
  fs::create_directories(folder / "sys/bus/pci/devices");
  fs::create_symlink("../../../devices/pci0000:00/0000:00:01.0/0000:1b:00.0",
                     folder / "sys/bus/pci/devices/0000:1b:00.0");
  fs::create_directories(folder / "sys/class/net");
  fs::create_symlink("../../devices/pci0000:00/0000:00:01.0/0000:1b:00.0", folder / "sys/class/net/eth0");
  auto options = quick(folder.path());
  options.excluded = *parse_excluded("1B:00.0");
  const LiveHost host(options);
  EXPECT_EQ(host.read("/sys/bus/pci/devices/0000:1b:00.0/vendor").error().code, Errc::denied);
  EXPECT_EQ(host.read("/sys/class/net/eth0/vendor").error().code, Errc::denied);
  EXPECT_THAT(host.read("/sys/class/net/eth0/vendor").error().text, HasSubstr("TOPOTUNE_EXCLUDE"));
  EXPECT_EQ(*host.read("/sys/devices/pci0000:00/0000:00:01.0/vendor"), "0x8086\n");
  options.root.clear();
  EXPECT_EQ(LiveHost(options).run(std::vector<std::string>{"/usr/bin/nvidia-smi"}).error().code,
            Errc::denied);
}

TEST(LiveHost, AnExclusionThatIsNotUnderstoodStopsEverything) {
  ::setenv("TOPOTUNE_EXCLUDE", "0000:1b:00.0,mlx5_0", 1);
  const LiveHost host;
  ::unsetenv("TOPOTUNE_EXCLUDE");
  EXPECT_EQ(host.read("/proc/version").error().code, Errc::usage);
  EXPECT_EQ(host.run(std::vector<std::string>{"true"}).error().code, Errc::usage);
  EXPECT_EQ(host.probe("process").error().code, Errc::usage);
}

TEST(LiveOptions, ComeFromTheEnvironment) {
  ::setenv("TOPOTUNE_PROBE_TIMEOUT", "2.5", 1);
  EXPECT_EQ(live_options_from_environment()->probe_limit, Milliseconds(2500));
  for (const char* bad : {"0", "-1", "x", "1e9"}) {
    ::setenv("TOPOTUNE_PROBE_TIMEOUT", bad, 1);
    EXPECT_FALSE(live_options_from_environment()) << bad;
  }
  ::unsetenv("TOPOTUNE_PROBE_TIMEOUT");
  EXPECT_EQ(live_options_from_environment()->probe_limit, Milliseconds(30'000));
}

Result<std::string> run(std::vector<std::string> argv, Milliseconds limit = Milliseconds(5000)) {
  return run_command(argv, limit);
}

TEST(RunCommand, GivesOutputAndErrors) {
  EXPECT_EQ(*run({"printf", "%s|", "a b", "$HOME", ""}), "a b|$HOME||");
  EXPECT_EQ(*run({"cat"}), "");
  EXPECT_EQ(run({"no-such-program-here"}).error().code, Errc::not_found);
  EXPECT_EQ(run({"/etc/passwd"}).error().code, Errc::denied);
  const auto failed = run({"sh", "-c", "echo out; echo >&2; echo first >&2; echo second >&2; exit 3"});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().text, "sh: status 3: first");
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).error().text, "sh: ended by signal 9");
  EXPECT_EQ(run({}).error().code, Errc::usage);
  EXPECT_EQ(*run({"sh", "-c", "echo $LC_ALL"}), "C\n");
}

TEST(RunCommand, EndsWhatSleepsOrTalksTooMuch) {
  const auto start = steady_clock::now();
  EXPECT_EQ(run({"sleep", "60"}, Milliseconds(200)).error().code, Errc::timed_out);
  EXPECT_EQ(run({"sh", "-c", "sleep 60 & echo started"}, Milliseconds(200)).error().code, Errc::timed_out);
  EXPECT_EQ(run({"cat", "/dev/zero"}).error().code, Errc::too_large);
  EXPECT_LT(seconds_since(start), 5);
}

TEST(InChild, SurvivesHangsAndCrashes) {
  const auto start = steady_clock::now();
  const auto hang = in_child(
      []() -> Result<std::string> {
        for (;;) ::pause();
      },
      Milliseconds(200), "nvml");
  EXPECT_EQ(hang.error().code, Errc::timed_out);
  EXPECT_EQ(hang.error().text, "nvml: no answer within 0.2 s");
  const auto crash = in_child([]() -> Result<std::string> { ::_exit(9); }, Milliseconds(2000), "nvml");
  EXPECT_EQ(crash.error().code, Errc::io);
  const auto killed = in_child(
      []() -> Result<std::string> {
        ::raise(SIGKILL);
        return std::string();
      },
      Milliseconds(2000), "nvml");
  EXPECT_EQ(killed.error().text, "nvml: ended by signal 9");
  const auto thrown = in_child([]() -> Result<std::string> { throw std::runtime_error("library"); },
                               Milliseconds(2000), "nvml");
  EXPECT_EQ(thrown.error().text, "library");
  EXPECT_LT(seconds_since(start), 3);
}

TEST(InChild, BringsAnswersAndErrorsBack) {
  const std::string big = std::string(3 << 20, 'a') + '\0' + "b";
  EXPECT_EQ(*in_child([&]() -> Result<std::string> { return big; }, Milliseconds(5000), "x"), big);
  const auto error = in_child(
      []() -> Result<std::string> {
        auto out = fail(Errc::unsupported, "NVML: driver not loaded");
        out.value().hint = "modprobe nvidia";
        return out;
      },
      Milliseconds(5000), "x");
  EXPECT_EQ(error.error().code, Errc::unsupported);
  EXPECT_EQ(error.error().text, "NVML: driver not loaded");
  EXPECT_EQ(error.error().hint, "modprobe nvidia");
}

TEST(InChild, HoldsNoneOfOurFiles) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const auto count =
      in_child([&]() -> Result<std::string> { return fmt::format("{}", ::write(ends[1], "x", 1)); },
               Milliseconds(5000), "x");
  EXPECT_EQ(*count, "-1");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Messages, AreRefusedWhenTooLong) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::uint32_t size = 0xffffffff;
  ASSERT_EQ(::write(ends[1], &size, sizeof size), 4);
  EXPECT_EQ(receive_message(ends[0], Deadline(Milliseconds(100))).error().code, Errc::io);
  EXPECT_EQ(receive_message(ends[0], Deadline(Milliseconds(50))).error().code, Errc::timed_out);
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_FALSE(unpack(""));
}

}  // namespace
}  // namespace topotune::host
