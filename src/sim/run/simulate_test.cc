#include "sim/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "base/cases_testing.h"
#include "base/error.h"
#include "base/error_testing.h"
#include "sim/run/simulate_testing.h"

namespace armilla {
namespace {

Time time_of(const Study& study, const std::vector<CollectiveCall>& calls, bool fold = false) {
  const Graph graph = graph_with(study.plan.ranks, calls);
  const Time played = simulate(graph, study, NoCost(), {.fold = fold, .every_message = true}).iteration;
  EXPECT_EQ(simulate(graph, study, NoCost(), {.fold = fold}).iteration, played);
  return played;
}

TEST(Simulate, RingCollectivesEqualTheirClosedForms) {
  for (const std::int64_t n : {2, 3, 8, 13}) {
    const Study study = rings_of({dimension(DimensionKind::ring, n)});
    const Time step = nanoseconds(100 + 1000);
    EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 1000 * n)}), step * (2 * (n - 1))) << n;
    EXPECT_EQ(time_of(study, {call(CollectiveKind::reduce_scatter, 1000 * n)}), step * (n - 1)) << n;
    EXPECT_EQ(time_of(study, {call(CollectiveKind::all_gather, 1000 * n)}), step * (n - 1)) << n;
  }
}

// Unless the user says otherwise, rings go both ways: an even one's far block in two halves.
TEST(Simulate, BidirectionalRingsEqualTheirClosedForms) {
  for (const std::int64_t n : {3, 8, 13}) {
    const Study study = study_of({dimension(DimensionKind::ring, n)});
    const Time round = nanoseconds(100 + 1000) * (n / 2) - nanoseconds(n % 2 == 0 ? 500 : 0);
    EXPECT_EQ(time_of(study, {call(CollectiveKind::reduce_scatter, 1000 * n)}), round) << n;
    EXPECT_EQ(time_of(study, {call(CollectiveKind::all_gather, 1000 * n)}), round) << n;
    EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 1000 * n)}), round * 2) << n;
  }
}

TEST(Simulate, DirectOnASwitchPaysForItsPort) {
  const std::int64_t n = 8;
  Study study = study_of({dimension(DimensionKind::switched, n)});
  study.collectives.algorithms = {"direct"};
  // n-1 messages of 1000 bytes leave one port: 7000 ns and two hops; an all-reduce does it twice.
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_to_all, 1000 * n)}), nanoseconds(7 * 1000 + 200));
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 1000 * n)}), nanoseconds(2 * (7 * 1000 + 200)));
  study.network.name = "analytical-unshared";
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_to_all, 1000 * n)}), nanoseconds(1000 + 200));
  Study links = study_of({dimension(DimensionKind::fully_connected, n)});
  EXPECT_EQ(time_of(links, {call(CollectiveKind::all_to_all, 1000 * n)}), nanoseconds(1000 + 100));
}

// Who sends what is given: the report tells of that, not of an algorithm that could have done it.
TEST(Simulate, SchedulesOfTheirOwnAreDescribedByThemselves) {
  const Study study = study_of({dimension(DimensionKind::switched, 3)});
  Graph graph = graph_with(3, {call(CollectiveKind::all_to_all, 3000)});
  graph.collectives[0].custom = 0;
  CustomCollective& custom = graph.custom.emplace_back();
  custom.name = "to the first";
  custom.members.resize(3);
  for (std::int32_t member = 1; member < 3; ++member) {
    for (const auto& [own, peer] : {std::pair(member, 0), std::pair(0, member)}) {
      CustomProgram& program = custom.members[static_cast<std::size_t>(own)];
      CustomNode& node = program.nodes.emplace_back();
      node.kind = own == 0 ? CustomNode::Kind::receive : CustomNode::Kind::send;
      node.peer = peer;
      node.bytes = Bytes(1000 * member);
      program.first_dependence.push_back(0);
      program.labels.emplace_back("message");
    }
  }
  const Result result = simulate(graph, study, NoCost());
  EXPECT_EQ(result.iteration, nanoseconds(200 + 3000));
  ASSERT_FALSE(result.collectives.empty());
  for (const CollectiveRecord& record : result.collectives) {
    EXPECT_EQ(record.algorithm, "to the first");
    // Both messages come in by one link, at 1 byte a nanosecond.
    EXPECT_EQ(record.busiest_link, nanoseconds(3000));
    EXPECT_EQ(record.link_limit, record.busiest_link);
  }
}

TEST(Simulate, HalvingDoublingEqualsItsClosedForm) {
  const std::int64_t n = 8;
  Study study = study_of({dimension(DimensionKind::switched, n)});
  study.collectives.algorithms = {"halving-doubling"};
  // 2 log2 n steps of two hops, (n-1)/n of the bytes each way.
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 1000 * n)}),
            nanoseconds(6 * 200 + 2 * 7 * 1000));
}

TEST(Simulate, HierarchicalPhasesAddUpForOneChunk) {
  const Study study = rings_of({dimension(DimensionKind::ring, 4, 10), dimension(DimensionKind::ring, 3, 1)});
  // 12000 B: reduce-scatter 3 steps of 3000 B at 10 GB/s, all-reduce of 3000 B over 3 in 4 steps of 1000 B,
  // all-gather back.
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 12000)}),
            nanoseconds(3 * 400 + 4 * 1100 + 3 * 400));
  Study baseline = study;
  baseline.collectives.decomposition = Decomposition::baseline;
  EXPECT_EQ(time_of(baseline, {call(CollectiveKind::all_reduce, 12000)}),
            nanoseconds(6 * 400 + 4 * (100 + 4000)));
}

TEST(Simulate, ChunksOverlapAcrossDimensions) {
  Study study = rings_of(
      {dimension(DimensionKind::ring, 4, 1, Time(0)), dimension(DimensionKind::ring, 4, 0.25, Time(0))});
  const Time whole = time_of(study, {call(CollectiveKind::all_reduce, 1 << 20)});
  study.collectives.chunks = 8;
  const Time chunked = time_of(study, {call(CollectiveKind::all_reduce, 1 << 20)});
  EXPECT_LT(chunked, whole);
  // But never faster than the busiest link: dimension 0 carries 2 * 3/4 of the bytes at 1 GB/s.
  EXPECT_GE(chunked, nanoseconds((1 << 20) * 3 / 2));
}

TEST(Simulate, ConcurrentChunksGainNoBandwidth) {
  Study study = study_of({dimension(DimensionKind::ring, 8, 1, Time(0))});
  study.collectives.chunks = 16;
  const Time one = time_of(study, {call(CollectiveKind::all_reduce, 1 << 20)});
  study.collectives.active_chunks = 16;
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 1 << 20)}), one);
  study.network.name = "analytical-unshared";
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 1 << 20)}).value * 16, one.value);
}

// Four members in a square of cables, two of which lead from 0 to 1: pairs attain 2 GB/s of 3 or 1.
TEST(Simulate, CollectivesShareTheCablesThatBothTake) {
  Study study = study_of({dimension(DimensionKind::switched, 4, 3, Time(0))});
  study.machine.dimensions[0].cables = {{0, 1}, {0, 1}, {2, 3}, {2, 3}, {0, 2}, {1, 3}};
  const auto family = [](std::vector<std::vector<std::int32_t>> groups, std::vector<std::int32_t> group_of) {
    GroupFamily made;
    made.name = "family";
    made.groups = std::move(groups);
    made.group_of = std::move(group_of);
    return made;
  };
  const GroupFamily rows = family({{0, 1}, {2, 3}}, {0, 0, 1, 1}),
                    columns = family({{0, 2}, {1, 3}}, {0, 1, 0, 1});
  const auto time = [&](const std::vector<GroupFamily>& families, const std::string& network, bool fold) {
    std::vector<CollectiveCall> calls;
    for (const GroupFamily& one : families) {
      calls.push_back(call(CollectiveKind::all_reduce, one.groups[0][1] == 1 ? 8000 : 4000));
      calls.back().family = static_cast<std::uint32_t>(calls.size() - 1);
    }
    Graph graph = graph_with(4, calls);
    graph.families = families;
    study.network.name = network;
    return simulate(graph, study, NoCost(), {.fold = fold}).iteration;
  };
  for (const bool fold : {false, true}) {
    // Two steps of half the bytes.
    EXPECT_EQ(time({rows}, "analytical", fold), nanoseconds(4000));
    EXPECT_EQ(time({columns}, "analytical", fold), nanoseconds(4000));
    EXPECT_EQ(time({rows, rows}, "analytical", fold), nanoseconds(8000)) << "one pair of cables";
    EXPECT_EQ(time({rows, columns}, "analytical", fold), nanoseconds(4000)) << "cables of their own";
    EXPECT_EQ(time({rows, rows}, "analytical-unshared", fold), nanoseconds(4000));
    // A network that sees a switch adds what the cables take longer.
    EXPECT_NEAR(in_seconds(time({rows}, "flow", fold)), 4e-6, 1e-9);
  }
}

TEST(Simulate, SaysWhereSendersShareLinks) {
  const auto notes = [](DimensionKind kind, std::uint32_t families, const std::string& network) {
    Study study = study_of({dimension(kind, 4)});
    study.network = parse_component(network, "test");
    std::vector<CollectiveCall> calls(families, call(CollectiveKind::all_reduce, 64000));
    for (std::uint32_t i = 0; i < families; ++i) calls[i].family = i;
    Graph graph = graph_with(4, calls);
    graph.families.assign(families, world_family(4));
    return simulate(graph, study, NoCost(), {}).notes;
  };
  const auto is = [](const std::string& begin) { return testing::ElementsAre(testing::StartsWith(begin)); };
  const std::string shared =
      "links were shared by collectives of different groups, or by pipelines with them: d0";
  EXPECT_THAT(notes(DimensionKind::switched, 1, "analytical"), testing::IsEmpty());
  EXPECT_THAT(notes(DimensionKind::switched, 2, "analytical"), is(shared + " by up to 2 at once, for "));
  EXPECT_THAT(notes(DimensionKind::switched, 2, "flow"), is(shared));
  EXPECT_THAT(notes(DimensionKind::switched, 2, "analytical-unshared"), testing::IsEmpty());
  for (const std::string network : {"packet", "flit"}) {
    const auto says = testing::Contains(testing::StartsWith(shared + " by up to 2 at once, for "));
    EXPECT_THAT(notes(DimensionKind::switched, 2, network), says) << network;
    EXPECT_THAT(notes(DimensionKind::switched, 1, network), testing::Not(says)) << network;
  }
  EXPECT_THAT(notes(DimensionKind::ring, 1, "analytical"), testing::IsEmpty());
  EXPECT_THAT(notes(DimensionKind::ring, 2, "analytical"), is(shared + " by up to 2 at once, for "));
  EXPECT_THAT(notes(DimensionKind::ring, 2, "analytical:sharing=first-come"), testing::IsEmpty());
}

TEST(Simulate, ReductionsAreChargedOnRequest) {
  Study study = rings_of({dimension(DimensionKind::ring, 4)});
  study.collectives.charge_reductions = true;
  // Three of the six steps reduce 1000 B: 3000 B of memory traffic at 3 GB/s.
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 4000)}), nanoseconds(6 * 1100 + 3 * 1000));
}

TEST(Simulate, ASingleRankFinishesItsCollectivesAtOnce) {
  EXPECT_EQ(time_of(study_of({}), {call(CollectiveKind::all_reduce, 1000)}), Time(0));
}

TEST(Simulate, ALaterCollectiveOvertakesUnderLifo) {
  Study study = study_of({dimension(DimensionKind::ring, 4)});
  study.collectives.chunks = 4;
  const Graph graph =
      graph_with(4, {call(CollectiveKind::all_reduce, 16000), call(CollectiveKind::all_reduce, 16000)});
  const auto finish = [&](ChunkOrder order) {
    study.collectives.order = order;
    const Result result = simulate(graph, study, NoCost(), {false});
    std::vector<Time> times(2);
    for (const CollectiveRecord& record : result.collectives) times[record.call] = record.finished;
    return times;
  };
  const std::vector<Time> fifo = finish(ChunkOrder::fifo);
  EXPECT_LT(fifo[0], fifo[1]);
  // The first collective already has its first chunk under way when the second one is issued.
  const std::vector<Time> lifo = finish(ChunkOrder::lifo);
  EXPECT_LT(lifo[1], lifo[0]);
  EXPECT_EQ(lifo[0], fifo[1]);
}

TEST(Simulate, ComputationHidesCommunication) {
  Graph graph = graph_with(2, {call(CollectiveKind::all_reduce, 2000)}, nanoseconds(500));
  const std::uint32_t first = 0;
  graph.programs[0].add(NodeKind::delay, Phase::other, 1, -1, 1'500'000, std::span(&first, 1));
  const Study study = study_of({dimension(DimensionKind::ring, 2)});
  for (const bool fold : {false, true}) {
    const Result result = simulate(graph, study, NoCost(), {fold});
    // Communication from 500 to 500 + 2 * 1100 ns, computation until 2000 ns.
    EXPECT_EQ(result.iteration, nanoseconds(2700));
    EXPECT_EQ(result.classes[0].compute, nanoseconds(2000));
    EXPECT_EQ(result.classes[0].communication, nanoseconds(2200));
    EXPECT_EQ(result.classes[0].exposed_communication, nanoseconds(700));
  }
}

TEST(Simulate, UnusedNetworksAreSaid) {
  const Study study = study_of({dimension(DimensionKind::ring, 4)});
  const Result silent = simulate(graph_with(4, {}), study, NoCost(), {});
  EXPECT_EQ(silent.warnings,
            (std::vector<std::string>{"the 4 ranks never communicate: the network was not used"}));
  EXPECT_TRUE(
      simulate(graph_with(4, {call(CollectiveKind::all_reduce, 100)}), study, NoCost(), {}).warnings.empty());
}

// The limits are bounds: nothing finishes before its busiest link can have carried what it must, which is no
// less than what the links allow any algorithm.
TEST(Simulate, NoCollectiveBeatsItsLinks) {
  for (const DimensionKind kind :
       {DimensionKind::ring, DimensionKind::fully_connected, DimensionKind::switched}) {
    for (const char* const algorithm : {"ring", "direct", "halving-doubling", "double-binary-tree"}) {
      for (const std::int64_t n : {2, 5, 8, 16}) {
        Study study = study_of({dimension(kind, n, 1, Time(0))});
        study.collectives.algorithms = {algorithm};
        for (const bool flat : {false, true}) {
          study.collectives.decomposition = flat ? Decomposition::flat : Decomposition::bandwidth_aware;
          const Result result =
              simulate(graph_with(n, {call(CollectiveKind::all_reduce, 64000)}), study, NoCost(), {false});
          ASSERT_EQ(result.collectives.size(), 1U);
          EXPECT_LE(result.collectives[0].busiest_link, result.iteration)
              << algorithm << ' ' << n << ' ' << name_of(kind);
          EXPECT_LE(result.collectives[0].link_limit, result.links[0].busy)
              << algorithm << ' ' << n << ' ' << name_of(kind);
          EXPECT_GE(result.collectives[0].busiest_link.value, result.links[0].busy.value * 99 / 100)
              << algorithm << ' ' << n << ' ' << name_of(kind);
        }
      }
    }
  }
}

TEST(Simulate, ARunBeyondTheMessageBudgetIsRefused) {
  const Study study = rings_of({dimension(DimensionKind::ring, 8)});
  SimulationOptions options{.fold = false, .max_messages = 111};
  // 8 ranks x 14 steps.
  try {
    simulate(graph_with(8, {call(CollectiveKind::all_reduce, 800)}), study, NoCost(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "simulation: the run would take about 112 messages, the limit is 111\n"
                 "  hint: choose other algorithms, fewer chunks or fewer ranks, or raise the limit with "
                 "--max-messages");
  }
  options.max_messages = 112;
  EXPECT_EQ(
      simulate(graph_with(8, {call(CollectiveKind::all_reduce, 800)}), study, NoCost(), options).messages,
      112);
}

TEST(Simulate, RanksThatFareAlikeAreOneClass) {
  Graph graph = graph_with(6, {call(CollectiveKind::all_reduce, 600)});
  const Result result = simulate(graph, study_of({dimension(DimensionKind::ring, 6)}), NoCost(), {false});
  ASSERT_EQ(result.classes.size(), 1U);
  EXPECT_EQ(result.classes[0].ranks, 6);
  EXPECT_EQ(result.classes[0].collectives.size(), 1U);
}

TEST(Simulate, AnAbsurdlyLongRunIsRefused) {
  Study study = study_of({dimension(DimensionKind::ring, 4)});
  study.machine.dimensions[0].bandwidth = Bandwidth(1e-6);
  EXPECT_THROW(time_of(study, {call(CollectiveKind::all_reduce, 1'000'000'000)}), Error);
}

// A tree over two dimensions has phases that no tree performs: what ran instead must not go unsaid.
TEST(Simulate, AReplacedAlgorithmIsSaid) {
  Study study = study_of({dimension(DimensionKind::switched, 4), dimension(DimensionKind::ring, 3)});
  study.collectives.algorithms = {"double-binary-tree"};
  const Graph graph = graph_with(12, {call(CollectiveKind::all_reduce, 12000)});
  EXPECT_EQ(
      simulate(graph, study, NoCost(), {}).warnings,
      (std::vector<std::string>{
          "algorithm 'double-binary-tree' cannot perform all-gather: 'halving-doubling' is used instead",
          "algorithm 'double-binary-tree' cannot perform reduce-scatter: 'halving-doubling' is used "
          "instead"}));
  study.collectives.decomposition = Decomposition::baseline;
  EXPECT_TRUE(simulate(graph, study, NoCost(), {}).warnings.empty());
}

TEST(Simulate, WrongAlgorithmListsAreRefused) {
  Study study = study_of({dimension(DimensionKind::ring, 2), dimension(DimensionKind::ring, 2),
                          dimension(DimensionKind::ring, 2)});
  study.collectives.algorithms = {"ring", "direct"};
  try {
    time_of(study, {call(CollectiveKind::all_reduce, 100)});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "collectives.algorithms: names 2 algorithms for 3 dimensions\n  hint: name one for all "
                 "dimensions, or one for each");
  }
}

TEST(Simulate, SlowRanksComputeLonger) {
  const Graph graph = graph_with(8, {call(CollectiveKind::all_reduce, 8000)}, nanoseconds(1000));
  Study study = rings_of({dimension(DimensionKind::ring, 8)});
  study.what_if.ranks = {{{3, 3}, 1.25}};
  for (const bool fold : {false, true}) {
    const Result result = simulate(graph, study, NoCost(), {fold});
    EXPECT_EQ(result.classes[result.class_of[3]].compute, nanoseconds(1250));
    EXPECT_EQ(result.classes[result.class_of[2]].compute, nanoseconds(1000));
    EXPECT_EQ(result.iteration, nanoseconds(1250 + 14 * 1100));
  }
}

TEST(Simulate, OtherDevicesHaveCostsOfTheirOwn) {
  class Fixed : public NoCost {
   public:
    explicit Fixed(Time time) : time_(time) {}
    Time time(const Work&) const override { return time_; }

   private:
    Time time_;
  };
  Graph graph = graph_with(4, {});
  graph.works.emplace_back();
  graph.programs[0].add(NodeKind::compute, Phase::other, 1, -1, 0, {});
  Study study = study_of({dimension(DimensionKind::ring, 4)});
  study.machine.others = {{2, 3, study.machine.device}};
  const Fixed usual(nanoseconds(10)), other(nanoseconds(30));
  const std::vector<const CostModel*> costs = {&usual, &other};
  const Result result = simulate(graph, study, costs);
  ASSERT_EQ(result.classes.size(), 2U);
  EXPECT_EQ(result.class_of, (std::vector<std::uint32_t>{0, 0, 1, 1}));
  EXPECT_EQ(result.classes[0].finish, nanoseconds(10));
  EXPECT_EQ(result.classes[1].finish, nanoseconds(30));
}

TEST(Simulate, IntervalsOfChosenRanksAreKept) {
  const Graph graph = graph_with(8, {call(CollectiveKind::all_reduce, 8000)}, nanoseconds(1000));
  Study study = study_of({dimension(DimensionKind::ring, 8)});
  study.what_if.ranks = {{{3, 3}, 1.25}};
  SimulationOptions options;
  const Result without = simulate(graph, study, NoCost(), options);
  EXPECT_TRUE(without.classes[without.class_of[3]].computes.empty());
  options.record_ranks = {3, 5};
  const Result with = simulate(graph, study, NoCost(), options);
  const RankClass& slow = with.classes[with.class_of[3]];
  EXPECT_EQ(slow.representative, 3);
  ASSERT_EQ(slow.computes.size(), 1U);
  EXPECT_EQ(slow.computes[0].end, nanoseconds(1250));
  EXPECT_EQ(slow.collectives.size(), 1U);
  EXPECT_EQ(with.classes[with.class_of[5]].computes.size(), 1U);
  // Not another collective for reports to count.
  EXPECT_EQ(with.collectives.size(), without.collectives.size());
  options.record_ranks = {8};
  EXPECT_EQ(error_of([&] { simulate(graph, study, NoCost(), options); }),
            "simulation: rank 8 of 8 ranks is to be recorded");
}

// What is made of sums needs only when something was computed, but of layers how long.
TEST(Simulate, ComputationsThatFollowEachOtherAreOneIntervalWhereNotEachIsKept) {
  const Study study = rings_of({dimension(DimensionKind::ring, 2)});
  Graph graph = graph_with(2, {call(CollectiveKind::all_reduce, 1000)}, nanoseconds(5));
  Program& program = graph.programs.front();
  graph.layers = {"layer"};
  const auto delay = [&](std::int32_t layer, std::uint32_t after) {
    program.add(NodeKind::delay, Phase::forward, 1, layer, 7000, std::span(&after, 1));
    return program.size() - 1;
  };
  const std::uint32_t exchange = program.size() - 1;
  delay(-1, delay(-1, delay(0, delay(-1, delay(-1, exchange)))));
  delay(0, program.size() - 1);
  SimulationOptions options;
  const Result each = simulate(graph, study, NoCost(), options);
  options.every_interval = false;
  const Result some = simulate(graph, study, NoCost(), options);
  EXPECT_EQ(some.iteration, each.iteration);
  EXPECT_EQ(some.classes.front().compute, each.classes.front().compute);
  EXPECT_EQ(some.classes.front().exposed_communication, each.classes.front().exposed_communication);
  ASSERT_EQ(each.classes.front().computes.size(), 7U);
  const Time end = each.iteration;
  const auto ns = [](std::int64_t count) { return nanoseconds(count); };
  const std::vector<std::pair<Time, Time>> expected = {{ns(0), ns(5)},
                                                       {end - ns(42), end - ns(28)},
                                                       {end - ns(28), end - ns(21)},
                                                       {end - ns(21), end - ns(7)},
                                                       {end - ns(7), end}};
  std::vector<std::pair<Time, Time>> kept;
  for (const Interval& interval : some.classes.front().computes)
    kept.emplace_back(interval.start, interval.end);
  EXPECT_EQ(kept, expected);
}

// Random machines, algorithms and mixtures of collectives: every one finishes, and folded equals unfolded to
// the picosecond.
TEST(Simulate, FoldedEqualsUnfolded) {
  std::mt19937 random(7);
  const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  int folded = 0;
  for (int round = 0; round < 400; round += kCaseStep) {
    std::vector<Dimension> dimensions;
    for (std::uint32_t d = 0; d <= pick(3); ++d) {
      dimensions.push_back(dimension(static_cast<DimensionKind>(pick(3)), 2 + pick(5), 1 + pick(4),
                                     nanoseconds(pick(3) * 50)));
    }
    Study study = study_of(dimensions);
    const char* const algorithms[] = {"ring", "direct", "direct:window=2", "halving-doubling",
                                      "double-binary-tree"};
    if (pick(4) > 0) {
      for (std::size_t d = 0; d < dimensions.size(); ++d)
        study.collectives.algorithms.emplace_back(algorithms[pick(5)]);
    }
    study.collectives.chunks = 1 + pick(5);
    study.collectives.active_chunks = 1 + pick(3);
    study.collectives.order = static_cast<ChunkOrder>(pick(3));
    study.collectives.decomposition = static_cast<Decomposition>(pick(3));
    if (study.collectives.decomposition == Decomposition::flat && study.collectives.algorithms.size() > 1)
      study.collectives.algorithms.resize(1);
    study.collectives.charge_reductions = pick(2) == 0;
    std::vector<CollectiveCall> calls;
    for (std::uint32_t i = 0; i <= pick(4); ++i)
      calls.push_back(call(kCollectiveKinds[pick(7)], pick(100'000)));
    const Graph graph = graph_with(study.plan.ranks, calls, nanoseconds(pick(1000)));
    const Result all = simulate(graph, study, NoCost(), {false});
    const Result one = simulate(graph, study, NoCost(), {true});
    folded += one.messages < all.messages;
    ASSERT_EQ(one.iteration, all.iteration) << "round " << round;
    ASSERT_EQ(one.classes[0].communication, all.classes[0].communication) << "round " << round;
    ASSERT_EQ(one.classes[0].exposed_communication, all.classes[0].exposed_communication)
        << "round " << round;
  }
  EXPECT_GT(folded, 50 / kCaseStep);
}

// Among 16,384 ranks of one class, whose messages would be 268 million a chunk and call if each were played.
TEST(Simulate, CollectivesAreMemoisedAsTheyAreFolded) {
  const std::int64_t n = 16384;
  Study study = study_of({dimension(DimensionKind::switched, n)});
  study.collectives.algorithms = {"direct"};
  Graph graph = graph_with(n, {call(CollectiveKind::all_to_all, 16384)});
  for (std::uint32_t before = 1; before < 4; ++before)
    graph.programs[0].add(NodeKind::collective, Phase::other, 0, -1, 0, std::span(&before, 1));
  const Result result = simulate(graph, study, NoCost());
  const Result played = simulate(graph, study, NoCost(), {.every_message = true});
  EXPECT_EQ(result.iteration, played.iteration);
  EXPECT_EQ(result.messages, 4 * (n - 1));
  EXPECT_LT(result.events, played.events / 3);
}

// What a record says of its collective is what its own program's ranks see.
TEST(Simulate, RecordsOfOneCallInGroupsOfDifferentSizeAreToldApart) {
  const Study study = study_of({dimension(DimensionKind::fully_connected, 5)});
  Graph graph = graph_with(5, {call(CollectiveKind::all_reduce, 6000)});
  graph.families[0].groups = {{0, 1}, {2, 3, 4}};
  graph.families[0].group_of = {0, 0, 1, 1, 1};
  graph.programs.push_back(graph.programs[0]);
  graph.program_of = {0, 0, 1, 1, 1};
  const Result result = simulate(graph, study, NoCost());
  ASSERT_EQ(result.collectives.size(), 2U);
  for (const CollectiveRecord& record : result.collectives)
    EXPECT_EQ(record.group_size, record.program == 0 ? 2 : 3);
}

// A quarter of the device is held for as long as the collective takes.
TEST(Simulate, ComputationIsSlowerBesideWhatHoldsProcessors) {
  Study study = study_of({dimension(DimensionKind::ring, 4)});
  study.machine.device.kernels.emplace().processors = 128;
  const auto played = [&](std::int32_t processors, Time before, Time beside) {
    Graph graph = graph_with(4, {}, Time(0));
    CollectiveCall call{CollectiveKind::all_reduce, Bytes(4000), 0};
    call.processors = processors;
    graph.collectives.push_back(call);
    Program& program = graph.programs.front();
    const std::uint32_t first =
        program.add(NodeKind::delay, Phase::other, 1, -1, static_cast<std::uint64_t>(before.value), {});
    program.lane.back() = Lane::none;
    program.add(NodeKind::collective, Phase::other, 1, -1, 0, std::span(&first, 1));
    program.add(NodeKind::delay, Phase::other, 1, -1, static_cast<std::uint64_t>(beside.value), {});
    return simulate(graph, study, NoCost(), {}).iteration;
  };
  const Time alone = played(0, Time(0), Time(0)), long_enough = alone * 4;
  // Rounded to picoseconds whenever the pace changes.
  const auto expect = [&](std::int32_t processors, Time before, Time beside, Time all) {
    EXPECT_NEAR(static_cast<double>(played(processors, before, beside).value), static_cast<double>(all.value),
                2)
        << processors << " from " << before.value;
  };
  expect(0, Time(0), long_enough, long_enough);
  expect(32, Time(0), long_enough, long_enough + alone / 4);
  expect(32, alone, long_enough, long_enough + alone / 4);
  expect(32, alone * 3, long_enough, long_enough + alone / 4);
  expect(32, Time(0), alone * 3 / 4, alone);
  expect(1000, Time(0), alone / 2, alone + alone / 2 - alone / 128);  // all but one
}

// Of several calls the one that holds most counts, whichever was issued first.
TEST(Simulate, ComputationIsAsSlowAsBesideTheCallThatHoldsMost) {
  Study study = study_of({dimension(DimensionKind::ring, 4)});
  study.machine.device.kernels.emplace().processors = 128;
  constexpr std::int64_t kLong = 1'000'000'000'000;
  for (const auto& [first, second] : {std::pair(16, 32), {32, 16}, {32, 32}}) {
    Graph graph = graph_with(4, {}, Time(0));
    Program& program = graph.programs.front();
    for (const std::int32_t processors : {first, second}) {
      CollectiveCall call{CollectiveKind::all_reduce, Bytes(4000), 0};
      call.processors = processors;
      graph.collectives.push_back(call);
      program.add(NodeKind::collective, Phase::other, 1, -1, graph.collectives.size() - 1, {});
    }
    program.add(NodeKind::delay, Phase::other, 1, -1, kLong, {});
    const Result result = simulate(graph, study, NoCost(), {});
    ASSERT_EQ(result.collectives.size(), 2U);
    const auto held = [&](std::int64_t from, std::int64_t until, std::int32_t processors) {
      return static_cast<double>(until - from) * processors / 128;
    };
    const std::int64_t one = result.collectives[0].finished.value,
                       both = result.collectives[1].finished.value;
    ASSERT_LT(one, both);
    const double lost = held(0, one, 32) + held(one, both, second);
    EXPECT_NEAR(static_cast<double>(result.iteration.value), kLong + lost, 4) << first << ", " << second;
  }
}

// Leaves of four devices, all below each spine; links of 1 GB/s and 100 ns.
Study leaf_spine_study(std::uint32_t leaves, std::uint32_t spines) {
  Study study = study_of({dimension(DimensionKind::switched, 4 * leaves)});
  Interconnect& graph = study.machine.graph;
  const LinkFigures figures = {gigabytes_per_second(1), nanoseconds(100)};
  for (std::uint32_t device = 0; device < 4 * leaves; ++device)
    graph.nodes.push_back({NetworkNodeKind::device, "gpu" + std::to_string(device)});
  for (std::uint32_t s = 0; s < leaves + spines; ++s)
    graph.nodes.push_back({NetworkNodeKind::switched, "switch" + std::to_string(s)});
  for (std::uint32_t device = 0; device < 4 * leaves; ++device)
    graph.cables.push_back({device, 4 * leaves + device / 4, figures, figures, 0});
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < spines; ++spine)
      graph.cables.push_back({4 * leaves + leaf, 5 * leaves + spine, figures, figures, 0});
  }
  study.network = parse_component("flow", "test");
  study.collectives.algorithms = {"sharp"};
  return study;
}

// Up and down once, over two links each way, whatever the number of members; links above the leaves carry no
// more than those of the devices.
TEST(Simulate, SwitchTreesAddUpOnEveryLevel) {
  for (const std::uint32_t leaves : {2, 3, 8}) {
    Study study = leaf_spine_study(leaves, 2);
    const Time up = nanoseconds(200 + 6000), latency = nanoseconds(200);
    EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 6000)}), 2 * up);
    EXPECT_EQ(time_of(study, {call(CollectiveKind::broadcast, 6000)}), 2 * up);
    EXPECT_EQ(time_of(study, {call(CollectiveKind::reduce, 6000)}), 2 * up);
    EXPECT_EQ(time_of(study, {call(CollectiveKind::barrier, 0)}), 2 * latency);
    // Of six chunks, five go up while others come down.
    study.collectives.chunks = 6;
    study.collectives.active_chunks = 6;
    EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 6000)}), nanoseconds(2 * 200 + 7 * 1000));
    const Graph graph = graph_with(study.plan.ranks, {call(CollectiveKind::all_reduce, 6000)});
    const Result result = simulate(graph, study, NoCost(), {.fold = true});
    std::int64_t bytes = 0;
    for (const LinkUse& link : result.links) {
      EXPECT_LE(link.bytes.value, 6000);
      bytes += link.bytes.value;
    }
    // Each member's, and those of each leaf, to one spine or the other.
    EXPECT_EQ(bytes, 2 * 6000 * (4 * leaves + leaves));
  }
}

// Half the bandwidth takes twice as long for every number of members: each is sent the whole once.
TEST(Simulate, WhatASwitchSendsDownIsCountedOncePerLink) {
  for (const std::int64_t members : {4, 16}) {
    for (const char* const network : {"analytical", "flow"}) {
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
        SCOPED_TRACE(std::string(network) + ' ' + std::to_string(members));
        Study study = study_of({dimension(DimensionKind::switched, members)});
        study.network = parse_component(network, "test");
        study.collectives.algorithms = {"sharp"};
        CollectiveProtocol& own = study.machine.dimensions[0].in_switch.emplace();
        own.name = "sharp";
        const Time whole = time_of(study, {call(kind, 6000)});
        own.share = 0.5;
        EXPECT_EQ(time_of(study, {call(kind, 6000)}) - whole, nanoseconds(6000));
      }
    }
  }
}

// Between switches NVLS would not know sums from shares of them: rings take its place.
TEST(Simulate, NvlsStaysWithinOneSwitch) {
  Study study = leaf_spine_study(1, 0);
  study.collectives.algorithms = {"nvls"};
  // A quarter goes up again behind the sum of it, and the others' come down.
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 4000)}),
            nanoseconds(4 * 100 + 4000 + 1000 + 1000 + 3000));
  study = leaf_spine_study(1, 1);
  study.collectives.algorithms = {"nvls"};
  const Graph graph = graph_with(study.plan.ranks, {call(CollectiveKind::all_reduce, 4000)});
  const Result result = simulate(graph, study, NoCost());
  EXPECT_EQ(result.collectives.front().algorithm, "halving-doubling on d0");
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_EQ(result.warnings.front(),
            "algorithm 'nvls' runs in switches, none of which serves all-reduce: "
            "'halving-doubling' is used instead");
}

// Those of one leaf need no spine; packets and flits end at devices.
TEST(Simulate, SwitchTreesAreOfNetworksThatGrowThem) {
  Study study = leaf_spine_study(1, 1);
  EXPECT_EQ(time_of(study, {call(CollectiveKind::all_reduce, 6000)}), 2 * nanoseconds(100 + 6000));
  study.network = parse_component("packet", "test");
  study.collectives.algorithms.clear();
  study.collectives.algorithms_by_kind[CollectiveKind::all_reduce] = {"sharp"};
  const Graph graph = graph_with(study.plan.ranks, {call(CollectiveKind::all_reduce, 6000)});
  EXPECT_NE(error_of([&] { simulate(graph, study, NoCost()); }).find("the network has none that reduce"),
            std::string::npos);
}

}  // namespace
}  // namespace armilla
