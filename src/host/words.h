#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace topotune::host {

// Names to be replaced wherever they stand as a word of their own (letters and digits on neither side),
// without regard to case. Linear in the text for any number of names.
class Words {
 public:
  // Where a word counts.
  enum class Where {
    everywhere,
    // Not in "/sys/...", "/proc/...", "/usr/..." and relative links ("node0" is also a folder there), nor in
    // the keys of JSON and XML ("dev" of "dev_port").
    not_in_system_paths,
    in_paths_and_logins,  // only behind '/' or '~', before '@', or after "user" (names of home folders may be
                          // any word)
  };

  // The first stand-in of a name counts. Ignored: names that do not begin with a letter or digit.
  void add(std::string_view name, std::string stand_in, Where where);
  bool has(std::string_view name) const;
  std::string replace(std::string_view text) const;

 private:
  struct Word {
    std::string name;  // lower case
    std::string stand_in;
    Where where;
  };
  const Word* word_at(std::string_view text, std::string_view lower, std::size_t i) const;

  std::map<std::string, std::vector<Word>, std::less<>>
      by_first_;  // by the name's first run of letters and digits
};

}  // namespace topotune::host
