// The static unwinder of GCC 12 asks the C library's _dl_find_object (GLIBC_2.35) for the exception tables of an
// address. Answered here by dl_iterate_phdr instead, the program also starts where glibc is older (RHEL 9 has 2.34).
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>

#ifdef DLFO_EH_SEGMENT_TYPE  // glibc's header knows the call, so libgcc may use it

namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* result;
};

// 1 when the object holds the address: fills in where its exception table header (PT_GNU_EH_FRAME) is.
int look(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool holds = false;
  void* table = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search.address >= begin && search.address < begin + segment.p_memsz) {
      holds = true;
      search.result->dlfo_map_start = reinterpret_cast<void*>(begin);
      search.result->dlfo_map_end = reinterpret_cast<void*>(begin + segment.p_memsz);
    }
    if (segment.p_type == DLFO_EH_SEGMENT_TYPE) table = reinterpret_cast<void*>(begin);
  }
  if (!holds || table == nullptr) return 0;
  search.result->dlfo_eh_frame = table;
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"), used)) int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  Search search{reinterpret_cast<std::uintptr_t>(address), result};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

#endif

// libstdc++'s random_device, which nothing here uses, asks for arc4random (GLIBC_2.36).
extern "C" __attribute__((visibility("hidden"), used)) std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  (void)!::getrandom(&value, sizeof value, 0);
  return value;
}
