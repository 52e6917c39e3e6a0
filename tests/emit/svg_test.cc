#include "emit/svg.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pugixml.hpp>
#include <string>

#include "emit/svg_canvas.h"
#include "emit/svg_scene.h"

namespace topotune::emit {
namespace {

using model::PathType;
using model::Topology;
using testing::HasSubstr;
using testing::Not;

// GPUs and NICs in equal shares on `nodes` NUMA nodes, one NIC beside each GPU where `nics` allows.
struct Machine {
  Topology topology;
  std::vector<model::Path> paths;

  Machine(int gpus, int nics, int nodes) {
    for (int i = 0; i < gpus; ++i) {
      model::Gpu gpu;
      gpu.id = fmt::format("GPU{}", i);
      gpu.index = i;
      gpu.numa = i * nodes / gpus;
      topology.gpus.push_back(gpu);
    }
    for (int i = 0; i < nics; ++i) {
      model::Nic nic;
      nic.id = fmt::format("NIC{}", i);
      nic.index = i;
      topology.nics.push_back(nic);
    }
    for (int n = 0; n < nodes; ++n)
      topology.numa.push_back({n, parse_cpu_list(fmt::format("{}-{}", 8 * n, 8 * n + 7)), {}, {}});
    for (int i = 0; i < gpus; ++i) {
      for (int j = 0; j < nics; ++j) {
        const bool same_node = i * nodes / gpus == j * nodes / nics;
        add(fmt::format("GPU{}", i), fmt::format("NIC{}", j),
            i == j      ? PathType::pix
            : same_node ? PathType::node
                        : PathType::sys);
      }
    }
  }

  void add(const std::string& a, const std::string& b, PathType type, std::optional<int> links = {}) {
    model::Path path;
    path.a = a;
    path.b = b;
    path.type = type;
    path.nvlinks = links;
    paths.push_back(path);
  }

  void mesh(int gpus, int links) {
    for (int i = 0; i < gpus; ++i) {
      for (int j = i + 1; j < gpus; ++j)
        add(fmt::format("GPU{}", i), fmt::format("GPU{}", j), PathType::nvl, links);
    }
  }
};

std::string draw(const Machine& machine) {
  const auto svg = topology_svg(machine.topology, machine.paths);
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str())) << svg;
  EXPECT_STREQ(document.first_child().name(), "svg");
  return svg;
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

TEST(Svg, DrawsASwitchAsOneBar) {
  Machine machine(8, 8, 2);
  machine.mesh(8, 18);
  const auto svg = draw(machine);
  EXPECT_EQ(count(svg, "NVSwitch: 18 links per GPU"), 1);
  EXPECT_EQ(count(svg, ">NV18<"), 0);
  EXPECT_EQ(count(svg, ">NUMA 0</text>"), 1);
  EXPECT_EQ(count(svg, ">CPUs 8-15</text>"), 1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(count(svg, fmt::format(">GPU{}</text>", i)), 1);
  EXPECT_EQ(count(svg, "<title>PCIe switch"), 8);
  EXPECT_EQ(count(svg, ">SYS</text>"), 2);  // between the nodes, and in the legend
}

TEST(Svg, LabelsASwitchWhoseGpusDiffer) {
  Machine machine(4, 0, 1);
  machine.mesh(4, 12);
  machine.paths[0].nvlinks = machine.paths[1].nvlinks = machine.paths[2].nvlinks = 11;  // GPU0 lost a link
  const auto svg = draw(machine);
  EXPECT_THAT(svg, HasSubstr("NVSwitch: 11 to 12 links per GPU"));
  EXPECT_EQ(count(svg, ">11</text>"), 2);  // halo and letters
}

TEST(Svg, DrawsDirectLinksAsArcs) {
  Machine machine(4, 0, 2);
  machine.mesh(4, 4);
  machine.paths[0].nvlinks = 2;
  const auto svg = draw(machine);
  EXPECT_EQ(count(svg, ">NV4</text>"), 2 * 5);
  EXPECT_EQ(count(svg, ">NV2</text>"), 2);
  EXPECT_THAT(svg, Not(HasSubstr("NVSwitch")));
}

TEST(Svg, MarksAGpuOutsideTheIsland) {
  Machine machine(3, 0, 1);
  machine.add("GPU0", "GPU1", PathType::nvl, 4);
  machine.add("GPU0", "GPU2", PathType::phb);
  EXPECT_EQ(count(draw(machine), "no NVLink</text>"), 1);
}

TEST(Svg, EscapesAllText) {
  Machine machine(1, 1, 1);
  machine.topology.source.name = "a/<script>&\"'\x01.txt";
  machine.topology.gpus[0].name = "</text><b>&";
  machine.topology.nics[0].name = "<&>\xff";
  const auto svg = draw(machine);
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, HasSubstr("&lt;&amp;&gt;"));
}

TEST(Svg, DrawsAnythingWithoutBreaking) {
  draw(Machine(1, 0, 1));
  Topology nothing;
  EXPECT_THAT(topology_svg(nothing, {}), HasSubstr("0 GPUs, 0 NICs"));
  Machine rack(72, 72, 1);
  rack.mesh(72, 18);
  const auto svg = draw(rack);
  EXPECT_EQ(count(svg, "GPU71</text>"), 1);
  EXPECT_THAT(svg, HasSubstr("(continued)"));
  Machine huge(600, 600, 4);
  EXPECT_THAT(draw(huge), HasSubstr("drawn: 128 GPUs and 128 NICs"));
  Machine unknown(4, 4, 1);
  for (auto& gpu : unknown.topology.gpus) gpu.numa.reset();
  unknown.paths.clear();
  const auto drawn = draw(unknown);
  EXPECT_THAT(drawn, HasSubstr("Place unknown"));
  EXPECT_EQ(count(drawn, "SYS"), 0);
}

TEST(SvgScene, GroupsBySwitchAndNode) {
  Machine machine(4, 2, 2);  // NIC0 below GPU0's switch, NIC1 below GPU1's
  const auto scene = scene_of(machine.topology, machine.paths, 128);
  ASSERT_EQ(scene.nodes.size(), 2u);
  ASSERT_EQ(scene.nodes[0].groups.size(), 2u);
  EXPECT_TRUE(scene.nodes[0].groups[0].switched);
  EXPECT_EQ(scene.nodes[0].groups[0].type, PathType::pix);
  EXPECT_EQ(scene.nodes[0].groups[1].nics, std::vector<std::size_t>{1});
  EXPECT_FALSE(scene.nodes[1].groups[0].switched);
}

TEST(SvgScene, WhatTheInputSaysOfNodesGoesFirst) {
  Machine machine(2, 0, 2);
  machine.add("GPU0", "GPU1", PathType::node);
  EXPECT_EQ(scene_of(machine.topology, machine.paths, 128).nodes.size(), 2u);
}

TEST(SvgCanvas, ShortensToFit) {
  EXPECT_EQ(SvgCanvas::fit("abc", 100, 10), "abc");
  EXPECT_EQ(SvgCanvas::fit("abcdefghij", 40, 10), "abcde\xe2\x80\xa6");
  EXPECT_LE(SvgCanvas::text_width(SvgCanvas::fit("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 20, 10), 10),
            20);
}

}  // namespace
}  // namespace topotune::emit
