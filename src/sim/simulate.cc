#include "sim/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "sim/collective_plan.h"
#include "sim/collective_runner.h"
#include "sim/custom_runner.h"
#include "sim/messenger.h"
#include "sim/rank_agenda.h"
#include "sim/rank_walker.h"
#include "sim/recorder.h"
#include "sim/remote_memory.h"
#include "sim/stream_engine.h"
#include "sim/transport.h"

namespace armilla {
namespace {

void describe_collectives(Result& result, const Graph& graph, CollectivePlanner& planner) {
  std::map<std::uint32_t, CollectiveRecord> known;  // by call
  for (CollectiveRecord& record : result.collectives) {
    const auto [found, fresh] = known.try_emplace(record.call);
    CollectiveRecord& facts = found->second;
    if (fresh) {
      const CollectiveCall& call = graph.collectives[record.call];
      const std::int32_t rank =
          result.classes.empty()
              ? 0
              : static_cast<std::int32_t>(
                    std::find(graph.program_of.begin(), graph.program_of.end(), record.program) -
                    graph.program_of.begin());
      const GroupLayout& layout = planner.layout(
          graph, call.family, graph.families[call.family].group_of[static_cast<std::size_t>(rank)]);
      facts.group_size = static_cast<std::int64_t>(layout.ranks.size());
      facts.algorithm = planner.describe(planner.plan(call, layout, 0));
      facts.link_limit = planner.link_limit(call, layout);
    }
    record.group_size = facts.group_size;
    record.algorithm = facts.algorithm;
    record.link_limit = facts.link_limit;
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
  for (std::size_t d = 0; d < result.dimensions.size() && result.messages > 0; ++d) {
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

void refuse_messages(double messages, const SimulationOptions& options) {
  if (messages <= options.max_messages) return;
  throw Error("simulation",
              fmt::format("the run would take about {:.2g} messages, the limit is {:.2g}", messages,
                          options.max_messages),
              "choose other algorithms, fewer chunks or fewer ranks, or raise the limit with --max-messages");
}

// A message budget, because nothing else tells a user beforehand that n ranks take n^2 messages.
void refuse_endless_runs(const Graph& graph, CollectivePlanner& planner, const RankClasses& classes,
                         const SimulationOptions& options) {
  double total = 0;
  for (std::int32_t rank = 0; rank < classes.simulated(); ++rank) {
    if (rank > 0 && graph.programs.size() == 1) {
      total *= classes.simulated();
      break;
    }
    const Program& program = graph.programs[graph.program_of[static_cast<std::size_t>(rank)]];
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] != NodeKind::collective) continue;
      const CollectiveCall& call = graph.collectives[program.payload[node]];
      const std::int32_t group = graph.families[call.family].group_of[static_cast<std::size_t>(rank)];
      const GroupLayout& layout = planner.layout(graph, call.family, group);
      total += planner.messages(call, layout, classes.fold) /
               (classes.fold == Fold::all ? 1 : static_cast<double>(layout.ranks.size()));
    }
  }
  refuse_messages(total, options);
}

// Carries the messages of nodes and custom collectives over a Network beside those of the collective runner,
// from which a bit of the tag tells them.
class NetworkTransport final : public Transport, public MessageSink {
 public:
  NetworkTransport(EventQueue& queue, CollectiveRunner*& runner) : queue_(queue), runner_(runner) {}
  void use(Network& network) { network_ = &network; }

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
    network_->send({source, destination, bytes, kAllDimensions, kOwn | slot});
  }

  void delivered(const Message& message) override {
    if ((message.tag & kOwn) == 0) {
      runner_->delivered(message);
      return;
    }
    const std::uint64_t slot = message.tag & ~kOwn;
    const Notice notice = notices_[slot];
    free_.push_back(slot);
    queue_.handler(notice.target).handle(notice.argument);
  }

 private:
  static constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;

  EventQueue& queue_;
  CollectiveRunner*& runner_;
  Network* network_ = nullptr;
  std::vector<Notice> notices_;
  std::vector<std::uint64_t> free_;
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

// The same budget under ASTRA-sim's rules, and one for memory: all chunks of a collective exist at once
// there.
void refuse_endless_streams(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  constexpr double kMaxStreams = 1 << 25;
  StreamPlanner planner(system);
  std::vector<double> messages;  // of one member, by call
  for (const CollectiveCall& call : graph.collectives) {
    const GroupFamily& family = graph.families[call.family];
    const auto members = static_cast<std::int64_t>(family.groups.empty() ? 0 : family.groups.front().size());
    messages.push_back(0);
    if (members == 0) continue;
    const StreamPlanner::ChunkSizes sizes = planner.chunk_sizes(call, members);
    const double chunks = std::ceil(static_cast<double>(sizes.total) / static_cast<double>(sizes.chunk));
    if (call.custom < 0 && chunks * static_cast<double>(members) > kMaxStreams) {
      throw Error("simulation",
                  fmt::format("{:.2g} chunks of a collective among {} ranks would be under way at once",
                              chunks, members),
                  "choose fewer preferred-dataset-splits");
    }
    std::int64_t remaining = sizes.total;
    const std::uint32_t mask = members == graph.ranks ? UINT32_MAX : family.dimension_mask;
    for (const StreamPhase& phase : planner.next_chunk(call, mask, members, sizes.chunk, remaining))
      messages.back() += chunks * std::max(phase.sends, 2);
  }
  std::vector<double> of_program;
  for (const Program& program : graph.programs) {
    double total = 0;
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] == NodeKind::collective) total += messages[program.payload[node]];
    }
    of_program.push_back(total);
  }
  double total = 0;
  for (const std::uint32_t program : graph.program_of) total += of_program[program];
  refuse_messages(total, options);
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

}  // namespace

Result simulate(const Graph& graph, const Study& study, const CostModel& cost,
                const SimulationOptions& options) {
  const Machine& machine = study.machine;
  check_ranks(rank_count(machine), graph);
  const NetworkInfo& info =
      find_component<NetworkInfo>("network", networks(), study.network.name, study.network.where);
  CollectivePlanner planner(machine, study.collectives);
  const RankClasses classes = options.fold ? fold_ranks(graph, machine, planner, info.promises)
                                           : RankClasses{graph.ranks, Fold::none};

  refuse_endless_runs(graph, planner, classes, options);

  EventQueue queue;
  Recorder recorder(graph, classes, options.intervals);
  RankWalker walker(graph, &cost, classes, {}, queue, recorder);
  CollectiveRunner runner(graph, machine, study.collectives, planner, classes, queue, walker);
  CollectiveRunner* sink = &runner;
  NetworkTransport transport(queue, sink);
  const std::unique_ptr<Network> network =
      make_network(study.network, machine, classes.fold, queue, transport);
  transport.use(*network);
  Messenger messenger(queue, transport, false);
  CustomRunner custom(queue, nullptr, messenger);
  RankAgenda agenda(static_cast<std::size_t>(classes.simulated()), queue);
  RemoteMemories memories(options.remote_memory, graph.ranks, agenda, queue);
  runner.use(*network, custom);
  walker.use(runner, messenger, &memories);

  walker.start();
  run_to_the_end(queue, walker, [&] { return runner.start_oldest_waiting(); });

  Result result;
  finish(result, graph, recorder, queue);
  for (const Dimension& dimension : machine.dimensions) result.dimensions.push_back(dimension.name);
  result.links = network->links();
  result.messages = network->messages();
  describe_collectives(result, graph, planner);
  result.warnings.assign(planner.substitutions().begin(), planner.substitutions().end());
  add_warnings(result, graph);
  return result;
}

Result simulate(const Graph& graph, const SystemLayer& system, const SimulationOptions& options) {
  check_ranks(rank_count(system), graph);
  refuse_endless_streams(graph, system, options);
  const RankClasses classes{graph.ranks, Fold::none};
  EventQueue queue;
  RankAgenda agenda(static_cast<std::size_t>(graph.ranks), queue);
  Recorder recorder(graph, classes, options.intervals);
  WalkerRules rules;
  rules.one_communication = system.semantics != Semantics::astra1;
  rules.agenda = &agenda;
  RankWalker walker(graph, nullptr, classes, rules, queue, recorder);
  StreamNetwork network(system, queue);
  StreamTransport transport(network);
  Messenger messenger(queue, transport, system.rendezvous);
  CustomRunner custom(queue, &agenda, messenger);
  StreamEngine engine(graph, system, queue, agenda, network, custom, walker);
  RemoteMemories memories(system.remote_memory, graph.ranks, agenda, queue);
  walker.use(engine, messenger, &memories);

  walker.start();
  run_to_the_end(queue, walker, [] { return false; });

  Result result;
  finish(result, graph, recorder, queue);
  for (const Dimension& dimension : machine_of(system).dimensions)
    result.dimensions.push_back(dimension.name);
  result.links = network.links();
  result.messages = network.messages();
  result.sent_per_dimension = network.sent_by_first_rank();
  result.warnings.assign(engine.planner().notes().begin(), engine.planner().notes().end());
  return result;
}

}  // namespace armilla
