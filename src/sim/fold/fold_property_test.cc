#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "sim/fold/fold_property_testing.h"
#include "sim/fold/rank_colours.h"

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

// How many links of a dimension carried so much for so long.
using Links = std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t, double>, std::int64_t>;
Links links_of(const Result& result) {
  Links links;
  for (const LinkUse& link : result.links)
    links[{link.dimension, link.bytes.value, link.busy.value, link.bandwidth.value}] += link.links;
  return links;
}

// Nodes of collectives and chunks, as they are listed.
std::vector<std::uint64_t> order_of(const Result& result) {
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
                        ranks.exposed_communication.value);
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
  for (std::uint32_t seed = 0; seed < 3000; ++seed) {
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
    EXPECT_EQ(order_of(*evaluated), order_of(*played));
    EXPECT_EQ(order_of(*quick), order_of(*folded));
    for (const std::optional<Result>* result : {&folded, &evaluated, &quick})
      expect_equal(job, **result, *played);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(finished, 2400);
  EXPECT_GT(folded_jobs, 600);
  EXPECT_GT(evaluated_jobs, 200);
  EXPECT_GT(both, 100);
}

}  // namespace
}  // namespace armilla
