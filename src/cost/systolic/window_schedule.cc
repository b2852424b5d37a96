#include <algorithm>
#include <map>
#include <optional>

#include "base/checked.h"
#include "cost/systolic/overlapping_windows.h"
#include "cost/systolic/read_buffer.h"

namespace armilla {
namespace {

using Kind = OperandStream::Kind;

// Where an operand whose words all differ stands in the order of prefetching. The words of one line of a fold
// stand side by side.
class PrefetchPlaces {
 public:
  explicit PrefetchPlaces(const OperandStream& stream) : stream_(stream) {
    const FoldGrid& grid = stream.grid();
    if (stream.kind() == Kind::stationary) return;
    const bool rows = stream.kind() == Kind::along_rows;
    const std::int64_t blocks = rows ? grid.row_folds() : grid.column_folds();
    const std::int64_t last_width = rows ? grid.rows_used(blocks - 1) : grid.columns_used(blocks - 1);
    whole_ = {0, (blocks - 1) * grid.steps, rows ? grid.rows : grid.columns, true};
    last_ = {(blocks - 1) * grid.steps, grid.steps, last_width, true};
  }

  // Of the first word of a line, counted from the block's first line.
  std::int64_t first(std::int64_t row_fold, std::int64_t column_fold, std::int64_t line) const {
    const FoldGrid& grid = stream_.grid();
    if (stream_.kind() == Kind::stationary) {
      const std::int64_t row = row_fold * grid.rows + grid.rows_used(row_fold) - 1 - line;
      return column_fold * grid.columns * grid.spatial_rows + row * grid.columns_used(column_fold);
    }
    const std::int64_t fold = stream_.kind() == Kind::along_rows ? row_fold : column_fold;
    const std::int64_t diagonal = fold * grid.steps + line;
    const std::int64_t begin = whole_words(diagonal) + last_.words_until(diagonal);
    if (fold * grid.steps == whole_.height) return begin;
    // The last block lies below the others, and a diagonal begins at its lower end.
    const std::int64_t from_last = last_.words_until(diagonal + 1) - last_.words_until(diagonal);
    const std::int64_t column = std::max<std::int64_t>(0, line - grid.steps + 1);
    return begin + from_last + column - std::max<std::int64_t>(0, diagonal - whole_.height + 1);
  }

  // Of a place in the matrix.
  std::int64_t at(std::int64_t along, std::int64_t across) const {
    const FoldGrid& grid = stream_.grid();
    if (stream_.kind() == Kind::stationary) {
      const std::int64_t fold = across / grid.columns;
      return fold * grid.columns * grid.spatial_rows + along * grid.columns_used(fold) +
             across % grid.columns;
    }
    const std::int64_t line = along + across % grid.rows;
    return first(across / grid.rows, 0, line) + across % grid.rows -
           std::max<std::int64_t>(0, line - grid.steps + 1);
  }

  std::int64_t last(std::int64_t row_fold, std::int64_t column_fold, std::int64_t line) const {
    const StreamBlock block = stream_.block(row_fold, column_fold);
    const std::int64_t words =
        block.words_until(block.first + line + 1) - block.words_until(block.first + line);
    return first(row_fold, column_fold, line) + words - 1;
  }

 private:
  std::int64_t whole_words(std::int64_t diagonal) const {
    return whole_.height == 0 ? 0 : whole_.words_until(diagonal);
  }

  OperandStream stream_;
  StreamBlock whole_, last_;
};

// The sets that are in the buffer: `active` from `start` on, in a ring.
struct SetWindow {
  std::int64_t sets = 1, active = 1, step = 0;
  std::int64_t start = 0;

  void move() { start = (start + step) % sets; }
  std::int64_t offset(std::int64_t set) const { return set >= start ? set - start : set - start + sets; }
  bool holds(std::int64_t set) const { return offset(set) < active; }
  // The last set of those that follow `set` in line without leaving the window.
  std::int64_t last_after(std::int64_t set) const {
    return std::min(sets - 1, set + active - 1 - offset(set));
  }
};

// Where else in the im2col matrix the word at (along, across) stands.
class OtherPlaces {
 public:
  OtherPlaces(const OperandStream& stream, const ConvolutionShape& shape)
      : shape_(shape),
        output_(output_size(shape, "layer")),
        pixels_run_along_(stream.grid().dataflow == Dataflow::weight_stationary) {}

  // Calls visit(along, across) for all of them and for the place itself.
  template <class Visit>
  void visit(std::int64_t along, std::int64_t across, Visit visit) const {
    const std::int64_t pixel = pixels_run_along_ ? along : across,
                       window = pixels_run_along_ ? across : along;
    const std::int64_t channel = window % shape_.channels, element = window / shape_.channels;
    const std::int64_t row = pixel / output_.width * shape_.stride_height + element / shape_.filter_width;
    const std::int64_t column = pixel % output_.width * shape_.stride_width + element % shape_.filter_width;
    const auto first = [](std::int64_t at, std::int64_t filter, std::int64_t stride) {
      return at < filter ? 0 : (at - filter) / stride + 1;
    };
    for (std::int64_t y = first(row, shape_.filter_height, shape_.stride_height);
         y < output_.height && y * shape_.stride_height <= row; ++y) {
      for (std::int64_t x = first(column, shape_.filter_width, shape_.stride_width);
           x < output_.width && x * shape_.stride_width <= column; ++x) {
        const std::int64_t here = y * output_.width + x;
        const std::int64_t in_window =
            ((row - y * shape_.stride_height) * shape_.filter_width + column - x * shape_.stride_width) *
                shape_.channels +
            channel;
        pixels_run_along_ ? visit(here, in_window) : visit(in_window, here);
      }
    }
  }

 private:
  ConvolutionShape shape_;
  OutputSize output_;
  bool pixels_run_along_;
};

// Operands of which nothing reaches over the edge: where a line stands in the order of prefetching is known,
// and only words that have left the window there are looked for elsewhere.
class PlacedWords {
 public:
  PlacedWords(const OperandStream& stream, const ConvolutionShape* windows, const SetWindow& window,
              std::int64_t set_words)
      : stream_(stream), places_(stream), window_(window), set_words_(set_words) {
    if (windows) others_.emplace(stream, *windows);
  }

  std::int64_t start() const { return window_.start; }

  // Lines from the beginning of the column fold.
  void run(std::int64_t row_fold, std::int64_t column_fold, std::vector<WindowMoves>& moves) {
    const StreamBlock block = stream_.block(row_fold, column_fold);
    const std::int64_t lines = block.line_count();
    const std::int64_t begin = row_fold * stream_.grid().lines_per_fold() + block.first;
    const bool ascending = block.skewed;
    const auto first = [&](std::int64_t line) {
      return places_.first(row_fold, column_fold, line) / set_words_;
    };
    const auto last = [&](std::int64_t line) {
      return places_.last(row_fold, column_fold, line) / set_words_;
    };
    const std::int64_t lowest = first(ascending ? 0 : lines - 1);
    const std::int64_t highest = last(ascending ? lines - 1 : 0);
    if (window_.holds(lowest) && highest <= window_.last_after(lowest)) return;
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::int64_t from = first(line);
      if (ascending && window_.holds(from)) {
        line = first_beyond(line, lines, window_.last_after(from), last);
        if (line == lines) return;
      }
      const std::int64_t count = read_line(row_fold, column_fold, block, line);
      if (count > 0) moves.push_back({begin + line, count});
    }
  }

 private:
  // The first of the lines that reaches a set behind `limit`; `end` where none does.
  template <class Last>
  static std::int64_t first_beyond(std::int64_t line, std::int64_t end, std::int64_t limit, Last last) {
    while (line < end) {
      const std::int64_t middle = line + (end - line) / 2;
      if (last(middle) > limit)
        end = middle;
      else
        line = middle + 1;
    }
    return end;
  }

  std::int64_t read_line(std::int64_t row_fold, std::int64_t column_fold, const StreamBlock& block,
                         std::int64_t line) {
    const FoldGrid& grid = stream_.grid();
    const bool loaded = !block.skewed;
    const std::int64_t from = loaded ? 0 : std::max<std::int64_t>(0, line - block.height + 1);
    const std::int64_t to = loaded ? block.width - 1 : std::min(block.width - 1, line);
    const std::int64_t across = loaded ? column_fold * grid.columns : row_fold * grid.rows;
    const std::int64_t last_along = row_fold * grid.rows + block.height - 1;
    const std::int64_t first = places_.first(row_fold, column_fold, line);
    std::int64_t moves = 0;
    for (std::int64_t c = from; c <= to; ++c) {
      const std::int64_t place = first + c - from;
      if (others_ && !window_.holds(place / set_words_)) {
        moves += fetch(loaded ? last_along - line : line - c, across + c);
        continue;
      }
      for (; !window_.holds(place / set_words_); ++moves) window_.move();
      c += set_words_ - 1 - place % set_words_;  // the rest of the set is there, too
    }
    return moves;
  }

  // Moves until one of the word's places is in the window.
  std::int64_t fetch(std::int64_t along, std::int64_t across) {
    sets_.clear();
    others_->visit(along, across,
                   [&](std::int64_t a, std::int64_t b) { sets_.push_back(places_.at(a, b) / set_words_); });
    std::int64_t moves = 0;
    const auto held = [&](std::int64_t set) { return window_.holds(set); };
    for (; std::none_of(sets_.begin(), sets_.end(), held); ++moves) window_.move();
    return moves;
  }

  OperandStream stream_;
  PrefetchPlaces places_;
  SetWindow window_;
  std::int64_t set_words_;
  std::optional<OtherPlaces> others_;
  std::vector<std::int64_t> sets_;
};

// Windows that reach over the edge: counts, for every word of the image, how often it stands in the buffer.
class CountedWords {
 public:
  CountedWords(const OperandStream& stream, const ConvolutionShape& shape, const SetWindow& window,
               std::int64_t set_words, std::int64_t entries)
      : stream_(stream),
        matrix_(stream, shape),
        window_(window),
        set_words_(set_words),
        entries_(entries),
        entering_(stream, matrix_),
        leaving_(stream, matrix_),
        held_(matrix_.words(), 0) {
    for (std::int64_t set = 0; set < window_.active; ++set) enter(set);
  }

  std::int64_t start() const { return window_.start; }

  void run(std::int64_t row_fold, std::int64_t column_fold, std::vector<WindowMoves>& moves) {
    const std::int64_t pass = column_fold * stream_.grid().row_folds() * stream_.grid().lines_per_fold();
    matrix_.visit_fold(stream_, row_fold, column_fold, [&](std::int64_t line, std::size_t word) {
      if (held_[word] > 0) return;
      std::int64_t count = 0;
      for (; held_[word] == 0; ++count) move();
      if (moves.empty() || moves.back().line != line - pass)
        moves.push_back({line - pass, count});
      else
        moves.back().moves += count;
    });
  }

 private:
  std::int64_t size(std::int64_t set) const {
    return std::min(set_words_, entries_ - set * set_words_);  // the last one's may be 0
  }
  void enter(std::int64_t set) {
    for (std::int64_t i = size(set); i > 0; --i) ++held_[entering_.next()];
  }
  void move() {
    for (std::int64_t i = 0; i < window_.step; ++i) {
      enter((window_.start + window_.active + i) % window_.sets);
      for (std::int64_t word = size((window_.start + i) % window_.sets); word > 0; --word)
        --held_[leaving_.next()];
    }
    window_.move();
  }

  OperandStream stream_;
  WindowMatrix matrix_;
  SetWindow window_;
  std::int64_t set_words_, entries_;
  PrefetchWalk entering_, leaving_;
  std::vector<std::uint32_t> held_;
};

template <class Operand>
void follow(const OperandStream& stream, Operand& operand, std::vector<std::vector<WindowMoves>>& lists,
            std::vector<std::size_t>& pass_list) {
  const FoldGrid& grid = stream.grid();
  const bool repeats = stream.kind() == Kind::along_rows;
  std::map<std::int64_t, std::size_t> begun;  // a column fold's future depends on where its window starts
  std::vector<std::size_t> following;         // the list after each
  for (std::int64_t pass = 0; pass < grid.column_folds(); ++pass) {
    const auto [found, is_new] = begun.emplace(repeats ? operand.start() : pass, lists.size());
    if (!is_new) {
      // The column folds since then come again and again.
      const std::size_t begin = found->second, period = lists.size() - begin;
      for (std::size_t i = 0; pass < grid.column_folds(); ++pass, ++i)
        pass_list.push_back(begin + i % period);
      return;
    }
    pass_list.push_back(lists.size());
    std::vector<WindowMoves>& moves = lists.emplace_back();
    for (std::int64_t fold = 0; fold < grid.row_folds(); ++fold) operand.run(fold, pass, moves);
  }
}

// Words of the matrix that is prefetched, with the empty places of partial folds.
std::int64_t padded_entries(const OperandStream& stream) {
  const FoldGrid& grid = stream.grid();
  switch (stream.kind()) {
    case Kind::along_rows:
      return grid.row_folds() * grid.steps * grid.rows;
    case Kind::along_columns:
      return grid.column_folds() * grid.steps * grid.columns;
    default:
      return grid.column_folds() * grid.spatial_rows * grid.columns;
  }
}

}  // namespace

WindowSchedule::WindowSchedule(const OperandStream& stream, const ConvolutionShape* windows,
                               std::int64_t words, std::int64_t bandwidth)
    : pass_lines_(stream.grid().row_folds() * stream.grid().lines_per_fold()) {
  // Double buffering: half of the words are read while the other half is filled; SCALE-Sim keeps a buffer in
  // a hundred sets.
  const std::int64_t active = words - words / 2, prefetched = words / 2, set_words = ceil_divide(words, 100);
  const std::optional<IfmapFacts> facts = windows ? std::optional(ifmap_facts(*windows)) : std::nullopt;
  const bool overlapping = facts && !facts->each_once;
  const std::int64_t entries = overlapping ? facts->entries : stream.different_words();
  first_fill_lines_ =
      std::min(ceil_divide(active, bandwidth), ceil_divide(padded_entries(stream), bandwidth));
  move_lines_ = ceil_divide(prefetched, bandwidth);

  SetWindow window;
  // One more than are needed where the division is even: SCALE-Sim has an empty one at the end.
  window.sets = entries / set_words + 1;
  window.active = std::min(ceil_divide(active, set_words), window.sets);
  window.step = std::min(ceil_divide(prefetched, set_words), window.sets - window.active);
  if (window.step > 0) {
    if (facts && facts->reaches_over) {
      CountedWords operand(stream, *windows, window, set_words, entries);
      follow(stream, operand, lists_, pass_list_);
    } else {
      PlacedWords operand(stream, overlapping ? windows : nullptr, window, set_words);
      follow(stream, operand, lists_, pass_list_);
    }
  }
  skip_empty();
}

void WindowSchedule::skip_empty() {
  while (!done() && lists_[pass_list_[pass_]].size() == position_) {
    ++pass_;
    position_ = 0;
  }
}

WindowMoves WindowSchedule::next() const {
  const WindowMoves& moves = lists_[pass_list_[pass_]][position_];
  return {static_cast<std::int64_t>(pass_) * pass_lines_ + moves.line, moves.moves};
}

void WindowSchedule::advance() {
  ++position_;
  skip_empty();
}

}  // namespace armilla
