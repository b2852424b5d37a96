// Helpers of the tests on ONNX parameters.
#pragma once

#include <string>
#include <vector>

#include "read/onnx/builder_testing.h"
#include "read/read.h"

namespace armilla {

using Ints = std::vector<std::int64_t>;
using Names = std::vector<std::string>;
inline constexpr std::int64_t kZero = 0;
inline constexpr std::int64_t kOne = 1;
inline constexpr std::int64_t kFloat = 1;

inline Names names(const Model& model, bool trainable) {
  Names found;
  for (const Parameter& parameter : model.parameters) {
    if (parameter.trainable == trainable) found.push_back(parameter.name);
  }
  return found;
}
inline Names trained(const OnnxBuilder& builder) {
  return names(builder.read(), true);
}
inline Names buffers(const OnnxBuilder& builder) {
  return names(builder.read(), false);
}
inline std::int64_t count(const OnnxBuilder& builder) {
  return totals(builder.read()).parameters;
}

// `name` filled with one number by a node, as onnx's replace_initializer_by_constant_of_shape writes it.
inline OnnxBuilder& filled(OnnxBuilder& graph, const std::string& name, const Shape& shape,
                           float fill = 0.5F) {
  return graph.ints(name + "_shape", shape)
      .node("ConstantOfShape", {name + "_shape"}, {name}, {{"value", BuilderTensor{{1}, fill, {}, {}}}});
}

}  // namespace armilla
