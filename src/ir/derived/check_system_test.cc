#include "ir/derived/check_system.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

struct Example {
  Graph graph;
  SystemLayer system;

  explicit Example(CollectiveKind kind) {
    graph.ranks = 4;
    graph.program_of = {0, 1, 1, 1};
    graph.families = {world_family(4)};
    graph.collectives = {{kind, Bytes(64)}};
    for (int i = 0; i < 2; ++i) {
      Program& program = graph.programs.emplace_back();
      if (i == 1) program.add(NodeKind::collective, Phase::other, graph.names.add("sum"), -1, 0, {});
    }
    graph.programs[1].file_id = {17};
    system.algorithms[CollectiveKind::all_reduce] = {{}};
  }
  std::string check() const {
    return error_of([&] { check_system(system, graph, {"s.json", "m.json"}); });
  }
};

TEST(CheckSystem, AlgorithmsAreNeededWhereTheyAreUsed) {
  EXPECT_EQ(Example(CollectiveKind::all_reduce).check(), "no error");
  EXPECT_EQ(Example(CollectiveKind::broadcast).check(), "no error");
  Example example(CollectiveKind::all_to_all);
  EXPECT_EQ(example.check(),
            "s.json: no algorithm for the all-to-all of node 17 'sum' of rank 1\n"
            "  hint: give the key 'all-to-all-implementation'");
  example.system.semantics = Semantics::native;
  EXPECT_EQ(example.check(), "no error");
}

TEST(CheckSystem, ChunksAreNeededForCollectives) {
  Example example(CollectiveKind::all_reduce);
  example.system.splits = 0;
  EXPECT_EQ(example.check(),
            "s.json: the key 'preferred-dataset-splits' is missing, and node 17 'sum' of rank 1 is a "
            "collective\n  hint: it says into how many chunks a collective is cut");
  example.graph.programs[1] = example.graph.programs[0];
  EXPECT_EQ(example.check(), "no error");
}

TEST(CheckSystem, CustomSchedulesFitTheirGroups) {
  Example example(CollectiveKind::all_to_all);
  example.graph.custom.resize(1);
  example.graph.custom[0].name = "a2a";
  example.graph.custom[0].members.resize(3);
  example.graph.collectives[0].custom = 0;
  EXPECT_EQ(example.check(),
            "a2a: the schedule is for 3 ranks, but node 17 'sum' of rank 1 is a collective of 4");
  example.graph.custom[0].members.resize(4);
  EXPECT_EQ(example.check(), "no error");
}

TEST(CheckSystem, RemoteMemoryMustExist) {
  Example example(CollectiveKind::all_reduce);
  example.graph.programs[0].add(NodeKind::memory_load, Phase::other, example.graph.names.add("load"), -1, 64,
                                {});
  EXPECT_EQ(example.check(),
            "m.json: there is no remote memory, but node 0 'load' of rank 0 uses some\n"
            "  hint: give a memory-type other than NO_MEMORY_EXPANSION");
  example.system.remote_memory.kind = RemoteMemoryKind::pool;
  EXPECT_EQ(example.check(), "no error");
}

}  // namespace
}  // namespace armilla
