#include "host/shared_library.h"

#include <dlfcn.h>

namespace topotune::host {

Result<SharedLibrary> SharedLibrary::open(const char* name) {
  if (void* const handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return SharedLibrary(handle);
  const char* const said = ::dlerror();
  const std::string text = said == nullptr ? "cannot be loaded" : said;
  const bool absent = text.find("No such file") != std::string::npos && text.starts_with(name);
  return fail(absent ? Errc::not_found : Errc::unsupported, "{}",
              absent ? std::string(name) + ": not found" : text);
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace topotune::host
