#include "host/nvml_json.h"
#include "host/options.h"
#include "host/probe_list.h"
#include "host/shared_library.h"

namespace topotune::host {

Result<std::string> probe_nvml(const ProbeQuestion&) {
  const auto library = SharedLibrary::open("libnvidia-ml.so.1");
  if (!library) return tl::unexpected(library.error());
  return nvml_json([&](const char* name) { return library->symbol(name); }, excluded_devices());
}

}  // namespace topotune::host
