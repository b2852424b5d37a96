// Graph: what every rank executes, in Chakra's sense. Ranks with the same role share one Program.
//
// A Program is a struct of arrays over dense node ids; dependences of node i are
// dependence[first_dependence[i] .. first_dependence[i+1]) (CSR). They may point forwards, as in imported
// traces, but not in a circle. Every node occupies a lane of its rank while it lasts; how many nodes of a
// lane run at once is up to the semantics (natively one computation, one host operation, any number of
// communications), and the ready node with the smallest id goes first.
// Payloads refer to tables shared by all programs, so that equal computations are stored (and costed) once.
// Memory: about 27 bytes per node, 4 per dependence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_table.h"
#include "base/units.h"
#include "ir/collective.h"
#include "ir/custom_collective.h"
#include "ir/expert_routing.h"
#include "ir/work.h"

namespace armilla {

enum class NodeKind : std::uint8_t {
  compute,       // payload: index into Graph::works
  delay,         // payload: picoseconds, already known
  collective,    // payload: index into Graph::collectives
  send,          // payload: index into Graph::transfers; done when the message has arrived
  receive,       // payload: index into Graph::transfers; done when the message is here and this is reached
  memory_load,   // payload: bytes from remote memory
  memory_store,  // payload: bytes to remote memory
};

enum class Lane : std::uint8_t {
  device,         // computation
  host,           // CPU operations
  communication,  // collectives, sends, remote memory
  none,           // occupies nothing: receives, pauses
};
Lane usual_lane(NodeKind kind);

enum class Phase : std::uint8_t {
  forward,
  input_gradient,
  weight_gradient,
  gradient_exchange,
  optimizer,
  other
};
std::string_view name_of(Phase phase);

// A stretch of a program that goes on repeating: the nodes [first, end) are at least two whole periods, each
// with the nodes of the one before it and dependences as far back. The last one stands for itself and for
// `more` of its kind right behind it, which are not written out. What depends on a node in the stretch means
// the one as many places before it, on a node in front of it always that one. Nodes that are not written have
// the numbers that they would have.
struct Loop {
  std::uint32_t first = 0, end = 0;
  std::uint32_t period = 0;  // nodes
  std::uint32_t more = 0;

  // Nodes that are not written.
  std::uint32_t unwritten() const { return more * period; }
  bool operator==(const Loop&) const = default;
};

// See Program::parts.
inline constexpr std::uint32_t kWhole = UINT32_MAX;

struct Program {
  std::string role;  // "data-parallel rank"
  // What the CPU needs to issue a node of the lanes device and communication. They are issued one after the
  // other in the order of ids, from `issue_start` on, and nothing holds the CPU up: the k-th may not begin
  // before k times this. 0: the CPU is ahead of the device always.
  Time issue_time, issue_start;
  std::vector<NodeKind> kind;
  std::vector<Phase> phase;
  std::vector<std::uint32_t> name;     // into Graph::names
  std::vector<std::int32_t> layer;     // into Graph::layers, -1: none
  std::vector<std::uint64_t> payload;  // by kind
  std::vector<Lane> lane;
  // Of delays that stand for nodes that follow each other, which the host issues one by one
  // (lower/fused_slots.h): index into Graph::parts, kWhole of any other node. Empty: none is one. A node of
  // no parts is issued along with the one before it, by the same call.
  std::vector<std::uint32_t> parts;
  std::vector<std::uint64_t> file_id;  // what messages call a node; empty: the dense id
  std::vector<std::uint32_t> first_dependence = {0};
  std::vector<std::uint32_t> dependence;
  std::vector<Loop> loops;  // one behind the other

  // Nodes that are written, and all of them.
  std::uint32_t size() const { return static_cast<std::uint32_t>(kind.size()); }
  std::uint32_t length() const {
    std::uint32_t nodes = size();
    for (const Loop& loop : loops) nodes += loop.unwritten();
    return nodes;
  }
  // How often a written node occurs.
  std::int64_t times(std::uint32_t node) const {
    for (const Loop& loop : loops) {
      if (node < loop.end) return node + loop.period >= loop.end ? 1 + std::int64_t{loop.more} : 1;
    }
    return 1;
  }
  // Which written node a node of the whole program is.
  std::uint32_t written(std::uint32_t node) const {
    for (const Loop& loop : loops) {
      if (node < loop.end) return node;
      const std::uint32_t beyond = node - loop.end;
      if (beyond < loop.unwritten()) return loop.end - loop.period + beyond % loop.period;
      node -= loop.unwritten();
    }
    return node;
  }
  std::span<const std::uint32_t> dependences(std::uint32_t node) const {
    return std::span(dependence)
        .subspan(first_dependence[node], first_dependence[node + 1] - first_dependence[node]);
  }
  bool has_parts(std::uint32_t node) const { return !parts.empty() && parts[node] != kWhole; }
  std::uint64_t shown_id(std::uint32_t node) const { return file_id.empty() ? node : file_id[node]; }
  // Appends a node in the usual lane of its kind; returns its id.
  std::uint32_t add(NodeKind node_kind, Phase node_phase, std::uint32_t node_name, std::int32_t node_layer,
                    std::uint64_t node_payload, std::span<const std::uint32_t> dependences_of_node);
  void set_parts(std::uint32_t node, std::uint32_t of);
};

// A partition of ranks into groups that communicate: one family per parallel dimension, or of communicators
// of an imported trace. Every rank is in exactly one group or none.
struct GroupFamily {
  std::string name;                               // "data", "world"
  std::vector<std::vector<std::int32_t>> groups;  // ranks in communicator order
  std::vector<std::int32_t> group_of;             // per rank, -1: in none
  // Bit d: the groups are what the machine's dimensions d of this mask span. 0: just sets of ranks, whatever
  // they span.
  std::uint32_t dimension_mask = 0;
};

// How a call's chunks rank among those waiting (ASTRA-sim 1.0 lets its workloads override the policy).
enum class ChunkPreference : std::uint8_t { policy, fifo, lifo, highest };

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes;                // as in ir/collective.h
  std::uint32_t family = 0;   // into Graph::families; the group is that of the rank
  std::int32_t root = 0;      // position in the group, for broadcast and reduce
  std::int32_t priority = 0;  // larger goes first under ChunkOrder::priority
  ChunkPreference preference = ChunkPreference::policy;
  std::int32_t custom = -1;  // into Graph::custom: the schedule to follow instead of an algorithm
  // Of an all-to-all of tokens that are sent once to every rank with experts of theirs, and across every
  // dimension of the machine once to all ranks behind it, from where they are passed on: `bytes` are what a
  // rank sends to ranks, its own share included. Without experts: each pair exchanges its own bytes.
  ExpertRouting routing{};
  // How many bytes there are is known to the device alone, so that a host that issues nodes
  // (Program::issue_time) first waits for what the call waits for.
  bool counted_on_device = false;
  // A host that issues nodes needs as long for the call as for so many of them.
  std::int32_t issues = 1;
  // Of every device, that the call's kernels hold from when it is issued until it is done: what computes
  // beside it has only the others.
  std::int32_t processors = 0;
  // Of a broadcast that is one of many, whose roots take turns: no member is through before the others, and
  // all links carry as much (sim/plan/plan_maker.h).
  bool takes_turns = false;
  bool operator==(const CollectiveCall&) const = default;
};

// How a program that many ranks share names the other end of a message.
enum class PeerKind : std::uint8_t {
  rank,      // a rank
  position,  // a position in the sender's group of `family`
  shift,     // so many positions further in it, around the end
};

// Sends and receives match by (source, destination, tag), the k-th with the k-th.
struct PointToPoint {
  std::int32_t peer = 0;
  std::uint32_t tag = 0;
  Bytes bytes;
  PeerKind peer_kind = PeerKind::rank;
  std::uint32_t family = 0;
  // Of a receive: a host that issues nodes stops at the first that depends on it until nothing is left that
  // this node waits for.
  bool stops_host = false;
};

struct Graph {
  std::int64_t ranks = 0;
  std::vector<Program> programs;
  std::vector<std::uint32_t> program_of;  // per rank
  std::vector<GroupFamily> families;
  std::vector<Work> works;
  std::vector<CollectiveCall> collectives;
  std::vector<PointToPoint> transfers;
  std::vector<CustomCollective> custom;
  std::vector<std::vector<Time>> parts;  // how long each takes
  StringTable names;
  std::vector<std::string> layers;
};

// How many nodes' time a host that issues nodes (Program::issue_time) needs for this one, and until it may
// begin: with the first of its parts.
std::int64_t host_issues(const Graph& graph, const Program& program, std::uint32_t node);
std::int64_t host_issues_to_begin(const Graph& graph, const Program& program, std::uint32_t node);

// Resolves peers of point-to-point messages. O(ranks) to make, O(1) per question.
class Peers {
 public:
  explicit Peers(const Graph& graph);
  std::int32_t of(std::int32_t rank, const PointToPoint& transfer) const;

 private:
  const Graph& graph_;
  std::vector<std::vector<std::int32_t>> position_;  // [family][rank], only of families that messages use
};

// Whether a node is the one `period` nodes before it again, dependences and all.
bool repeats(const Program& program, std::uint32_t node, std::uint32_t period);
// The same with every program written out.
Program written_out(const Program& program);
Graph written_out(Graph graph);

GroupFamily world_family(std::int64_t ranks);
// The groups that the dimensions of `mask` span on a grid of `sizes` (innermost first).
GroupFamily grid_family(const std::vector<std::int64_t>& sizes, std::uint32_t mask);

// Throws Error for a dangling index, a circle of dependences (and prints it), a rank without program, a group
// with a repeated or unknown rank, members of a group that do not issue the same collectives in the same
// order, a peer that is none, or loops that do not repeat or that not all programs share. O(nodes + ranks
// x (families + peers of a program)).
void validate_graph(const Graph& graph);

}  // namespace armilla
