# Precompiled standard headers: a build takes less than half the time.
option(TOPOTUNE_PCH "precompile the standard headers" OFF)

# For what runs once in a process: CLI11's templates are a tenth of the program at -O3.
set(small_release $<$<CONFIG:Release>:-Os>)

# precompiled(TARGET KIND): TARGET uses the headers of KIND, `plain`, `test` (with GoogleTest) or `cli` (with CLI11).
function(precompiled target kind)
  if(NOT TOPOTUNE_PCH)
    return()
  endif()
  if(NOT TARGET precompiled_${kind})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc CONTENT "")
    add_library(precompiled_${kind} OBJECT ${PROJECT_BINARY_DIR}/precompiled_${kind}.cc)
    target_link_libraries(precompiled_${kind} PRIVATE topotune_options topotune_fmt tl::expected topotune_json)
    target_precompile_headers(precompiled_${kind} PRIVATE <algorithm> <array> <chrono> <cstdint> <filesystem> <fstream>
      <functional> <map> <memory> <optional> <set> <span> <sstream> <string> <string_view> <unordered_map> <utility>
      <variant> <vector> <fmt/format.h> <tl/expected.hpp> <nlohmann/json.hpp>)
    if(kind STREQUAL test)
      target_link_libraries(precompiled_test PRIVATE GTest::gtest GTest::gmock)
      target_precompile_headers(precompiled_test PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
    elseif(kind STREQUAL cli)
      target_link_libraries(precompiled_cli PRIVATE CLI11::CLI11)
      target_precompile_headers(precompiled_cli PRIVATE <CLI/CLI.hpp>)
      target_compile_options(precompiled_cli PRIVATE ${small_release})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM precompiled_${kind})
endfunction()
