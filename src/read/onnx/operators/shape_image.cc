// Output shapes of operators on images, regions and volumes.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/units_text.h"
#include "read/onnx/operators/shape_rules.h"

namespace armilla::onnx_shape {
namespace {

using Outputs = std::vector<OnnxType>;

std::int64_t elements_of(const OnnxNodeView& node, const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t size : sizes) {
    if (size < 0) node.fail(fmt::format("asks for a dimension of {}", size));
  }
  return element_count(sizes, node.where());
}

// A list that must be known.
std::vector<std::int64_t> needed(const OnnxNodeView& node, std::size_t input, std::string_view what) {
  auto values = node.ints(input, "");
  if (!values) node.fail(fmt::format("says no {}", what));
  return std::move(*values);
}

}  // namespace

// Columns of blocks back to an image: channels are divided by the block's elements.
void col2im(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  const std::vector<std::int64_t> image = needed(node, 1, "image shape");
  const std::int64_t block = elements_of(node, needed(node, 2, "block shape"));
  elements_of(node, image);
  if (block < 1 || x[1] % block != 0)
    node.fail(fmt::format("cannot make blocks of {} out of {}", block, typed_count(x[1], "channel")));
  Shape shape = {x[0], x[1] / block};
  shape.insert(shape.end(), image.begin(), image.end());
  outputs[0] = {node.input(0).element_type, shape};
}

void center_crop_pad(const OnnxNodeView& node, Outputs& outputs) {
  Shape shape = node.input_shape(0);
  const std::vector<std::int64_t> wanted = needed(node, 1, "shape");
  const std::vector<std::int64_t> axes = node.ints_attribute("axes");
  elements_of(node, wanted);
  if (wanted.size() != (axes.empty() ? shape.size() : axes.size()))
    node.fail(fmt::format("gives {} for {}", typed_count(wanted.size(), "size"),
                          typed_count(shape.size(), "dimension")));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    shape[axes.empty() ? i : node.axis(axes[i], shape.size())] = wanted[i];
  outputs[0] = {node.input(0).element_type, shape};
}

// One sample per grid point; the grid's last dimension is its coordinates.
void grid_sample(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 3);
  const Shape& grid = node.input_shape(1, 3);
  if (grid.size() != x.size() || grid.back() != static_cast<std::int64_t>(x.size()) - 2)
    node.fail(fmt::format("cannot sample the shape {} on a grid of {}", to_text(x), to_text(grid)));
  Shape shape = {x[0], x[1]};
  shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
  outputs[0] = {node.input(0).element_type, shape};
}

// The grid has a coordinate pair (or triple) for each pixel of the output.
void affine_grid(const OnnxNodeView& node, Outputs& outputs) {
  const std::vector<std::int64_t> size = needed(node, 1, "size");
  elements_of(node, size);
  if (size.size() != 4 && size.size() != 5)
    node.fail(fmt::format("makes a grid for {}; 4 or 5 are possible", typed_count(size.size(), "dimension")));
  Shape shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(static_cast<std::int64_t>(size.size()) - 2);
  outputs[0] = {node.input(0).element_type, shape};
}

void roi_align(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 4);
  const std::int64_t regions = node.input_shape(1, 2)[0];
  outputs[0] = {
      node.input(0).element_type,
      {regions, x[1], node.int_attribute("output_height", 1), node.int_attribute("output_width", 1)}};
}

void roi_pool(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& x = node.input_shape(0, 4);
  const std::vector<std::int64_t> pooled = node.ints_attribute("pooled_shape");
  if (pooled.size() != 2) node.fail("has no attribute 'pooled_shape' of two sizes");
  outputs[0] = {node.input(0).element_type, {node.input_shape(1, 2)[0], x[1], pooled[0], pooled[1]}};
}

void image_decoder(const OnnxNodeView& node, Outputs&) {
  node.undetermined("height and width of the image are in its data");
}

// At most as many boxes of every class as are asked for, as [batch, class, box].
void non_max_suppression(const OnnxNodeView& node, Outputs& outputs) {
  const Shape& boxes = node.input_shape(0, 3);
  const Shape& scores = node.input_shape(1, 3);
  const OnnxConstant* limit = node.constant_input(2);
  std::int64_t most = boxes[1];
  // Without a limit the default is 0: no box at all.
  if (!node.has_input(2)) most = 0;
  if (limit != nullptr && limit->size() == 1 && !limit->floating)
    most = std::clamp<std::int64_t>(limit->ints[0], 0, most);
  const std::int64_t classes = checked_multiply(scores[0], scores[1], node.where());
  outputs[0] = {onnx_type::kInt64, {checked_multiply(classes, most, node.where()), 3}, true};
}

}  // namespace armilla::onnx_shape
