#include "read/onnx_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <unordered_map>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>
#pragma GCC diagnostic pop

namespace armilla {
namespace {

constexpr int kNewestOpset = 17;
constexpr std::size_t kLargestAttribute = 1 << 20;

void set_shape(::onnx::TypeProto& type, std::int32_t element_type, const Shape& shape) {
  ::onnx::TypeProto_Tensor& tensor = *type.mutable_tensor_type();
  tensor.set_elem_type(element_type);
  ::onnx::TensorShapeProto& dims = *tensor.mutable_shape();
  for (const std::int64_t dimension : shape) dims.add_dim()->set_dim_value(dimension);
}

::onnx::TensorProto tensor_of(const OnnxConstant& constant, std::int32_t element_type) {
  ::onnx::TensorProto tensor;
  tensor.set_data_type(element_type);
  for (const std::int64_t dimension : constant.shape) tensor.add_dims(dimension);
  for (std::size_t i = 0; i < constant.size(); ++i) {
    switch (element_type) {
      case ::onnx::TensorProto::INT64:
        tensor.add_int64_data(constant.ints[i]);
        break;
      case ::onnx::TensorProto::FLOAT:
        tensor.add_float_data(static_cast<float>(constant.real(i)));
        break;
      case ::onnx::TensorProto::DOUBLE:
        tensor.add_double_data(constant.real(i));
        break;
      default:
        tensor.add_int32_data(static_cast<std::int32_t>(constant.ints[i]));
        break;
    }
  }
  return tensor;
}

bool holds_small_values(std::int32_t element_type) {
  return element_type == ::onnx::TensorProto::INT64 || element_type == ::onnx::TensorProto::FLOAT ||
         element_type == ::onnx::TensorProto::DOUBLE || element_type == ::onnx::TensorProto::INT32 ||
         element_type == ::onnx::TensorProto::BOOL;
}

// What libonnx's inference functions ask about one node.
class Context final : public ::onnx::InferenceContext {
 public:
  Context(const OnnxNodeView& node, const ::onnx::NodeProto& proto)
      : proto_(proto),
        inputs_(node.input_count()),
        values_(node.input_count()),
        outputs_(node.output_count()) {
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      if (!node.has_input(i)) continue;
      const OnnxValue& value = node.input(i);
      ::onnx::TypeProto type;
      if (value.shape) {
        set_shape(type, value.element_type, *value.shape);
      } else if (value.type_message.empty() || !type.ParseFromString(value.type_message)) {
        continue;
      }
      inputs_[i] = std::move(type);
      const OnnxConstant* constant =
          holds_small_values(value.element_type) ? node.constant_input(i) : nullptr;
      if (constant != nullptr) values_[i] = tensor_of(*constant, value.element_type);
    }
  }

  const ::onnx::AttributeProto* getAttribute(const std::string& name) const override {
    for (const ::onnx::AttributeProto& attribute : proto_.attribute()) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }
  size_t getNumInputs() const override { return inputs_.size(); }
  const ::onnx::TypeProto* getInputType(size_t i) const override {
    return inputs_.at(i) ? &*inputs_[i] : nullptr;
  }
  const ::onnx::TensorProto* getInputData(size_t i) const override {
    return values_.at(i) ? &*values_[i] : nullptr;
  }
  size_t getNumOutputs() const override { return outputs_.size(); }
  ::onnx::TypeProto* getOutputType(size_t i) override { return &outputs_.at(i); }
  ::onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override {
    throw ::onnx::InferenceError("it runs a graph of its own");
  }
  const ::onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const ::onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }

 private:
  const ::onnx::NodeProto& proto_;
  std::vector<std::optional<::onnx::TypeProto>> inputs_;
  std::vector<std::optional<::onnx::TensorProto>> values_;
  std::vector<::onnx::TypeProto> outputs_;
};

// The node without its weights; false when an attribute is too large to be of interest to shapes.
bool build_proto(const OnnxNodeView& view, ::onnx::NodeProto& proto) {
  const OnnxNode& node = view.node();
  proto.set_op_type(std::string(node.type));
  proto.set_domain(std::string(node.domain));
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    proto.add_input(view.has_input(i) ? fmt::format("i{}", i) : std::string());
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    proto.add_output(view.has_output(i) ? fmt::format("o{}", i) : std::string());
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute->message.size() > kLargestAttribute || attribute->graph != nullptr) return false;
    ::onnx::AttributeProto& copy = *proto.add_attribute();
    if (!copy.ParseFromArray(attribute->message.data(), static_cast<int>(attribute->message.size())))
      return false;
    copy.set_name(std::string(name));
  }
  return true;
}

OnnxInferred from_proto(const ::onnx::TypeProto& type) {
  OnnxInferred inferred;
  if (!type.has_tensor_type()) {
    inferred.type_message = type.SerializeAsString();
    return inferred;
  }
  inferred.element_type = type.tensor_type().elem_type();
  if (!type.tensor_type().has_shape()) return inferred;
  Shape shape;
  for (const auto& dimension : type.tensor_type().shape().dim()) {
    if (!dimension.has_dim_value() || dimension.dim_value() < 0) return inferred;
    shape.push_back(dimension.dim_value());
  }
  inferred.shape = shape;
  return inferred;
}

// libonnx divides by these without looking.
bool has_zero_divisor(const OnnxNodeView& node) {
  for (const std::string_view name :
       {"strides", "dilations", "kernel_shape", "output_shape", "block_shape"}) {
    const std::vector<std::int64_t> values = node.ints_attribute(name);
    if (std::any_of(values.begin(), values.end(), [](std::int64_t v) { return v < 1 || v > INT32_MAX; }))
      return true;
  }
  return false;
}

}  // namespace

std::vector<OnnxInferred> infer_with_libonnx(const OnnxNodeView& node, std::string& reason) {
  const bool is_standard = node.node().domain.empty();
  const auto version =
      static_cast<int>(std::clamp<std::int64_t>(node.node().opset, 1, is_standard ? kNewestOpset : 3));
  const ::onnx::OpSchema* schema =
      ::onnx::OpSchemaRegistry::Schema(std::string(node.type()), version, std::string(node.node().domain));
  if (schema == nullptr || !schema->has_type_and_shape_inference_function()) {
    reason = "Armilla has no shape rule for this operator";
    return {};
  }
  ::onnx::NodeProto proto;
  if (!build_proto(node, proto) || has_zero_divisor(node)) {
    reason = "its attributes are not what the operator allows";
    return {};
  }
  Context context(node, proto);
  try {
    schema->Verify(proto);
    schema->GetTypeAndShapeInferenceFunction()(context);
  } catch (const std::exception& error) {
    reason = fmt::format("libonnx: {}", error.what());
    return {};
  }
  std::vector<OnnxInferred> outputs;
  for (std::size_t i = 0; i < node.output_count(); ++i)
    outputs.push_back(from_proto(*context.getOutputType(i)));
  return outputs;
}

}  // namespace armilla
