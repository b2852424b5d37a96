#include "lower/host_clock.h"

#include <utility>

namespace armilla {
namespace {

// Where every node of `program` stands behind its host node: id -> new id.
std::vector<std::uint32_t> add_host_nodes(Program& program, Time issue, std::uint32_t name) {
  Program timed;
  timed.role = program.role;
  std::vector<std::uint32_t> place(program.size());
  std::uint32_t next = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const bool issued = program.lane[node] == Lane::device || program.lane[node] == Lane::communication;
    next += issued ? 1 : 0;
    place[node] = next++;
  }
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    std::vector<std::uint32_t> dependences;
    for (const std::uint32_t dependence : program.dependences(node)) dependences.push_back(place[dependence]);
    if (timed.size() < place[node]) {
      const std::uint32_t host =
          timed.add(NodeKind::delay, Phase::other, name, -1, static_cast<std::uint64_t>(issue.value), {});
      timed.lane[host] = Lane::host;
      dependences.push_back(host);
    }
    const std::uint32_t id = timed.add(program.kind[node], program.phase[node], program.name[node],
                                       program.layer[node], program.payload[node], dependences);
    timed.lane[id] = program.lane[node];
  }
  program = std::move(timed);
  return place;
}

}  // namespace

void add_host_clock(const Plan& plan, Graph& graph, std::vector<RoleMemory>& roles) {
  if (plan.host == Host::ahead || plan.issue_time == Time(0)) return;
  const std::uint32_t name = graph.names.add("issue");
  for (std::size_t p = 0; p < graph.programs.size(); ++p) {
    const std::vector<std::uint32_t> place = add_host_nodes(graph.programs[p], plan.issue_time, name);
    for (RoleMemory& role : roles) {
      if (role.program != p) continue;
      for (MemoryMoment& moment : role.over_time) moment.node = place[moment.node];
    }
  }
}

}  // namespace armilla
