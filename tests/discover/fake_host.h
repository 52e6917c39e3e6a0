#pragma once

#include <map>
#include <set>
#include <string>

#include "host/host.h"

namespace topotune::discover {

// A machine of a few texts. Folders follow from the files and links below them; what is not here is not
// found.
class FakeHost final : public host::Host {
 public:
  FakeHost() = default;
  explicit FakeHost(void (*fill)(FakeHost&)) { fill(*this); }

  std::map<std::string, std::string> files, links, probes, programs;
  std::map<std::string, Error> errors;  // of a path, probe or program; also of everything below a path

  Result<std::string> read(std::string_view path) const override { return answer(files, path); }
  Result<std::string> link(std::string_view path) const override { return answer(links, path); }
  Result<std::string> probe(std::string_view name) const override { return answer(probes, name); }
  Result<std::string> run(std::span<const std::string> argv) const override {
    return answer(programs, argv[0]);
  }
  Result<std::vector<std::string>> list(std::string_view path) const override {
    if (const auto* error = error_at(path)) return tl::unexpected(*error);
    std::set<std::string> names;
    const std::string folder = std::string(path) + "/";
    for (const auto* table : {&files, &links})
      for (auto at = table->lower_bound(folder); at != table->end() && at->first.starts_with(folder); ++at)
        names.insert(at->first.substr(folder.size(), at->first.find('/', folder.size()) - folder.size()));
    if (names.empty()) return fail(Errc::not_found, "{}: not found", path);
    return std::vector<std::string>(names.begin(), names.end());
  }

  void deny(const std::string& path) {
    errors[path] = Error{Errc::denied, path + ": denied", {}, {}, {}, {}};
  }

  // A PCI function: `chain` is its link below /sys/devices, "pci0000:20/0000:20:00.0/0000:21:00.0".
  std::string pci(const std::string& chain, const std::string& code, const std::string& vendor,
                  const std::string& device, const std::string& node = "0") {
    const auto id = chain.substr(chain.rfind('/') + 1);
    const auto folder = "/sys/bus/pci/devices/" + id;
    links[folder] = "../../../devices/" + chain;
    files[folder + "/class"] = code + "\n";
    files[folder + "/vendor"] = vendor + "\n";
    files[folder + "/device"] = device + "\n";
    files[folder + "/numa_node"] = node + "\n";
    return folder;
  }

 private:
  const Error* error_at(std::string_view path) const {
    for (const auto& [prefix, error] : errors)
      if (path == prefix || path.starts_with(prefix + "/")) return &error;
    return nullptr;
  }
  Result<std::string> answer(const std::map<std::string, std::string>& table, std::string_view name) const {
    if (const auto* error = error_at(name)) return tl::unexpected(*error);
    const auto at = table.find(std::string(name));
    if (at == table.end()) return fail(Errc::not_found, "{}: not found", name);
    return at->second;
  }
};

}  // namespace topotune::discover
