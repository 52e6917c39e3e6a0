#include "nccl/choices.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>

#include "parse/nccl_log.h"

namespace topotune::nccl {

namespace {

// A file that goes with the process.
struct TemporaryFile {
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    name = std::string(folder == nullptr || *folder == '\0' ? "/tmp" : folder) + "/topotune-nccl.XXXXXX";
    const int fd = ::mkstemp(name.data());
    if (fd >= 0)
      ::close(fd);
    else
      name.clear();
  }
  ~TemporaryFile() {
    if (!name.empty()) ::unlink(name.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string name;
};

std::string text_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

[[noreturn]] void be_the_child(const std::function<Result<void>()>& work, const std::string& log,
                               int error_fd) {
  ::setenv("NCCL_DEBUG", "INFO", 1);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT,ENV,TUNING", 1);
  ::setenv("NCCL_DEBUG_FILE", log.c_str(), 1);
  const auto ok = work();
  if (!ok) {
    const auto& text = ok.error().text;
    static_cast<void>(!::write(error_fd, text.data(), text.size()));
  }
  ::_exit(ok ? 0 : 1);
}

// The child's status; nothing: it did not end in time and was killed.
std::optional<int> await(pid_t child, double limit_seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_seconds);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      for (int i = 0; i < 100 && ::waitpid(child, &status, WNOHANG) == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status;
}

}  // namespace

Result<std::string> log_of(const std::function<Result<void>()>& work, double limit_seconds) {
  const TemporaryFile log;
  int ends[2] = {-1, -1};
  if (log.name.empty() || ::pipe(ends) != 0) return fail(Errc::io, "no temporary file for NCCL's log");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_the_child(work, log.name, ends[1]);
  }
  ::close(ends[1]);
  const auto status = child < 0 ? std::optional<int>(-1) : await(child, limit_seconds);
  std::string why(4096, '\0');
  const auto got = status ? ::read(ends[0], why.data(), why.size()) : 0;
  ::close(ends[0]);
  why.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!status) return fail(Errc::timed_out, "NCCL's choices were not logged within {:g} s", limit_seconds);
  if (!why.empty()) return fail(Errc::io, "{}", why);
  if (*status != 0) return fail(Errc::io, "the process that logs NCCL's choices died");
  return text_of(log.name);
}

namespace {

// The bytes that the line of a choice counts: elements of the call, or, in some versions, of the whole
// buffer.
bool fits(const model::LogTuning& line, const coll::Question& q, int ranks, bool whole) {
  if (line.op.value_or("") != coll::nccl_name_of(q.op)) return false;
  const auto counts = coll::counts_of(q, ranks);
  const auto elements = whole ? std::max(counts.send, counts.recv) : counts.argument;
  return line.bytes == elements * coll::size_of(q.type);
}

std::optional<coll::Choice> choice_of(const model::NcclLog& log, const coll::Question& q, int ranks) {
  for (const bool whole : {false, true}) {
    std::optional<coll::Choice> found;
    bool two = false;
    for (const auto& line : log.tuning) {
      if (!fits(line, q, ranks, whole)) continue;
      coll::Choice choice{line.algorithm, line.protocol, {}};
      if (line.first_channel && line.last_channel)
        choice.channels = *line.last_channel - *line.first_channel + 1;
      two = two || (found && (found->algorithm != choice.algorithm || found->protocol != choice.protocol));
      if (found && found->channels != choice.channels) choice.channels.reset();
      found = choice;
    }
    if (found && !two) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<coll::Choice> choice_in(const std::string& log, const coll::Question& question, int ranks) {
  return choice_of(parse::parse_nccl_log(log), question, ranks);
}

std::vector<std::optional<coll::Choice>> choices_in(const std::string& log,
                                                    const std::vector<coll::Question>& questions, int ranks) {
  const auto parsed = parse::parse_nccl_log(log);
  std::vector<std::optional<coll::Choice>> out;
  for (const auto& q : questions) out.push_back(choice_of(parsed, q, ranks));
  return out;
}

}  // namespace topotune::nccl
