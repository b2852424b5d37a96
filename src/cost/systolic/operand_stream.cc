#include "cost/systolic/operand_stream.h"

#include <algorithm>

#include "base/checked.h"
namespace armilla {
namespace {

// The sum of n - c over c < width, as far as the terms are positive.
std::int64_t ramp(std::int64_t n, std::int64_t width) {
  if (n <= 0) return 0;
  const std::int64_t terms = std::min(n, width);
  return terms * n - terms * (terms - 1) / 2;
}

}  // namespace

FoldGrid::FoldGrid(const SystolicArray& array, std::int64_t m, std::int64_t n, std::int64_t k)
    : rows(array.rows), columns(array.columns), dataflow(array.dataflow) {
  spatial_rows = dataflow == Dataflow::output_stationary ? m : k;
  spatial_columns = dataflow == Dataflow::input_stationary ? m : n;
  steps = dataflow == Dataflow::output_stationary ? k : dataflow == Dataflow::weight_stationary ? m : n;
}

std::int64_t FoldGrid::row_folds() const {
  return ceil_divide(spatial_rows, rows);
}

std::int64_t FoldGrid::column_folds() const {
  return ceil_divide(spatial_columns, columns);
}

std::int64_t FoldGrid::lines_per_fold() const {
  return (dataflow == Dataflow::output_stationary ? 1 : 2) * rows + columns + steps - 2;
}

std::int64_t FoldGrid::rows_used(std::int64_t row_fold) const {
  return std::min(rows, spatial_rows - row_fold * rows);
}

std::int64_t FoldGrid::columns_used(std::int64_t column_fold) const {
  return std::min(columns, spatial_columns - column_fold * columns);
}

std::int64_t StreamBlock::words_until(std::int64_t line) const {
  const std::int64_t lines = std::clamp<std::int64_t>(line - first, 0, line_count());
  // A skewed block is a parallelogram: the ramp of columns that begin, less that of columns that are over.
  return skewed ? ramp(lines, width) - ramp(lines - height, width) : lines * width;
}

std::int64_t StreamBlock::line_of(std::int64_t word) const {
  if (!skewed) return first + (word - 1) / width;
  // Words only grow with lines, so the line is found by halving.
  std::int64_t below = 0, enough = line_count();
  while (enough - below > 1) {
    const std::int64_t middle = below + (enough - below) / 2;
    (words_until(first + middle) >= word ? enough : below) = middle;
  }
  return first + enough - 1;
}

OperandStream OperandStream::ifmap(const FoldGrid& grid) {
  return {grid, grid.dataflow == Dataflow::input_stationary ? Kind::stationary : Kind::along_rows};
}

OperandStream OperandStream::filter(const FoldGrid& grid) {
  switch (grid.dataflow) {
    case Dataflow::output_stationary:
      return {grid, Kind::along_columns};
    case Dataflow::weight_stationary:
      return {grid, Kind::stationary};
    case Dataflow::input_stationary:
      break;
  }
  return {grid, Kind::along_rows};
}

OperandStream OperandStream::ofmap(const FoldGrid& grid) {
  return {grid, grid.dataflow == Dataflow::output_stationary ? Kind::drained : Kind::results};
}

StreamBlock OperandStream::block(std::int64_t row_fold, std::int64_t column_fold) const {
  const std::int64_t rows = grid_.rows_used(row_fold), columns = grid_.columns_used(column_fold);
  // Under ws and is the array is loaded first, which takes as many lines as it has rows.
  const std::int64_t load = grid_.dataflow == Dataflow::output_stationary ? 0 : grid_.rows;
  switch (kind_) {
    case Kind::along_rows:
      return {load, grid_.steps, rows, true};
    case Kind::along_columns:
      return {load, grid_.steps, columns, true};
    case Kind::stationary:
      return {grid_.rows - rows, rows, columns, false};
    case Kind::drained:
      return {grid_.steps - 1 + grid_.rows - rows, rows, columns, true};
    case Kind::results:
      break;
  }
  return {2 * grid_.rows - 1, grid_.steps, columns, true};
}

std::int64_t OperandStream::words_before(std::int64_t row_fold, std::int64_t column_fold) const {
  const bool per_step = kind_ != Kind::stationary && kind_ != Kind::drained;
  const std::int64_t rows = by_row() ? std::min(row_fold * grid_.rows, grid_.spatial_rows) : row_fold;
  const std::int64_t all_rows = by_row() ? grid_.spatial_rows : grid_.row_folds();
  const std::int64_t columns =
      by_column() ? std::min(column_fold * grid_.columns, grid_.spatial_columns) : column_fold;
  const std::int64_t here = by_column() && rows > 0 ? grid_.columns_used(column_fold) : 1;
  return (per_step ? grid_.steps : 1) * (columns * all_rows + here * rows);
}

std::int64_t OperandStream::words() const {
  return words_before(0, grid_.column_folds());
}

std::int64_t OperandStream::words_of_a_pass() const {
  return words_before(0, 1);
}

std::int64_t OperandStream::different_words() const {
  switch (kind_) {
    case Kind::along_rows:
      return words_of_a_pass();
    case Kind::along_columns:
      return words() / grid_.row_folds();
    default:
      return words();
  }
}

std::int64_t OperandStream::words_until(std::int64_t line) const {
  const std::int64_t fold = line / grid_.lines_per_fold();
  if (fold >= grid_.folds()) return words();
  const std::int64_t row_fold = fold % grid_.row_folds(), column_fold = fold / grid_.row_folds();
  return words_before(row_fold, column_fold) +
         block(row_fold, column_fold).words_until(line % grid_.lines_per_fold());
}

std::int64_t OperandStream::line_of(std::int64_t word) const {
  // Only the last pass and the last fold of a pass may be smaller than the first: division finds the place.
  const std::int64_t column_fold = (word - 1) / words_of_a_pass();
  const std::int64_t in_pass = word - words_before(0, column_fold);
  const std::int64_t row_fold = (in_pass - 1) / block(0, column_fold).words();
  const std::int64_t in_fold = word - words_before(row_fold, column_fold);
  return (column_fold * grid_.row_folds() + row_fold) * grid_.lines_per_fold() +
         block(row_fold, column_fold).line_of(in_fold);
}

std::int64_t OperandStream::first_line() const {
  return block(0, 0).first;
}

std::int64_t OperandStream::last_line() const {
  const std::int64_t row_fold = grid_.row_folds() - 1, column_fold = grid_.column_folds() - 1;
  return (grid_.folds() - 1) * grid_.lines_per_fold() + block(row_fold, column_fold).last();
}

}  // namespace armilla
