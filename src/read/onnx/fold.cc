// Constant folding over small tensors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "read/onnx/constant.h"
#include "read/onnx/node_view.h"

namespace armilla {
namespace {

using Folded = std::optional<OnnxConstant>;

// -1 where it is too large to be shape arithmetic, or not a shape.
std::int64_t constant_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0 || dimension > kMaxConstantElements) return -1;
    count *= dimension;
    if (count > kMaxConstantElements) return -1;
  }
  return count;
}

// Row-major, as ONNX stores tensors.
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// The output shape that the shape rule has already found, when it is small enough to fold.
std::optional<Shape> output_shape(const OnnxNodeView& node) {
  if (!node.has_output(0) || !node.output(0).shape || constant_count(*node.output(0).shape) < 0)
    return std::nullopt;
  return node.output(0).shape;
}

void append(OnnxConstant& to, const OnnxConstant& from, std::size_t i) {
  if (to.floating) {
    to.reals.push_back(from.real(i));
  } else {
    to.ints.push_back(from.ints[i]);
  }
}

// Builds the output element by element: `pick` maps the output's index to the index in `from`.
template <class Pick>
Folded rearranged(const OnnxNodeView& node, const OnnxConstant& from, Pick pick) {
  const auto shape = output_shape(node);
  if (!shape) return std::nullopt;
  OnnxConstant to{*shape, from.floating, {}, {}};
  const std::int64_t count = constant_count(*shape);
  Shape index(shape->size());
  for (std::int64_t flat = 0; flat < count; ++flat) {
    const std::int64_t source = pick(index);
    if (source < 0 || source >= static_cast<std::int64_t>(from.size())) return std::nullopt;
    append(to, from, static_cast<std::size_t>(source));
    // Counts the index up like an odometer, last dimension fastest.
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < (*shape)[d]) break;
      index[d] = 0;
    }
  }
  return to;
}

// Where the element at `index` of a broadcast result lies in an operand.
std::int64_t broadcast_source(const Shape& index, const Shape& operand, const Shape& strides) {
  std::int64_t at = 0;
  // Operands are aligned at their last dimension, and dimensions of 1 repeat (NumPy's rules).
  const std::size_t skipped = index.size() - operand.size();
  for (std::size_t d = 0; d < operand.size(); ++d)
    at += operand[d] == 1 ? 0 : index[skipped + d] * strides[d];
  return at;
}

Folded broadcast_to(const OnnxNodeView& node, const OnnxConstant& from) {
  const auto shape = output_shape(node);
  if (!shape || shape->size() < from.shape.size()) return std::nullopt;
  const Shape strides = strides_of(from.shape);
  return rearranged(node, from,
                    [&](const Shape& index) { return broadcast_source(index, from.shape, strides); });
}

// Operators that change nothing but the shape.
Folded same_values(const OnnxNodeView& node, const OnnxConstant& from) {
  const auto shape = output_shape(node);
  if (!shape || constant_count(*shape) != static_cast<std::int64_t>(from.size())) return std::nullopt;
  OnnxConstant to = from;
  to.shape = *shape;
  return to;
}

// Towards zero, as a cast in C; numbers beyond 64 bits have no defined result and are not folded.
Folded cast(const OnnxNodeView& node, const OnnxConstant& from) {
  const std::int64_t type = node.output(0).element_type;
  const DType dtype = dtype_of_onnx(static_cast<std::int32_t>(type));
  OnnxConstant to{from.shape, is_floating(dtype), {}, {}};
  if (dtype == DType::text || dtype == DType::unknown) return std::nullopt;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (to.floating) {
      to.reals.push_back(from.real(i));
    } else if (!from.floating) {
      to.ints.push_back(dtype == DType::boolean ? from.ints[i] != 0 : from.ints[i]);
    } else {
      if (!(std::abs(from.reals[i]) < 9e18)) return std::nullopt;
      to.ints.push_back(dtype == DType::boolean ? from.reals[i] != 0
                                                : static_cast<std::int64_t>(std::trunc(from.reals[i])));
    }
  }
  return to;
}

using IntFunction = std::optional<std::int64_t> (*)(std::int64_t, std::int64_t);
using RealFunction = double (*)(double, double);

struct Binary {
  std::string_view type;
  IntFunction ints;
  RealFunction reals;  // nullptr: integers only
  bool boolean;        // the result is
};

template <bool (*Overflows)(std::int64_t, std::int64_t, std::int64_t*)>
std::optional<std::int64_t> checked(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (Overflows(a, b, &result)) return std::nullopt;
  return result;
}
bool add(std::int64_t a, std::int64_t b, std::int64_t* c) {
  return __builtin_add_overflow(a, b, c);
}
bool subtract(std::int64_t a, std::int64_t b, std::int64_t* c) {
  return __builtin_sub_overflow(a, b, c);
}
bool multiply(std::int64_t a, std::int64_t b, std::int64_t* c) {
  return __builtin_mul_overflow(a, b, c);
}
bool divisible(std::int64_t a, std::int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}
// Integer division truncates in ONNX, too.
std::optional<std::int64_t> divide(std::int64_t a, std::int64_t b) {
  return divisible(a, b) ? std::optional(a / b) : std::nullopt;
}
// The sign follows the divisor, as in Python (ONNX Mod with fmod = 0).
std::optional<std::int64_t> modulo(std::int64_t a, std::int64_t b) {
  if (!divisible(a, b)) return std::nullopt;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
// Beyond 2^53 (9.007e15) a double no longer holds every integer.
std::optional<std::int64_t> power(std::int64_t a, std::int64_t b) {
  const double result = std::pow(static_cast<double>(a), static_cast<double>(b));
  if (!(std::abs(result) < 9e15)) return std::nullopt;
  return static_cast<std::int64_t>(result);
}

template <class Compare>
constexpr Binary comparison(std::string_view type) {
  return {type, [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return Compare()(a, b); },
          [](double a, double b) -> double { return Compare()(a, b); }, true};
}

constexpr std::array kBinaries = {
    Binary{"Add", checked<add>, [](double a, double b) { return a + b; }, false},
    Binary{"Sub", checked<subtract>, [](double a, double b) { return a - b; }, false},
    Binary{"Mul", checked<multiply>, [](double a, double b) { return a * b; }, false},
    Binary{"Div", divide, [](double a, double b) { return a / b; }, false},
    Binary{"Mod", modulo, nullptr, false},
    Binary{"Pow", power, [](double a, double b) { return std::pow(a, b); }, false},
    Binary{"Min", [](std::int64_t a, std::int64_t b) { return std::optional(std::min(a, b)); },
           [](double a, double b) { return std::min(a, b); }, false},
    Binary{"Max", [](std::int64_t a, std::int64_t b) { return std::optional(std::max(a, b)); },
           [](double a, double b) { return std::max(a, b); }, false},
    comparison<std::equal_to<>>("Equal"),
    comparison<std::less<>>("Less"),
    comparison<std::less_equal<>>("LessOrEqual"),
    comparison<std::greater<>>("Greater"),
    comparison<std::greater_equal<>>("GreaterOrEqual"),
    comparison<std::logical_and<>>("And"),
    comparison<std::logical_or<>>("Or"),
    comparison<std::not_equal_to<>>("Xor"),
};

// Booleans are integers of 0 and 1 here, so comparisons yield integers whatever they compare.
Folded binary(const OnnxNodeView& node, const Binary& op, const OnnxConstant& a, const OnnxConstant& b) {
  const auto shape = output_shape(node);
  const bool floating = a.floating || b.floating;
  if (!shape || (floating && op.reals == nullptr)) return std::nullopt;
  // Both operands are spread to the result's shape first: tensors are small, and the loop below stays simple.
  if (shape->size() < a.shape.size() || shape->size() < b.shape.size()) return std::nullopt;
  const Folded left = broadcast_to(node, a);
  const Folded right = broadcast_to(node, b);
  if (!left || !right) return std::nullopt;
  OnnxConstant to{*shape, floating && !op.boolean, {}, {}};
  for (std::size_t i = 0; i < left->size(); ++i) {
    if (floating) {
      const double value = op.reals(left->real(i), right->real(i));
      if (op.boolean) {
        to.ints.push_back(value != 0);
      } else {
        to.reals.push_back(value);
      }
    } else {
      const auto value = op.ints(left->ints[i], right->ints[i]);
      if (!value) return std::nullopt;
      to.ints.push_back(*value);
    }
  }
  return to;
}

// Rounding is to the nearest even, as ONNX wants and nearbyint does in the default mode.
Folded unary(const OnnxNodeView& node, const OnnxConstant& from) {
  struct Unary {
    std::string_view type;
    double (*apply)(double);
  };
  static constexpr std::array kUnaries = {
      Unary{"Neg", [](double x) { return -x; }},
      Unary{"Abs", [](double x) { return std::abs(x); }},
      Unary{"Floor", [](double x) { return std::floor(x); }},
      Unary{"Ceil", [](double x) { return std::ceil(x); }},
      Unary{"Round", [](double x) { return std::nearbyint(x); }},
      Unary{"Sqrt", [](double x) { return std::sqrt(x); }},
      Unary{"Relu", [](double x) { return std::max(x, 0.0); }},
      Unary{"Reciprocal", [](double x) { return 1 / x; }},
      Unary{"Not", [](double x) { return static_cast<double>(x == 0); }},
  };
  for (const Unary& op : kUnaries) {
    if (op.type != node.type()) continue;
    OnnxConstant to = from;
    for (double& value : to.reals) value = op.apply(value);
    for (std::int64_t& value : to.ints) {
      // Doubles hold integers of at most 53 bits exactly.
      if (value > (std::int64_t{1} << 53) || value < -(std::int64_t{1} << 53)) return std::nullopt;
      value = static_cast<std::int64_t>(op.apply(static_cast<double>(value)));
    }
    return to;
  }
  return std::nullopt;
}

// In each of the `outer` rows the operands contribute a run of consecutive elements.
Folded concat(const OnnxNodeView& node) {
  const auto shape = output_shape(node);
  if (!shape || shape->empty()) return std::nullopt;
  const std::size_t axis = node.axis(node.int_attribute("axis", 1), shape->size());
  std::vector<const OnnxConstant*> parts;
  for (std::size_t i = 0; i < node.input_count(); ++i) parts.push_back(node.constant_input(i));
  OnnxConstant to{*shape, parts[0]->floating, {}, {}};
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < axis; ++d) outer *= (*shape)[d];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const OnnxConstant* part : parts) {
      if (part->floating != to.floating) return std::nullopt;
      const std::size_t run = part->size() / static_cast<std::size_t>(outer);
      for (std::size_t i = 0; i < run; ++i) append(to, *part, static_cast<std::size_t>(o) * run + i);
    }
  }
  return to;
}

// The result's index is the data's in front of the axis, the indices' own, and the data's behind the axis.
Folded gather(const OnnxNodeView& node, const OnnxConstant& data, const OnnxConstant& indices) {
  if (data.shape.empty() || indices.floating) return std::nullopt;
  const std::size_t axis = node.axis(node.int_attribute("axis", 0), data.shape.size());
  const Shape strides = strides_of(data.shape);
  const Shape index_strides = strides_of(indices.shape);
  return rearranged(node, data, [&](const Shape& index) -> std::int64_t {
    std::int64_t which = 0;
    for (std::size_t d = 0; d < indices.shape.size(); ++d) which += index[axis + d] * index_strides[d];
    std::int64_t chosen = indices.ints[static_cast<std::size_t>(which)];
    if (chosen < 0) chosen += data.shape[axis];
    if (chosen < 0 || chosen >= data.shape[axis]) return -1;
    std::int64_t at = chosen * strides[axis];
    for (std::size_t d = 0; d < axis; ++d) at += index[d] * strides[d];
    for (std::size_t d = axis + 1; d < data.shape.size(); ++d)
      at += index[d + indices.shape.size() - 1] * strides[d];
    return at;
  });
}

// The shape rule has clipped the ends already; here only where each axis begins and how it steps matter.
Folded slice(const OnnxNodeView& node, const OnnxConstant& data) {
  const auto starts = node.ints(1, "starts");
  const auto axes = node.ints(3, "axes");
  const auto steps = node.ints(4, "");
  if (!starts) return std::nullopt;
  Shape first(data.shape.size(), 0);
  Shape step(data.shape.size(), 1);
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t axis = node.axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), data.shape.size());
    const std::int64_t size = data.shape[axis];
    if (size == 0) continue;
    step[axis] = steps ? (*steps)[i] : 1;
    const std::int64_t start = (*starts)[i] < 0 ? (*starts)[i] + size : (*starts)[i];
    first[axis] = std::clamp<std::int64_t>(start, 0, step[axis] > 0 ? size : size - 1);
  }
  const Shape strides = strides_of(data.shape);
  return rearranged(node, data, [&](const Shape& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) at += (first[d] + index[d] * step[d]) * strides[d];
    return at;
  });
}

Folded transpose(const OnnxNodeView& node, const OnnxConstant& data) {
  // Without a permutation all dimensions are reversed.
  Shape order = node.ints_attribute("perm");
  if (order.empty()) {
    order.resize(data.shape.size());
    std::iota(order.rbegin(), order.rend(), 0);
  }
  const Shape strides = strides_of(data.shape);
  return rearranged(node, data, [&](const Shape& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      at += index[d] * strides[node.axis(order[d], strides.size())];
    return at;
  });
}

Folded select(const OnnxNodeView& node, const OnnxConstant& condition, const OnnxConstant& yes,
              const OnnxConstant& no) {
  const Folded chooser = broadcast_to(node, condition);
  const Folded a = broadcast_to(node, yes);
  const Folded b = broadcast_to(node, no);
  if (!chooser || !a || !b || chooser->floating || a->floating != b->floating) return std::nullopt;
  OnnxConstant to{a->shape, a->floating, {}, {}};
  for (std::size_t i = 0; i < a->size(); ++i) append(to, chooser->ints[i] != 0 ? *a : *b, i);
  return to;
}

// Reductions of a whole tensor; partial ones do not occur in shape arithmetic.
Folded reduce(const OnnxNodeView& node, const OnnxConstant& data) {
  const auto shape = output_shape(node);
  if (!shape || constant_count(*shape) != 1 || data.size() == 0) return std::nullopt;
  // The operator's name tells how two elements combine: ReduceSum is Add, ReduceProd Mul, ReduceMax Max.
  const std::string_view type = node.type().substr(6);
  const std::string_view name = type == "Sum" ? "Add" : type == "Prod" ? "Mul" : type;
  for (const Binary& op : kBinaries) {
    if (op.type != name || op.boolean) continue;
    OnnxConstant to{*shape, data.floating, {}, {}};
    append(to, data, 0);
    for (std::size_t i = 1; i < data.size(); ++i) {
      if (data.floating) {
        to.reals[0] = op.reals(to.reals[0], data.reals[i]);
      } else {
        const auto value = op.ints(to.ints[0], data.ints[i]);
        if (!value) return std::nullopt;
        to.ints[0] = *value;
      }
    }
    return to;
  }
  return std::nullopt;
}

// The values of Shape and Size are their input's shape: known although the input itself is not.
Folded shape_values(const OnnxNodeView& node) {
  const auto shape = output_shape(node);
  if (!shape) return std::nullopt;
  const Shape& data = node.input_shape(0);
  OnnxConstant to{*shape, false, {}, {}};
  if (node.type() == "Size") {
    to.ints.push_back(node.input_elements(0));
    return to;
  }
  const auto rank = static_cast<std::int64_t>(data.size());
  const std::int64_t start = node.int_attribute("start", 0);
  const std::int64_t first = std::clamp<std::int64_t>(start < 0 ? start + rank : start, 0, rank);
  for (std::int64_t i = 0; i < shape->front(); ++i)
    to.ints.push_back(data[static_cast<std::size_t>(first + i)]);
  return to;
}

Folded range(const OnnxNodeView& node, const OnnxConstant& first, const OnnxConstant& step) {
  const auto shape = output_shape(node);
  if (!shape || first.floating != step.floating) return std::nullopt;
  OnnxConstant to{*shape, first.floating, {}, {}};
  for (std::int64_t i = 0; i < shape->front(); ++i) {
    if (first.floating) {
      to.reals.push_back(first.reals[0] + static_cast<double>(i) * step.reals[0]);
    } else {
      std::int64_t value = 0;
      if (multiply(i, step.ints[0], &value) || add(value, first.ints[0], &value)) return std::nullopt;
      to.ints.push_back(value);
    }
  }
  return to;
}

// Without a value it is a single float zero, by the specification.
Folded filled(const OnnxNodeView& node) {
  const auto shape = output_shape(node);
  if (!shape) return std::nullopt;
  const WireAttribute* value = node.attribute("value");
  OnnxConstant one{{}, true, {}, {0.0}};
  if (value != nullptr && value->tensor != nullptr) {
    const Folded given = decode_tensor(*value->tensor, node.where());
    if (!given || given->size() != 1) return std::nullopt;
    one = *given;
  }
  return rearranged(node, one, [](const Shape&) { return std::int64_t{0}; });
}

// Indices of the elements that are not zero, [rank, how many]; its shape comes from here as well.
Folded non_zero(const OnnxConstant& data) {
  const Shape strides = strides_of(data.shape);
  std::vector<std::int64_t> hits;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data.real(i) != 0) hits.push_back(static_cast<std::int64_t>(i));
  }
  OnnxConstant to{
      {static_cast<std::int64_t>(data.shape.size()), static_cast<std::int64_t>(hits.size())}, false, {}, {}};
  if (constant_count(to.shape) < 0) return std::nullopt;
  for (std::size_t d = 0; d < data.shape.size(); ++d) {
    for (const std::int64_t hit : hits) to.ints.push_back(hit / strides[d] % data.shape[d]);
  }
  return to;
}

}  // namespace

// Only operators of the standard domain: others may give the same names another meaning. All inputs have to
// be known, apart from those that only lend their shape.
Folded fold_constant(const OnnxNodeView& node) {
  if (!node.node().domain.empty()) return std::nullopt;
  const std::string_view type = node.type();
  if (type == "Shape" || type == "Size") return shape_values(node);
  if (type == "ConstantOfShape") return filled(node);
  std::array<const OnnxConstant*, 3> in = {};
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const OnnxConstant* constant = node.constant_input(i);
    if (constant == nullptr) return std::nullopt;
    if (i < in.size()) in[i] = constant;
  }
  if (in[0] == nullptr) return std::nullopt;
  if (type == "NonZero") return non_zero(*in[0]);
  if (type == "Identity" || type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" ||
      type == "Flatten")
    return same_values(node, *in[0]);
  if (type == "Cast" || type == "CastLike") return cast(node, *in[0]);
  if (type == "Concat") return concat(node);
  if (type == "Slice") return slice(node, *in[0]);
  if (type == "Transpose") return transpose(node, *in[0]);
  if (type == "Expand") return broadcast_to(node, *in[0]);
  if (type.starts_with("Reduce")) return reduce(node, *in[0]);
  if (in[1] == nullptr) return unary(node, *in[0]);
  if (type == "Gather") return gather(node, *in[0], *in[1]);
  if (in[2] != nullptr) {
    if (type == "Where") return select(node, *in[0], *in[1], *in[2]);
    if (type == "Range" && in[0]->size() == 1 && in[2]->size() == 1) return range(node, *in[0], *in[2]);
    return std::nullopt;
  }
  for (const Binary& op : kBinaries) {
    if (op.type == type) return binary(node, op, *in[0], *in[1]);
  }
  return std::nullopt;
}

// Split has several outputs, so it has a function of its own; only vectors occur in shape arithmetic.
std::vector<OnnxConstant> fold_split(const OnnxNodeView& node) {
  std::vector<OnnxConstant> parts;
  const OnnxConstant* data = node.constant_input(0);
  if (data == nullptr || data->shape.size() != 1) return parts;
  std::size_t next = 0;
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    OnnxConstant part{node.output_shape(i), data->floating, {}, {}};
    const auto size = static_cast<std::size_t>(part.shape.front());
    for (std::size_t k = 0; k < size; ++k) append(part, *data, next + k);
    next += size;
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace armilla
