#include "sim/collective_plan.h"

#include <gtest/gtest.h>

#include "base/cases_testing.h"
#include "base/error_testing.h"
#include "sim/plan/collective_plan_testing.h"
#include "sim/plan/link_limit.h"

namespace armilla {
namespace {

Time bound_of(const Machine& machine, const CollectiveCall& call) {
  const Graph graph = graph_for(machine, call);
  return least_time_on_links(call, lay_out(graph.families[0].groups[0], machine), machine, 0);
}

// 2 x 63/64 x 1 GiB over six links of 50 GB/s are 7.05 ms.
TEST(MultiAxis, ATorusAllReducesOverAllItsLinks) {
  const Machine machine = torus({4, 4, 4});
  const CollectiveCall call = call_of(CollectiveKind::all_reduce, kGibibyte);
  EXPECT_NEAR(in_seconds(bound_of(machine, call)), 2 * 63.0 / 64 * kGibibyte / 300e9, 1e-9);
  const double all = in_seconds(run(machine, call).iteration);
  EXPECT_LT(all, 8e-3);
  EXPECT_GE(all, in_seconds(bound_of(machine, call)));
  CollectiveOptions in_turn;
  in_turn.decomposition = Decomposition::bandwidth_aware;
  EXPECT_GT(in_seconds(run(machine, call, in_turn).iteration), 16e-3);
  in_turn.algorithms = {"ring"};
  EXPECT_GT(in_seconds(run(machine, call, in_turn).iteration), 32e-3);
}

TEST(MultiAxis, ReducesAndGathersLikewise) {
  for (const auto& sizes : {std::initializer_list<std::int64_t>{4, 4, 4}, {4, 8}, {4, 4, 16}, {3, 5}}) {
    const Machine machine = torus(sizes);
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
      const CollectiveCall call = call_of(kind, kGibibyte);
      const double bound = in_seconds(bound_of(machine, call));
      const double time = in_seconds(run(machine, call).iteration);
      EXPECT_GE(time, bound) << name_of(kind);
      EXPECT_LT(time, 1.15 * bound) << name_of(kind) << " on " << sizes.size() << " axes of "
                                    << *sizes.begin();
    }
  }
}

// No algorithm beats the bound, whatever the machine; and every way to play a call takes the same time.
TEST(MultiAxis, NothingIsFasterThanTheLinksAndAllWaysOfPlayingAgree) {
  const std::vector<Machine> machines = {
      torus({4, 4}),
      torus({2, 4, 3}),
      torus({5}),
      machine_of({dimension_like("s", DimensionKind::switched, 4, 400),
                  dimension_like("x", DimensionKind::ring, 3), dimension_like("y", DimensionKind::ring, 4)}),
      machine_of({dimension_like("f", DimensionKind::fully_connected, 4),
                  dimension_like("x", DimensionKind::ring, 2), dimension_like("y", DimensionKind::ring, 3)}),
      machine_of({dimension_like("s", DimensionKind::switched, 8)})};
  int number = 0;
  for (const Machine& machine : machines) {
    for (const CollectiveKind kind : kCollectiveKinds) {
      for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{100'003}, std::int64_t{50'000'000}}) {
        if (number++ % kCaseStep != 0) continue;
        const CollectiveCall call = call_of(kind, bytes);
        const Result folded = run(machine, call);
        EXPECT_GE(folded.iteration, bound_of(machine, call)) << name_of(kind) << ' ' << bytes;
        const SimulationOptions alone{.fold = false, .every_message = true};
        EXPECT_EQ(folded.iteration, run(machine, call, {}, alone).iteration) << name_of(kind) << ' ' << bytes;
      }
    }
  }
}

TEST(MultiAxis, AnAlgorithmThatLeavesLinksIdleIsNamedAsTheLimit) {
  const Machine machine = torus({4, 4, 4});
  const CollectiveCall call = call_of(CollectiveKind::all_reduce, kGibibyte);
  const Result all = run(machine, call);
  EXPECT_EQ(
      all.collectives[0].algorithm,
      "reduce-scatter bidirectional-ring on x, reduce-scatter bidirectional-ring on y, all-reduce "
      "bidirectional-ring on z, all-gather bidirectional-ring on y, all-gather bidirectional-ring on x; "
      "chunks in 3 orders");
  EXPECT_EQ(all.collectives[0].limit, CollectiveLimit::bandwidth);
  CollectiveOptions one;
  one.algorithms = {"ring"};
  one.decomposition = Decomposition::bandwidth_aware;
  const Result turn = run(machine, call, one);
  EXPECT_EQ(turn.collectives[0].limit, CollectiveLimit::algorithm);
  EXPECT_LT(turn.collectives[0].link_limit.value, turn.collectives[0].busiest_link.value / 4);
}

// Measured, a ring of 16 takes 15 steps, an all-reduce 30 or 8 levels of a tree.
TEST(CollectivePlan, StepsAndLevelsOfTheLibraryCount) {
  Machine machine = machine_of({dimension_like("rail", DimensionKind::switched, 16, 400)});
  const auto beyond = [&](CollectiveKind kind, Time step, Time level) {
    machine.dimensions[0].protocols = {CollectiveProtocol{"Simple", Time(0), step, 1, level, Time(0)}};
    CollectiveOptions options;
    options.measured = true;
    const Time with = run(machine, call_of(kind, kGibibyte), options).iteration;
    machine.dimensions[0].protocols.clear();
    return with - run(machine, call_of(kind, kGibibyte), options).iteration;
  };
  EXPECT_EQ(beyond(CollectiveKind::all_gather, microseconds(38), microseconds(20)), microseconds(15 * 38));
  EXPECT_EQ(beyond(CollectiveKind::all_to_all, microseconds(38), microseconds(20)), microseconds(38));
  EXPECT_EQ(beyond(CollectiveKind::all_reduce, microseconds(38), microseconds(20)), microseconds(8 * 20));
  EXPECT_EQ(beyond(CollectiveKind::all_reduce, microseconds(1), microseconds(20)), microseconds(30));
}

// Of a call among members of one dimension, one block moves within a member's memory: its size over the rate.
TEST(CollectivePlan, TheBlockThatStaysTakesTimeOfItsOwn) {
  Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, 8, 400),
                                dimension_like("rail", DimensionKind::switched, 2, 50)});
  CollectiveOptions options;
  options.measured = true;
  const auto beyond = [&](const Machine& of, CollectiveKind kind) {
    Machine without = of;
    without.dimensions[0].own_block = Bandwidth(0);
    return run(of, call_of(kind, kGibibyte), options).iteration -
           run(without, call_of(kind, kGibibyte), options).iteration;
  };
  machine.dimensions[0].own_block = gigabytes_per_second(500);
  Machine node = machine;
  node.dimensions.pop_back();
  const double block = static_cast<double>(kGibibyte) / 8 / 500e9;
  using enum CollectiveKind;
  for (const CollectiveKind kind : {all_reduce, all_gather, reduce_scatter, all_to_all})
    EXPECT_NEAR(in_seconds(beyond(node, kind)), block, 1e-11) << name_of(kind);
  for (const CollectiveKind kind : {broadcast, reduce})
    EXPECT_EQ(beyond(node, kind), Time(0)) << name_of(kind);
  // Over several nodes, in the switch, and where nothing is measured.
  for (const CollectiveKind kind : {all_reduce, all_gather, all_to_all})
    EXPECT_EQ(beyond(machine, kind), Time(0)) << name_of(kind);
  Machine reducing = node;
  reducing.dimensions[0].in_switch = CollectiveProtocol{"nvls", Time(0), Time(0)};
  EXPECT_EQ(beyond(reducing, all_reduce), Time(0));
  options.measured = false;
  EXPECT_EQ(beyond(node, all_gather), Time(0));
}

// NCCL chooses by what it expects, whatever its protocols then take. Of 240 GB/s, among 2 members: 7.2 us +
// C / 2 / 91.2 GB/s by LL and 11.8 us + C / 2 / 240 GB/s by Simple, alike at 1,353,290 bytes. Among 8: 10.8
// us and 91.2 GB/s by LL, 27.3 and 220.8 by LL128, 32.2 and 240 by Simple, alike at 2,929,981 and
// 15,456,000 bytes.
TEST(CollectivePlan, RingsOfANodeTakeTheProtocolThatNcclExpectsToBeFastest) {
  const auto launch = [](std::int64_t members, std::int64_t bytes) {
    Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, members, 240)});
    CollectiveOptions options;
    options.measured = true;
    const CollectiveCall call = call_of(CollectiveKind::all_gather, bytes);
    const Time without = run(machine, call, options).iteration;
    machine.dimensions[0].protocols = {CollectiveProtocol{"Simple", microseconds(30), Time(0)},
                                       CollectiveProtocol{"LL128", microseconds(20), Time(0)},
                                       CollectiveProtocol{"LL", microseconds(10), Time(0)},
                                       CollectiveProtocol{"SendRecv", Time(0), Time(0)}};
    return run(machine, call, options).iteration - without;
  };
  EXPECT_EQ(launch(2, 1'353'200), microseconds(10));
  EXPECT_EQ(launch(2, 1'353'400), microseconds(30));
  EXPECT_EQ(launch(8, 2'929'000), microseconds(10));
  EXPECT_EQ(launch(8, 2'931'000), microseconds(20));
  EXPECT_EQ(launch(8, 15'456'000 - 1'000), microseconds(20));
  EXPECT_EQ(launch(8, 15'456'000 + 1'000), microseconds(30));
}

// Messages of up to 16 KiB go by LL within a node, whose channel moves 5 GB/s; longer ones, and all that go
// to other nodes, as sends and receives do.
TEST(CollectivePlan, MessagesOfAnAllToAllTakeAProtocolByTheirSize) {
  const auto beyond = [](std::int64_t inside, std::int64_t nodes, std::int64_t message, bool has_own) {
    Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, inside, 400),
                                  dimension_like("rail", DimensionKind::switched, nodes, 50)});
    CollectiveOptions options;
    options.measured = true;
    const CollectiveCall call = call_of(CollectiveKind::all_to_all, message * inside * nodes);
    const Time without = run(machine, call, options).iteration;
    for (Dimension& d : machine.dimensions) {
      d.protocols = {CollectiveProtocol{"LL", microseconds(7), Time(0), 0.5},
                     CollectiveProtocol{"LL128", microseconds(1), Time(0)},
                     CollectiveProtocol{"Simple", microseconds(30), Time(0)}};
      if (has_own) d.protocols.push_back({"SendRecv", microseconds(15), Time(0)});
    }
    return run(machine, call, options).iteration - without;
  };
  EXPECT_EQ(beyond(8, 1, 5'000, true), microseconds(7 + 1));
  EXPECT_EQ(beyond(8, 1, 15'000, true), microseconds(7 + 3));
  EXPECT_EQ(beyond(8, 1, 16'385, true), microseconds(15));
  EXPECT_EQ(beyond(8, 1, 16'385, false), microseconds(30));
  EXPECT_EQ(beyond(1, 8, 5'000, false), microseconds(30));
  EXPECT_EQ(beyond(1, 8, 5'000, true), microseconds(15));
}

// Of an all-to-all, messages with 16 members are under way at once: 7 nodes of 8 others are 4 rounds.
TEST(CollectivePlan, AnAllToAllTakesRoundsOfMessages) {
  const auto beyond = [](std::int64_t nodes) {
    Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 8, 400),
                                  dimension_like("rail", DimensionKind::switched, nodes, 50)});
    CollectiveOptions options;
    options.measured = true;
    const CollectiveCall call = call_of(CollectiveKind::all_to_all, kGibibyte);
    const Time without = run(machine, call, options).iteration;
    machine.dimensions[1].protocols = {CollectiveProtocol{"Simple", Time(0), microseconds(10), 1}};
    return run(machine, call, options).iteration - without;
  };
  EXPECT_EQ(beyond(2), microseconds(10));
  EXPECT_EQ(beyond(3), microseconds(10));
  EXPECT_EQ(beyond(4), microseconds(20));
  EXPECT_EQ(beyond(8), microseconds(40));
  EXPECT_EQ(beyond(32), microseconds(160));
}

// Rings between nodes pass all members in a node; those of groups with one member per node pass nobody.
TEST(CollectivePlan, RingsPassTheMembersInside) {
  const auto beyond = [](std::int64_t inside) {
    Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, inside, 400),
                                  dimension_like("rail", DimensionKind::switched, 8, 50)});
    CollectiveOptions options;
    options.measured = true;
    options.algorithms = {"halving-doubling"};  // the bytes are those of the hierarchy
    const CollectiveCall call = call_of(CollectiveKind::all_gather, kGibibyte);
    const Time without = run(machine, call, options).iteration;
    machine.dimensions[1].protocols = {
        CollectiveProtocol{"Simple", Time(0), microseconds(14), 1, microseconds(28), microseconds(3)}};
    return run(machine, call, options).iteration - without;
  };
  EXPECT_EQ(beyond(4), microseconds(7 * (14 + 3 * 3)));
  EXPECT_EQ(beyond(1), microseconds(7 * 14));
}

// The library's steps hold the network's latency, whatever schedule stands for its rings: one more node is
// one more step, from powers of two and to them, and in a chain one for each of its members.
TEST(CollectivePlan, StepsBetweenNodesCountLatencyOnce) {
  const auto run_among = [](CollectiveKind kind, std::int64_t nodes, std::int64_t bytes) {
    Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 8, 400),
                                  dimension_like("rail", DimensionKind::switched, nodes, 50)});
    machine.dimensions[1].protocols = {
        CollectiveProtocol{"plain", Time(0), microseconds(3), 1, microseconds(6), microseconds(1)}};
    CollectiveOptions options;
    options.measured = true;
    return run(machine, call_of(kind, bytes), options);
  };
  using enum CollectiveKind;
  for (const CollectiveKind kind : {all_gather, reduce_scatter, broadcast, reduce}) {
    const double first = in_seconds(run_among(kind, 6, 8).iteration);
    for (const std::int64_t nodes : {7, 8, 9, 31, 32, 33}) {
      const bool is_chain = kind == broadcast || kind == reduce;
      const double steps = (is_chain ? 8 * 3e-6 : 10e-6) * static_cast<double>(nodes - 6);
      EXPECT_NEAR(in_seconds(run_among(kind, nodes, 8).iteration), first + steps, 0.1e-6)
          << name_of(kind) << " among " << nodes << " nodes";
    }
  }
  // A broadcast of more goes by the same trees to any number of nodes.
  const Result odd = run_among(broadcast, 31, 16 << 20), even = run_among(broadcast, 32, 16 << 20);
  EXPECT_EQ(odd.collectives[0].algorithm, even.collectives[0].algorithm);
  EXPECT_GT(even.iteration, odd.iteration);
  EXPECT_LT(in_seconds(even.iteration), 1.1 * in_seconds(odd.iteration));
}

// What the switches of several nodes give back waits for no slot of what is sent to them: longer messages
// take longer, and the busiest link is hardly ever idle.
TEST(CollectivePlan, SumsGivenBackInSwitchesDoNotWaitBehindWhatIsSent) {
  Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, 8, 330),
                                dimension_like("rail", DimensionKind::switched, 2, 46)});
  machine.dimensions[0].in_switch =
      CollectiveProtocol{"nvls", microseconds(25), Time(0), 1, Time(0), Time(0)};
  machine.dimensions[1].protocols = {
      CollectiveProtocol{"Simple", microseconds(15), microseconds(14), 1, microseconds(14), microseconds(3)}};
  Time before;
  for (const std::int64_t mebibytes : {700, 800, 900, 960, 1024, 1100}) {
    const Result result = run(machine, call_of(CollectiveKind::all_reduce, mebibytes << 20));
    EXPECT_GT(result.iteration, before) << mebibytes << " MiB";
    before = result.iteration;
    const double busy = 9.0 / 8 * static_cast<double>(mebibytes << 20) / 330e9;
    EXPECT_LT(in_seconds(result.iteration), 1.08 * busy) << mebibytes << " MiB";
  }
}

// Members here and there: what leads into the block with the fewest links per byte is the limit.
Graph graph_of_some(const Machine& machine, const CollectiveCall& call,
                    const std::vector<std::int32_t>& members) {
  Graph graph = graph_for(machine, call);
  graph.programs.emplace_back().role = "idle";
  graph.program_of.assign(graph.program_of.size(), 1);
  GroupFamily& family = graph.families[0];
  family.groups = {members};
  for (std::int32_t rank = 0; rank < graph.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (std::ranges::find(members, rank) != members.end()) {
      family.group_of[at] = graph.program_of[at] = 0;
    } else {
      family.group_of[at] = static_cast<std::int32_t>(family.groups.size());
      family.groups.push_back({rank});  // alone
    }
  }
  return graph;
}

TEST(LinkLimit, OfGroupsThatAreNoGridIsReachedAndNeverBeaten) {
  const Machine nodes = machine_of({dimension_like("inside", DimensionKind::switched, 8, 1000),
                                    dimension_like("rail", DimensionKind::switched, 2, 50)});
  const std::vector<std::int32_t> twelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  // Four of the second node hear 8/12 of all from eight, over a rail each.
  const CollectiveCall exchange = call_of(CollectiveKind::all_to_all, 12'000'000);
  EXPECT_NEAR(in_seconds(least_time_on_links(exchange, lay_out(twelve, nodes), nodes, 0)), 8e6 / 50e9, 1e-12);
  EXPECT_NEAR(in_seconds(least_time_on_links(call_of(CollectiveKind::all_gather, 12'000'000),
                                             lay_out(twelve, nodes), nodes, 0)),
              8e6 / (4 * 50e9), 1e-12);
  EXPECT_NEAR(in_seconds(least_time_on_links(call_of(CollectiveKind::all_reduce, 12'000'000),
                                             lay_out(twelve, nodes), nodes, 0)),
              12e6 / (4 * 50e9), 1e-12);
  // Nobody needs the rails of one node.
  const std::vector<std::int32_t> three = {0, 2, 7};
  EXPECT_NEAR(in_seconds(least_time_on_links(exchange, lay_out(three, nodes), nodes, 0)), 8e6 / 1000e9,
              1e-12);

  const std::vector<Machine> machines = {
      nodes,
      machine_of({dimension_like("f", DimensionKind::fully_connected, 4),
                  dimension_like("r", DimensionKind::ring, 5)}),
      machine_of({dimension_like("r", DimensionKind::ring, 4),
                  dimension_like("s", DimensionKind::switched, 2, 400),
                  dimension_like("x", DimensionKind::fully_connected, 3, 20)})};
  const std::vector<std::vector<std::int32_t>> groups = {
      twelve, {0, 1, 2, 5, 11}, {0, 9}, {3, 4, 8, 9, 10, 11, 15}, {0, 4, 5, 8, 9, 10, 12, 13, 14, 15}};
  for (const Machine& machine : machines) {
    for (const std::vector<std::int32_t>& members : groups) {
      const GroupLayout layout = lay_out(members, machine);
      if (layout.is_grid()) continue;
      for (const CollectiveKind kind : kCollectiveKinds) {
        if (kind == CollectiveKind::barrier) continue;
        const CollectiveCall call = call_of(kind, 12'000'000);
        Study study;
        study.machine = machine;
        const Result result =
            simulate(graph_of_some(machine, call, members), study, NothingTakesTime(), {.fold = false});
        const Time bound = least_time_on_links(call, layout, machine, 0);
        EXPECT_GT(bound, Time(0));
        EXPECT_LE(bound, result.iteration) << name_of(kind) << ' ' << members.size();
        ASSERT_EQ(result.collectives.size(), 1U);
        const CollectiveRecord& record = result.collectives[0];
        EXPECT_LE(record.link_limit, record.busiest_link) << name_of(kind) << ' ' << members.size();
        // Every link's, although the first member may be done before the last.
        EXPECT_GE(record.busiest_link.value, result.links[0].busy.value * 99 / 100)
            << name_of(kind) << ' ' << members.size();
      }
    }
  }
}

// A group that begins and ends within nodes is no grid: rings, one per NIC of the node that has fewest
// members, share a call.
TEST(CollectivePlan, GroupsThatAreNoGridUseAllNics) {
  constexpr std::int32_t kMembers = 11;  // 4, 4 and 3
  const auto iteration = [](CollectiveKind kind, bool cables, const char* wish, bool shortcuts) {
    Study study;
    study.machine = machine_of({dimension_like("inside", DimensionKind::switched, 4, 1000),
                                dimension_like("rail", DimensionKind::switched, 4, 10)});
    if (cables) study.machine.dimensions[0].cables = {{0, 1}, {1, 2}, {2, 3}, {0, 3}};
    if (wish != nullptr) study.collectives.algorithms = {wish};
    Graph graph = graph_for(study.machine, call_of(kind, kGibibyte));
    GroupFamily& family = graph.families[0];
    family.groups = {{}};
    for (std::int32_t rank = 0; rank < graph.ranks; ++rank) {
      if (rank >= kMembers) family.groups.emplace_back();  // alone
      family.group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(family.groups.size()) - 1;
      family.groups.back().push_back(rank);
    }
    return in_seconds(
        simulate(graph, study, NothingTakesTime(), {.fold = shortcuts, .every_message = !shortcuts})
            .iteration);
  };
  const double of_three = 2 * 10.0 / 11 * kGibibyte / 10e9 / 3;
  for (const bool cables : {false, true}) {
    const auto all_reduce = [&](const char* wish, bool shortcuts) {
      return iteration(CollectiveKind::all_reduce, cables, wish, shortcuts);
    };
    EXPECT_NEAR(all_reduce(nullptr, false), of_three, 0.03 * of_three) << cables;
    EXPECT_EQ(all_reduce(nullptr, true), all_reduce(nullptr, false)) << cables;
    EXPECT_NEAR(all_reduce("ring", false), 3 * of_three, 0.06 * of_three) << cables;
    // Eight members send to each of the others' three.
    const double of_eight = 8.0 / 11 * kGibibyte / 10e9;
    EXPECT_NEAR(iteration(CollectiveKind::all_to_all, cables, nullptr, false), of_eight, 0.03 * of_eight);
    EXPECT_EQ(iteration(CollectiveKind::all_to_all, cables, nullptr, true),
              iteration(CollectiveKind::all_to_all, cables, nullptr, false));
  }
}

// Measured, their rings pass from node to node in the library's steps, after its launch; what is inside are
// messages of their own.
TEST(CollectivePlan, GroupsThatAreNoGridTakeTheLibrarysSteps) {
  Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 4, 1000),
                                dimension_like("rail", DimensionKind::switched, 2, 10)});
  const auto iteration = [&](CollectiveKind kind) {
    Graph graph = graph_for(machine, call_of(kind, 1000));
    GroupFamily& family = graph.families[0];
    family.groups = {{0, 1, 2, 3, 4, 5}, {6}, {7}};
    family.group_of = {0, 0, 0, 0, 0, 0, 1, 2};
    Study study;
    study.machine = machine;
    study.collectives.measured = true;
    return simulate(graph, study, NothingTakesTime(), {}).iteration;
  };
  const Time reduced = iteration(CollectiveKind::all_reduce),
             gathered = iteration(CollectiveKind::all_gather);
  machine.dimensions[1].protocols = {
      CollectiveProtocol{"Simple", microseconds(15), microseconds(14), 1, microseconds(28), microseconds(3)}};
  EXPECT_EQ(iteration(CollectiveKind::all_reduce) - reduced, microseconds(15 + 2 * 14));
  EXPECT_EQ(iteration(CollectiveKind::all_gather) - gathered, microseconds(15 + 14));
}

// A root's one link to each other member carries an n-1th of a broadcast or a reduction, as do all others.
TEST(CollectivePlan, BroadcastsAmongFullyConnectedMembersUseAllLinks) {
  const Machine machine = machine_of({dimension_like("mesh", DimensionKind::fully_connected, 8, 50)});
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    const Result large = run(machine, call_of(kind, kGibibyte));
    EXPECT_EQ(large.collectives[0].algorithm, "scatter-gather on mesh");
    EXPECT_NEAR(in_seconds(large.iteration), kGibibyte / (7 * 50e9), 0.1 * kGibibyte / (7 * 50e9));
    EXPECT_EQ(run(machine, call_of(kind, 1000)).collectives[0].algorithm, "direct on mesh");
  }
}

// Each of two groups that share a node enters and leaves it by NICs of its own: both take as long as one.
TEST(CollectivePlan, GroupsThatShareANodeUseTheirOwnNics) {
  const Machine machine = machine_of({dimension_like("inside", DimensionKind::switched, 4, 1000),
                                      dimension_like("rail", DimensionKind::switched, 3, 10)});
  const auto iteration = [&](bool both, bool shortcuts) {
    Graph graph = graph_for(machine, call_of(CollectiveKind::all_reduce, kGibibyte));
    GroupFamily& family = graph.families[0];
    family.groups = {{0, 1, 2, 3, 4, 5}};  // four on the first node, two on the second
    for (std::int32_t rank = 0; rank < graph.ranks; ++rank) {
      if (rank == 6 || (rank > 6 && !both)) family.groups.emplace_back();
      family.group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(family.groups.size()) - 1;
      if (rank >= 6) family.groups.back().push_back(rank);
    }
    Study study;
    study.machine = machine;
    return in_seconds(
        simulate(graph, study, NothingTakesTime(), {.fold = shortcuts, .every_message = !shortcuts})
            .iteration);
  };
  const double of_two = 2 * 5.0 / 6 * kGibibyte / 10e9 / 2;
  EXPECT_NEAR(iteration(false, false), of_two, 0.02 * of_two);
  EXPECT_NEAR(iteration(true, false), of_two, 0.02 * of_two);
  EXPECT_EQ(iteration(true, true), iteration(true, false));
}

// Among other numbers of nodes than powers of two, the one that is taken is about as fast as the fastest.
TEST(CollectivePlan, NodesTakeWhatIsFasterForTheSize) {
  constexpr double kEstimate = 1.15;  // how far off the estimate that chooses is at most here
  for (const std::int64_t nodes : {3, 17, 24, 33, 129}) {
    for (const std::int64_t bytes : {std::int64_t{1000}, std::int64_t{300'000}, std::int64_t{20'000'000}}) {
      const Machine machine = machine_of({dimension_like("nodes", DimensionKind::switched, nodes, 50)});
      const CollectiveCall call = call_of(CollectiveKind::all_reduce, bytes);
      Time least = kEndOfTime;
      for (const char* const algorithm : {"ring", "double-binary-tree"}) {
        CollectiveOptions options;
        options.algorithms = {algorithm};
        least = std::min(least, run(machine, call, options).iteration);
      }
      EXPECT_LE(in_seconds(run(machine, call).iteration), kEstimate * in_seconds(least))
          << nodes << " nodes, " << bytes << " bytes";
    }
  }
  const auto taken = [](std::int64_t nodes, std::int64_t bytes, bool library,
                        CollectiveKind kind = CollectiveKind::all_reduce) {
    Machine machine = machine_of({dimension_like("nodes", DimensionKind::switched, nodes, 50)});
    if (library) {
      machine.dimensions[0].protocols = {
          CollectiveProtocol{"LL", microseconds(4), Time(0), 1, microseconds(1), Time(0)}};
    }
    return run(machine, call_of(kind, bytes)).collectives[0].algorithm;
  };
  EXPECT_EQ(taken(33, 1000, false), "double-binary-tree on nodes");
  EXPECT_EQ(taken(33, kGibibyte, false), "ring on nodes");
  EXPECT_EQ(taken(129, 1000, false), "circulant on nodes");
  EXPECT_EQ(taken(129, kGibibyte, false, CollectiveKind::all_gather), "circulant on nodes");
  EXPECT_EQ(taken(32, 1000, false), "halving-doubling on nodes");
  EXPECT_EQ(taken(33, 1000, true), "ring on nodes");  // within a node
  EXPECT_EQ(taken(33, 1000, false, CollectiveKind::all_gather), "halving-doubling on nodes");
  EXPECT_EQ(taken(33, kGibibyte, false, CollectiveKind::all_gather), "ring on nodes");
  EXPECT_EQ(taken(33, 1000, true, CollectiveKind::all_gather), "ring on nodes");
}

// Up and down trees, chunks find links taken by others: no way by hand is much faster than what is chosen.
TEST(CollectivePlan, LargeCallsDoNotGoOverSlowTrees) {
  const Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, 8, 400),
                                      dimension_like("rail", DimensionKind::switched, 17, 50)});
  for (const std::int64_t bytes : {kGibibyte / 4, kGibibyte, 4 * kGibibyte, 8 * kGibibyte}) {
    const CollectiveCall call = call_of(CollectiveKind::all_reduce, bytes);
    const Time chosen = run(machine, call).iteration;
    for (const char* outer : {"ring", "double-binary-tree"}) {
      CollectiveOptions options;
      options.algorithms = {"halving-doubling", outer};
      EXPECT_LT(in_seconds(chosen), 1.05 * in_seconds(run(machine, call, options).iteration)) << bytes;
    }
  }
}

// What goes but from or to one member reaches half of a ring each way.
TEST(CollectivePlan, SmallBroadcastsGoRoundHalfOfARing) {
  const Machine machine = machine_of({dimension_like("x", DimensionKind::ring, 16, 50)});
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    EXPECT_EQ(run(machine, call_of(kind, 1000)).collectives[0].algorithm, "direct on x");
    EXPECT_EQ(run(machine, call_of(kind, kGibibyte)).collectives[0].algorithm, "bidirectional-ring on x");
  }
}

class InSwitch : public testing::Test {
 protected:
  Machine machine = machine_of({dimension_like("nvswitch", DimensionKind::switched, 8, 400)});
  InSwitch() {
    machine.dimensions[0].in_switch =
        CollectiveProtocol{"nvls", microseconds(20), Time(0), 1, Time(0), Time(0)};
  }

  CollectiveOptions with(const char* algorithm) const {
    CollectiveOptions options;
    options.algorithms = {algorithm};
    return options;
  }
};

TEST_F(InSwitch, IsChosenWhereItIsFaster) {
  const CollectiveCall large = call_of(CollectiveKind::all_reduce, kGibibyte);
  const Result chosen = run(machine, large);
  EXPECT_EQ(chosen.collectives[0].algorithm, "reduce-scatter nvls on nvswitch, all-gather nvls on nvswitch");
  // (1 + 1/8) GiB go up, and what it takes beyond.
  const double least = 9.0 / 8 * kGibibyte / 400e9 + 20e-6;
  EXPECT_GE(in_seconds(chosen.iteration), least);
  EXPECT_LT(in_seconds(chosen.iteration), 1.08 * least);
  EXPECT_LT(chosen.iteration, run(machine, large, with("halving-doubling")).iteration);
  EXPECT_EQ(run(machine, call_of(CollectiveKind::all_reduce, 1000)).collectives[0].algorithm,
            "halving-doubling on nvswitch");
  EXPECT_EQ(run(machine, call_of(CollectiveKind::all_to_all, kGibibyte)).collectives[0].algorithm,
            "direct on nvswitch");
}

// Within a node they wait for no more than among several, so that fewer members are not slower.
TEST_F(InSwitch, AnotherNodeSavesNoTime) {
  for (const std::int64_t bytes : {kGibibyte / 16, kGibibyte, 4 * kGibibyte}) {
    const CollectiveCall call = call_of(CollectiveKind::all_reduce, bytes);
    Machine two = machine;
    two.dimensions.push_back(dimension_like("rail", DimensionKind::switched, 2, 400));
    EXPECT_GE(run(two, call).iteration, run(machine, call).iteration) << bytes;
  }
}

// A gather alone gains no bytes there, but the steps of a long ring.
TEST_F(InSwitch, GathersWhereRingsAreLong) {
  for (const CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
    const auto taken = [&](std::int64_t members, std::int64_t bytes) {
      machine.dimensions[0].size = members;
      return run(machine, call_of(kind, bytes)).collectives[0].algorithm;
    };
    EXPECT_EQ(taken(72, 1000), "nvls on nvswitch");
    EXPECT_EQ(taken(72, 8 * kGibibyte), "ring on nvswitch");
    EXPECT_EQ(taken(8, 1000), "halving-doubling on nvswitch");
    EXPECT_EQ(taken(8, kGibibyte), "halving-doubling on nvswitch");
  }
}

// Into the node and out of it together, the switch halves the bytes; of a reduce-scatter alone it
// saves nothing.
TEST_F(InSwitch, ReducesWithinEachNodeWhereTheyAreMany) {
  machine.dimensions.push_back(dimension_like("rail", DimensionKind::switched, 2, 100));
  const CollectiveCall large = call_of(CollectiveKind::all_reduce, kGibibyte);
  const Result chosen = run(machine, large);
  EXPECT_EQ(
      chosen.collectives[0].algorithm,
      "reduce-scatter nvls on nvswitch, all-reduce halving-doubling on rail, all-gather nvls on nvswitch");
  EXPECT_LT(chosen.iteration, run(machine, large, with("halving-doubling")).iteration);
  EXPECT_EQ(run(machine, call_of(CollectiveKind::reduce_scatter, kGibibyte)).collectives[0].algorithm,
            "reduce-scatter halving-doubling on nvswitch, reduce-scatter halving-doubling on rail");
}

TEST_F(InSwitch, IsFoldedExactly) {
  for (const char* const algorithm : {"nvls", "sharp"}) {
    for (const CollectiveKind kind : kCollectiveKinds) {
      const CollectiveCall call = call_of(kind, 10'000'019);
      const Result folded = run(machine, call, with(algorithm));
      const Result alone = run(machine, call, with(algorithm), {.fold = false, .every_message = true});
      EXPECT_EQ(folded.iteration, alone.iteration) << algorithm << ' ' << name_of(kind);
    }
  }
}

// Networks over graphs of links do without, and say so where it would have been taken.
TEST_F(InSwitch, IsMissedOnNetworksWhoseSwitchesDoNotReduce) {
  const auto notes = [&](const char* network, std::int64_t bytes) {
    Study study;
    study.machine = machine;
    study.network.name = network;
    return simulate(graph_for(machine, call_of(CollectiveKind::all_reduce, bytes)), study, NothingTakesTime())
        .notes;
  };
  EXPECT_EQ(
      notes("flow", kGibibyte),
      std::vector<std::string>{
          "the network flow does without nvls on nvswitch: all-reduce takes another algorithm than on the "
          "analytical network, which may be slower"});
  EXPECT_TRUE(notes("flow", 1000).empty());
  EXPECT_TRUE(notes("analytical", kGibibyte).empty());
}

// What a machine says of its switches, whatever the network and the options.
TEST_F(InSwitch, IsAnAlgorithmOfSwitches) {
  CollectiveOptions options;
  const auto refusal = [&](const char* name) {
    machine.dimensions[0].in_switch->name = name;
    return error_of([&] { CollectivePlanner(machine, options, {}); });
  };
  EXPECT_EQ(refusal("ring"),
            "test: dimension nvswitch: in_switch: 'ring' is not an algorithm that runs in switches\n"
            "  hint: known: nvls, sharp, multicast");
  EXPECT_EQ(refusal("nvls"), "no error");
  // Two leaves and a spine.
  machine.graph = links_of(machine);
  machine.graph.nodes.push_back({NetworkNodeKind::switched, "leaf"});
  const auto leaf = static_cast<std::uint32_t>(machine.graph.nodes.size() - 1);
  machine.graph.cables.push_back({leaf - 1, leaf, {}, {}, 0});
  EXPECT_EQ(
      refusal("nvls"),
      "test: dimension nvswitch: in_switch: algorithm 'nvls' runs in one switch, and links join several\n"
      "  hint: sharp adds up over several switches");
  EXPECT_EQ(refusal("sharp"), "no error");
  machine.dimensions[0].in_switch.reset();
  options.algorithms_by_kind[CollectiveKind::all_reduce] = {"nvls"};
  EXPECT_EQ(error_of([&] { CollectivePlanner(machine, options); }).substr(0, 83),
            "collectives.all-reduce: algorithm 'nvls' runs in the one switch of a Switch, and th");
}

// What the links allow, whatever is asked for; not known where the machine does not say that its switches do
// what is asked of them.
TEST_F(InSwitch, TheLimitOfLinksIsTheMachines) {
  const CollectiveCall large = call_of(CollectiveKind::all_reduce, kGibibyte);
  const Time limit = run(machine, large).collectives[0].link_limit;
  EXPECT_GT(limit, Time(0));
  for (const char* const algorithm : {"ring", "direct", "halving-doubling", "nvls", "sharp"})
    EXPECT_EQ(run(machine, large, with(algorithm)).collectives[0].link_limit, limit) << algorithm;
  machine.dimensions[0].in_switch.reset();
  const Time without = run(machine, large).collectives[0].link_limit;
  EXPECT_GT(without, limit);
  EXPECT_EQ(run(machine, large, with("ring")).collectives[0].link_limit, without);
  EXPECT_EQ(run(machine, large, with("sharp")).collectives[0].link_limit, Time(0));
}

TEST_F(InSwitch, NeedsASwitch) {
  machine.dimensions[0].kind = DimensionKind::ring;
  machine.dimensions[0].in_switch.reset();
  CollectiveOptions options;
  options.algorithms_by_kind[CollectiveKind::all_reduce] = {"sharp"};
  EXPECT_EQ(error_of([&] { CollectivePlanner(machine, options); }),
            "collectives.all-reduce: algorithm 'sharp' runs in the switch of a Switch, and there is none\n"
            "  hint: name another algorithm for dimensions of other kinds and for flat collectives");
  machine.dimensions[0].kind = DimensionKind::switched;
  machine.dimensions[0].size = 4;
  machine.dimensions[0].cables = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  EXPECT_EQ(error_of([&] { CollectivePlanner(machine, options); }).substr(0, 81),
            "collectives.all-reduce: algorithm 'sharp' runs in the switch of a Switch, and the");
  machine.dimensions[0].cables.clear();
  EXPECT_EQ(
      error_of([&] { CollectivePlanner(machine, options, {}); }),
      "collectives.all-reduce: algorithm 'sharp' runs in switches, and the network has none that reduce\n"
      "  hint: choose an analytical network or flow, or another algorithm");
}

}  // namespace
}  // namespace armilla
