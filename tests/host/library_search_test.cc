#include "host/library_search.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace topotune::host {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class LibrarySearch : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("topotune-libraries-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "etc/ld.so.conf.d");
    fs::create_directories(root_ / "opt/lib");
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& bytes) { std::ofstream(root_ / name) << bytes; }

  fs::path root_;
};

// An ELF file with nothing but a section table and ".rodata".
std::string elf_with(const std::string& data) {
  const std::string names("\0.rodata\0.shstrtab\0", 19);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  header.e_shoff = sizeof header + data.size() + names.size();
  Elf64_Shdr sections[3] = {};
  sections[1].sh_name = 1;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = data.size();
  sections[2].sh_name = 9;
  sections[2].sh_offset = sizeof header + data.size();
  sections[2].sh_size = names.size();
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out += data + names;
  return out.append(reinterpret_cast<const char*>(sections), sizeof sections);
}

TEST_F(LibrarySearch, FoldersFollowTheLoadersOrder) {
  write("etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n");
  write("etc/ld.so.conf.d/b.conf", "# comment\n/opt/b\n");
  write("etc/ld.so.conf.d/a.conf", "/opt/a # first\n");
  const auto folders = library_folders(root_, "/first:relative:");
  ASSERT_GE(folders.size(), 3u);
  EXPECT_EQ(folders[0], root_.string() + "/first");
  EXPECT_EQ(folders[1], root_.string() + "/opt/a");
  EXPECT_EQ(folders[2], root_.string() + "/opt/b");
}

TEST_F(LibrarySearch, OneFileIsFoundOnceUnderItsFirstName) {
  write("opt/lib/libnccl.so.2.28.9", "no ELF");
  fs::create_symlink("libnccl.so.2.28.9", root_ / "opt/lib/libnccl.so.2");
  write("opt/lib/libnccl-net-x.so", "");
  write("opt/lib/libncurses.so", "");
  write("opt/lib/libnccl.txt", "");
  const auto found = find_libraries({(root_ / "opt/lib").string(), (root_ / "opt/lib").string()});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, "nccl_plugin");
  EXPECT_EQ(found[1].kind, "nccl");
  EXPECT_EQ(found[1].version, "2.28.9");
  EXPECT_EQ(found[1].from, "file name");
}

TEST_F(LibrarySearch, TheInterfaceNumberOfUcpIsNoVersion) {
  write("opt/lib/libucp.so.0.0.0", "");
  const auto found = find_libraries({(root_ / "opt/lib").string()});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "ucp");
  EXPECT_EQ(found[0].version, "");
}

TEST_F(LibrarySearch, VersionIsReadFromTheFilesOwnText) {
  std::string data((1 << 20) - 5, 'x');  // the text lies across the border of two reads
  write("opt/lib/libnccl.so.2", elf_with(data + "NCCL version 2.28.9+cuda13.0\nmore"));
  const auto version = nccl_version_in_file((root_ / "opt/lib/libnccl.so.2").string());
  EXPECT_EQ(version.nccl, "2.28.9");
  EXPECT_EQ(version.cuda, "13.0");
}

TEST_F(LibrarySearch, FormatTextsAreNoVersion) {
  write("opt/lib/libnccl.so.2", elf_with("NCCL version %d.%d.%d and NCCL version 2.19.3\n"));
  const auto version = nccl_version_in_file((root_ / "opt/lib/libnccl.so.2").string());
  EXPECT_EQ(version.nccl, "2.19.3");
  EXPECT_EQ(version.cuda, "");
}

TEST_F(LibrarySearch, BrokenFilesHaveNoVersion) {
  write("short",
        "\x7f"
        "ELF");
  auto elf = elf_with("NCCL version 2.1.1");
  elf[offsetof(Elf64_Ehdr, e_shoff) + 6] = '\x7f';
  write("far", elf);
  EXPECT_EQ(nccl_version_in_file((root_ / "short").string()).nccl, "");
  EXPECT_EQ(nccl_version_in_file((root_ / "far").string()).nccl, "");
  EXPECT_EQ(nccl_version_in_file((root_ / "absent").string()).nccl, "");
  EXPECT_EQ(nccl_version_in_file(root_.string()).nccl, "");
}

TEST(LibraryNames, Versions) {
  EXPECT_EQ(version_in_name("libnvidia-ml.so.580.159.04"), "580.159.04");
  EXPECT_EQ(version_in_name("libnccl.so.2"), "2");
  EXPECT_EQ(version_in_name("libnccl.so"), "");
  EXPECT_EQ(version_in_name("libnccl.so.old"), "");
}

}  // namespace
}  // namespace topotune::host
