#include "read/onnx/copies.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "read/encoding/wire_reader.h"
#include "read/onnx/node_view.h"

namespace armilla {
namespace {

// Small tensors coincide by chance, and counting one twice hurts little.
constexpr std::int64_t kFewestElements = 4096;
constexpr std::size_t kSamples = 256;
constexpr std::size_t kFewestDistinct = 16;
constexpr std::size_t kMostOfASize = 512;  // matrices that one is compared with
constexpr std::uint32_t kRawData = 9;      // field of TensorProto

struct Matrix {
  std::size_t rows = 0, columns = 0, width = 0;  // width of an element in bytes
  std::string_view bytes;

  std::string_view element(std::size_t row, std::size_t column) const {
    return bytes.substr((row * columns + column) * width, width);
  }
};

// Without bytes where there are none to compare.
Matrix matrix_of(const OnnxGraph& graph, const OnnxValue& value) {
  Matrix matrix;
  const DType dtype = dtype_of_onnx(value.element_type);
  // Only matrices: tied weights are an embedding table and an output matrix.
  if (value.tensor == nullptr || value.tensor->external || !value.shape || value.shape->size() != 2 ||
      !is_floating(dtype) || element_count(*value.shape, value.name) < kFewestElements)
    return matrix;
  matrix.rows = static_cast<std::size_t>((*value.shape)[0]);
  matrix.columns = static_cast<std::size_t>((*value.shape)[1]);
  matrix.width = static_cast<std::size_t>(bits_of(dtype)) / 8;
  // raw_data is the one form that large tensors are stored in.
  const WireSource source{value.tensor->message.data(), graph.file};
  WireReader in(value.tensor->message, source);
  while (in.next()) {
    if (in.tag() == kRawData) matrix.bytes = in.bytes();
  }
  if (matrix.width == 0 || matrix.bytes.size() != matrix.rows * matrix.columns * matrix.width)
    matrix.bytes = {};
  return matrix;
}

// Samples instead of all elements: large tables are mapped from disk and would have to be read. Few distinct
// values (zeros, ones) prove nothing.
bool are_equal(const Matrix& a, const Matrix& b, bool turned) {
  std::set<std::string_view> distinct;
  std::uint64_t state = 1;
  const auto next = [&](std::size_t limit) {  // a linear congruential generator's upper bits
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state >> 33) % limit;
  };
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::size_t row = next(a.rows);
    const std::size_t column = next(a.columns);
    const std::string_view element = a.element(row, column);
    if (element != (turned ? b.element(column, row) : b.element(row, column))) return false;
    distinct.insert(element);
  }
  return distinct.size() >= kFewestDistinct;
}

}  // namespace

std::map<std::uint32_t, std::uint32_t> find_copies(const OnnxGraph& graph,
                                                   const std::vector<std::uint32_t>& values) {
  std::map<std::uint32_t, std::uint32_t> copies;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::pair<std::uint32_t, Matrix>>> by_size;
  for (const std::uint32_t value : values) {
    const Matrix matrix = matrix_of(graph, graph.values[value]);
    if (matrix.bytes.empty()) continue;
    // A tied output matrix may be stored transposed: both orders are one size.
    auto& others = by_size[std::minmax(matrix.rows, matrix.columns)];
    const auto found = std::find_if(others.begin(), others.end(), [&](const auto& other) {
      const Matrix& earlier = other.second;
      if (earlier.width != matrix.width) return false;
      return (earlier.rows == matrix.rows && are_equal(earlier, matrix, false)) ||
             (earlier.rows == matrix.columns && are_equal(earlier, matrix, true));
    });
    if (found != others.end()) {
      copies.emplace(value, found->first);
    } else if (others.size() < kMostOfASize) {
      // Keeps comparisons linear where a model has very many matrices of one size.
      others.emplace_back(value, matrix);
    }
  }
  return copies;
}

}  // namespace armilla
