#include "nccl/library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "host/shared_library.h"

namespace topotune::nccl {

namespace {

template <class F>
bool find(const host::SharedLibrary& library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(library.symbol(symbol));
  return function != nullptr;
}

Result<Library::Functions> functions_of(const host::SharedLibrary& library, const std::string& file) {
  Library::Functions f;
#define TOPOTUNE_FIND(member, symbol, parameters) \
  if (!find(library, symbol, f.member))           \
    return fail(Errc::unsupported, "{} has no {}: this NCCL is too old (2.7 or later)", file, symbol);
  TOPOTUNE_NCCL_FUNCTIONS(TOPOTUNE_FIND)
#undef TOPOTUNE_FIND
#define TOPOTUNE_FIND(member, symbol, parameters) find(library, symbol, f.member);
  TOPOTUNE_NCCL_OPTIONAL(TOPOTUNE_FIND)
#undef TOPOTUNE_FIND
  if (!find(library, "ncclGetErrorString", f.error_string))
    return fail(Errc::unsupported, "{} has no ncclGetErrorString", file);
  find(library, "ncclGetLastError", f.last_error);
  return f;
}

// The path that the loader chose.
std::string file_of(const host::SharedLibrary& library, const std::string& name) {
  Dl_info info{};
  void* const symbol = library.symbol("ncclGetVersion");
  if (symbol == nullptr || ::dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return name;
  return info.dli_fname;
}

}  // namespace

Result<Library> Library::load() {
  const char* chosen = std::getenv("TOPOTUNE_NCCL_LIBRARY");
  const std::string name = chosen == nullptr || *chosen == '\0' ? "libnccl.so.2" : chosen;
  const auto library = host::SharedLibrary::open(name.c_str());
  if (!library) {
    auto error = library.error();
    error.hint =
        "install NCCL, put its folder into LD_LIBRARY_PATH, or name the file in TOPOTUNE_NCCL_LIBRARY";
    return tl::unexpected(error);
  }
  Library out;
  out.file = file_of(*library, name);
  auto functions = functions_of(*library, out.file);
  if (!functions) return tl::unexpected(functions.error());
  out.f = *functions;
  if (auto ok = out.check(out.f.get_version(&out.version), "ncclGetVersion"); !ok)
    return tl::unexpected(ok.error());
  return out;
}

std::string Library::version_text() const {
  if (version < 10000) return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

Result<api::UniqueId> Library::unique_id() const {
  api::UniqueId id{};
  if (auto ok = check(f.get_unique_id(&id), "ncclGetUniqueId"); !ok) return tl::unexpected(ok.error());
  return id;
}

Result<void> Library::check(api::Rc rc, const std::string& what) const {
  if (rc == api::kSuccess) return {};
  const char* words = f.error_string(rc);
  const char* last = f.last_error == nullptr ? nullptr : f.last_error(nullptr);
  std::string text = fmt::format("{}: NCCL {}: {}", what, version_text(),
                                 words == nullptr ? fmt::format("error {}", rc) : words);
  if (last != nullptr && *last != '\0') {
    std::string line = last;
    while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
    text += ": " + line;
  }
  auto error = Error{Errc::io, text, {}, {}, {}, "NCCL_DEBUG=WARN makes NCCL print the cause"};
  return tl::unexpected(error);
}

}  // namespace topotune::nccl
