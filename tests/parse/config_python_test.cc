#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parse/config.h"

namespace topotune::parse {
namespace {

const Setting* find(const ConfigText& text, std::string_view name) {
  for (const auto& one : text.settings)
    if (one.name == name && !one.replaced_at) return &one;
  return nullptr;
}

TEST(ConfigPython, TakesEveryFormOfAssignment) {
  const auto text = scan_python(
      "import os, subprocess\nos.environ['A'] = '1'\nos.environ.setdefault(\"B\", \"2\")\nos.putenv('C', "
      "'3')\n"
      "os.environ.update({'D': '4', 'E': str(5)})\nenv = {**os.environ, 'F': '6'}\nsubprocess.run(['x'], "
      "env=dict(os.environ, NCCL_G='7'))\n"
      "os.environ['H'] = f'{x}'\n");
  for (const auto& [name, value] :
       {std::pair{"A", "1"}, {"B", "2"}, {"C", "3"}, {"D", "4"}, {"E", "5"}, {"F", "6"}, {"NCCL_G", "7"}}) {
    ASSERT_NE(find(text, name), nullptr) << name;
    EXPECT_EQ(find(text, name)->value, value);
    EXPECT_TRUE(find(text, name)->literal) << name;
  }
  EXPECT_FALSE(find(text, "H")->literal);
  EXPECT_EQ(find(text, "A")->at, (Place{2, 12}));
}

TEST(ConfigPython, MentionsAreNoSettings) {
  const auto text = scan_python(
      "\"\"\"os.environ['A'] = '1'\"\"\"\n# os.environ['A'] = '1'\nprint(\"os.environ['A'] = '1'\")\nx = "
      "{'A': '1'}\nif os.environ['A'] == '1': pass\n");
  EXPECT_EQ(find(text, "A"), nullptr);
  EXPECT_EQ(text.reads.count("A"), 1u);
}

Late late(const char* source) {
  const auto text = scan_python(source);
  const auto* one = find(text, "NCCL_A");
  return one == nullptr ? Late::no : one->late;
}

TEST(ConfigPython, FollowsTheOrderOfExecution) {
  EXPECT_EQ(late("dist.init_process_group('nccl')\ndist.barrier()\nos.environ['NCCL_A'] = '1'\n"),
            Late::after_collective);
  EXPECT_EQ(late("dist.init_process_group('nccl')\nos.environ['NCCL_A'] = '1'\n"), Late::after_init);
  EXPECT_EQ(late("dist.init_process_group('nccl', device_id=d)\nos.environ['NCCL_A'] = '1'\n"),
            Late::after_collective);
  EXPECT_EQ(late("dist.init_process_group('gloo')\ndist.barrier()\nos.environ['NCCL_A'] = '1'\n"), Late::no);
  EXPECT_EQ(late("def f():\n  dist.barrier()\nos.environ['NCCL_A'] = '1'\nf()\n"), Late::no)
      << "the body runs later";
  EXPECT_EQ(late("def f():\n  dist.barrier()\nf()\nos.environ['NCCL_A'] = '1'\n"), Late::after_collective);
  EXPECT_EQ(
      late("def f():\n  os.environ['NCCL_A'] = '1'\ndef main():\n  dist.all_reduce(x)\n  f()\nmain()\n"),
      Late::after_collective);
  EXPECT_EQ(late("model = DDP(model)\nos.environ['NCCL_A'] = '1'\n"), Late::after_collective);
}

TEST(ConfigPython, CommandsOfOsAndSubprocess) {
  const auto text = scan_python(
      "import os, subprocess\nos.system(f'numactl -N {n} true')\nsubprocess.run(['taskset', '-c', '0', "
      "sys.executable, 'x.py'])\n"
      "cmd = 'export A=1; ls'\nos.system(cmd)\n");
  ASSERT_EQ(text.commands.size(), 3u);
  EXPECT_THAT(text.commands[0].words, ::testing::ElementsAre("numactl", "-N", "$n", "true"));
  EXPECT_FALSE(text.commands[0].known[2]);
  EXPECT_EQ(text.commands[0].caller, "os.system");
  EXPECT_EQ(text.commands[0].at, (Place{2, 1}));
  EXPECT_THAT(text.commands[1].words, ::testing::ElementsAre("taskset", "-c", "0", "python", "x.py"));
  EXPECT_NE(find(text, "A"), nullptr);
}

TEST(ConfigPython, MasksAndLoaders) {
  const auto text = scan_python(
      "os.sched_setaffinity(0, {0, 1, 2})\nos.sched_setaffinity(0, range(4, 12))\nDataLoader(d, "
      "num_workers=6, worker_init_fn=f)\n");
  ASSERT_EQ(text.masks.size(), 2u);
  EXPECT_EQ(text.masks[0].cpus, 3);
  EXPECT_EQ(text.masks[1].cpus, 8);
  ASSERT_EQ(text.loaders.size(), 1u);
  EXPECT_EQ(text.loaders[0].workers, 6);
  EXPECT_TRUE(text.loaders[0].own_mask);
}

TEST(ConfigPython, BrokenTextIsSaidAndTheRestRead) {
  const auto open = scan_python("x = (1,\ndef f():\n  pass\nos.environ['A'] = '1'\n");
  EXPECT_EQ(open.diagnostics.size(), 1u);
  EXPECT_NE(find(open, "A"), nullptr);
  const auto quote = scan_python("x = 'abc\nos.environ['A'] = '1'\n");
  EXPECT_FALSE(quote.diagnostics.empty());
  EXPECT_NE(find(quote, "A"), nullptr);
  const auto triple = scan_python("x = \"\"\"abc\nos.environ['A'] = '1'\n");
  EXPECT_FALSE(triple.diagnostics.empty());
}

}  // namespace
}  // namespace topotune::parse
