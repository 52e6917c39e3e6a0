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
if(TOPOTUNE_FUZZ)
  target_compile_options(topotune_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
