// The first byte selects one of the small parsers of kernel texts; the rest is its input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parse/pci_text.h"
#include "parse/sysfs_pci.h"
#include "parse/sysfs_proc.h"
#include "parse/sysfs_rdma.h"

using namespace topotune::parse;

static void pci(unsigned which, std::string_view text) {
  switch (which) {
    case 0:
      parse_link_speed(text);
      break;
    case 1:
      parse_link_width(text);
      break;
    case 2:
      parse_pci_class(text);
      break;
    case 3:
      parse_numa_node(text);
      break;
    case 4:
      parse_pci_link(text);
      break;
    case 5:
      last_pci_address(text);
      break;
    default:
      parse_pci_config(text);
      break;
  }
}

static void proc(unsigned which, std::string_view text) {
  switch (which) {
    case 0:
      parse_proc_limit(text, "Max locked memory");
      break;
    case 1:
      parse_proc_status(text);
      break;
    case 2:
      parse_cpuinfo(text);
      break;
    case 3:
      parse_proc_modules(text);
      break;
    case 4:
      parse_proc_cgroup(text);
      break;
    case 5:
      parse_root_file_system(text);
      break;
    case 6:
      parse_uid_map(text);
      break;
    case 7:
      parse_pretty_name(text);
      break;
    case 8:
      parse_nvidia_version(text);
      break;
    case 9:
      parse_bracketed(text);
      break;
    case 10:
      parse_node_memory(text);
      break;
    case 11:
      parse_distances(text);
      break;
    default:
      device_faults(text, 100);
      break;
  }
}

static void rdma(unsigned which, std::string_view text) {
  switch (which) {
    case 0:
      parse_numbered_word(text);
      break;
    case 1:
      parse_rate(text);
      break;
    case 2:
      parse_lid(text);
      break;
    case 3:
      parse_gid(text);
      break;
    default:
      parse_counter(text);
      break;
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned which = data[0];
  if (which < 64)
    pci(which % 7, text);
  else if (which < 192)
    proc(which % 13, text);
  else
    rdma(which % 5, text);
  return 0;
}
