#include "host/reader.h"

#include <sys/socket.h>

#include <array>

#include "host/encoding.h"
#include "host/files.h"

namespace topotune::host {

namespace {

constexpr Milliseconds kForever{3'600'000};

// The child: one message in (a byte for the call, the path), one out.
[[noreturn]] void serve() {
  for (;;) {
    const auto question = receive_message(kHelperFd, Deadline(kForever));
    if (!question && question.error().code == Errc::timed_out) continue;
    if (!question || question->empty()) ::_exit(0);
    const auto path = question->substr(1);
    if (!send_message(kHelperFd, pack(answer_here(static_cast<Call>(question->front()), path, path))))
      ::_exit(0);
  }
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

}  // namespace

Answer answer_here(Call call, const std::string& path, std::string_view shown) {
  if (call == Call::list) return list_folder(path, shown).map(join_names);
  if (call == Call::link) return read_link(path, shown);
  return read_file(path, shown);
}

Reader::~Reader() { stop(); }

bool Reader::start() {
  if (pid_ > 0) return true;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  Fd ours(ends[0]), theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    become_helper(theirs.get());
    serve();
  }
  if (pid_ > 0) socket_ = std::move(ours);
  return pid_ > 0;
}

void Reader::stop() {
  socket_.reset();
  if (pid_ > 0) dismiss(pid_);
  pid_ = -1;
}

bool Reader::hung_below(const std::string& path) const {
  for (auto folder = folder_of(path); !folder.empty(); folder = folder_of(folder)) {
    if (hung_.contains(folder)) return true;
  }
  return false;
}

Answer Reader::ask(Call call, const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (hung_below(path)) return fail(Errc::timed_out, "{}: not asked, a file beside it hung", path);
  if (hung_.size() >= kMaxHung)
    return fail(Errc::timed_out, "{}: not asked, {} other files hung", path, kMaxHung);
  if (!start()) return answer_here(call, path, path);
  auto answer = ask_child(call, path);
  if (answer || answer.error().code != Errc::io || pid_ > 0) return answer;
  return start() ? ask_child(call, path) : answer_here(call, path, path);  // the child was killed: once more
}

// Leaves pid_ > 0 exactly when the child answered.
Answer Reader::ask_child(Call call, const std::string& path) {
  send_message(socket_.get(), std::string(1, static_cast<char>(call)) + path);
  const auto message = receive_message(socket_.get(), Deadline(limit_));
  if (message) return unpack(*message);
  stop();
  if (message.error().code != Errc::timed_out) return fail(Errc::io, "{}: the reading process ended", path);
  hung_.insert(folder_of(path));
  return fail(Errc::timed_out, "{}: no answer within {} s", path, static_cast<double>(limit_.count()) / 1000);
}

}  // namespace topotune::host
