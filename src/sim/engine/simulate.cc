#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "sim/astra/stream_engine.h"
#include "sim/collective_plan.h"
#include "sim/engine/collective_runner.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/messenger.h"
#include "sim/engine/rank_agenda.h"
#include "sim/engine/rank_turns.h"
#include "sim/engine/rank_walker.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/tie_watch.h"
#include "sim/engine/transport.h"
#include "sim/fold/rank_colours.h"
#include "sim/fold/stream_fold.h"
#include "sim/memo/lone_groups.h"
#include "sim/memo/rehearsals.h"
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

// Carries the messages of nodes and custom collectives over a Network beside those of the collective runner,
// from which a bit of the tag tells them.
class NetworkTransport final : public Transport, public MessageSink {
 public:
  NetworkTransport(const Graph& graph, EventQueue& queue)
      : graph_(graph), queue_(queue), sent_(static_cast<std::size_t>(graph.ranks)) {}
  // May be null.
  void report_to(RunProgress* progress) { progress_ = progress; }
  void use(Network& network, CollectiveRunner& runner, const Messenger& messenger,
           const CustomRunner& custom) {
    network_ = &network;
    runner_ = &runner;
    messenger_ = &messenger;
    custom_ = &custom;
  }

  void send(std::int32_t source, std::int32_t destination, Bytes bytes, std::uint32_t target,
            std::uint64_t argument) override {
    std::uint64_t slot = notices_.size();
    if (free_.empty()) {
      notices_.push_back({target, argument});
    } else {
      slot = free_.back();
      free_.pop_back();
      notices_[slot] = {target, argument};
    }
    const std::uint32_t number = sent_[static_cast<std::size_t>(source)]++;
    network_->send({source, destination, bytes, kAllDimensions, number, kOwn | slot});
  }

  void delivered(const Message& message) override {
    if (progress_) progress_->message();
    if ((message.tag & kOwn) == 0) {
      runner_->delivered(message);
      return;
    }
    const std::uint64_t slot = message.tag & ~kOwn;
    const Notice notice = notices_[slot];
    free_.push_back(slot);
    queue_.handler(notice.target).handle(notice.argument);
  }

  // The node of the program it belongs to; in custom collectives, how many the rank had sent before.
  MessageLabel label(const Message& message) const override {
    if ((message.tag & kOwn) == 0) return runner_->label(message);
    const Notice& notice = notices_[message.tag & ~kOwn];
    const std::uint64_t program = graph_.program_of[static_cast<std::size_t>(message.source)];
    if (notice.target == custom_->target() || messenger_->space(notice.argument) > 0)
      return {{program << 32 | UINT32_MAX, message.order, 0}};
    const std::uint64_t node = messenger_->sender_argument(notice.argument) & UINT32_MAX;
    return {{program << 32 | (UINT32_MAX - 1), node, 0}};
  }

 private:
  static constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;

  const Graph& graph_;
  EventQueue& queue_;
  Network* network_ = nullptr;
  CollectiveRunner* runner_ = nullptr;
  const Messenger* messenger_ = nullptr;
  const CustomRunner* custom_ = nullptr;
  RunProgress* progress_ = nullptr;
  std::vector<std::uint32_t> sent_;  // per rank, messages
  std::vector<Notice> notices_;
  std::vector<std::uint64_t> free_;
};

// Every rank that something happened to in a round acts once.
class Turns final : public RoundObserver {
 public:
  Turns(RankTurns& turns, CollectiveRunner& runner, CustomRunner& custom, RankWalker& walker)
      : turns_(turns), runner_(runner), custom_(custom), walker_(walker) {}

  void round_over() override {
    turns_.take([&](std::int32_t rank) {
      runner_.take_turn(rank);
      custom_.take_turn(rank);
      walker_.take_turn(rank);
    });
    runner_.round_over();
  }

 private:
  RankTurns& turns_;
  CollectiveRunner& runner_;
  CustomRunner& custom_;
  RankWalker& walker_;
};

class StreamTransport final : public Transport {
 public:
  explicit StreamTransport(StreamNetwork& network) : network_(network) {}
  void send(std::int32_t source, std::int32_t destination, Bytes bytes, std::uint32_t target,
            std::uint64_t argument) override {
    network_.send({source, destination, bytes, target, argument});
  }

 private:
  StreamNetwork& network_;
};

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

// Whether collectives may be evaluated instead of played: what folding relies on, this does, too. With jitter
// no members would ever issue them together.
bool can_evaluate(const Study& study, const SimulationOptions& options) {
  return !options.every_message && promises_of(study.network).meets_on_links_only &&
         !(study.what_if.jitter.deviation > 0);
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
  Effort effort = refuse_endless_runs(graph, planner, classes, options);
  std::optional<RunProgress> progress;
  if (options.progress) {
    options.progress->begin("simulating");
    progress.emplace(*options.progress, std::move(effort.messages), effort.nodes + effort.all_messages);
  }

  EventQueue queue;
  RankTurns turns(classes.simulated(), shares_memory(options.remote_memory));
  Recorder recorder(graph, classes, options.intervals, options.record_ranks);
  recorder.look_at(options.window);
  const ComputeTimes times(graph, machine, study.what_if, costs, classes);
  WalkerRules rules;
  rules.turns = &turns;
  rules.progress = progress ? &*progress : nullptr;
  RankWalker walker(graph, &times, classes, rules, queue, recorder);
  CollectiveRunner runner(graph, machine, study.collectives, memory_bandwidths(machine, classes), planner,
                          classes, queue, turns, walker);
  NetworkTransport transport(graph, queue);
  const std::unique_ptr<Network> network =
      make_network(study.network, {machine, queue, transport, classes.stands_for, study.what_if.links});
  Messenger messenger(queue, transport, false, classes.stands_for);
  CustomRunner custom(queue, nullptr, messenger);
  custom.use(turns, classes, transport);
  transport.use(*network, runner, messenger, custom);
  transport.report_to(rules.progress);
  RemoteMemories memories(options.remote_memory, graph.ranks, nullptr, queue);
  runner.use(*network);
  runner.use(custom);
  Rehearsals rehearsals(graph, study, classes, planner);
  if (can_evaluate(study, options))
    runner.evaluate(LoneGroups(graph, machine, study.what_if, classes, planner), rehearsals);
  walker.use(runner, messenger, &memories);
  Turns ends_of_rounds(turns, runner, custom, walker);  // after the network, which also looks for them
  queue.add_observer(ends_of_rounds);

  walker.start();
  runner.round_over();
  run_to_the_end(queue, walker, [&] {
    const bool any = runner.start_oldest_waiting();
    ends_of_rounds.round_over();
    return any;
  });

  Result result;
  finish(result, graph, recorder, queue);
  order_records(result);
  runner.count_evaluated();
  for (const Dimension& dimension : machine.dimensions) result.dimensions.push_back(dimension.name);
  result.links = network->links();
  result.messages = network->messages();
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

// With `ties`, rank 0 stands for all.
Result simulate_streams(const Graph& graph, const SystemLayer& system, const SimulationOptions& options,
                        Effort effort, TieWatch* ties) {
  const RankClasses classes = ties ? one_for_all(graph.ranks) : unfolded(graph);
  EventQueue queue;
  RankAgenda agenda(static_cast<std::size_t>(classes.simulated()), queue);
  Recorder recorder(graph, classes, options.intervals, {}, Counting::astra_sim);
  WalkerRules rules;
  rules.one_communication = system.semantics != Semantics::astra1;
  rules.agenda = &agenda;
  std::optional<RunProgress> progress;
  if (options.progress) {
    options.progress->begin("simulating");
    rules.progress =
        &progress.emplace(*options.progress, std::move(effort.messages), effort.nodes + effort.all_messages);
  }
  RankWalker walker(graph, nullptr, classes, rules, queue, recorder);
  StreamNetwork network(system, queue);
  StreamTransport transport(network);
  Messenger messenger(queue, transport, system.rendezvous);
  CustomRunner custom(queue, &agenda, messenger);
  StreamEngine engine(graph, system, queue, agenda, network, custom, walker);
  RemoteMemories memories(system.remote_memory, graph.ranks, &agenda, queue);
  walker.use(engine, messenger, &memories);
  if (ties) {
    agenda.watch(*ties);
    engine.fold(*ties);
  }

  walker.start();
  run_to_the_end(queue, walker, [] { return false; });

  Result result;
  finish(result, graph, recorder, queue);
  for (const Dimension& dimension : machine_of(system).dimensions)
    result.dimensions.push_back(dimension.name);
  result.links = network.links(classes.sizes.front());
  result.messages = network.messages();
  result.sent_per_dimension = network.sent_by_first_rank();
  result.warnings.assign(engine.planner().notes().begin(), engine.planner().notes().end());
  return result;
}

}  // namespace

Result simulate(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  check_ranks(rank_count(system), graph);
  if (options.fold) {
    // First, because whether ranks can be told apart takes a look at every chunk.
    Effort effort = refuse_endless_streams(graph, system, 1, options);
    if (can_fold(graph, system)) {
      TieWatch ties;
      Result result = simulate_streams(graph, system, options, std::move(effort), &ties);
      if (!ties.parted()) return result;
    }
  }
  Effort effort = refuse_endless_streams(graph, system, graph.ranks, options);
  return simulate_streams(graph, system, options, std::move(effort), nullptr);
}

}  // namespace armilla
