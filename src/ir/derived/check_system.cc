#include "ir/derived/check_system.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ir/issued.h"

namespace armilla {
namespace {

// The other kinds follow schedules of their own.
bool needs_algorithm(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all;
}

class Checker {
 public:
  Checker(const SystemLayer& system, const Graph& graph, const SystemFiles& files)
      : system_(system), graph_(graph), files_(files), checked_(graph.collectives.size()) {}

  // The first node of each kind of item is enough: equal items fail alike.
  void check(std::uint32_t program) {
    for (const IssuedItem& item : issued_by(graph_.programs[program]).items) {
      const std::uint32_t node = item.first_node;
      if (item.kind == NodeKind::collective) check_collective(program, node);
      const bool memory = item.kind == NodeKind::memory_load || item.kind == NodeKind::memory_store;
      if (memory && system_.remote_memory.kind == RemoteMemoryKind::none) {
        throw Error(files_.remote_memory,
                    fmt::format("there is no remote memory, but {} uses some", place(program, node)),
                    "give a memory-type other than NO_MEMORY_EXPANSION");
      }
    }
  }

 private:
  std::string place(std::uint32_t program, std::uint32_t node) const {
    const auto rank = std::find(graph_.program_of.begin(), graph_.program_of.end(), program);
    const Program& nodes = graph_.programs[program];
    return fmt::format("node {} '{:.60}' of rank {}", nodes.shown_id(node), graph_.names[nodes.name[node]],
                       rank - graph_.program_of.begin());
  }

  void check_collective(std::uint32_t program, std::uint32_t node) {
    const auto index = static_cast<std::size_t>(graph_.programs[program].payload[node]);
    if (checked_[index]) return;
    checked_[index] = true;
    const CollectiveCall& call = graph_.collectives[index];
    if (call.custom >= 0) {
      check_custom(call, program, node);
      return;
    }
    if (system_.semantics == Semantics::native) return;
    if (system_.splits < 1) {
      throw Error(files_.system,
                  fmt::format("the key 'preferred-dataset-splits' is missing, and {} is a collective",
                              place(program, node)),
                  "it says into how many chunks a collective is cut");
    }
    if (needs_algorithm(call.kind) && !system_.algorithms.contains(call.kind)) {
      throw Error(files_.system,
                  fmt::format("no algorithm for the {} of {}", name_of(call.kind), place(program, node)),
                  fmt::format("give the key '{}-implementation'", name_of(call.kind)));
    }
  }

  // A schedule is written for a number of ranks; every group that runs it must have as many.
  void check_custom(const CollectiveCall& call, std::uint32_t program, std::uint32_t node) const {
    const CustomCollective& custom = graph_.custom[static_cast<std::size_t>(call.custom)];
    const GroupFamily& family = graph_.families[call.family];
    for (std::size_t rank = 0; rank < graph_.program_of.size(); ++rank) {
      const std::int32_t group = family.group_of[rank];
      if (graph_.program_of[rank] != program || group < 0) continue;
      const std::size_t members = family.groups[static_cast<std::size_t>(group)].size();
      if (members != custom.members.size()) {
        throw Error(custom.name, fmt::format("the schedule is for {} ranks, but {} is a collective of {}",
                                             custom.members.size(), place(program, node), members));
      }
    }
  }

  const SystemLayer& system_;
  const Graph& graph_;
  const SystemFiles& files_;
  std::vector<bool> checked_;  // per collective
};

}  // namespace

void check_system(const SystemLayer& system, const Graph& graph, const SystemFiles& files) {
  Checker checker(system, graph, files);
  for (std::uint32_t program = 0; program < graph.programs.size(); ++program) checker.check(program);
}

}  // namespace armilla
