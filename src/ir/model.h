// Model: operators in topological order with shapes, parameters and the forward work of each; layers above
// them.
//
// An operator's forward work is for `batch` samples. Backward work is derived (ir/derived/backward.h). A
// layer is a weight-carrying matrix operator with the cheap operators that follow it (those before the first
// belong to it too), so layers are consecutive ranges that cover all operators. A model without any matrix
// operator with weights is one layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/parts.h"
#include "ir/tensor.h"
#include "ir/work.h"

namespace armilla {

struct Parameter {
  std::string name;
  DType dtype = DType::fp32;
  Shape shape;
  std::int64_t elements = 0;
  bool trainable = true;  // false: running statistics and other buffers that need memory but no gradient
  // Not trainable, but a weight (of what an adapter is trained for): in the plan's weight type unless `dtype`
  // is narrower.
  bool frozen = false;
};

// How tensor parallelism divides an operator (Shoeybi et al. 2019).
enum class Split : std::uint8_t {
  tokens,      // not at all; sequence parallelism divides its tokens (norms, residuals, routers)
  column,      // matrix product with a weight split by its outputs
  row,         // matrix product with a weight split by its inputs: partial sums, to be reduced
  features,    // element-wise work between the two
  heads,       // attention core, divided by heads; mixes the tokens of a sequence
  vocabulary,  // embedding look-up in a table split by rows: partial sums, to be reduced
};
std::string_view name_of(Split split);

// Where tokens change places between expert-parallel ranks.
enum class Exchange : std::uint8_t { none, dispatch, combine };

// What an operator's backward pass reads of its forward pass; it decides which activations stay in memory.
enum class Saves : std::uint8_t {
  nothing,
  inputs,
  output,
  mask  // the last result alone: where a dropout let through
};

struct Operator {
  std::string name;                    // unique in the model
  std::string type;                    // ONNX operator type, domain prefixed when it is not the standard one
  std::vector<std::uint32_t> inputs;   // into Model::tensors, activations only
  std::vector<std::uint32_t> outputs;  // into Model::tensors
  std::vector<std::uint32_t>
      parameters;  // into Model::parameters; a tied one appears at every operator that uses it
  Work forward;
  bool weight_is_operand =
      false;  // a matrix product's second operand is a parameter: backward splits in two products
  bool needs_input_gradient = true;  // false when nothing trainable lies before it
  bool is_view = false;              // output shares the memory of the input (Reshape, Flatten, Identity ...)
  Saves saves = Saves::inputs;
  // For models that come with a parallel plan in mind; readers of plain graphs leave the defaults.
  Split split = Split::tokens;
  std::int64_t ways = 0;  // most parts `split` can make (heads, features); beyond it parts are copies. 0: any
  // Of a parameter with sparse gradients (EmbeddingBag with sparse=True): elements of it that the forward
  // pass reads at most, which alone have gradients and are updated. 0: all.
  std::int64_t updates = 0;
  bool expert = false;  // one of several experts' share of the tokens: divided by expert parallelism
  Exchange exchange = Exchange::none;
  bool core_attention = false;  // Part::core_attn
  Parts parts{};                // others of a layer that it is in
  // Forward arithmetic that the backward kernel repeats, as a share of it (flash attention: 0.5, the scores).
  double repeated_forward = 0;
  // Of the forward pass with every attention score, and without those that a mask hides; 0: as `forward`.
  Flops full_flops{}, masked_flops{};
};

struct Layer {
  std::string name;
  std::uint32_t first = 0, end = 0;  // operators [first, end)
  std::uint32_t anchor = 0;          // the weight-carrying operator it is named after, or `first`
  // Parameters first used here: the anchor's weight matrices apart from its bias and the neighbours' (norms).
  std::vector<std::uint32_t> weights;
  std::vector<std::uint32_t> other_parameters;
};

enum class BlockKind : std::uint8_t { embedding, encoder, decoder, other, head };

// What a pipeline stage is made of and what full recompute repeats: consecutive operators.
struct Block {
  std::string name;
  BlockKind kind = BlockKind::other;
  std::uint32_t first = 0, end = 0;  // operators [first, end)
  std::uint32_t shape = 0;           // blocks of equal work have equal numbers
};

// Facts of a language or vision model by description, for plans and closed formulas; all 0 where they do not
// apply.
struct ModelFacts {
  std::string
      family;  // "gpt", "llama", "bert", "t5", "vit", "mixtral", "deepseek", "dlrm"; empty: read from a graph
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0;
  std::int64_t feed_forward = 0;  // of layers without experts; 0: there are none
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 0;  // tokens per sample
  std::int64_t experts = 0, active_experts = 0;
  std::int64_t expert_feed_forward = 0,
               shared_feed_forward = 0;  // of one expert; of all shared ones together
  // The experts of a token are in so many of so many equal groups of experts (ir/expert_routing.h).
  std::int64_t expert_groups = 1, active_expert_groups = 1;
  DType dispatch_dtype = DType::unknown;  // of tokens on their way to experts where the plan computes in fp8
};

// Of recommendation models: what expert parallelism divides are tables, and nothing is routed.
inline bool has_tables_for_experts(const ModelFacts& facts) {
  return facts.family == "dlrm";
}

// An operator type whose work is not known. Its memory traffic is counted, its arithmetic is not.
struct UnknownOperator {
  std::string type;
  std::int64_t nodes = 0;
  Bytes bytes;
};

// "Foo: 3 of 122 operators, 4.0 % of the forward bytes; its arithmetic is unknown and counted as none".
std::string describe(const UnknownOperator& unknown, std::int64_t operators, Bytes forward_bytes);

struct Model {
  std::string name;
  std::string source;  // file or zoo name
  std::int64_t batch = 1;
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> inputs;   // into tensors
  std::vector<std::uint32_t> outputs;  // into tensors; constants among them that no operator produces
  std::vector<Parameter> parameters;   // each once, however often it is used
  std::vector<Operator> operators;
  std::vector<Layer> layers;
  std::vector<Block> blocks;  // partition the operators; empty where the reader knows none
  ModelFacts facts;
  std::vector<UnknownOperator> unknown;
  std::vector<std::string> notes;  // what the reader assumed, for the user to see
};

// Fills `layers` from operators and parameters.
void derive_layers(Model& model);

struct ModelTotals {
  std::int64_t parameters = 0;    // trainable
  Bytes parameter_bytes;          // of the trainable ones, in their own dtype
  Bytes buffer_bytes;             // of the others
  std::int64_t forward_macs = 0;  // multiply-accumulates of the matrix products
  Flops forward_flops;            // of everything
  Bytes forward_bytes;
};
ModelTotals totals(const Model& model);

// Rescales all work to another batch, for files whose batch is fixed: activations, arithmetic and leading
// dimensions that the old batch divides grow in proportion; what is read from tables larger than that does
// not. Otherwise exact where `batch` is a multiple of the old one.
void rescale_batch(Model& model, std::int64_t batch);

// Throws Error for a dangling index, an operator before its producer, a layer that does not partition, or a
// size that is negative.
void validate_model(const Model& model);
// Throws Error for a model of constants alone: it can be shown, but there is nothing to run.
void require_work(const Model& model);
std::string dump_model(const Model& model);  // stable text for tests and debugging

}  // namespace armilla
