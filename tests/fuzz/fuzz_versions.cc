#include <cstddef>
#include <cstdint>

#include "parse/versions.h"

// Texts of one value: any bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace topotune::parse;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)parse_driver_version_file(text);
  (void)parse_nvcc(text);
  (void)parse_kernel_command_line(text);
  (void)parse_uname(text);
  (void)parse_os_release(text);
  (void)parse_ofed_info(text);
  (void)parse_df_shm(text);
  return 0;
}
