// What the words of lspci mean: pci.ids of 2025 for the few vendors, classes and adapters that matter here.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "parse/lspci.h"

namespace topotune::parse {
namespace {

struct ClassName {
  std::string_view name;
  std::uint32_t code;
};
constexpr std::array kClasses = {
    ClassName{"Host bridge", 0x060000},
    ClassName{"ISA bridge", 0x060100},
    ClassName{"PCI bridge", 0x060400},
    ClassName{"Bridge", 0x068000},
    ClassName{"VGA compatible controller", 0x030000},
    ClassName{"3D controller", 0x030200},
    ClassName{"Display controller", 0x038000},
    ClassName{"Processing accelerators", 0x120000},
    ClassName{"Ethernet controller", 0x020000},
    ClassName{"Infiniband controller", 0x020700},
    ClassName{"InfiniBand", 0x020700},
    ClassName{"Network controller", 0x028000},
    ClassName{"Non-Volatile memory controller", 0x010800},
    ClassName{"RAID bus controller", 0x010400},
    ClassName{"SATA controller", 0x010600},
    ClassName{"SCSI storage controller", 0x010000},
    ClassName{"Serial Attached SCSI controller", 0x010700},
    ClassName{"Mass storage controller", 0x018000},
    ClassName{"Memory controller", 0x058000},
    ClassName{"Audio device", 0x040300},
    ClassName{"USB controller", 0x0c0300},
    ClassName{"SMBus", 0x0c0500},
    ClassName{"Serial bus controller", 0x0c8000},
    ClassName{"Communication controller", 0x078000},
    ClassName{"Serial controller", 0x070000},
    ClassName{"System peripheral", 0x088000},
    ClassName{"DMA controller", 0x080100},
    ClassName{"PIC", 0x080000},
    ClassName{"IOMMU", 0x080600},
    ClassName{"Performance counters", 0x110100},
    ClassName{"Signal processing controller", 0x118000},
    ClassName{"Encryption controller", 0x108000},
    ClassName{"Co-processor", 0x0b4000},
    ClassName{"Non-Essential Instrumentation", 0x130000},
    ClassName{"Unassigned class", 0xff0000},
    ClassName{"Unclassified device", 0x000000},
    ClassName{"Class", 0x000000},
};

struct VendorName {
  std::string_view name;
  std::uint16_t id;
};
constexpr std::array kVendors = {
    VendorName{"NVIDIA Corporation", 0x10de},
    VendorName{"nVidia Corporation", 0x10de},
    VendorName{"Mellanox Technologies", 0x15b3},
    VendorName{"Advanced Micro Devices, Inc. [AMD/ATI]", 0x1002},
    VendorName{"Advanced Micro Devices, Inc. [AMD]", 0x1022},
    VendorName{"Intel Corporation", 0x8086},
    VendorName{"Broadcom / LSI", 0x1000},
    VendorName{"LSI Logic", 0x1000},
    VendorName{"Broadcom Inc. and subsidiaries", 0x14e4},
    VendorName{"Broadcom Limited", 0x14e4},
    VendorName{"PLX Technology", 0x10b5},
    VendorName{"PMC-Sierra", 0x11f8},
    VendorName{"Microsemi", 0x11f8},
    VendorName{"Amazon.com, Inc.", 0x1d0f},
    VendorName{"Red Hat, Inc. Virtio", 0x1af4},
    VendorName{"Chelsio Communications", 0x1425},
    VendorName{"Pensando Systems", 0x1dd8},
};

// Whole endings first: "[ConnectX-6 Virtual Function]" is another device than "[ConnectX-6]".
struct AdapterName {
  std::string_view part;
  std::uint16_t id;
};
constexpr std::array kAdapters = {
    AdapterName{"MT27500 Family [ConnectX-3]", 0x1003},
    AdapterName{"MT27520 Family [ConnectX-3 Pro]", 0x1007},
    AdapterName{"MT27700 Family [ConnectX-4]", 0x1013},
    AdapterName{"MT27700 Family [ConnectX-4 Virtual Function]", 0x1014},
    AdapterName{"MT27710 Family [ConnectX-4 Lx]", 0x1015},
    AdapterName{"MT27710 Family [ConnectX-4 Lx Virtual Function]", 0x1016},
    AdapterName{"MT27800 Family [ConnectX-5]", 0x1017},
    AdapterName{"MT27800 Family [ConnectX-5 Virtual Function]", 0x1018},
    AdapterName{"MT28800 Family [ConnectX-5 Ex]", 0x1019},
    AdapterName{"MT28800 Family [ConnectX-5 Ex Virtual Function]", 0x101a},
    AdapterName{"MT28908 Family [ConnectX-6]", 0x101b},
    AdapterName{"MT28908 Family [ConnectX-6 Virtual Function]", 0x101c},
    AdapterName{"MT2892 Family [ConnectX-6 Dx]", 0x101d},
    AdapterName{"ConnectX Family mlx5Gen Virtual Function", 0x101e},
    AdapterName{"MT2894 Family [ConnectX-6 Lx]", 0x101f},
    AdapterName{"MT2910 Family [ConnectX-7]", 0x1021},
    AdapterName{"CX8 Family [ConnectX-8]", 0x1023},
    AdapterName{"MT42822 BlueField-2 integrated ConnectX-6 Dx network controller", 0xa2d6},
    AdapterName{"MT43244 BlueField-3 integrated ConnectX-7 network controller", 0xa2dc},
};

}  // namespace

std::optional<std::uint32_t> class_of_name(std::string_view name) {
  name = trim(name);
  for (const auto& known : kClasses) {
    if (iequals(known.name, name)) return known.code;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> vendor_of_name(std::string_view name) {
  for (const auto& known : kVendors) {
    if (name.starts_with(known.name)) return known.id;
  }
  return std::nullopt;
}

std::optional<std::uint16_t> device_of_name(std::string_view name) {
  for (const auto& known : kAdapters) {
    if (name.ends_with(known.part)) return known.id;
  }
  const auto at = name.rfind(" Device ");
  if (at == std::string_view::npos || name.size() - at != 12) return std::nullopt;
  return parse_int<std::uint16_t>(name.substr(at + 8), 16);
}

}  // namespace topotune::parse
