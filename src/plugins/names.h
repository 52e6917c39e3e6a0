#pragma once

#include <atomic>
#include <cstdint>

#include "plugins/profile_format.h"

namespace topotune::plugins {

// NCCL's numbers of what it names in its events, kUnknown for other names; older interfaces hand the numbers
// over. NCCL's names are constants, one address each: the newest of a kind is known again by its address
// alone.
class Names {
 public:
  void forget() { function_ = type_ = algorithm_ = protocol_ = 0; }  // addresses of a NCCL that is gone
  std::uint8_t function(const char* name) { return known(name, function_, look_up_function); }
  std::uint8_t type(const char* name) { return known(name, type_, look_up_type); }
  std::uint8_t algorithm(const char* name) { return known(name, algorithm_, look_up_algorithm); }
  std::uint8_t protocol(const char* name) { return known(name, protocol_, look_up_protocol); }
  static std::uint8_t function(std::uint8_t number) { return number; }
  static std::uint8_t type(std::uint8_t number) { return number; }
  static std::uint8_t algorithm(std::uint8_t number) { return number; }
  static std::uint8_t protocol(std::uint8_t number) { return number; }

 private:
  using Known = std::atomic<std::uint64_t>;  // address << 8 | number
  static std::uint8_t known(const char* name, Known& newest, std::uint8_t (*look_up)(const char*)) {
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(name) << 8;
    const auto word = newest.load(std::memory_order_relaxed);
    if (word >> 8 == address >> 8 && word != 0) [[likely]]
      return static_cast<std::uint8_t>(word);
    const std::uint8_t number = look_up(name);
    if (number != kUnknown) newest.store(address | number, std::memory_order_relaxed);
    return number;
  }
  static std::uint8_t look_up_function(const char*name), look_up_type(const char*name),
      look_up_algorithm(const char*name), look_up_protocol(const char*name);

  Known function_{0}, type_{0}, algorithm_{0}, protocol_{0};
};

std::uint64_t bytes_of(std::uint64_t count, std::uint8_t type);  // 0: a type that is not known

}  // namespace topotune::plugins
