#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace topotune::parse {

enum class LogLevel { info, warn, call, trace, banner };

// One statement of the library, without what NCCL, launchers and log collectors put in front of it.
struct LogRecord {
  LogLevel level = LogLevel::info;
  std::string_view host;  // "" unknown
  std::optional<int> pid, dev;
  std::string_view source;   // "misc/ibvwrap.cc:63", of warnings
  std::string_view time;     // "2025-05-10 23:09:41", where the line has one
  std::string_view message;  // leading blanks of the message kept, ends trimmed
  bool shared_line = false;  // other text or another record stands on the same line before it
};

// Names of hosts met so far: they tell where a record starts that was glued to other text.
class KnownHosts {
 public:
  void add(std::string_view host);
  // The longest known host that `token` ends with; "" when there is none.
  std::string_view longest_suffix(std::string_view token) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_set<std::string, Hash, std::equal_to<>> names_;
};

// Takes the records of one line from left to right. NCCL's prefix (src/debug.cc) is "host:pid:tid [cudaDev]
// NCCL INFO ", for warnings "host:pid:tid [cudaDev] file:line (func) NCCL WARN "; up to 2.2 without the word
// NCCL. Everything before it (mpirun and Slurm tags, time stamps, quotes, escapes, line numbers) is passed
// over.
class RecordReader {
 public:
  RecordReader(std::string_view line, const KnownHosts& hosts) : line_(line), hosts_(hosts) {}

  bool next(LogRecord& record);
  // What stands before the first record; the whole line when there is none.
  std::string_view foreign() const { return foreign_; }
  // Length of "host:pid:tid [dev", with a launcher's tag before it, when the line begins so and goes on with
  // "] NCCL INFO "; else 0. Other lines may begin with the same text.
  std::size_t head_length() const { return head_length_; }

 private:
  struct Mark {
    std::size_t start = 0, message = 0;  // of the record and of its message
    LogRecord record;
  };
  bool find_mark(std::size_t from, Mark& mark) const;
  bool find_old_mark(Mark& mark) const;
  bool fast_head(Mark& mark) const;
  bool mark_at(std::size_t word, Mark& mark) const;
  bool banner_at(std::size_t word, Mark& mark) const;
  bool read_head(std::size_t end, std::size_t floor, Mark& mark) const;
  void fix_glued_host(Mark& mark) const;
  std::size_t repeated_head(const Mark& mark) const;

  std::string_view line_;
  const KnownHosts& hosts_;
  std::string_view foreign_;
  std::size_t floor_ = 0;  // records start at or after this
  Mark ahead_;
  bool started_ = false, more_ = false;
  std::size_t head_length_ = 0;
};

// A line of a log collector (Docker, Kubernetes, cloud logging) wraps the text in JSON: the text, unescaped.
// Nothing when the line is no such thing.
std::optional<std::string> unwrap_json_line(std::string_view line);

// Trailing blanks, CR, NUL, markdown asterisks and a colour reset.
std::string_view trim_message_end(std::string_view text);

}  // namespace topotune::parse
