#include "host/redact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "host/encoding.h"
#include "host/identifiers.h"
#include "host/recorded_host.h"

namespace topotune::host {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr Salt kSalt{0x0123456789abcdef, 0xfedcba9876543210};

RedactOptions options() { return {kSalt, {"node7.lab.acme-corp.com"}, {"alice"}}; }

Capture machine() {
  Capture out;
  const auto put = [&](Call call, std::string name, Answer answer) {
    out.answers.emplace(Question{call, name}, answer);
  };
  const auto read = [&](std::string name, std::string text) {
    put(Call::read, std::move(name), std::move(text));
  };
  const std::string ib = "/sys/class/infiniband/mlx5_0/";
  read("/proc/sys/kernel/hostname", "node7\n");
  read("/etc/machine-id", "0f1e2d3c4b5a69788796a5b4c3d2e1f0\n");
  read("/proc/sys/kernel/random/boot_id", "7b8a1c52-9f3e-4d21-8a44-0123456789ab\n");
  read("/proc/cmdline",
       "BOOT_IMAGE=/vmlinuz-6.1.0-18 root=UUID=6f6e1c1d-5b1f-4a7c-9d3e-aabbccddeeff ro iommu=pt "
       "hostname=node7\n");
  read("/sys/class/dmi/id/board_serial", "CN7475198G0123\n");
  read("/sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8054-B4C04F4A4E32\n");
  read("/sys/class/dmi/id/product_name", "PowerEdge XE9680\n");
  read("/sys/class/dmi/id/chassis_asset_tag", "ACME-0004711\n");
  read(ib + "node_guid", "a088:c203:00ab:1234\n");
  read(ib + "sys_image_guid", "a088:c203:00ab:1234\n");
  read(ib + "node_desc", "storage9 mlx5_0\n");
  read(ib + "fw_ver", "28.39.1002\n");
  read(ib + "board_id", "MT_0000000838\n");
  read(ib + "ports/1/gids/0", "fe80:0000:0000:0000:a288:c2ff:feab:1234\n");
  read(ib + "ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a0b:0c0d\n");
  read(ib + "ports/1/gids/2", "0000:0000:0000:0000:0000:ffff:83bc:0117\n");
  read(ib + "ports/1/gids/3", "2a01:04f8:0c17:1234:a288:c2ff:feab:1234\n");
  read(ib + "ports/1/gids/4", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  read(ib + "ports/1/gids/5", "fe80:0000:0000:0000:a088:c203:00ab:1234\n");
  read("/sys/class/net/eth0/address", "a0:88:c2:ab:12:34\n");
  read("/sys/class/net/lo/address", "00:00:00:00:00:00\n");
  read("/sys/class/net/ib0/address", "80:00:00:29:fe:80:00:00:00:00:00:00:a0:88:c2:03:00:ab:12:34\n");
  read("/sys/bus/pci/devices/0000:1b:00.0/vpd", std::string("\x82\x01\x00", 3) + "MT2345X01234");
  std::string config(4096, '\0');
  config.replace(0, 4, "\xde\x10\x30\x23");
  config.replace(0x100, 4, std::string("\x03\x00\x01\x00", 4));
  config.replace(0x104, 8, std::string("\x34\x12\xab\x00\x03\xc2\x88\xa0", 8));
  read("/sys/bus/pci/devices/0000:1b:00.0/config", config);
  read("/proc/self/environ", std::string("NCCL_DEBUG=INFO\0API_KEY=hunter2secret\0HOME=/home/alice\0", 55));
  read("/proc/self/mounts", "nfs3.lab.acme-corp.com:/export /mnt nfs4 rw 0 0\nproc /proc proc rw 0 0\n");
  read("/sys/module/mlx5_core/version", "24.10-1.1.4.0\n");
  put(Call::probe, "nvml",
      std::string("{\"driver\":\"580.159.04\",\"nccl\":\"2.28.9\",\"vbios\":\"96.0.74.1\",\"gpus\":[{"
                  "\"serial\":\"1654922001234\",\"uuid\":"
                  "\"GPU-8c187d2c-66d5-a0bd-e4ce-ab12cd34ef56\",\"bdf\":\"0000:1b:00.0\",\"pci_ids\":\"10de:"
                  "2330:10de:16c1\","
                  "\"cluster_uuid\":\"00000000-0000-0000-0000-000000000000\"},{\"serial\":1654922001234,"
                  "\"uuid\":\"GPU-8c187d2c-66d5-a0bd-e4ce-ab12cd34ef56\"}]}"));
  put(Call::probe, "hwloc",
      std::string(
          "<info name=\"HostName\" value=\"node7\"/><info name=\"DMIBoardSerial\" value=\"CN7475198G0123\"/>"
          "<info name=\"Address\" value=\"a0:88:c2:ab:12:34\"/><info name=\"NodeGUID\" "
          "value=\"a088:c203:00ab:1234\"/>"
          "<object type=\"NUMANode\" cpuset=\"0xffffffff,0xffffffff\"/>"));
  put(Call::run, "dmesg",
      std::string(
          "Jan  1 00:00:01 node7 kernel: [    0.000000] Linux version 6.1.0-18-amd64\n"
          "[    1.2] NVRM: GPU Board Serial Number: 1654922001234\n"
          "[    1.3] pci 0000:1b:00.0: [10de:2330] type 00 class 0x030200\n"
          "[    1.4] NFS: server 131.188.1.23 not responding, client fe80::a288:c2ff:feab:1234%eth0 from "
          "131.188.1.99:2049\n"
          "[    1.5] mlx5_core 0000:1b:00.0: Port GUID: 0xa088c20300ab1234, firmware version 28.39.1002\n"
          "[    1.6] usb 1-1: SerialNumber: 0000:00:14.0\n"
          "[    1.7] eth0: mac:a0:88:c2:ab:12:34: up, enxa088c2ab1234: renamed\n"
          "[    1.8] login of alice on tty1, OFED MLNX_OFED_LINUX-24.10-1.1.4.0\n"));
  put(Call::list, "/sys/class/net", join_names({"enxa088c2ab1234", "eth0", "ib0"}));
  put(Call::list, "/sys/devices/system/node", join_names({"node0", "node7"}));
  put(Call::link, "/sys/devices/system/node/cpu0", std::string("../../node/node7/cpu0"));
  put(Call::read, "/home/alice/.nccl.conf",
      fail(Errc::not_found, "/home/alice/.nccl.conf: No such file or directory"));
  put(Call::read, "/home/bob/nccl.conf", std::string("# bob@node7\nNCCL_DEBUG=INFO\n"));
  put(Call::read, "/dev/disk/by-uuid/6f6e1c1d-5b1f-4a7c-9d3e-aabbccddeeff", fail(Errc::denied, "no"));
  return out;
}

// Everything above that tells who, in any spelling.
const std::vector<std::string> kOriginals{"acme-corp",
                                          "storage9",
                                          "alice",
                                          "bob",
                                          "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
                                          "7b8a1c52",
                                          "0123456789ab",
                                          "6f6e1c1d",
                                          "aabbccddeeff",
                                          "cn7475198g0123",
                                          "4c4c4544",
                                          "0004711",
                                          "c203:00ab:1234",
                                          "c20300ab1234",
                                          "c2:03:00:ab:12:34",
                                          "a288:c2ff",
                                          "feab:1234",
                                          "83bc:0117",
                                          "2a01:04f8",
                                          "a0:88:c2:ab:12:34",
                                          "a088c2ab1234",
                                          "mt2345x01234",
                                          "3412ab0003c288a0",
                                          "hunter2secret",
                                          "nfs3",
                                          "1654922001234",
                                          "8c187d2c-66d5",
                                          "ab12cd34ef56",
                                          "131.188.1."};

// The file's text and, since it spells binary answers as digits, the answers themselves.
std::string haystack(const Capture& capture) {
  std::string out = capture_text(capture);
  for (const auto& [question, answer] : capture.answers) out += answer ? "\n" + *answer : "";
  return to_lower(out);
}

TEST(Redact, LeavesNoOriginal) {
  const auto before = haystack(machine()), after = haystack(redact(machine(), options()));
  for (const auto& original : kOriginals) {
    EXPECT_NE(before.find(original), std::string::npos) << original << ": the test's own mistake";
    const auto at = after.find(original);
    EXPECT_EQ(at, std::string::npos) << original << " in " << after.substr(std::min(at, after.size()), 80);
  }
}

class Redacted : public testing::Test {
 protected:
  const RecordedHost host_{redact(machine(), options())};
  std::string ib(std::string_view file) const {
    return *host_.read(fmt::format("/sys/class/infiniband/mlx5_0/{}", file));
  }
};

TEST_F(Redacted, KeepsWhatRulesLookAt) {
  EXPECT_EQ(*host_.read("/sys/class/dmi/id/product_name"), "PowerEdge XE9680\n");
  EXPECT_EQ(*host_.read("/sys/module/mlx5_core/version"), "24.10-1.1.4.0\n");
  EXPECT_EQ(ib("fw_ver"), "28.39.1002\n");
  EXPECT_EQ(ib("board_id"), "MT_0000000838\n");
  const auto nvml = *host_.probe("nvml");
  for (const auto* kept : {"580.159.04", "2.28.9", "96.0.74.1", "0000:1b:00.0", "10de:2330:10de:16c1",
                           "00000000-0000-0000-0000-000000000000"}) {
    EXPECT_THAT(nvml, HasSubstr(kept));
  }
  const auto log = *host_.run(std::vector<std::string>{"dmesg"});
  for (const auto* kept :
       {"6.1.0-18-amd64", "pci 0000:1b:00.0: [10de:2330]", "class 0x030200", "28.39.1002",
        "SerialNumber: 0000:00:14.0", "MLNX_OFED_LINUX-24.10-1.1.4.0", ":2049", "%eth0", ": up, enx"}) {
    EXPECT_THAT(log, HasSubstr(kept));
  }
  EXPECT_THAT(*host_.probe("hwloc"), HasSubstr("0xffffffff,0xffffffff"));
  EXPECT_THAT(*host_.read("/proc/cmdline"), HasSubstr("BOOT_IMAGE=/vmlinuz-6.1.0-18 root=UUID="));
  EXPECT_THAT(*host_.read("/proc/self/environ"),
              HasSubstr(std::string("NCCL_DEBUG=INFO\0API_KEY=redacted\0", 33)));
  EXPECT_EQ(*host_.list("/sys/devices/system/node"), (std::vector<std::string>{"node0", "node7"}));
  EXPECT_EQ(*host_.link("/sys/devices/system/node/cpu0"), "../../node/node7/cpu0");
  EXPECT_EQ(host_.read("/sys/bus/pci/devices/0000:1b:00.0/vpd").error().code, Errc::denied);
}

TEST_F(Redacted, KeepsKinds) {
  const std::string g = "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]";
  EXPECT_THAT(ib("node_guid"), MatchesRegex(fmt::format("{0}:{0}:{0}:{0}\n", g)));
  EXPECT_THAT(ib("ports/1/gids/0"), MatchesRegex(fmt::format("fe80:0000:0000:0000:{0}:..ff:fe..:{0}\n", g)));
  EXPECT_EQ(ib("ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:0a0b:0c0d\n");
  EXPECT_THAT(ib("ports/1/gids/2"), MatchesRegex("0000:0000:0000:0000:0000:ffff:f...:....\n"));
  EXPECT_THAT(ib("ports/1/gids/3"), MatchesRegex(fmt::format("2001:0db8:{0}:{0}:{0}:..ff:fe..:{0}\n", g)));
  EXPECT_EQ(ib("ports/1/gids/4"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(*host_.read("/sys/class/net/lo/address"), "00:00:00:00:00:00\n");
  EXPECT_THAT(*host_.read("/sys/class/net/eth0/address"), MatchesRegex("..:..:..:..:..:..\n"));
  EXPECT_THAT(*host_.read("/sys/class/dmi/id/product_uuid"),
              MatchesRegex("[0-9A-F]+-[0-9A-F]+-3[0-9A-F]+-8[0-9A-F]+-[0-9A-F]+\n"));
  EXPECT_THAT(*host_.read("/proc/sys/kernel/hostname"), MatchesRegex("host-[0-9a-f]+\n"));
}

TEST_F(Redacted, KeepsEquality) {
  EXPECT_EQ(ib("node_guid"), ib("sys_image_guid"));
  const auto guid = ib("node_guid").substr(0, 19);
  EXPECT_EQ(ib("ports/1/gids/5"), "fe80:0000:0000:0000:" + guid + "\n");
  EXPECT_EQ(ib("ports/1/gids/0").substr(20), ib("ports/1/gids/3").substr(20));
  EXPECT_THAT(*host_.probe("hwloc"), HasSubstr(guid));
  std::string digits, pairs;
  for (const char c : guid) {
    if (c != ':') digits += c;
  }
  for (std::size_t i = 0; i < 16; i += 2) pairs += (i == 0 ? "" : ":") + digits.substr(i, 2);
  EXPECT_THAT(*host_.read("/sys/class/net/ib0/address"), testing::EndsWith(pairs + "\n"));
  EXPECT_THAT(*host_.run(std::vector<std::string>{"dmesg"}), HasSubstr("0x" + digits));
  // The MAC, the address made of it, the interface named by it.
  const auto mac = std::string(trim(*host_.read("/sys/class/net/eth0/address")));
  EXPECT_THAT(*host_.run(std::vector<std::string>{"dmesg"}), HasSubstr("mac:" + mac + ": up"));
  std::string plain;
  for (const char c : mac) {
    if (c != ':') plain += c;
  }
  EXPECT_THAT(*host_.list("/sys/class/net"), testing::Contains("enx" + plain));
  EXPECT_EQ(ib("ports/1/gids/0").substr(22, 2), mac.substr(3, 2));
  EXPECT_EQ(digits.substr(0, 6), plain.substr(0, 6));
  const auto nvml = *host_.probe("nvml");
  const auto first = nvml.find("GPU-");
  EXPECT_NE(nvml.find(nvml.substr(first, 40), first + 1), std::string::npos);
  const auto host = std::string(trim(*host_.read("/proc/sys/kernel/hostname")));
  EXPECT_THAT(*host_.read("/proc/cmdline"), HasSubstr("hostname=" + host + "\n"));
  EXPECT_THAT(*host_.probe("hwloc"), HasSubstr("value=\"" + host + "\""));
}

TEST_F(Redacted, ReplacesTheSerialNumberInConfigurationSpace) {
  const auto before = machine().answers.at({Call::read, "/sys/bus/pci/devices/0000:1b:00.0/config"}).value();
  const auto after = *host_.read("/sys/bus/pci/devices/0000:1b:00.0/config");
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after.substr(0, 0x104), before.substr(0, 0x104));
  EXPECT_NE(after.substr(0x104, 8), before.substr(0x104, 8));
  EXPECT_EQ(after.substr(0x10c), before.substr(0x10c));
}

TEST_F(Redacted, StaysACapture) {
  const auto again = parse_capture(capture_text(host_.capture()));
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_TRUE(again->redacted);
  EXPECT_EQ(again->answers.size(), machine().answers.size());
}

TEST(Redact, DependsOnTheSaltOnly) {
  auto other = options();
  other.salt[0] ^= 1;
  EXPECT_EQ(capture_text(redact(machine(), options())), capture_text(redact(machine(), options())));
  EXPECT_NE(capture_text(redact(machine(), options())), capture_text(redact(machine(), other)));
  EXPECT_NE(redact_options_here().salt, redact_options_here().salt);
}

TEST(Redact, CommonNamesStayInTexts) {
  Capture capture;
  capture.answers.emplace(Question{Call::read, "/proc/sys/kernel/hostname"}, std::string("vm\n"));
  capture.answers.emplace(Question{Call::read, "/proc/x"},
                          std::string("vm.swappiness vm GPU gpu0 /home/data /srv/data\n"));
  const RecordedHost host(redact(capture, {kSalt, {"vm"}, {"root"}}));
  EXPECT_THAT(*host.read("/proc/sys/kernel/hostname"), MatchesRegex("host-[0-9a-f]+\n"));
  EXPECT_EQ(*host.read("/proc/x"), "vm.swappiness vm GPU gpu0 /home/data /srv/data\n");
}

TEST(Redact, FoldersOfMountsAreNoHosts) {
  Capture capture;
  const std::string mounts =
      "614 500 0:52 / / rw - overlay overlay rw,lowerdir=/opt/cuda:/opt/lib:/srv\n"
      "700 614 0:60 / /data rw - nfs4 filer12:/vol rw,addr=10.1.2.3\n";
  capture.answers.emplace(Question{Call::read, "/proc/self/mountinfo"}, mounts);
  const auto after = *redact(capture, options()).answers.begin()->second;
  EXPECT_THAT(after, HasSubstr("lowerdir=/opt/cuda:/opt/lib:/srv\n"));
  EXPECT_THAT(after, MatchesRegex("(.|\n)* nfs4 host-[0-9a-f]+:/vol rw,addr=10.1.2.3\n"));
}

TEST(Redact, ConfigurationSpaceInALoopEnds) {
  Capture capture;
  std::string config(4096, '\0');
  config.replace(0x100, 4, std::string("\x01\x00\x01\x10", 4));  // points to itself
  capture.answers.emplace(Question{Call::read, "/sys/bus/pci/devices/0000:00:00.0/config"}, config);
  EXPECT_EQ(*redact(capture, options()).answers.begin()->second, config);
}

struct Form {
  std::string text;
  bool changes;
};

TEST(Identifiers, AreToldFromWhatLooksLikeThem) {
  const Pseudonyms names(kSalt);
  const std::set<std::uint64_t> guids{0xa088c20300ab1234};
  const std::vector<Form> forms{
      {"0000:1b:00.0", false},
      {"00000000:1B:00.0", false},
      {"0000:1b:00.0:pcie001", false},
      {"12:34:56", false},
      {"12:34:56.789", false},
      {"580.159.04", false},
      {"2.28.9", false},
      {"1.2.3.4.5", false},
      {"version 1.2.3.4", false},
      {"libfoo.so.1.2.3.4", false},
      {"5.8-1.1.2.1", false},
      {"300.1.1.1", false},
      {"192.168.1.1", false},
      {"10.0.0.1/24", false},
      {"255.255.255.0", false},
      {"127.0.0.1", false},
      {"169.254.1.1", false},
      {"std::add::bed", false},
      {"add::bed", false},
      {"::1", false},
      {"::", false},
      {"ff02::1", false},
      {"fd00::1", false},
      {"0x00000000fa000000", false},
      {"ffffffff,ffffffff", false},
      {"000001ffffffffff", false},
      {"10de:2330:10de:16c1", false},
      {"00:00:00:00:00:00", false},
      {"ff:ff:ff:ff:ff:ff", false},
      {"00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff", false},
      {"8.8.8.8", true},
      {"(8.8.8.8)", true},
      {"8.8.8.8-8.8.8.9", true},
      {"8.8.8.8:53", true},
      {"server=131.188.1.1", true},
      {"2a01:4f8::1", true},
      {"fe80::1234:5678:9abc:def0", true},
      {"A0:88:C2:AB:12:34", true},
      {"a0-88-c2-ab-12-34", true},
      {"a0-88-c2-03-00-ab-12-34", true},
      {"hwaddr=a0:88:c2:ab:12:34,", true},
      {"a088:c203:00ab:1234", true},
      {"0xa088c20300ab1234", true},
      {"::ffff:131.188.1.1", true},
      {"[2a01:4f8::1]:443", true},
      {"a0:88:c2:ab:12:34:port", true},
      {"enxa088c2ab1234", true},
      {"0f1e2d3c4b5a69788796a5b4c3d2e1f0", true},
      {"pod6f6e1c1d_5b1f_4a7c_9d3e_aabbccddeeff", true},
      {"PARTUUID=5c3d8e0b-02", true},
      {"UUID=2A4C-11F0", true},
      {"fd00::a288:c2ff:feab:1234", true},
      {"ff02::1:ffab:1234", true},
  };
  for (const auto& form : forms) {
    const auto out = replace_hex_runs(
        replace_groups(replace_uuids(replace_ipv4(form.text, names), names), names, guids), names, guids);
    EXPECT_EQ(out != form.text, form.changes) << form.text << " -> " << out;
  }
}

// RFC-style check vector of SipHash-2-4: key 00..0f, input 00..0e.
TEST(SipHash, GivesTheAuthorsVector) {
  std::string input;
  for (int i = 0; i < 15; ++i) input += static_cast<char>(i);
  EXPECT_EQ(siphash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, input), 0xa129ca6149be45e5U);
}

TEST(Pseudonyms, AreStableAndOfTheSameKind) {
  const Pseudonyms names(kSalt);
  EXPECT_EQ(names.serial("AB-12"), names.serial("AB-12"));
  EXPECT_THAT(names.serial("Ab-12"), MatchesRegex("[A-Z][a-z]-[0-9][0-9]"));
  EXPECT_EQ(names.hex("6f6e1c1d"), names.hex("6f6e1c1d"));
  EXPECT_EQ(names.guid(0), 0U);
  const auto a = names.ipv4(0x83bc0117), b = names.ipv4(0x83bc0163), c = names.ipv4(0x83bc0217);
  EXPECT_EQ(a >> 8, b >> 8);
  EXPECT_NE(a, b);
  EXPECT_NE(a >> 8, c >> 8);
  EXPECT_EQ(a >> 28, 0xfU);
  EXPECT_EQ(names.ipv4(a), a);
}

}  // namespace
}  // namespace topotune::host
