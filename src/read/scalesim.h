// Readers of SCALE-Sim's files: configurations and topologies.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "ir/formats/systolic.h"
#include "ir/model.h"
#include "read/read.h"

namespace armilla {

// Configurations of SCALE-Sim (.cfg): sections in brackets, "key = value" or "key : value" lines, as Python's
// configparser reads them: keys in any case, lines that begin with # or ; are comments.
//
// A file that has what only v3 knows (a section layout or sparsity, UseRamulatorTrace) is run by v3's rules,
// any other by v2's. v1's names of the sizes (IfmapSramSz ...) and files without InterfaceBandwidth are read
// as v2's with CALC; the notes say so. Errors instead of other results: v3's sparsity, custom layouts and
// Ramulator, which are not modelled. Addresses (offsets) have no influence on any figure.

// `name` is what errors call the text. Throws Error with file:line and key.
ScaleSimConfig parse_scalesim_config(std::string_view text, const std::string& name);
ScaleSimConfig read_scalesim_config(const std::string& path);

// A compute model as --compute and a study's `compute` take it: a component ("systolic:rows=8"), or a
// configuration of SCALE-Sim by its file name, which ends with .cfg: its array, and with USER its buffers and
// bandwidth (v2's rules). A relative name is relative to `folder` ("" or with the final slash).
ComponentChoice read_compute_choice(const std::string& text, const std::string& where,
                                    const std::string& folder = "");

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

// `name` is what errors call the text. Throws Error with file:line.
SystolicTopology parse_scalesim_topology(std::string_view text, const std::string& name);
SystolicTopology read_scalesim_topology(const std::string& path);

// The layers one after the other, in fp32, each a convolution or a product with its weight. Their shapes need
// not fit together: pooling, padding and activations are not in the table.
Model read_scalesim_model(std::span<const char> bytes, const std::string& name, const ModelOptions& options);

}  // namespace armilla
