// Topological order of a graph's nodes. ONNX demands it of the file; files that do not obey are sorted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "read/onnx/wire.h"

namespace armilla {

// Indices into `nodes`, the file's own order wherever it is valid. Throws Error for a tensor with two
// producers and for a cycle, which it names.
std::vector<std::uint32_t> order_nodes(const std::vector<WireNode>& nodes, const std::string& where);

// "node 12 'fc' (Gemm)"
std::string describe(const WireNode& node, std::size_t index);

}  // namespace armilla
