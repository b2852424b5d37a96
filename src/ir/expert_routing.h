// Where the tokens of a mixture of experts go: how many places hold the experts of a token.
//
// E experts stand in order on P positions, E / P on each; every token takes k of them. Routing is uniform:
// with `groups` G > 1 (device- or node-limited routing; DeepSeek-AI 2024, DeepSeek-V2, section 2.1.2, and
// DeepSeek-V3, section 2.1.2) first M of G equal runs of experts are chosen, any with the same chance, then k
// of their M E / G experts. Positions that follow each other make up blocks (a node's), n of s = E / n
// experts:
//   expected blocks = sum over blocks of 1 - P(none of the k is there)
//   P(none) = sum over o of P(o of the block's experts are among the chosen groups') x C(ME/G - o, k) /
//   C(ME/G, k)
// Without a limit P(none) = C(E - s, k) / C(E, k). A block that is a groups gets j of them with
// hypergeometric chance C(a, j) C(G - a, M - j) / C(G, M). Not modelled: that trained routers prefer some
// experts to others.
#pragma once

#include <compare>
#include <cstdint>

namespace armilla {

struct ExpertRouting {
  std::int64_t experts = 0, active = 0;  // all, and of a token; 0: no tokens are routed
  std::int64_t groups = 1, active_groups = 1;
  bool to_experts = true;  // else back from them
  auto operator<=>(const ExpertRouting&) const = default;
};

// Expected number of the `blocks` equal runs of experts that hold some of a token's; `blocks` divides the
// experts. Cost: O(groups x active groups x experts) at most.
double expected_blocks(const ExpertRouting& routing, std::int64_t blocks);

}  // namespace armilla
