// Synthetic traces: small jobs of a known shape, for trying a network or a simulator.
//
// - The patterns of Chakra's generator (mlcommons/chakra, src/generator/generator.py, v1.0.0), by its names:
//   one node of a kind, two computations, one collective. As Chakra's generator they are byte for byte its
//   files: ids go on over ranks and patterns in its order, sends and receives name no peers. Otherwise ids
//   begin at 0 on every rank and messages go round a ring.
// - Messages: ring, tree (binary, reduce to rank 0 and back), all-to-all, incast.
// - Pipelines over ranks as stages: gpipe (all forward, then all backward) and 1f1b (one forward one backward
//   after a warm-up of as many micro-batches as stages follow; Narayanan et al., SC 2021).
// - random: an acyclic job of computations, messages and all-reduces that is the same for the same seed.
// Every job without as_chakra can run to its end: messages match, collectives have one order, nothing waits
// in a circle. Cost: O(nodes), at most kMaxSyntheticNodes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "ir/formats/chakra.h"

namespace armilla {

inline constexpr std::int64_t kMaxSyntheticNodes = 1 << 25;

struct SyntheticInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  std::vector<ChakraTrace> (*make)(const ParameterValues& values, bool as_chakra);
};
std::span<const SyntheticInfo> synthetic_patterns();

// One trace per rank. Throws Error for an unknown name or bad values, and as Chakra's generator for a pattern
// that is not its own.
std::vector<ChakraTrace> synthesize(const ComponentChoice& choice, bool as_chakra);

// By family, for the table.
std::vector<ChakraTrace> make_ring(const ParameterValues& values, bool as_chakra);
std::vector<ChakraTrace> make_tree(const ParameterValues& values, bool as_chakra);
std::vector<ChakraTrace> make_all_to_all(const ParameterValues& values, bool as_chakra);
std::vector<ChakraTrace> make_incast(const ParameterValues& values, bool as_chakra);
std::vector<ChakraTrace> make_gpipe(const ParameterValues& values, bool as_chakra);
std::vector<ChakraTrace> make_1f1b(const ParameterValues& values, bool as_chakra);
std::vector<ChakraTrace> make_random(const ParameterValues& values, bool as_chakra);

}  // namespace armilla
