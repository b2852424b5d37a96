// Constants that enter arithmetic as a weight would, but that training does not change: recognised by what
// surrounds them.
//
//   statistics     x - mean, then divided by or multiplied with a constant: the norm that an exporter spelled
//                  out (affine part after it: trained), or the normalisation of the input; every constant
//                  divisor; running statistics that a training step updates and hands out
//   rotary tables  a*cos + b*sin (or -), a and b parts of the same tensor, the tables at least a matrix
//   frequencies    what ends in both Sin and Cos; slopes by which positions reach attention scores
//   masks          added to, multiplied with or compared with attention scores on their way to Softmax, the
//                  same for all heads
//   sinusoids      a table of positions whose first rows obey sin^2 + cos^2 = 1
//   boxes          a table of 2 or 4 coordinates each that turns what convolutions yield into a detector's
//                  answer
//   grids          nothing but integers and halves that differ (anchors, strides, pixel positions)
//   bounds         operands of Min and Max, a single value that Where or a scatter fills in
//
// Not recognised: fixed filters (blur, Fourier and mel matrices), position biases that were not learned.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "read/onnx/graph.h"
#include "read/onnx/uses.h"

namespace armilla {

class OnnxFrozen {
 public:
  OnnxFrozen(OnnxGraph& graph, const OnnxUses& uses);

  // Whether the constant that enters element-wise arithmetic here is one of these.
  bool is_frozen(std::uint32_t node, std::size_t input);
  // Whether all that becomes of the rows picked from a table is.
  bool only_frozen_uses(std::uint32_t value);
  // Whether a product with a constant is a phase: it ends in both Sin and Cos.
  bool is_phase(std::uint32_t value) const;
  bool is_sinusoid(std::uint32_t value) const;
  // 0, 1, 2 ...: the expectation over bins that some detectors write as a convolution.
  bool counts_up(std::uint32_t value);
  bool is_grid(std::uint32_t node, std::uint32_t value);

 private:
  void find_standardisations();
  bool is_rotation(const OnnxNode& node, std::size_t table) const;
  bool is_table(const OnnxNode& node, std::size_t input) const;
  bool is_mask(const OnnxNode& node, std::size_t input);
  bool is_position(std::uint32_t value) const;
  bool is_raw_input(std::uint32_t value) const;
  bool is_state_update(const OnnxNode& node, std::size_t input) const;
  bool is_box_table(const OnnxNode& node, std::size_t input) const;
  bool reaches_softmax(std::uint32_t value) const;

  OnnxGraph& graph_;
  const OnnxUses& uses_;
  std::set<std::pair<std::uint32_t, std::size_t>> statistics_;  // node and input
};

}  // namespace armilla
