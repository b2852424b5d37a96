// The tables that all programs of a lowered job share: equal works, names, collectives and messages are
// stored once, and the group families of only those axes that something uses.
//
// Used while templates are made, that is per distinct step of a block, not per node. Cost: O(log entries) per
// question; a family costs O(ranks) once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "lower/sharded_model.h"

namespace armilla {

class JobTables {
 public:
  JobTables(Graph& graph, const Plan& plan) : graph_(graph), plan_(plan) {}
  JobTables(const JobTables&) = delete;
  JobTables& operator=(const JobTables&) = delete;

  std::uint32_t name(std::string_view text) { return graph_.names.add(text); }
  // Of what is done with a bucket of weights; every rank numbers its buckets from 0 on.
  struct BucketNames {
    std::uint32_t exchange, gather, optimizer;
  };
  const BucketNames& bucket_names(std::uint32_t bucket);
  std::uint32_t work(const Work& work);
  // `loads` are those of the plan, the same for all parts of the job.
  std::uint32_t custom(const std::vector<Share>& loads, const UnevenExchange& exchange);
  std::uint32_t family(GroupAxis axis);
  // The same groups as a communicator of its own, for gathers of weights that run beside reductions: the two
  // would meet in an order that depends on timing.
  std::uint32_t gather_family(GroupAxis axis);
  // Likewise for backward passes that run beside forward passes (DualPipe); of the same name, for reports.
  std::uint32_t backward_family(GroupAxis axis);
  // Copies of a tied weight on these pipeline ranks (ascending).
  std::uint32_t embedding_family(const std::vector<std::int64_t>& pipeline_ranks);
  // With what the host does besides where the plan has calls checked.
  std::uint32_t collective(CollectiveCall call);
  std::uint32_t transfer(const PointToPoint& transfer);
  // Of nodes that the host issues (Program::parts); equal ones are not looked for.
  std::uint32_t parts(std::span<const Time> times) {
    graph_.parts.emplace_back(times.begin(), times.end());
    return static_cast<std::uint32_t>(graph_.parts.size() - 1);
  }
  std::int64_t host_issues(const Program& program, std::uint32_t node) const {
    return armilla::host_issues(graph_, program, node);
  }
  // Of nodes that the host issues along with the one before.
  std::uint32_t no_parts() {
    if (!no_parts_) no_parts_ = parts({});
    return *no_parts_;
  }

 private:
  struct WorkHash {
    std::size_t operator()(const Work& work) const;
  };

  Graph& graph_;
  const Plan& plan_;
  std::optional<std::uint32_t> no_parts_;
  std::vector<BucketNames> bucket_names_;
  std::unordered_map<Work, std::uint32_t, WorkHash> works_;
  std::map<std::pair<std::int64_t, bool>, std::uint32_t> customs_;  // by bytes and direction
  std::map<std::pair<GroupAxis, std::vector<std::int64_t>>, std::uint32_t> families_;
  std::map<GroupAxis, std::uint32_t> gather_families_, backward_families_;
  // By kind, bytes, family, whether it takes turns, priority, custom, routing, what the host does,
  // processors.
  std::map<std::tuple<CollectiveKind, std::int64_t, std::uint32_t, bool, std::int32_t, std::int32_t,
                      ExpertRouting, bool, std::int32_t, std::int32_t>,
           std::uint32_t>
      collectives_;
  // By peer kind, peer, family, tag, bytes, what the host does.
  std::map<std::tuple<PeerKind, std::int32_t, std::uint32_t, std::uint32_t, std::int64_t, bool>,
           std::uint32_t>
      transfers_;
};

// Ranks in a group of an axis, by arithmetic; the embedding axis has no size of its own.
std::int64_t group_size(const Plan& plan, GroupAxis axis);

}  // namespace armilla
