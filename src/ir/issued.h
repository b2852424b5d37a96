// What a program issues: one scan over its nodes, for all who ask which collectives, messages and uses of
// remote memory occur in it, how often, and in which order.
//
// Computations and delays are not issued. Payloads are those of ir/graph.h: of a collective an index into
// Graph::collectives, of a message into Graph::transfers, of a use of remote memory its bytes.
// Cost: O(nodes).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace armilla {

struct IssuedItem {
  NodeKind kind = NodeKind::collective;  // or send, receive, memory_load, memory_store
  std::uint64_t payload = 0;
  std::uint32_t first_node = 0;
  std::int64_t count = 0;  // nodes that issue it
};

struct Issued {
  std::vector<IssuedItem> items;     // each once, by first node
  std::vector<std::uint32_t> calls;  // into Graph::collectives, of every written collective node in order
};
Issued issued_by(const Program& program);
// By every program.
std::vector<Issued> issued_by(const Graph& graph);

}  // namespace armilla
