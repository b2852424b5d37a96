// The order in which a systolic array asks for the words of an operand, as SCALE-Sim's demand matrices hold
// it, in closed form.
//
// A product is cut into folds of rows x columns, the columns of the mapping outermost (cost/systolic.h). In
// every fold each operand is a block of `height` x `width` words; the one at (a, c) is demanded on line
// first + a + c of the fold where the block is skewed, else on line first + a. Lines are cycles without
// stalls. The words of a line are demanded in the order of c.
#pragma once

#include <cstdint>

#include "ir/formats/systolic.h"

namespace armilla {

// Sr x Sc x T onto the array (cost/systolic.h).
struct FoldGrid {
  std::int64_t rows = 1, columns = 1;  // of the array
  std::int64_t spatial_rows = 1, spatial_columns = 1, steps = 1;
  Dataflow dataflow = Dataflow::weight_stationary;

  FoldGrid(const SystolicArray& array, std::int64_t m, std::int64_t n, std::int64_t k);
  std::int64_t row_folds() const;
  std::int64_t column_folds() const;
  std::int64_t folds() const { return row_folds() * column_folds(); }
  std::int64_t lines_per_fold() const;
  std::int64_t lines() const { return folds() * lines_per_fold(); }
  std::int64_t rows_used(std::int64_t row_fold) const;
  std::int64_t columns_used(std::int64_t column_fold) const;
};

struct StreamBlock {
  std::int64_t first = 0;  // line of the fold
  std::int64_t height = 1, width = 1;
  bool skewed = true;

  std::int64_t line_count() const { return skewed ? height + width - 1 : height; }
  std::int64_t last() const { return first + line_count() - 1; }
  std::int64_t words_until(std::int64_t line) const;  // demanded before `line` of the fold
  std::int64_t line_of(std::int64_t word) const;      // of the fold, where the word-th (from 1) is demanded
  std::int64_t words() const { return height * width; }
};

class OperandStream {
 public:
  enum class Kind : std::uint8_t {
    along_rows,     // T x rows, the same for every column fold: streams through the array's rows
    along_columns,  // T x columns, the same for every row fold
    stationary,     // rows x columns, loaded before the fold
    drained,        // rows x columns, out of the array after the fold
    results,        // T x columns, out of the array
  };

  OperandStream(const FoldGrid& grid, Kind kind) : grid_(grid), kind_(kind) {}
  static OperandStream ifmap(const FoldGrid& grid);
  static OperandStream filter(const FoldGrid& grid);
  static OperandStream ofmap(const FoldGrid& grid);

  const FoldGrid& grid() const { return grid_; }
  Kind kind() const { return kind_; }
  StreamBlock block(std::int64_t row_fold, std::int64_t column_fold) const;
  std::int64_t words() const;            // of all folds
  std::int64_t words_of_a_pass() const;  // one column fold's with all its row folds, the first one's
  std::int64_t different_words() const;  // entries of the operand's matrix, however often they are read
  std::int64_t words_until(std::int64_t line) const;  // demanded before `line` of the layer
  std::int64_t line_of(std::int64_t word) const;      // of the layer, where the word-th (from 1) is demanded
  std::int64_t first_line() const;
  std::int64_t last_line() const;

 private:
  std::int64_t words_before(std::int64_t row_fold, std::int64_t column_fold) const;
  bool by_row() const { return kind_ != Kind::along_columns && kind_ != Kind::results; }
  bool by_column() const { return kind_ != Kind::along_rows; }

  FoldGrid grid_;
  Kind kind_;
};

}  // namespace armilla
