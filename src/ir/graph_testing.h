// For tests: a graph as text, node by node.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>

#include "ir/graph.h"

namespace armilla {

inline std::string describe_peer(const Graph& graph, const PointToPoint& transfer) {
  switch (transfer.peer_kind) {
    case PeerKind::rank:
      break;
    case PeerKind::position:
      return fmt::format("position {} in {}", transfer.peer, graph.families[transfer.family].name);
    case PeerKind::shift:
      return fmt::format("{:+} in {}", transfer.peer, graph.families[transfer.family].name);
  }
  return fmt::format("rank {}", transfer.peer);
}

inline std::string dump_graph(const Graph& graph) {
  std::string text = fmt::format("graph of {} ranks, {} programs\n", graph.ranks, graph.programs.size());
  for (const Program& program : graph.programs) {
    text += fmt::format("program {}\n", program.role);
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      text +=
          fmt::format("  {} {} '{}'", node, name_of(program.phase[node]), graph.names[program.name[node]]);
      const std::uint64_t payload = program.payload[node];
      switch (program.kind[node]) {
        case NodeKind::compute:
          text += fmt::format(" {} flops {} bytes", graph.works[payload].flops.value,
                              graph.works[payload].bytes.value);
          break;
        case NodeKind::delay:
          text += fmt::format(" {} ps", payload);
          break;
        case NodeKind::send:
        case NodeKind::receive: {
          const PointToPoint& transfer = graph.transfers[payload];
          const bool sends = program.kind[node] == NodeKind::send;
          text += fmt::format(" {} {} bytes {} {}, tag {}", sends ? "send" : "receive", transfer.bytes.value,
                              sends ? "to" : "from", describe_peer(graph, transfer), transfer.tag);
          break;
        }
        case NodeKind::memory_load:
          text += fmt::format(" load {} bytes of remote memory", payload);
          break;
        case NodeKind::memory_store:
          text += fmt::format(" store {} bytes to remote memory", payload);
          break;
        case NodeKind::collective: {
          const CollectiveCall& call = graph.collectives[payload];
          text += fmt::format(" {} {} bytes in {}", name_of(call.kind), call.bytes.value,
                              graph.families[call.family].name);
          break;
        }
      }
      if (!program.dependences(node).empty())
        text += fmt::format(" after {}", fmt::join(program.dependences(node), " "));
      text += '\n';
    }
  }
  return text;
}

}  // namespace armilla
