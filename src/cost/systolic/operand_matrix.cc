#include "cost/systolic/operand_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace armilla {
namespace {

std::int64_t outputs(std::int64_t input, std::int64_t filter, std::int64_t stride, const std::string& where) {
  if (input < 1 || filter < 1 || stride < 1)
    throw Error(where, "sizes and strides of a convolution must be at least 1");
  const std::int64_t first_to_last = input - filter;
  if (first_to_last < 0)
    throw Error(where, fmt::format("a filter of {} does not fit an input of {}", filter, input),
                "SCALE-Sim's inputs include their padding");
  return first_to_last / stride + (first_to_last % stride != 0 ? 1 : 0) + 1;
}

// Along the height or the width of the image.
struct Side {
  std::int64_t entries = 0, distinct = 0;
};

Side side(std::int64_t input, std::int64_t filter, std::int64_t stride, std::int64_t outputs) {
  Side side;
  std::int64_t seen = 0;  // everything before it
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t begin = i * stride, end = std::max(begin, std::min(begin + filter, input));
    side.entries += end - begin;
    side.distinct += std::max<std::int64_t>(0, end - std::max(begin, seen));
    seen = std::max(seen, end);
  }
  return side;
}

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

}  // namespace

OutputSize output_size(const ConvolutionShape& shape, const std::string& where) {
  return {outputs(shape.ifmap_height, shape.filter_height, shape.stride_height, where),
          outputs(shape.ifmap_width, shape.filter_width, shape.stride_width, where)};
}

MatrixAxis pixel_axis(const ConvolutionShape& shape) {
  const OutputSize output = output_size(shape, "layer");
  MatrixAxis axis;
  for (std::int64_t y = 0; y < output.height; ++y) {
    for (std::int64_t x = 0; x < output.width; ++x) {
      const std::int64_t row = y * shape.stride_height, column = x * shape.stride_width;
      axis.word.push_back(narrow((row * shape.ifmap_width + column) * shape.channels));
      axis.row.push_back(narrow(row));
      axis.column.push_back(narrow(column));
    }
  }
  return axis;
}

MatrixAxis window_axis(const ConvolutionShape& shape) {
  MatrixAxis axis;
  for (std::int64_t row = 0; row < shape.filter_height; ++row) {
    for (std::int64_t column = 0; column < shape.filter_width; ++column) {
      for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        axis.word.push_back(narrow((row * shape.ifmap_width + column) * shape.channels + channel));
        axis.row.push_back(narrow(row));
        axis.column.push_back(narrow(column));
      }
    }
  }
  return axis;
}

IfmapFacts ifmap_facts(const ConvolutionShape& shape) {
  const OutputSize output = output_size(shape, "layer");
  const Side height = side(shape.ifmap_height, shape.filter_height, shape.stride_height, output.height);
  const Side width = side(shape.ifmap_width, shape.filter_width, shape.stride_width, output.width);
  IfmapFacts facts;
  facts.entries = height.entries * width.entries * shape.channels;
  facts.distinct = height.distinct * width.distinct * shape.channels;
  facts.reaches_over = height.entries != output.height * shape.filter_height ||
                       width.entries != output.width * shape.filter_width;
  facts.each_once = facts.entries == facts.distinct && !facts.reaches_over;
  return facts;
}

}  // namespace armilla
