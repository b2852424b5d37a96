// Topologies of SCALE-Sim (v1, v2, v3): comma-separated tables of a network's layers.
//
//   Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,
//   Layer, M, N, K,
//
// The first line names the columns; it decides between the two forms, and whether a ninth column (fifth in
// the form M, N, K) is the stride in width, a ratio of sparsity, a batch size or nothing that is known. The
// last comma of a line, spaces, tabs instead of commas, a byte order mark, empty lines and lines that begin
// with # do not matter. A line of a name alone is a heading. As in SCALE-Sim, inputs include their padding,
// and a layer with "DP" in its name is depth-wise: one layer of one channel for each of its channels.
//
// Not read: ratios of sparsity and batch sizes (said in the notes). Linear.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/formats/systolic.h"
#include "ir/model.h"
#include "read/read.h"

namespace armilla {

// `name` is what errors call the text. Throws Error with file:line.
SystolicTopology parse_scalesim_topology(std::string_view text, const std::string& name);
SystolicTopology read_scalesim_topology(const std::string& path);

// The layers one after the other, in fp32, each a convolution or a product with its weight. Their shapes need
// not fit together: pooling, padding and activations are not in the table.
Model read_scalesim_model(std::span<const char> bytes, const std::string& name, const ModelOptions& options);

}  // namespace armilla
