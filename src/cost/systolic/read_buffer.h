// The buffers of a systolic array's operands and their way from DRAM, as SCALE-Sim counts it.
//
// CALC (read_buffer_estimate_bw.py): words are kept as the array asks for them; when 50 * floor(words / 100)
// different ones are there, all are thrown away. DRAM reads are the words put in.
//
// USER (read_buffer.py): the operand is cut, in a fixed order (the folds one below the other, along the
// diagonals where the stream is skewed), into sets of ceil(words / 100) words. Half of the buffer holds a
// window of sets. A word that is not in it moves the window by the other half, as often as needed; every move
// reads half / bandwidth cycles from DRAM, begun when the last move ended. The first fill is free.
//
// Nothing is followed where the operand fits. An operand whose words all differ (every filter; inputs of
// products and of windows that do not overlap) is followed in closed form: a step per fold, and in USER mode
// per move. Overlapping windows are followed word by word in CALC mode; in USER mode only the words that have
// left the window, unless the windows reach over the edge of the image. All that until a column fold begins
// with the buffer in a state that one before began with. Memory: the words of the image.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/systolic/operand_stream.h"

namespace armilla {

// Reads of one operand in CALC mode.
SystolicTraffic estimated_reads(const OperandStream& stream, const ConvolutionShape* windows,
                                std::int64_t words);

// On `line` of the layer the window moves so many times.
struct WindowMoves {
  std::int64_t line = 0, moves = 0;
};

// The moves of one operand in USER mode, in the order of lines. Column folds that begin alike share a list.
class WindowSchedule {
 public:
  WindowSchedule(const OperandStream& stream, const ConvolutionShape* windows, std::int64_t words,
                 std::int64_t bandwidth);

  bool done() const { return pass_ == pass_list_.size(); }
  WindowMoves next() const;  // not after the end
  void advance();

  std::int64_t first_fill_lines() const { return first_fill_lines_; }
  std::int64_t move_lines() const { return move_lines_; }

 private:
  void skip_empty();

  std::vector<std::vector<WindowMoves>> lists_;  // lines from the beginning of the column fold
  std::vector<std::size_t> pass_list_;           // per column fold, into lists_
  std::int64_t pass_lines_ = 0;
  std::size_t pass_ = 0, position_ = 0;
  std::int64_t first_fill_lines_ = 0, move_lines_ = 0;
};

}  // namespace armilla
