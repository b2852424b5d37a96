#include "sim/simulate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/units_text.h"
#include "sim/astra/astra_engine.h"
#include "sim/engine/native_run.h"
#include "sim/fold/astra_fold.h"
#include "sim/fold/layer_loops.h"
#include "sim/fold/rank_colours.h"
#include "sim/link_loads.h"
#include "sim/memo/kept_parts.h"

namespace armilla {
namespace {

// Of a call alone.
struct Lone {
  Time about;  // how long it takes on its dimensions, about, where links of a graph have it meet itself
  Time held;   // CollectivePlanner::held_by_protocol
  Time latency;
  bool ends_apart = false;  // some members are done before others
};

// By the shares of the links' and the algorithm's limits that the call reached.
CollectiveLimit limit_of(const CollectiveRecord& record, Time time, CollectiveLimit delay, const Lone& lone,
                         const NetworkPromises& promises) {
  constexpr double kNear = 0.8, kMost = 0.5;
  const double took = in_seconds(time);
  // Where nothing is known of other algorithms, the links that this one uses.
  const Time least = record.link_limit > Time(0) ? record.link_limit : record.busiest_link;
  if (in_seconds(least) >= kNear * took) return CollectiveLimit::bandwidth;
  // Of a schedule and a protocol.
  if (in_seconds(record.busiest_link + lone.held) >= kNear * took) return CollectiveLimit::algorithm;
  const bool held_up = lone.about > Time(0) && in_seconds(lone.about) < kNear * took;
  if (held_up && !promises.meets_on_links_only) return CollectiveLimit::sharing;
  if (delay != CollectiveLimit::latency || in_seconds(lone.latency) >= kMost * took) return delay;
  return record.better_chunks > 0 ? CollectiveLimit::pipelining : CollectiveLimit::algorithm;
}

std::vector<std::int32_t> first_ranks(const Graph& graph) {  // by program
  std::vector<std::int32_t> first(graph.programs.size(), -1);
  for (std::size_t rank = graph.program_of.size(); rank-- > 0;)
    first[graph.program_of[rank]] = static_cast<std::int32_t>(rank);
  return first;
}

// Of calls, by kind, what switches that reduce would serve: "all-reduce", "nvls on nvswitch".
using ReducedBySwitches = std::map<std::string_view, std::set<std::string>>;

void add_reduced(ReducedBySwitches& reduced, const CollectiveCall& call, const CollectivePlan& plan,
                 const Machine& machine, const NetworkPromises& network) {
  for (const PlannedPhase& phase : plan.phases) {
    if (phase.dimension == kAllDimensions) continue;
    const Dimension& dimension = machine.dimensions[phase.dimension];
    if (dimension.in_switch && phase.algorithm == dimension.in_switch->name &&
        !reduces_in(dimension, network))
      reduced[name_of(call.kind)].insert(fmt::format("{} on {}", phase.algorithm, dimension.name));
  }
}

// Networks without switches that reduce, where those of the machine would have been taken. An algorithm that
// the user named is replaced with a warning of its own.
void note_switches(Result& result, const Graph& graph, const Study& study) {
  const NetworkPromises promises = promises_of(study.network);
  const auto is_left_out = [&](const Dimension& dimension) {
    return dimension.in_switch && !reduces_in(dimension, promises);
  };
  if (!study.collectives.algorithms.empty() || std::ranges::none_of(study.machine.dimensions, is_left_out))
    return;
  CollectivePlanner planner(study.machine, study.collectives);
  const std::vector<std::int32_t> first = first_ranks(graph);
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;  // by program and call
  ReducedBySwitches reduced;
  for (const CollectiveRecord& record : result.collectives) {
    const CollectiveCall& call = graph.collectives[record.call];
    if (call.custom >= 0 || !known.insert({record.program, record.call}).second) continue;
    const std::int32_t group =
        graph.families[call.family].group_of[static_cast<std::size_t>(first[record.program])];
    const GroupLayout& layout = planner.layout(graph, call.family, group);
    if (layout.ranks.size() > 1)
      add_reduced(reduced, call, planner.plan(call, layout, 0), study.machine, promises);
  }
  for (const auto& [kind, by] : reduced) {
    result.notes.push_back(fmt::format(
        "the network {} does without {}: {} takes another algorithm than on the analytical network, "
        "which may be slower",
        study.network.name, fmt::join(by, ", "), kind));
  }
}

void describe_collectives(Result& result, const Graph& graph, CollectivePlanner& planner, LinkLoads& loads,
                          const NetworkPromises& promises) {
  const std::vector<std::int32_t> first = first_ranks(graph);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<CollectiveRecord, Lone>>
      known;  // by program and call
  for (CollectiveRecord& record : result.collectives) {
    const auto [found, fresh] = known.try_emplace({record.program, record.call});
    auto& [facts, lone] = found->second;
    if (fresh) {
      const CollectiveCall& call = graph.collectives[record.call];
      const auto rank = static_cast<std::size_t>(first[record.program]);
      const GroupLayout& layout =
          planner.layout(graph, call.family, graph.families[call.family].group_of[rank]);
      facts.group_size = static_cast<std::int64_t>(layout.ranks.size());
      facts.algorithm = planner.describe(call, layout.shape);
      facts.link_limit = loads.limit(call, layout);
      facts.busiest_link = loads.busiest(call, layout);
      lone.ends_apart = (call.kind == CollectiveKind::broadcast && !call.takes_turns) || !layout.is_grid();
      if (call.custom < 0) {
        lone.about = planner.describe_chunks(call, layout.shape, facts);
        lone.held = planner.held_by_protocol(call, layout.shape);
        lone.latency = planner.latency(call, layout);
      }
    }
    record.group_size = facts.group_size;
    record.algorithm = facts.algorithm;
    record.chunks = facts.chunks;
    record.better_chunks = facts.better_chunks;
    // A rank may be done before the last it sent has arrived. The root of a broadcast is early, and so is a
    // member of a group that is no grid who has fewer messages than others: these have theirs by the end of
    // the run, or, where that is not all there is, not before the busiest link has carried its bytes.
    const Time spent = record.finished - record.started;
    const bool is_early = lone.ends_apart && spent < facts.busiest_link;
    const bool alone = result.collectives.size() == 1;
    const Time own = !is_early ? spent : alone ? result.iteration - record.started : facts.busiest_link;
    const Time most = promises.independent_delays || own == Time(0) ? kEndOfTime : own;
    record.link_limit = std::min(facts.link_limit, most);
    record.busiest_link = std::min(facts.busiest_link, most);
    record.limit = limit_of(record, own, facts.limit, lone, promises);
    // Summed with other calls' as a share of the times that this rank spent.
    if (is_early && !alone && !promises.independent_delays && spent > Time(0))
      record.link_limit = std::min(record.link_limit, spent);
  }
}

// Networks that know dimensions alone, on a graph of links.
void note_unseen_links(Result& result, const Machine& machine, const ComponentChoice& network) {
  if (machine.graph.nodes.empty() || network.name.empty() || !promises_of(network).meets_on_links_only)
    return;
  result.notes.push_back(fmt::format(
      "the network {} knows the dimensions of {}, not its links: nothing is oversubscribed, no "
      "ways meet, and each is as long as the longest of its dimension; flow, packet and flit take the links",
      network.name, machine.name));
}

// Members that no cable leads to, and networks that know of no cables.
void warn_of_cables(Result& result, const Study& study) {
  const NetworkPromises promises = promises_of(study.network);
  for (const Dimension& dimension : study.machine.dimensions) {
    if (dimension.cables.empty()) continue;
    if (!promises.knows_dimensions) {
      result.warnings.push_back(
          fmt::format("the network {} sees a switch where cables join the members of {}: two members get "
                      "the bandwidth of all cables of one",
                      study.network.name, dimension.name));
    }
    std::vector<std::int64_t> alone;
    for (std::int32_t member = 0; member < dimension.size; ++member) {
      if (std::ranges::none_of(dimension.cables, [&](const MemberCable& cable) {
            return cable.a == member || cable.b == member;
          }))
        alone.push_back(member);
    }
    if (alone.empty()) continue;
    const Bandwidth host = study.machine.device.host_bandwidth;
    result.warnings.push_back(
        fmt::format("no cable leads to {} {} of {}: what {} sends there takes {}",
                    alone.size() == 1 ? "member" : "members", fmt::join(alone, ", "), dimension.name,
                    alone.size() == 1 ? "it" : "each of them",
                    host > Bandwidth()
                        ? fmt::format("PCIe at {}", to_text(std::min(host, dimension.bandwidth)))
                        : std::string("as long as over one cable, since the device has no host_bandwidth")));
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

// Where messages of one sender took longer for those of others: of each dimension the link that was shared
// longest.
void note_shared_links(Result& result) {
  constexpr double kWorthSaying = 1e-3;  // of the iteration
  std::vector<std::string> shared;
  for (std::size_t d = 0; d < result.dimensions.size(); ++d) {
    const LinkUse* longest = nullptr;
    std::int32_t most = 0;
    for (const LinkUse& link : result.links) {
      if (link.dimension != d || link.shared == Time(0)) continue;
      most = std::max(most, link.senders);
      if (longest == nullptr || link.shared > longest->shared) longest = &link;
    }
    if (longest == nullptr) continue;
    const double share = in_seconds(longest->shared) / in_seconds(result.iteration);
    if (share < kWorthSaying) continue;
    shared.push_back(fmt::format("{} by up to {} at once, for {:.1f} % of the iteration at most ({})",
                                 result.dimensions[d], most, 100 * share, longest->name));
  }
  if (shared.empty()) return;
  result.notes.push_back(
      fmt::format("links were shared by collectives of different groups, or by pipelines with them: {}",
                  fmt::join(shared, "; ")));
}

void check_ranks(std::int64_t devices, const Graph& graph) {
  if (devices != graph.ranks)
    throw Error("simulation", fmt::format("{} ranks on a machine of {} devices", graph.ranks, devices));
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

void check_machine(const Graph& graph, const Study& study, const SimulationOptions& options) {
  check_ranks(rank_count(study.machine), graph);
  check_what_if(study.what_if, study.machine);
  check_recorded(options.record_ranks, graph);
}

// Of a run that no other of its study follows.
constexpr KeptAtMost kNothingKept{.structures = 0};

// Of all devices of a study.
struct AllCosts {
  AllCosts(const Study& study, const CostModel& usual) : costs({&usual}) {
    for (const OtherDevices& other : study.machine.others) {
      others.push_back(make_cost_model(study.compute, other.device));
      costs.push_back(others.back().get());
    }
  }
  std::vector<const CostModel*> costs;
  std::vector<std::unique_ptr<CostModel>> others;
};

// Whether nobody asks what a node of a layer did.
bool asks_for_sums_only(const SimulationOptions& options) {
  return !options.intervals && !options.collectives && options.watched_ends.empty() &&
         options.record_ranks.empty() && options.window.from == Time(0) && options.window.until == kEndOfTime;
}

Result simulated_as_written(const Graph& graph, std::span<const CostModel* const> costs,
                            const SimulationOptions& options, RunMemory& memory) {
  const Study& study = memory.study();
  const Machine& machine = study.machine;
  check_machine(graph, study, options);
  const ReadyJob job(graph, options, memory);
  CollectivePlanner& planner = job.kept.planner;
  Result result = played(job.play(costs, options), &NativeRun::result);
  for (const Dimension& dimension : machine.dimensions) result.dimensions.push_back(dimension.name);
  LinkLoads loads(machine, study.collectives, planner);
  describe_collectives(result, graph, planner, loads, promises_of(study.network));
  result.warnings.assign(planner.substitutions().begin(), planner.substitutions().end());
  add_warnings(result, graph);
  warn_of_cables(result, study);
  note_unseen_links(result, machine, study.network);
  note_switches(result, graph, study);
  note_shared_links(result);
  constexpr std::int64_t kWorthSaying = 64;  // ranks
  if (!job.classes.why_whole.empty() && graph.ranks >= kWorthSaying) {
    result.notes.push_back(fmt::format("{} of {} ranks were simulated one by one: {}",
                                       job.classes.simulated(), graph.ranks, job.classes.why_whole));
  }
  return result;
}

Result simulated(const Graph& graph, std::span<const CostModel* const> costs,
                 const SimulationOptions& options, RunMemory& memory) {
  if (options.fold_time && asks_for_sums_only(options)) {
    if (const std::optional<Graph> shorter = in_layer_loops(graph, memory.study().collectives.order))
      return simulated_as_written(*shorter, costs, options, memory);
  }
  return simulated_as_written(graph, costs, options, memory);
}

}  // namespace

Result simulate(const Graph& graph, const Study& study, std::span<const CostModel* const> costs,
                const SimulationOptions& options) {
  RunMemory memory(study, kNothingKept);
  return simulated(graph, costs, options, memory);
}

Result simulate(const Graph& graph, const Study& study, const CostModel& cost,
                const SimulationOptions& options) {
  return simulate(graph, study, AllCosts(study, cost).costs, options);
}

Result simulate(const Graph& graph, const CostModel& cost, const SimulationOptions& options,
                RunMemory& memory) {
  return simulated(graph, AllCosts(memory.study(), cost).costs, options, memory);
}

PlayTime foresee(const Graph& graph, const Study& study, const CostModel& cost,
                 const SimulationOptions& options) {
  check_machine(graph, study, options);
  RunMemory memory(study, kNothingKept);
  const ReadyJob job(graph, options, memory);
  return NativeRun(job.play(AllCosts(study, cost).costs, options)).foreseen_time();
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
           Effort effort)
      : effort_(std::move(effort)),
        machine_(machine_of(system)),
        network_choice_(system.network),
        classes_(astra_classes(graph, system, order)),
        order_(order, classes_.simulated(), queue_),
        network_(make_astra_network(system.semantics, system.network,
                                    {.machine = machine_,
                                     .queue = queue_,
                                     .labels = labels_,
                                     .stands_for = classes_.stands_for,
                                     .stream_dimensions = system.dimensions,
                                     .packets = system.packets,
                                     .foreseen = {effort_.all_messages, effort_.all_bytes}})),
        context_{graph, classes_, queue_, order_, *network_, observers_},
        recorder_(graph, classes_, options, Counting::astra_sim),
        messenger_(context_, system.rendezvous),
        custom_(context_, messenger_),
        engine_(context_, system, custom_, walker_),
        memories_(context_, system.remote_memory),
        progress_(*options.progress, effort_),
        walker_(context_, {engine_, messenger_, memories_, times_, recorder_, progress_},
                system.semantics != Semantics::astra1, {}) {}
  AstraRun(const AstraRun&) = delete;
  AstraRun& operator=(const AstraRun&) = delete;

  Result run() {
    walker_.start();
    walker_.finish([] { return false; });
    Result result;
    recorder_.finish(result);
    result.events = queue_.handled();
    for (const Dimension& dimension : machine_.dimensions) result.dimensions.push_back(dimension.name);
    result.links = network_->links();
    result.messages = network_->messages();
    result.sent_per_dimension = network_->sent_by_first_rank();
    result.notes = network_->notes();
    note_unseen_links(result, machine_, network_choice_);
    result.warnings.assign(engine_.planner().notes().begin(), engine_.planner().notes().end());
    return result;
  }
  // Whether the ranks may have fared differently.
  bool parted() const { return order_.parted(); }

 private:
  Effort effort_;
  Machine machine_;
  const ComponentChoice& network_choice_;
  MessageLabels labels_;
  RankClasses classes_;
  EventQueue queue_;
  Order order_;
  std::unique_ptr<Network> network_;
  std::vector<RunObserver*> observers_;  // none
  RunContext context_;
  ComputeTimes times_;
  Recorder recorder_;
  Messenger messenger_;
  CustomRunner custom_;
  AstraEngine engine_;
  RemoteMemories memories_;
  RunProgress progress_;
  RankWalker walker_;
};

}  // namespace

Result simulate(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  check_ranks(rank_count(system), graph);
  check_recorded(options.record_ranks, graph);
  const std::vector<Issued> issued = issued_by(graph);
  if (options.fold) {
    // First, because whether ranks can be told apart takes a look at every chunk.
    Effort effort = effort_of(graph, issued, system, 1, options.max_messages);
    if (can_fold(graph, system)) {
      AstraRun run(graph, system, options, OrderRule::watched, std::move(effort));
      Result result = run.run();
      if (!run.parted()) return result;
    }
  }
  return AstraRun(graph, system, options, OrderRule::scheduling,
                  effort_of(graph, issued, system, graph.ranks, options.max_messages))
      .run();
}

}  // namespace armilla
