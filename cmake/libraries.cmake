# Every library that is not ours. Static, so that the release binary runs where it is copied:
# it needs libc, libm and nothing else.
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(Threads REQUIRED)

add_library(topotune_json INTERFACE)
target_link_libraries(topotune_json INTERFACE nlohmann_json::nlohmann_json)

# fmt 9 is compiled here once; another version as headers.
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(topotune_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt.cc)
  target_compile_features(topotune_fmt PUBLIC cxx_std_20)
else()
  add_library(topotune_fmt INTERFACE)
  target_link_libraries(topotune_fmt INTERFACE fmt::fmt-header-only)
endif()

# static_library(NAME header archive): an imported static archive, searched by name.
function(static_library name header archive)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  string(REGEX REPLACE "^lib|\\.a$" "" shared ${archive})
  find_library(${name}_ARCHIVE NAMES ${archive} ${shared} REQUIRED)
  add_library(${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES IMPORTED_LOCATION ${${name}_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE})
endfunction()

static_library(pugixml_static pugixml.hpp libpugixml.a)
static_library(zstd_static zstd.h libzstd.a)
static_library(zlib_static zlib.h libz.a)
static_library(yaml_static yaml-cpp/yaml.h libyaml-cpp.a)
static_library(hwloc_static hwloc.h libhwloc.a)
add_library(topotune_no_udev STATIC ${CMAKE_CURRENT_LIST_DIR}/no_udev.cc)
target_link_libraries(hwloc_static INTERFACE topotune_no_udev m ${CMAKE_DL_LIBS} Threads::Threads)
