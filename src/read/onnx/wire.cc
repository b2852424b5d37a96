#include "read/onnx/wire.h"

#include <array>

#include "read/encoding/wire_reader.h"

namespace armilla {
namespace {

// Field numbers are those of onnx.proto, message by message; everything not listed is skipped. What is kept
// are views into the file's bytes: no tensor's payload is read or copied here.
class Parser {
 public:
  explicit Parser(const WireSource& source) : source_(source) {}

  // ModelProto: 7 graph, 8 opset_import, 25 functions.
  WireModel model(std::string_view message) {
    WireModel model;
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 7:
          model.has_graph = true;
          graph(in.bytes(), model.graph, 0);
          break;
        case 8:
          model.opsets.push_back(opset(in.bytes()));
          break;
        case 25:
          model.functions.push_back(function(in.bytes()));
          break;
        default:
          break;
      }
    }
    return model;
  }

 private:
  // Every struct and every list element costs one, which bounds memory for any input.
  void charge(std::string_view part) {
    if (++parts_ > kMaxParts)
      source_.fail(part.data(), fmt::format("the file has more than {} parts", kMaxParts));
  }

  std::string_view text(WireReader& in) {
    const std::string_view text = in.bytes();
    charge(text);
    return text;
  }

  // Repeated integers come packed or one by one; protobuf readers have to take both.
  void numbers(WireReader& in, std::vector<std::int64_t>& list, std::string_view message) {
    in.numbers([&](std::int64_t value) {
      charge(message);
      list.push_back(value);
    });
  }

  // OperatorSetIdProto: 1 domain, 2 version.
  WireOpset opset(std::string_view message) {
    charge(message);
    WireOpset opset;
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == 1) opset.domain = in.bytes();
      if (in.tag() == 2) opset.version = in.number();
    }
    return opset;
  }

  // GraphProto: 1 node, 2 name, 5 initializer, 11 input, 12 output, 13 value_info, 15 sparse_initializer.
  // Files may nest graphs without end; the recursion may not.
  void graph(std::string_view message, WireGraph& graph, int depth) {
    if (depth > kMaxDepth)
      source_.fail(message.data(), fmt::format("graphs are nested more than {} deep", kMaxDepth));
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          graph.nodes.push_back(node(in.bytes(), depth));
          break;
        case 2:
          graph.name = in.bytes();
          break;
        case 5:
          graph.initializers.push_back(tensor(in.bytes()));
          break;
        case 11:
          graph.inputs.push_back(value_info(in.bytes()));
          break;
        case 12:
          graph.outputs.push_back(value_info(in.bytes()));
          break;
        case 13:
          graph.value_infos.push_back(value_info(in.bytes()));
          break;
        case 15:
          graph.initializers.push_back(sparse_tensor(in.bytes()));
          break;
        default:
          break;
      }
    }
  }

  // FunctionProto: 1 name, 4 input, 5 output, 7 node, 9 opset_import, 10 domain, 11 attribute_proto
  // (attributes with a default), 12 value_info, 13 overload.
  WireFunction function(std::string_view message) {
    charge(message);
    WireFunction function;
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          function.name = in.bytes();
          break;
        case 4:
          function.inputs.push_back(text(in));
          break;
        case 5:
          function.outputs.push_back(text(in));
          break;
        case 7:
          function.body.nodes.push_back(node(in.bytes(), 0));
          break;
        case 9:
          function.opsets.push_back(opset(in.bytes()));
          break;
        case 10:
          function.domain = in.bytes();
          break;
        case 11:
          function.defaults.push_back(attribute(in.bytes(), 0));
          break;
        case 12:
          function.body.value_infos.push_back(value_info(in.bytes()));
          break;
        case 13:
          function.overload = in.bytes();
          break;
        default:
          break;
      }
    }
    return function;
  }

  // NodeProto: 1 input, 2 output, 3 name, 4 op_type, 5 attribute, 7 domain, 8 overload.
  WireNode node(std::string_view message, int depth) {
    charge(message);
    WireNode node;
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          node.inputs.push_back(text(in));
          break;
        case 2:
          node.outputs.push_back(text(in));
          break;
        case 3:
          node.name = in.bytes();
          break;
        case 4:
          node.type = in.bytes();
          break;
        case 5:
          node.attributes.push_back(attribute(in.bytes(), depth));
          break;
        case 7:
          node.domain = in.bytes();
          break;
        case 8:
          node.overload = in.bytes();
          break;
        default:
          break;
      }
    }
    return node;
  }

  // AttributeProto: 1 name, 2 f, 3 i, 4 s, 5 t, 6 g, 7 floats, 8 ints, 9 strings, 14 tp, 21 ref_attr_name, 22
  // sparse_tensor. The type (20) is not read: which field is there says as much.
  WireAttribute attribute(std::string_view message, int depth) {
    charge(message);
    WireAttribute attribute;
    attribute.message = message;
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          attribute.name = in.bytes();
          break;
        case 2:
          attribute.f = in.real();
          break;
        case 3:
          attribute.i = in.number();
          break;
        case 4:
          attribute.s = in.bytes();
          break;
        case 5:
          attribute.tensor = std::make_unique<WireTensor>(tensor(in.bytes()));
          break;
        case 6:
          attribute.graph = std::make_unique<WireGraph>();
          graph(in.bytes(), *attribute.graph, depth + 1);
          break;
        case 7:
          in.reals<float>([&](float value) {
            charge(message);
            attribute.floats.push_back(value);
          });
          break;
        case 8:
          numbers(in, attribute.ints, message);
          break;
        case 9:
          attribute.strings.push_back(text(in));
          break;
        case 14:
          attribute.type = std::make_unique<WireValueInfo>();
          type(in.bytes(), *attribute.type, depth);
          break;
        case 22:
          attribute.tensor = std::make_unique<WireTensor>(sparse_tensor(in.bytes()));
          break;
        case 21:
          attribute.reference = in.bytes();
          break;
        default:
          break;
      }
    }
    return attribute;
  }

  // TensorProto: 1 dims, 2 data_type, 8 name, 14 data_location (1: in a file of its own). Values stay where
  // they are until read/onnx/constant.h decodes a small one.
  WireTensor tensor(std::string_view message) {
    charge(message);
    WireTensor tensor;
    tensor.message = message;
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:
          numbers(in, tensor.dims, message);
          break;
        case 2:
          tensor.data_type = static_cast<std::int32_t>(in.number());
          break;
        case 8:
          tensor.name = in.bytes();
          break;
        case 14:
          tensor.external = in.number() == 1;
          break;
        default:
          break;
      }
    }
    return tensor;
  }

  // SparseTensorProto: 1 values, a TensorProto that also has the name; 3 the dense shape. Indices and values
  // do not matter for work and parameters.
  WireTensor sparse_tensor(std::string_view message) {
    charge(message);
    WireTensor sparse;
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == 1) {
        const WireTensor values = tensor(in.bytes());
        sparse.name = values.name;
        sparse.data_type = values.data_type;
      } else if (in.tag() == 3) {
        numbers(in, sparse.dims, message);
      }
    }
    return sparse;
  }

  // ValueInfoProto: 1 name, 2 type.
  WireValueInfo value_info(std::string_view message) {
    charge(message);
    WireValueInfo info;
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == 1) info.name = in.bytes();
      if (in.tag() == 2) type(in.bytes(), info, 0);
    }
    return info;
  }

  // TypeProto: 1 tensor_type, 4 sequence_type, 5 map_type, 8 sparse_tensor_type, 9 optional_type.
  void type(std::string_view message, WireValueInfo& info, int depth) {
    if (depth > kMaxDepth)
      source_.fail(message.data(), fmt::format("types are nested more than {} deep", kMaxDepth));
    WireReader in(message, source_);
    while (in.next()) {
      switch (in.tag()) {
        case 1:  // dense
        case 8:  // sparse
          info.kind = ValueKind::tensor;
          tensor_type(in.bytes(), info);
          break;
        case 4:
        case 9:
          info.kind = in.tag() == 4 ? ValueKind::sequence : ValueKind::optional;
          element_type(in.bytes(), info, depth);
          break;
        case 5:
          info.kind = ValueKind::map;
          break;
        default:
          break;
      }
    }
  }

  // TypeProto.Tensor: 1 elem_type, 2 shape.
  void tensor_type(std::string_view message, WireValueInfo& info) {
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == 1) info.data_type = static_cast<std::int32_t>(in.number());
      if (in.tag() == 2) shape(in.bytes(), info);
    }
  }

  // TypeProto.Sequence and TypeProto.Optional: 1 elem_type.
  void element_type(std::string_view message, WireValueInfo& info, int depth) {
    charge(message);
    info.element = std::make_unique<WireValueInfo>();
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() == 1) type(in.bytes(), *info.element, depth + 1);
    }
  }

  // TensorShapeProto: 1 dim, each with 1 dim_value or 2 dim_param. A shape without dimensions is a scalar's;
  // no shape at all is an unknown rank.
  void shape(std::string_view message, WireValueInfo& info) {
    info.has_shape = true;
    WireReader in(message, source_);
    while (in.next()) {
      if (in.tag() != 1) continue;
      const std::string_view dimension_message = in.bytes();
      charge(dimension_message);
      WireDimension dimension;
      WireReader fields(dimension_message, source_);
      while (fields.next()) {
        if (fields.tag() == 1) {
          dimension.value = fields.number();
          dimension.has_value = true;
        } else if (fields.tag() == 2) {
          dimension.symbol = fields.bytes();
        }
      }
      info.dims.push_back(dimension);
    }
  }

  const WireSource& source_;
  std::int64_t parts_ = 0;
};

}  // namespace

WireModel parse_onnx(std::span<const char> bytes, const std::string& file) {
  const WireSource source{bytes.data(), file};
  return Parser(source).model({bytes.data(), bytes.size()});
}

bool looks_like_onnx(std::span<const char> beginning) {
  // The fields of a ModelProto and their wire types; the first one of a file decides.
  struct Field {
    std::uint32_t tag;
    WireReader::Type type;
  };
  using Type = WireReader::Type;
  constexpr std::array<Field, 11> kFields = {{{1, Type::varint},
                                              {2, Type::bytes},
                                              {3, Type::bytes},
                                              {4, Type::bytes},
                                              {5, Type::varint},
                                              {6, Type::bytes},
                                              {7, Type::bytes},
                                              {8, Type::bytes},
                                              {14, Type::bytes},
                                              {20, Type::bytes},
                                              {25, Type::bytes}}};
  if (beginning.size() < 2) return false;
  const auto key = static_cast<unsigned char>(beginning[0]);
  for (const Field& field : kFields) {
    // A key is (field number << 3) | wire type, as a varint: fields from 16 on take two bytes.
    const unsigned expected = (field.tag << 3) | static_cast<unsigned>(field.type);
    if (expected < 128
            ? key == expected
            : key == ((expected & 127) | 128) && static_cast<unsigned char>(beginning[1]) == expected >> 7)
      return true;
  }
  return false;
}

}  // namespace armilla
