# Flags that hold for every target.
add_library(topotune_options INTERFACE)
target_compile_options(topotune_options INTERFACE
  -Wall -Wextra -Werror -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  -Wunused -Woverloaded-virtual -Wnull-dereference -fno-omit-frame-pointer)
# GCC 12 reports false positives of these in -O2 builds of std::optional and std::string.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(topotune_options INTERFACE
    -Wno-null-dereference -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()
target_compile_definitions(topotune_options INTERFACE TOPOTUNE_VERSION="${PROJECT_VERSION}")
target_include_directories(topotune_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
if(TOPOTUNE_SANITIZE)
  target_compile_options(topotune_options INTERFACE -fsanitize=${TOPOTUNE_SANITIZE} -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # drivers' functions are called by our own declarations of them
    target_compile_options(topotune_options INTERFACE -fno-sanitize=function)
  endif()
  target_link_options(topotune_options INTERFACE -fsanitize=${TOPOTUNE_SANITIZE})
endif()
# ON: libFuzzer also follows comparisons; FAST: only counters, twice the executions a second, for long campaigns.
if(TOPOTUNE_FUZZ)
  set(coverage -fsanitize=fuzzer-no-link)
  if(TOPOTUNE_FUZZ STREQUAL FAST)
    set(coverage -fsanitize-coverage=inline-8bit-counters,pc-table)
  endif()
  target_compile_options(topotune_options INTERFACE
    ${coverage} -fsanitize-coverage-ignorelist=${PROJECT_SOURCE_DIR}/cmake/fuzz_ignore.txt)
endif()
