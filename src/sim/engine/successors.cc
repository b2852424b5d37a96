#include "sim/engine/successors.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace armilla {
namespace {

// How many the host has issued when each node may begin; 0 where it does not issue it.
std::vector<std::int64_t> issues_of(const Graph& graph, const Program& program) {
  std::vector<std::int64_t> issues(program.size());
  std::int64_t count = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const std::int64_t to_begin = host_issues_to_begin(graph, program, node);
    if (to_begin > 0 || program.has_parts(node)) issues[node] = count + to_begin;
    count += host_issues(graph, program, node);
  }
  return issues;
}

bool stops_hosts(const Graph& graph) {
  return std::ranges::any_of(graph.collectives, &CollectiveCall::counted_on_device) ||
         std::ranges::any_of(graph.transfers, &PointToPoint::stops_host);
}

// Whether what a host does with a node depends on more than the node's lane and parts.
bool concerns_hosts(const Graph& graph) {
  return stops_hosts(graph) ||
         std::ranges::any_of(graph.collectives, [](const auto& call) { return call.issues > 1; }) ||
         std::ranges::any_of(graph.works,
                             [](const auto& work) { return work.issues > 1 || work.issues_behind > 0; });
}

// Of nodes that a host issues: where it stops.
std::vector<bool> stops_of_host(const Graph& graph, const Program& program,
                                const std::vector<std::int64_t>& issues) {
  std::vector<bool> stops(program.size()), is_awaited(program.size());
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (issues[node] == 0) continue;
    stops[node] = program.kind[node] == NodeKind::collective &&
                  graph.collectives[program.payload[node]].counted_on_device;
    for (const std::uint32_t dependence : program.dependences(node)) {
      if (program.kind[dependence] != NodeKind::receive || is_awaited[dependence] ||
          !graph.transfers[program.payload[dependence]].stops_host)
        continue;
      stops[node] = is_awaited[dependence] = true;
    }
  }
  return stops;
}

}  // namespace

bool computes(const Program& program, std::uint32_t node) {
  return program.lane[node] == Lane::device &&
         (program.kind[node] == NodeKind::compute || program.kind[node] == NodeKind::delay);
}

bool computes_in_order(const Program& program) {
  std::vector<std::uint32_t> over(program.size());  // of those on the device, how many are, when a node is
  std::uint32_t count = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    // Of a later id it is not known yet what it comes behind; such programs go without chains.
    for (const std::uint32_t dependence : program.dependences(node)) {
      if (dependence >= node) return false;
      over[node] = std::max(over[node], over[dependence]);
    }
    if (program.lane[node] != Lane::device) continue;
    if (over[node] != count) return false;
    over[node] = ++count;
  }
  return true;
}

bool same_successors(const Graph& graph, const Program& a, const Program& b, bool chains) {
  const auto parts = [](const Program& program) {
    return std::tie(program.first_dependence, program.dependence, program.loops);
  };
  // Lanes count where the host issues (it issues some only) and where chains do; kinds and payloads where
  // calls make it wait or take it longer.
  const bool counts = a.issue_time > Time(0);
  return counts == (b.issue_time > Time(0)) && ((!counts && !chains) || a.lane == b.lane) &&
         (!counts || a.parts == b.parts) && parts(a) == parts(b) && (!chains || a.kind == b.kind) &&
         (!counts || !concerns_hosts(graph) || (a.kind == b.kind && a.payload == b.payload));
}

std::vector<Stretch> stretches_in(const Program& program) {
  std::vector<Stretch> stretches;
  std::uint32_t start = 0, skipped = 0, number = 0;
  for (const Loop& loop : program.loops) {
    stretches.push_back({loop, start, skipped, skipped + loop.end + loop.unwritten(), number++});
    start = loop.end;
    skipped += loop.unwritten();
  }
  stretches.push_back({{program.size(), program.size(), 0, 0}, start, skipped, UINT32_MAX, number});
  return stretches;
}

Successors::Successors(const Graph& graph, const Program& program, const std::vector<Stretch>& stretches,
                       bool chains)
    : dependents(program.first_dependence, program.dependence) {
  if (chains) find_chains(program, stretches);
  if (program.issue_time > Time(0)) {
    issues = issues_of(graph, program);
    if (stops_hosts(graph)) awaited = stops_of_host(graph, program, issues);
  }
  for (const Stretch& stretch : stretches) reaches.push_back(reach_of(graph, program, stretch.loop));
}

Successors::Reach Successors::reach_of(const Graph& graph, const Program& program, const Loop& loop) const {
  Reach reach{loop.end, loop.end, 0, false};
  for (std::uint32_t written = loop.end; written < program.size(); ++written) {
    for (const std::uint32_t dependence : program.dependences(written)) {
      if (dependence >= loop.first && dependence < loop.end)
        reach.ends_from = std::min(reach.ends_from, dependence);
    }
  }
  // Only the last written period is repeated. What it reaches back to bounds how many periods a node's end
  // concerns.
  for (std::uint32_t written = loop.end - loop.period; written < loop.end; ++written) {
    for (const std::uint32_t dependence : program.dependences(written))
      reach.back = std::min(reach.back, dependence);
    if (!issues.empty()) reach.issues_in_period += host_issues(graph, program, written);
    if (!awaited.empty() && awaited[written]) reach.awaits_in_period = true;
  }
  return reach;
}

// What stands at one place of every period must be followed alike in all of them.
void Successors::find_chains(const Program& program, const std::vector<Stretch>& stretches) {
  if (!computes_in_order(program)) return;
  continues.resize(program.size());
  for (std::uint32_t node = 0; node + 1 < program.size(); ++node) {
    const std::span<const std::uint32_t> next = dependents.of(node);
    continues[node] = computes(program, node) && computes(program, node + 1) && next.size() == 1 &&
                      next.front() == node + 1 && program.dependences(node + 1).size() == 1;
  }
  for (const Stretch& stretch : stretches) {
    const Loop& loop = stretch.loop;
    // What enters the loop or leaves it is followed differently the first or the last time, so chains end
    // there.
    if (loop.first > 0) continues[loop.first - 1] = false;
    if (loop.end > 0) continues[loop.end - 1] = false;
    // A node and its copies are looked up at one written place, whose answer must be true of all of them.
    for (std::uint32_t place = loop.end - loop.period; place < loop.end; ++place) {
      bool all = true;
      for (std::uint32_t node = loop.first + (place - loop.first) % loop.period; node < loop.end;
           node += loop.period)
        all = all && continues[node];
      for (std::uint32_t node = loop.first + (place - loop.first) % loop.period; node < loop.end;
           node += loop.period)
        continues[node] = all;
    }
  }
}

}  // namespace armilla
