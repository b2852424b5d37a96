// TextWorkload -> Graph: what ASTRA-sim 1.0's workload layer does with a text file, as a graph of dependences
// that gives the same times. All ranks run the same program.
//
// The peer's state machine (workload/Workload.cc) takes one step at a time: it computes, issues a collective
// at the very end of the computation, may wait for collectives, and needs one further cycle to come to the
// next step. Here a computation is a delay on the device, the further cycle a delay that occupies nothing,
// and whatever a step waits for is a dependence of what follows. A collective counts as finished
// `update_cycles` after its last chunk: another delay that occupies nothing.
// A collective over dimensions that all have one rank is dropped, as there.
// Nodes: about seven per layer and pass. Not modelled: chunks, queues and links, which are the engine's.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "ir/formats/text_workload.h"
#include "ir/graph.h"

namespace armilla {

struct TextGraphOptions {
  std::vector<std::int64_t> dimensions = {};  // sizes, innermost first
  std::int64_t passes = 1;
  double compute_scale = 1, comm_scale = 1;  // products are truncated to whole cycles and bytes
  bool single_precision = false;             // and are of single precision before, like the factors
  double frequency = 1e9;                    // cycles per second
  bool astra1_steps = true;                  // the further cycle of each step
  // The transformer policies wait for each input gradient before they go on (ASTRA-sim 1.0's tutorials and
  // ns-3 branch).
  bool blocking_input_gradient = false;
  // As SimAI reads the file: blocking input gradients, expert groups, forward collectives of at least 4096
  // bytes. Otherwise its words mean NONE, as in ASTRA-sim 1.0.
  bool simai = false;
  std::int64_t model_parallel_group = 0;  // instead of the file's; 0: the file's
  // Kinds whose algorithm ignores dimensions ("oneRing"): the peer then sees a single dimension of all ranks.
  std::set<CollectiveKind> flat = {};
};

enum class TextPart : std::uint8_t { forward, input_gradient, weight_gradient };
inline constexpr std::array kTextParts = {TextPart::forward, TextPart::input_gradient,
                                          TextPart::weight_gradient};

// One collective that was issued.
struct TextCollective {
  std::int32_t layer = 0;
  TextPart part = TextPart::forward;
  std::uint32_t node = 0;  // the collective
  std::uint32_t done = 0;  // its update, or the collective itself when that takes nothing
};

// One time that the state machine asked whether a layer's collectives had finished and some had not been
// waited for yet. It asked when all nodes of `asked` had ended; at time 0 if there are none.
struct TextWait {
  std::int32_t layer = 0;
  TextPart part = TextPart::forward;
  std::vector<std::uint32_t> asked;
  std::vector<std::uint32_t> collectives;  // into TextGraph::collectives
  bool at_end = false;  // after the last pass: the first to finish is charged, and nothing depends on it
};

struct TextGraph {
  Graph graph;
  // The physical dimension in which the model-parallel group ends: collectives see two, of split_first and
  // size / split_first ranks. -1: none is split.
  std::int32_t split_dimension = -1;
  std::int64_t split_first = 0;
  std::vector<std::array<Time, 3>> compute;  // per layer and part, over all passes
  std::vector<TextCollective> collectives;   // in order of issue
  std::vector<TextWait> waits;
  // Per pass, the nodes after which the peer reports it finished; empty under MICRO and inference, where it
  // says nothing.
  std::vector<std::vector<std::uint32_t>> pass_ends;
  std::vector<std::string> warnings;
};

// Throws Error for an invalid workload, dimensions or scales, a model-parallel group that is missing or does
// not fit the dimensions, a collective scaled to nothing, and more than 2^24 nodes.
TextGraph text_graph(const TextWorkload& workload, const TextGraphOptions& options);

// The dimensions that collectives see, the split one as two.
std::vector<std::int64_t> logical_dimensions(const std::vector<std::int64_t>& dimensions,
                                             const TextGraph& text);

}  // namespace armilla
