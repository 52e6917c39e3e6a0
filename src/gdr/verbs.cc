#include "gdr/verbs.h"

#include <array>

#include "base/text.h"
#include "host/modules.h"

namespace topotune::gdr {

namespace {

tl::unexpected<Fault> failed(const TopotuneVerbsFault& fault) {
  return tl::unexpected(Fault{fault.step, fault.number, fault.text});
}

}  // namespace

std::string words_of(const Fault& fault) {
  const bool named = fault.text.starts_with(fault.step);
  const char* const kind = fault.step == "completion"                                     ? "status"
                           : fault.step == "dma-buf export" || fault.step == "GPU memory" ? "CUDA"
                                                                                          : "errno";
  return fmt::format("{}{}{} ({} {})", named ? "" : fault.step, named ? "" : ": ", fault.text, kind,
                     fault.number);
}

const char* name_of(Op op) { return op == Op::write ? "write" : "read"; }

Tried<void> End::register_memory(void* address, std::size_t bytes, int dmabuf_fd) const {
  TopotuneVerbsFault fault{};
  if (module_->register_memory(handle_.get(), address, bytes, dmabuf_fd, &fault) != 0) return failed(fault);
  return {};
}

Tried<void> End::connect(const End& other) const {
  TopotuneVerbsFault fault{};
  if (module_->connect(handle_.get(), other.handle_.get(), &fault) != 0) return failed(fault);
  return {};
}

Tried<double> End::transfer(const End& other, const Move& move, double limit_seconds) const {
  TopotuneVerbsFault fault{};
  double seconds = 0;
  if (module_->transfer(handle_.get(), other.handle_.get(), move.op == Op::write ? 0 : 1, 0, move.to_offset,
                        move.bytes, move.count, move.window, limit_seconds, &seconds, &fault) != 0)
    return failed(fault);
  return seconds;
}

Result<Verbs> Verbs::open() {
  const auto library = host::open_module("libtopotune-verbs.so");
  if (!library) return tl::unexpected(library.error());
  const auto entry = reinterpret_cast<const TopotuneVerbs* (*)()>(library->symbol("topotune_verbs"));
  const auto* module = entry == nullptr ? nullptr : entry();
  if (module == nullptr || module->version != kVerbsModuleVersion)
    return fail(Errc::unsupported, "libtopotune-verbs.so beside the program is of another version of it");
  return Verbs(*module);
}

Tried<std::vector<std::string>> Verbs::devices() const {
  std::array<char, 4096> names{};
  TopotuneVerbsFault fault{};
  if (module_->devices(names.data(), names.size(), &fault) != 0) return failed(fault);
  std::vector<std::string> out;
  for (const auto name : split(names.data(), ' '))
    if (!name.empty()) out.emplace_back(name);
  return out;
}

Tried<End> Verbs::end(const std::string& device, int port, int gid_index) const {
  TopotuneVerbsFault fault{};
  void* const handle = module_->open(device.c_str(), port, gid_index, &fault);
  if (handle == nullptr) return failed(fault);
  return End(*module_, handle);
}

}  // namespace topotune::gdr
