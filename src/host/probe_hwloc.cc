#include <hwloc.h>

#include <cstdlib>
#include <memory>

#include "host/probe_list.h"

namespace topotune::host {
namespace {

// hwloc takes the folder that stands for "/" from the environment only, so the variables hold for one load.
class FolderEnvironment {
 public:
  explicit FolderEnvironment(const std::string& folder) : set_(!folder.empty()) {
    if (!set_) return;
    ::setenv("HWLOC_FSROOT", folder.c_str(), 1);
    ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  }
  FolderEnvironment(const FolderEnvironment&) = delete;
  FolderEnvironment& operator=(const FolderEnvironment&) = delete;
  ~FolderEnvironment() {
    if (!set_) return;
    ::unsetenv("HWLOC_FSROOT");
    ::unsetenv("HWLOC_COMPONENTS");
  }

 private:
  bool set_;
};

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Destroy>;

Result<Topology> load(const ProbeQuestion& question) {
  const FolderEnvironment environment(question.sysroot);
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return fail(Errc::io, "hwloc_topology_init failed");
  Topology topology(made);
  // The x86 component binds itself to each CPU in turn; the kernel's files tell the same without that.
  hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_icache_types_filter(made, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(made) != 0) return fail(Errc::unsupported, "hwloc_topology_load failed");
  return topology;
}

}  // namespace

Result<std::string> probe_hwloc(const ProbeQuestion& question) {
  const auto topology = load(question);
  if (!topology) return tl::unexpected(topology.error());
  char* buffer = nullptr;
  int length = 0;
  if (hwloc_topology_export_xmlbuffer(topology->get(), &buffer, &length, 0) != 0)
    return fail(Errc::io, "hwloc_topology_export_xmlbuffer failed");
  std::string out(buffer, length > 0 ? static_cast<std::size_t>(length) - 1 : 0);  // without the closing NUL
  hwloc_free_xmlbuffer(topology->get(), buffer);
  return out;
}

}  // namespace topotune::host
