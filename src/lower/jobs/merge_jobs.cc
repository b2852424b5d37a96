#include "lower/merge_jobs.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

constexpr std::uint32_t kIdle = 0;  // the program of devices without a job

class Merger {
 public:
  explicit Merger(std::int64_t devices) {
    graph_.ranks = devices;
    graph_.programs.emplace_back().role = "idle";
    graph_.program_of.assign(static_cast<std::size_t>(devices), kIdle);
    owner_.resize(static_cast<std::size_t>(devices));
  }

  void add(const PlacedJob& job) {
    const Graph& part = *job.graph;
    if (static_cast<std::int64_t>(job.devices.size()) != part.ranks)
      throw Error(job.name, fmt::format("{} for {}", typed_count(job.devices.size(), "device"),
                                        typed_count(part.ranks, "rank")));
    // Program 0 is the idle one, and every job's programs follow those of the jobs before it.
    const auto first_program = static_cast<std::uint32_t>(graph_.programs.size());
    for (std::size_t rank = 0; rank < job.devices.size(); ++rank) {
      claim(job, job.devices[rank]);
      graph_.program_of[static_cast<std::size_t>(job.devices[rank])] = first_program + part.program_of[rank];
    }
    add_tables(job);
    for (const Program& program : part.programs) add_program(job, program);
    end_tables();
  }

  Graph take() { return std::move(graph_); }

 private:
  void claim(const PlacedJob& job, std::int32_t device) {
    if (device < 0 || device >= graph_.ranks) {
      throw Error(job.name, fmt::format("device {} does not exist", device),
                  fmt::format("the machine has devices 0 to {}", graph_.ranks - 1));
    }
    const PlacedJob*& owner = owner_[static_cast<std::size_t>(device)];
    if (owner != nullptr) {
      throw Error(job.name, fmt::format("device {} already runs a rank of '{}'", device, owner->name),
                  "a device runs one rank");
    }
    owner = &job;
  }

  // Tables of the parts follow each other; `offsets_` is where this part's begin.
  void add_tables(const PlacedJob& job) {
    const Graph& part = *job.graph;
    offsets_ = {graph_.families.size(),  graph_.works.size(),  graph_.collectives.size(),
                graph_.transfers.size(), graph_.custom.size(), graph_.layers.size(),
                graph_.parts.size()};
    for (const GroupFamily& family : part.families) add_family(job, family);
    graph_.works.insert(graph_.works.end(), part.works.begin(), part.works.end());
    graph_.custom.insert(graph_.custom.end(), part.custom.begin(), part.custom.end());
    graph_.layers.insert(graph_.layers.end(), part.layers.begin(), part.layers.end());
    graph_.parts.insert(graph_.parts.end(), part.parts.begin(), part.parts.end());
    for (CollectiveCall call : part.collectives) {
      call.family += static_cast<std::uint32_t>(offsets_.families);
      if (call.custom >= 0) call.custom += static_cast<std::int32_t>(offsets_.custom);
      graph_.collectives.push_back(call);
    }
    for (PointToPoint transfer : part.transfers) {
      // Absolute peers become devices; those by position or shift are relative to a group, and groups move
      // along.
      if (transfer.peer_kind == PeerKind::rank) {
        transfer.peer = job.devices[static_cast<std::size_t>(transfer.peer)];
      } else {
        transfer.family += static_cast<std::uint32_t>(offsets_.families);
      }
      graph_.transfers.push_back(transfer);
    }
    // Names are shared by all jobs, so a part's indices have to be mapped instead of shifted.
    for (std::uint32_t i = 0; i < part.names.size(); ++i) names_.push_back(graph_.names.add(part.names[i]));
  }
  void end_tables() { names_.clear(); }

  void add_family(const PlacedJob& job, const GroupFamily& family) {
    GroupFamily& added = graph_.families.emplace_back();
    added.name = fmt::format("{} {}", job.name, family.name);
    // Devices of other jobs are in no group of this family.
    added.group_of.assign(static_cast<std::size_t>(graph_.ranks), -1);
    for (std::size_t rank = 0; rank < job.devices.size(); ++rank)
      added.group_of[static_cast<std::size_t>(job.devices[rank])] = family.group_of[rank];
    for (const std::vector<std::int32_t>& group : family.groups) {
      std::vector<std::int32_t>& members = added.groups.emplace_back();
      members.reserve(group.size());
      for (const std::int32_t rank : group) members.push_back(job.devices[static_cast<std::size_t>(rank)]);
    }
  }

  void add_program(const PlacedJob& job, const Program& program) {
    Program& added = graph_.programs.emplace_back(program);
    added.role = fmt::format("{}, {}", job.name, program.role);
    for (std::uint32_t& name : added.name) name = names_[name];
    for (std::int32_t& layer : added.layer) {
      if (layer >= 0) layer += static_cast<std::int32_t>(offsets_.layers);
    }
    for (std::uint32_t& parts : added.parts) {
      if (parts != kWhole) parts += static_cast<std::uint32_t>(offsets_.parts);
    }
    // What a payload indexes depends on the node's kind; delays and memory accesses carry their amount
    // itself.
    for (std::uint32_t node = 0; node < added.size(); ++node) {
      switch (added.kind[node]) {
        case NodeKind::compute:
          added.payload[node] += offsets_.works;
          break;
        case NodeKind::collective:
          added.payload[node] += offsets_.collectives;
          break;
        case NodeKind::send:
        case NodeKind::receive:
          added.payload[node] += offsets_.transfers;
          break;
        case NodeKind::delay:
        case NodeKind::memory_load:
        case NodeKind::memory_store:
          break;
      }
    }
    if (job.start > Time(0)) delay_start(added, job.start);
  }

  // A pause as the last node, on which all depend that depended on nothing: ids stay what they were.
  void delay_start(Program& program, Time start) {
    const std::uint32_t pause = program.size();
    std::vector<std::uint32_t> first = {0}, dependence;
    first.reserve(pause + std::size_t{2});
    dependence.reserve(program.dependence.size());
    for (std::uint32_t node = 0; node < pause; ++node) {
      const auto own = program.dependences(node);
      dependence.insert(dependence.end(), own.begin(), own.end());
      if (own.empty()) dependence.push_back(pause);
      first.push_back(static_cast<std::uint32_t>(dependence.size()));
    }
    program.first_dependence = std::move(first);
    program.dependence = std::move(dependence);
    program.add(NodeKind::delay, Phase::other, graph_.names.add("start of the job"), -1,
                static_cast<std::uint64_t>(start.value), {});
    // On no lane, so that it holds up nothing that runs there.
    program.lane.back() = Lane::none;
    program.issue_start = start;
  }

  struct Offsets {
    std::size_t families = 0, works = 0, collectives = 0, transfers = 0, custom = 0, layers = 0, parts = 0;
  };

  Graph graph_;
  Offsets offsets_;
  std::vector<const PlacedJob*> owner_;  // per device
  std::vector<std::uint32_t> names_;     // of the part's names, in the whole
};

}  // namespace

Graph merge_jobs(std::span<const PlacedJob> jobs, std::int64_t devices) {
  Merger merger(devices);
  for (const PlacedJob& job : jobs) merger.add(job);
  Graph graph = merger.take();
  // What held of the parts must hold of the whole.
  validate_graph(graph);
  return graph;
}

}  // namespace armilla
