#include "ir/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/units_text.h"
#include "ir/issued.h"

namespace armilla {
namespace {

std::string describe_circle(const Graph& graph, const Program& program,
                            std::span<const std::pair<std::uint32_t, std::uint32_t>> circle) {
  constexpr std::size_t kShown = 8;
  std::string text = "its nodes wait for each other in a circle: ";
  for (std::size_t i = 0; i < std::min(circle.size(), kShown); ++i) {
    const std::uint32_t node = circle[i].first;
    text += fmt::format("{} '{}' waits for ", program.shown_id(node), graph.names[program.name[node]]);
  }
  if (circle.size() > kShown) text += fmt::format("{} more, which wait for ", circle.size() - kShown);
  return text + fmt::format("{}", program.shown_id(circle.front().first));
}

// Throws Error with a circle of dependences if there is one: depth first along dependences, with the path on
// an explicit stack.
void check_order(const Graph& graph, const Program& program) {
  const std::uint32_t nodes = program.size();
  // Lowered programs wait for earlier nodes only: most graphs are done after one pass.
  bool backwards = true;
  for (std::uint32_t node = 0; node < nodes && backwards; ++node) {
    for (const std::uint32_t dependence : program.dependences(node)) backwards &= dependence < node;
  }
  if (backwards) return;
  enum : std::uint8_t { fresh, on_path, done };
  std::vector<std::uint8_t> state(nodes, fresh);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> path;  // node, the next of its dependences
  for (std::uint32_t root = 0; root < nodes; ++root) {
    if (state[root] != fresh) continue;
    path.assign(1, {root, program.first_dependence[root]});
    state[root] = on_path;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == program.first_dependence[node + std::size_t{1}]) {
        state[node] = done;
        path.pop_back();
        continue;
      }
      const std::uint32_t dependence = program.dependence[next++];
      if (state[dependence] == done) continue;
      if (state[dependence] == fresh) {
        state[dependence] = on_path;
        path.emplace_back(dependence, program.first_dependence[dependence]);
        continue;
      }
      // A dependence that is on the path closes a cycle: the path from there on.
      const auto start = std::find_if(path.begin(), path.end(),
                                      [&](const auto& entry) { return entry.first == dependence; });
      throw Error(program.role, describe_circle(graph, program, {start, path.end()}));
    }
  }
}

void check_loops(const Program& program) {
  if (program.loops.empty()) return;
  const auto refuse = [&](const char* what) { throw Error(program.role, fmt::format("its loop {}", what)); };
  std::uint32_t before = 0;
  std::int64_t nodes = program.size();
  for (const Loop& loop : program.loops) {
    // What repeats is told from two periods that are written; the second shows that the first was no
    // exception.
    if (loop.period == 0 || loop.more == 0 || loop.end > program.size() ||
        std::int64_t{loop.first} + 2 * std::int64_t{loop.period} > loop.end ||
        (loop.end - loop.first) % loop.period != 0 || !program.file_id.empty())
      refuse("has not two whole periods");
    if (loop.first < before) refuse("begins before the one before it ends");
    before = loop.end;
    // Nodes are numbered with 32 bits, those of periods that are not written, too.
    nodes += std::int64_t{loop.more} * loop.period;
    if (nodes > UINT32_MAX / 2) refuse("has too many nodes");
    for (std::uint32_t node = loop.first + loop.period; node < loop.end; ++node) {
      if (!repeats(program, node, loop.period)) refuse("does not repeat");
    }
    for (std::uint32_t node = loop.end - loop.period; node < loop.end; ++node) {
      if (std::ranges::any_of(program.dependences(node),
                              [&](auto dependence) { return dependence < loop.first; }))
        refuse("reaches further back than it is written");
    }
  }
  for (std::uint32_t node = program.loops.front().first; node < program.size(); ++node) {
    const std::span<const std::uint32_t> dependences = program.dependences(node);
    // What waits for nothing is ready from the start, wherever it stands.
    if (dependences.empty()) refuse("has a node that waits for nothing, or one behind it");
    if (std::ranges::any_of(dependences, [&](auto dependence) { return dependence >= node; }))
      refuse("has a node that waits for a later one, or one behind it");
  }
}

void check_program(const Graph& graph, const Program& program) {
  const std::uint32_t nodes = program.size();
  if (program.phase.size() != nodes || program.name.size() != nodes || program.layer.size() != nodes ||
      program.payload.size() != nodes || program.lane.size() != nodes ||
      (!program.parts.empty() && program.parts.size() != nodes) ||
      (!program.file_id.empty() && program.file_id.size() != nodes) ||
      program.first_dependence.size() != nodes + std::size_t{1} ||
      program.first_dependence.back() != program.dependence.size()) {
    throw Error(program.role, "its node arrays differ in length");
  }
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const auto where = [&] { return fmt::format("{}, node {}", program.role, node); };
    if (program.name[node] >= graph.names.size()) throw Error(where(), "has no name");
    if (program.layer[node] >= static_cast<std::int64_t>(graph.layers.size()))
      throw Error(where(), "belongs to an unknown layer");
    if (program.first_dependence[node] > program.first_dependence[node + 1])
      throw Error(where(), "has a broken dependence list");
    for (const std::uint32_t dependence : program.dependences(node)) {
      if (dependence >= nodes) throw Error(where(), fmt::format("depends on unknown node {}", dependence));
    }
    if (program.kind[node] == NodeKind::compute && program.payload[node] >= graph.works.size())
      throw Error(where(), "refers to unknown work");
    if (program.has_parts(node) && program.parts[node] >= graph.parts.size())
      throw Error(where(), "refers to unknown parts");
    if (program.kind[node] == NodeKind::collective && program.payload[node] >= graph.collectives.size())
      throw Error(where(), "refers to an unknown collective");
    const bool transfers = program.kind[node] == NodeKind::send || program.kind[node] == NodeKind::receive;
    if (transfers && program.payload[node] >= graph.transfers.size())
      throw Error(where(), "refers to an unknown transfer");
    if (program.kind[node] == NodeKind::delay &&
        program.payload[node] >= static_cast<std::uint64_t>(kEndOfTime.value))
      throw Error(where(), "takes absurdly long");
  }
  check_order(graph, program);
  check_loops(program);
}

// Groups are used in both directions, so the two must agree.
void check_family(const Graph& graph, const GroupFamily& family) {
  if (family.group_of.size() != static_cast<std::size_t>(graph.ranks))
    throw Error(family.name, "does not cover all ranks");
  std::vector<std::int32_t> seen(static_cast<std::size_t>(graph.ranks), -1);
  for (std::size_t g = 0; g < family.groups.size(); ++g) {
    for (const std::int32_t rank : family.groups[g]) {
      if (rank < 0 || rank >= graph.ranks)
        throw Error(family.name, fmt::format("rank {} does not exist", rank));
      if (seen[static_cast<std::size_t>(rank)] >= 0)
        throw Error(family.name, fmt::format("rank {} is in two groups, or twice in one", rank));
      seen[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(g);
    }
  }
  if (seen != family.group_of) throw Error(family.name, "its group index disagrees with its groups");
}

// What a program issues, and its calls per family in order: what all members of a group must agree on.
struct IssuedCalls {
  std::vector<IssuedItem> items;
  std::vector<std::vector<std::uint32_t>> calls;  // [family]
  std::vector<std::size_t> families;              // that have calls
};

// Per program, not per rank: programs are few.
std::vector<IssuedCalls> issued_calls(const Graph& graph) {
  std::vector<IssuedCalls> all;
  for (Issued& issued : issued_by(graph)) {
    IssuedCalls& own = all.emplace_back();
    own.items = std::move(issued.items);
    own.calls.resize(graph.families.size());
    for (const std::uint32_t call : issued.calls) own.calls[graph.collectives[call].family].push_back(call);
    for (std::size_t f = 0; f < own.calls.size(); ++f) {
      if (!own.calls[f].empty()) own.families.push_back(f);
    }
  }
  return all;
}

// Priority and preference may differ: they order a rank's own chunks.
bool agree(const CollectiveCall& a, const CollectiveCall& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.root == b.root && a.custom == b.custom &&
         a.routing == b.routing;
}

void check_roots(const Graph& graph, const std::vector<std::uint32_t>& calls, const GroupFamily& family,
                 const std::vector<std::int32_t>& group) {
  for (const std::uint32_t id : calls) {
    const CollectiveCall& call = graph.collectives[id];
    if (call.root < 0 || static_cast<std::size_t>(call.root) >= group.size()) {
      throw Error(fmt::format("group family '{}'", family.name),
                  fmt::format("a {} among {} has no member {} to be its root", name_of(call.kind),
                              typed_count(group.size(), "rank"), call.root));
    }
  }
}

// Compares the programs of every group's members with the first member's, each pair of programs and each
// program with each size of group once.
void check_agreement(const Graph& graph, const std::vector<IssuedCalls>& issued) {
  const auto same = [&](std::uint32_t a, std::uint32_t b) {
    return agree(graph.collectives[a], graph.collectives[b]);
  };
  for (std::size_t f = 0; f < graph.families.size(); ++f) {
    const GroupFamily& family = graph.families[f];
    std::set<std::pair<std::uint32_t, std::uint32_t>> agreeing;
    std::set<std::pair<std::uint32_t, std::size_t>> rooted;
    for (const std::vector<std::int32_t>& group : family.groups) {
      if (group.empty()) continue;
      const std::uint32_t first = graph.program_of[static_cast<std::size_t>(group[0])];
      if (rooted.insert({first, group.size()}).second)
        check_roots(graph, issued[first].calls[f], family, group);
      std::uint32_t last = first;
      for (const std::int32_t rank : group) {
        const std::uint32_t other = graph.program_of[static_cast<std::size_t>(rank)];
        // Neighbours mostly share a program, so the last one is compared before the set is asked.
        if (other == first || other == last) continue;
        last = other;
        if (!agreeing.insert({first, other}).second) continue;
        const auto& expected = issued[first].calls[f];
        const auto& given = issued[other].calls[f];
        if (!std::equal(expected.begin(), expected.end(), given.begin(), given.end(), same)) {
          throw Error(fmt::format("group family '{}'", family.name),
                      fmt::format("ranks {} and {} issue different collectives", group[0], rank));
        }
      }
    }
  }
}

// A rank that is in no group of a family cannot issue what is meant for its group.
void check_membership(const Graph& graph, const std::vector<IssuedCalls>& issued) {
  for (std::size_t rank = 0; rank < graph.program_of.size(); ++rank) {
    for (const std::size_t f : issued[graph.program_of[rank]].families) {
      if (graph.families[f].group_of[rank] >= 0) continue;
      throw Error(fmt::format("group family '{}'", graph.families[f].name),
                  fmt::format("rank {} issues a collective and is in none of its groups", rank));
    }
  }
}

// Of every program, one transfer for each peer.
std::vector<std::vector<std::uint32_t>> peers_of_programs(const Graph& graph,
                                                          const std::vector<IssuedCalls>& issued) {
  std::vector<std::vector<std::uint32_t>> found;
  for (const IssuedCalls& program : issued) {
    std::vector<std::uint32_t>& transfers = found.emplace_back();
    std::set<std::tuple<PeerKind, std::int32_t, std::uint32_t>> known;
    for (const IssuedItem& item : program.items) {
      if (item.kind != NodeKind::send && item.kind != NodeKind::receive) continue;
      const auto id = static_cast<std::uint32_t>(item.payload);
      const PointToPoint& transfer = graph.transfers[id];
      if (known.insert({transfer.peer_kind, transfer.peer, transfer.family}).second) transfers.push_back(id);
    }
  }
  return found;
}

void check_peers(const Graph& graph, const std::vector<IssuedCalls>& issued) {
  const std::vector<std::vector<std::uint32_t>> transfers = peers_of_programs(graph, issued);
  const Peers peers(graph);
  for (std::int32_t rank = 0; rank < graph.ranks; ++rank) {
    for (const std::uint32_t id : transfers[graph.program_of[static_cast<std::size_t>(rank)]]) {
      const PointToPoint& transfer = graph.transfers[id];
      const auto where = [&] { return fmt::format("rank {}", rank); };
      if (transfer.peer_kind != PeerKind::rank) {
        const GroupFamily& family = graph.families[transfer.family];
        const std::int32_t group = family.group_of[static_cast<std::size_t>(rank)];
        if (group < 0)
          throw Error(where(),
                      fmt::format("sends or receives in '{}' and is in none of its groups", family.name));
        const auto size = static_cast<std::int64_t>(family.groups[static_cast<std::size_t>(group)].size());
        if (transfer.peer_kind == PeerKind::position && (transfer.peer < 0 || transfer.peer >= size)) {
          throw Error(where(), fmt::format("has no peer at position {} of its {} in '{}'", transfer.peer,
                                           typed_count(size, "rank"), family.name));
        }
      }
      const std::int32_t peer = peers.of(rank, transfer);
      if (peer < 0 || peer >= graph.ranks)
        throw Error(where(), fmt::format("has the peer {}, which does not exist", peer));
      if (peer == rank) throw Error(where(), "sends a message to itself");
    }
  }
}

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::input_gradient:
      return "input gradient";
    case Phase::weight_gradient:
      return "weight gradient";
    case Phase::gradient_exchange:
      return "gradient exchange";
    case Phase::optimizer:
      return "optimizer";
    case Phase::other:
      return "other";
  }
  return "?";
}

Lane usual_lane(NodeKind kind) {
  switch (kind) {
    case NodeKind::compute:
    case NodeKind::delay:
      return Lane::device;
    case NodeKind::collective:
    case NodeKind::send:
    case NodeKind::memory_load:
    case NodeKind::memory_store:
      return Lane::communication;
    case NodeKind::receive:
      return Lane::none;
  }
  return Lane::none;
}

std::uint32_t Program::add(NodeKind node_kind, Phase node_phase, std::uint32_t node_name,
                           std::int32_t node_layer, std::uint64_t node_payload,
                           std::span<const std::uint32_t> dependences_of_node) {
  kind.push_back(node_kind);
  phase.push_back(node_phase);
  name.push_back(node_name);
  layer.push_back(node_layer);
  payload.push_back(node_payload);
  lane.push_back(usual_lane(node_kind));
  if (!parts.empty()) parts.push_back(kWhole);
  dependence.insert(dependence.end(), dependences_of_node.begin(), dependences_of_node.end());
  first_dependence.push_back(static_cast<std::uint32_t>(dependence.size()));
  return size() - 1;
}

void Program::set_parts(std::uint32_t node, std::uint32_t of) {
  parts.resize(size(), kWhole);
  parts[node] = of;
}

// Positions are needed for every message; they are computed once per family that has any.
Peers::Peers(const Graph& graph) : graph_(graph), position_(graph.families.size()) {
  for (const PointToPoint& transfer : graph.transfers) {
    if (transfer.peer_kind == PeerKind::rank || !position_[transfer.family].empty()) continue;
    std::vector<std::int32_t>& position = position_[transfer.family];
    position.assign(static_cast<std::size_t>(graph.ranks), 0);
    for (const std::vector<std::int32_t>& group : graph.families[transfer.family].groups) {
      for (std::size_t i = 0; i < group.size(); ++i)
        position[static_cast<std::size_t>(group[i])] = static_cast<std::int32_t>(i);
    }
  }
}

std::int32_t Peers::of(std::int32_t rank, const PointToPoint& transfer) const {
  if (transfer.peer_kind == PeerKind::rank) return transfer.peer;
  const GroupFamily& family = graph_.families[transfer.family];
  const std::vector<std::int32_t>& group =
      family.groups[static_cast<std::size_t>(family.group_of[static_cast<std::size_t>(rank)])];
  if (transfer.peer_kind == PeerKind::position) return group[static_cast<std::size_t>(transfer.peer)];
  const auto size = static_cast<std::int64_t>(group.size());
  const std::int64_t there =
      (position_[transfer.family][static_cast<std::size_t>(rank)] + transfer.peer) % size;
  return group[static_cast<std::size_t>(there < 0 ? there + size : there)];
}

GroupFamily world_family(std::int64_t ranks) {
  GroupFamily family{"world",
                     {std::vector<std::int32_t>(static_cast<std::size_t>(ranks))},
                     std::vector<std::int32_t>(static_cast<std::size_t>(ranks), 0),
                     UINT32_MAX};
  std::iota(family.groups[0].begin(), family.groups[0].end(), 0);
  return family;
}

// Ranks that differ in the dimensions of `mask` alone are a group; members ascend, since ranks do.
GroupFamily grid_family(const std::vector<std::int64_t>& sizes, std::uint32_t mask) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : sizes) ranks *= size;
  GroupFamily family{"dimensions", {}, std::vector<std::int32_t>(static_cast<std::size_t>(ranks)), mask};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (mask >> d & 1) family.name += fmt::format(" {}", d);
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    // The group's number: the coordinates outside the mask, read as a number.
    std::int64_t group = 0, weight = 1, rest = rank;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (!(mask >> d & 1)) {
        group += rest % sizes[d] * weight;
        weight *= sizes[d];
      }
      rest /= sizes[d];
    }
    const auto index = static_cast<std::size_t>(group);
    if (index >= family.groups.size()) family.groups.resize(index + 1);
    family.groups[index].push_back(static_cast<std::int32_t>(rank));
    family.group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(group);
  }
  return family;
}

bool repeats(const Program& program, std::uint32_t node, std::uint32_t period) {
  const std::uint32_t before = node - period;
  const std::span<const std::uint32_t> now = program.dependences(node), then = program.dependences(before);
  return program.kind[node] == program.kind[before] && program.phase[node] == program.phase[before] &&
         program.name[node] == program.name[before] && program.layer[node] == program.layer[before] &&
         program.payload[node] == program.payload[before] && program.lane[node] == program.lane[before] &&
         (program.parts.empty() || program.parts[node] == program.parts[before]) &&
         std::equal(now.begin(), now.end(), then.begin(), then.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return a == b + period; });
}

std::int64_t host_issues(const Graph& graph, const Program& program, std::uint32_t node) {
  if (program.has_parts(node)) return std::ssize(graph.parts[program.parts[node]]);
  const std::int64_t to_begin = host_issues_to_begin(graph, program, node);
  const bool goes_on = to_begin > 0 && program.kind[node] == NodeKind::compute;
  return to_begin + (goes_on ? graph.works[program.payload[node]].issues_behind : 0);
}

std::int64_t host_issues_to_begin(const Graph& graph, const Program& program, std::uint32_t node) {
  if (program.has_parts(node)) return graph.parts[program.parts[node]].empty() ? 0 : 1;
  if (program.lane[node] != Lane::device && program.lane[node] != Lane::communication) return 0;
  const std::uint64_t payload = program.payload[node];
  if (program.kind[node] == NodeKind::compute) return graph.works[payload].issues;
  return program.kind[node] == NodeKind::collective ? graph.collectives[payload].issues : 1;
}

Program written_out(const Program& program) {
  if (program.loops.empty()) return program;
  Program all;
  all.role = program.role;
  all.issue_time = program.issue_time;
  all.issue_start = program.issue_start;
  const std::uint32_t nodes = program.length();
  std::vector<std::uint32_t> dependences;
  const auto loop_of = [&](std::uint32_t written) {
    return std::ranges::find_if(program.loops, [&](const Loop& loop) { return written < loop.end; });
  };
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::uint32_t written = program.written(node);
    const auto own = loop_of(written);
    const bool in_loop = own != program.loops.end() && written >= own->first;
    dependences.clear();
    for (const std::uint32_t dependence : program.dependences(written)) {
      if (in_loop && dependence >= own->first) {
        dependences.push_back(dependence + (node - written));
        continue;
      }
      // Behind a loop it is as far before the loop's end.
      std::uint32_t whole = dependence;
      for (const Loop& loop : program.loops) whole += dependence >= loop.first ? loop.unwritten() : 0;
      dependences.push_back(whole);
    }
    all.add(program.kind[written], program.phase[written], program.name[written], program.layer[written],
            program.payload[written], dependences);
    all.lane.back() = program.lane[written];
    if (program.has_parts(written)) all.set_parts(all.size() - 1, program.parts[written]);
  }
  return all;
}

Graph written_out(Graph graph) {
  for (Program& program : graph.programs) program = written_out(program);
  return graph;
}

void validate_graph(const Graph& graph) {
  if (graph.program_of.size() != static_cast<std::size_t>(graph.ranks))
    throw Error("graph", "not every rank has a program");
  for (const std::uint32_t program : graph.program_of) {
    if (program >= graph.programs.size())
      throw Error("graph", fmt::format("program {} does not exist", program));
  }
  // Tables first: the checks of programs index into them.
  for (const CollectiveCall& call : graph.collectives) {
    if (call.family >= graph.families.size())
      throw Error("graph", fmt::format("group family {} does not exist", call.family));
    if (call.bytes.value < 0) throw Error("graph", fmt::format("a collective of {} bytes", call.bytes.value));
  }
  for (const PointToPoint& transfer : graph.transfers) {
    if (transfer.peer_kind != PeerKind::rank && transfer.family >= graph.families.size())
      throw Error("graph", fmt::format("group family {} does not exist", transfer.family));
    if (transfer.bytes.value < 0)
      throw Error("graph", fmt::format("a message of {} bytes", transfer.bytes.value));
  }
  for (const Program& program : graph.programs) {
    check_program(graph, program);
    if (!std::ranges::equal(program.loops, graph.programs.front().loops, {}, &Loop::more, &Loop::more))
      throw Error(program.role, "its loops repeat other numbers of times than the first program's");
  }
  for (const GroupFamily& family : graph.families) check_family(graph, family);
  const std::vector<IssuedCalls> issued = issued_calls(graph);
  check_membership(graph, issued);
  check_agreement(graph, issued);
  check_peers(graph, issued);
}

}  // namespace armilla
