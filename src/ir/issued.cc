#include "ir/issued.h"

#include <functional>
#include <unordered_map>

namespace armilla {
namespace {

struct IssuedKey {
  NodeKind kind;
  std::uint64_t payload;
  friend bool operator==(const IssuedKey&, const IssuedKey&) = default;
};

struct IssuedKeyHash {
  std::size_t operator()(const IssuedKey& key) const {
    return std::hash<std::uint64_t>()(key.payload * 8 + static_cast<std::uint64_t>(key.kind));
  }
};

}  // namespace

// Equal items are counted, in order of first issue; collectives also stand one by one, as their order
// matters, those of a loop as often as they are written.
Issued issued_by(const Program& program) {
  Issued issued;
  std::unordered_map<IssuedKey, std::size_t, IssuedKeyHash> known;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const NodeKind kind = program.kind[node];
    if (kind == NodeKind::compute || kind == NodeKind::delay) continue;
    const std::uint64_t payload = program.payload[node];
    if (kind == NodeKind::collective) issued.calls.push_back(static_cast<std::uint32_t>(payload));
    const auto [found, fresh] = known.try_emplace({kind, payload}, issued.items.size());
    if (fresh) issued.items.push_back({kind, payload, node, 0});
    issued.items[found->second].count += program.times(node);
  }
  return issued;
}

std::vector<Issued> issued_by(const Graph& graph) {
  std::vector<Issued> all;
  for (const Program& program : graph.programs) all.push_back(issued_by(program));
  return all;
}

}  // namespace armilla
