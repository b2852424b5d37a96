#include "read/onnx/operators/shape_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "base/units_text.h"

namespace armilla::onnx_shape {
namespace {

using Outputs = std::vector<OnnxType>;

void set_all(Outputs& outputs, std::int32_t element_type, const Shape& shape) {
  for (OnnxType& output : outputs) output = {element_type, shape};
}

// Element type named by an attribute, or `fallback` when it is left out.
std::int32_t type_attribute(const OnnxNodeView& node, std::string_view name, std::int32_t fallback) {
  return static_cast<std::int32_t>(node.int_attribute(name, fallback));
}

// The element-wise operators' common shape; their element type is the first input's.
Shape broadcast_all(const OnnxNodeView& node) {
  Shape shape = node.input_shape(0);
  // Before opset 7 broadcasting was asked for, and always towards the first input.
  if (node.attribute("broadcast") != nullptr) return shape;
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    if (node.has_input(i)) shape = broadcast(node, shape, node.input_shape(i));
  }
  return shape;
}

// Axes as flags, by input or attribute; nullopt when the node names none.
std::optional<std::vector<bool>> listed_axes(const OnnxNodeView& node, std::size_t rank) {
  const auto axes = node.ints(1, "axes");
  if (!axes) return std::nullopt;
  std::vector<bool> flags(rank);
  for (const std::int64_t axis : *axes) flags[node.axis(axis, rank)] = true;
  return flags;
}

std::size_t axis_attribute(const OnnxNodeView& node, std::int64_t fallback, std::size_t rank) {
  return node.axis(node.int_attribute("axis", fallback), rank);
}

void check_sizes(const OnnxNodeView& node, const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t size : sizes) {
    if (size < 0) node.fail(fmt::format("asks for a dimension of {}", size));
  }
}

}  // namespace

// NumPy's rules, as ONNX has them: aligned at the last dimension, 1 repeats. A dimension of 0 stays 0.
Shape broadcast(const OnnxNodeView& node, const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < result.size(); ++i) {  // from the last dimension
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      node.fail(fmt::format("the shapes {} and {} do not broadcast", to_text(a), to_text(b)));
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

void same_as_input(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, node.input(0).element_type, node.input_shape(0));
}

void elementwise(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, node.input(0).element_type, broadcast_all(node));
}

void comparison(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, onnx_type::kBool, broadcast_all(node));
}

void predicate(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, onnx_type::kBool, node.input_shape(0));
}

void select(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, node.input(1).element_type, broadcast_all(node));
}

void cast(const OnnxNodeView& node, Outputs& outputs) {
  const WireAttribute* to = node.attribute("to");
  if (to == nullptr) node.fail("has no attribute 'to'");
  set_all(outputs, static_cast<std::int32_t>(to->i), node.input_shape(0));
}

void cast_like(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, node.input(1).element_type, node.input_shape(0));
}

// The zero point's type is the output's; without one uint8 is the default. output_dtype came with operator
// set 21.
void quantize(const OnnxNodeView& node, Outputs& outputs) {
  const std::int32_t given = type_attribute(node, "output_dtype", 0);
  const std::int32_t fallback = node.has_input(2) ? node.input(2).element_type : onnx_type::kUint8;
  set_all(outputs, given != 0 ? given : fallback, node.input_shape(0));
}

void dequantize(const OnnxNodeView& node, Outputs& outputs) {
  const std::int32_t given = type_attribute(node, "output_dtype", 0);
  set_all(outputs, given != 0 ? given : node.input(1).element_type, node.input_shape(0));
}

// Outputs: the tensor in uint8, its scale and its zero point, which are single numbers.
void dynamic_quantize(const OnnxNodeView& node, Outputs& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {i == 1 ? onnx_type::kFloat : onnx_type::kUint8, i == 0 ? node.input_shape(0) : Shape{}};
  }
}

// The mask was of the input's type until operator set 10.
void dropout(const OnnxNodeView& node, Outputs& outputs) {
  same_as_input(node, outputs);
  if (outputs.size() > 1 && node.node().opset >= 10) outputs[1].element_type = onnx_type::kBool;
}

// 0 copies the input's dimension (unless allowzero), one -1 takes whatever is left.
void reshape(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  const auto wanted = node.ints(1, "shape");
  if (!wanted) node.fail("says no shape");
  const bool zero_is_zero = node.int_attribute("allowzero", 0) != 0;
  Shape to = *wanted;
  std::optional<std::size_t> free;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !zero_is_zero) {
      if (i >= from.size()) node.fail(fmt::format("copies dimension {} of the shape {}", i, to_text(from)));
      to[i] = from[i];
    } else if (to[i] == -1) {
      if (free) node.fail("leaves two dimensions open");
      free = i;
      to[i] = 1;
    } else if (to[i] < 0) {
      node.fail(fmt::format("asks for a dimension of {}", to[i]));
    }
  }
  const std::int64_t elements = element_count(from, node.where());
  const std::int64_t known = element_count(to, node.where());
  if (free) {
    // With an empty tensor the open dimension cannot be divided out: it is 0.
    if (known == 0 ? elements != 0 : elements % known != 0)
      node.fail(fmt::format("cannot make {} ({}) fill the shape {}", typed_count(elements, "element"),
                            to_text(from), fmt::format("{}", to_text(*wanted))));
    to[*free] = known == 0 ? 0 : elements / known;
  } else if (known != elements) {
    node.fail(fmt::format("cannot give {} ({}) the shape {}", typed_count(elements, "element"), to_text(from),
                          to_text(to)));
  }
  outputs[0] = {node.input(0).element_type, to};
}

void flatten(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  const std::int64_t given = node.int_attribute("axis", 1);
  // The axis may also point behind the last dimension.
  const std::size_t axis =
      given == static_cast<std::int64_t>(from.size()) ? from.size() : node.axis(given, from.size());
  const auto middle = from.begin() + static_cast<std::ptrdiff_t>(axis);
  outputs[0] = {node.input(0).element_type,
                {element_count(Shape(from.begin(), middle), node.where()),
                 element_count(Shape(middle, from.end()), node.where())}};
}

// Without axes every dimension of 1 goes.
void squeeze(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  const auto axes = listed_axes(node, from.size());
  Shape to;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool drop = axes ? (*axes)[i] : from[i] == 1;
    if (drop && from[i] != 1)
      node.fail(fmt::format("squeezes dimension {} of the shape {}, which is not 1", i, to_text(from)));
    if (!drop) to.push_back(from[i]);
  }
  outputs[0] = {node.input(0).element_type, to};
}

void unsqueeze(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  // Axes are those of the result, so their number is needed before any can be placed.
  const auto axes = node.ints(1, "axes");
  if (!axes) node.fail("says no axes");
  std::vector<bool> added(from.size() + axes->size());
  for (const std::int64_t axis : *axes) {
    if (added[node.axis(axis, added.size())]) node.fail(fmt::format("adds dimension {} twice", axis));
    added[node.axis(axis, added.size())] = true;
  }
  Shape to;
  std::size_t next = 0;
  for (const bool is_added : added) to.push_back(is_added ? 1 : from[next++]);
  outputs[0] = {node.input(0).element_type, to};
}

void transpose(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  std::vector<std::int64_t> order = node.ints_attribute("perm");
  if (order.empty()) {
    order.resize(from.size());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  std::vector<bool> seen(from.size());
  Shape to;
  for (const std::int64_t axis : order) {
    const std::size_t index = node.axis(axis, from.size());
    if (seen[index]) node.fail(fmt::format("permutes dimension {} twice", axis));
    seen[index] = true;
    to.push_back(from[index]);
  }
  if (to.size() != from.size())
    node.fail(fmt::format("permutes {} of {}", to.size(), typed_count(from.size(), "dimension")));
  outputs[0] = {node.input(0).element_type, to};
}

void concat(const OnnxNodeView& node, Outputs& outputs) {
  Shape to = node.input_shape(0, 1);
  const std::size_t axis = axis_attribute(node, 1, to.size());
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    // The axis itself may differ; everything else must not.
    Shape other = node.input_shape(i);
    if (other.size() != to.size())
      node.fail(fmt::format("concatenates the shapes {} and {}", to_text(to), to_text(other)));
    const std::int64_t sum = checked_add(to[axis], other[axis], node.where());
    other[axis] = to[axis];
    if (other != to)
      node.fail(fmt::format("concatenates the shapes {} and {} along dimension {}", to_text(to),
                            to_text(node.input_shape(i)), axis));
    to[axis] = sum;
  }
  outputs[0] = {node.input(0).element_type, to};
}

void split(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0, 1);
  const std::size_t axis = axis_attribute(node, 0, from.size());
  auto sizes = node.ints(1, "split");
  if (!sizes) {
    // Equal parts; from opset 18 on the last one may be smaller.
    const auto parts = static_cast<std::int64_t>(outputs.size());
    if (node.int_attribute("num_outputs", parts) != parts)
      node.fail(fmt::format("has {}, but num_outputs is {}", typed_count(parts, "output"),
                            node.int_attribute("num_outputs", parts)));
    const std::int64_t part = from[axis] / parts + (from[axis] % parts != 0);
    if (node.node().opset < 18 && from[axis] % parts != 0)
      node.fail(fmt::format("cannot split {} into {} equal parts", from[axis], parts));
    sizes.emplace();
    for (std::int64_t i = 0, left = from[axis]; i < parts; ++i) {
      sizes->push_back(std::min(part, left));
      left -= sizes->back();
    }
  }
  check_sizes(node, *sizes);
  std::int64_t sum = 0;
  for (const std::int64_t size : *sizes) sum = checked_add(sum, size, node.where());
  if (sizes->size() != outputs.size() || sum != from[axis])
    node.fail(fmt::format("splits a dimension of {} into {} of {} together for {}", from[axis],
                          typed_count(sizes->size(), "part"), sum, typed_count(outputs.size(), "output")));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {node.input(0).element_type, from};
    outputs[i].shape[axis] = (*sizes)[i];
  }
}

// Starts and ends are clipped to the dimension, negative ones count from the end; with a negative step the
// end -1 stands in front of the first element.
void slice(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  const auto starts = node.ints(1, "starts");
  const auto ends = node.ints(2, "ends");
  if (!starts || !ends || starts->size() != ends->size()) node.fail("needs as many starts as ends");
  const auto axes = node.ints(3, "axes");
  const auto steps = node.ints(4, "");
  if ((axes && axes->size() != starts->size()) || (steps && steps->size() != starts->size()))
    node.fail("needs as many axes and steps as starts");
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t axis = node.axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), shape.size());
    const std::int64_t size = shape[axis];
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == INT64_MIN) node.fail(fmt::format("has a step of {}", step));
    if (size == 0) continue;
    const auto place = [&](std::int64_t at, std::int64_t lowest, std::int64_t highest) {
      return std::clamp(at < 0 ? at + size : at, lowest, highest);
    };
    const std::int64_t first = place((*starts)[i], 0, step > 0 ? size : size - 1);
    const std::int64_t last = step > 0 ? place((*ends)[i], 0, size) : place((*ends)[i], -1, size - 1);
    const std::int64_t distance = step > 0 ? last - first : first - last;
    const std::int64_t stride = std::abs(step);
    shape[axis] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  }
  outputs[0] = {node.input(0).element_type, shape};
}

// The indices' shape takes the place of the axis.
void gather(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& data = node.input_shape(0, 1);
  const Shape& indices = node.input_shape(1);
  const auto axis = static_cast<std::ptrdiff_t>(axis_attribute(node, 0, data.size()));
  Shape shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  outputs[0] = {node.input(0).element_type, shape};
}

void gather_elements(const OnnxNodeView& node, Outputs& outputs) {
  set_all(outputs, node.input(0).element_type, node.input_shape(1));
}

// The last dimension of the indices says how many dimensions they point into.
void gather_nd(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& data = node.input_shape(0, 1);
  const Shape& indices = node.input_shape(1, 1);
  const std::int64_t skipped = checked_add(node.int_attribute("batch_dims", 0), indices.back(), node.where());
  if (skipped < 0 || skipped > static_cast<std::int64_t>(data.size()))
    node.fail(fmt::format("indexes {} of the shape {}", typed_count(skipped, "dimension"), to_text(data)));
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + skipped, data.end());
  outputs[0] = {node.input(0).element_type, shape};
}

void expand(const OnnxNodeView& node, Outputs& outputs) {
  const auto wanted = node.ints(1, "");
  if (!wanted) node.fail("says no shape");
  check_sizes(node, *wanted);
  outputs[0] = {node.input(0).element_type, broadcast(node, node.input_shape(0), *wanted)};
}

void tile(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  const auto repeats = node.ints(1, "");
  if (!repeats || repeats->size() != shape.size()) node.fail("needs one repeat for every dimension");
  check_sizes(node, *repeats);
  for (std::size_t i = 0; i < shape.size(); ++i)
    shape[i] = checked_multiply(shape[i], (*repeats)[i], node.where());
  outputs[0] = {node.input(0).element_type, shape};
}

// All pads in front come first, then all behind; they may be negative, which crops.
void pad(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  auto pads = node.ints(1, "pads");
  if (!pads) pads = node.ints_attribute("paddings");  // its name in opset 1
  const auto axes = node.ints(3, "");
  const std::size_t count = axes ? axes->size() : shape.size();
  if (pads->size() != 2 * count)
    node.fail(
        fmt::format("has {} for {}", typed_count(pads->size(), "pad"), typed_count(count, "dimension")));
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t& size = shape[axes ? node.axis((*axes)[i], shape.size()) : i];
    size = checked_add(size, checked_add((*pads)[i], (*pads)[count + i], node.where()), node.where());
  }
  check_sizes(node, shape);
  outputs[0] = {node.input(0).element_type, shape};
}

void depth_to_space(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 4);
  const std::int64_t block = node.int_attribute("blocksize", 0);
  if (block < 1 || block > INT32_MAX || shape[1] % (block * block) != 0)
    node.fail(fmt::format("a block of {} does not divide {} channels", block, shape[1]));
  shape[1] /= block * block;
  shape[2] = checked_multiply(shape[2], block, node.where());
  shape[3] = checked_multiply(shape[3], block, node.where());
  outputs[0] = {node.input(0).element_type, shape};
}

void space_to_depth(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 4);
  const std::int64_t block = node.int_attribute("blocksize", 0);
  if (block < 1 || block > INT32_MAX || shape[2] % block != 0 || shape[3] % block != 0)
    node.fail(fmt::format("a block of {} does not divide the shape {}", block, to_text(shape)));
  shape[1] = checked_multiply(shape[1], block * block, node.where());
  shape[2] /= block;
  shape[3] /= block;
  outputs[0] = {node.input(0).element_type, shape};
}

// The depth is an input: the shape is known only where its value is.
void one_hot(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  const OnnxConstant* depth = node.constant_input(1);
  if (depth == nullptr || depth->size() != 1) node.undetermined("its depth is not known");
  const double size = depth->real(0);
  if (!(size >= 0 && size < 1e15)) node.fail(fmt::format("has a depth of {}", size));
  const std::size_t axis = node.axis(node.int_attribute("axis", -1), shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), static_cast<std::int64_t>(size));
  outputs[0] = {node.input(2).element_type, shape};
}

// Since operator set 15 a part of the shape can be asked for; both ends are clipped, as a slice's.
void shape_of(const OnnxNodeView& node, Outputs& outputs) {
  const auto rank = static_cast<std::int64_t>(node.input_shape(0).size());
  const auto clamp = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = clamp(node.int_attribute("start", 0));
  const std::int64_t end = clamp(node.int_attribute("end", rank));
  outputs[0] = {onnx_type::kInt64, {std::max<std::int64_t>(0, end - start)}};
}

void size_of_input(const OnnxNodeView&, Outputs& outputs) {
  outputs[0] = {onnx_type::kInt64, {}};
}

void constant_of_shape(const OnnxNodeView& node, Outputs& outputs) {
  const auto shape = node.ints(0, "");
  if (!shape) node.fail("says no shape");
  check_sizes(node, *shape);
  const WireAttribute* value = node.attribute("value");
  const bool typed = value != nullptr && value->tensor != nullptr;
  outputs[0] = {typed ? value->tensor->data_type : onnx_type::kFloat, *shape};
}

// Limits may be integers or floats; a double holds what lengths are possible.
void range(const OnnxNodeView& node, Outputs& outputs) {
  const OnnxConstant* part[3];
  for (std::size_t i = 0; i < 3; ++i) {
    part[i] = node.constant_input(i);
    if (part[i] == nullptr || part[i]->size() != 1) node.undetermined("its limits are not known");
  }
  const double step = part[2]->real(0);
  const double count = step == 0 ? NAN : std::ceil((part[1]->real(0) - part[0]->real(0)) / step);
  if (!(count < 1e15))
    node.fail(fmt::format("runs from {} to {} in steps of {}", part[0]->real(0), part[1]->real(0), step));
  outputs[0] = {node.input(0).element_type, {static_cast<std::int64_t>(std::max(0.0, count))}};
}

void random(const OnnxNodeView& node, Outputs& outputs) {
  const bool like = node.has_input(0);
  const Shape shape = like ? node.input_shape(0) : node.ints_attribute("shape");
  check_sizes(node, shape);
  outputs[0] = {type_attribute(node, "dtype", like ? node.input(0).element_type : onnx_type::kFloat), shape};
}

// Without axes everything is reduced, unless noop_with_empty_axes says that nothing is.
void reduce(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  auto axes = listed_axes(node, from.size());
  const bool none = !axes || std::find(axes->begin(), axes->end(), true) == axes->end();
  if (none && node.int_attribute("noop_with_empty_axes", 0) != 0) return same_as_input(node, outputs);
  const bool keep = node.int_attribute("keepdims", 1) != 0;
  Shape to;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool reduced = none || (*axes)[i];
    if (!reduced) {
      to.push_back(from[i]);
    } else if (keep) {
      to.push_back(1);
    }
  }
  outputs[0] = {node.input(0).element_type, to};
}

void arg_reduce(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 1);
  const std::size_t axis = axis_attribute(node, 0, shape.size());
  shape[axis] = 1;
  if (node.int_attribute("keepdims", 1) == 0) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  outputs[0] = {onnx_type::kInt64, shape};
}

// k is an attribute until operator set 9, an input since.
void top_k(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 1);
  std::optional<std::vector<std::int64_t>> k = node.ints(1, "");
  if (!k) k = {node.int_attribute("k", -1)};
  const std::size_t axis = axis_attribute(node, -1, shape.size());
  if (k->size() != 1 || k->front() < 0 || k->front() > shape[axis])
    node.fail(fmt::format("asks for more than the {} there {}", typed_count(shape[axis], "element"),
                          shape[axis] == 1 ? "is" : "are"));
  shape[axis] = k->front();
  outputs[0] = {node.input(0).element_type, shape};
  if (outputs.size() > 1) outputs[1] = {onnx_type::kInt64, shape};
}

}  // namespace armilla::onnx_shape
