#include "cost/systolic/overlapping_windows.h"

#include "base/error.h"

namespace armilla {
namespace {

bool pixels_run_along(const OperandStream& stream) {
  return stream.grid().dataflow == Dataflow::weight_stationary;
}

}  // namespace

WindowMatrix::WindowMatrix(const OperandStream& stream, const ConvolutionShape& shape)
    : along_(pixels_run_along(stream) ? pixel_axis(shape) : window_axis(shape)),
      across_(pixels_run_along(stream) ? window_axis(shape) : pixel_axis(shape)),
      height_(static_cast<std::int32_t>(shape.ifmap_height)),
      width_(static_cast<std::int32_t>(shape.ifmap_width)),
      words_(static_cast<std::size_t>(shape.ifmap_height * shape.ifmap_width * shape.channels)),
      reaches_over_(ifmap_facts(shape).reaches_over) {}

std::int64_t last_read_line(const OperandStream& stream, const WindowMatrix& matrix) {
  const std::int64_t row_folds = stream.grid().row_folds();
  std::int64_t last = -1;
  for (std::int64_t fold = stream.grid().folds() - 1; fold >= 0 && last < 0; --fold)
    matrix.visit_fold(stream, fold % row_folds, fold / row_folds,
                      [&](std::int64_t line, std::size_t) { last = std::max(last, line); });
  return last;
}

PrefetchWalk::PrefetchWalk(const OperandStream& stream, const WindowMatrix& matrix)
    : matrix_(matrix), diagonal_(stream.kind() == OperandStream::Kind::along_rows) {
  const FoldGrid& grid = stream.grid();
  blocks_ = diagonal_ ? grid.row_folds() : grid.column_folds();
  height_ = diagonal_ ? grid.steps : grid.spatial_rows;
  width_ = diagonal_ ? grid.rows : grid.columns;
  across_ = diagonal_ ? grid.spatial_rows : grid.spatial_columns;
}

bool PrefetchWalk::is_empty() const {
  const std::int64_t across = block_ * width_ + column_;
  return across >= across_ || (matrix_.reaches_over() && matrix_.is_outside(row_, across));
}

// Along a diagonal the column grows and the row shrinks; the next begins at its lowest row.
void PrefetchWalk::step_diagonal() {
  const std::int64_t rows = blocks_ * height_;
  const bool at_top = block_ == 0 && row_ == 0;
  if (!at_top && column_ + 1 < width_) {
    ++column_;
    if (--row_ < 0) {
      row_ = height_ - 1;
      --block_;
    }
    return;
  }
  diagonal_number_ = (diagonal_number_ + 1) % (rows + width_ - 1);
  const std::int64_t lowest = std::min(diagonal_number_, rows - 1);
  column_ = diagonal_number_ - lowest;
  block_ = lowest / height_;
  row_ = lowest % height_;
}

void PrefetchWalk::step() {
  if (diagonal_) return step_diagonal();
  if (++column_ < width_) return;
  column_ = 0;
  if (++row_ < height_) return;
  row_ = 0;
  block_ = (block_ + 1) % blocks_;
}

std::size_t PrefetchWalk::next() {
  while (is_empty()) step();
  const std::size_t word = matrix_.word(row_, block_ * width_ + column_);
  step();
  return word;
}

}  // namespace armilla
