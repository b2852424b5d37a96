// A hand-made model for the tests of this module: embedding -> linear a -> relu -> linear b (weight shared
// with a) -> flatten.
#pragma once

#include "ir/model.h"

namespace armilla {

inline Model small_model(std::int64_t batch) {
  Model model;
  model.name = "small";
  model.source = "small";
  model.batch = batch;
  const auto tensor = [&](const char* name, std::int64_t width) {
    return Tensor{name, DType::fp32, {batch, width}};
  };
  model.tensors = {{"ids", DType::int64, {batch, 1}},
                   tensor("e", 8),
                   tensor("a", 8),
                   tensor("r", 8),
                   tensor("b", 8),
                   tensor("out", 8)};
  model.inputs = {0};
  model.outputs = {5};
  model.parameters = {{"table", DType::fp32, {100, 8}, 800, true},
                      {"weight", DType::fp32, {8, 8}, 64, true},
                      {"bias", DType::fp32, {8}, 8, true},
                      {"statistic", DType::fp32, {8}, 8, false}};
  const Bytes wide = Bytes(batch * 8 * 4);
  Operator embedding{"embedding", "Gather", {0},
                     {1},         {0},      {WorkKind::copy, DType::fp32, Flops(0), wide * 2, {}}};
  embedding.needs_input_gradient = false;
  Operator a{"a",
             "Gemm",
             {1},
             {2},
             {1, 2},
             {WorkKind::matrix,
              DType::fp32,
              Flops(2 * 64 * batch),
              wide * 2 + Bytes(288),
              {{batch, 8, 8, 1, true}}}};
  a.weight_is_operand = true;
  Operator relu{"relu", "Relu", {2},
                {3},    {},     {WorkKind::vector, DType::fp32, Flops(8 * batch), wide * 2, {}}};
  relu.saves = Saves::output;
  Operator b = a;
  b.name = "b";
  b.inputs = {3};
  b.outputs = {4};
  b.parameters = {1, 3};
  Operator flatten{"flatten", "Flatten", {4}, {5}, {}, {}};
  flatten.is_view = true;
  flatten.saves = Saves::nothing;
  model.operators = {embedding, a, relu, b, flatten};
  derive_layers(model);
  return model;
}

}  // namespace armilla
