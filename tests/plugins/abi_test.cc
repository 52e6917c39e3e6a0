#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

#include "loader.h"
#include "plugins/profiler_api.h"
#include "plugins/tuner_api.h"

namespace {

// The names that a library exports, as nm tells them; empty without nm.
std::set<std::string> exported(const char* path) {
  std::set<std::string> out;
  std::FILE* pipe = ::popen((std::string("nm -D --defined-only ") + path + " 2>/dev/null").c_str(), "r");
  char address[64], kind[8], name[512];
  while (pipe != nullptr && std::fscanf(pipe, "%63s %7s %511s", address, kind, name) == 3) out.insert(name);
  if (pipe != nullptr) ::pclose(pipe);
  return out;
}

TEST(Abi, ExportsItsVersionsAndNothingElse) {
  const auto tuner = exported(TOPOTUNE_TUNER);
  if (tuner.empty()) GTEST_SKIP() << "no nm here";
  EXPECT_EQ(tuner,
            (std::set<std::string>{"ncclTunerPlugin_v2", "ncclTunerPlugin_v3", "ncclTunerPlugin_v4",
                                   "ncclTunerPlugin_v5", "ncclTunerPlugin_v6", "topotune_tuner_control",
                                   "topotune_tuner_force", "topotune_tuner_last", "topotune_tuner_release",
                                   "topotune_tuner_said", "topotune_tuner_shape", "topotune_tuner_watch"}));
  EXPECT_EQ(exported(TOPOTUNE_PROFILER),
            (std::set<std::string>{"ncclProfiler_v1", "ncclProfiler_v2", "ncclProfiler_v3", "ncclProfiler_v4",
                                   "ncclProfiler_v5", "ncclProfiler_v6", "topotune_profiler_pause"}));
  EXPECT_EQ(exported(TOPOTUNE_ENV), (std::set<std::string>{"ncclEnvPlugin_v1", "ncclEnvPlugin_v2"}));
}

TEST(Abi, NameStandsFirst) {
  const loader::Library tuner(TOPOTUNE_TUNER), profiler(TOPOTUNE_PROFILER);
  for (const char* symbol : {"ncclTunerPlugin_v2", "ncclTunerPlugin_v3", "ncclTunerPlugin_v4",
                             "ncclTunerPlugin_v5", "ncclTunerPlugin_v6"})
    EXPECT_STREQ(*tuner.get<const char*>(symbol), "topotune") << symbol;
  for (const char* symbol : {"ncclProfiler_v1", "ncclProfiler_v2", "ncclProfiler_v3", "ncclProfiler_v4",
                             "ncclProfiler_v5", "ncclProfiler_v6"})
    EXPECT_STREQ(*profiler.get<const char*>(symbol), "topotune") << symbol;
  EXPECT_EQ(tuner.get<topotune::plugins::TunerV6>("ncclTunerPlugin_v6")->get_chunk_size, nullptr);
}

// No symbol newer than GLIBC_2.34, and no C++ library.
TEST(Abi, LoadsAnywhere) {
#ifdef TOPOTUNE_SANITIZED
  GTEST_SKIP() << "a sanitizer's runtime is linked in";
#endif
  for (const char* path : {TOPOTUNE_TUNER, TOPOTUNE_PROFILER, TOPOTUNE_ENV}) {
    std::FILE* pipe = ::popen((std::string("objdump -p -T ") + path + " 2>/dev/null").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[1024];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
      const std::string text = line;
      EXPECT_EQ(text.find("libstdc++"), std::string::npos) << text;
      int minor = 0;
      if (const auto at = text.find("GLIBC_2.");
          at != std::string::npos && std::sscanf(line + at, "GLIBC_2.%d", &minor) == 1) {
        EXPECT_LE(minor, 34) << text;
      }
    }
    ::pclose(pipe);
  }
}

}  // namespace
