// The reads of overlapping windows word by word: in the order of the array's demand, and in the order in
// which SCALE-Sim prefetches them (read_buffer.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "cost/systolic/operand_matrix.h"
#include "cost/systolic/operand_stream.h"

namespace armilla {

// The im2col matrix of a convolution as a stream sees it: the index that runs along its lines and the one
// across them.
class WindowMatrix {
 public:
  WindowMatrix(const OperandStream& stream, const ConvolutionShape& shape);

  // Whether nothing is read at (along, across).
  bool is_outside(std::int64_t along, std::int64_t across) const {
    const auto a = static_cast<std::size_t>(along), b = static_cast<std::size_t>(across);
    return along_.row[a] + across_.row[b] >= height_ || along_.column[a] + across_.column[b] >= width_;
  }
  std::size_t word(std::int64_t along, std::int64_t across) const {
    return static_cast<std::size_t>(along_.word[static_cast<std::size_t>(along)] +
                                    across_.word[static_cast<std::size_t>(across)]);
  }
  std::size_t words() const { return words_; }
  bool reaches_over() const { return reaches_over_; }

  // Calls visit(line of the layer, word) for every word of a fold as the array asks for it.
  template <class Visit>
  void visit_fold(const OperandStream& stream, std::int64_t row_fold, std::int64_t column_fold,
                  Visit visit) const;

 private:
  MatrixAxis along_, across_;
  std::int32_t height_, width_;
  std::size_t words_;
  bool reaches_over_;
};

// The last line on which anything is read: the last windows may lie over the edge.
std::int64_t last_read_line(const OperandStream& stream, const WindowMatrix& matrix);

template <class Visit>
void WindowMatrix::visit_fold(const OperandStream& stream, std::int64_t row_fold, std::int64_t column_fold,
                              Visit visit) const {
  const FoldGrid& grid = stream.grid();
  const StreamBlock block = stream.block(row_fold, column_fold);
  const bool loaded = stream.kind() == OperandStream::Kind::stationary;
  const std::int64_t first_across = loaded ? column_fold * grid.columns : row_fold * grid.rows;
  // What is loaded enters the array last row first.
  const std::int64_t last_along = row_fold * grid.rows + block.height - 1;
  const std::int64_t begin =
      (column_fold * grid.row_folds() + row_fold) * grid.lines_per_fold() + block.first;
  for (std::int64_t line = 0; line < block.line_count(); ++line) {
    const std::int64_t from = block.skewed ? std::max<std::int64_t>(0, line - block.height + 1) : 0;
    const std::int64_t to = block.skewed ? std::min(block.width - 1, line) : block.width - 1;
    for (std::int64_t c = from; c <= to; ++c) {
      const std::int64_t along = loaded ? last_along - line : line - c;
      if (reaches_over_ && is_outside(along, first_across + c)) continue;
      visit(begin + line, word(along, first_across + c));
    }
  }
}

// Runs through the matrix in the order of prefetching, again and again.
class PrefetchWalk {
 public:
  // Refers to `matrix`.
  PrefetchWalk(const OperandStream& stream, const WindowMatrix& matrix);
  std::size_t next();

 private:
  void step();
  void step_diagonal();
  bool is_empty() const;

  const WindowMatrix& matrix_;
  bool diagonal_;
  // The folds one below the other: `blocks` of `height` x `width`, `across` in all of them together.
  std::int64_t blocks_, height_, width_, across_;
  // The place: column of the block, its number, and the row in it.
  std::int64_t column_ = 0, block_ = 0, row_ = 0;
  std::int64_t diagonal_number_ = 0;
};

}  // namespace armilla
