#include "write/scalesim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace armilla {
namespace {

bool is_v3(const ScaleSimRun& run) {
  return run.config.buffers.version == ScaleSimVersion::v3;
}

// Python prints a float with a point or an exponent always; the reports are compared with its files.
std::string python_float(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string cycle(std::int64_t value) {
  return python_float(static_cast<double>(value));
}

// Layers without cycles would divide by zero.
double per_cycle(std::int64_t words, std::int64_t cycles) {
  return cycles == 0 ? 0 : static_cast<double>(words) / static_cast<double>(cycles);
}

double bandwidth(const SystolicTraffic& traffic) {
  return per_cycle(traffic.words, traffic.last - traffic.first + 1);
}

// With v3's prefetches and write-back.
std::int64_t overall_cycles(const SystolicReport& layer) {
  return layer.ofmap_dram.last - std::min(layer.ifmap_dram.first, layer.filter_dram.first);
}

std::array<double, 6> bandwidths(const SystolicReport& layer) {
  return {per_cycle(layer.ifmap_sram.words, layer.total_cycles),
          per_cycle(layer.filter_sram.words, layer.total_cycles),
          per_cycle(layer.ofmap_sram.words, layer.total_cycles),
          bandwidth(layer.ifmap_dram),
          bandwidth(layer.filter_dram),
          bandwidth(layer.ofmap_dram)};
}

std::string compute_report(const ScaleSimRun& run) {
  std::string text = fmt::format(
      "LayerID, {}Total Cycles, Stall Cycles, Overall Util %, Mapping Efficiency %, Compute Util %,\n",
      is_v3(run) ? "Total Cycles (incl. prefetch), " : "");
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    const SystolicReport& layer = run.layers[i];
    text += fmt::format("{}, ", i);
    if (is_v3(run)) text += fmt::format("{}, ", overall_cycles(layer));
    text += fmt::format("{}, {}, {}, {}, {},\n", layer.total_cycles, layer.stall_cycles,
                        python_float(layer.overall_utilization), python_float(layer.mapping_efficiency),
                        python_float(layer.compute_utilization));
  }
  return text;
}

std::string bandwidth_report(const ScaleSimRun& run) {
  std::string text =
      "LayerID, Avg IFMAP SRAM BW, Avg FILTER SRAM BW, Avg OFMAP SRAM BW, Avg IFMAP DRAM BW, "
      "Avg FILTER DRAM BW, Avg OFMAP DRAM BW,\n";
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    text += fmt::format("{}, ", i);
    std::string separator;
    for (const double average : bandwidths(run.layers[i])) {
      text += separator + python_float(average);
      separator = ", ";
    }
    text += ",\n";
  }
  return text;
}

std::string detailed_report(const ScaleSimRun& run) {
  std::string text =
      "LayerID, "
      "SRAM IFMAP Start Cycle, SRAM IFMAP Stop Cycle, SRAM IFMAP Reads, "
      "SRAM Filter Start Cycle, SRAM Filter Stop Cycle, SRAM Filter Reads, "
      "SRAM OFMAP Start Cycle, SRAM OFMAP Stop Cycle, SRAM OFMAP Writes, "
      "DRAM IFMAP Start Cycle, DRAM IFMAP Stop Cycle, DRAM IFMAP Reads, "
      "DRAM Filter Start Cycle, DRAM Filter Stop Cycle, DRAM Filter Reads, "
      "DRAM OFMAP Start Cycle, DRAM OFMAP Stop Cycle, DRAM OFMAP Writes,\n";
  for (std::size_t i = 0; i < run.layers.size(); ++i) {
    const SystolicReport& layer = run.layers[i];
    text += fmt::format("{}", i);
    for (const SystolicTraffic* traffic : {&layer.ifmap_sram, &layer.filter_sram, &layer.ofmap_sram,
                                           &layer.ifmap_dram, &layer.filter_dram, &layer.ofmap_dram})
      text += fmt::format(", {}, {}, {}", cycle(traffic->first), cycle(traffic->last), traffic->words);
    text += ",\n";
  }
  return text;
}

std::string_view dataflow_title(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::output_stationary:
      return "Output Stationary";
    case Dataflow::weight_stationary:
      return "Weight Stationary";
    case Dataflow::input_stationary:
      break;
  }
  // Both versions print this for the third dataflow.
  return "Input Stationary";
}

std::string banner(const ScaleSimRun& run) {
  const ScaleSimConfig& config = run.config;
  const std::string rule(52, '=');
  std::string text = fmt::format(
      "{0}\n******************* SCALE SIM **********************\n{0}\n"
      "Array Size: \t{1}x{2}\nSRAM IFMAP (kB): \t{3}\nSRAM Filter (kB): \t{4}\nSRAM OFMAP (kB): \t{5}\n"
      "Dataflow: \t{6}\n{7} file path: \t{8}\n",
      rule, config.array.rows, config.array.columns, config.ifmap_kib, config.filter_kib, config.ofmap_kib,
      dataflow_title(config.array.dataflow), is_v3(run) ? "topology" : "CSV", run.topology_path);
  if (config.buffers.limited)
    text += fmt::format("Bandwidth: \t{}\nWorking in USE USER BANDWIDTH mode.\n", config.bandwidths);
  else
    text += "Working in ESTIMATE BANDWIDTH mode.\n";
  return text + rule + '\n';
}

std::string layer_text(const ScaleSimRun& run, std::size_t i) {
  const SystolicReport& layer = run.layers[i];
  std::string text = fmt::format("\nRunning Layer {}\n", i);
  if (is_v3(run)) text += fmt::format("Total cycles: {}\n", overall_cycles(layer));
  text += fmt::format(
      "Compute cycles: {}\nStall cycles: {}\nOverall utilization: {:.2f}%\nMapping efficiency: {:.2f}%\n",
      layer.total_cycles, layer.stall_cycles, layer.overall_utilization, layer.mapping_efficiency);
  constexpr std::array<std::string_view, 6> kTitles = {"IFMAP SRAM", "Filter SRAM", "OFMAP SRAM",
                                                       "IFMAP DRAM", "Filter DRAM", "OFMAP DRAM"};
  const std::array<double, 6> averages = bandwidths(layer);
  for (std::size_t k = is_v3(run) ? 0 : 3; k < kTitles.size(); ++k)
    text += fmt::format("Average {} BW: {:.3f} words/cycle\n", kTitles[k], averages[k]);
  return text;
}

}  // namespace

std::vector<NamedContents> write_scalesim_reports(const ScaleSimRun& run, const std::string& folder) {
  return {{folder + "/COMPUTE_REPORT.csv", compute_report(run)},
          {folder + "/BANDWIDTH_REPORT.csv", bandwidth_report(run)},
          {folder + "/DETAILED_ACCESS_REPORT.csv", detailed_report(run)}};
}

std::string write_scalesim_text(const ScaleSimRun& run) {
  std::string text = banner(run);
  for (std::size_t i = 0; i < run.layers.size(); ++i) text += layer_text(run, i);
  return text + "************ SCALE SIM Run Complete ****************\n";
}

}  // namespace armilla
