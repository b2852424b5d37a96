// Small ONNX models made in memory, for tests: protobuf written with protozero, operator by operator.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <variant>
#include <vector>

#include "read/read.h"

namespace armilla {

// A tensor in an attribute: all elements hold `fill`, or those of `reals` or `ints`.
struct BuilderTensor {
  Shape shape;
  float fill = 0;
  std::vector<float> reals;
  std::vector<std::int64_t> ints;
};
struct BuilderGraph {
  std::string bytes;
};
struct BuilderAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, BuilderTensor, BuilderGraph>
      value;
};

class OnnxBuilder {
 public:
  static constexpr std::int64_t kMinusOne = INT64_MIN;  // a dimension whose value in the file is -1
  // A dimension is a number or, when negative, the symbol "s1", "s2" ... of its absolute value.
  OnnxBuilder& input(const std::string& name, const Shape& shape, int dtype = 1) {
    return info(11, name, shape, dtype);
  }
  OnnxBuilder& output(const std::string& name) { return info(12, name, {}, 1); }
  OnnxBuilder& value_info(const std::string& name, const Shape& shape, int dtype = 1) {
    return info(13, name, shape, dtype);
  }
  OnnxBuilder& weight(const std::string& name, const Shape& shape, int dtype = 1) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, 5);
    for (const std::int64_t dimension : shape) tensor.add_int64(1, dimension);
    tensor.add_int32(2, dtype);
    tensor.add_string(8, name);
    tensor.add_int32(14, 1);
    return *this;
  }
  OnnxBuilder& ints(const std::string& name, const std::vector<std::int64_t>& values) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, 5);
    tensor.add_int64(1, static_cast<std::int64_t>(values.size()));
    tensor.add_int32(2, 7);
    tensor.add_packed_int64(7, values.begin(), values.end());
    tensor.add_string(8, name);
    return *this;
  }
  OnnxBuilder& integer(const std::string& name, std::int64_t value) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, 5);
    tensor.add_int32(2, 7);
    tensor.add_int64(7, value);
    tensor.add_string(8, name);
    return *this;
  }
  // A sequence of tensors without a shape.
  OnnxBuilder& sequence(const std::string& name, int dtype = 1) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer value(graph, 11);
    value.add_string(1, name);
    protozero::pbf_writer type(value, 2);
    protozero::pbf_writer sequence_type(type, 4);
    protozero::pbf_writer element(sequence_type, 1);
    protozero::pbf_writer tensor(element, 1);
    tensor.add_int32(1, dtype);
    return *this;
  }
  OnnxBuilder& reals(const std::string& name, const std::vector<float>& values) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, 5);
    tensor.add_int64(1, static_cast<std::int64_t>(values.size()));
    tensor.add_int32(2, 1);
    tensor.add_packed_float(4, values.begin(), values.end());
    tensor.add_string(8, name);
    return *this;
  }
  // A matrix whose bytes are in the file; element (i, j) is that of the sequence at i * by_row + j *
  // by_column.
  OnnxBuilder& matrix(const std::string& name, const Shape& shape, std::size_t by_row,
                      std::size_t by_column) {
    std::vector<float> values;
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape[0]); ++i) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(shape[1]); ++j) {
        const auto at = static_cast<std::uint32_t>(i * by_row + j * by_column);
        values.push_back(static_cast<float>(at * 2654435761U));
      }
    }
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer tensor(graph, 5);
    for (const std::int64_t dimension : shape) tensor.add_int64(1, dimension);
    tensor.add_int32(2, 1);
    tensor.add_string(8, name);
    tensor.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return *this;
  }
  OnnxBuilder& node(const std::string& type, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::vector<BuilderAttribute>& attributes = {}, const std::string& domain = "") {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer node(graph, 1);
    for (const std::string& name : inputs) node.add_string(1, name);
    for (const std::string& name : outputs) node.add_string(2, name);
    node.add_string(4, type);
    if (!domain.empty()) node.add_string(7, domain);
    for (const BuilderAttribute& attribute : attributes) {
      protozero::pbf_writer field(node, 5);
      field.add_string(1, attribute.name);
      if (const auto* i = std::get_if<std::int64_t>(&attribute.value)) {
        field.add_int64(3, *i);
        field.add_int32(20, 2);
      } else if (const auto* f = std::get_if<float>(&attribute.value)) {
        field.add_float(2, *f);
        field.add_int32(20, 1);
      } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
        field.add_bytes(4, *s);
        field.add_int32(20, 3);
      } else if (const auto* tensor = std::get_if<BuilderTensor>(&attribute.value)) {
        add_tensor(field, *tensor);
        field.add_int32(20, 4);
      } else if (const auto* body = std::get_if<BuilderGraph>(&attribute.value)) {
        field.add_message(6, body->bytes);
        field.add_int32(20, 5);
      } else {
        for (const std::int64_t i64 : std::get<std::vector<std::int64_t>>(attribute.value))
          field.add_int64(8, i64);
        field.add_int32(20, 7);
      }
    }
    return *this;
  }

  // A function of the domain "local", whose nodes are those of `body`.
  OnnxBuilder& function(const std::string& name, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const OnnxBuilder& body) {
    protozero::pbf_writer message(functions_.emplace_back());
    message.add_string(1, name);
    for (const std::string& input : inputs) message.add_string(4, input);
    for (const std::string& output : outputs) message.add_string(5, output);
    protozero::pbf_reader nodes(body.graph_);
    while (nodes.next(1)) message.add_message(7, nodes.get_view());
    message.add_string(10, "local");
    return *this;
  }
  BuilderGraph graph() const { return {graph_}; }

  std::string bytes(int opset = 17) const {
    std::string text;
    protozero::pbf_writer model(text);
    model.add_int64(1, 8);
    model.add_message(7, graph_);
    for (const std::string& function : functions_) model.add_message(25, function);
    for (const char* domain : {"", "com.microsoft", "local"}) {
      protozero::pbf_writer import(model, 8);
      import.add_string(1, domain);
      import.add_int64(2, domain[0] == '\0' ? opset : 1);
    }
    return text;
  }
  Model read(const ModelOptions& options = {}, int opset = 17) const {
    const std::string text = bytes(opset);
    return read_onnx({text.data(), text.size()}, "test.onnx", options);
  }

 private:
  OnnxBuilder& info(protozero::pbf_tag_type field, const std::string& name, const Shape& shape, int dtype) {
    protozero::pbf_writer graph(graph_);
    protozero::pbf_writer value(graph, field);
    value.add_string(1, name);
    if (field == 12) return *this;
    protozero::pbf_writer type(value, 2);
    protozero::pbf_writer tensor(type, 1);
    tensor.add_int32(1, dtype);
    if (shape.empty()) tensor.add_message(2, std::string());
    protozero::pbf_writer dims(tensor, 2);
    for (const std::int64_t dimension : shape) {
      protozero::pbf_writer entry(dims, 1);
      if (dimension >= 0 || dimension == kMinusOne) {
        entry.add_int64(1, dimension == kMinusOne ? -1 : dimension);
      } else {
        entry.add_string(2, "s" + std::to_string(-dimension));
      }
    }
    return *this;
  }

  static void add_tensor(protozero::pbf_writer& field, const BuilderTensor& tensor) {
    protozero::pbf_writer message(field, 5);
    for (const std::int64_t dimension : tensor.shape) message.add_int64(1, dimension);
    message.add_int32(2, tensor.ints.empty() ? 1 : 7);
    if (!tensor.ints.empty()) {
      message.add_packed_int64(7, tensor.ints.begin(), tensor.ints.end());
      return;
    }
    std::vector<float> reals = tensor.reals;
    if (reals.empty()) reals.assign(static_cast<std::size_t>(element_count(tensor.shape, "")), tensor.fill);
    message.add_packed_float(4, reals.begin(), reals.end());
  }

  std::string graph_;
  std::vector<std::string> functions_;
};

}  // namespace armilla
