#include "cuda/driver.h"

#include <cstdlib>

#include "host/shared_library.h"

namespace topotune::cuda {

namespace {

template <class F>
bool find(const host::SharedLibrary& library, const char* symbol, F& function) {
  function = reinterpret_cast<F>(library.symbol(symbol));
  return function != nullptr;
}

Result<Driver::Functions> functions_of(const host::SharedLibrary& library) {
  Driver::Functions f;
#define TOPOTUNE_FIND(member, symbol, parameters) \
  if (!find(library, symbol, f.member))           \
    return fail(Errc::unsupported, "libcuda.so.1 has no {}: the driver is too old for this", symbol);
  TOPOTUNE_CUDA_FUNCTIONS(TOPOTUNE_FIND)
#undef TOPOTUNE_FIND
#define TOPOTUNE_FIND(member, symbol, parameters) find(library, symbol, f.member);
  TOPOTUNE_CUDA_OPTIONAL(TOPOTUNE_FIND)
#undef TOPOTUNE_FIND
  if (!find(library, "cuStreamWaitValue32_v2", f.stream_wait_value))
    find(library, "cuStreamWaitValue32", f.stream_wait_value);
  return f;
}

}  // namespace

Result<Driver> Driver::load() {
  // The order of nvidia-smi and of PCI addresses, unless the user chose another.
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  const auto library = host::SharedLibrary::open("libcuda.so.1");
  if (!library) return tl::unexpected(library.error());
  auto functions = functions_of(*library);
  if (!functions) return tl::unexpected(functions.error());
  Driver driver;
  driver.f = *functions;
  if (auto ok = driver.check(driver.f.init(0), "cuInit"); !ok) {
    ok.error().code = Errc::unsupported;
    return tl::unexpected(ok.error());
  }
  driver.f.driver_version(&driver.version);
  return driver;
}

std::string Driver::words_for(api::Rc rc) const {
  const char* name = nullptr;
  const char* text = nullptr;
  f.error_name(rc, &name);
  f.error_string(rc, &text);
  if (name == nullptr) return fmt::format("CUDA error {}", rc);
  return fmt::format("{} ({})", text == nullptr ? "" : text, name);
}

Result<void> Driver::check(api::Rc rc, const std::string& what) const {
  if (rc == api::kSuccess) return {};
  return fail(Errc::io, "{}: {}", what, words_for(rc));
}

std::string Driver::version_text() const { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace topotune::cuda
