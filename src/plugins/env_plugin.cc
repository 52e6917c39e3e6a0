// libnccl-env-topotune.so: a tuning table's settings for whole communicators, and the tuner plugin that lies
// beside this file, for jobs that name nothing but the table. What the process itself sets comes first; a
// table that may not be used here changes nothing.
#include <dlfcn.h>
#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "plugins/env_api.h"
#include "plugins/memory.h"
#include "plugins/table_file.h"

#define TOPOTUNE_EXPORT __attribute__((visibility("default")))

namespace topotune::plugins {

namespace {

struct Variable {
  char name[32];
  char value[4096];
};
// Written by init, before NCCL asks for anything, and never again: what get_env() returned stays valid for
// ever.
constexpr std::size_t kMost = 8;
Variable variables[kMost];
std::atomic<std::size_t> count{0};
std::string made_for;  // the NCCL that they are for
std::mutex starting;

void set(const std::string& name, const std::string& value) {
  if (count == kMost || name.size() >= sizeof(Variable::name) || value.size() >= sizeof(Variable::value))
    return;
  std::memcpy(variables[count].name, name.c_str(), name.size() + 1);
  std::memcpy(variables[count].value, value.c_str(), value.size() + 1);
  ++count;
}

// "" where it is not there.
std::string tuner_beside_this() {
  Dl_info info{};
  if (::dladdr(&variables, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string self = info.dli_fname;
  const auto slash = self.rfind('/');
  if (slash == std::string::npos) return "";
  const auto path = self.substr(0, slash) + "/libnccl-tuner-topotune.so";
  return ::access(path.c_str(), R_OK) == 0 ? path : "";
}

// Stands in for NCCL's log, which interface v1 does not give: for those who asked for it.
void log_alone(int, unsigned long, const char*, int, const char* format, ...) {
  const char* level = std::getenv("NCCL_DEBUG");
  if (level == nullptr || (::strcasecmp(level, "INFO") != 0 && ::strcasecmp(level, "TRACE") != 0)) return;
  std::va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
}

Rc start(int major, int minor, int patch, Logger log) noexcept {
  const std::lock_guard one(starting);
  const auto out_of_memory = [log] {
    if (made_for.empty()) count = 0;
    if (log != nullptr) log(kLogInfo, kLogInit, "topotune", __LINE__, "topotune env: off: out of memory");
    return kSuccess;
  };
  if (!memory_is_there()) return out_of_memory();
  try {
    const auto version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    if (made_for == version) return kSuccess;
    if (!made_for.empty()) {  // who asks cannot be told apart
      count = 0;
      if (log != nullptr)
        log(kLogInfo, kLogInit, "topotune", __LINE__, "topotune env: off: this process has NCCL %s and %s",
            made_for.c_str(), version.c_str());
      return kSuccess;
    }
    const auto settings = TunerSettings::from_environment();
    const auto loaded = load_table(settings);
    std::string off = loaded.off.empty() ? other_nccl(loaded, settings, version) : loaded.off;
    // Ranks whose communicators have different numbers of thread blocks hang: one node's table says nothing
    // of the others.
    if (off.empty() && !loaded.table->settings.empty() && !settings.whole_job && !job_is_on_one_node())
      off = "all ranks need the table's " + loaded.table->settings.front().name +
            ": TOPOTUNE_TUNER_HASH does not say that they have it, and no launcher that there is one node";
    std::string said = "off: " + off;
    if (off.empty()) {
      for (const auto& s : loaded.table->settings) set(s.name, std::to_string(s.value));
      if (const auto tuner = tuner_beside_this(); !tuner.empty()) set("NCCL_TUNER_PLUGIN", tuner);
      made_for = version;
      said =
          "table hash " + tune::hash_text(loaded.hash) + ", " + std::to_string(count.load()) + " variables";
    }
    if (log != nullptr) log(kLogInfo, kLogInit, "topotune", __LINE__, "topotune env: %s", said.c_str());
  } catch (...) {
    return out_of_memory();
  }
  return kSuccess;
}

Rc init_v1(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char*) {
  return start(major, minor, patch, log_alone);
}

Rc init_v2(std::uint8_t major, std::uint8_t minor, std::uint8_t patch, const char*, Logger log) {
  return start(major, minor, patch, log);
}

Rc finalize() { return kSuccess; }

const char* get_env(const char* name) {
  if (name == nullptr) return nullptr;
  if (const char* value = std::getenv(name)) return value;
  for (std::size_t i = 0; i < count; ++i)
    if (std::strcmp(variables[i].name, name) == 0) return variables[i].value;
  return nullptr;
}

}  // namespace

}  // namespace topotune::plugins

namespace plugins = topotune::plugins;

extern "C" {
TOPOTUNE_EXPORT extern plugins::EnvV1 ncclEnvPlugin_v1;
TOPOTUNE_EXPORT extern plugins::EnvV2 ncclEnvPlugin_v2;
plugins::EnvV1 ncclEnvPlugin_v1 = {"topotune", plugins::init_v1, plugins::finalize, plugins::get_env};
plugins::EnvV2 ncclEnvPlugin_v2 = {"topotune", plugins::init_v2, plugins::finalize, plugins::get_env};
}
