// Weights that a file stores twice: tied matrices of which an exporter wrote one turned round (the table of
// tokens and the last product of GPT-2) or simply twice.
//
// Two stored matrices of the same size are one where kSamples elements spread over them agree bit by bit and
// differ among each other. Not compared: external data, quantised tensors, tensors of fewer than
// kFewestElements.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "read/onnx/graph.h"

namespace armilla {

// For each of the `values` that repeats an earlier one, that earlier one.
std::map<std::uint32_t, std::uint32_t> find_copies(const OnnxGraph& graph,
                                                   const std::vector<std::uint32_t>& values);

}  // namespace armilla
