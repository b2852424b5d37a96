// For tests of lowered jobs: counts of what a rank does, and an executor without times that finds out whether
// a graph can finish.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace armilla {

// "f0 f1 b1 w1 ...": a rank's computations with their blocks, without optimizers.
inline std::string computations(const Graph& graph, std::size_t program_index) {
  const Program& program = graph.programs[program_index];
  std::string text;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] != NodeKind::compute || program.phase[node] == Phase::optimizer) continue;
    if (!text.empty()) text += ' ';
    text += std::string(graph.names[program.name[node]]) + std::to_string(program.layer[node]);
  }
  return text;
}

// A program without collectives, a line per node: "7 b1 after 6 4", "2 send activations 20 to 1 tag 0 after
// 1".
inline std::string describe(const Graph& graph, std::size_t program_index) {
  const Program& program = graph.programs[program_index];
  std::string text;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    text += std::to_string(node) + ' ' + std::string(graph.names[program.name[node]]);
    const bool sends = program.kind[node] == NodeKind::send;
    if (sends || program.kind[node] == NodeKind::receive) {
      const PointToPoint& transfer = graph.transfers[program.payload[node]];
      text += ' ' + std::to_string(transfer.bytes.value) + (sends ? " to " : " from ") +
              std::to_string(transfer.peer) + " tag " + std::to_string(transfer.tag);
    } else if (program.phase[node] != Phase::optimizer) {
      text += std::to_string(program.layer[node]);
    }
    const auto waits = program.dependences(node);
    if (!waits.empty()) text += " after";
    for (const std::uint32_t wait : waits) text += ' ' + std::to_string(wait);
    text += '\n';
  }
  return text;
}

// Bytes of a rank's collectives in a family by kind.
inline std::int64_t collective_bytes(const Graph& graph, const Program& program, CollectiveKind kind,
                                     const std::string& family) {
  std::int64_t bytes = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    if (program.kind[node] != NodeKind::collective) continue;
    const CollectiveCall& call = graph.collectives[program.payload[node]];
    if (call.kind == kind && graph.families[call.family].name == family) bytes += call.bytes.value;
  }
  return bytes;
}

// Plays a graph in rounds: a send arrives at once, a receive takes the next message of its sender, tag and
// size, a collective ends when all members have issued their next one of the family and they are the same.
class UntimedExecution {
 public:
  explicit UntimedExecution(const Graph& graph) : graph_(graph), peers_(graph) {
    for (const Program& program : graph.programs) {
      std::vector<std::vector<std::uint32_t>>& successors = successors_.emplace_back(program.size());
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        for (const std::uint32_t wait : program.dependences(node)) successors[wait].push_back(node);
      }
    }
    for (std::int64_t rank = 0; rank < graph.ranks; ++rank) {
      const Program& program = program_of(rank);
      std::vector<std::uint32_t>& waiting = waiting_.emplace_back(program.size());
      for (std::uint32_t node = 0; node < program.size(); ++node)
        waiting[node] = static_cast<std::uint32_t>(program.dependences(node).size());
      issued_.emplace_back(program.size());
      calls_.emplace_back(graph.families.size());
    }
    while (round()) {
    }
  }

  // Empty: all ranks finished, no message was left over and all members agreed.
  std::string complaint() const {
    if (!complaint_.empty()) return complaint_;
    for (const auto& [channel, messages] : in_flight_) {
      if (messages != 0)
        return "a message from " + std::to_string(std::get<0>(channel)) + " was not received";
    }
    for (std::size_t rank = 0; rank < issued_.size(); ++rank) {
      for (std::size_t node = 0; node < issued_[rank].size(); ++node) {
        if (issued_[rank][node] != 2) {
          return "rank " + std::to_string(rank) + " waits in node " + std::to_string(node) + " '" +
                 std::string(graph_.names[program_of(static_cast<std::int64_t>(rank)).name[node]]) + "'";
        }
      }
    }
    return {};
  }

 private:
  const Program& program_of(std::int64_t rank) const {
    return graph_.programs[graph_.program_of[static_cast<std::size_t>(rank)]];
  }

  bool round() {
    bool moved = false;
    for (std::int64_t rank = 0; rank < graph_.ranks; ++rank) {
      const Program& program = program_of(rank);
      for (std::uint32_t node = 0; node < program.size(); ++node) {
        if (waiting_[static_cast<std::size_t>(rank)][node] == 0 && try_node(rank, program, node))
          moved = true;
      }
    }
    return moved;
  }

  bool try_node(std::int64_t rank, const Program& program, std::uint32_t node) {
    const auto r = static_cast<std::size_t>(rank);
    std::uint8_t& state = issued_[r][node];
    if (state == 2) return false;
    if (program.kind[node] == NodeKind::collective) {
      if (state == 0) {
        state = 1;
        const CollectiveCall& call = graph_.collectives[program.payload[node]];
        calls_[r][call.family].push_back({&call, node});
        try_collective(rank, call.family, calls_[r][call.family].size() - 1);
        return true;
      }
      return false;
    }
    if (program.kind[node] == NodeKind::send || program.kind[node] == NodeKind::receive) {
      const PointToPoint& transfer = graph_.transfers[program.payload[node]];
      const std::int32_t peer = peers_.of(static_cast<std::int32_t>(rank), transfer);
      const auto self = static_cast<std::int32_t>(rank);
      const bool sends = program.kind[node] == NodeKind::send;
      if (peer == self) complaint_ = "rank " + std::to_string(rank) + " sends to itself";
      std::int64_t& messages =
          in_flight_[{sends ? self : peer, sends ? peer : self, transfer.tag, transfer.bytes.value}];
      if (!sends && messages == 0) return false;
      messages += sends ? 1 : -1;
    }
    finish(rank, node);
    return true;
  }

  void try_collective(std::int64_t rank, std::uint32_t family, std::size_t index) {
    const auto group =
        static_cast<std::size_t>(graph_.families[family].group_of[static_cast<std::size_t>(rank)]);
    const std::vector<std::int32_t>& members = graph_.families[family].groups[group];
    for (const std::int32_t member : members) {
      if (calls_[static_cast<std::size_t>(member)][family].size() <= index) return;
    }
    for (const std::int32_t member : members) {
      const auto& [call, node] = calls_[static_cast<std::size_t>(member)][family][index];
      const CollectiveCall* mine = calls_[static_cast<std::size_t>(rank)][family][index].first;
      if (call->kind != mine->kind || call->bytes != mine->bytes)
        complaint_ = "members issue different calls";
      finish(member, node);
    }
  }

  void finish(std::int64_t rank, std::uint32_t node) {
    const auto r = static_cast<std::size_t>(rank);
    issued_[r][node] = 2;
    const std::vector<std::vector<std::uint32_t>>& successors = successors_[graph_.program_of[r]];
    for (const std::uint32_t other : successors[node]) --waiting_[r][other];
  }

  const Graph& graph_;
  Peers peers_;
  std::vector<std::vector<std::vector<std::uint32_t>>> successors_;  // [program][node]
  std::vector<std::vector<std::uint32_t>> waiting_;                  // [rank][node]
  std::vector<std::vector<std::uint8_t>> issued_;                    // [rank][node]: 1 under way, 2 done
  std::vector<std::vector<std::vector<std::pair<const CollectiveCall*, std::uint32_t>>>> calls_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint32_t, std::int64_t>, std::int64_t> in_flight_;
  std::string complaint_;
};

}  // namespace armilla
