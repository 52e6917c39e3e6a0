// What it costs to read a topology file and to derive everything from it. A generated NCCL XML of 16 GPUs
// with 18 NVLinks each to four NVSwitches and 16 NICs must take less than a millisecond in a release build.
#include <benchmark/benchmark.h>

#include <string>

#include "emit/topology_json.h"
#include "model/paths.h"
#include "parse/nccl_topo_xml.h"

namespace {

using topotune::model::Topology;

std::string gpu(int i) {
  const int links[] = {5, 5, 4, 4};
  std::string out = fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "
      "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{}\" sm=\"90\" rank=\"{}\" gdr=\"1\">",
      0x20 + 4 * i, i, i);
  for (int s = 0; s < 4; ++s)
    out += fmt::format("<nvlink target=\"0000:{:02x}:00.0\" count=\"{}\" tclass=\"0x068000\"/>", 0xc0 + s,
                       links[s]);
  return out + "</gpu></pci>\n";
}

std::string nic(int i) {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x020700\" link_speed=\"32.0 GT/s PCIe\" "
      "link_width=\"16\"><nic>"
      "<net name=\"mlx5_{}\" dev=\"{}\" speed=\"400000\" port=\"1\" guid=\"0x{:x}\" "
      "gdr=\"1\"/></nic></pci>\n",
      0x21 + 4 * i, i, i, i + 1);
}

std::string machine(int gpus) {
  std::string out = "<system version=\"1\">\n";
  for (int node = 0; node < 2; ++node) {
    out += fmt::format(
        "<cpu numaid=\"{}\" affinity=\"{}\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\">\n",
        node, node == 0 ? "00000000,ffffffff" : "ffffffff,00000000");
    for (int i = node * gpus / 2; i < (node + 1) * gpus / 2; ++i)
      out += fmt::format(
          "<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
          "link_width=\"16\">\n{}{}</pci>\n",
          0x22 + 4 * i, gpu(i), nic(i));
    out += "</cpu>\n";
  }
  return out + "</system>\n";
}

void parse(benchmark::State& state) {
  const auto text = machine(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(topotune::parse::parse_nccl_topo_xml(text));
}
BENCHMARK(parse)->Arg(16)->Unit(benchmark::kMicrosecond);

void parse_and_paths(benchmark::State& state) {
  const auto text = machine(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const auto topology = topotune::parse::parse_nccl_topo_xml(text);
    if (!topology || topology->gpus.size() != static_cast<std::size_t>(state.range(0)))
      state.SkipWithError("not read");
    auto paths = topotune::model::paths_of(*topology);
    benchmark::DoNotOptimize(paths.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(text.size()));
}
BENCHMARK(parse_and_paths)->Arg(8)->Arg(16)->Arg(32)->Unit(benchmark::kMicrosecond);

void json(benchmark::State& state) {
  const auto topology = topotune::parse::parse_nccl_topo_xml(machine(16));
  for (auto _ : state) benchmark::DoNotOptimize(topotune::emit::topology_json(*topology));
}
BENCHMARK(json)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
