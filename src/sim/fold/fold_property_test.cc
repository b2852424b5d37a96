#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <tuple>

#include "base/cases_testing.h"
#include "base/error.h"
#include "sim/fold/fold_property_testing.h"
#include "sim/fold/layer_loops.h"
#include "sim/fold/rank_colours.h"
#include "sim/plan/senders.h"
#include "sim/run_memory.h"

namespace armilla {
namespace {

// Times of all intervals, in an order of their own.
using Intervals = std::vector<std::tuple<std::int64_t, std::int64_t, std::uint32_t>>;
Intervals intervals_of(const RankClass& ranks) {
  Intervals all;
  for (const auto* list : {&ranks.computes, &ranks.collectives, &ranks.others}) {
    for (const Interval& i : *list) all.emplace_back(i.start.value, i.end.value, i.node);
  }
  for (const ChunkInterval& i : ranks.chunks)
    all.emplace_back(i.start.value, i.end.value, i.node << 16 | i.chunk << 8 | i.phase);
  std::sort(all.begin(), all.end());
  return all;
}

// How many links of a dimension carried so much for so long, and were shared for so long by so many.
using Links =
    std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t, double, std::int64_t, std::int32_t>,
             std::int64_t>;
Links links_of(const Result& result) {
  Links links;
  for (const LinkUse& link : result.links)
    links[{link.dimension, link.bytes.value, link.busy.value, link.bandwidth.value, link.shared.value,
           link.senders}] += link.links;
  return links;
}

// Nodes of collectives and chunks, as they are listed.
std::vector<std::uint64_t> random_order(const Result& result) {
  std::vector<std::uint64_t> order;
  for (const CollectiveRecord& record : result.collectives)
    order.push_back(std::uint64_t{record.program} << 32 | record.node);
  for (const RankClass& ranks : result.classes) {
    for (const Interval& interval : ranks.collectives) order.push_back(interval.node);
    for (const ChunkInterval& chunk : ranks.chunks)
      order.push_back(chunk.node << 16 | chunk.chunk << 8 | chunk.phase);
  }
  return order;
}

std::uint32_t shared_dimensions_of(const RandomJob& job) {
  CollectivePlanner planner(job.study.machine, job.study.collectives);
  return shared_dimensions({job.graph, issued_by(job.graph), job.study, Peers(job.graph)},
                           unfolded(job.graph), planner);
}

std::optional<Result> outcome(const RandomJob& job, bool fold, bool every_message) {
  const LinearCost usual(1000), other(1300);
  std::vector<const CostModel*> costs = {&usual};
  costs.resize(1 + job.study.machine.others.size(), &other);
  SimulationOptions options = job.options;
  options.fold = fold;
  options.every_message = every_message;
  try {
    return simulate(job.graph, job.study, costs, options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void expect_equal(const RandomJob& job, const Result& folded, const Result& played) {
  EXPECT_EQ(folded.iteration, played.iteration);
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(job.graph.ranks); ++rank) {
    const RankClass& a = folded.classes[folded.class_of[rank]];
    const RankClass& b = played.classes[played.class_of[rank]];
    const auto times = [](const RankClass& ranks) {
      return std::tuple(ranks.program, ranks.finish.value, ranks.compute.value, ranks.communication.value,
                        ranks.exposed_communication.value, ranks.host_waits.value);
    };
    ASSERT_EQ(times(a), times(b)) << "rank " << rank;
  }
  EXPECT_EQ(links_of(folded), links_of(played));
  for (const std::size_t program : folded.class_of) {
    const RankClass& a = folded.classes[program];
    const auto b = std::find_if(played.classes.begin(), played.classes.end(), [&](const RankClass& ranks) {
      return ranks.representative == a.representative;
    });
    if (b == played.classes.end() || a.computes.empty() || b->computes.empty()) continue;
    EXPECT_EQ(intervals_of(a), intervals_of(*b));
  }
}

// Random jobs on random machines with stragglers, slow links, other devices: folded or not, with collectives
// evaluated or message by message, equal to the picosecond for every rank and link.
TEST(FoldProperty, ShortCutsChangeNothing) {
  int folded_jobs = 0, evaluated_jobs = 0, both = 0, finished = 0;
  for (std::uint32_t seed = 0; seed < 3600; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    const RandomJob job = RandomJobs(seed).make();
    const std::optional<Result> played = outcome(job, false, true), folded = outcome(job, true, true);
    const std::optional<Result> evaluated = outcome(job, false, false), quick = outcome(job, true, false);
    ASSERT_EQ(folded.has_value(), played.has_value());
    ASSERT_EQ(evaluated.has_value(), played.has_value());
    ASSERT_EQ(quick.has_value(), played.has_value());
    if (!played) continue;
    ++finished;
    folded_jobs += folded->messages < played->messages ? 1 : 0;
    evaluated_jobs += evaluated->events < played->events ? 1 : 0;
    both += folded->messages < played->messages && quick->events < folded->events ? 1 : 0;
    EXPECT_EQ(evaluated->messages, played->messages);
    EXPECT_EQ(quick->messages, folded->messages);
    EXPECT_EQ(random_order(*evaluated), random_order(*played));
    EXPECT_EQ(random_order(*quick), random_order(*folded));
    for (const std::optional<Result>* result : {&folded, &evaluated, &quick})
      expect_equal(job, **result, *played);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 2400 / kCaseStep);
  EXPECT_GT(folded_jobs, 600 / kCaseStep);
  EXPECT_GT(evaluated_jobs, 200 / kCaseStep);
  EXPECT_GT(both, 100 / kCaseStep);
}

// Rows of equal messages (Message::row): collectives of groups of which one rank stands for all, direct ones
// among others, which meet those of other groups and messages of ranks at ports and behind switches, at
// moments of their own or in the very same ones.
TEST(FoldProperty, RowsChangeNothing) {
  int fewer_events = 0, met = 0;
  for (std::uint32_t seed = 0; seed < 1500; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    RandomJob job;
    const std::int64_t inner = 2 + below(4), outer = 2 + below(3);
    Machine& machine = job.study.machine;
    machine.name = "test";
    machine.dimensions = {
        {"inner", DimensionKind::switched, inner, gigabytes_per_second(1 + below(8)),
         nanoseconds(below(3) * 50)},
        {"outer", DimensionKind::switched, outer, gigabytes_per_second(1), nanoseconds(below(4) * 100)}};
    machine.device.memory_bandwidth = gigabytes_per_second(3);
    job.study.plan.ranks = inner * outer;
    job.study.collectives.chunks = 1 + below(4);
    job.study.collectives.active_chunks = 1 + below(2);
    job.study.collectives.algorithms = {"direct", "direct"};
    job.options.intervals = false;
    Graph& graph = job.graph;
    graph.ranks = inner * outer;
    graph.program_of.assign(static_cast<std::size_t>(graph.ranks), 0);
    for (const std::uint32_t mask : {1U, 2U, 3U, 2U})
      graph.families.push_back(grid_family({inner, outer}, mask));
    graph.names.add("node");
    Program& program = graph.programs.emplace_back();
    // Sizes and pauses from a few, so that much happens at once, or from many.
    const bool ties = below(2) == 0;
    const std::uint32_t nodes = 4 + below(12);
    for (std::uint32_t node = 0; node < nodes; ++node) {
      std::vector<std::uint32_t> before;
      if (node > 0 && below(4) > 0) before.push_back(node - 1 - below(std::min(node, 3U)));
      if (below(3) == 0) {
        program.add(NodeKind::delay, Phase::other, 0, -1, ties ? 1'000'000 * below(4) : below(9'000'000),
                    before);
        continue;
      }
      if (below(6) == 0) {
        const std::int64_t bytes = ties ? 2000 : below(9000);
        const auto family = below(2);
        graph.transfers.push_back({1, node, Bytes(bytes), PeerKind::shift, family});
        graph.transfers.push_back({-1, node, Bytes(bytes), PeerKind::shift, family});
        program.add(NodeKind::send, Phase::other, 0, -1, graph.transfers.size() - 2, before);
        program.add(NodeKind::receive, Phase::other, 0, -1, graph.transfers.size() - 1, before);
        ++node;
        continue;
      }
      constexpr CollectiveKind kKinds[] = {CollectiveKind::all_to_all, CollectiveKind::all_gather,
                                           CollectiveKind::reduce_scatter, CollectiveKind::all_reduce};
      CollectiveCall call;
      call.kind = kKinds[below(4)];
      call.bytes = Bytes(ties ? 6000 * (1 + below(3)) : 1 + below(40'000));
      call.family = below(4);
      graph.collectives.push_back(call);
      program.add(NodeKind::collective, Phase::other, 0, -1, graph.collectives.size() - 1, before);
    }
    const std::optional<Result> played = outcome(job, false, true), folded = outcome(job, true, true);
    const std::optional<Result> quick = outcome(job, true, false);
    ASSERT_TRUE(played && folded && quick);
    EXPECT_EQ(quick->messages, folded->messages);
    expect_equal(job, *folded, *played);
    expect_equal(job, *quick, *played);
    fewer_events += quick->events < folded->events ? 1 : 0;
    met +=
        std::ranges::any_of(quick->links, [](const LinkUse& link) { return link.shared > Time(0); }) ? 1 : 0;
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(fewer_events, 700 / kCaseStep);
  EXPECT_GT(met, 500 / kCaseStep);
}

// A program of equal layers, which it passes through once or several times, each time in another way; with
// loops over them and without, of ranks that are folded or not. What is behind them may wait for a node of
// all layers.
TEST(FoldProperty, LoopsOverLayersChangeNothing) {
  int with_loops = 0, left_out = 0;
  for (std::uint32_t seed = 0; seed < 600; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    RandomJob job;
    constexpr DimensionKind kDimensions[] = {DimensionKind::switched, DimensionKind::ring,
                                             DimensionKind::fully_connected};
    job.study.machine.name = "test";
    job.study.machine.dimensions = {
        {"inner", kDimensions[below(3)], 2 + below(2), gigabytes_per_second(4), nanoseconds(100)},
        {"outer", kDimensions[below(3)], 2 + below(2), gigabytes_per_second(1), nanoseconds(300)}};
    const std::int64_t inner = job.study.machine.dimensions[0].size,
                       outer = job.study.machine.dimensions[1].size;
    job.study.machine.device.memory_bandwidth = gigabytes_per_second(3);
    job.study.plan.ranks = inner * outer;
    job.study.collectives.chunks = 1 + below(3);
    Graph& graph = job.graph;
    graph.ranks = inner * outer;
    graph.program_of.assign(static_cast<std::size_t>(graph.ranks), 0);
    for (const std::uint32_t mask : {1U, 2U, 3U}) graph.families.push_back(grid_family({inner, outer}, mask));
    graph.names.add("node");
    graph.layers = {"layer"};
    Program& program = graph.programs.emplace_back();
    if (below(2) == 0) program.issue_time = Time(20'000 * below(3));
    std::uint32_t computed = 0;  // the last computation
    const auto compute = [&](std::int64_t flops, std::vector<std::uint32_t> before) {
      Work work;
      work.flops = Flops(flops);
      // Works that are equal may have several numbers.
      graph.works.push_back(work);
      if (program.size() > 0) before.push_back(computed);
      computed = program.add(NodeKind::compute, Phase::forward, 0, below(2) == 0 ? 0 : -1,
                             graph.works.size() - 1, before);
    };
    const auto communicate = [&](CollectiveCall call, std::uint32_t before) {
      call.priority = static_cast<std::int32_t>(program.size());
      graph.collectives.push_back(call);
      const std::uint32_t dependences[] = {before};
      return program.add(NodeKind::collective, Phase::forward, 0, -1, graph.collectives.size() - 1,
                         dependences);
    };
    compute(1000, {});
    std::vector<std::uint32_t> awaited;
    for (std::uint32_t passes = 1 + below(3); passes > 0; --passes) {
      const std::uint32_t layers = 8 + below(50), computations = 1 + below(4);
      const std::int64_t flops = 100 + below(20'000);
      CollectiveCall gather{CollectiveKind::all_gather, Bytes(1000 + below(30'000)), below(3)};
      CollectiveCall reduce{CollectiveKind::reduce_scatter, Bytes(1000 + below(30'000)), below(3)};
      gather.processors = below(3) == 0 ? 2 : 0;
      const bool gathers = below(4) > 0, reduces = below(4) > 0;
      std::uint32_t one_before = computed, gathered = 0;
      for (std::uint32_t layer = 0; layer < layers; ++layer) {
        // One layer ahead.
        if (gathers) gathered = communicate(gather, one_before);
        one_before = computed;
        for (std::uint32_t node = 0; node < computations; ++node)
          compute(flops + 10 * node,
                  node == 0 && gathers ? std::vector{gathered} : std::vector<std::uint32_t>{});
        if (reduces) awaited.push_back(communicate(reduce, computed));
      }
      compute(5000, {});
    }
    if (below(2) == 0) compute(5000, awaited);
    job.options.intervals = false;
    RandomJob sums = job;
    sums.options.collectives = false;
    job.options.fold_time = false;
    const std::optional<Result> played = outcome(job, false, true);
    const std::optional<Result> quick = outcome(sums, true, false), unfolded = outcome(sums, false, true);
    ASSERT_TRUE(played && quick && unfolded);
    EXPECT_EQ(unfolded->messages, played->messages);
    for (const std::optional<Result>* result : {&quick, &unfolded}) expect_equal(job, **result, *played);
    const std::optional<Graph> loops = in_layer_loops(graph, job.study.collectives.order);
    with_loops += loops ? 1 : 0;
    if (loops) validate_graph(*loops);
    left_out += !quick->classes.front().repeated.empty() ? 1 : 0;
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(with_loops, 350 / kCaseStep);
  EXPECT_GT(left_out, 250 / kCaseStep);
}

// The same with other messages in its collectives, and with its families of groups in another order.
RandomJob with_other_sizes(RandomJob job) {
  for (CollectiveCall& call : job.graph.collectives) call.bytes = Bytes(call.bytes.value / 2 + 500);
  return job;
}
RandomJob with_turned_families(RandomJob job) {
  std::vector<GroupFamily>& families = job.graph.families;
  const auto count = static_cast<std::uint32_t>(families.size());
  std::rotate(families.begin(), families.begin() + 1, families.end());
  for (CollectiveCall& call : job.graph.collectives) call.family = (call.family + count - 1) % count;
  for (PointToPoint& transfer : job.graph.transfers) transfer.family = (transfer.family + count - 1) % count;
  return job;
}

// Runs of one study that know what those before them knew (sim/run_memory.h), equal to the picosecond for
// every rank and link to runs that know nothing; as well where they forget much of it.
TEST(FoldProperty, WhatEarlierRunsLeftChangesNothing) {
  constexpr KeptAtMost kLittle{.plans = 6, .remembered = 40, .structures = 1, .ranks = 100};
  int finished = 0, fewer_events = 0, folded = 0, forgotten = 0;
  for (std::uint32_t seed = 50000; seed < 51200; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    RandomJobs random(seed);
    const RandomJob first = seed % 4 == 0   ? random.make_on_links()
                            : seed % 4 == 1 ? random.make_on_torus()
                                            : random.make();
    if (!first.study.machine.others.empty()) continue;  // whose costs are the study's, not this test's
    const std::vector<RandomJob> jobs = {first, with_other_sizes(first), with_turned_families(first)};
    std::vector<std::optional<Result>> played;
    for (const RandomJob& job : jobs) played.push_back(outcome(job, true, false));
    // What was not finished is not used again.
    if (std::ranges::any_of(played, [](const auto& result) { return !result.has_value(); })) continue;
    ++finished;
    RunMemory memory(first.study), forgetful(first.study, kLittle);
    for (const std::size_t number : {0, 1, 0, 2, 2, 0, 1, 1}) {
      const RandomJob& job = jobs[number];
      const LinearCost cost(1000);
      const Result known = simulate(job.graph, cost, job.options, memory);
      expect_equal(job, known, *played[number]);
      const Result again = simulate(job.graph, cost, job.options, forgetful);
      expect_equal(job, again, *played[number]);
      forgotten += again.events > known.events ? 1 : 0;
      EXPECT_EQ(known.messages, played[number]->messages);
      EXPECT_EQ(random_order(known), random_order(*played[number]));
      fewer_events += known.events < played[number]->events ? 1 : 0;
      folded += known.classes.size() < static_cast<std::size_t>(job.graph.ranks) ? 1 : 0;
    }
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 600 / kCaseStep);
  EXPECT_GT(fewer_events, 400 / kCaseStep);
  EXPECT_GT(forgotten, 200 / kCaseStep);
  EXPECT_GT(folded, 400 / kCaseStep);
}

// Jobs whose messages share the links of a graph, or of dimensions: folded or not, with collectives looked up
// or message by message, equal to the picosecond for every rank and link.
TEST(FoldProperty, SharedLinksChangeNothing) {
  int finished = 0, folded_jobs = 0, graphs = 0, sprayed = 0, looked_up = 0, both = 0;
  for (std::uint32_t seed = 0; seed < 4100; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    const RandomJob job = RandomJobs(seed).make_on_links();
    if (!job.study.machine.graph.empty()) validate_interconnect(job.study.machine.graph, "test");
    const std::optional<Result> played = outcome(job, false, true), folded = outcome(job, true, true);
    const std::optional<Result> quick = outcome(job, false, false), all = outcome(job, true, false);
    for (const std::optional<Result>* result : {&folded, &quick, &all})
      ASSERT_EQ(result->has_value(), played.has_value());
    if (!played) continue;
    ++finished;
    looked_up += quick->events < played->events ? 1 : 0;
    both += folded->messages < played->messages && all->events < folded->events ? 1 : 0;
    EXPECT_EQ(quick->messages, played->messages);
    EXPECT_EQ(all->messages, folded->messages);
    EXPECT_EQ(random_order(*quick), random_order(*played));
    if (folded->messages < played->messages) {
      ++folded_jobs;
      graphs += job.study.machine.graph.empty() ? 0 : 1;
      sprayed += job.study.network.parameters.at("routing").value == "spray" ? 1 : 0;
    }
    for (const std::optional<Result>* result : {&folded, &quick, &all}) expect_equal(job, **result, *played);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 2400 / kCaseStep);
  EXPECT_GT(folded_jobs, 600 / kCaseStep);
  EXPECT_GT(looked_up, 40 / kCaseStep);
  EXPECT_GT(both, 8 / kCaseStep);
  EXPECT_GT(graphs, 400 / kCaseStep);
  EXPECT_GT(sprayed, 200 / kCaseStep);
}

// Jobs on tori, whose links several senders share: folded or not, with collectives looked up or message by
// message, equal to the picosecond for every rank and link. Where none do, the order of coming decides, as
// always under sharing=first-come.
TEST(FoldProperty, SharedRingsChangeNothing) {
  int finished = 0, shared = 0, slower = 0, folded_jobs = 0, looked_up = 0, both = 0, unshared = 0;
  for (std::uint32_t seed = 0; seed < 2000; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    RandomJob job = RandomJobs(seed).make_on_torus();
    const std::optional<Result> played = outcome(job, false, true), folded = outcome(job, true, true);
    const std::optional<Result> quick = outcome(job, false, false), all = outcome(job, true, false);
    for (const std::optional<Result>* result : {&folded, &quick, &all})
      ASSERT_EQ(result->has_value(), played.has_value());
    if (!played) continue;
    ++finished;
    EXPECT_EQ(quick->messages, played->messages);
    EXPECT_EQ(all->messages, folded->messages);
    EXPECT_EQ(random_order(*quick), random_order(*played));
    for (const std::optional<Result>* result : {&folded, &quick, &all}) expect_equal(job, **result, *played);
    const bool is_shared =
        std::ranges::any_of(played->links, [](const LinkUse& link) { return link.shared > Time(0); });
    if (is_shared) {
      ++shared;
      folded_jobs += folded->messages < played->messages ? 1 : 0;
      looked_up += quick->events < played->events ? 1 : 0;
      both += folded->messages < played->messages && all->events < folded->events ? 1 : 0;
    }
    const bool shares_none = shared_dimensions_of(job) == 0;
    if (job.study.network.name == "analytical" && job.study.network.parameters.empty()) {
      job.study.network = parse_component("analytical:sharing=first-come", "test");
      const std::optional<Result> first_come = outcome(job, true, false);
      ASSERT_TRUE(first_come.has_value());
      slower += is_shared && first_come->iteration > played->iteration ? 1 : 0;
      if (shares_none) {
        ++unshared;
        expect_equal(job, *first_come, *played);
      }
    }
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 1400 / kCaseStep);
  EXPECT_GT(shared, 300 / kCaseStep);
  EXPECT_GE(slower, 60 / kCaseStep);
  EXPECT_GT(unshared, 250 / kCaseStep);
  // Few are shared and short: one in eleven jobs may have none.
  if (kCaseStep > 1) return;
  EXPECT_GT(folded_jobs, 25);
  EXPECT_GT(looked_up, 5);
  EXPECT_GT(both, 0);
}

// Jobs of which only sums are kept, where chains of computations are one event each: equal to the picosecond
// for every rank and link, folded or not.
TEST(FoldProperty, ChainsChangeNothing) {
  int finished = 0, fewer_events = 0, with_host = 0, left_out = 0;
  for (std::uint32_t seed = 0; seed < 900; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    RandomJob job = seed % 3 == 0   ? RandomJobs(seed).make()
                    : seed % 3 == 1 ? RandomJobs(seed).make_looping(1 + seed % 2)
                                    : RandomJobs(seed).make_looping_on_links();
    job.options.intervals = false;
    RandomJob sums = job;
    sums.options.collectives = false;
    job.options.fold_time = false;
    const std::optional<Result> played = outcome(job, false, true), chained = outcome(sums, false, true);
    const std::optional<Result> folded = outcome(sums, true, false);
    ASSERT_EQ(chained.has_value(), played.has_value());
    ASSERT_EQ(folded.has_value(), played.has_value());
    if (!played) continue;
    ++finished;
    const bool has_host = std::ranges::any_of(
        job.graph.programs, [](const Program& program) { return program.issue_time > Time(0); });
    fewer_events += chained->events < played->events ? 1 : 0;
    with_host += chained->events < played->events && has_host ? 1 : 0;
    left_out += chained->events < played->events && !chained->classes.front().repeated.empty() ? 1 : 0;
    EXPECT_EQ(chained->messages, played->messages);
    for (const std::optional<Result>* result : {&chained, &folded}) expect_equal(job, **result, *played);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 600 / kCaseStep);
  EXPECT_GT(fewer_events, 60 / kCaseStep);
  EXPECT_GT(with_host, 15 / kCaseStep);
  EXPECT_GT(left_out, 6 / kCaseStep);
}

using Records =
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::int64_t, std::int64_t>>;

// Every collective as often as it happened, with its node, of a loop the one of the first period.
// `written_out`: the programs were.
Records records_of(const Result& result, const Graph& graph, bool written_out) {
  Records records;
  for (const CollectiveRecord& record : result.collectives) {
    Time left_out, period;
    const auto ranks = std::ranges::find(result.classes, record.program, &RankClass::program);
    for (const Repetition& again : ranks->repeated) {
      const bool is_of_it =
          record.times > 1 && record.finished >= again.from && record.finished <= again.until;
      if (is_of_it) period = again.until - again.from;
      const Time behind = again.times > 0 ? record.finished : record.issued;
      if (!is_of_it && behind >= again.until) left_out += again.skipped();
    }
    const Program& program = graph.programs[record.program];
    std::uint32_t node = written_out ? program.written(record.node) : record.node;
    for (const Loop& loop : program.loops) {
      if (node >= loop.first && node < loop.end) node = loop.first + (node - loop.first) % loop.period;
    }
    for (std::int64_t copy = 0; copy < record.times; ++copy) {
      const std::int64_t shift = (left_out + period * copy).value;
      records.emplace_back(record.program, node, record.issued.value + shift, record.started.value + shift,
                           record.finished.value + shift);
    }
  }
  std::sort(records.begin(), records.end());
  return records;
}

// A job whose programs repeat, in the ways that must be equal: written out and message by message; by itself,
// with nothing left out; folded in time; in ranks, too.
struct LoopPlays {
  RandomJob whole;
  Result played, virtually, repeated, folded;
};

// None of a job that is refused, which it is in all ways. `every_message`: how all but the first are played.
std::optional<LoopPlays> loop_plays(const RandomJob& repeating, bool every_message) {
  validate_graph(repeating.graph);
  RandomJob whole = repeating, job = repeating;
  whole.graph = written_out(job.graph);
  const std::optional<Result> played = outcome(whole, false, true);
  job.options.fold_time = false;
  const std::optional<Result> virtually = outcome(job, false, every_message);
  job.options.fold_time = true;
  const std::optional<Result> repeated = outcome(job, false, every_message);
  const std::optional<Result> folded = outcome(job, true, every_message);
  for (const std::optional<Result>* result : {&virtually, &repeated, &folded})
    EXPECT_EQ(result->has_value(), played.has_value());
  if (!played || !virtually || !repeated || !folded) return std::nullopt;
  return LoopPlays{std::move(whole), *played, *virtually, *repeated, *folded};
}

// To the picosecond for every rank and link, with as many messages and every collective when it was.
void expect_equal(const LoopPlays& plays, const Graph& graph) {
  EXPECT_EQ(plays.virtually.messages, plays.played.messages);
  EXPECT_EQ(plays.repeated.messages, plays.played.messages);
  const Records records = records_of(plays.played, graph, true);
  EXPECT_EQ(records_of(plays.virtually, graph, false), records);
  EXPECT_EQ(records_of(plays.repeated, graph, false), records);
  for (const Result* result : {&plays.virtually, &plays.repeated, &plays.folded})
    expect_equal(plays.whole, *result, plays.played);
}

// Jobs whose programs repeat: folded in time or not, by themselves or written out, and with the other short
// cuts or without, equal to the picosecond for every rank and link.
enum class Looping { dimensions, links, tori };
class FoldRepetition : public testing::TestWithParam<Looping> {};
TEST_P(FoldRepetition, ChangesNothing) {
  const bool on_links = GetParam() == Looping::links, on_torus = GetParam() == Looping::tori;
  const std::uint32_t jobs = on_links || on_torus ? 240 : 400, with_several = 160;
  int finished = 0, left_out = 0, several_loops = 0, several_periods = 0, with_messages = 0, both = 0,
      looked_up = 0;
  for (std::uint32_t seed = 0; seed < jobs + with_several; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    const std::uint32_t loops = seed < jobs ? 1 : 2 + seed % 2;
    RandomJob job = on_links   ? RandomJobs(seed).make_looping_on_links(loops)
                    : on_torus ? RandomJobs(seed).make_looping_on_torus(loops)
                               : RandomJobs(seed).make_looping(loops);
    job.options.intervals = false;
    const std::optional<LoopPlays> plays = loop_plays(job, true);
    const std::optional<Result> quick = outcome(job, true, false);
    ASSERT_EQ(quick.has_value(), plays.has_value());
    if (!plays) continue;
    const Result &played = plays->played, &repeated = plays->repeated, &folded = plays->folded;
    ++finished;
    left_out += repeated.classes.front().repeated.empty() ? 0 : 1;
    several_loops += repeated.classes.front().repeated.size() > 1 ? 1 : 0;
    both += folded.messages < played.messages && !quick->classes.front().repeated.empty() ? 1 : 0;
    with_messages += !repeated.classes.front().repeated.empty() && repeated.messages > 0 ? 1 : 0;
    several_periods += std::ranges::any_of(repeated.classes.front().repeated,
                                           [](const Repetition& again) { return again.times > 1; });
    looked_up += quick->events < folded.events ? 1 : 0;
    EXPECT_EQ(plays->virtually.events, played.events);
    EXPECT_EQ(repeated.events, played.events);
    expect_equal(*plays, job.graph);
    expect_equal(plays->whole, *quick, played);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  // Few have them: one in eleven jobs may have none.
  if (kCaseStep == 1) {
    EXPECT_GT(looked_up, 16);
    EXPECT_GT(several_loops, on_links ? 4 : on_torus ? 10 : 20);
  }
  if (on_links || on_torus) {
    EXPECT_GT(finished, 160 / kCaseStep);
    EXPECT_GT(left_out, 24 / kCaseStep);
    EXPECT_GT(several_periods, 24 / kCaseStep);
    EXPECT_GT(with_messages, 24 / kCaseStep);
    EXPECT_GT(both, 4 / kCaseStep);
    return;
  }
  EXPECT_GT(finished, 300 / kCaseStep);
  EXPECT_GT(left_out, 80 / kCaseStep);
  EXPECT_GT(several_periods, 80 / kCaseStep);
  EXPECT_GT(with_messages, 80 / kCaseStep);
  EXPECT_GT(both, 20 / kCaseStep);
}

// Stages that drift apart: folded in time or not, and with ranks folded, equal to the picosecond for every
// rank and link.
TEST(FoldDrift, ChangesNothing) {
  int finished = 0, left_out = 0, drifted = 0, folded_ranks = 0;
  for (std::uint32_t seed = 0; seed < 800; seed += kCaseStep) {
    SCOPED_TRACE(seed);
    RandomJob job = RandomJobs(seed).make_drifting();
    job.options.intervals = false;
    const std::optional<LoopPlays> plays = loop_plays(job, false);
    ASSERT_FALSE(HasFailure());
    if (!plays) continue;
    const Result &repeated = plays->repeated, &folded = plays->folded;
    ++finished;
    const auto skipped = [](const RankClass& ranks) {
      return ranks.repeated.empty() ? Time(0) : ranks.repeated.front().skipped();
    };
    const auto has_drifted = [&](const Result& result) {
      return std::ranges::any_of(result.classes, [&](const RankClass& ranks) {
        return skipped(ranks) != skipped(result.classes.front());
      });
    };
    left_out += repeated.classes.front().repeated.empty() ? 0 : 1;
    drifted += has_drifted(repeated) ? 1 : 0;
    folded_ranks += has_drifted(folded) && folded.messages < plays->played.messages ? 1 : 0;
    expect_equal(*plays, job.graph);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 400 / kCaseStep);
  EXPECT_GT(left_out, 200 / kCaseStep);
  EXPECT_GT(drifted, 100 / kCaseStep);
  if (kCaseStep == 1) {
    EXPECT_GT(folded_ranks, 10);
  }
}

INSTANTIATE_TEST_SUITE_P(OnLinksOrDimensions, FoldRepetition,
                         testing::Values(Looping::dimensions, Looping::links, Looping::tori),
                         [](const auto& instance) {
                           return instance.param == Looping::dimensions ? "Dimensions"
                                  : instance.param == Looping::links    ? "Links"
                                                                        : "Tori";
                         });

}  // namespace
}  // namespace armilla
