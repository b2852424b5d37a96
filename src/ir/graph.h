// Graph: what every rank executes, in Chakra's sense. Ranks with the same role share one Program.
//
// A Program is a struct of arrays over dense node ids; dependences of node i are
// dependence[first_dependence[i] .. first_dependence[i+1]) (CSR), each smaller than i. A rank computes one
// node at a time, the ready one with the smallest id first; any number of its collectives may be in flight.
// Payloads refer to tables shared by all programs, so that equal computations are stored (and costed) once.
// Memory: about 24 bytes per node and dependence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"
#include "ir/work.h"

namespace armilla {

enum class NodeKind : std::uint8_t {
  compute,     // payload: index into Graph::works
  delay,       // payload: picoseconds of computation already known
  collective,  // payload: index into Graph::collectives
};

enum class Phase : std::uint8_t {
  forward,
  input_gradient,
  weight_gradient,
  gradient_exchange,
  optimizer,
  other
};
std::string_view name_of(Phase phase);

struct Program {
  std::string role;  // "data-parallel rank"
  std::vector<NodeKind> kind;
  std::vector<Phase> phase;
  std::vector<std::uint32_t> name;     // into Graph::names
  std::vector<std::int32_t> layer;     // into Graph::layers, -1: none
  std::vector<std::uint64_t> payload;  // by kind
  std::vector<std::uint32_t> first_dependence = {0};
  std::vector<std::uint32_t> dependence;

  std::uint32_t size() const { return static_cast<std::uint32_t>(kind.size()); }
  std::span<const std::uint32_t> dependences(std::uint32_t node) const {
    return std::span(dependence)
        .subspan(first_dependence[node], first_dependence[node + 1] - first_dependence[node]);
  }
  // Appends a node; returns its id.
  std::uint32_t add(NodeKind node_kind, Phase node_phase, std::uint32_t node_name, std::int32_t node_layer,
                    std::uint64_t node_payload, std::span<const std::uint32_t> dependences_of_node);
};

// A partition of ranks into groups that communicate: one family per parallel dimension. Every rank is in
// exactly one group or none.
struct GroupFamily {
  std::string name;                               // "data", "world"
  std::vector<std::vector<std::int32_t>> groups;  // ranks in communicator order
  std::vector<std::int32_t> group_of;             // per rank, -1: in none
};

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;                // as in ir/collective.h
  std::uint32_t family = 0;   // into Graph::families; the group is that of the rank
  std::int32_t root = 0;      // position in the group, for broadcast and reduce
  std::int32_t priority = 0;  // larger goes first under ChunkOrder::priority
};

struct Graph {
  std::int64_t ranks = 0;
  std::vector<Program> programs;
  std::vector<std::uint32_t> program_of;  // per rank
  std::vector<GroupFamily> families;
  std::vector<Work> works;
  std::vector<CollectiveCall> collectives;
  std::vector<std::string> names;
  std::vector<std::string> layers;
};

GroupFamily world_family(std::int64_t ranks);

// Throws Error for a dangling index, a dependence that does not point backwards, a rank without program, a
// group with a repeated or unknown rank, or members of a group that do not issue the same collectives in the
// same order.
void validate_graph(const Graph& graph);
std::string dump_graph(const Graph& graph);

}  // namespace armilla
