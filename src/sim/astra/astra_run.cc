#include "sim/astra/astra_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/issued.h"
#include "network/network.h"
#include "sim/astra/astra_engine.h"
#include "sim/astra/astra_fold.h"
#include "sim/astra/astra_plan.h"
#include "sim/engine/compute_times.h"
#include "sim/engine/custom_runner.h"
#include "sim/engine/messenger.h"
#include "sim/engine/order.h"
#include "sim/engine/rank_walker.h"
#include "sim/engine/recorder.h"
#include "sim/engine/remote_memory.h"
#include "sim/engine/run_context.h"
#include "sim/plan/effort.h"
#include "sim/plan/rank_classes.h"

namespace armilla {
namespace {

// Of a run in which only the first `ranks` are played; also a budget for memory: all chunks of a collective
// exist at once.
Effort astra_effort(const Graph& graph, std::span<const Issued> issued, const SystemLayer& system,
                    std::int32_t ranks, double most_messages) {
  // Each of them takes some 130 bytes while its collective is under way: 4 GB at most.
  constexpr double kMaxStreams = 1 << 25;
  AstraPlanner planner(system);
  std::vector<MemberTraffic> traffic;
  for (const CollectiveCall& call : graph.collectives) {
    const GroupFamily& family = graph.families[call.family];
    const auto members = static_cast<std::int64_t>(family.groups.empty() ? 0 : family.groups.front().size());
    traffic.emplace_back();
    if (members == 0) continue;
    const AstraPlanner::ChunkSizes sizes = planner.chunk_sizes(call, members);
    const double chunks = std::ceil(static_cast<double>(sizes.total) / static_cast<double>(sizes.chunk));
    if (call.custom < 0 && chunks * static_cast<double>(members) > kMaxStreams) {
      throw Error("simulation",
                  fmt::format("{:.2g} chunks of a collective among {} ranks would be under way at once",
                              chunks, members),
                  "choose fewer preferred-dataset-splits");
    }
    // The first stands for all.
    planner.for_each_chunk(graph, call, members, [&](const std::vector<AstraPhase>& phases) {
      for (const AstraPhase& phase : phases) {
        // Phases of Armilla's own schedules have no count: two is what the shortest of them send, so that the
        // limit refuses nothing that fits into it.
        traffic.back().messages += chunks * std::max(phase.sends, 2);
        traffic.back().bytes += chunks * std::max(static_cast<double>(phase.each) * phase.sends,
                                                  static_cast<double>(phase.bytes));
      }
      return false;
    });
  }
  std::vector<std::int32_t> played(static_cast<std::size_t>(ranks));
  std::iota(played.begin(), played.end(), 0);
  return effort_of(graph, issued, played, most_messages,
                   [&](std::int32_t, std::uint32_t id) { return traffic[id]; });
}

RankClasses astra_classes(const Graph& graph, const SystemLayer& system, OrderRule order) {
  if (order == OrderRule::watched) return one_for_all(graph);
  return system.semantics == Semantics::astra1 ? with_joined_groups(graph) : unfolded(graph);
}

class AstraRun {
 public:
  // Where the order is watched, rank 0 stands for all.
  AstraRun(const Graph& graph, const SystemLayer& system, const SimulationOptions& options, OrderRule order,
           Effort effort)
      : effort_(std::move(effort)),
        machine_(machine_of(system)),
        classes_(astra_classes(graph, system, order)),
        peers_(graph),
        order_(order, classes_.simulated(), queue_),
        network_(make_astra_network(system.semantics, system.network,
                                    {.machine = machine_,
                                     .queue = queue_,
                                     .labels = labels_,
                                     .stands_for = classes_.stands_for,
                                     .stream_dimensions = system.dimensions,
                                     .packets = system.packets,
                                     .foreseen = {effort_.all_messages, effort_.all_bytes}})),
        context_{graph, classes_, peers_, queue_, order_, *network_, observers_},
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
    result.warnings.assign(engine_.planner().notes().begin(), engine_.planner().notes().end());
    return result;
  }
  // Whether the ranks may have fared differently.
  bool parted() const { return order_.parted(); }

 private:
  Effort effort_;
  Machine machine_;
  MessageLabels labels_;
  RankClasses classes_;
  Peers peers_;
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

Result astra_result(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  const std::vector<Issued> issued = issued_by(graph);
  if (options.fold) {
    // First, because whether ranks can be told apart takes a look at every chunk.
    Effort effort = astra_effort(graph, issued, system, 1, options.max_messages);
    if (can_fold(graph, system)) {
      AstraRun run(graph, system, options, OrderRule::watched, std::move(effort));
      Result result = run.run();
      if (!run.parted()) return result;
    }
  }
  return AstraRun(graph, system, options, OrderRule::scheduling,
                  astra_effort(graph, issued, system, static_cast<std::int32_t>(graph.ranks),
                               options.max_messages))
      .run();
}

}  // namespace armilla
