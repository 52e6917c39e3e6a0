// What this machine tells about who it is: the part of redaction that no capture holds.
#include <pwd.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "host/redact.h"

namespace topotune::host {

namespace {

Salt random_salt() {
  Salt salt{};
  if (::getrandom(salt.data(), sizeof salt, 0) == static_cast<ssize_t>(sizeof salt)) return salt;
  // A kernel without the call: its device. std::random_device would bind the program to a newer C library.
  if (std::FILE* device = std::fopen("/dev/urandom", "rb"); device != nullptr) {
    const auto read = std::fread(salt.data(), sizeof salt, 1, device);
    std::fclose(device);
    if (read == 1) return salt;
  }
  std::fputs("topotune: no source of random numbers: nothing can be redacted safely\n", stderr);
  std::abort();
}

void add_user(std::vector<std::string>& names, uid_t uid) {
  if (const passwd* entry = ::getpwuid(uid); entry != nullptr && uid != 0) names.emplace_back(entry->pw_name);
}

}  // namespace

RedactOptions redact_options_here() {
  RedactOptions out;
  out.salt = random_salt();
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) out.host_names.emplace_back(name.data());
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (const char* value = std::getenv(variable); value != nullptr) out.user_names.emplace_back(value);
  }
  add_user(out.user_names, ::getuid());
  add_user(out.user_names, ::geteuid());
  return out;
}

}  // namespace topotune::host
