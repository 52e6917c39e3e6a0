#pragma once

#include <string>
#include <vector>

namespace topotune::host {

// A shared library that the loader could find. Nothing is loaded to learn it.
struct FoundLibrary {
  std::string kind;     // "nccl", "nccl_plugin", "rccl", "cudart", "ucp", "cuda", "nvml", "ibverbs"
  std::string path;     // as found: "/usr/lib/x86_64-linux-gnu/libnccl.so.2"
  std::string file;     // the file behind the links
  std::string version;  // "2.28.9"; "" unknown
  std::string cuda;     // CUDA that NCCL was built with, "13.0"; "" unknown
  std::string from;     // "file name" or "version text in the file"; "" without a version
};

// The folders that the loader searches, in its order: `library_path` (LD_LIBRARY_PATH), those of
// /etc/ld.so.conf and the system's own. `sysroot` is put before each.
std::vector<std::string> library_folders(const std::string& sysroot, const std::string& library_path);

// The known libraries in those folders, each file once, in the order of search.
std::vector<FoundLibrary> find_libraries(const std::vector<std::string>& folders);

// "libnccl.so.2.28.9" -> "2.28.9"; "libnccl.so.2" -> "2"; "libnccl.so" -> "".
std::string version_in_name(const std::string& name);

// The text "NCCL version 2.28.9+cuda13.0" in the read-only data of an ELF file: {"2.28.9", "13.0"}; empty
// without it.
struct NcclVersion {
  std::string nccl, cuda;
};
NcclVersion nccl_version_in_file(const std::string& path);

}  // namespace topotune::host
