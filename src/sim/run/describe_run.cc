#include "sim/run/describe_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/units_text.h"
#include "network/network.h"
#include "sim/link_loads.h"
#include "sim/plan/algorithm_choices.h"

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
  if (held_up && !promises.over_dimensions) return CollectiveLimit::sharing;
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
      lone.ends_apart = (call.kind == CollectiveKind::broadcast && !call.takes_turns) || !layout.is_grid();
      if (call.custom >= 0) {
        // Who sends what to whom is given: no algorithm could spare the links any of it.
        const CustomCollective& custom = graph.custom[static_cast<std::size_t>(call.custom)];
        facts.algorithm = custom.name;
        facts.link_limit = facts.busiest_link = loads.busiest(custom, call.bytes, layout);
        facts.limit = CollectiveLimit::algorithm;
        lone.ends_apart = true;
      } else {
        facts.algorithm = planner.describe(call, layout.shape);
        facts.link_limit = loads.limit(call, layout);
        facts.busiest_link = loads.busiest(call, layout);
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

// Members that no cable leads to, and networks that know of no cables.
void warn_of_cables(Result& result, const Study& study) {
  const NetworkPromises promises = promises_of(study.network);
  for (const Dimension& dimension : study.machine.dimensions) {
    if (dimension.cables.empty()) continue;
    if (!promises.over_dimensions) {
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

}  // namespace

void note_unseen_links(Result& result, const Machine& machine, const ComponentChoice& network) {
  if (machine.graph.nodes.empty() || network.name.empty() || !promises_of(network).over_dimensions) return;
  result.notes.push_back(fmt::format(
      "the network {} knows the dimensions of {}, not its links: nothing is oversubscribed, no "
      "ways meet, and each is as long as the longest of its dimension; flow, packet and flit take the links",
      network.name, machine.name));
}

void describe_run(Result& result, const ReadyJob& job) {
  const Graph& graph = job.graph;
  const Study& study = job.study;
  CollectivePlanner& planner = job.kept.planner;
  for (const Dimension& dimension : study.machine.dimensions) result.dimensions.push_back(dimension.name);
  LinkLoads loads(planner);
  describe_collectives(result, graph, planner, loads, promises_of(study.network));
  result.warnings.assign(planner.substitutions().begin(), planner.substitutions().end());
  add_warnings(result, graph);
  warn_of_cables(result, study);
  note_unseen_links(result, study.machine, study.network);
  note_switches(result, graph, study);
  note_shared_links(result);
  constexpr std::int64_t kWorthSaying = 64;  // ranks
  if (!job.classes.why_whole.empty() && graph.ranks >= kWorthSaying) {
    result.notes.push_back(fmt::format("{} of {} ranks were simulated one by one: {}",
                                       job.classes.simulated(), graph.ranks, job.classes.why_whole));
  }
}

}  // namespace armilla
