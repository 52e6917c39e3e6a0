#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bdf.h"
#include "model/machine.h"
#include "parse/lspci.h"
#include "parse/port_qos.h"

namespace topotune::discover {

// One recognised part of one text: what a single command printed.
struct Piece {
  std::string_view name;     // of the text: "ibstat.txt"
  int first_line = 1;        // number of the part's first line in the text
  std::string_view command;  // "nvidia-smi topo -p2p r"; "" unknown
  std::string_view text;

  std::string at(int line) const { return fmt::format("{}:{}", name, first_line + line - 1); }
};

// How a text names a GPU. What it does not tell is left out.
struct GpuRef {
  std::optional<std::string> bdf, uuid;
  std::optional<int> index;
  std::optional<std::string> name;
};

// A PCI function as lspci tells it, in any of its forms.
struct PciSeen {
  parse::LspciDevice device;
  std::string source;         // "lspci.txt:12"
  std::optional<Bdf> parent;  // from `lspci -t`
  std::string root;           // likewise: "0000:20"
  bool in_tree = false;
  bool is_bridge = false;
};

// Collects the facts of many texts into one machine; contradictions become diagnostics, the first source
// wins.
class Merger {
 public:
  static constexpr std::size_t kMaxGpus = 4096;

  model::Machine machine;

  void start_from(model::Topology base);  // before anything else: the topology that ids are taken from

  // The GPU that a text speaks of: by address, else UUID, else index; a new one where none fits. Null: too
  // many.
  model::Gpu* gpu_for(const GpuRef& ref);
  model::Gpu* gpu_by_index(int index);
  model::GpuState& state_of(const model::Gpu& gpu);
  model::RdmaPort* port_for(const std::string& device, int port);  // null: too many
  model::NumaNode* numa_node(int id);                              // null: too many

  void warn(std::string code, std::string text);

  // Sets a fact, or says that two sources disagree.
  template <class T>
  void set(model::Fact<T>& fact, T value, std::string source, std::string_view what, std::string said = {}) {
    if (!fact.known()) {
      fact = model::Fact<T>::of(std::move(value), std::move(source), std::move(said));
    } else if (!(*fact == value)) {
      contradiction(what, fact.source, source);
    }
  }
  template <class T>
  void set(std::optional<T>& to, const std::optional<T>& value, std::string_view what,
           std::string_view before, std::string_view now) {
    if (!value) return;
    if (!to) {
      to = value;
    } else if (*to != *value) {
      contradiction(what, before, now);
    }
  }
  void contradiction(std::string_view what, std::string_view before, std::string_view now);

  std::map<Bdf, PciSeen> pci;                     // from lspci, put into the topology by finish()
  bool gpus_listed = false;                       // a text of the driver lists the GPUs: lspci adds none
  std::map<std::string, std::string> netdev_bdf;  // interface -> address
  std::map<std::string, int> netdev_mtu;
  std::map<std::string, std::vector<std::string>> netdev_networks;
  std::map<std::string, std::pair<parse::PortQos, std::string>> netdev_qos;  // and its source
  std::map<int, std::map<std::string, std::uint64_t>> lid_counters;          // of perfquery
  // Far ends of NVLinks as printed, resolved by finish(): GPU place -> (address or "", link number there,
  // speed).
  struct FarEnd {
    std::string bdf;  // "" where the text hides it
    std::optional<int> link;
  };
  struct FarEnds {
    std::vector<FarEnd> ends;
    bool cut = false;  // the text ends before the list does: how many there are is unknown
  };
  std::map<std::size_t, FarEnds> far_ends;

  void finish();  // joins what only all texts together tell

 private:
  void index_gpu(std::size_t place);
  bool fits(const model::Gpu& gpu, const GpuRef& ref) const;
  std::optional<std::size_t> find_gpu(const GpuRef& ref) const;
  void fill(model::Gpu& gpu, const GpuRef& ref);
  void say_too_many(std::string_view what);

  std::unordered_map<std::string, std::size_t> by_bdf_, by_uuid_, states_, ports_;
  std::unordered_map<int, std::size_t> by_index_, numa_;
  int next_index_ = 0;
  bool too_many_said_ = false;
};

// The parts of finish(), each in its own file.
void finish_pci(Merger& merger);
void finish_nics(Merger& merger);
void finish_nvlinks(Merger& merger);
void finish_numa(Merger& merger);

// Takes over one recognised part. An error means that the part is not of that kind after all, or unreadable.
using Merge = tl::expected<void, Error> (*)(Merger&, const Piece&);

}  // namespace topotune::discover
