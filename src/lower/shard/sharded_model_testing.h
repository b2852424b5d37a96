// Hand-made sharded models for tests: an embedding, `layers` equal blocks and a head. Every pass of a block
// has one computation (a backward pass two) and, with `tensor` > 1, an all-reduce; sizes tell the steps
// apart.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "lower/sharded_model.h"

namespace armilla {

struct SmallShape {
  std::int64_t layers = 2;
  std::int64_t layer_elements = 1000, embedding_elements = 500;
  bool ties = false;        // the head uses the embedding's weight
  bool recomputes = false;  // layers have a recompute pass
  bool reduces = false;     // an all-reduce over `tensor` ends every pass of a layer
  std::int64_t partial_elements = 0;
};

class SmallShardedModel {
 public:
  explicit SmallShardedModel(const SmallShape& wanted) : wanted_(wanted) {
    model_.shapes.resize(4);
    fill(model_.shapes[0], 1, wanted.embedding_elements, wanted.ties ? 0 : -1);
    fill(model_.shapes[1], 2, wanted.layer_elements, -1);
    fill(model_.shapes[2], 3, wanted.embedding_elements, wanted.ties ? 0 : -1);
    if (wanted.partial_elements > 0) {
      WeightGroup norms{GroupAxis::data, wanted.partial_elements, -1, DType::unknown};
      norms.tensor_partial = true;
      model_.shapes[1].weights.push_back(norms);
    }
    if (wanted.recomputes) repeat(model_.shapes[1]);
    model_.shapes[3] = model_.shapes[1];
    if (!wanted.recomputes) repeat(model_.shapes[3]);
    model_.blocks.push_back({"embedding", BlockKind::embedding, 0, 0});
    for (std::int64_t i = 0; i < wanted.layers; ++i)
      model_.blocks.push_back({"layer" + std::to_string(i), BlockKind::decoder, 1, 3});
    model_.blocks.push_back({"head", BlockKind::head, 2, 2});
  }

  ShardedModel model() { return model_; }

 private:
  PassStep compute(Phase phase, const char* name, std::int64_t flops, std::vector<std::uint32_t> after) {
    PassStep step;
    step.phase = phase;
    step.name = model_.names.add(name);
    step.work = static_cast<std::uint32_t>(model_.works.size());
    model_.works.push_back({WorkKind::vector, DType::fp32, Flops(flops), Bytes(flops), {}});
    step.after = std::move(after);
    return step;
  }

  PassStep reduce(Phase phase, std::vector<std::uint32_t> after) {
    PassStep step;
    step.kind = NodeKind::collective;
    step.phase = phase;
    step.name = model_.names.add("reduce");
    step.bytes = Bytes(64);
    step.after = std::move(after);
    return step;
  }

  // The weight gradient needs nothing that the input gradient's all-reduce brings.
  void fill(BlockShape& shape, std::int64_t size, std::int64_t elements, std::int64_t tied) {
    const bool reduces = wanted_.reduces && size == 2;
    shape.forward.steps = {compute(Phase::forward, "f", 100 * size, {})};
    if (reduces) shape.forward.steps.push_back(reduce(Phase::forward, {0}));
    shape.backward.steps = {compute(Phase::input_gradient, "b", 100 * size + 1, {})};
    if (reduces) shape.backward.steps.push_back(reduce(Phase::input_gradient, {0}));
    shape.backward.steps.push_back(compute(Phase::weight_gradient, "w", 100 * size + 2, {0}));
    shape.weights = {{GroupAxis::data, elements, tied, DType::unknown}};
    shape.input = shape.output = Bytes(10 * size);
    shape.saved = Bytes(40 * size);
  }

  void repeat(BlockShape& shape) { shape.recompute.steps = {compute(Phase::input_gradient, "r", 103, {})}; }

  SmallShape wanted_;
  ShardedModel model_;
};

inline ShardedModel small_sharded_model(const SmallShape& wanted = {}) {
  return SmallShardedModel(wanted).model();
}

inline Plan small_plan(std::int64_t pipeline, std::int64_t data, std::int64_t tensor,
                       std::int64_t micro_batches, std::string_view schedule = "1f1b") {
  Plan plan;
  plan.pipeline = pipeline;
  plan.tensor = tensor;
  plan.ranks = pipeline * data * tensor;
  plan.micro_batches = micro_batches;
  plan.batch = micro_batches;
  plan.schedule = schedule;
  plan.weight_dtype = plan.gradient_dtype = plan.parameter_dtype = DType::fp32;
  plan.optimizer = Optimizer::adam;
  return plan;
}

}  // namespace armilla
