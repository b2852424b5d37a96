// Small tensors whose values matter to shapes: decoding them from the file and folding operators over them.
//
// Integers (and booleans) are kept as int64, floating values as double. Only tensors of at most
// kMaxConstantElements are ever decoded or folded, so a weight's payload is never touched. Folding covers the
// operators that exporters use to compute shapes; whatever it cannot do exactly (overflow, division by zero,
// other operators) it declines, and the value is then simply not known.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/tensor.h"
#include "read/onnx/wire.h"

namespace armilla {

class OnnxNodeView;

inline constexpr std::int64_t kMaxConstantElements = 65536;

struct OnnxConstant {
  Shape shape;
  bool floating = false;
  std::vector<std::int64_t> ints;  // one of the two, by `floating`
  std::vector<double> reals;

  std::size_t size() const { return floating ? reals.size() : ints.size(); }
  double real(std::size_t i) const { return floating ? reals[i] : static_cast<double>(ints[i]); }
};

// nullopt when the payload is external, too large, of a type that shapes never depend on, or inconsistent.
std::optional<OnnxConstant> decode_tensor(const WireTensor& tensor, const std::string& file);

// The first `count` values, or fewer, of a floating tensor of any size; none where decode_tensor knows none.
std::vector<double> decode_beginning(const WireTensor& tensor, const std::string& file, std::size_t count);

// Values of the node's first output, when all its inputs that matter are constants.
std::optional<OnnxConstant> fold_constant(const OnnxNodeView& node);
// All outputs of a Split of a constant.
std::vector<OnnxConstant> fold_split(const OnnxNodeView& node);

}  // namespace armilla
