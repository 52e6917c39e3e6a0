#include "mixed/interrupt_rates.h"

#include <algorithm>

#include "base/text.h"

namespace topotune::mixed {

namespace {

constexpr std::size_t kMostVectors = 64;

// Devices of one class with their message interrupts. Where the interface's device is a virtio device, its
// PCI device is one level up (Linux Documentation/ABI/testing/sysfs-bus-pci, msi_irqs).
void take_nics(const host::Host& host, const std::string& root, std::map<std::string, std::string>& out) {
  const auto names = host.list(root);
  if (!names) return;
  for (const auto& name : *names) {
    for (const auto* folder : {"/device/msi_irqs", "/device/../msi_irqs"}) {
      const auto vectors = host.list(root + "/" + name + folder);
      if (!vectors) continue;
      for (const auto& vector : *vectors) out.emplace(vector, name);
      break;
    }
  }
}

Result<parse::InterruptTable> table_in(const host::Host& host, const char* path) {
  const auto text = host.read(path);
  auto table =
      text ? parse::parse_interrupts(*text) : Result<parse::InterruptTable>(tl::unexpected(text.error()));
  if (!table) table.error().file = path;
  return table;
}

void take_rates(const parse::InterruptTable& before, const parse::InterruptTable& after, double seconds,
                std::vector<InterruptRate>& out, const std::function<bool(InterruptRate&)>& wanted) {
  std::map<std::string, const parse::InterruptLine*> earlier;
  for (const auto& line : before.lines) earlier[line.id] = &line;
  for (const auto& line : after.lines) {
    const auto old = earlier.find(line.id);
    if (old == earlier.end() || old->second->counts.size() != line.counts.size()) continue;
    InterruptRate rate;
    rate.id = line.id, rate.name = line.name;
    if (!wanted(rate)) continue;
    double sum = 0, most = 0;
    for (std::size_t i = 0; i < line.counts.size(); ++i) {
      // 32-bit counters that went round would show as less: nothing is made of them.
      const auto now = line.counts[i], then = old->second->counts[i];
      const double count = now >= then ? static_cast<double>(now - then) : 0;
      sum += count;
      if (count <= most) continue;
      most = count;
      rate.busiest_cpu = i < after.cpus.size() ? after.cpus[i] : 0;
    }
    if (sum <= 0 || seconds <= 0) continue;
    rate.per_second = sum / seconds;
    rate.busiest_share = most / sum;
    out.push_back(std::move(rate));
  }
}

}  // namespace

Result<InterruptReading> read_interrupts(const host::Host& host, double at) {
  InterruptReading reading;
  reading.at = at;
  auto interrupts = table_in(host, "/proc/interrupts"), softirqs = table_in(host, "/proc/softirqs");
  if (!interrupts) return tl::unexpected(interrupts.error());
  if (!softirqs) return tl::unexpected(softirqs.error());
  reading.interrupts = std::move(*interrupts), reading.softirqs = std::move(*softirqs);
  for (const auto* root : {"/sys/class/net", "/sys/class/infiniband"}) take_nics(host, root, reading.nic_of);
  return reading;
}

std::vector<InterruptRate> rates_between(const InterruptReading& before, const InterruptReading& after) {
  std::vector<InterruptRate> out;
  const double seconds = after.at - before.at;
  take_rates(before.interrupts, after.interrupts, seconds, out, [&](InterruptRate& rate) {
    const auto nic = after.nic_of.find(rate.id);
    if (nic == after.nic_of.end()) return false;
    rate.kind = "nic", rate.nic = nic->second;
    return true;
  });
  take_rates(before.softirqs, after.softirqs, seconds, out, [](InterruptRate& rate) {
    rate.kind = "softirq";
    return true;
  });
  std::ranges::stable_sort(out, std::ranges::greater(), &InterruptRate::per_second);
  if (out.size() > kMostVectors) out.resize(kMostVectors);
  return out;
}

std::string packed(const std::vector<InterruptRate>& rates) {
  std::string out;
  for (const auto& r : rates)
    out += fmt::format("{}\t{}\t{}\t{}\t{:.17g}\t{}\t{:.17g}\n", r.kind, r.nic, r.id, r.name, r.per_second,
                       r.busiest_cpu, r.busiest_share);
  return out;
}

std::vector<InterruptRate> unpacked(const std::string& text, const std::string& host) {
  std::vector<InterruptRate> out;
  for (const auto line : lines(text)) {
    const auto parts = split(line, '\t');
    if (parts.size() != 7) continue;
    const auto rate = parse_double(parts[4]), share = parse_double(parts[6]);
    const auto cpu = parse_int<int>(parts[5]);
    if (!rate || !share || !cpu) continue;
    out.push_back({host, printable(parts[0]), printable(parts[1]), printable(parts[2]), printable(parts[3]),
                   *rate, *cpu, *share});
  }
  return out;
}

}  // namespace topotune::mixed
