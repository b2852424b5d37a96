#include "cost/systolic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "cost/device/roofline.h"
#include "cost/systolic/operand_matrix.h"

namespace armilla {
namespace {

std::int64_t saturating_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

double real(std::int64_t n) {
  return static_cast<double>(n);
}

struct Mapping {
  std::int64_t rows = 0, columns = 0, steps = 0;
};

Mapping map(Dataflow dataflow, const Gemm& gemm) {
  switch (dataflow) {
    case Dataflow::output_stationary:
      return {gemm.m, gemm.n, gemm.k};
    case Dataflow::weight_stationary:
      return {gemm.k, gemm.n, gemm.m};
    case Dataflow::input_stationary:
      break;
  }
  return {gemm.k, gemm.m, gemm.n};
}

void count_accesses(const SystolicArray& array, const Gemm& gemm, std::int64_t row_folds,
                    std::int64_t column_folds, SystolicResult& result) {
  const std::int64_t ifmap = saturating_multiply(gemm.m, gemm.k);
  const std::int64_t filter = saturating_multiply(gemm.k, gemm.n);
  const std::int64_t ofmap = saturating_multiply(gemm.m, gemm.n);
  switch (array.dataflow) {
    case Dataflow::output_stationary:
      result.ifmap_reads = saturating_multiply(column_folds, ifmap);
      result.filter_reads = saturating_multiply(row_folds, filter);
      // SCALE-Sim counts so many more for every fold, which is reproduced.
      result.ofmap_writes =
          saturating_add(ofmap, saturating_multiply(result.folds, array.rows + array.columns));
      return;
    case Dataflow::weight_stationary:
      result.ifmap_reads = saturating_multiply(column_folds, ifmap);
      result.filter_reads = filter;
      break;
    case Dataflow::input_stationary:
      result.ifmap_reads = ifmap;
      result.filter_reads = saturating_multiply(column_folds, filter);
      break;
  }
  result.ofmap_writes = saturating_multiply(row_folds, ofmap);
}

struct SystolicOptions {
  SystolicArray array;
  std::int64_t arrays = 1;
  Frequency frequency;
  bool reported_cycles = false;
  bool memory_bound = false;
  SystolicBuffers buffers;
};

class Systolic : public CostModel {
 public:
  Systolic(Device device, const SystolicOptions& options) : device_(std::move(device)), options_(options) {}

  Time time(const Work& work) const override {
    if (work.kind != WorkKind::matrix) return roofline_time(device_, work);
    const Time compute = from_seconds(real(cycles(work)) / options_.frequency.value);
    // SCALE-Sim's own answer by default: its array never waits for DRAM unless the buffers are modelled.
    if (!options_.memory_bound) return compute;
    const double attainable = device_.memory_bandwidth.value * device_.memory_efficiency;
    return std::max(compute, time_to_move(work.bytes, Bandwidth(attainable)));
  }

  // The array computes in one precision; a multiply-accumulate is two operations.
  FlopRate peak(DType) const override {
    return FlopRate(2 * real(options_.array.rows) * real(options_.array.columns) * real(options_.arrays) *
                    options_.frequency.value);
  }

  std::int64_t cycles(const Work& work) const override {
    std::int64_t total = 0;
    for (const Gemm& gemm : work.gemms) total = saturating_add(total, cycles(gemm));
    return total;
  }

 private:
  // The folds of all products are dealt out evenly; an array that gets one less waits.
  std::int64_t cycles(const Gemm& gemm) const {
    const SystolicResult one = evaluate(options_.array, gemm);
    if (one.folds == 0 || gemm.count < 1) return 0;
    const std::int64_t folds = ceil_divide(saturating_multiply(one.folds, gemm.count), options_.arrays);
    const std::int64_t compute = saturating_multiply(folds, one.cycles_per_fold);
    // The report of SCALE-Sim says the index of a product's last cycle, one less than its cycles; each array
    // runs so many products one after the other.
    const std::int64_t last = options_.reported_cycles ? ceil_divide(gemm.count, options_.arrays) : 0;
    return saturating_add(compute - last, saturating_multiply(stalls(gemm), gemm.count));
  }

  std::int64_t stalls(const Gemm& gemm) const {
    if (!options_.buffers.limited) return 0;
    return stall_cycles(options_.array, options_.buffers, gemm.m, gemm.n, gemm.k);
  }

  Device device_;
  SystolicOptions options_;
};

std::int64_t bounded_count(const ParameterValues& values, std::string_view name) {
  constexpr std::int64_t kMost = 65536;
  const std::int64_t value = values.count(name);
  if (value > kMost)
    throw Error(values.where(name), fmt::format("{} is too large", value),
                fmt::format("the highest value is {}", kMost));
  return value;
}

std::int64_t words_of(const ParameterValues& values, std::string_view name, std::int64_t word) {
  const std::int64_t words = values.bytes(name).value / word;
  if (words < 1024) throw Error(values.where(name), "is too small", "a buffer holds at least 1024 words");
  return words;
}

void read_buffers(const ParameterValues& values, SystolicOptions& options) {
  if (!values.is_set("dram_bandwidth")) return;
  SystolicBuffers& buffers = options.buffers;
  if (options.arrays > 1)
    throw Error(values.where("dram_bandwidth"), "waiting for DRAM is modelled for one array only",
                "omit 'arrays' or 'dram_bandwidth'");
  if (options.memory_bound)
    throw Error(values.where("dram_bandwidth"), "and memory_bound wait for the same memory twice",
                "leave out one of them");
  const std::int64_t word = values.count("word");
  if (word < 1 || word > 16) throw Error(values.where("word"), "lies between 1 and 16");
  const std::int64_t bandwidth = bounded_count(values, "dram_bandwidth");
  buffers.limited = true;
  buffers.ifmap = words_of(values, "ifmap_sram", word);
  buffers.filter = words_of(values, "filter_sram", word);
  buffers.ofmap = words_of(values, "ofmap_sram", word);
  buffers.ifmap_bandwidth = buffers.filter_bandwidth = buffers.ofmap_bandwidth = bandwidth;
}

}  // namespace

SystolicResult evaluate(const SystolicArray& array, const Gemm& gemm) {
  SystolicResult result;
  if (gemm.m == 0 || gemm.n == 0 || gemm.k == 0) return result;
  const Mapping used = map(array.dataflow, gemm);
  const std::int64_t row_folds = ceil_divide(used.rows, array.rows);
  const std::int64_t column_folds = ceil_divide(used.columns, array.columns);
  const bool loads_first = array.dataflow != Dataflow::output_stationary;
  const std::int64_t skew = (loads_first ? 2 : 1) * array.rows + array.columns - 2;
  result.folds = saturating_multiply(row_folds, column_folds);
  result.cycles_per_fold = saturating_add(used.steps, skew);
  result.compute_cycles = saturating_multiply(result.folds, result.cycles_per_fold);
  result.reported_total_cycles = result.compute_cycles - 1;

  const double units = real(array.rows) * real(array.columns);
  const double mapped = real(used.rows) * real(used.columns) / (real(row_folds) * real(column_folds) * units);
  // SCALE-Sim divides the utilisation under ws and is by a fold that is longer by columns - 1.
  const std::int64_t counted_skew = loads_first ? skew + array.columns - 1 : skew;
  result.mapping_efficiency = 100 * mapped;
  result.compute_utilization = 100 * mapped * real(used.steps) / (real(used.steps) + real(counted_skew));
  const double macs = real(gemm.m) * real(gemm.n) * real(gemm.k);
  // A 1x1 array and a 1x1x1 product take one cycle, which the report calls none.
  if (result.reported_total_cycles > 0)
    result.overall_utilization = 100 * macs / (real(result.reported_total_cycles) * units);
  count_accesses(array, gemm, row_folds, column_folds, result);
  return result;
}

Gemm to_gemm(const ConvolutionShape& shape, const std::string& where) {
  const auto [height, width] = output_size(shape, where);
  if (shape.channels < 1 || shape.filters < 1)
    throw Error(where, "a convolution has at least 1 channel and 1 filter");
  Gemm gemm;
  gemm.m = checked_multiply(height, width, where);
  gemm.n = shape.filters;
  gemm.k = checked_multiply(checked_multiply(shape.filter_height, shape.filter_width, where), shape.channels,
                            where);
  return gemm;
}

std::unique_ptr<CostModel> make_systolic(const Device& device, const ParameterValues& values) {
  constexpr std::array kDataflows = {std::pair("os", Dataflow::output_stationary),
                                     std::pair("ws", Dataflow::weight_stationary),
                                     std::pair("is", Dataflow::input_stationary)};
  SystolicOptions options;
  options.array.rows = bounded_count(values, "rows");
  options.array.columns = bounded_count(values, "columns");
  for (const auto& [name, dataflow] : kDataflows) {
    if (values.choice("dataflow") == name) options.array.dataflow = dataflow;
  }
  options.arrays = bounded_count(values, "arrays");
  options.frequency = values.frequency("frequency");
  options.reported_cycles = values.choice("cycles") == "reported";
  options.memory_bound = values.boolean("memory_bound");
  read_buffers(values, options);
  return std::make_unique<Systolic>(device, options);
}

}  // namespace armilla
