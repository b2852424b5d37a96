#include "cost/systolic.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"
#include "cost/systolic/overlapping_windows.h"
#include "cost/systolic/read_buffer.h"
#include "cost/systolic/write_buffer.h"

namespace armilla {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// One operand's buffer in USER mode: when its window moves, and when DRAM has filled it.
class Reader {
 public:
  Reader(WindowSchedule schedule, ScaleSimVersion version)
      : schedule_(std::move(schedule)), version_(version), moves_of_fill_(schedule_.first_fill_lines()) {}

  std::int64_t next_line() const { return schedule_.done() ? kNever : schedule_.next().line; }

  // How long after `cycle` + 1 the words of `line` arrive. Negative in v3, which may hand them out early.
  std::int64_t wait(std::int64_t line, std::int64_t cycle) {
    if (next_line() != line) return 0;
    const std::int64_t moves = schedule_.next().moves;
    schedule_.advance();
    moves_ += moves;
    if (version_ == ScaleSimVersion::v2) {
      filled_ += moves * (schedule_.move_lines() + 1);
      return std::max<std::int64_t>(0, filled_ - (cycle + 1));
    }
    std::int64_t arrival = cycle + 1;
    for (std::int64_t i = 0; i < moves; ++i) {
      filled_ += schedule_.move_lines() + 1;
      const std::int64_t late = filled_ - arrival;
      // Version 3 adds what a move is late to the moment at which it is there, once more: its own sum, kept
      // to the cycle.
      arrival = late > 0 ? filled_ + late : filled_;
    }
    return arrival - (cycle + 1);
  }

  SystolicTraffic traffic(std::int64_t bandwidth) const {
    return {-moves_of_fill_, filled_, (moves_of_fill_ + moves_ * schedule_.move_lines()) * bandwidth};
  }

 private:
  WindowSchedule schedule_;
  ScaleSimVersion version_;
  std::int64_t moves_of_fill_;
  std::int64_t moves_ = 0;
  std::int64_t filled_ = -1;  // the cycle in which the last word arrived from DRAM
};

struct Streams {
  explicit Streams(const FoldGrid& grid_)
      : grid(grid_),
        ifmap(OperandStream::ifmap(grid)),
        filter(OperandStream::filter(grid)),
        ofmap(OperandStream::ofmap(grid)) {}

  FoldGrid grid;
  OperandStream ifmap, filter, ofmap;
};

// Runs through the lines on which something happens: a window moves, or a stream begins or ends.
class Timeline {
 public:
  Timeline(const Streams& streams, const SystolicBuffers& buffers, std::int64_t last_ifmap_line)
      : lines_(streams.grid.lines()),
        ifmap_lines_{streams.ifmap.first_line(), last_ifmap_line},
        filter_lines_{streams.filter.first_line(), streams.filter.last_line()},
        ofmap_lines_{streams.ofmap.first_line(), streams.ofmap.last_line()},
        writer_(streams.ofmap, buffers.ofmap, buffers.ofmap_bandwidth) {}

  // Null readers never let the array wait.
  void run(Reader* ifmap, Reader* filter, SystolicReport& report) {
    // Between these lines and those on which a window moves nothing changes but the count of lines, so that
    // whole stretches are passed at once.
    std::array marks = {ifmap_lines_[0], ifmap_lines_[1], filter_lines_[0], filter_lines_[1],
                        ofmap_lines_[0], ofmap_lines_[1], lines_ - 1};
    std::sort(marks.begin(), marks.end());
    std::size_t mark = 0;
    std::int64_t from = 0, stall = 0;
    while (mark < marks.size()) {
      std::int64_t line = marks[mark];
      if (ifmap) line = std::min(line, ifmap->next_line());
      if (filter) line = std::min(line, filter->next_line());
      stall = writer_.advance(from, line, stall);
      const std::int64_t cycle = line + stall;
      const std::int64_t ifmap_wait = ifmap ? ifmap->wait(line, cycle) : 0;
      const std::int64_t filter_wait = filter ? filter->wait(line, cycle) : 0;
      const std::int64_t ofmap_wait = writer_.write_line(line, cycle);
      note(line, ifmap_lines_, cycle + 1 + ifmap_wait, report.ifmap_sram);
      note(line, filter_lines_, cycle + 1 + filter_wait, report.filter_sram);
      note(line, ofmap_lines_, cycle + ofmap_wait, report.ofmap_sram);
      if (line == lines_ - 1) report.total_cycles = cycle + ofmap_wait;
      stall += std::max({ifmap_wait, filter_wait, ofmap_wait});
      from = line + 1;
      while (mark < marks.size() && marks[mark] <= line) ++mark;
    }
    report.stall_cycles = stall;
    writer_.finish(report.total_cycles);
    report.ofmap_dram = writer_.traffic();
  }

  std::int64_t latest_write() const { return writer_.latest(); }

 private:
  using Ends = std::array<std::int64_t, 2>;

  static void note(std::int64_t line, const Ends& ends, std::int64_t cycle, SystolicTraffic& traffic) {
    if (line == ends[0]) traffic.first = cycle;
    if (line == ends[1]) traffic.last = cycle;
  }

  std::int64_t lines_;
  Ends ifmap_lines_, filter_lines_, ofmap_lines_;
  WriteBuffer writer_;
};

void run(const Streams& streams, const SystolicBuffers& buffers, const ConvolutionShape* windows,
         SystolicReport& report) {
  const bool over = windows && ifmap_facts(*windows).reaches_over;
  Timeline timeline(streams, buffers,
                    over ? last_read_line(streams.ifmap, WindowMatrix(streams.ifmap, *windows))
                         : streams.ifmap.last_line());
  if (buffers.limited) {
    Reader ifmap({streams.ifmap, windows, buffers.ifmap, buffers.ifmap_bandwidth}, buffers.version);
    Reader filter({streams.filter, nullptr, buffers.filter, buffers.filter_bandwidth}, buffers.version);
    timeline.run(&ifmap, &filter, report);
    report.ifmap_dram = ifmap.traffic(buffers.ifmap_bandwidth);
    report.filter_dram = filter.traffic(buffers.filter_bandwidth);
  } else {
    timeline.run(nullptr, nullptr, report);
    report.ifmap_dram = estimated_reads(streams.ifmap, windows, buffers.ifmap);
    report.filter_dram = estimated_reads(streams.filter, nullptr, buffers.filter);
  }
  if (buffers.version == ScaleSimVersion::v3) report.ofmap_dram.last = timeline.latest_write();
}

// SCALE-Sim adds up the folds one by one, and the last digits depend on it.
void average_utilizations(const FoldGrid& grid, SystolicReport& report) {
  const bool output_stationary = grid.dataflow == Dataflow::output_stationary;
  const std::int64_t counted = grid.lines_per_fold() + (output_stationary ? 0 : grid.columns - 1);
  const double units = static_cast<double>(grid.rows * grid.columns);
  const double unit_cycles = static_cast<double>(grid.rows * grid.columns * counted);
  double mapped = 0, computed = 0;
  for (std::int64_t column = 0; column < grid.column_folds(); ++column) {
    for (std::int64_t row = 0; row < grid.row_folds(); ++row) {
      const std::int64_t used = grid.rows_used(row) * grid.columns_used(column);
      mapped += static_cast<double>(used) / units;
      computed += static_cast<double>(used * grid.steps) / unit_cycles;
    }
  }
  report.mapping_efficiency = mapped / static_cast<double>(grid.folds()) * 100;
  report.compute_utilization = computed / static_cast<double>(grid.folds()) * 100;
}

// All products of sizes that are formed on the way fit where this one does.
void check_sizes(const SystolicArray& array, const Gemm& gemm, const std::string& where) {
  const std::int64_t padded =
      checked_multiply(checked_multiply(checked_add(gemm.m, array.rows + array.columns, where),
                                        checked_add(gemm.n, array.rows + array.columns, where), where),
                       checked_add(gemm.k, array.rows + array.columns, where), where);
  // No product below has more factors than these, and none of the constants in it is above 400.
  checked_multiply(padded, 400, where);
}

}  // namespace

SystolicReport simulate_layer(const SystolicArray& array, const SystolicBuffers& buffers,
                              const ConvolutionShape& layer, const std::string& where) {
  const Gemm gemm = to_gemm(layer, where);
  check_sizes(array, gemm, where);
  const std::int64_t image =
      checked_multiply(checked_multiply(layer.ifmap_height, layer.ifmap_width, where), layer.channels, where);
  // Words that are read once each have their places in order; else where a word stands is looked up in the
  // image.
  const bool plain = ifmap_facts(layer).each_once;
  if (!plain && image > std::numeric_limits<std::int32_t>::max())
    throw Error(where, "overlapping windows of an image of 2^31 words and more are not supported");
  const Streams streams(FoldGrid(array, gemm.m, gemm.n, gemm.k));
  SystolicReport report;
  run(streams, buffers, plain ? nullptr : &layer, report);
  average_utilizations(streams.grid, report);
  const SystolicResult counts = evaluate(array, gemm);
  report.ifmap_sram.words = counts.ifmap_reads;
  report.filter_sram.words = counts.filter_reads;
  report.ofmap_sram.words = counts.ofmap_writes;
  const long double macs = static_cast<long double>(gemm.macs());
  const long double offered = static_cast<long double>(report.total_cycles * array.rows * array.columns);
  // A 1x1 array and a 1x1x1 product take one cycle, which the report calls none.
  if (report.total_cycles > 0) report.overall_utilization = static_cast<double>(macs * 100 / offered);
  return report;
}

std::int64_t stall_cycles(const SystolicArray& array, const SystolicBuffers& buffers, std::int64_t m,
                          std::int64_t n, std::int64_t k) {
  if (m == 0 || n == 0 || k == 0) return 0;
  SystolicReport report;
  run(Streams(FoldGrid(array, m, n, k)), buffers, nullptr, report);
  return report.stall_cycles;
}

}  // namespace armilla
