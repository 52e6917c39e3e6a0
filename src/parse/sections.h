#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace topotune::parse {

// A text as people paste it, made plain: without terminal escapes and NULs (UTF-16 of ASCII becomes ASCII),
// byte order mark and quote marks ("> "), non-breaking blanks as blanks. Lines keep their numbers.
std::string plain_text(std::string_view text);

// The output of one command in a transcript. Without prompts and separators a text is one section without
// command.
struct Section {
  std::string command;  // "nvidia-smi topo -p2p r", "cat /proc/cmdline"; "" unknown
  int first_line = 1;   // number of the first line of `text` in the whole
  std::string_view text;
};

// Splits at shell prompts ("$ ibstat", "root@host:~# ibstat", "+ ibstat"), separators that name a command or
// file
// ("=== ibstat ===", "==> /proc/cmdline <=="), code fences and lines that are nothing but a usual command.
// Views into `text`, which must be plain. Sections without any text are left out.
std::vector<Section> split_sections(std::string_view text);

}  // namespace topotune::parse
