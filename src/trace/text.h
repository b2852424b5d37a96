// ASTRA-sim's text workloads: what they mean as a Graph, what ASTRA-sim 1.0 reports of them, made of a Model,
// and as Chakra traces; custom collectives as traces.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/custom_collective.h"
#include "ir/formats/chakra.h"
#include "ir/formats/communicators.h"
#include "ir/formats/text_workload.h"
#include "ir/graph.h"
#include "ir/model.h"
#include "ir/result.h"

namespace armilla {

// Model -> ASTRA-sim 1.0 text workload (ir/formats/text_workload.h), as that simulator's workload generator
// does it with SCALE-Sim (scripts/workload_generator, removed in f34f956), extended from matrix products to
// whole models.
//
// The NPUs form D data parts times M model parts: DATA D = P, MODEL M = P, HYBRID_DATA_MODEL D = packages and
// M = P / packages, HYBRID_MODEL_DATA the other way round. With C[m,n] = A[m,k] B[k,n] per layer (a
// convolution as its im2col product) and integer division as there, but never below 1:
//   forward         (m/D, n/M, k)   all-gather      output / P     not under DATA
//   input gradient  (m/D, k, n/M)   reduce-scatter  input / D      not under DATA
//   weight gradient (k, n/M, m/D)   all-reduce      weights / M    not under MODEL
// Output and input are the activations' real tensors (m*n and, but for a convolution's window, m*k elements).
// Every layer has an input gradient, the first one too. The other operators of a layer are spread evenly over
// all NPUs. The generator's two bytes per element are the model's own type here.
// What the generator does not know: a look-up in a table of weights (an embedding) is a row of its own,
// without an input gradient. Every matrix of weights is exchanged with the row that uses it first, a tied one
// once.

struct TextWorkloadOptions {
  TextPolicy policy = TextPolicy::data;  // or MODEL or one of the two HYBRID_*_* of data and model
  std::int64_t npus = 1;
  std::int64_t packages = 1;         // under the hybrid policies; divides npus
  DType dtype = DType::unknown;      // of everything communicated; unknown: the model's own types
  bool all_parameters = false;       // gradients of biases and norms too, not of matrices of weights alone
  std::int64_t update_cycles = 100;  // the generator's
};

// What one NPU computes in each pass of a row (ir/derived/layer_table.h), operator by operator, the layer's
// own first.
struct ShardedLayer {
  std::vector<Work> forward, input_gradient, weight_gradient;
};
// One per row. Throws Error for options that clash.
std::vector<ShardedLayer> shard_layers(const Model& model, const TextWorkloadOptions& options);

struct LayerCycles {
  std::int64_t forward = 0, input_gradient = 0, weight_gradient = 0;
};
// `cycles`: what the shards of each row take, one entry per row. Throws Error for options that clash.
TextWorkload lower_to_text(const Model& model, const TextWorkloadOptions& options,
                           std::span<const LayerCycles> cycles);

// TextWorkload -> Graph: what ASTRA-sim 1.0's workload layer does with a text file, as a graph of dependences
// that gives the same times. All ranks run the same program.
//
// ASTRA-sim's state machine (workload/Workload.cc) takes one step at a time: it computes, issues a collective
// at the very end of the computation, may wait for collectives, and needs one further cycle to come to the
// next step. Here a computation is a delay on the device, the further cycle a delay that occupies nothing,
// and whatever a step waits for is a dependence of what follows. A collective counts as finished
// `update_cycles` after its last chunk: another delay that occupies nothing.
// A collective over dimensions that all have one rank is dropped, as there.
// Nodes: about seven per layer and pass. Not modelled: chunks, queues and links, which are the engine's.

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
  // Kinds whose algorithm ignores dimensions ("oneRing"): ASTRA-sim then sees a single dimension of all
  // ranks.
  std::set<CollectiveKind> flat = {};
};

enum class TextPart : std::uint8_t { forward, input_gradient, weight_gradient };

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
  // Per pass, the nodes after which ASTRA-sim reports it finished; empty under MICRO and inference, where it
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

// What ASTRA-sim 1.0 reports of a text workload, from the graph and the times of its nodes
// (workload/Layer.cc, workload/Workload.cc). All figures are those of one rank; they are sums over all
// passes.
//
//   compute        as in the file, scaled
//   communication  from issue to the last chunk plus the update, summed over the collectives, queueing
//                  included
//   exposed        from the time the state machine asked for collectives to when they had finished
// Of the run: exposed is finish less compute, as there, so it also contains the further cycle of every step
// and whatever the end waits for; after the last pass only the first layer's wait is charged to a layer.
// O(nodes).
// These are figures, not a file: what is written of them is write/astra1's. They stand here and not in write/
// because TextGraph is not a noun: what its nodes were made for (TextWait) only text_graph.cc knows, and its
// tests hold it to ASTRA-sim by these very figures, which a test of trace could not reach in write.

struct TextLayerReport {
  std::string name;
  std::array<Time, 3> compute, communication, exposed;  // by TextPart
};

struct TextReport {
  std::vector<TextLayerReport> layers;
  std::vector<Time> pass_ends;  // when ASTRA-sim prints "pass: p finished"
  Time finish, compute, exposed;
};

// Throws Error when the run did not record its intervals.
TextReport text_report(const TextGraph& text, const Result& result);

// TextWorkload -> Chakra traces, one per rank, for all policies: the nodes of text_graph (above) with their
// dependences, so that a trace takes as long as the text file does.
//
// Cycles become real time (ASTRA-sim's 1 GHz unless told otherwise): whole microseconds in duration_micros,
// anything finer also exactly in kDurationNs. Steps (TextGraphOptions::astra1_steps) and updates are COMP
// nodes that occupy nothing (kLaneAttribute). Groups of ranks are involved_dim lists, or process groups where
// lists cannot name them: a split dimension, SimAI's groups. all_gather's comm_size is the shard, as in both
// formats. Ids start at 0 in every trace; ranks in the same groups get identical traces.
//
// What Chakra's own converter makes of the text is text_chakra_astra (below).

struct TextChakraOptions {
  TextGraphOptions graph;
  bool process_groups = false;  // instead of involved_dim, for all collectives that are not of all ranks
};

struct TextChakra {
  std::vector<ChakraTrace> ranks;
  Communicators communicators;  // that pg_name refers to; named "1", "2", ... as ASTRA-sim 2 wants them
  std::vector<std::string> warnings;
};

// Throws Error as text_graph does, and for more than 2^25 nodes in all.
TextChakra text_chakra(const TextWorkload& workload, const TextChakraOptions& options);

// A text workload as Chakra's own converter translates it (mlcommons/chakra, src/converter/text_converter.py,
// v1.0.0), node for node: for comparison with its users' traces.
//
// It knows seven policies and no dimensions: every collective is among all ranks. Cycles are written as
// microseconds, so that ASTRA-sim 2 takes a thousand times as long; updates are left out; NONE becomes an
// all-reduce of the size that stands beside it, usually 0; ids go on from one rank's trace to the next. The
// text is read as that converter reads it: by lines, of which none may be empty, without counting the layers,
// any unknown collective being an all-reduce.

// `name` is for messages. Throws Error for what the converter refuses or stumbles over, and for more than
// 2^25 nodes in all.
std::vector<ChakraTrace> text_chakra_as_converter(std::string_view text, const std::string& name,
                                                  std::int64_t ranks, std::int64_t passes);

// CustomCollective -> Chakra traces, one per member, in the form that ASTRA-sim 2's "*-implementation-custom"
// takes (as astra-sim/collectiveapi converts MSCCL): COMM_SEND, COMM_RECV and COMP nodes with data
// dependences. Computations of less than a microsecond get no duration and last ASTRA-sim's 1 ns.

// Without `call`, messages that are shares of the call stay shares (msg_chunk_cnt of total_chunk_cnt).
std::vector<ChakraTrace> custom_chakra(const CustomCollective& collective, std::optional<Bytes> call);

}  // namespace armilla
