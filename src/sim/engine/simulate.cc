#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "sim/astra/astra_engine.h"
#include "sim/collective_plan.h"
#include "sim/engine/collective_runner.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/messenger.h"
#include "sim/engine/rank_walker.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/engine/run_progress.h"
#include "sim/fold/astra_fold.h"
#include "sim/fold/rank_colours.h"
#include "sim/memo/lone_groups.h"
#include "sim/memo/memoised_collectives.h"
#include "sim/plan/effort.h"

namespace armilla {
namespace {

NetworkPromises promises_of(const ComponentChoice& network) {
  return find_component<NetworkInfo>("network", networks(), network.name, network.where).promises;
}

// By the share of its links' limit that the call reached.
CollectiveLimit limit_of(const CollectiveRecord& record, CollectiveLimit delay) {
  constexpr double kNearLimit = 0.8;
  const bool near =
      in_seconds(record.link_limit) >= kNearLimit * in_seconds(record.finished - record.started);
  return near ? CollectiveLimit::bandwidth : delay;
}

void describe_collectives(Result& result, const Graph& graph, CollectivePlanner& planner,
                          const NetworkPromises& promises) {
  std::vector<std::int32_t> first(graph.programs.size(), -1);  // rank, by program
  for (std::size_t rank = graph.program_of.size(); rank-- > 0;)
    first[graph.program_of[rank]] = static_cast<std::int32_t>(rank);
  std::map<std::pair<std::uint32_t, std::uint32_t>, CollectiveRecord> known;  // by program and call
  for (CollectiveRecord& record : result.collectives) {
    const auto [found, fresh] = known.try_emplace({record.program, record.call});
    CollectiveRecord& facts = found->second;
    if (fresh) {
      const CollectiveCall& call = graph.collectives[record.call];
      const auto rank = static_cast<std::size_t>(first[record.program]);
      const GroupLayout& layout =
          planner.layout(graph, call.family, graph.families[call.family].group_of[rank]);
      facts.group_size = static_cast<std::int64_t>(layout.ranks.size());
      facts.algorithm = planner.describe(planner.plan(call, layout, 0));
      facts.link_limit = planner.link_limit(call, layout);
      if (call.custom < 0) planner.describe_chunks(call, layout.shape, facts);
    }
    record.group_size = facts.group_size;
    record.algorithm = facts.algorithm;
    record.chunks = facts.chunks;
    record.better_chunks = facts.better_chunks;
    // A rank may be done before the last it sent has arrived; the root of a broadcast is at once.
    const Time own = record.finished - record.started;
    const Time most = promises.independent_delays || own == Time(0) ? kEndOfTime : own;
    record.link_limit = std::min(facts.link_limit, most);
    record.limit = limit_of(record, facts.limit);
  }
}

// What a user must not overlook (an unused network is the field's most expensive silent failure).
void add_warnings(Result& result, const Graph& graph) {
  if (result.ranks > 1 && graph.collectives.empty() && graph.transfers.empty()) {
    result.warnings.push_back(
        fmt::format("the {} ranks never communicate: the network was not used", result.ranks));
  } else if (result.ranks > 1 && result.messages == 0) {
    result.warnings.push_back("no message was sent: the network was not used");
  }
  const bool moves = std::any_of(result.links.begin(), result.links.end(),
                                 [](const LinkUse& link) { return link.bytes > Bytes(0); });
  for (std::size_t d = 0; d < result.dimensions.size() && moves; ++d) {
    const bool used = std::any_of(result.links.begin(), result.links.end(),
                                  [&](const LinkUse& link) { return link.dimension == d; });
    if (!used)
      result.warnings.push_back(
          fmt::format("dimension '{}' of the machine was never used", result.dimensions[d]));
  }
  for (const LinkUse& link : result.links) {
    if (link.busy > result.iteration) {
      result.warnings.push_back(fmt::format(
          "link {} carried {:.1f} times what it can: the network model does not share links", link.name,
          static_cast<double>(link.busy.value) / static_cast<double>(result.iteration.value)));
      break;
    }
  }
}

void check_ranks(std::int64_t devices, const Graph& graph) {
  if (devices != graph.ranks)
    throw Error("simulation", fmt::format("{} ranks on a machine of {} devices", graph.ranks, devices));
}

// Runs the queue empty; `unstick` may set things going again.
template <class Unstick>
void run_to_the_end(EventQueue& queue, const RankWalker& walker, const Unstick& unstick) {
  bool ran_empty = queue.run();
  while (ran_empty && !walker.is_finished() && unstick()) ran_empty = queue.run();
  if (!ran_empty)
    throw Error("simulation", "the simulated time passes 26 days", "check sizes, bandwidths and units");
  walker.require_finished();
}

void finish(Result& result, const Graph& graph, Recorder& recorder, const EventQueue& queue) {
  result.ranks = graph.ranks;
  recorder.finish(result);
  for (const RankClass& ranks : result.classes) result.iteration = std::max(result.iteration, ranks.finish);
  result.events = queue.handled();
}

void check_positive(double factor, std::string_view what) {
  if (std::isfinite(factor) && factor > 0) return;
  throw Error("what_if", fmt::format("a factor of {} on {}", factor, what), "factors are larger than 0");
}

void check_what_if(const WhatIf& what_if, const Machine& machine) {
  for (const SlowRanks& slow : what_if.ranks) check_positive(slow.time, "times of ranks");
  for (const SlowLinks& slow : what_if.links) {
    check_positive(slow.bandwidth, "bandwidths of links");
    check_positive(slow.latency, "latencies of links");
    if (slow.dimension >= machine.dimensions.size()) {
      throw Error("what_if.links", fmt::format("dimension {} of a machine of {} dimensions", slow.dimension,
                                               machine.dimensions.size()));
    }
  }
}

void check_recorded(const std::vector<std::int32_t>& chosen, const Graph& graph) {
  for (const std::int32_t rank : chosen) {
    if (rank < 0 || rank >= graph.ranks)
      throw Error("simulation", fmt::format("rank {} of {} ranks is to be recorded", rank, graph.ranks));
  }
}

// The groups whose collectives may be looked up instead of played: what folding relies on, this does, too. With
// jitter no members would ever issue them together.
LoneGroups choose_lone_groups(const Graph& graph, const Study& study, const SimulationOptions& options,
                              const RankClasses& classes, CollectivePlanner& planner) {
  if (options.every_message || !promises_of(study.network).meets_on_links_only ||
      study.what_if.jitter.deviation > 0)
    return {};
  return {graph, study.machine, study.what_if, classes, planner};
}

// In order of their ends, and where these are equal by what they are, not by how the run came to know of
// them: evaluated collectives tell all of their chunks at once.
void order_records(Result& result) {
  const auto by_end = [](const Interval& interval) { return std::tuple(interval.end, interval.node); };
  const auto by_chunk = [](const ChunkInterval& chunk) {
    return std::tuple(chunk.end, chunk.node, chunk.chunk, chunk.phase);
  };
  for (RankClass& ranks : result.classes) {
    std::ranges::sort(ranks.collectives, {}, by_end);
    std::ranges::sort(ranks.others, {}, by_end);
    std::ranges::sort(ranks.chunks, {}, by_chunk);
  }
  std::ranges::sort(result.collectives, {}, [](const CollectiveRecord& record) {
    return std::tuple(record.finished, record.program, record.node);
  });
}

RankClasses choose_classes(const Graph& graph, const Study& study, const SimulationOptions& options,
                           CollectivePlanner& planner) {
  if (!options.fold || !promises_of(study.network).meets_on_links_only || study.what_if.jitter.deviation > 0)
    return unfolded(graph);
  return fold_ranks({graph, study.machine, study.what_if, shares_memory(options.remote_memory)}, planner);
}

std::vector<Bandwidth> memory_bandwidths(const Machine& machine, const RankClasses& classes) {
  std::vector<Bandwidth> bandwidths;
  for (const std::int32_t rank : classes.real)
    bandwidths.push_back(device_of(machine, rank).memory_bandwidth);
  return bandwidths;
}

// A native run: its parts refer to each other, and nothing happens before `run`.
class NativeRun final : MessageLabels, RoundObserver {
 public:
  NativeRun(const Graph& graph, const Study& study, const SimulationOptions& options,
            const RankClasses& classes, CollectivePlanner& planner, std::span<const CostModel* const> costs,
            RunProgress& progress)
      : order_(shares_memory(options.remote_memory) ? OrderRule::rounds_by_number : OrderRule::rounds,
               classes.simulated(), queue_),
        network_(make_network(study.network,
                              {study.machine, queue_, *this, classes.stands_for, study.what_if.links})),
        context_{graph, classes, queue_, order_, *network_},
        groups_(graph, classes, planner),
        recorder_(graph, classes, options.intervals, options.record_ranks),
        times_(graph, study.machine, study.what_if, costs, classes),
        messenger_(context_, false),
        custom_(context_, messenger_),
        runner_(context_,
                {study.collectives, static_cast<std::uint32_t>(study.machine.dimensions.size()),
                 memory_bandwidths(study.machine, classes)},
                planner, groups_, custom_, walker_),
        plays_(graph, study, classes, planner),
        memoised_(context_, choose_lone_groups(graph, study, options, classes, planner), plays_, groups_,
                  runner_, walker_),
        memories_(context_, options.remote_memory),
        progress_(progress),
        walker_(context_, {memoised_, messenger_, memories_, times_, recorder_, progress}, false) {
    recorder_.look_at(options.window);
    queue_.add_observer(*this);  // after the network, which also looks for ends of rounds
  }
  NativeRun(const NativeRun&) = delete;
  NativeRun& operator=(const NativeRun&) = delete;

  Result run() {
    walker_.start();
    memoised_.round_over();
    run_to_the_end(queue_, walker_, [&] {
      const bool any = runner_.start_oldest_waiting();
      round_over();
      return any;
    });
    Result result;
    finish(result, context_.graph, recorder_, queue_);
    order_records(result);
    memoised_.count_messages();
    result.links = network_->links();
    result.messages = network_->messages();
    return result;
  }

 private:
  // Every rank that something happened to acts once.
  void round_over() override {
    order_.take_turns([&](std::int32_t rank) {
      memoised_.take_turn(rank);
      runner_.take_turn(rank);
      custom_.take_turn(rank);
      walker_.take_turn(rank);
    });
    memoised_.round_over();
    progress_.messages_sent(network_->messages());
  }

  // Besides those of collectives: the node of the program a message belongs to; in custom collectives, how many
  // the rank had sent before.
  MessageLabel label(const Message& message) const override {
    if (message.target == runner_.target()) return runner_.label(message);
    const std::uint64_t program = context_.graph.program_of[static_cast<std::size_t>(message.source)];
    if (message.target != messenger_.target() || messenger_.space(message.argument) > 0)
      return {{program << 32 | UINT32_MAX, message.order, 0}};
    return {{program << 32 | (UINT32_MAX - 1), messenger_.sender_argument(message.argument) & UINT32_MAX, 0}};
  }

  EventQueue queue_;
  Order order_;
  std::unique_ptr<Network> network_;
  RunContext context_;
  GroupTable groups_;
  Recorder recorder_;
  ComputeTimes times_;
  Messenger messenger_;
  CustomRunner custom_;
  CollectiveRunner runner_;
  LonePlays plays_;
  MemoisedCollectives memoised_;
  RemoteMemories memories_;
  RunProgress& progress_;
  RankWalker walker_;
};

RunProgress progress_of(Progress* progress, Effort effort) {
  if (progress) progress->begin("simulating");
  return {progress, std::move(effort.messages), effort.nodes + effort.all_messages};
}

}  // namespace

Result simulate(const Graph& graph, const Study& study, std::span<const CostModel* const> costs,
                const SimulationOptions& options) {
  const Machine& machine = study.machine;
  check_ranks(rank_count(machine), graph);
  check_what_if(study.what_if, machine);
  check_recorded(options.record_ranks, graph);
  CollectivePlanner planner(machine, study.collectives);
  if (options.progress) options.progress->begin("looking for ranks that fare alike");
  const RankClasses classes = choose_classes(graph, study, options, planner);
  RunProgress progress = progress_of(options.progress, refuse_endless_runs(graph, planner, classes, options));
  Result result = NativeRun(graph, study, options, classes, planner, costs, progress).run();
  for (const Dimension& dimension : machine.dimensions) result.dimensions.push_back(dimension.name);
  describe_collectives(result, graph, planner, promises_of(study.network));
  result.warnings.assign(planner.substitutions().begin(), planner.substitutions().end());
  add_warnings(result, graph);
  return result;
}

Result simulate(const Graph& graph, const Study& study, const CostModel& cost,
                const SimulationOptions& options) {
  std::vector<const CostModel*> costs = {&cost};
  std::vector<std::unique_ptr<CostModel>> others;
  for (const OtherDevices& other : study.machine.others) {
    others.push_back(make_cost_model(study.compute, other.device));
    costs.push_back(others.back().get());
  }
  return simulate(graph, study, costs, options);
}

namespace {

RankClasses astra_classes(const Graph& graph, const SystemLayer& system, OrderRule order) {
  if (order == OrderRule::watched) return one_for_all(graph);
  return system.semantics == Semantics::astra1 ? with_joined_groups(graph) : unfolded(graph);
}

// A run under ASTRA-sim's rules.
class AstraRun {
 public:
  // Where the order is watched, rank 0 stands for all.
  AstraRun(const Graph& graph, const SystemLayer& system, const SimulationOptions& options, OrderRule order,
           RunProgress& progress)
      : machine_(machine_of(system)),
        classes_(astra_classes(graph, system, order)),
        order_(order, classes_.simulated(), queue_),
        network_(make_astra_network({machine_, queue_, labels_, classes_.stands_for, {}, &system})),
        context_{graph, classes_, queue_, order_, *network_},
        recorder_(graph, classes_, options.intervals, {}, Counting::astra_sim),
        messenger_(context_, system.rendezvous),
        custom_(context_, messenger_),
        engine_(context_, system, custom_, walker_),
        memories_(context_, system.remote_memory),
        walker_(context_, {engine_, messenger_, memories_, times_, recorder_, progress},
                system.semantics != Semantics::astra1) {}
  AstraRun(const AstraRun&) = delete;
  AstraRun& operator=(const AstraRun&) = delete;

  Result run() {
    walker_.start();
    run_to_the_end(queue_, walker_, [] { return false; });
    Result result;
    finish(result, context_.graph, recorder_, queue_);
    for (const Dimension& dimension : machine_.dimensions) result.dimensions.push_back(dimension.name);
    result.links = network_->links();
    result.messages = network_->messages();
    result.sent_per_dimension = network_->sent_by_first_rank();
    result.warnings.assign(engine_.planner().notes().begin(), engine_.planner().notes().end());
    return result;
  }
  // Whether the ranks may have fared differently.
  bool parted() const { return order_.parted(); }

 private:
  Machine machine_;
  MessageLabels labels_;
  RankClasses classes_;
  EventQueue queue_;
  Order order_;
  std::unique_ptr<Network> network_;
  RunContext context_;
  ComputeTimes times_;
  Recorder recorder_;
  Messenger messenger_;
  CustomRunner custom_;
  AstraEngine engine_;
  RemoteMemories memories_;
  RankWalker walker_;
};

}  // namespace

Result simulate(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  check_ranks(rank_count(system), graph);
  if (options.fold) {
    // First, because whether ranks can be told apart takes a look at every chunk.
    Effort effort = refuse_endless_astra_runs(graph, system, 1, options);
    if (can_fold(graph, system)) {
      RunProgress progress = progress_of(options.progress, std::move(effort));
      AstraRun run(graph, system, options, OrderRule::watched, progress);
      Result result = run.run();
      if (!run.parted()) return result;
    }
  }
  RunProgress progress =
      progress_of(options.progress, refuse_endless_astra_runs(graph, system, graph.ranks, options));
  return AstraRun(graph, system, options, OrderRule::scheduling, progress).run();
}

}  // namespace armilla
