// Output shapes of operators that slide a window, resample or transform signals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/units_text.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla {
namespace {

using Outputs = std::vector<OnnxType>;

// A list attribute with one positive entry per spatial dimension, ones when it is left out.
Shape positive(const OnnxNodeView& node, std::string_view name, std::size_t rank) {
  Shape values = node.ints_attribute(name);
  if (values.empty()) values.assign(rank, 1);
  if (values.size() != rank)
    node.fail(fmt::format("has {} {} for {}", values.size(), name, typed_count(rank, "spatial dimension")));
  for (const std::int64_t value : values) {
    if (value < 1 || value > INT32_MAX) node.fail(fmt::format("has {} of {}", name, value));
  }
  return values;
}

// Pools name their kernel; of convolutions it is the weight's shape behind its two channel dimensions.
Shape window_kernel(const OnnxNodeView& node, std::size_t weight, std::size_t rank) {
  if (weight == SIZE_MAX) {
    if (node.ints_attribute("kernel_shape").empty()) node.fail("has no attribute 'kernel_shape'");
    return positive(node, "kernel_shape", rank);
  }
  const Shape& shape = node.input_shape(weight);
  if (shape.size() != rank + 2)
    node.fail(fmt::format("has weights of shape {} for {}", to_text(shape),
                          typed_count(rank, "spatial dimension")));
  const Shape kernel(shape.begin() + 2, shape.end());
  const Shape said = node.ints_attribute("kernel_shape");
  if (!said.empty() && said != kernel)
    node.fail(fmt::format("says kernel_shape {}, but its weights have {}", to_text(said), to_text(kernel)));
  for (const std::int64_t value : kernel) {
    if (value < 1 || value > INT32_MAX) node.fail(fmt::format("has a kernel of {}", to_text(kernel)));
  }
  return kernel;
}

// Pads in front for all dimensions, then pads behind. Negative ones crop.
void read_pads(const OnnxNodeView& node, std::size_t rank, OnnxWindow& window) {
  Shape pads = node.ints_attribute("pads");
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (pads.size() != 2 * rank)
    node.fail(fmt::format("has {} for {}", typed_count(pads.size(), "pad"),
                          typed_count(rank, "spatial dimension")));
  for (const std::int64_t pad : pads) {
    if (pad < -INT32_MAX || pad > INT32_MAX) node.fail(fmt::format("has a pad of {}", pad));
  }
  window.pads_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.pads_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
}

// How often the window fits: (padded - reach) / stride + 1, where a dilated kernel reaches over (kernel - 1)
// x dilation + 1 elements. SAME makes it ceil(size / stride), whatever the kernel.
std::int64_t window_positions(const OnnxNodeView& node, const OnnxWindow& window, std::size_t i,
                              std::int64_t size) {
  const std::int64_t stride = window.strides[i];
  const std::int64_t reach =
      checked_add(checked_multiply(window.kernel[i] - 1, window.dilations[i], node.where()), 1, node.where());
  const std::string_view padding = node.text_attribute("auto_pad", "NOTSET");
  if (padding == "SAME_UPPER" || padding == "SAME_LOWER") return size / stride + (size % stride != 0);
  const std::int64_t padded =
      padding == "VALID" ? size : checked_add(size, window.pads_begin[i] + window.pads_end[i], node.where());
  if (padded < reach)
    node.fail(fmt::format("its window of {} does not fit into the padded input of {}", reach, padded));
  const std::int64_t room = padded - reach;
  if (node.int_attribute("ceil_mode", 0) == 0) return room / stride + 1;
  std::int64_t positions = room / stride + (room % stride != 0) + 1;
  // A window that would start in the padding behind the input does not count (as in PyTorch and opset 22).
  if (padding != "VALID" && (positions - 1) * stride >= size + window.pads_begin[i]) --positions;
  return positions;
}

std::int64_t group_of(const OnnxNodeView& node) {
  const std::int64_t group = node.int_attribute("group", 1);
  if (group < 1) node.fail(fmt::format("has {} groups", group));
  return group;
}

// Weights are [outputs, inputs / group, kernel ...].
void convolve(const OnnxNodeView& node, std::size_t weight, std::int32_t element_type, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& w = node.input_shape(weight, 3);
  const OnnxWindow window = window_of(node, weight);
  const std::int64_t group = group_of(node);
  if (checked_multiply(w[1], group, node.where()) != x[1] || w[0] % group != 0)
    node.fail(fmt::format("cannot apply weights of shape {} in {} to the shape {}", to_text(w),
                          typed_count(group, "group"), to_text(x)));
  Shape shape = {x[0], w[0]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  outputs[0] = {element_type, shape};
}

}  // namespace

OnnxWindow window_of(const OnnxNodeView& node, std::size_t weight) {
  const Shape& x = node.input_shape(0, 3);
  const std::size_t rank = x.size() - 2;
  OnnxWindow window;
  window.kernel = window_kernel(node, weight, rank);
  window.strides = positive(node, "strides", rank);
  window.dilations = positive(node, "dilations", rank);
  read_pads(node, rank, window);
  for (std::size_t i = 0; i < rank; ++i) window.output.push_back(window_positions(node, window, i, x[i + 2]));
  return window;
}

OnnxFourier fourier_of(const OnnxNodeView& node) {
  const Shape& shape = node.input_shape(0, 2);
  // From opset 20 on the axis is an input; before, an attribute with another default.
  const auto given = node.ints(2, "");
  const std::int64_t fallback = node.node().opset >= 20 ? -2 : node.int_attribute("axis", 1);
  OnnxFourier transform;
  transform.axis = node.axis(given && given->size() == 1 ? given->front() : fallback, shape.size());
  if (transform.axis + 1 == shape.size()) node.fail("transforms the dimension of real and imaginary parts");
  transform.length = shape[transform.axis];
  // A one-sided spectrum of n real points has n / 2 + 1 entries; the inverse takes n as the even number.
  if (node.int_attribute("onesided", 0) != 0 && node.int_attribute("inverse", 0) != 0)
    transform.length = 2 * (transform.length - 1);
  if (const auto length = node.ints(1, "")) {
    if (length->size() != 1 || length->front() < 1)
      node.fail("has a transform length that is not a positive number");
    transform.length = length->front();
  }
  if (transform.length < 0) node.fail("transforms an empty dimension");
  return transform;
}

namespace onnx_shape {

void conv(const OnnxNodeView& node, Outputs& outputs) {
  convolve(node, 1, node.input(0).element_type, outputs);
}

void conv_integer(const OnnxNodeView& node, Outputs& outputs) {
  convolve(node, 1, onnx_type::kInt32, outputs);
}

void qlinear_conv(const OnnxNodeView& node, Outputs& outputs) {
  convolve(node, 3, node.has_input(7) ? node.input(7).element_type : node.input(0).element_type, outputs);
}

// Weights are [inputs, outputs / group, kernel ...]. The reverse of a convolution: stride x (size - 1) +
// reach - pads + output_padding; output_shape says it outright.
void conv_transpose(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& w = node.input_shape(1, 3);
  const std::size_t rank = x.size() - 2;
  OnnxWindow window;
  window.kernel = window_kernel(node, 1, rank);
  window.strides = positive(node, "strides", rank);
  window.dilations = positive(node, "dilations", rank);
  read_pads(node, rank, window);
  if (w[0] != x[1])
    node.fail(fmt::format("cannot apply weights of shape {} to the shape {}", to_text(w), to_text(x)));
  Shape extra = node.ints_attribute("output_padding");
  if (extra.empty()) extra.assign(rank, 0);
  const Shape wanted = node.ints_attribute("output_shape");
  if (extra.size() != rank || (!wanted.empty() && wanted.size() != rank && wanted.size() != rank + 2))
    node.fail(fmt::format("has an output padding or shape that is not for {}",
                          typed_count(rank, "spatial dimension")));

  const std::string_view padding = node.text_attribute("auto_pad", "NOTSET");
  Shape shape = {x[0], checked_multiply(w[1], group_of(node), node.where())};
  for (std::size_t i = 0; i < rank; ++i) {
    std::int64_t size = 0;
    if (!wanted.empty()) {
      size = wanted[wanted.size() - rank + i];
    } else if (padding == "SAME_UPPER" || padding == "SAME_LOWER") {
      size = checked_multiply(x[i + 2], window.strides[i], node.where());
    } else {
      const std::int64_t steps = checked_multiply(x[i + 2] - 1, window.strides[i], node.where());
      const std::int64_t reach =
          checked_multiply(window.kernel[i] - 1, window.dilations[i], node.where()) + 1;
      const std::int64_t pads = padding == "VALID" ? 0 : window.pads_begin[i] + window.pads_end[i];
      size = checked_add(checked_add(checked_add(steps, reach, node.where()), -pads, node.where()), extra[i],
                         node.where());
    }
    if (size < 1) node.fail(fmt::format("its spatial dimension {} would be {}", i, size));
    shape.push_back(size);
  }
  outputs[0] = {node.input(0).element_type, shape};
}

void pool(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  Shape shape = {x[0], x[1]};
  const OnnxWindow window = window_of(node, SIZE_MAX);
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  outputs[0] = {node.input(0).element_type, shape};
  if (outputs.size() > 1) outputs[1] = {onnx_type::kInt64, shape};
}

// The inverse of MaxPool, where its output shape is not given.
void max_unpool(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 3);
  const std::size_t rank = shape.size() - 2;
  if (const auto wanted = node.ints(2, "")) {
    if (wanted->size() != shape.size())
      node.fail(fmt::format("gives {} for {}", typed_count(wanted->size(), "size"),
                            typed_count(shape.size(), "dimension")));
    outputs[0] = {node.input(0).element_type, *wanted};
    return;
  }
  OnnxWindow window;
  window.kernel = window_kernel(node, SIZE_MAX, rank);
  window.strides = positive(node, "strides", rank);
  read_pads(node, rank, window);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t steps = checked_multiply(shape[i + 2] - 1, window.strides[i], node.where());
    const std::int64_t padding = window.pads_begin[i] + window.pads_end[i];
    shape[i + 2] = checked_add(steps, window.kernel[i] - padding, node.where());
    if (shape[i + 2] < 0) node.fail(fmt::format("its spatial dimension {} would be {}", i, shape[i + 2]));
  }
  outputs[0] = {node.input(0).element_type, shape};
}

void global_pool(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 2);
  std::fill(shape.begin() + 2, shape.end(), 1);
  outputs[0] = {node.input(0).element_type, shape};
}

// Sizes, or factors that are floored.
void resize(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& from = node.input_shape(0);
  // Resize-10 and Upsample take (x, scales), Resize from opset 11 on (x, roi, scales, sizes).
  const bool has_roi = node.type() == "Resize" && node.node().opset >= 11;
  const std::size_t scales_at = has_roi ? 2 : 1;
  const Shape axes = node.ints_attribute("axes");
  const std::size_t count = axes.empty() ? from.size() : axes.size();
  const auto dimension = [&](std::size_t i) { return axes.empty() ? i : node.axis(axes[i], from.size()); };
  Shape to = from;
  if (has_roi && node.has_input(3)) {
    const auto sizes = node.ints(3, "");
    if (sizes->size() != count)
      node.fail(
          fmt::format("has {} for {}", typed_count(sizes->size(), "size"), typed_count(count, "dimension")));
    // The one ratio for all axes that fits into the sizes, or fills them (operator set 18).
    const std::string_view policy = node.text_attribute("keep_aspect_ratio_policy", "stretch");
    double ratio = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t old = from[dimension(i)];
      if ((*sizes)[i] < 1 || old < 1) node.fail(fmt::format("resizes {} to {}", old, (*sizes)[i]));
      const double own = static_cast<double>((*sizes)[i]) / static_cast<double>(old);
      ratio = i == 0 ? own : policy == "not_larger" ? std::min(ratio, own) : std::max(ratio, own);
      to[dimension(i)] = (*sizes)[i];
    }
    // Half a pixel is rounded up, as the specification computes these sizes.
    for (std::size_t i = 0; policy != "stretch" && i < count; ++i) {
      const double size = std::floor(ratio * static_cast<double>(from[dimension(i)]) + 0.5);
      if (!(size < 1e15)) node.fail(fmt::format("grows a dimension to {}", size));
      to[dimension(i)] = static_cast<std::int64_t>(size);
    }
  } else {
    std::vector<double> scales;
    if (const OnnxConstant* given = node.constant_input(scales_at)) {
      for (std::size_t i = 0; i < given->size(); ++i) scales.push_back(given->real(i));
    } else if (const WireAttribute* attribute = node.attribute("scales")) {
      for (const float scale : attribute->floats) scales.push_back(static_cast<double>(scale));
    } else {
      node.undetermined("its scales are not known");
    }
    if (scales.size() != count)
      node.fail(
          fmt::format("has {} for {}", typed_count(scales.size(), "scale"), typed_count(count, "dimension")));
    for (std::size_t i = 0; i < count; ++i) {
      // float32, as the scales are stored: 2/3 of 3 pixels must not become 1.99999.
      const auto size = std::floor(static_cast<float>(from[dimension(i)]) * static_cast<float>(scales[i]));
      if (!(size >= 0 && size < 1e15F)) node.fail(fmt::format("scales a dimension by {}", scales[i]));
      to[dimension(i)] = static_cast<std::int64_t>(size);
    }
  }
  outputs[0] = {node.input(0).element_type, to};
}

void fourier(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0, 2);
  const OnnxFourier transform = fourier_of(node);
  const bool onesided = node.int_attribute("onesided", 0) != 0;
  const bool inverse = node.int_attribute("inverse", 0) != 0;
  shape[transform.axis] = onesided && !inverse ? transform.length / 2 + 1 : transform.length;
  shape.back() = onesided && inverse ? 1 : 2;  // half a spectrum is that of a real signal
  outputs[0] = {node.input(0).element_type, shape};
}

// [batch, frames, frequencies, 2]: real and imaginary part in the last dimension.
void short_time_fourier(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& signal = node.input_shape(0, 2);
  const auto step = node.ints(1, "");
  const auto given = node.ints(3, "");
  const std::int64_t frame = given && given->size() == 1 ? given->front() : node.input_shape(2, 1)[0];
  if (!step || step->size() != 1 || step->front() < 1 || frame < 1 || frame > signal[1])
    node.fail(fmt::format("has frames of {} in a signal of {}", frame, signal[1]));
  const bool onesided = node.int_attribute("onesided", 1) != 0;
  outputs[0] = {node.input(0).element_type,
                {signal[0], (signal[1] - frame) / step->front() + 1, onesided ? frame / 2 + 1 : frame, 2}};
}

}  // namespace onnx_shape
}  // namespace armilla
