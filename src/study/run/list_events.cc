#include "study/run.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "ir/issued.h"
#include "study/profile/event_names.h"

namespace armilla {
namespace {

// Which dimensions a set of ranks spans, as bits, and how many they are.
struct Reach {
  std::uint32_t dimensions = 0;
  std::int64_t ranks = 0;
  auto operator<=>(const Reach&) const = default;
};
using Reaches = std::map<Reach, std::int64_t>;  // how many ranks of a program reach so far

// Machines number ranks with the innermost dimension fastest: a rank's coordinates are its digits in mixed
// radix.
std::uint32_t span_of(const Machine& machine, std::span<const std::int32_t> ranks) {
  std::uint32_t mask = 0;
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d) {
    const std::int64_t size = machine.dimensions[d].size;
    for (const std::int32_t rank : ranks) {
      if (rank / stride % size != ranks.front() / stride % size) mask |= std::uint32_t{1} << d;
    }
    stride *= size;
  }
  return mask;
}

using ComputeKey = std::tuple<std::string_view, Phase, std::uint64_t, NodeKind>;
using MessageKey = std::tuple<NodeKind, CollectiveKind, std::int64_t, Reach>;

// What a node is, before its ranks are looked at.
struct Call {
  NodeKind kind;
  std::uint64_t payload;
  bool operator==(const Call&) const = default;
};
struct CallHash {
  std::size_t operator()(const Call& call) const {
    return std::hash<std::uint64_t>()(call.payload * 16 + static_cast<std::uint64_t>(call.kind));
  }
};
struct Sum {
  std::int64_t count = 0;  // of nodes in one rank
  std::int64_t timed = 0;
  double seconds = 0;
};

class Lister {
 public:
  Lister(const Run& run, const CostModel& cost)
      : run_(run),
        graph_(run.graph),
        cost_(cost),
        names_(run.model, run.graph),
        peers_(run.graph),
        ranks_(run.graph.programs.size()),
        family_reaches_(run.graph.families.size()),
        records_(run.graph.programs.size()) {
    // Work is per program, not per rank: a job of thousands of ranks has a few programs.
    for (std::size_t rank = 0; rank < graph_.program_of.size(); ++rank)
      ranks_[graph_.program_of[rank]].push_back(static_cast<std::int32_t>(rank));
    for (const CollectiveRecord& record : run.result.collectives) records_[record.program].push_back(&record);
  }

  EventTable list() {
    for (std::uint32_t program = 0; program < graph_.programs.size(); ++program) {
      if (!ranks_[program].empty()) add_program(program);
    }
    // A run may hold several iterations (asynchronous schedules); counts are of one.
    for (auto& [key, event] : computations_) {
      event.count /= run_.iterations;
      table_.computations.push_back(std::move(event));
    }
    for (auto& [key, event] : communications_) finish(key, std::move(event));
    table_.device = run_.study.machine.device.name;
    for (auto* events : {&table_.computations, &table_.communications}) {
      std::stable_sort(events->begin(), events->end(), [](const JobEvent& a, const JobEvent& b) {
        return in_seconds(a.time) * static_cast<double>(a.count) >
               in_seconds(b.time) * static_cast<double>(b.count);
      });
    }
    return std::move(table_);
  }

 private:
  struct Messages {
    std::int64_t count = 0;
    double timed = 0, seconds = 0;
  };

  // Computations are counted node by node, calls by what is issued: equal calls of a program are counted at
  // once.
  void add_program(std::uint32_t index) {
    const Program& program = graph_.programs[index];
    const auto ranks = static_cast<std::int64_t>(ranks_[index].size());
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      const NodeKind kind = program.kind[node];
      const bool computes = kind == NodeKind::compute || kind == NodeKind::delay;
      if (computes && program.lane[node] != Lane::none)
        add_computation(program, node, ranks * program.times(node));
    }
    std::unordered_map<Call, Sum, CallHash> calls;
    for (const IssuedItem& item : issued_by(program).items) {
      // A receive is the other end of a send.
      if (item.kind != NodeKind::receive) calls[{item.kind, item.payload}].count = item.count;
    }
    time_calls(index, calls);
    for (const auto& [call, sum] : calls) add_communication(index, call, sum);
  }

  void add_computation(const Program& program, std::uint32_t node, std::int64_t count) {
    const NodeKind kind = program.kind[node];
    const std::uint64_t payload = program.payload[node];
    JobEvent& event = computations_[{names_.of(program, node), program.phase[node], payload, kind}];
    if (event.count == 0) {
      event.kind = kind;
      event.name = names_.of(program, node);
      event.phase = program.phase[node];
      if (kind == NodeKind::compute) event.work = graph_.works[payload];
      // A delay has a time instead of work, so its payload is the time.
      event.time = kind == NodeKind::compute ? time_of(event.work, cost_, cost_)
                                             : Time(static_cast<std::int64_t>(payload));
      event.source = kind != NodeKind::compute ? TimeSource::given
                     : event.work.interpolated ? TimeSource::interpolated
                     : event.work.measured     ? TimeSource::measured
                                               : TimeSource::modelled;
    }
    event.count += count;
  }

  void time_calls(std::uint32_t index, std::unordered_map<Call, Sum, CallHash>& calls) const {
    const Program& program = graph_.programs[index];
    const auto add = [&](std::uint32_t node, Time time, std::int64_t times) {
      // Only recorded ranks have times; their mean stands for all ranks of the program.
      const auto found = calls.find({program.kind[node], program.payload[node]});
      if (found == calls.end()) return;
      found->second.timed += times;
      found->second.seconds += in_seconds(time) * static_cast<double>(times);
    };
    for (const CollectiveRecord* record : records_[index])
      add(record->node, record->finished - record->started, record->times);
    for (const RankClass& ranks : run_.result.classes) {
      if (ranks.program != index) continue;
      for (const Interval& interval : ranks.others) {
        if (program.kind[interval.node] != NodeKind::collective && is_whole(interval))
          add(interval.node, interval.end - interval.start, interval.times);
      }
    }
  }

  // Those of a window of a longer run may be cut at its bounds.
  bool is_whole(const Interval& interval) const {
    return run_.iterations == 1 || (interval.start > Time(0) && interval.end < run_.result.iteration);
  }

  void add_communication(std::uint32_t program, const Call& call, const Sum& sum) {
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::int64_t bytes = static_cast<std::int64_t>(call.payload);
    Reaches reaches;
    if (call.kind == NodeKind::collective) {
      const CollectiveCall& collective = graph_.collectives[call.payload];
      kind = collective.kind;
      bytes = collective.bytes.value;
      reaches = collective_reaches(program, collective.family);
    } else if (call.kind == NodeKind::send) {
      const PointToPoint& transfer = graph_.transfers[call.payload];
      bytes = transfer.bytes.value;
      reaches = message_reaches(program, transfer);
    } else {
      reaches[{0, 1}] = static_cast<std::int64_t>(ranks_[program].size());
    }
    // One call of a program may span different dimensions on different ranks: each reach is an event of its
    // own.
    for (const auto& [reach, ranks] : reaches) {
      Messages& messages = communications_[{call.kind, kind, bytes, reach}];
      messages.count += sum.count * ranks;
      messages.timed += static_cast<double>(sum.timed);
      messages.seconds += sum.seconds;
    }
  }

  // The reach of a family's groups is found once, then each rank only looks its group up.
  const Reaches& collective_reaches(std::uint32_t program, std::uint32_t family) {
    const auto [found, fresh] = known_.try_emplace({program, family});
    if (!fresh) return found->second;
    std::vector<Reach>& of_group = family_reaches_[family];
    const GroupFamily& groups = graph_.families[family];
    if (of_group.empty()) {
      for (const std::vector<std::int32_t>& group : groups.groups) {
        of_group.push_back({group.empty() ? 0 : span_of(run_.study.machine, group),
                            static_cast<std::int64_t>(group.size())});
      }
    }
    for (const std::int32_t rank : ranks_[program]) {
      const std::int32_t group = groups.group_of[static_cast<std::size_t>(rank)];
      if (group >= 0) ++found->second[of_group[static_cast<std::size_t>(group)]];
    }
    return found->second;
  }

  // A shift may stay within a node on some ranks and leave it on others.
  const Reaches& message_reaches(std::uint32_t program, const PointToPoint& transfer) {
    const auto [found, fresh] =
        messages_.try_emplace({program, transfer.peer_kind, transfer.family, transfer.peer});
    if (!fresh) return found->second;
    for (const std::int32_t rank : ranks_[program]) {
      const std::int32_t ends[] = {rank, peers_.of(rank, transfer)};
      ++found->second[{span_of(run_.study.machine, ends), 2}];
    }
    return found->second;
  }

  void finish(const MessageKey& key, const Messages& messages) {
    const auto& [kind, collective, bytes, reach] = key;
    JobEvent event;
    event.kind = kind;
    event.name = kind == NodeKind::collective    ? std::string(name_of(collective))
                 : kind == NodeKind::send        ? "send"
                 : kind == NodeKind::memory_load ? "load"
                                                 : "store";
    event.bytes = Bytes(bytes);
    event.group_size = reach.ranks;
    for (std::size_t d = 0; d < run_.study.machine.dimensions.size(); ++d) {
      if ((reach.dimensions >> d & 1) == 0) continue;
      event.spans += (event.spans.empty() ? "" : "+") + run_.study.machine.dimensions[d].name;
      // Dimension 0 is the innermost, the node.
      event.inter_node |= d > 0;
    }
    event.count = messages.count / run_.iterations;
    if (messages.timed > 0) event.time = from_seconds(messages.seconds / messages.timed);
    event.profiled = profiled({event.name, bytes, reach.ranks, event.inter_node});
    table_.communications.push_back(std::move(event));
  }

  std::optional<Time> profiled(const CommunicationKey& key) const {
    for (const MeasuredCommunication& communication : run_.study.profile.communications) {
      const std::string& device = communication.measured.device;
      if (communication.key == key && (device.empty() || device == run_.study.machine.device.name))
        return communication.measured.time;
    }
    return std::nullopt;
  }

  const Run& run_;
  const Graph& graph_;
  const CostModel& cost_;
  EventNames names_;
  Peers peers_;
  std::vector<std::vector<std::int32_t>> ranks_;               // per program
  std::vector<std::vector<Reach>> family_reaches_;             // per family and group
  std::vector<std::vector<const CollectiveRecord*>> records_;  // per program
  std::map<std::pair<std::uint32_t, std::uint32_t>, Reaches>
      known_;  // of collectives, per program and family
  std::map<std::tuple<std::uint32_t, PeerKind, std::uint32_t, std::int32_t>, Reaches> messages_;
  std::map<ComputeKey, JobEvent> computations_;
  std::map<MessageKey, Messages> communications_;
  EventTable table_;
};

}  // namespace

EventTable list_events(const Run& run, const CostModel& cost) {
  return Lister(run, cost).list();
}

}  // namespace armilla
