#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tune/decide.h"
#include "tune/table.h"

// What is accepted is written and read back as the same text, and may be asked for anything.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = topotune::tune::parse_table(text);
  if (!parsed.table) {
    if (parsed.error.text.empty()) std::abort();
    return 0;
  }
  const auto written = topotune::tune::write_table(*parsed.table);
  const auto again = topotune::tune::parse_table(written);
  if (again.table && topotune::tune::write_table(*again.table) != written) std::abort();
  const topotune::tune::Decider decider(*parsed.table, 2, 1);
  for (const auto& r : parsed.table->regions) {
    const auto* choice = decider.choice(static_cast<int>(r.collective), r.from);
    if (r.ranks == 2 && r.nodes == 1 && choice == nullptr) std::abort();
  }
  return 0;
}
