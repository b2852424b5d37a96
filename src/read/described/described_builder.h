// Assembles a Model operator by operator: names, tensors, parameters, and the work that follows from shapes.
//
// Matrix products count two flops per multiply-accumulate. Traffic is every input, output and parameter once.
// Element-wise arithmetic per output: norm 7 (RMSNorm 5), softmax and cross entropy 5, GELU 5, SwiGLU 6,
// rotary positions 3, additions 1, as the ONNX reader counts them. Everything is bf16 but token ids (int64),
// dropout masks (1 byte) and what losses and routers compute in fp32; the plan changes bf16 to its own
// precision. Sizes are checked: too large ones are Errors, not wrong numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "read/described/model_description.h"

namespace armilla {

using TensorId = std::uint32_t;
using ParameterId = std::uint32_t;

// How a matrix product x[..., in] W^T is cut and what it carries.
struct ProductOptions {
  Split split = Split::tokens;
  std::int64_t ways = 0;
  bool bias = false;
  const ParameterId* tied = nullptr;  // the weight of another operator, of shape {out, in}
  DType output = DType::bf16;
  std::int64_t side_by_side = 1;  // weights in each result: 2 for gate and up
};

struct Elementwise {
  std::string_view name, type;
  std::int64_t flops = 1;  // per element of the first output; 0: a copy
  Split split = Split::tokens;
  std::int64_t ways = 0;
  Saves saves = Saves::inputs;
};

class DescribedBuilder {
 public:
  DescribedBuilder(const ModelDescription& description, std::int64_t batch, std::int64_t sequence);

  std::int64_t batch() const { return model_.batch; }
  std::int64_t sequence() const { return sequence_; }  // tokens of the stream that is being built
  void set_sequence(std::int64_t sequence) { sequence_ = sequence; }

  // Operators and their tensors are named "BLOCK.NAME". Blocks opened with the same `like` do equal work.
  void open_block(const std::string& name, BlockKind kind, const std::string& like);

  // Parameters of the block that is open are those of the block `owner`, of equal names and shapes.
  void share_parameters_of(std::string owner) { owner_ = std::move(owner); }

  TensorId input(std::string_view name, Shape shape, DType dtype);
  TensorId tensor(std::string_view name, Shape shape, DType dtype = DType::bf16);
  ParameterId parameter(std::string_view name, Shape shape);
  // One that several blocks share, named after `owner`.
  ParameterId parameter_of(std::string_view owner, std::string_view name, Shape shape);
  const Shape& shape_of(TensorId tensor) const { return model_.tensors[tensor].shape; }
  std::int64_t elements_of(TensorId tensor) const;

  // The operator whose inputs, outputs and parameters are given, with their traffic and no arithmetic. The
  // reference holds until the next operator.
  Operator& add(std::string_view name, std::string_view type, std::vector<TensorId> inputs,
                std::vector<TensorId> outputs, std::vector<ParameterId> parameters = {});
  TensorId elementwise(const Elementwise& what, std::vector<TensorId> inputs, Shape shape,
                       std::vector<ParameterId> parameters = {});
  TensorId product(std::string_view name, TensorId x, std::int64_t out, const ProductOptions& options);
  // One product with several results side by side, called `names`.
  std::vector<TensorId> products(std::string_view name, TensorId x,
                                 const std::vector<std::string_view>& names,
                                 const std::vector<std::int64_t>& outs, const ProductOptions& options);
  // One product per expert, for `rows` rows in all that are spread as evenly as possible.
  TensorId expert_product(std::string_view name, TensorId x, std::int64_t experts, std::int64_t out,
                          Split split, bool bias);

  TensorId look_up(std::string_view name, TensorId ids, ParameterId table, std::int64_t width);
  TensorId norm(std::string_view name, TensorId x, Split split = Split::tokens, std::int64_t group = 0);
  TensorId dropout(std::string_view name, TensorId x);
  // x + residual, and in the same kernel the bias and dropout that the description asks for.
  TensorId residual(std::string_view scope, TensorId x, TensorId residual, bool bias);
  // `expert`: of the tokens that an expert sees.
  TensorId activation(std::string_view name, TensorId x, std::int64_t width, bool expert = false);
  // Per-token cross entropy; the logits are split like `split`.
  TensorId loss(std::string_view name, TensorId logits, TensorId labels, Split split);

  // Parts of a layer that the operators added from now on are in; returns those before (PartScope).
  Parts enter(Part part) {
    const Parts before = parts_;
    parts_.add(part);
    return before;
  }
  void set_parts(Parts parts) { parts_ = parts; }

  Operator& last() { return model_.operators.back(); }
  void output(TensorId tensor) { model_.outputs.push_back(tensor); }
  void set_matrix_work(Operator& op, std::vector<Gemm> gemms);
  Model take();

 private:
  // What a low-rank adapter adds to each of `results`, the results of the product of `x`.
  void adapt(std::string_view name, TensorId x, const std::vector<std::string_view>& names,
             const std::vector<std::int64_t>& outs, const ProductOptions& options,
             std::vector<TensorId>& results);
  bool adapts() const { return description_.adapters.rank > 0; }
  bool adapts(std::string_view product) const;
  std::string named(std::string_view name) const;
  Bytes bytes_of(TensorId tensor) const;

  const ModelDescription& description_;
  std::int64_t sequence_;
  Model model_;
  std::string block_;
  std::string owner_;  // of the block's parameters where these are another's; empty: itself
  Parts parts_;
  std::map<std::string, std::uint32_t> shapes_;
};

// Operators added during its life are in the part, and in those around it.
class PartScope {
 public:
  PartScope(DescribedBuilder& builder, Part part) : builder_(builder), before_(builder.enter(part)) {}
  ~PartScope() { builder_.set_parts(before_); }
  PartScope(const PartScope&) = delete;
  PartScope& operator=(const PartScope&) = delete;

 private:
  DescribedBuilder& builder_;
  Parts before_;
};

}  // namespace armilla
