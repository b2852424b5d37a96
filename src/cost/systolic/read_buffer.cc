#include "cost/systolic/read_buffer.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/checked.h"
#include "cost/systolic/overlapping_windows.h"

namespace armilla {
namespace {

using Kind = OperandStream::Kind;

// How often a buffer of `room` words was full and thrown away, and when it last was.
struct Refills {
  std::int64_t words = 0;  // put in
  std::int64_t last = -1;  // line
};

// Every fold of a column fold reads the same block: what is left of the first reading is read again in the
// second; from then on everything is there, unless the block alone fills the buffer.
Refills refills_of_repeated_blocks(const OperandStream& stream, std::int64_t room) {
  const FoldGrid& grid = stream.grid();
  const std::int64_t readings = grid.row_folds();
  Refills refills;
  std::int64_t held = 0;
  for (std::int64_t fold = 0; fold < grid.column_folds(); ++fold) {
    const StreamBlock block = stream.block(0, fold);
    const std::int64_t words = block.words();
    const std::int64_t begin = fold * readings * grid.lines_per_fold();
    if (words < room && held + words < room) {
      refills.words += words;
      held += words;
      continue;
    }
    const std::int64_t all = words < room ? words : words * readings;
    const std::int64_t last = (held + all) / room * room - held;  // words until the last refill
    refills.last = begin + (last - 1) / words * grid.lines_per_fold() + block.line_of((last - 1) % words + 1);
    refills.words += all;
    const std::int64_t left = (held + all) % room;
    held = left;
    if (words < room && readings > 1) {
      refills.words += words - left;
      held = words;
    }
  }
  return refills;
}

Refills refills_of_different_words(const OperandStream& stream, std::int64_t room) {
  if (stream.kind() == Kind::along_columns) return refills_of_repeated_blocks(stream, room);
  const std::int64_t once = stream.different_words();
  if (once < room) return {once, -1};
  // Whatever a column fold left in the buffer is gone before the next comes to it.
  const std::int64_t words = stream.words();
  return {words, stream.line_of(words / room * room)};
}

Refills refills_of_windows(const OperandStream& stream, const ConvolutionShape& shape, std::int64_t room) {
  const FoldGrid& grid = stream.grid();
  const WindowMatrix matrix(stream, shape);
  const bool repeats = stream.kind() == Kind::along_rows;
  const std::int64_t pass_lines = grid.row_folds() * grid.lines_per_fold();
  std::vector<std::uint32_t> filled(matrix.words(), 0);  // in which refill a word was put in
  std::uint32_t refill = 1;
  std::int64_t held = 0, total = 0, last = -1;
  std::size_t reads = 0, last_read = 0;
  // A column fold's future depends on the read that last threw the buffer away, in the column fold before.
  std::map<std::size_t, std::int64_t> begun;
  std::vector<std::int64_t> put_in, last_lines;
  const std::int64_t passes = grid.column_folds();
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    if (repeats && pass > 0) {
      const auto [found, is_new] = begun.emplace(last_read, pass);
      if (!is_new) {
        // The passes since then come again and again.
        const std::int64_t period = pass - found->second;
        for (std::int64_t i = pass; i < passes; ++i)
          total += put_in[static_cast<std::size_t>(found->second + (i - pass) % period)];
        const std::int64_t like = found->second + (passes - 1 - pass) % period;
        last = last_lines[static_cast<std::size_t>(like)] + (passes - 1 - like) * pass_lines;
        break;
      }
    }
    const std::int64_t before = total;
    reads = 0;
    for (std::int64_t fold = 0; fold < grid.row_folds(); ++fold) {
      matrix.visit_fold(stream, fold, pass, [&](std::int64_t line, std::size_t word) {
        ++reads;
        if (filled[word] == refill) return;
        filled[word] = refill;
        ++total;
        if (++held < room) return;
        held = 0;
        ++refill;
        last = line;
        last_read = reads;
      });
    }
    put_in.push_back(total - before);
    last_lines.push_back(last);
  }
  return {total, last};
}

}  // namespace

SystolicTraffic estimated_reads(const OperandStream& stream, const ConvolutionShape* windows,
                                std::int64_t words) {
  constexpr std::int64_t kDefaultBandwidth = 10;  // words per cycle of the first fill
  const std::int64_t set_words = words / 100, room = 50 * set_words;
  Refills refills;
  if (const auto facts = windows ? std::optional(ifmap_facts(*windows)) : std::nullopt;
      !facts || facts->each_once)
    refills = refills_of_different_words(stream, room);
  else if (facts->distinct < room)
    refills.words = facts->distinct;
  else
    refills = refills_of_windows(stream, *windows, room);
  // The first fill ends two cycles before the first demand, or before cycle 0 where there is no other.
  const bool refilled = refills.last >= 0;
  const std::int64_t filled = refilled ? room : ceil_divide(refills.words, set_words) * set_words;
  const std::int64_t end = refilled ? stream.first_line() - 1 : -1;
  return {end - ceil_divide(filled, kDefaultBandwidth) + 1, refilled ? refills.last + 1 : end, refills.words};
}

}  // namespace armilla
